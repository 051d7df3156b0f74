"""The server under load: many clients that add and search at once, and what became of it.

    python benchmarks/http_load.py --minutes 5 --clients 64 --json load.json

Starts `reverie serve` over a folder of its own with `--users` users of `--memories` memories, and,
in another process, `--clients` clients, each of which sends its next request when it has the
answer to the last. A share `--adds` of them are writes: each stores one turn, with a request id.
Afterwards everything is read back over HTTP, page by page: what was acknowledged and is not there
is lost. Prints errors, losses, p50 and p99 of adds and of searches, and calls a second.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import httpx

import reverie

WORLD = "load"
PEOPLE = "Ana Bo Cem Dia Eli Fay Gus Ida Jon Kim 李雷 韩梅梅".split()
PLACES = "Oslo Bergen Lima Kyoto Accra Quito 北京 杭州".split()
THINGS = "tea chess mangoes rowing novels copper maps 围棋 芒果".split()
FILL = 256  # memories of one call
TIMEOUT_S = 120.0


def statement(chance: random.Random, number: int) -> str:
    """A sentence that is like others and the same as none."""
    who, where, what = map(chance.choice, (PEOPLE, PLACES, THINGS))
    return f"{who} spoke of {what} in {where}, note {number}."


def question(chance: random.Random) -> str:
    """A question that some of them answer."""
    return f"What did {chance.choice(PEOPLE)} say about {chance.choice(THINGS)}?"


def percentile(values: list[float], share: float) -> float:
    """The value below which a share of all are; 0 of none."""
    if not values:
        return 0.0
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


# -- the clients, in a process of their own ---------------------------------------------------


async def client(
    number: int, http: httpx.AsyncClient, options: dict[str, Any], ends_at: float
) -> dict[str, Any]:
    """Ask until the time is over."""
    chance = random.Random(options["seed"] * 1000 + number)
    took: dict[str, list[float]] = {"add": [], "search": []}
    errors: Counter[str] = Counter()
    acknowledged: list[tuple[str, str]] = []  # user and text
    count = 0
    while time.monotonic() < ends_at:
        user = f"user-{chance.randrange(options['users'])}"
        where = f"/v1/worlds/{WORLD}/users/{user}"
        is_add = chance.random() < options["adds"]
        text = ""
        count += 1
        began = time.perf_counter()
        try:
            if is_add:
                text = statement(chance, number * 10_000_000 + count)
                answer = await http.post(
                    f"{where}/messages",
                    json={"messages": text, "infer": options["infer"]},
                    headers={"Idempotency-Key": f"load-{number}-{count}"},
                )
            else:
                body = {"question": question(chance), "limit": 10}
                answer = await http.post(f"{where}/search", json=body)
        except httpx.HTTPError as exc:
            errors[type(exc).__name__] += 1
            continue
        took["add" if is_add else "search"].append(time.perf_counter() - began)
        if answer.status_code != 200:
            errors[f"{answer.status_code} {answer.json().get('error')}"] += 1
        elif is_add:
            acknowledged.append((user, text))
    return {"took": took, "errors": errors, "acknowledged": acknowledged}


async def clients(address: str, options: dict[str, Any]) -> list[dict[str, Any]]:
    """Run all of them over kept connections."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    async with httpx.AsyncClient(base_url=address, timeout=TIMEOUT_S, limits=limits) as http:
        ends_at = time.monotonic() + options["seconds"]
        work = (client(n, http, options, ends_at) for n in range(options["clients"]))
        return await asyncio.gather(*work)


def clients_process(pipe: Connection, address: str, options: dict[str, Any]) -> None:
    """The other process."""
    pipe.send(asyncio.run(clients(address, options)))


# -- the server, and what is left in it ----------------------------------------------------------


def fill(folder: Path, users: int, memories: int, embedder: str, seed: int) -> None:
    """Give each user its memories."""
    chance = random.Random(seed)
    with reverie.open(folder, embedder=embedder, background=False) as runtime:
        runtime.create_world(WORLD)
        for user in range(users):
            texts = [statement(chance, n) for n in range(memories)]
            for start in range(0, memories, FILL):
                runtime.remember_many({f"user-{user}": texts[start : start + FILL]}, world=WORLD)
        runtime.flush()


def start(folder: Path, embedder: str, threads: int | None) -> tuple[subprocess.Popen[str], str]:
    """Start the server; returns it with its address."""
    more = [] if threads is None else ["--threads", str(threads)]
    command = [
        *(sys.executable, "-c", "from reverie.cli import main; main()", "serve"),
        *("--data", str(folder), "--embedder", embedder, "--port", "0", "--rate", "0", "--json"),
        *("--no-access-log", *more),
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    line = process.stdout.readline() if process.stdout is not None else ""
    if not line:
        msg = f"the server did not start (exit status {process.wait()})"
        raise RuntimeError(msg)
    address: str = json.loads(line)["listening"]
    return process, address


def cpu_s(pid: int) -> float:
    """Seconds of CPU that a process has used, in all of its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def kept(address: str, users: set[str]) -> set[tuple[str, str]]:
    """Everything that was said, by user, read back over HTTP."""
    found: set[tuple[str, str]] = set()
    with httpx.Client(base_url=address, timeout=TIMEOUT_S) as http:
        for user in sorted(users):
            query: dict[str, Any] = {"types": "message", "limit": 1000}
            while True:
                answer = http.get(f"/v1/worlds/{WORLD}/users/{user}/memories", params=query)
                answer.raise_for_status()
                page = answer.json()
                found |= {(user, item["text"]) for item in page["items"]}
                if page["cursor"] is None:
                    break
                query["cursor"] = page["cursor"]
    return found


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Fill a folder, load its server, and read everything back."""
    with tempfile.TemporaryDirectory(prefix="reverie-load-") as name:
        folder = Path(name) / "data"
        fill(folder, options.users, options.memories, options.embedder, options.seed)
        process, address = start(folder, options.embedder, options.threads)
        try:
            wanted = {**vars(options), "seconds": 60 * options.minutes, "json": None}
            context = multiprocessing.get_context("spawn")
            ours, theirs = context.Pipe()
            other = context.Process(target=clients_process, args=(theirs, address, wanted))
            began, used_s = time.monotonic(), cpu_s(process.pid)
            other.start()
            told: list[dict[str, Any]] = ours.recv()
            seconds, used_s = time.monotonic() - began, cpu_s(process.pid) - used_s
            other.join()
            acknowledged = {tuple(pair) for one in told for pair in one["acknowledged"]}
            lost = acknowledged - kept(address, {user for user, _ in acknowledged})
        finally:
            process.send_signal(signal.SIGTERM)
            status = process.wait(60)
    errors: Counter[str] = sum((one["errors"] for one in told), Counter())
    took = {kind: [t for one in told for t in one["took"][kind]] for kind in ("add", "search")}
    calls = sum(map(len, took.values()))
    return {
        "clients": options.clients,
        "seconds": round(seconds, 1),
        "users": options.users,
        "memories_per_user": options.memories,
        "embedder": options.embedder,
        "infer": options.infer,
        "calls": calls,
        "calls_per_s": round(calls / (60 * options.minutes), 1),
        "searches_per_s": round(len(took["search"]) / (60 * options.minutes), 1),
        "adds_per_s": round(len(took["add"]) / (60 * options.minutes), 1),
        "server_cpu_ms_per_call": round(1000 * used_s / max(calls, 1), 2),
        "errors": dict(errors),
        "acknowledged": len(acknowledged),
        "lost": len(lost),
        "exit_status": status,
        "ms": {
            kind: {
                "p50": round(1000 * percentile(times, 0.50), 1),
                "p99": round(1000 * percentile(times, 0.99), 1),
            }
            for kind, times in took.items()
        },
    }


def main() -> int:
    """Run the command line; the status is 1 when there were errors or losses."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--users", type=int, default=8)
    parser.add_argument("--memories", type=int, default=5000, help="of each user, before it begins")
    parser.add_argument("--adds", type=float, default=0.2, help="share of the calls that write")
    parser.add_argument("--infer", action="store_true", help="extract memories from what is added")
    parser.add_argument("--embedder", default="standin")
    parser.add_argument("--threads", type=int, help="of the server that carry out calls")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, help="write the figures there, too")
    options = parser.parse_args()
    found = measure(options)
    for name, value in found.items():
        print(f"{name:>18}: {value}")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1, ensure_ascii=False))
    return 1 if found["errors"] or found["lost"] else 0


if __name__ == "__main__":
    sys.exit(main())

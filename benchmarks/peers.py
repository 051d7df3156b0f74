"""reverie, mem0 (FAISS) and LangGraph's InMemoryStore side by side, each by its own public API.

    python benchmarks/peers.py --mem0-python PYTHON --json peers.json

PYTHON is an interpreter that has mem0ai 2.2.1, faiss-cpu and numpy (telemetry is off, nothing is
sent anywhere, `infer=False`). LangGraph's store runs in this one, or in `--langgraph-python`. A
system without its interpreter is left out, and told.

Each system runs in a process of its own and gets the same statements about invented people,
English and Chinese in equal parts, of one user. All have the same vectors (MiniLM by llama.cpp):
computed once beforehand and looked up by each, so that what is compared is the systems and not the
model. With `--embed` the model runs live in this process, and each system asks it for every text
over a socket.

Searches go to the systems by turns, a part of the questions each, so that all meet the same noise.
Each question has one statement that answers it; recall@10 is the share of them that is found.
Then, each on a copy of the filled folder: `--adds` single writes, `--concurrent` writes from as
many threads as there are clients, and `--kills` times a writer that is killed with kill -9 among
its writes, after which the write that was under way is repeated, as a client would.

The status is 1 when reverie loses or doubles anything, or when its search throughput, by the
fastest public call of each, is less than 5 times that of mem0.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from bench_support import report
from locomo_support import KeptEmbedder
from peers_texts import Fact, make_facts
from peers_vectors import serve, write_table
from rich.console import Console
from rich.table import Table

from reverie.models.catalog import default_folder
from reverie.models.embedders import open_embedder

BOUND = 5.0  # times the search throughput of mem0
PART = 50  # questions, before it is the next system's turn
WARM = 20
LAST_KILL_S = 0.3  # after the acknowledgements that are waited for
KILLED_ADDS = 60
KILL_AFTER = 10  # acknowledgements at most, before the moment is drawn
EMBED_CHUNK = 256
WORKER = Path(__file__).with_name("peers_worker.py")


class Worker:
    """A process with one system. `error` answers are RuntimeErrors."""

    def __init__(self, python: str, system: str, options: dict[str, Any]) -> None:
        command = [python, str(WORKER), system, json.dumps(options)]
        home = {"HOME": options["home"], "MEM0_DIR": options["home"]}
        path = os.pathsep.join(sys.path) if python == sys.executable else ""
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            env={**os.environ, **home, "PYTHONPATH": path},
        )
        if self._process.stdin is None or self._process.stdout is None:  # for the type checker
            raise RuntimeError
        self._calls, self._answers = self._process.stdin, self._process.stdout

    def send(self, op: str, **fields: Any) -> None:
        """Begin a call."""
        self._calls.write(json.dumps({"op": op, **fields}) + "\n")
        self._calls.flush()

    def receive(self) -> dict[str, Any]:
        """Return the next answer."""
        line = self._answers.readline()
        if not line:
            msg = f"it ended with status {self._process.wait()}"
            raise RuntimeError(msg)
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer

    def call(self, op: str, **fields: Any) -> dict[str, Any]:
        """Return the answer to a call."""
        self.send(op, **fields)
        return self.receive()

    def kill(self) -> list[dict[str, Any]]:
        """Kill -9; returns the answers that were already given."""
        if self._answers.closed:
            return []
        self._process.kill()
        rest = [json.loads(line) for line in self._answers if line.endswith("\n")]
        self._process.wait()
        self._answers.close()
        with suppress(BrokenPipeError):  # a call that it did not read any more
            self._calls.close()
        return rest

    def end(self) -> None:
        """Let it end by the end of its input."""
        self._calls.close()
        self._process.wait(60)
        self._answers.close()


class Texts:
    """All that is written and asked in one run."""

    def __init__(self, options: argparse.Namespace) -> None:
        counts = [options.memories, options.adds, options.concurrent]
        counts += [KILLED_ADDS] * options.kills
        facts = make_facts(sum(counts), options.seed)
        parts: list[list[Fact]] = []
        for count in counts:
            parts.append(facts[:count])
            facts = facts[count:]
        self.memories, self.adds, self.concurrent, *self.killed = parts
        chance = random.Random(options.seed)
        self.asked = chance.sample(self.memories, min(options.questions, len(self.memories)))
        self.warm = [fact.question for fact in self.memories if fact not in set(self.asked)][:WARM]

    def passages(self) -> list[str]:
        """Every text that is kept."""
        parts = [self.memories, self.adds, self.concurrent, *self.killed]
        return [fact.text for part in parts for fact in part]

    def queries(self) -> list[str]:
        """Every text that is asked; the concurrent ones are looked for by their own words."""
        asked = [fact.question for fact in self.asked]
        return [*asked, *self.warm, *(fact.text for fact in self.concurrent)]


def texts_of(facts: Sequence[Fact]) -> list[str]:
    """Return the statements."""
    return [fact.text for fact in facts]


# -- one system ---------------------------------------------------------------------------------


class Peer:
    """A system under measurement, and its figures."""

    def __init__(self, system: str, start: Callable[[], Worker], work: Path, texts: Texts) -> None:
        self.system = system
        self.folder = work / system / "data"
        self.folder.parent.mkdir()
        self.figures: dict[str, Any] = {}
        self._start = start
        self._texts = texts
        self._worker = start()
        told = self._worker.call("name")
        self.name: str = told["name"]
        self._resident = told["resident"]
        self._took: list[float] = []
        self._cpu_s = 0.0
        self._found: list[list[str]] = []
        self._sums: defaultdict[str, list[float]] = defaultdict(list)

    def fill(self) -> None:
        """Keep the memories, and warm up."""
        self._worker.call("open", folder=str(self.folder))
        seconds = self._worker.call("fill", texts=texts_of(self._texts.memories))["seconds"]
        self.figures["filling, statements/s"] = len(self._texts.memories) / seconds
        self._worker.call("search", questions=self._texts.warm)

    def ask(self, part: Sequence[str]) -> None:
        """Ask a part of the questions, one after the other."""
        answer = self._worker.call("search", questions=part)
        self._took += answer["took"]
        self._cpu_s += answer["cpu"]
        self._found += answer["found"]

    def sequential(self) -> None:
        """Sum up the parts."""
        self.figures["search, one client: searches/s"] = len(self._took) / sum(self._took)
        self._times("search, one client", self._took)
        self.figures["search, one client: CPU, ms"] = 1000 * self._cpu_s / len(self._took)
        for language in ("en", "zh"):
            hits = [
                fact.text in found
                for fact, found in zip(self._texts.asked, self._found, strict=True)
                if fact.language == language
            ]
            self.figures[f"recall@10, {language}, %"] = 100 * float(np.mean(hits)) if hits else None

    def concurrently(self, part: Sequence[str], clients: int) -> None:
        """Ask a part from many threads, and by the call that takes many."""
        sums = self._sums
        answer = self._worker.call("threads", questions=part, clients=clients)
        sums["took"] += answer["took"]
        for kind in ("seconds", "cpu"):
            sums[f"threads {kind}"].append(answer[kind])
        answer = self._worker.call("many", questions=part, at_once=clients)
        for kind in ("seconds", "cpu"):
            if answer[kind] is not None:
                sums[f"many {kind}"].append(answer[kind])

    def concurrent(self, clients: int) -> None:
        """Sum up what was asked at once."""
        asked = len(self._texts.asked)
        names = {"threads": f"search, {clients} threads", "many": f"search, {clients} in one call"}
        for way, name in names.items():
            seconds, used = (sum(self._sums[f"{way} {kind}"]) for kind in ("seconds", "cpu"))
            self.figures[f"{name}: searches/s"] = asked / seconds if seconds else None
            self.figures[f"{name}: CPU, ms"] = 1000 * used / asked if seconds else None
        self._times(names["threads"], self._sums["took"])

    def writes(self) -> None:
        """Single writes beside all that is there; then memory and disk, and the end."""
        answer = self._worker.call("add", texts=texts_of(self._texts.adds))
        self.figures["adds, one at a time: adds/s"] = len(answer["took"]) / answer["seconds"]
        self._times("adds", answer["took"])
        resident = self._worker.call("memory")["resident"]
        self.figures["memory, MiB"] = resident / 2**20
        self.figures["memory beyond an empty process, MiB"] = (resident - self._resident) / 2**20
        self._worker.call("close")
        self._worker.end()
        files = [path for path in self.folder.rglob("*") if path.is_file()]
        size = sum(path.stat().st_size for path in files)
        self.figures["on disk, MiB"] = size / 2**20 if files else None

    def collide(self, clients: int) -> None:
        """Writes at the same time: what is lost at once, not found, and lost after reopening.

        Of a process that crashes, all that was given to it counts.
        """
        wanted = texts_of(self._texts.concurrent)
        name = f"{len(wanted)} adds at once"
        worker, folder = self._copy("concurrent")
        kept = wanted
        try:
            answer = worker.call("add", texts=wanted, clients=clients)
        except RuntimeError as exc:  # then nothing tells what was acknowledged
            self.figures[f"{name}: crashed"] = str(exc)
            worker.kill()
        else:
            kept = answer["acknowledged"]
            there = self.listed(worker)
            found = worker.call("search", questions=kept)["found"]
            worker.call("close")
            worker.end()
            self.figures |= {
                f"{name}: adds/s": len(wanted) / answer["seconds"],
                f"{name}: errors": len(answer["errors"]),
                f"{name}: lost, doubled": pair(kept, there),
                f"{name}: not found by their own words": sum(
                    text not in hits for text, hits in zip(kept, found, strict=True)
                ),
            }
        again = self._start()
        before = texts_of(self._texts.memories) + texts_of(self._texts.adds)
        left = self._reopened(again, folder)
        self.figures |= {
            f"{name}: lost, doubled after reopening": pair(kept, left),
            f"{name}: older ones lost, doubled after reopening": pair(before, left),
        }
        again.end()
        shutil.rmtree(folder, ignore_errors=True)

    def killed(self, chance: random.Random) -> None:
        """Kill writers, reopen, and repeat what was under way."""
        new = [0, 0]
        old = [0, 0]
        acknowledged = 0
        before = texts_of(self._texts.memories) + texts_of(self._texts.adds)
        for facts in self._texts.killed:
            worker, folder = self._copy("killed")
            wanted = texts_of(facts)
            worker.send("add_each", texts=wanted)
            kept = [worker.receive()["done"] for _ in range(chance.randint(1, KILL_AFTER))]
            time.sleep(chance.uniform(0, LAST_KILL_S))
            kept += [line["done"] for line in worker.kill() if line["done"] is not None]
            again = self._start()
            left = self._reopened(again, folder)
            repeated = wanted[len(kept) : len(kept) + 1]
            if repeated and left is not None:
                again.call("add", texts=repeated)
                left = self.listed(again)
            for sums, texts in ((new, kept + repeated), (old, before)):
                lost, doubled = lost_and_doubled(texts, left)
                sums[0] += lost
                sums[1] += doubled
            acknowledged += len(kept)
            again.end()
            shutil.rmtree(folder, ignore_errors=True)
        rounds = len(self._texts.killed)
        self.figures |= {
            f"{rounds} kills: acknowledged before them": acknowledged,
            f"{rounds} kills: of these (and of those under way, repeated) lost, doubled": new,
            f"{rounds} kills: older ones lost, doubled, of {len(before)} each time": old,
        }

    def _copy(self, name: str) -> tuple[Worker, Path]:
        """A worker over a copy of the filled folder; one that keeps no files is filled anew."""
        folder = self.folder.with_name(name)
        worker = self._start()
        if self.folder.is_dir():
            shutil.copytree(self.folder, folder)
        worker.call("open", folder=str(folder))
        if not self.folder.is_dir():
            texts = texts_of(self._texts.memories) + texts_of(self._texts.adds)
            worker.call("fill", texts=texts)
        return worker, folder

    def _reopened(self, worker: Worker, folder: Path) -> list[str] | None:
        """What is there in a folder; None when it cannot be opened."""
        try:
            worker.call("open", folder=str(folder))
            return self.listed(worker)
        except RuntimeError as exc:
            self.figures.setdefault("could not be opened", []).append(str(exc)[:200])
            return None

    @staticmethod
    def listed(worker: Worker) -> list[str]:
        """Everything that is kept."""
        found: list[str] = worker.call("texts")["texts"]
        return found

    def _times(self, name: str, took: Sequence[float]) -> None:
        for share in (50, 99):
            self.figures[f"{name}: p{share}, ms"] = 1000 * float(np.percentile(took, share))


def lost_and_doubled(wanted: Sequence[str], there: Sequence[str] | None) -> tuple[int, int]:
    """How many of the texts are not there, and how many are there again (None: nothing is)."""
    counts = Counter(there or ())
    return sum(not counts[text] for text in wanted), sum(max(0, counts[t] - 1) for t in wanted)


def pair(wanted: Sequence[str], there: Sequence[str] | None) -> list[int]:
    """`lost_and_doubled`, for JSON."""
    return list(lost_and_doubled(wanted, there))


# -- all of them --------------------------------------------------------------------------------


def measure(options: argparse.Namespace, work: Path) -> dict[str, Any]:
    """Run all systems side by side; returns {"systems": ..., "left_out": ..., ...}."""
    texts = Texts(options)
    began = os.getloadavg()[0]
    embedder: Any = open_embedder(options.embedder, options.models or default_folder())
    if options.vectors:
        embedder = KeptEmbedder(embedder, options.vectors)
    given = {"dim": embedder.info.dim, "address": None, "vectors": str(work), "home": str(work)}
    end_serving: Callable[[], object] = bool  # nothing to end
    if options.embed:
        given["address"] = str(work / "embedder")
        end_serving = serve(given["address"], embedder.embed)
    else:
        start = time.perf_counter()
        write_table(work, chunked(embedder.embed), texts.passages(), texts.queries())
        progress(f"embedded in {time.perf_counter() - start:.0f} s")
        embedder.close()
    pythons = {"reverie": sys.executable, "mem0": options.mem0_python}
    pythons["langgraph"] = options.langgraph_python or sys.executable
    peers: list[Peer] = []
    started: list[Worker] = []
    left_out: dict[str, str] = {}
    try:
        for system, python in pythons.items():
            if python is None:
                left_out[system] = f"no --{system}-python"
                continue
            try:
                peers.append(Peer(system, starter(python, system, given, started), work, texts))
            except (RuntimeError, OSError) as exc:
                if system == "reverie":
                    raise
                left_out[system] = str(exc)
        steps(peers, texts, options)
    finally:
        for worker in started:
            worker.kill()
        end_serving()
    return {
        "memories": options.memories,
        "questions": len(texts.asked),
        "clients": options.clients,
        "embedder": options.embedder,
        "vectors": "live" if options.embed else "looked up",
        "load": [began, os.getloadavg()[0]],
        "systems": {peer.system: {"name": peer.name, **peer.figures} for peer in peers},
        "left_out": left_out,
    }


def starter(
    python: str, system: str, given: dict[str, Any], started: list[Worker]
) -> Callable[[], Worker]:
    """Return what starts a worker, and lists it."""

    def start() -> Worker:
        started.append(Worker(python, system, given))
        return started[-1]

    return start


def steps(peers: Sequence[Peer], texts: Texts, options: argparse.Namespace) -> None:
    """All measurements, in turn and by turns."""
    for peer in peers:
        progress(f"filling {peer.name}")
        peer.fill()
    asked = [fact.question for fact in texts.asked]
    parts = [asked[start : start + PART] for start in range(0, len(asked), PART)]
    progress("searching")
    for part in parts:
        for peer in peers:
            peer.ask(part)
    large = max(PART, 2 * options.clients)
    for first in range(0, len(asked), large):
        for peer in peers:
            peer.concurrently(asked[first : first + large], options.clients)
    for peer in peers:
        peer.sequential()
        peer.concurrent(options.clients)
        progress(json.dumps(peer.figures, ensure_ascii=False))
    for peer in peers:
        progress(f"writing to {peer.name}")
        peer.writes()
        peer.collide(options.clients)
        progress(f"killing {peer.name}")
        peer.killed(random.Random(options.seed))
        progress(json.dumps(peer.figures, ensure_ascii=False))


def chunked(embed: Callable[..., Any]) -> Callable[..., Any]:
    """Return `embed` that takes any number of texts, and tells how far it is."""

    def whole(texts: Sequence[str], role: str) -> Any:
        rows = []
        for start in range(0, len(texts), EMBED_CHUNK):
            rows.append(embed(texts[start : start + EMBED_CHUNK], role))
            progress(f"embedding {role} {start} of {len(texts)}")
        return np.concatenate(rows)

    return whole


def progress(text: str) -> None:
    """Tell what is going on, on stderr."""
    print(text, file=sys.stderr, flush=True)


def ratios(found: dict[str, Any]) -> dict[str, float]:
    """Search throughput of reverie over that of mem0; the best is that of the fastest call each."""
    systems = found["systems"]
    if "mem0" not in systems:
        return {}
    ours, theirs = systems["reverie"], systems["mem0"]
    names = [name for name in ours if name.startswith("search") and name.endswith("searches/s")]
    both = {name: ours[name] / theirs[name] for name in names if theirs[name] is not None}
    best = [max(system[name] or 0.0 for name in names) for system in (ours, theirs)]
    return {**both, "search, the fastest way of each": best[0] / best[1]}


def shown(value: Any) -> str:
    """A figure for the table."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return (
            f"{value:,.0f}" if value >= 1000 else f"{value:.3g}" if value < 100 else f"{value:.0f}"
        )
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return str(value)


def show(found: dict[str, Any]) -> bool:
    """Print everything; return whether every bound is kept."""
    systems = found["systems"]
    table = Table("", *(figures["name"] for figures in systems.values()))
    names = dict.fromkeys(n for figures in systems.values() for n in figures if n != "name")
    for name in names:
        table.add_row(name, *(shown(figures.get(name)) for figures in systems.values()))
    Console(width=140).print(table)
    for system, why in found["left_out"].items():
        print(f"left out: {system}: {why}")
    rows: list[tuple[str, str, str, bool | None]] = []
    for name, ratio in ratios(found).items():
        is_bound = name.endswith("of each")
        bound = f">= {BOUND:g}" if is_bound else ""
        kept = ratio >= BOUND if is_bound else None
        rows.append((f"reverie / mem0: {name}", f"{ratio:.2f}", bound, kept))
    faults = [
        count
        for name, counts in systems["reverie"].items()
        if "lost, doubled" in name
        for count in counts
    ]
    broken = ("could not be opened", "crashed")
    whole = not any(faults) and not any(n.endswith(broken) for n in systems["reverie"])
    rows.append(("reverie: lost and doubled, all together", str(sum(faults)), "0", whole))
    print(f"load average {found['load'][0]:.1f} at the start, {found['load'][1]:.1f} at the end")
    return report("peers", rows)


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--memories", type=int, default=5000)
    parser.add_argument("--questions", type=int, default=500)
    parser.add_argument(
        "--clients", type=int, default=64, help="threads that ask and write at once"
    )
    parser.add_argument("--adds", type=int, default=100, help="single writes")
    parser.add_argument("--concurrent", type=int, default=200, help="writes at the same time")
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--mem0-python", metavar="PATH", help="interpreter with mem0ai, faiss-cpu")
    parser.add_argument("--langgraph-python", metavar="PATH", help="this one by default")
    parser.add_argument("--embed", action="store_true", help="the model runs live")
    parser.add_argument("--embedder", default="minilm", metavar="NAME_OR_PATH")
    parser.add_argument("--models", type=Path, help="folder of pulled models")
    parser.add_argument("--vectors", type=Path, help="keep vectors in this folder between runs")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, help="write the figures there, too")
    return parser


def main(given: Sequence[str] | None = None) -> int:
    """Run the command line."""
    options = arguments().parse_args(given)
    with tempfile.TemporaryDirectory(prefix="reverie-peers-") as name:
        found = measure(options, Path(name))
    found["ratios"] = ratios(found)
    kept = show(found)
    if options.json:
        text = json.dumps(found, indent=1, ensure_ascii=False)
        options.json.write_text(text, encoding="utf-8")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())

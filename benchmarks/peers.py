"""reverie, mem0 (FAISS) and LangGraph's InMemoryStore side by side, each by its own public API.

    python benchmarks/peers.py --mem0-python PYTHON --mem0-nlp-python PYTHON --json peers.json

The first interpreter has mem0ai 2.2.1, faiss-cpu and numpy, the second also mem0's extra `nlp` and
spaCy's model en_core_web_sm (telemetry is off, nothing is sent anywhere; see peers_worker.py for
how each is called). LangGraph's store runs in this interpreter, or in `--langgraph-python`. A
system without its interpreter is left out, and told.

Each system runs in a process of its own and gets the same statements about invented people,
English and Chinese in equal parts, of one user. All have the same vectors (MiniLM by llama.cpp),
by one or more of three modes, each a table of its own:

    table   computed once beforehand and looked up by each, so that what is compared is the systems
            and not the model
    shared  what is kept is looked up; for each question each system asks the model, which runs
            live in this process, over a socket
    own     each runs the model file in its own process: reverie by its own embedder, the others by
            llama-cpp-python, which their interpreters need then

Searches go to the systems by turns, a part of the questions each, so that all meet the same noise.
No question is asked twice, so no cache helps. Each has one statement that answers it; recall@10 is
the share of them that is found. A system that would take more than `--seconds` for the questions of
one way of asking gets the first of them only: how many is in the table.

Then, in the first mode, each on a copy of the filled folder: `--adds` single writes; `--mixed`
calls, one in five an add and the others searches, by one client and from as many threads as there
are clients; `--concurrent` writes from these threads; and `--kills` times a writer that is killed
with kill -9 among its writes, after which the one under way is repeated, as a client would.

The status is 1 when reverie loses or doubles anything, or when in the first mode it answers less
than 5 times as many searches a second as mem0 (without spaCy) beside the adds, where a system is
measured by the better of one client and many. Searches alone are compared, too, without a bound.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from bench_support import report
from locomo_support import KeptEmbedder
from peers_one import MIXED_ADDS, Peer, Texts, Worker
from peers_vectors import serve, write_table
from rich.console import Console
from rich.table import Table

from reverie.models.catalog import default_folder, model_path
from reverie.models.embedders import open_embedder

MODES = ("table", "shared", "own")
BOUND = 5.0  # times the search throughput of mem0, beside adds
PART = 50  # questions, before it is the next system's turn
EMBED_CHUNK = 256

Starters = dict[str, Callable[[list[Worker]], Worker] | None]
FASTEST = "search, the fastest way of each"
FASTEST_MIXED = "searches beside adds, the faster way of each"


def measure(options: argparse.Namespace, work: Path) -> list[dict[str, Any]]:
    """Run all systems side by side, once for each mode."""
    texts = Texts(options)
    folder = options.models or default_folder()
    embedder: Any = open_embedder(options.embedder, folder)
    pythons = {
        "reverie": sys.executable,
        "mem0": options.mem0_python,
        "mem0_nlp": options.mem0_nlp_python,
        "langgraph": options.langgraph_python or sys.executable,
    }
    given = {"dim": embedder.info.dim, "address": None, "model": None, "home": str(work)}
    kept = KeptEmbedder(embedder, options.vectors) if options.vectors else embedder
    queries = texts.queries()
    passages = texts.passages()
    if options.mem0_nlp_python:
        further = embedded_too(options.mem0_nlp_python, given, texts)
        queries = list(dict.fromkeys([*queries, *further.get("query", ())]))
        passages = list(dict.fromkeys([*passages, *further.get("passage", ())]))
    start = time.perf_counter()
    write_table(work, chunked(kept.embed), passages, queries)
    progress(f"embedded in {time.perf_counter() - start:.0f} s")
    given["vectors"] = str(work)
    address = str(work / "embedder")
    end_serving = serve(address, embedder.embed) if "shared" in options.modes else bool
    try:
        found = []
        for mode in options.modes:
            source = {"address": address} if mode == "shared" else {}
            if mode == "own":
                source = {"model": str(model_path(options.embedder, folder))}
            inner = work / mode
            inner.mkdir()
            begin = starters(pythons, given | source)
            found.append(in_mode(mode, begin, inner, texts, options))
            shutil.rmtree(inner, ignore_errors=True)
        return found
    finally:
        end_serving()
        kept.close()


def embedded_too(python: str, given: dict[str, Any], texts: Texts) -> dict[str, list[str]]:
    """Return by their role the texts of its own that mem0 with spaCy embeds."""
    progress("finding entities")
    worker = Worker(python, "mem0_nlp", given | {"vectors": None})
    try:
        answer = worker.call("embedded", texts=texts.passages(), questions=texts.queries())
    except (RuntimeError, OSError) as exc:  # told when it is to be measured
        progress(str(exc))
        return {}
    finally:
        worker.kill()
    found: dict[str, list[str]] = answer["texts"]
    return found


def in_mode(
    mode: str, begin: Starters, work: Path, texts: Texts, options: argparse.Namespace
) -> dict[str, Any]:
    """Run all systems in one mode; returns {"systems": ..., "left_out": ..., ...}."""
    began = os.getloadavg()[0]
    peers: list[Peer] = []
    started: list[Worker] = []
    left_out: dict[str, str] = {}
    try:
        for system, start in begin.items():
            if start is None:
                left_out[system] = f"no --{system.replace('_', '-')}-python"
                continue
            try:
                peers.append(Peer(system, partial(start, started), work, texts))
            except (RuntimeError, OSError) as exc:
                if system == "reverie":
                    raise
                left_out[system] = str(exc)
        searches(peers, texts, options)
        if mode == options.modes[0]:
            writes(peers, options)
    finally:
        for worker in started:
            worker.kill()
    return {
        "mode": mode,
        "memories": options.memories,
        "questions": len(texts.asked),
        "clients": options.clients,
        "embedder": options.embedder,
        "load": [began, os.getloadavg()[0]],
        "systems": {peer.system: {"name": peer.name, **peer.figures} for peer in peers},
        "left_out": left_out,
    }


def starters(pythons: dict[str, str | None], given: dict[str, Any]) -> Starters:
    """Return for each system what starts a worker and lists it; None without an interpreter."""

    def start(python: str, system: str, started: list[Worker]) -> Worker:
        started.append(Worker(python, system, given))
        return started[-1]

    return {
        system: None if python is None else partial(start, python, system)
        for system, python in pythons.items()
    }


def searches(peers: Sequence[Peer], texts: Texts, options: argparse.Namespace) -> None:
    """Fill all systems, and ask them by turns."""
    for peer in peers:
        progress(f"filling {peer.name}")
        peer.fill(options.seconds, options.clients)
    progress("searching")
    for start in range(0, len(texts.asked), PART):
        for peer in peers:
            peer.ask(start, start + PART)
    large = max(PART, 2 * options.clients)
    for start in range(0, len(texts.threads), large):
        for peer in peers:
            peer.concurrently(start, start + large, options.clients)
    for peer in peers:
        peer.sequential()
        peer.concurrent(options.clients)
        progress(json.dumps(peer.figures, ensure_ascii=False))


def writes(peers: Sequence[Peer], options: argparse.Namespace) -> None:
    """Write to all systems in turn."""
    for peer in peers:
        progress(f"writing to {peer.name}")
        peer.writes()
        if peer.system != "mem0_nlp":  # it writes as mem0 does, to twice as many files
            if options.mixed >= MIXED_ADDS:
                peer.mix(options.clients, options.seconds)
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


def ratios(found: dict[str, Any], peer: str = "mem0") -> dict[str, float]:
    """Search throughput of reverie over that of a peer, alone and beside adds; the best is that of
    the fastest call each. What a peer cannot do, or crashed at, is left out."""
    systems = found["systems"]
    if peer not in systems:
        return {}
    ours, theirs = systems["reverie"], systems[peer]
    told: dict[str, float] = {}
    for kind, fastest in (("search", FASTEST), ("mixed", FASTEST_MIXED)):
        names = [name for name in ours if name.startswith(kind) and name.endswith("searches/s")]
        told |= {name: ours[name] / theirs[name] for name in names if theirs.get(name)}
        best = [
            max((system.get(name) or 0.0 for name in names), default=0.0)
            for system in (ours, theirs)
        ]
        if best[1]:
            told[fastest] = best[0] / best[1]
    return told


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


def show(found: dict[str, Any], *, bound: bool) -> bool:
    """Print everything of one mode; return whether every bound is kept, if it has one."""
    systems = found["systems"]
    mode = found["mode"]
    table = Table(f"vectors: {mode}", *(figures["name"] for figures in systems.values()))
    names = dict.fromkeys(n for figures in systems.values() for n in figures if n != "name")
    for name in names:
        table.add_row(name, *(shown(figures.get(name)) for figures in systems.values()))
    Console(width=160).print(table)
    for system, why in found["left_out"].items():
        print(f"left out: {system}: {why}")
    rows: list[tuple[str, str, str, bool | None]] = []
    for peer in systems:
        for name, ratio in ratios(found, peer).items() if peer != "reverie" else ():
            is_bound = bound and peer == "mem0" and name == FASTEST_MIXED
            told = f">= {BOUND:g}" if is_bound else ""
            kept = ratio >= BOUND if is_bound else None
            rows.append((f"reverie / {peer} ({mode}): {name}", f"{ratio:.2f}", told, kept))
    faults = [
        count
        for name, counts in systems["reverie"].items()
        if "lost, doubled" in name
        for count in counts
    ]
    broken = ("could not be opened", "crashed", "threads: errors")
    whole = not any(faults) and not any(n.endswith(broken) for n in systems["reverie"])
    rows.append(("reverie: lost and doubled, all together", str(sum(faults)), "0", whole))
    print(f"load average {found['load'][0]:.1f} at the start, {found['load'][1]:.1f} at the end")
    return report(f"peers, {mode}", rows)


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--memories", type=int, default=5000)
    parser.add_argument("--questions", type=int, default=500, help="of each way of asking")
    parser.add_argument(
        "--seconds", type=float, default=15.0, help="for one way of asking; slow systems get less"
    )
    parser.add_argument(
        "--clients", type=int, default=64, help="threads that ask and write at once"
    )
    parser.add_argument("--adds", type=int, default=100, help="single writes")
    parser.add_argument("--mixed", type=int, default=1000, help="adds and searches together")
    parser.add_argument("--concurrent", type=int, default=200, help="writes at the same time")
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--mem0-python", metavar="PATH", help="interpreter with mem0ai, faiss-cpu")
    parser.add_argument("--mem0-nlp-python", metavar="PATH", help="... and mem0's extra nlp")
    parser.add_argument("--langgraph-python", metavar="PATH", help="this one by default")
    parser.add_argument(
        "--modes", nargs="+", choices=MODES, default=["table"], help="where vectors come from"
    )
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
    kept = []
    for one in found:
        one["ratios"] = {peer: ratios(one, peer) for peer in one["systems"] if peer != "reverie"}
        kept.append(show(one, bound=one is found[0]))
    if options.json:
        text = json.dumps(found, indent=1, ensure_ascii=False)
        options.json.write_text(text, encoding="utf-8")
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())

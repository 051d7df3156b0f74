"""One system under measurement by peers.py: its process, what it is asked, and its figures."""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from peers_texts import Fact, make_facts

WARM = 20
MIXED_ADDS = 5  # one of so many mixed calls is an add, as in http_load.py
LAST_KILL_S = 0.3  # after the acknowledgements that are waited for
KILLED_ADDS = 60
KILL_AFTER = 10  # acknowledgements at most, before the moment is drawn
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
        mixed = options.mixed // MIXED_ADDS
        counts = [options.memories, options.adds, options.concurrent, mixed]
        counts += [KILLED_ADDS] * options.kills
        facts = make_facts(sum(counts), options.seed)
        parts: list[list[Fact]] = []
        for count in counts:
            parts.append(facts[:count])
            facts = facts[count:]
        self.memories, self.adds, self.concurrent, self.added, *self.killed = parts
        chance = random.Random(options.seed)
        shuffled = chance.sample(self.memories, len(self.memories))
        count = min(options.questions, (len(self.memories) - WARM) // 3)
        self.asked, self.threads, self.many = (
            shuffled[start : start + count] for start in (0, count, 2 * count)
        )
        self.warm = [fact.question for fact in shuffled[3 * count :]][:WARM]
        self.mixed = [(True, fact.text) for fact in self.added]
        searches = min(mixed * (MIXED_ADDS - 1), len(self.memories))
        self.mixed += [(False, fact.question) for fact in shuffled[:searches]]
        chance.shuffle(self.mixed)

    def passages(self) -> list[str]:
        """Every text that is kept."""
        parts = [self.memories, self.adds, self.concurrent, self.added, *self.killed]
        return [fact.text for part in parts for fact in part]

    def queries(self) -> list[str]:
        """Every text that is asked; the concurrent ones are looked for by their own words."""
        asked = [fact.question for fact in (*self.asked, *self.threads, *self.many)]
        mixed = [text for is_add, text in self.mixed if not is_add]
        return [*asked, *self.warm, *mixed, *(fact.text for fact in self.concurrent)]


def texts_of(facts: Sequence[Fact]) -> list[str]:
    """Return the statements."""
    return [fact.text for fact in facts]


def questions_of(facts: Sequence[Fact]) -> list[str]:
    """Return the questions that these statements answer."""
    return [fact.question for fact in facts]


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
        self._found: list[list[str]] = []
        self._sums: defaultdict[str, list[float]] = defaultdict(list)
        self._most = 0  # questions of each way

    def fill(self, most_seconds: float, clients: int) -> None:
        """Keep the memories, and warm up; that tells how many questions there is time for."""
        self._worker.call("open", folder=str(self.folder))
        seconds = self._worker.call("fill", texts=texts_of(self._texts.memories))["seconds"]
        self.figures["filling, statements/s"] = len(self._texts.memories) / seconds
        took: list[float] = self._worker.call("search", questions=self._texts.warm)["took"]
        mean_s = sum(took[len(took) // 2 :]) / len(took[len(took) // 2 :])
        self._most = min(len(self._texts.asked), max(clients, int(most_seconds / mean_s)))
        self.figures["questions of each way of asking"] = self._most

    def ask(self, start: int, stop: int) -> None:
        """Ask a part of the questions, one after the other."""
        part = questions_of(self._texts.asked[start : min(stop, self._most)])
        if part:
            answer = self._worker.call("search", questions=part)
            self._found += answer["found"]
            self._count("alone", answer)

    def sequential(self) -> None:
        """Sum up the parts."""
        self._rate("alone", "search, one client")
        for language in ("en", "zh"):
            hits = [
                fact.text in found
                for fact, found in zip(self._texts.asked, self._found, strict=False)
                if fact.language == language
            ]
            self.figures[f"recall@10, {language}, %"] = 100 * float(np.mean(hits)) if hits else None

    def concurrently(self, start: int, stop: int, clients: int) -> None:
        """Ask a part from many threads, and by the call that takes many."""
        stop = min(stop, self._most)
        part = questions_of(self._texts.threads[start:stop])
        if not part:
            return
        name = f"search, {clients} threads"
        try:
            answer = self._worker.call("threads", questions=part, clients=clients)
        except RuntimeError as exc:
            self.figures[f"{name}: crashed"] = str(exc)
            self._worker.kill()
            self._worker = self._start()
            self._worker.call("open", folder=str(self.folder))
        else:
            self._count("threads", answer)
            if answer["errors"]:
                self.figures[f"{name}: errors"] = self.figures.get(f"{name}: errors", 0) + len(
                    answer["errors"]
                )
        part = questions_of(self._texts.many[start:stop])
        self._count("many", self._worker.call("many", questions=part, at_once=clients))

    def concurrent(self, clients: int) -> None:
        """Sum up what was asked at once."""
        self._rate("threads", f"search, {clients} threads")
        self._rate("many", f"search, {clients} in one call")

    def _count(self, way: str, answer: dict[str, Any]) -> None:
        """Add the answer to a part to the sums of a way of asking."""
        if answer["cpu"] is None:  # there is no such way
            return
        took = answer.get("took", [])
        self._sums[f"{way} took"] += took
        self._sums[f"{way} asked"].append(len(answer["found"]))
        self._sums[f"{way} seconds"].append(answer.get("seconds", sum(took)))
        self._sums[f"{way} cpu"].append(answer["cpu"])

    def _rate(self, way: str, name: str) -> None:
        """Sum up one way of asking."""
        asked, seconds, used = (sum(self._sums[f"{way} {k}"]) for k in ("asked", "seconds", "cpu"))
        self.figures[f"{name}: searches/s"] = asked / seconds if asked else None
        self.figures[f"{name}: CPU, ms"] = 1000 * used / asked if asked else None
        if took := self._sums[f"{way} took"]:
            self._times(name, took)

    def writes(self) -> None:
        """Single writes beside all that is there; then memory and disk, and the end."""
        answer = self._worker.call("add", texts=texts_of(self._texts.adds))
        self.figures["adds, one at a time: adds/s"] = len(answer["took"]) / answer["seconds"]
        self._times("adds", answer["took"])
        told = self._worker.call("memory")
        resident = told["resident"]
        if told["lacking"]:
            self.figures["texts of its own that had no vector"] = told["lacking"]
        self.figures["memory, MiB"] = resident / 2**20
        self.figures["memory beyond an empty process, MiB"] = (resident - self._resident) / 2**20
        self._worker.call("close")
        self._worker.end()
        files = [path for path in self.folder.rglob("*") if path.is_file()]
        size = sum(path.stat().st_size for path in files)
        self.figures["on disk, MiB"] = size / 2**20 if files else None

    def mix(self, clients: int, most_seconds: float) -> None:
        """Adds and searches together, on a copy: by one client, then by many at once."""
        for count in (1, clients):
            name = "mixed, one client" if count == 1 else f"mixed, {count} threads"
            worker, folder = self._copy("mixed")
            try:
                answer = worker.call(
                    "mixed", calls=self._texts.mixed, clients=count, most_seconds=most_seconds
                )
            except RuntimeError as exc:
                self.figures[f"{name}: crashed"] = str(exc)
                worker.kill()
            else:
                calls = len(answer["adds"]) + len(answer["searches"])
                self.figures |= {
                    f"{name}: searches/s": len(answer["searches"]) / answer["seconds"],
                    f"{name}: adds/s": len(answer["adds"]) / answer["seconds"],
                    f"{name}: calls": calls,
                    f"{name}: CPU a call, ms": 1000 * answer["cpu"] / max(1, calls),
                    f"{name}: lost, doubled": pair(answer["acknowledged"], self.listed(worker)),
                }
                if answer["errors"]:
                    self.figures[f"{name}: errors"] = len(answer["errors"])
                if answer["searches"]:
                    self._times(f"{name}, a search", answer["searches"])
                worker.call("close")
                worker.end()
            shutil.rmtree(folder, ignore_errors=True)

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

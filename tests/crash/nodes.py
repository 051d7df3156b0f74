"""Ray fails under load: nodes come and go, actors die in the middle of a batch, model hosts too.

    python tests/crash/nodes.py 200

Several threads write through actors and model hosts on a cluster of one machine, while its nodes
are replaced, and while each actor kills itself after some time: in a transaction, after its commit,
or with the answers ready. Every call has to be answered, whatever happens, and all that was
acknowledged has to be there, once, afterwards.

Then two things that retries cannot mend, under a short bound: the only node goes away and does not
come back for a while, and the object store is full, with no disk to spill to. Either is a typed
error within the bound; afterwards everything works again, and what had no answer landed as a whole
or not at all.
"""

from __future__ import annotations

import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # when run as a script

from crash import audit, cluster, ops, report, writer
from crash.takeover import until

import reverie
from reverie.actors import ray_backend, ray_hosts
from reverie.memory_graph.errors import ShardUnavailableError, UnavailableError
from reverie.models.standin import HashEmbedder

Bug: TypeAlias = Literal["ack-before-commit", "no-request-ids", "no-retries", "endless-retries"]
ACTORS = 2
HOSTS = 2
THREADS = 4
ANSWERS = 30  # acknowledged between two changes
BACK_S = 60.0  # until users are there again
GAP_S = 1.5  # at most without any node for shards
SHORT_RETRY_S = 4.0  # the client's bound where it is reached
SLACK_S = 15.0  # one attempt, and what a busy machine adds
CALLERS = 80  # at once to a shard that is gone: more than fit in a batch
LARGE_TEXTS, LARGE_BYTES = 40, 40_000
MIB = 1024 * 1024
MOST_OBJECTS = 200


class Client(writer.Worker):
    """One thread; notes the longest wait for an answer."""

    began_s = longest_s = 0.0

    def _next(self) -> ops.AnyOp:
        op = super()._next()
        self.began_s = time.monotonic()
        return op

    def _note(self, op: ops.AnyOp, answer: object) -> None:
        self.longest_s = max(self.longest_s, time.monotonic() - self.began_s)
        super()._note(op, answer)


class Campaign:
    """Everything on one cluster."""

    def __init__(self, options: report.Options) -> None:
        self.options = options
        self.findings = audit.Findings()
        self.wrong: list[str] = []
        self.counts: Counter[str] = Counter()
        self.longest_s = 0.0
        self._random = random.Random(options.seed)

    # -- what retries mend -------------------------------------------------------------

    def change(self, nodes: cluster.Nodes, count: int, bug: writer.Bug | None) -> None:
        """Make `count` changes under load, and audit."""
        place = self.options.work / "changes"
        folder, log = _new(place, cluster.Habits(bug=bug)), place / "log"
        node = nodes.add()
        with _opened(folder, nodes, model_hosts=HOSTS) as runtime:
            plan = writer.Plan(str(folder), str(log), run=1, seed=self.options.seed)
            told, stop = writer.Log(log), threading.Event()
            clients = [Client(plan, i, runtime, told) for i in range(THREADS)]
            threads = [threading.Thread(target=client.run, args=(stop,)) for client in clients]
            for thread in threads:
                thread.start()
            try:
                while self.counts["changes"] < count and _are_alive(threads):
                    enough = _answers(log) + ANSWERS
                    node = self._change(nodes, node)
                    self.options.advance(2)
                    while _answers(log) < enough and _are_alive(threads):
                        time.sleep(0.01)
            finally:
                stop.set()
                for thread in threads:
                    thread.join()
            self.longest_s = max(client.longest_s for client in clients)
        self.counts.update((place / "deaths").read_text().splitlines())
        auditor = audit.Auditor(folder, self.findings)
        auditor.read(log)
        self._audit(auditor)
        nodes.remove(node)

    def _change(self, nodes: cluster.Nodes, node: Any) -> Any:
        """Replace the node of the shards, the old one being killed or told to go; at times there
        is none for a while."""
        gracefully = self._random.random() < 0.4
        if self._random.random() < 0.3:
            nodes.remove(node, gracefully=gracefully)
            time.sleep(self._random.uniform(0, GAP_S))
            fresh = nodes.add()
            self.counts["gaps"] += 1
        else:
            fresh = nodes.add()
            nodes.remove(node, gracefully=gracefully)
        self.counts["changes"] += 2
        self.counts["told to go" if gracefully else "killed"] += 1
        return fresh

    # -- what they cannot mend ---------------------------------------------------------

    def lose_the_node(self, nodes: cluster.Nodes) -> None:
        """Call shards that cannot come back; then let them."""
        place = self.options.work / "lost"
        folder = _new(place, cluster.Habits(life=(1 << 30, 1 << 30)))
        log = writer.Log(place / "log")
        node = nodes.add()
        with _opened(folder, nodes, retry_s=SHORT_RETRY_S) as runtime:
            for i in range(THREADS):
                self._remember(runtime, log, f"before-{i}")
            nodes.remove(node)
            errors: list[str] = []
            callers = [
                threading.Thread(
                    target=lambda i=i: errors.append(self._remember(runtime, log, f"gone-{i}")),
                    daemon=True,
                )
                for i in range(CALLERS)
            ]
            began = time.monotonic()
            for caller in callers:
                caller.start()
            for caller in callers:
                caller.join(max(0.0, began + SHORT_RETRY_S + SLACK_S - time.monotonic()))
            if left := sum(caller.is_alive() for caller in callers):
                self.wrong.append(f"{left} of {CALLERS} calls to a lost shard did not return")
            refused = [e for e in errors if e.startswith(ShardUnavailableError.__name__)]
            if len(refused) < len(errors):
                other = sorted(set(errors) - set(refused))
                self.wrong.append(f"calls to a lost shard came back with {other}")
            self.counts["refused in time"] += len(refused)
            node = nodes.add()
            deadline = time.monotonic() + BACK_S
            error = self._remember(runtime, log, "after")
            while error and time.monotonic() < deadline:
                error = self._remember(runtime, log, "after", again=True)
            if error:
                self.wrong.append(f"users did not come back within {BACK_S:g} s: {error}")
        auditor = audit.Auditor(folder, self.findings)
        auditor.read(place / "log")
        self._audit(auditor, embedder=HashEmbedder(writer.DIM))
        nodes.remove(node)

    @staticmethod
    def _remember(
        runtime: reverie.Runtime, log: writer.Log, name: str, *, again: bool = False
    ) -> str:
        """Send one request; return its error, "" for none."""
        user = writer.USERS[len(name) % len(writer.USERS)]
        op = ops.Remember(
            id=name, thread=0, world="town", user=user, text=f"Text {name}.", name=f"Name {name}"
        )
        if not again:
            log.write(writer.Asked(op))
        try:
            answer = op.send(runtime)
        except reverie.ReverieError as exc:
            return repr(exc)
        log.write(writer.Answered(op.id, answer))
        return ""

    def fill_the_store(self, nodes: cluster.Nodes) -> None:
        """Send batches that need room in the store, and such as need none, while this process can
        put nothing more into it; then make room. (Ray may find some: in a file of its own.)"""
        place, filler = self.options.work / "full", Filler()
        folder = _new(place, cluster.Habits(life=(1 << 30, 1 << 30)))
        node = nodes.add()
        texts = [f"{i} {'w' * LARGE_BYTES}" for i in range(LARGE_TEXTS)]
        with _opened(folder, nodes, retry_s=SHORT_RETRY_S, model_hosts=1) as runtime:
            user = runtime.user("ana", "town")
            user.remember("It was there before.", request_id="before")
            filler.fill()
            calls: list[Callable[[], object]] = [
                lambda: user.add(texts, infer=False, request_id="large"),
                lambda: runtime.remember_many({"bo": texts}, world="town"),
            ]
            for call in calls:
                began = time.monotonic()
                self.counts["room" if _works(call) else "no room"] += 1
                if time.monotonic() > began + 2 * SHORT_RETRY_S + SLACK_S:
                    self.wrong.append("a call for which there was no room came back late")
            user.remember("It is small.", request_id="small")
            filler.empty()
            until(lambda: _works(calls[0]), "there is room again")
            texts_there = [item.text for item in user.list(types=None, limit=1000).items]
            if sorted(texts_there) != sorted([*texts, "It was there before.", "It is small."]):
                self.wrong.append(f"{len(texts_there)} texts, not {len(texts) + 2}")
            self.wrong += runtime.check()
        nodes.remove(node)

    def _audit(self, auditor: audit.Auditor, **settings: Any) -> None:
        settings = {"embedder": "standin"} | settings
        auditor.audit(lambda folder: writer.open_runtime(folder, **settings))


def _new(place: Path, habits: cluster.Habits) -> Path:
    place.mkdir()
    (place / "deaths").touch()
    cluster.habits_of(place / "data", habits)
    return place / "data"


@contextmanager
def _opened(folder: Path, nodes: cluster.Nodes, **settings: Any) -> Iterator[reverie.Runtime]:
    """Open a folder on the cluster, with actors that die of themselves."""
    if settings.get("model_hosts"):
        settings |= {"embedder": "standin", "models_folder": folder.with_name("models")}
    actor, host = ray_backend.ShardActor, ray_hosts.EmbedderActor
    ray_backend.ShardActor = cluster.Mortal  # type: ignore[assignment, misc]
    ray_hosts.EmbedderActor = cluster.MortalHost  # type: ignore[misc]
    try:
        with writer.open_runtime(
            folder, actors=ACTORS, address=nodes.address, background=True, **settings
        ) as runtime:
            yield runtime
    finally:
        ray_backend.ShardActor = actor  # type: ignore[misc]
        ray_hosts.EmbedderActor = host  # type: ignore[misc]


class Filler:
    """Fills the object store of its node."""

    def __init__(self) -> None:
        self._kept: list[Any] = []

    def fill(self) -> None:
        """Put objects until there is no room.

        Raises:
            RuntimeError: there is no end to it.
        """
        import numpy as np
        import ray

        for size in (8 * MIB, MIB, MIB // 8):
            for _ in range(MOST_OBJECTS):
                try:
                    self._kept.append(ray.put(np.zeros(size, np.uint8)))
                except ray.exceptions.RayError:
                    break
            else:
                msg = f"{MOST_OBJECTS} objects of {size} bytes do not fill the store"
                raise RuntimeError(msg)

    def empty(self) -> None:
        """Make room again."""
        self._kept.clear()


def _works(call: Callable[[], object]) -> bool:
    try:
        call()
    except UnavailableError:
        return False
    return True


def _are_alive(threads: Sequence[threading.Thread]) -> bool:
    return all(thread.is_alive() for thread in threads)  # one ends when it is refused


def _answers(log: Path) -> int:
    return log.read_bytes().count(b'"answered"') if log.exists() else 0


def plant(bug: Bug | None) -> writer.Bug | None:
    """Break the client of this process; return what is to be broken in the actors."""
    if bug == "no-retries":
        ray_backend._Line._is_over = lambda *_: True  # type: ignore[method-assign]
    if bug == "endless-retries":
        ray_backend._Line._is_over = lambda *_: False  # type: ignore[method-assign]
    return bug if bug in {"ack-before-commit", "no-request-ids"} else None


def run(options: report.Options) -> report.Row:
    """Make `options.count` node changes under load, then what cannot be mended."""
    writer.quiet()
    bug = next((known for known in get_args(Bug) if known == options.bug), None)
    in_actors = plant(bug)
    campaign = Campaign(options)
    found, wrong = campaign.findings, campaign.wrong
    with cluster.nodes(**cluster.QUICK, **cluster.NO_DISK) as nodes:
        if bug != "endless-retries":
            campaign.change(nodes, options.count, in_actors)
        if bug in {None, "endless-retries"} and not (found.lines or wrong):
            campaign.lose_the_node(nodes)
        if bug is None and not (found.lines or wrong):
            campaign.fill_the_store(nodes)
    counts = campaign.counts
    return report.Row(
        suite="Ray fails under load",
        unit="node changes",
        count=counts.pop("changes", 0),
        acknowledged=found.acknowledged,
        lost=len(found.lost),
        duplicated=len(found.duplicated),
        wrong=len(found.partial) + len(found.broken) + len(wrong),
        figures=dict(counts) | {"longest wait s": round(campaign.longest_s, 2)},
        findings=wrong + found.lines,
    )


if __name__ == "__main__":
    sys.exit(report.command_line(run, what="Ray fails under load", bugs=get_args(Bug)))

"""What the writer of this suite does not do by itself: forks, drops, erasures, index files, and all
the rest that lies behind a named point of `reverie.memory_graph.faults`.

A scene is played by one thread in worlds of its own, which the audit does not look at, and is
judged by what is told of it: each step when it begins, and when it is answered.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec
import structlog
from crash import ops, writer

import reverie
from reverie.actors import ingest
from reverie.memory_graph.store import search_files, sqlite
from reverie.models.standin import HashEmbedder

CAST = ("ana", "bo", "李娜")
GUEST = "guest"
TAG = "start"
EXACT_LIMIT = 8  # more vectors than these are kept in an index file, too
LOG_PAGES = 12  # so that the log is moved into the main file every few commits
RETRY_S = 0.05  # instead of seconds, until postponed extraction is tried again

Kind: TypeAlias = Literal["remember", "pin", "later", "fork", "rewind", "drop", "invite", "forget"]


class Step(msgspec.Struct, frozen=True):
    """A step of a scene. `name` is its world. `trouble` is an error that ended it."""

    name: str
    kind: Kind
    done: bool
    trouble: str = ""


_step = msgspec.json.Decoder(Step)


class Script:
    """A file that tells of the steps; one system call a line, so that a kill leaves no half."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.troubles: list[str] = []  # of what was read

    def tell(self, step: Step) -> None:
        with self.path.open("ab", buffering=0) as file:
            file.write(msgspec.json.encode(step) + b"\n")

    def read(self) -> dict[str, dict[Kind, bool]]:
        """Return, by scene, the steps that began, and whether each was answered."""
        data = self.path.read_bytes() if self.path.exists() else b""
        found: dict[str, dict[Kind, bool]] = {}
        for line in data.split(b"\n")[:-1]:
            step = _step.decode(line)
            found.setdefault(step.name, {})[step.kind] = step.done
            if step.trouble:
                self.troubles.append(f"{step.name} {step.kind}: {step.trouble}")
        return found


Repeat: TypeAlias = Callable[[Callable[[], object]], None]  # calls until it is answered


def play(runtime: reverie.Runtime, script: Script, name: str, repeat: Repeat) -> None:
    """Play one scene."""

    def step(kind: Kind, *calls: Callable[[], object]) -> None:
        script.tell(Step(name, kind, done=False))
        try:
            for call in calls:
                repeat(call)
        except Exception as exc:
            script.tell(Step(name, kind, done=False, trouble=repr(exc)))
            raise
        script.tell(Step(name, kind, done=True))

    def remember(user: str, world: str, text: str) -> Callable[[], object]:
        return lambda: runtime.user(user, world).remember(text, request_id=f"{name} {text}")

    guests = f"{name}-guests"
    step("invite", remember(GUEST, guests, secret(name)))
    step("remember", *(remember(user, name, first(user, name)) for user in CAST))
    step("pin", lambda: runtime.checkpoint(TAG, name))
    step("later", remember(CAST[0], name, f"Later, {name} 之后"))
    step("fork", lambda: runtime.fork(TAG, f"{name}-copy", name))
    step("rewind", lambda: runtime.rewind(TAG, name))
    step("drop", lambda: runtime.drop_checkpoint(TAG, name))
    step("forget", lambda: runtime.user(GUEST, guests).forget())
    repeat(runtime.flush)


def first(user: str, name: str) -> str:
    """Return what a user says in a scene before it is pinned."""
    return f"{user} 在 {name} was here."


def secret(name: str) -> str:
    """Return what the guest of a scene says, who is erased."""
    return f"The guest of {name} keeps a 秘密."


def judge(runtime: reverie.Runtime, scenes: dict[str, dict[Kind, bool]]) -> list[str]:
    """Return what is wrong with the scenes that were played, in lines."""
    wrong: list[str] = []
    worlds = set(runtime.worlds())
    for name, steps in scenes.items():
        wrong += [f"{name} {steps}: {line}" for line in _judge(runtime, name, steps, worlds)]
    gone = [name for name in scenes if not runtime.users(f"{name}-guests")]
    needles = [secret(name).encode() for name in gone]
    if needles:
        found = search_files(runtime.path, needles)
        wrong += [f"{n.decode()!r} is still in {where}" for n, where in found.items() if where]
    return wrong


def _judge(
    runtime: reverie.Runtime, name: str, steps: dict[Kind, bool], worlds: set[str]
) -> Iterator[str]:
    start = {u: [first(u, name)] for u in CAST}
    here = {u: texts(runtime, u, name) for u in runtime.users(name)}
    if here not in _allowed(name, steps, start):
        yield f"{here}"
    tags = [t.tag for t in runtime.checkpoints(name)]
    match [steps.get(k) for k in ("pin", "drop")]:
        case [None, _] | [_, True]:
            expected: tuple[list[str], ...] = ([],)
        case [True, None]:
            expected = ([TAG],)
        case _:
            expected = ([], [TAG])
    if tags not in expected:
        yield f"checkpoints {tags}"
    copy = {u: texts(runtime, u, f"{name}-copy") for u in runtime.users(f"{name}-copy")}
    is_named = f"{name}-copy" in worlds
    if steps.get("fork") and copy != start:
        yield f"the copy is {copy}"
    if copy not in ({}, start) or is_named != bool(copy):
        yield f"half a copy: {copy}"
    guest = texts(runtime, GUEST, f"{name}-guests")
    if steps.get("forget") and guest:
        yield "the guest is still there"
    if steps.get("invite") and steps.get("forget") is None and guest != [secret(name)]:
        yield f"the guest has {guest}"


def _allowed(
    name: str, steps: dict[Kind, bool], start: dict[str, list[str]]
) -> list[dict[str, list[str]]]:
    """Return what the world of a scene may hold after these steps."""
    later = start | {CAST[0]: sorted([*start[CAST[0]], f"Later, {name} 之后"])}
    match [steps.get(k) for k in ("remember", "later", "rewind")]:
        case [None, _, _]:
            return [{}]
        case [False, _, _]:
            return [{u: start[u] for u in CAST[:n]} for n in range(len(CAST) + 1)]
        case [True, None, _] | [True, _, True]:
            return [start]
        case [True, True, None]:
            return [later]
        case _:
            return [start, later]


def texts(runtime: reverie.Runtime, user: str, world: str) -> list[str]:
    """Return the memories of a user, in order."""
    return sorted(item.text for item in runtime.user(user, world).list(limit=1000).items)


def open_runtime(
    folder: str | Path,
    *,
    actors: int | None = None,
    byte_budget: int = 1 << 30,
    background: bool = False,
) -> reverie.Runtime:
    """Open a folder as the writer does, with small limits: index files, frequent checkpoints."""
    sqlite.CHECKPOINT_PAGES = LOG_PAGES
    ingest.RETRY_S = RETRY_S
    return reverie.open(
        folder,
        actors=actors,
        embedder=HashEmbedder(writer.DIM),
        extractor=ops.NoteTaker(),
        summaries="off",
        decider=writer.AddAll(),
        partitions=writer.PARTITIONS,
        byte_budget=byte_budget,
        exact_limit=EXACT_LIMIT,
        background=background,
    )


@contextmanager
def judged(script: Script, wrong: list[str], folder: Path) -> Iterator[reverie.Runtime]:
    """Open a folder, and judge its scenes before it is closed."""
    with open_runtime(folder) as runtime:
        yield runtime
        wrong += judge(runtime, script.read())
        wrong += script.troubles


def silence() -> None:
    """Keep every log line out of the output: errors are planted here by the thousand."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))


def once(call: Callable[[], object]) -> None:
    """Call, and expect no error."""
    call()


def act(
    runtime: reverie.Runtime,
    script: Script,
    run: int,
    stop: threading.Event,
    repeat: Repeat = once,
) -> None:
    """Play scenes until `stop`."""
    count = 0
    while not stop.is_set():
        count += 1
        play(runtime, script, f"scene-{run}-{count}", repeat)


def perform(plan: writer.Plan, script: Script) -> None:
    """Open the folder, write and play scenes until killed."""
    log = writer.Log(plan.log)
    runtime = open_runtime(
        plan.folder, actors=plan.actors, byte_budget=plan.byte_budget, background=True
    )
    log.write(writer.Opened())
    stop = threading.Event()
    timer = threading.Timer(writer.MOST_SECONDS, stop.set)
    timer.daemon = True
    timer.start()

    scene = threading.Thread(target=act, args=(runtime, script, plan.run, stop), daemon=True)
    scene.start()
    writer.work(plan, runtime, log, stop)
    time.sleep(writer.MOST_SECONDS)
    sys.exit(1)

"""Random operations on users, as values: made by hypothesis, carried out through the public API or
directly on shards. Run as a program, it prints the digests that a list of them leads to."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import strategies as st
from support import DAY, DIM, START, Sentences

import reverie
from reverie import Dimension, MemoryDraft, RelationDraft, Runtime, SimulatedClock
from reverie.memory_graph.drafts import EntityDraft
from reverie.memory_graph.errors import (
    CheckpointExistsError,
    InputError,
    NothingToUndoError,
    ReverieError,
    UnknownCheckpointError,
    UnknownMemoryError,
)
from reverie.models.standin import HashEmbedder

USERS = [("ana", "default"), ("小明", "default"), ("npc", "游戏"), ("ana", "游戏")]
TEXTS = [
    "I live in Oslo with Bo.",
    "I moved to Rome.",
    "I love tea.",
    "I hate tea.",
    "我住在上海。",
    "我喜欢绿茶，不喜欢咖啡。",
    "Bo is my brother; he works at Siemens.",
    "Ana and Bo met 小红 in 巴黎.",
    "The code is 4711.",
    "🐉",
    "x",
]
NAMES = ["Bo", "小红", "Oslo", "user", "the Mill", "BO"]


class Op(msgspec.Struct, frozen=True):
    """One operation of one user; what its arguments mean depends on `name`."""

    name: str
    user: int = 0
    a: int = 0
    b: int = 0


def operations(max_size: int = 25) -> st.SearchStrategy[list[Op]]:
    """Lists of operations."""
    names = st.sampled_from(sorted(_RUN))
    small = st.integers(0, 11)
    one = st.builds(Op, names, st.integers(0, len(USERS) - 1), small, small)
    return st.lists(one, min_size=1, max_size=max_size)


def carry_out(rt: Runtime, clock: SimulatedClock, ops: Sequence[Op]) -> list[str]:
    """Carry operations out; return what each returned or which error of ours it raised."""
    seen = []
    for op in ops:
        try:
            seen.append(repr(_RUN[op.name](rt, clock, op)))
        except (
            InputError,
            UnknownMemoryError,
            NothingToUndoError,
            UnknownCheckpointError,
            CheckpointExistsError,
        ) as exc:
            seen.append(f"{type(exc).__name__}: {exc}")
    return seen


def _user(rt: Runtime, op: Op) -> reverie.User:
    return rt.user(*USERS[op.user])


def _text(number: int) -> str:
    return TEXTS[number % len(TEXTS)]


def _advance(rt: Runtime, clock: SimulatedClock, op: Op) -> object:
    return clock.advance(DAY * op.a / 3)


def _add(rt: Runtime, clock: SimulatedClock, op: Op) -> object:
    turns: list[Any] = [_text(op.a)]
    if op.b % 3:
        turns.append({"text": _text(op.b), "speaker": NAMES[op.b % 3], "session": f"s{op.b % 2}"})
    if op.b % 4 == 0:
        turns.append({"text": _text(op.a), "id": f"x{op.a}"})
    return _user(rt, op).add(turns, infer=bool(op.b % 5), wait=True)


def _remember(rt: Runtime, clock: SimulatedClock, op: Op) -> object:
    draft = MemoryDraft(
        f"{_text(op.a)} ({op.b})",
        kind=("fact", "event", "preference")[op.b % 3],
        importance=op.b / 11,
        ttl_s=DAY * op.b if op.b % 4 == 1 else None,
        tags=(f"tag{op.a % 2}",),
        topics=("主题",) if op.b % 2 else (),
        entities=(EntityDraft(NAMES[op.a % 3]), EntityDraft(NAMES[op.b % 3], aliases=("B.",))),
        relations=(RelationDraft("$user", "knows", NAMES[op.b % 3]),) if op.a % 2 else (),
    )
    user, world = USERS[op.user]
    return rt.remember_many({user: [draft]}, world=world)


def _relate(rt: Runtime, clock: SimulatedClock, op: Op) -> object:
    begins = None if op.a % 3 else START + DAY * op.b
    return _user(rt, op).relate(
        NAMES[op.a % 6],
        ("lives_in", "knows")[op.b % 2],
        NAMES[op.b % 6],
        valid_from=begins,
        functional=op.b % 2 == 0,
        ended=op.a % 4 == 3,
    )


def _replace(rt: Runtime, clock: SimulatedClock, op: Op) -> object:
    return _user(rt, op).remember(_text(op.b), replaces=f"m{op.a}")


def _search(rt: Runtime, clock: SimulatedClock, op: Op) -> object:
    return _user(rt, op).search(
        _text(op.a),
        limit=1 + op.b,
        include_retired=op.b % 3 == 0,
        include_archived=op.b % 2 == 0,
    )


def _move(rt: Runtime, clock: SimulatedClock, op: Op) -> object:
    own = {"信任": Dimension(-5.0, 5.0, 1.0, DAY * (1 + op.a))} if op.b % 3 == 0 else None
    return _user(rt, op).relationships.move(
        NAMES[op.a % 6],
        {"信任": 0.5} if op.b % 3 == 0 else {"trust": (op.b - 5) / 4, "debt": op.a},
        reason=_text(op.b),
        memory_id=f"m{op.a}" if op.a % 2 else None,
        at=START + DAY * op.b / 2 if op.b % 4 == 1 else None,
        dimensions=own,
    )


def _profile(rt: Runtime, clock: SimulatedClock, op: Op) -> object:
    profile = reverie.Profile(
        memories=op.a if op.a % 4 else None,
        bytes=200 * op.b if op.b % 3 == 2 else None,
        archive_below=op.b / 20 if op.b % 2 else None,
        ttl_s={"event": DAY * op.b} if op.b > 8 else {},
    )
    return _user(rt, op).set_profile(profile if op.a < 10 else None)


def _observe(rt: Runtime, clock: SimulatedClock, op: Op) -> object:
    _, world = USERS[op.user]
    here = [user for user, where in USERS if where == world]
    return rt.world(world).observe(
        _text(op.a),
        witnesses=here[: 1 + op.b % 2],
        groups=("行会",) if op.b % 3 == 0 else (),
        place="the Mill" if op.a % 2 else None,
        participants=NAMES[op.b % 3 : op.b % 3 + 1],
        event_id="the same" if op.b == 11 else None,  # now and then
    )


def _tell(rt: Runtime, clock: SimulatedClock, op: Op) -> object:
    user, world = USERS[op.user]
    memory_id = f"m{op.a}" if op.b % 4 else f"group:行会/m{op.a}"
    return rt.world(world).tell(
        user,
        USERS[(op.user + 1 + op.b) % len(USERS)][0],
        memory_id,
        text=_text(op.b) if op.b % 5 == 0 else None,
        confidence=op.b / 11 if op.b % 3 == 0 else None,
    )


def _join(rt: Runtime, clock: SimulatedClock, op: Op) -> object:
    user, world = USERS[op.user]
    return rt.world(world).group("行会").join(user, history=op.a % 2 == 0)


def _leave(rt: Runtime, clock: SimulatedClock, op: Op) -> object:
    user, world = USERS[op.user]
    return rt.world(world).group("行会").leave(user, forget=op.a % 3 == 0)


def _bury(rt: Runtime, clock: SimulatedClock, op: Op) -> object:
    if op.a < 9:  # or nobody would live long
        return None
    user, world = USERS[op.user]
    return rt.world(world).bury(user, names=[NAMES[op.b % 3]], memories=op.b % 2 == 0).others


_RUN: dict[str, Callable[[Runtime, SimulatedClock, Op], object]] = {
    "advance": _advance,
    "add": _add,
    "remember": _remember,
    "replace": _replace,
    "relate": _relate,
    "search": _search,
    "observe": _observe,
    "tell": _tell,
    "join": _join,
    "leave": _leave,
    "update": lambda rt, clock, op: _user(rt, op).update(f"m{op.a}", f"{_text(op.b)} anew"),
    "edit": lambda rt, clock, op: _user(rt, op).update(f"m{op.a}", importance=op.b / 11, ttl_s=DAY),
    "delete": lambda rt, clock, op: _user(rt, op).delete(f"m{op.a}"),
    "archive": lambda rt, clock, op: _user(rt, op).archive(f"m{op.a}"),
    "restore": lambda rt, clock, op: _user(rt, op).restore(f"m{op.a}"),
    "move": _move,
    "untie": lambda rt, clock, op: _user(rt, op).relationships.remove(NAMES[op.a % 6]),
    "reflect": lambda rt, clock, op: _user(rt, op).reflect(force=op.b % 2 == 0),
    "summarise": lambda rt, clock, op: [item.text for item in _user(rt, op).summarise()],
    "profile": _profile,
    "tend": lambda rt, clock, op: rt.world(USERS[op.user][1]).tend(),
    "audit": lambda rt, clock, op: _user(rt, op).audit(limit=1 + op.a),
    "bury": _bury,
    "flush": lambda rt, clock, op: rt.flush() if op.a % 2 else None,
    "checkpoint": lambda rt, clock, op: rt.checkpoint(f"tag {op.a % 3}", USERS[op.user][1]),
    "rewind": lambda rt, clock, op: rt.rewind(f"tag {op.a % 3}", USERS[op.user][1]),
}


def look(rt: Runtime) -> dict[str, Any]:
    """Return what can be seen of every user, as of now."""
    seen: dict[str, Any] = {}
    now = rt.now()
    for world in rt.worlds():
        for name in rt.users(world):
            user = rt.user(name, world)
            hits = [
                (h.id, h.score, h.reasons)
                for text in TEXTS
                for h in user.search(text, as_of=now, include_retired=True)
            ]
            items = user.list(types=None, include_retired=True, include_archived=True).items
            ties = (user.relationships.list(), user.relationships.of("Bo"))
            seen[f"{world}/{name}"] = (user.digest(), hits, items, user.entities(), ties)
    return seen


def digests(rt: Runtime) -> dict[str, str]:
    """Return the digest of every user."""
    return {
        f"{world}/{name}": rt.user(name, world).digest()
        for world in rt.worlds()
        for name in rt.users(world)
    }


def main() -> None:
    """Carry out the operations on standard input and print what they lead to."""
    ops = msgspec.json.decode(sys.stdin.buffer.read(), type=list[Op])
    clock = SimulatedClock(START)
    with (
        tempfile.TemporaryDirectory() as folder,
        reverie.open(
            Path(folder, "data"), embedder=HashEmbedder(DIM), partitions=2, clock=clock
        ) as rt,
    ):
        answers = carry_out(rt, clock, ops)
        found = look(rt)
        sys.stdout.buffer.write(msgspec.json.encode([answers, repr(found)]))


__all__ = ["Op", "ReverieError", "Sentences", "carry_out", "digests", "look", "operations"]

if __name__ == "__main__":
    main()

"""One NPC with a budget that sees far more than it may keep.

`--events` seeded events of a small town are observed one by one by an NPC whose profile allows
`--memories` active memories; `--pinned` of them are pinned, and ten are far more important than the
rest. Told are: whether the budget was ever exceeded, whether what must stay stayed, whether every
other memory has a line in the audit, which of the questions about pinned and important events find
them, and what an event costs once the budget is full and at the end (without its embedding, which
is made beforehand). Then the NPC is tended, and questions about archived events are asked of the
summaries that took them in. With `--free`, an NPC without limits sees the same, for comparison.

    python benchmarks/budgets.py [--events 5000] [--memories 500] [--embedder auto] [--chinese]
        [--free]
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from bench_support import Float32, report

import reverie
from reverie import Profile, Runtime, SimulatedClock
from reverie.models.catalog import default_folder, find_entry
from reverie.models.embedders import open_embedder
from reverie.models.protocol import Embedder, EmbedderInfo, TextRole

DAYS = 30
DAY_S = 86_400.0
IMPORTANT = 10
HITS = 10
ARCHIVED = 200  # archived events that are asked about

PEOPLE = ("Bram", "Odile", "Tomas", "Wren", "Petra", "Lukas", "Ines", "Falk", "Greta", "Hugo")
PEOPLE_ZH = ("李铁匠", "王掌柜", "小红", "赵猎户", "陈大夫", "刘船夫", "孙木匠", "周婆婆")
PLACES = ("the mill", "the gate", "the inn", "the harbour", "the market", "the chapel", "the well")
PLACES_ZH = ("磨坊", "城门", "客栈", "码头", "集市", "庙里", "井边")
THINGS = (
    "amulet cart lantern barrel ledger saddle kettle anchor violin cloak hammer goose "
    "mirror ladder candle basket shovel blanket compass drum"
).split()
KINDS = "silver old broken painted stolen tiny iron red carved cracked borrowed heavy".split()
THINGS_ZH = "护身符 马车 灯笼 木桶 账本 马鞍 水壶 小提琴 斗篷 铁锤 镜子 梯子 蜡烛 毯子 罗盘".split()
KINDS_ZH = "银色的 旧的 破的 彩绘的 小小的 铁的 红色的 雕花的 裂开的 借来的".split()


class Seen(NamedTuple):
    """An event, a question about it, and how much it matters (0 to 1)."""

    text: str
    question: str
    importance: float
    people: tuple[str, ...]
    pinned: bool = False


class Known:
    """An embedder that has made the vectors of the events before."""

    def __init__(self, inner: Embedder, texts: Sequence[str]) -> None:
        self._inner = inner
        self._made: dict[tuple[str, str], Float32] = {}
        self._prepare(texts, "passage")

    def _prepare(self, texts: Sequence[str], role: TextRole) -> None:
        for start in range(0, len(texts), 256):
            part = texts[start : start + 256]
            rows = self._inner.embed(part, role)
            self._made |= {(t, role): r for t, r in zip(part, rows, strict=True)}

    @property
    def info(self) -> EmbedderInfo:
        """Identity and shape of the vectors."""
        return self._inner.info

    def embed(self, texts: Sequence[str], role: TextRole) -> Float32:
        """Return float32 (len(texts), dim); new texts are embedded now."""
        if fresh := [t for t in texts if (t, role) not in self._made]:
            self._prepare(fresh, role)
        if not texts:
            return self._inner.embed([], role)
        return np.stack([self._made[t, role] for t in texts])

    def count_tokens(self, text: str) -> int:
        """Return what the inner one counts."""
        return self._inner.count_tokens(text)

    def unknown_share(self, text: str) -> float:
        """Return what the inner one says."""
        return self._inner.unknown_share(text)

    def close(self) -> None:
        """Close the inner one."""
        self._inner.close()


def make_events(count: int, pinned: int, seed: int, *, chinese: bool) -> list[Seen]:
    """Return events in the order in which they happen; those that matter lie anywhere."""
    rng = random.Random(seed)
    special = rng.sample(range(count), pinned + IMPORTANT)
    events = []
    for i in range(count):
        is_zh = chinese and i % 2 == 1
        matters = i in special
        importance = 0.95 + 0.005 * special.index(i) if i in special[:IMPORTANT] else None
        if importance is None:
            importance = round(min(0.9, rng.betavariate(2, 3)), 3)
        text, question, people = (_chinese if is_zh else _english)(rng, i, matters=matters)
        events.append(Seen(text, question, importance, people, i in special[IMPORTANT:]))
    return events


def _english(rng: random.Random, i: int, *, matters: bool) -> tuple[str, str, tuple[str, ...]]:
    a, b = rng.sample(PEOPLE, 2)
    place, thing = rng.choice(PLACES), f"{rng.choice(KINDS)} {rng.choice(THINGS)}"
    if matters:
        thing += f" of the {_ordinal(i)} king"
        text = f"{a} swore to {b} at {place} to bring back the {thing}."
        return text, f"Who promised to return the {thing}?", (a, b)
    text, question = rng.choice(
        (
            (
                f"{a} bought a {thing} from {b} at {place}.",
                f"From whom did {a} get a {thing} at {place}?",
            ),
            (
                f"{a} and {b} quarrelled about a {thing} at {place}.",
                f"With whom did {a} argue over a {thing}?",
            ),
            (
                f"{a} lost a {thing} near {place}, and {b} laughed.",
                f"Who laughed when {a} lost a {thing}?",
            ),
            (
                f"{b} lent {a} a {thing} for a week, at {place}.",
                f"Who let {a} have a {thing} for some days?",
            ),
        )
    )
    return text, question, (a, b)


def _ordinal(i: int) -> str:
    return f"{i}th"


def _chinese(rng: random.Random, i: int, *, matters: bool) -> tuple[str, str, tuple[str, ...]]:
    a, b = rng.sample(PEOPLE_ZH, 2)
    place, thing = rng.choice(PLACES_ZH), f"{rng.choice(KINDS_ZH)}{rng.choice(THINGS_ZH)}"
    if matters:
        thing = f"第{i}代国王的{thing}"
        return f"{a}在{place}向{b}发誓要找回{thing}。", f"谁答应找回{thing}？", (a, b)
    text, question = rng.choice(
        (
            (f"{a}在{place}向{b}买了一件{thing}。", f"{a}向谁买了{thing}？"),
            (f"{a}和{b}在{place}为{thing}吵了一架。", f"{a}和谁为{thing}吵架了？"),
            (f"{a}在{place}附近丢了{thing}，{b}笑了。", f"{a}丢了{thing}的时候谁笑了？"),
        )
    )
    return text, question, (a, b)


class Lived(NamedTuple):
    """What one NPC went through. Costs are milliseconds of this process an event."""

    ids: list[str]
    costs: list[float]


def live(
    rt: Runtime, clock: SimulatedClock, npcs: Sequence[str], events: Sequence[Seen]
) -> list[Lived]:
    """Let NPCs see the events, one by one and in turns, so that what the machine does besides
    falls on all; return what each of them went through."""
    users = [rt.user(npc, "town") for npc in npcs]
    lived = [Lived([], []) for _ in users]
    for seen in events:
        clock.advance(DAYS * DAY_S / len(events))
        for user, life in zip(users, lived, strict=True):
            start = time.process_time()
            kept = observe(user, seen)
            life.costs.append(1000 * (time.process_time() - start))
            life.ids.append(kept.memory_id)
    return lived


def most_active(rt: Runtime, npc: str) -> int:
    """Return the most active memories that an NPC had after any event: each event has a time of its
    own, at which its memory was recorded and others were put away."""
    changes = [(line.at or 0.0, -1) for line in _audit(rt, npc)]
    changes += [(item.recorded_at, 1) for item in _all(rt, npc, include_archived=True)]
    count = most = 0
    for _, change in sorted(changes):  # of one time, what was put away first
        count += change
        most = max(most, count)
    return most


def observe(user: reverie.User, seen: Seen) -> reverie.Kept:
    """Let one NPC see one event."""
    if not seen.pinned:
        return user.observe(seen.text, importance=seen.importance, participants=seen.people)
    return user.remember(
        seen.text, kind="event", importance=seen.importance, pinned=True, entities=seen.people
    )


def found(
    rt: Runtime, npc: str, asked: Sequence[tuple[str, str]], types: str | None = None
) -> float:
    """Return the share of (question, id) pairs whose id is among the first hits."""
    questions = [(npc, question) for question, _ in asked]
    hits = rt.search_many(questions, world="town", limit=HITS, types=types)
    return sum(
        any(h.id == wanted for h in got) for (_, wanted), got in zip(asked, hits, strict=True)
    ) / max(1, len(asked))


def main() -> int:
    """Run it; return 1 when a bound is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=5_000)
    parser.add_argument("--memories", type=int, default=500)
    parser.add_argument("--pinned", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--embedder", default="auto")
    parser.add_argument("--chinese", action="store_true", help="every other event")
    parser.add_argument("--free", action="store_true", help="also an NPC without limits")
    args = parser.parse_args()
    name = args.embedder
    if name == "auto":
        wanted = "multilingual" if args.chinese else "minilm"
        is_here = (default_folder() / find_entry(wanted).file_name).is_file()
        name = wanted if is_here else "standin"
    events = make_events(args.events, args.pinned, args.seed, chinese=args.chinese)
    start = time.perf_counter()
    inner = open_embedder(name, default_folder(), threads=1)
    embedder = Known(inner, [e.text for e in events])
    embedding_ms = 1000 * (time.perf_counter() - start) / len(events)
    clock = SimulatedClock(0.0)
    with (
        tempfile.TemporaryDirectory() as folder,
        reverie.open(Path(folder, "data"), embedder=embedder, clock=clock, background=False) as rt,
    ):
        rows = measure(rt, clock, events, args)
    rows.append(
        (f"embedding one event ({name}), made beforehand", f"{embedding_ms:.1f} ms", "", None)
    )
    return 0 if report("An NPC with a budget", rows) else 1


def measure(
    rt: Runtime, clock: SimulatedClock, events: Sequence[Seen], args: argparse.Namespace
) -> list[tuple[str, str, str, bool | None]]:
    """Return the rows of the report."""
    npc = rt.user("npc", "town")
    npc.set_profile(Profile(name="guard", memories=args.memories))
    npcs = ["npc", "free"] if args.free else ["npc"]
    lived, *free = live(rt, clock, npcs, events)
    most = most_active(rt, "npc")
    stats = npc.stats()
    active = {item.id for item in _all(rt, "npc")}
    pinned = [i for i, e in zip(lived.ids, events, strict=True) if e.pinned]
    ranked = sorted(range(len(events)), key=lambda i: -events[i].importance)
    top = [lived.ids[i] for i in ranked if not events[i].pinned][:IMPORTANT]
    asked = [
        (e.question, i) for e, i in zip(events, lived.ids, strict=True) if i in {*pinned, *top}
    ]
    lines = npc.audit(limit=1).total
    step = max(1, len(events) // 10)
    rows: list[tuple[str, str, str, bool | None]] = [
        (
            f"most active memories after any of {len(events):,} events",
            f"{most:,}",
            f"<= {args.memories:,}",
            most <= args.memories,
        ),
        _share("pinned memories that are active", pinned, active),
        _share("of the ten most important", top, active),
        (
            "audit lines of memories that are not active",
            f"{lines:,}",
            f"{stats.memories - stats.active:,}",
            lines == stats.memories - stats.active,
        ),
        _recall(f"questions about those, in the first {HITS} hits", found(rt, "npc", asked)),
    ]
    windows = {
        "once the budget is full": args.memories,
        "at two thirds": 2 * len(events) // 3,
        "at the end": len(events) - step,
    }
    for what, at in windows.items():
        costs = [statistics.fmean(life.costs[at : at + step]) for life in (lived, *free)]
        shown = f"{costs[0]:.2f} ms" + "".join(f", without limits {x:.2f} ms" for x in costs[1:])
        rows.append((f"CPU time of an event {what} (mean of {step:,})", shown, "", None))
    if free:
        twin = dict(zip(lived.ids, free[0].ids, strict=True))
        share = found(rt, "free", [(question, twin[i]) for question, i in asked])
        rows.append(("the same questions without limits", f"{share:.1%}", "", None))
    return rows + _gists(rt, events, lived)


def _gists(
    rt: Runtime, events: Sequence[Seen], lived: Lived
) -> list[tuple[str, str, str, bool | None]]:
    npc = rt.user("npc", "town")
    start = time.perf_counter()
    tended = rt.world("town").tend().get("npc")
    took_s = time.perf_counter() - start
    lines = [line for line in _audit(rt, "npc") if line.became == "consolidated"]
    rng = random.Random(0)
    chosen = rng.sample(lines, min(ARCHIVED, len(lines)))
    questions = dict(zip(lived.ids, (e.question for e in events), strict=True))
    told = [line for line in chosen if line.text in npc.get(line.summary or "").text]
    asked = [(questions[line.id], line.summary or "") for line in told]
    return [
        (
            "tending: summaries made of what had faded",
            f"{0 if tended is None else tended.gists:,} of {len(lines):,}, {took_s:.1f} s",
            "",
            None,
        ),
        (
            "archived events whose summary tells them word for word",
            f"{len(told) / max(1, len(chosen)):.1%}",
            "",
            None,
        ),
        (
            f"questions about these whose summary is in the first {HITS} hits",
            f"{found(rt, 'npc', asked):.1%}",
            "",
            None,
        ),
        (
            f"in the first {HITS} hits among summaries",
            f"{found(rt, 'npc', asked, 'summary'):.1%}",
            "",
            None,
        ),
    ]


def _all(rt: Runtime, npc: str, *, include_archived: bool = False) -> list[reverie.Item]:
    user, items, cursor = rt.user(npc, "town"), [], None
    while True:
        page = user.list(limit=1000, cursor=cursor, include_archived=include_archived)
        items += page.items
        cursor = page.cursor
        if cursor is None:
            return items


def _audit(rt: Runtime, npc: str) -> list[reverie.AuditLine]:
    user, lines, cursor = rt.user(npc, "town"), [], None
    while True:
        page = user.audit(limit=1000, cursor=cursor)
        lines += page.lines
        cursor = page.cursor
        if cursor is None:
            return lines


def _share(what: str, wanted: Sequence[str], active: set[str]) -> tuple[str, str, str, bool | None]:
    count = sum(i in active for i in wanted)
    return what, f"{count} of {len(wanted)}", "all", count == len(wanted)


def _recall(what: str, share: float) -> tuple[str, str, str, bool | None]:
    return what, f"{share:.1%}", "100%", share == 1.0


if __name__ == "__main__":
    sys.exit(main())

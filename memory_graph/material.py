"""What goes into a summary: statements of one line each, rated, with a bounded choice of them.

Memories come before the turns that they were made of. What was deleted, archived or replaced feeds
nothing, nor does a turn that such a memory came from, nor what has a time to live: a summary has
none. Pure functions of a user's state.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec
import numpy as np

from reverie.memory_graph import central, graph as g, nodes as n
from reverie.memory_graph.text import terms

if TYPE_CHECKING:
    from reverie.memory_graph.state import UserMemory

Subject: TypeAlias = Literal["session", "topic", "user", "talk", "faded", "insight"]

MAX_CANDIDATES = 48  # that are compared with each other
MAX_SOURCES = 40  # of them that leave the shard, for a language model
MAX_PICKED = 16
LEAST_TOKENS = 60  # what is told of little is more than half of it
MAX_CHARS = 280  # of one statement
MAX_TURN_CHARS = 160  # of a turn
MAX_SCAN = 4_000  # characters of a turn in which its telling sentence is looked for
FEW_WORDS = 3
MANY_WORDS = 12  # more are worth no more
FEW_MEMORIES = 4  # below, turns that gave no memory are told too

_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？…])|\n+")
_NAME = re.compile(r"(?<=[^.!?] )[^\W\d_a-z]\w+")  # a capital within a sentence
# Times that depend on when they were said.
_RELATIVE = re.compile(
    r"\b(?:yesterday|today|tonight|tomorrow|ago|recently|just|(?:last|next|this|past) "
    r"(?:night|week|weekend|month|year|morning|evening|spring|summer|autumn|fall|winter"
    r"|(?:mon|tue|tues|wed|wednes|thu|thurs|fri|sat|satur|sun)(?:day)?))\b"
    r"|[昨今明前后後][天晚日年]|[上下这這本][个個]?(?:[周週月]|星期|礼拜|禮拜)|去年|刚才|剛才|最近",
    re.IGNORECASE,
)
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3\u0e00-\u0e7f]")


class Source(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A statement that a summary may tell.

    Attributes:
        id: of the memory or turn.
        text: on one line, without the speaker; of a long turn the sentence that tells most.
        at: when it holds from or was said, in seconds.
        stamp: of the whole text; see `stamp`.
        kind: of a memory; None of a turn.
        speaker: of a turn, "user" for the owner.
        told_by: of a memory that is hearsay.
    """

    id: str
    text: str
    at: float
    stamp: int
    kind: n.MemoryKind | None = None
    speaker: str | None = None
    told_by: str | None = None


class Regularity(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What `count` of `total` sources of an insight have in common: they mention `name`
    ("together"), were told by `name` ("told"), or were "pleasant" or "unpleasant"."""

    kind: str
    count: int
    total: int
    name: str = ""


class Material(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a summary is made of.

    Attributes:
        subject: what it is of.
        name: of the session or topic; empty otherwise.
        sources: in the order in which they are told.
        picked: places of the sources that stand for all, in that order, within `max_tokens`.
        central: places of all sources, those that stand best for all first.
        from_at: from when the sources are, in seconds.
        to_at: until when.
        messages: how many turns were looked at.
        covers: as of `nodes.Summary`.
        follows: the summary that was the newest of the subject; empty when there was none.
        max_tokens: about how long the text may be (see `size`).
        order: as of `nodes.Summary`, likewise.
        focus: the entity that an insight is about; empty otherwise.
        regularities: what happens again and again in the sources of an insight.
        is_dated: times are dates of the calendar; else they count from the begin of a world.
    """

    subject: Subject
    name: str
    sources: tuple[Source, ...]
    picked: tuple[int, ...]
    central: tuple[int, ...]
    from_at: float
    to_at: float
    messages: int = 0
    covers: int = 0
    follows: str = ""
    max_tokens: int = 200
    order: int = 1
    focus: str = ""
    regularities: tuple[Regularity, ...] = ()
    is_dated: bool = True


class Candidate(msgspec.Struct, gc=False):
    """A memory, turn or insight that may be told; `own` is what it is worth by itself."""

    node: n.Memory | n.Message | n.Summary
    text: str
    at: float
    own: float


def stamp(text: str) -> int:
    """Return 63 bits that stand for a text: whether a source is still what was read."""
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


def size(text: str) -> int:
    """Return about how many tokens a text has: one a character of scripts without spaces, one for
    four of others."""
    unspaced = len(_UNSPACED.findall(text))
    return unspaced + math.ceil((len(text) - unspaced) / 4)


def feeds(memory: UserMemory, node_id: str) -> bool:
    """Return whether a memory or turn may be told in a summary, or a summary in an insight."""
    node = memory.graph.node(node_id)
    if isinstance(node, n.Summary):
        return node.retired_at is None
    if isinstance(node, n.Memory):
        return _may_be_told(node)
    return isinstance(node, n.Message) and all(map(_may_be_told, made_of(memory, node_id)))


def _may_be_told(memory: n.Memory) -> bool:
    """Also what has faded: it was archived for want of room, and nobody asked that it be hidden."""
    return (memory.status == "active" or memory.faded) and memory.ttl_s is None


def made_of(memory: UserMemory, message_id: str) -> list[n.Memory]:
    """Return the memories that derive from a turn, whatever became of them."""
    found = (memory.graph.node(m) for m, _ in memory.graph.into(message_id, n.DERIVED_FROM))
    return [m for m in found if isinstance(m, n.Memory)]


def worth(text: str) -> float:
    """Return what a sentence is worth by what it says: figures, names, words. Costs microseconds,
    for many are looked at and few are told."""
    head = text[:MAX_CHARS]
    words = len(set(head.split())) + len(_UNSPACED.findall(head)) // 2
    found = 0.2 + 0.2 * any(map(str.isdecimal, head)) + 0.1 * min(len(_NAME.findall(head)), 3)
    found += 0.5 * min(words, MANY_WORDS) / MANY_WORDS
    if _asks(text):
        found *= 0.2
    return found if words > FEW_WORDS else 0.2 * found


def worth_of(node: n.Memory | n.Message) -> float:
    """Return what a memory or turn is worth by itself, before it is looked at closely."""
    if isinstance(node, n.Message):
        return worth(node.text)
    own = (0.3 + node.importance + worth(node.text) + 0.2 * node.pinned) * node.confidence
    return own * (1.0 if node.provenance == "witnessed" else 0.8) + 0.05


def _asks(text: str) -> bool:
    return text.rstrip(" \"'”’)）」").endswith(("?", "？", "؟"))


def _told(memory: UserMemory, node: n.Memory | n.Message) -> tuple[str, float]:
    """Return what is told of a memory or turn, and its time. A memory that says "yesterday" is told
    with the day on which that was said, others with the day from which they hold; of a turn, what
    it states, without what it asks."""
    if isinstance(node, n.Message):
        stated = [s for s in _sentences(node.text) if not _asks(s)]
        return _best(stated, MAX_TURN_CHARS), node.said_at
    text = telling(node.text)
    at = node.recorded_at if node.valid_from is None else node.valid_from
    if _RELATIVE.search(text):
        turns = (memory.graph.node(i) for i, _ in memory.graph.out(node.id, n.DERIVED_FROM))
        at = next((turn.said_at for turn in turns if isinstance(turn, n.Message)), at)
    return text, at


def telling(text: str) -> str:
    """Return a text on one line; of one over `MAX_CHARS`, the sentence that tells most and what
    follows it within the bound."""
    line = " ".join(text.split()) if len(text) <= MAX_SCAN else ""
    return line if line and len(line) <= MAX_CHARS else _best(_sentences(text), MAX_CHARS)


def _sentences(text: str) -> list[str]:
    parts = (" ".join(s.split()) for s in _SENTENCE.split(text[:MAX_SCAN]))
    return [part for part in parts if part]


def _best(sentences: Sequence[str], most: int) -> str:
    """Return the sentence that tells most, and those after it as far as `most` characters go."""
    if not sentences:
        return ""
    best = max(range(len(sentences)), key=lambda i: (worth(sentences[i]), -i))
    found = sentences[best]
    for following in sentences[best + 1 :]:
        if len(found) + 1 + len(following) > most:
            break
        found += f" {following}" if found.isascii() else following
    return found if len(found) <= most else f"{found[: most - 3].rstrip()}..."


def of_turns(
    memory: UserMemory, turns: Iterable[n.Message], known: Iterable[n.Memory] = ()
) -> list[n.Memory | n.Message]:
    """Return what turns have to tell: the memories that they gave, and where they gave none,
    themselves. Turns in which extraction found nothing are told only where it found little.

    Args:
        memory: the user's state.
        turns: to look at.
        known: memories that are told beside those of the turns.
    """
    memories = {m.id: m for m in known}
    plain: list[n.Message] = []
    for turn in turns:
        if gave := made_of(memory, turn.id):
            memories |= {m.id: m for m in gave if feeds(memory, m.id)}
        else:
            plain.append(turn)
    few = len(memories) < FEW_MEMORIES
    return [*memories.values(), *(t for t in plain if few or t.status != "extracted")]


def candidates(
    memory: UserMemory,
    nodes: Iterable[n.Memory | n.Message],
    own: Callable[[n.Memory | n.Message], float] = worth_of,
) -> list[Candidate]:
    """Return the candidates that are compared: each once, none empty, of many the
    `MAX_CANDIDATES` worthiest, memories before turns; in the order in which they are told."""
    once = {node.id: (isinstance(node, n.Memory), own(node), node) for node in nodes}
    ranked = sorted(once.values(), key=lambda c: (not c[0], -c[1], g.number(c[2].id)))
    found: list[Candidate] = []
    for _, worthy, node in ranked[:MAX_CANDIDATES]:
        text, at = _told(memory, node)
        if text:
            found.append(Candidate(node, text, at, worthy))
    return sorted(found, key=_order)


def _order(candidate: Candidate) -> tuple[float, bool, int]:
    node = candidate.node
    return candidate.at, isinstance(node, n.Message), g.number(node.id)


def choose(
    memory: UserMemory, found: Sequence[Candidate], max_tokens: int
) -> tuple[list[int], list[int]]:
    """Return the places of those that stand for all, best first, and of all, most central first."""
    if not found:
        return [], []
    words = [frozenset(terms(c.text)) for c in found]
    vectors: list[np.ndarray[tuple[int], np.dtype[np.float32]] | None] = [
        None if memory.vectors is None else memory.vectors.vector(c.node.id) for c in found
    ]
    like = central.likeness(words, vectors)
    score = central.scores(like, [c.own for c in found])
    sizes = [size(c.text) + 1 for c in found]
    budget = min(max_tokens, max(LEAST_TOKENS, sum(sizes) // 2))
    picked = central.chosen(score, like, sizes, budget, MAX_PICKED)
    order = sorted(range(len(found)), key=lambda i: (-score[i], i))
    return picked, order


def source(candidate: Candidate) -> Source:
    """Return a candidate as it leaves the shard."""
    node = candidate.node
    if isinstance(node, n.Memory):
        return Source(
            node.id,
            candidate.text,
            candidate.at,
            stamp(node.text),
            node.kind,
            told_by=node.told_by if node.provenance == "told" else None,
        )
    speaker = node.speaker if isinstance(node, n.Message) else None
    return Source(node.id, candidate.text, candidate.at, stamp(node.text), speaker=speaker)


def made(
    subject: Subject,
    name: str,
    found: Sequence[Candidate],
    picked: Sequence[int],
    order: Sequence[int],
    max_tokens: int,
) -> Material:
    """Return the material of candidates in the order in which they are told: those that were
    picked, and the first `MAX_SOURCES` of all in the `order` of how central they are."""
    kept = sorted({*picked, *order[:MAX_SOURCES]})
    place = {old: new for new, old in enumerate(kept)}
    times = [c.at for c in found] or [0.0]
    return Material(
        subject,
        name,
        tuple(source(found[i]) for i in kept),
        tuple(sorted(place[i] for i in picked)),
        tuple(place[i] for i in order if i in place),
        min(times),
        max(times),
        max_tokens=max_tokens,
    )

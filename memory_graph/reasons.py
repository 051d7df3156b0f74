"""Why a text is among the hits, told to people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from reverie.memory_graph import cues, nodes as n
from reverie.memory_graph.filters import Readable
from reverie.memory_graph.naming import is_of_owner
from reverie.memory_graph.spread import Reached
from reverie.memory_graph.state import UserMemory


class Question(NamedTuple):
    """What a question asks for and names, and what the walk has reached."""

    text: str
    names: Mapping[str, str]
    said_by: frozenset[str]
    weights: Mapping[str, float]
    reached: Mapping[str, Reached]


class Scored(NamedTuple):
    """A candidate with its score; `cosine` is NaN without a vector."""

    node: Readable
    cosine: float
    parts: dict[str, float]
    score: float


def reasons(
    memory: UserMemory,
    asked: Question,
    found: Scored,
    words: Sequence[str],
) -> list[str]:
    """Return why a text is among the hits, in lines for people, by what counts.

    Args:
        memory: of the user.
        asked: the question.
        found: the text with the parts of its score.
        words: the words of the question that the text has.
    """
    weights, parts, node_id = asked.weights, found.parts, found.node.id
    is_turn = isinstance(found.node, n.Message)
    reasons: list[str] = []
    if isinstance(found.node, n.Summary) and found.node.order > 1:
        reasons.append(_insight(memory, found.node))
    if parts.get("meaning", 0.0) > 0.1 * weights["meaning"]:
        reasons.append(f"similar in meaning ({found.cosine:.2f})")
    if words:
        reasons.append(f"shares the words: {', '.join(words)}")
    if is_turn and parts.get("around", 0.0) > 0.5 * weights["around"]:
        reasons.append("so do the turns around it" if words else "the turns around it share words")
    if asked.names or asked.said_by:
        names = [*asked.names, *(asked.said_by - asked.names.keys())]
        reasons += _named(memory, node_id, names)
    if parts.get("time", 0.0) > 0.5 * weights["time"]:
        reasons.append("from the time that is asked for")
    if parts.get("answer", 0.0) > 0.0 and (wanted := _wanted(asked.text)):
        reasons.append(f"has {wanted}")
    there = asked.reached.get(node_id)
    if there is not None and there.came_from is not None:
        reasons.append(_path(memory, node_id, asked.reached))
    reasons += _validity(found)
    if not reasons:
        reasons.append("recent" if "recency" in parts else "important")
    if isinstance(found.node, n.Memory) and found.node.heard:
        reasons.append(_chain(found.node.heard))
    return reasons


def _validity(found: Scored) -> list[str]:
    """Say whether what a text says is over."""
    lines: list[str] = []
    if "outdated" in found.parts:
        is_turn = isinstance(found.node, n.Message)
        over = "what it says was replaced later", "the time for which it holds is over"
        lines.append(over[0] if is_turn else over[1])
    if isinstance(found.node, n.Memory) and found.node.retired_at is not None:
        lines.append(f"no longer holds ({found.node.retired_why or found.node.status})")
    return lines


def _chain(heard: Sequence[str]) -> str:
    """Say who told it on: "told by Bo, who had it from Ana"."""
    last, *before = heard[::-1]
    return f"told by {last}" + "".join(f", who had it from {name}" for name in before)


def _insight(memory: UserMemory, insight: n.Summary) -> str:
    """Say what an insight was drawn from: "insight about Bo from 7 memories"."""
    count = sum(1 for _ in memory.graph.out(insight.id, n.DERIVED_FROM))
    if insight.focus is None:
        return f"insight from {count} insights"
    return f"insight about {memory.display(insight.focus)} from {count} memories"


def _wanted(question: str) -> str:
    """Say what a question asks for, if it is a time or a number."""
    wanted = cues.asks(question)
    kinds = (("a time", wanted.time), ("a number", wanted.number))
    return " or ".join(kind for kind, is_asked in kinds if is_asked and not wanted.name)


def _named(memory: UserMemory, node_id: str, names: Sequence[str]) -> list[str]:
    reasons: list[str] = []
    for entity in names:
        if memory.graph.edge(node_id, entity, n.CONTAINS_ENTITY) is not None:
            reasons.append(f"mentions {memory.display(entity)}")
        elif memory.graph.edge(node_id, entity, n.SENT_BY) is not None:
            reasons.append(f"said by {memory.display(entity)}")
        elif entity == n.USER_NODE and is_of_owner(memory, node_id):
            reasons.append("about the user")
    return reasons


_STEP = {
    n.PREVIOUS: "next to",
    n.DERIVED_FROM: "said in",
    n.CONTAINS_ENTITY: "mentions",
    n.SUPERSEDES: "replaced",
    n.RELATED_TO: "seen with",
    n.SUMMARIZES: "summary of",
    n.IN_TOPIC: "topic",
}


def _path(memory: UserMemory, node_id: str, reached: Mapping[str, Reached]) -> str:
    """Return the way from a seed to a node: "2 steps: Oslo - works at - Ana - mentions - ..."."""
    words: list[str] = []
    here: str = node_id
    steps = 0
    while (there := reached[here]).came_from is not None:
        words += [
            memory.display(here) if steps else "this",
            _STEP.get(there.via, there.via.replace("_", " ")),
        ]
        here = there.came_from
        steps += 1
    words.append(memory.display(here))
    return f"{steps} {'step' if steps == 1 else 'steps'}: {' - '.join(reversed(words))}"

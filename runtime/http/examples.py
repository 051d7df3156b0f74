"""Requests that show how: one in English and one in Chinese for each operation.

They work on what `prepare` writes, so they can be tried, and the tests do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from reverie.http.operation import Example
from reverie.memory_graph.nodes import Dimension

if TYPE_CHECKING:
    from reverie.runtime import Runtime

IDS: dict[str, dict[str, str]] = {
    "english": {
        "world": "town",
        "user": "ana",
        "item": "m1",
        "other": "bo",
        "group": "guild",
        "tag": "day 1",
        "event": "theft",
        "key": "0123456789ab",
    },
    "chinese": {
        "world": "小镇",
        "user": "安娜",
        "item": "m1",
        "other": "阿波",
        "group": "行会",
        "tag": "第一天",
        "event": "失窃",
        "key": "0123456789ab",
    },
}
_SAID = {
    "english": ("Ana's sister lives in Oslo.", "I am allergic to mangoes.", "The amulet is gone."),
    "chinese": ("安娜的姐姐住在奥斯陆。", "我对芒果过敏。", "护身符不见了。"),
}


def both(
    english: Any = None,
    chinese: Any = None,
    *,
    query: Mapping[str, Any] | None = None,
    path: tuple[Mapping[str, str], Mapping[str, str]] = ({}, {}),
) -> dict[str, Example]:
    """Return an example in each language: its body (the same in both if there is one), its query,
    and ids of the path other than `IDS`."""
    chinese = english if chinese is None else chinese
    return {
        "english": Example(english, {**IDS["english"], **path[0]}, query or {}),
        "chinese": Example(chinese, {**IDS["chinese"], **path[1]}, query or {}),
    }


def queries(english: Mapping[str, Any], chinese: Mapping[str, Any]) -> dict[str, Example]:
    """Return an example in each language that differ by their queries."""
    return {
        "english": Example(None, IDS["english"], english),
        "chinese": Example(None, IDS["chinese"], chinese),
    }


def prepare(runtime: Runtime, language: str) -> None:
    """Write the memory that the examples are about."""
    ids = IDS[language]
    sister, mangoes, gone = _SAID[language]
    world = runtime.world(ids["world"])
    ana, bo = world.user(ids["user"]), world.user(ids["other"])
    ana.remember(sister, entities=[("Oslo" if language == "english" else "奥斯陆", "place")])
    bo.remember(mangoes)
    ana.add([{"text": mangoes, "id": "turn-1"}], infer=False, session="s1")
    world.group(ids["group"]).join(ids["user"])
    world.observe(gone, witnesses=[ids["user"], ids["other"]], event_id=ids["event"])
    world.declare(honour=Dimension(low=0.0, high=10.0))
    ana.relationships.move(ids["other"], trust=0.2)
    world.checkpoint(ids["tag"])
    ana.remember(f"{mangoes} {gone}")

"""What can be counted in the sources of an insight, said in English or Chinese.

Each sentence counts exactly the sources that the insight cites, so it can be checked against them.
"""

from __future__ import annotations

from collections.abc import Sequence

from reverie.memory_graph.material import Material, Regularity

_ENGLISH = {
    "together": "{focus} and {name} come up together in {count} of {total} memories.",
    "pleasant": "{count} of {total} memories of {focus} are pleasant ones.",
    "unpleasant": "{count} of {total} memories of {focus} are unpleasant ones.",
    "told": "{count} of {total} memories of {focus} were told by {name}.",
}
_CHINESE = {
    "together": "{total}条关于{focus}的记忆里，有{count}条也提到{name}。",
    "pleasant": "{total}条关于{focus}的记忆里，有{count}条是愉快的。",
    "unpleasant": "{total}条关于{focus}的记忆里，有{count}条是不愉快的。",
    "told": "{total}条关于{focus}的记忆里，有{count}条是{name}说的。",
}


def regular(material: Material, *, is_chinese: bool) -> list[str]:
    """Return a sentence for each regularity of an insight's material."""
    words = _CHINESE if is_chinese else _ENGLISH
    return [_said(words[one.kind], material.name, one) for one in material.regularities]


def _said(words: str, focus: str, one: Regularity) -> str:
    said = words.format(focus=focus, name=one.name, count=one.count, total=one.total)
    # "the mill" begins a sentence; a name that is spelt with care ("iPhone") stays as it is.
    return said[0].upper() + said[1:] if said.split(maxsplit=1)[0].islower() else said


def joined(figures: Sequence[str], told: Sequence[str], *, is_chinese: bool) -> str:
    """Return the text of an insight: the figures on one line, then what is told."""
    first = ("" if is_chinese else " ").join(figures)
    return "\n".join([*([first] if first else []), *told])

"""Answers that fit into a budget of tokens, and say what was left out.

An answer is a mapping with a few fixed fields and some lists. The lists are filled in the order
that they are given, each in its own order, as far as they fit; what did not is counted under
`left_out`. Nothing is dropped without a word.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

Count: TypeAlias = Callable[[str], int]
Shrink: TypeAlias = Callable[[dict[str, Any], int, Count], dict[str, Any] | None]

BYTES_A_TOKEN = 3
LEAST_TOKENS = 400  # of a budget; errors, counts and one item that is cut need some
_NOTE_TOKENS = 60  # kept for `left_out`, the cursor and the hint
_MIN_CUT_CHARS = 24
MAX_MESSAGE_CHARS = 400


def estimated(text: str) -> int:
    """Return about how many tokens a text has for a language model, rather too many.

    UTF-8 bytes by three: English has about 4 bytes a token, JSON and numbers 3, and a Chinese
    character, of 3 bytes, is about one token.
    """
    return math.ceil(len(text.encode("utf-8", "surrogatepass")) / BYTES_A_TOKEN)


class Part(msgspec.Struct, frozen=True):
    """A list of an answer.

    Attributes:
        key: its name in the answer.
        items: all that there is, the most important first.
        more: how many more there are beside `items`.
        share: of the whole budget that is kept for it, if it needs that much, while the lists
            before it are filled.
        shrink: makes an item smaller that does not fit: gets the item, the tokens that are left and
            the counter; None when it cannot be made to say anything.
    """

    key: str
    items: Sequence[dict[str, Any]]
    more: int = 0
    share: float = 0.0
    shrink: Shrink | None = None


class Answer(msgspec.Struct, frozen=True):
    """What a tool found, before it is fitted.

    Attributes:
        head: the fixed fields; they are kept whole.
        parts: its lists.
        cursor: of the next page, if there is one; when not all items of the first list fit, the
            `id` of the last that did takes its place.
        is_paged: whether there is a cursor at all.
        hint: what to do about what was left out.
    """

    head: dict[str, Any]
    parts: tuple[Part, ...] = ()
    cursor: str | None = None
    is_paged: bool = False
    hint: str = ""


def encoded(document: Any) -> str:
    """Return the JSON text of an answer, as it is counted and sent."""
    return msgspec.json.encode(document, enc_hook=str).decode()


def fitted(answer: Answer, budget: int, count: Count) -> dict[str, Any]:
    """Return an answer whose JSON text has at most `budget` tokens.

    Args:
        answer: what was found. Of its `head`, a `text` is cut; the rest must be small.
        budget: in tokens, at least `LEAST_TOKENS`.
        count: the tokens of a text.
    """
    made: dict[str, Any] = dict(answer.head) | {part.key: [] for part in answer.parts}
    if count(encoded(made)) + _NOTE_TOKENS > budget:
        made = cut_text(made, budget - _NOTE_TOKENS, count) or made
    spent = count(encoded(made)) + _NOTE_TOKENS
    sizes = [[count(encoded(item)) + 1 for item in part.items] for part in answer.parts]
    kept = [
        min(sum(size), int(budget * part.share))
        for part, size in zip(answer.parts, sizes, strict=True)
    ]
    for place, part in enumerate(answer.parts):
        room = budget - spent - sum(kept[place + 1 :])
        for item, size in zip(part.items, sizes[place], strict=True):
            shown: dict[str, Any] | None = item
            cost = size
            if size > room:
                shown = part.shrink(item, room - 1, count) if part.shrink is not None else None
                cost = room
            if shown is None:
                break
            made[part.key].append(shown)
            spent += min(cost, count(encoded(shown)) + 1)
            room = budget - spent - sum(kept[place + 1 :])
            if shown is not item:
                break
    _noted(answer, made)
    while count(encoded(made)) > budget and any(made[part.key] for part in answer.parts):
        last = next(part for part in reversed(answer.parts) if made[part.key])
        made[last.key].pop()
        _noted(answer, made)
    return made


def _noted(answer: Answer, made: dict[str, Any]) -> None:
    """Say what is not there, and where the next page begins."""
    left = {
        part.key: more
        for part in answer.parts
        if (more := len(part.items) - len(made[part.key]) + part.more) > 0
    }
    for key in ("left_out", "hint", "cursor"):
        made.pop(key, None)
    if answer.is_paged:
        (part,) = answer.parts
        shown = made[part.key]
        is_whole = len(shown) == len(part.items)
        left = {} if is_whole else left
        if is_whole:
            made["cursor"] = answer.cursor
        else:  # one that does not fit at all is passed over, or no page would come after it
            made["cursor"] = shown[-1]["id"] if shown else part.items[0]["id"]
    if left:
        made["left_out"] = left
        if answer.hint:
            made["hint"] = answer.hint


def cut_text(item: dict[str, Any], room: int, count: Count) -> dict[str, Any] | None:
    """Return an item with the longest beginning of its `text` that fits; see `Part.shrink`."""
    text = item.get("text", "")
    low, high, best = _MIN_CUT_CHARS, len(text), None
    while low <= high:
        middle = (low + high) // 2
        shown = item | {"text": text[:middle].rstrip() + "...", "is_cut": True}
        if count(encoded(shown)) <= room:
            low, best = middle + 1, shown
        else:
            high = middle - 1
    return best


def cut_list(key: str) -> Shrink:
    """Return a `Part.shrink` that keeps the first items of a list of texts."""

    def shrink(item: dict[str, Any], room: int, count: Count) -> dict[str, Any] | None:
        texts = item[key]
        low, high, best = 0, len(texts) - 1, None
        while low <= high:
            middle = (low + high) // 2
            shown = item | {key: texts[:middle], f"{key}_left_out": len(texts) - middle}
            if count(encoded(shown)) <= room:
                low, best = middle + 1, shown
            else:
                high = middle - 1
        return best

    return shrink


def short(text: str, most: int = MAX_MESSAGE_CHARS) -> str:
    """Return a message that JSON can hold, cut in the middle when it is long: what it quotes may
    be huge, or hold no proper characters."""
    text = text if text.isprintable() else text.encode(errors="replace").decode()
    if len(text) <= most:
        return text
    half = (most - 5) // 2
    return f"{text[:half]} ... {text[-half:]}"


def bounded(details: Mapping[str, Any]) -> dict[str, Any]:
    """Return the details of an error, with long texts cut and lists counted."""
    made: dict[str, Any] = {}
    for key, value in details.items():
        if isinstance(value, str):
            made[key] = short(value, 120)
        elif isinstance(value, bool | int | float) or value is None:
            made[key] = value
        else:
            made[key] = [short(str(one), 60) for one in list(value)[:5]]
    return made

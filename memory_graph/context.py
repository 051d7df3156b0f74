"""Hits as a block of text for a prompt, within a budget of tokens.

Facts and preferences come first, then events, summaries and turns; each line carries its date and
its source. The budget is kept by the caller's own token counter. What does not fit is left out
line by line, and a line that cannot fit whole is cut at the end: never all or nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import msgspec

from reverie.memory_graph.views import Hit

HEADINGS = (
    ("Facts", "memory", ("fact", "preference")),
    ("Events", "memory", ("event",)),
    ("Summaries", "summary", (None,)),
    ("Said", "message", (None,)),
)
MIN_CUT_TOKENS = 12  # a line cut shorter than this says nothing
MAX_IN_VAIN = 8  # so many hits in a row that did not fit end the search for one that does


class Context(msgspec.Struct, frozen=True):
    """A block for a prompt. `tokens` is its exact size by the counter that was given."""

    text: str
    tokens: int
    hits: tuple[Hit, ...]
    left_out: int = 0


def assemble(
    hits: Sequence[Hit],
    budget_tokens: int,
    count_tokens: Callable[[str], int],
    show_time: Callable[[float], str],
) -> Context:
    """Return the block of as many hits, best first, as fit in `budget_tokens`.

    Args:
        hits: best first; later ones of equal text are merged into the first.
        budget_tokens: the bound on `count_tokens(text)` of the result, at least 1.
        count_tokens: tokens of a text for the model that will read it.
        show_time: how to show a time in seconds.
    """
    chosen: list[tuple[Hit, str]] = []
    seen: set[str] = set()
    at_most = 0  # tokens of the block so far: the sum over its lines bounds the whole
    in_vain = 0
    left_out = 0
    for hit in hits:
        if hit.text in seen:
            continue
        if in_vain == MAX_IN_VAIN:  # the budget is used up
            left_out += 1
            continue
        line = _line(hit, hit.text, show_time)
        bound = at_most + _line_tokens(hit, line, chosen, count_tokens)
        if bound > budget_tokens:
            bound = count_tokens(_render([*chosen, (hit, line)]))
        if bound > budget_tokens:
            cut = _cut(hit, chosen, budget_tokens, count_tokens, show_time)
            if cut is None:
                in_vain += 1
                left_out += 1
                continue
            line = cut
            bound = count_tokens(_render([*chosen, (hit, line)]))
        chosen.append((hit, line))
        seen.add(hit.text)
        at_most, in_vain = bound, 0
    text = _render(chosen)
    while chosen and (tokens := count_tokens(text)) > budget_tokens:  # of a counter that is odd
        chosen.pop()
        left_out += 1
        text = _render(chosen)
    return Context(text, tokens if chosen else 0, tuple(h for h, _ in chosen), left_out)


def _line_tokens(
    hit: Hit,
    line: str,
    chosen: Sequence[tuple[Hit, str]],
    count_tokens: Callable[[str], int],
) -> int:
    """Return how many tokens a line adds at most, with its heading if it is the first under it."""
    heading = _heading(hit)
    has = any(_heading(other) == heading for other, _ in chosen)
    return count_tokens(f"\n{line}") + (0 if has else count_tokens(f"\n{heading}:"))


def _heading(hit: Hit) -> str:
    return next(
        h for h, item_type, kinds in HEADINGS if hit.type == item_type and hit.kind in kinds
    )


def _line(hit: Hit, text: str, show_time: Callable[[float], str]) -> str:
    source = f"; from {', '.join(hit.sources[:3])}" if hit.sources else f"; {hit.id}"
    who = f"{hit.speaker}: " if hit.type == "message" and hit.speaker else ""
    ended = "" if hit.valid_to is None else f" to {show_time(hit.valid_to)}"
    told = f"; told by {hit.told_by}" if hit.told_by else ""
    old = "; replaced later" if "outdated" in hit.parts else ""
    return f"- {who}{' '.join(text.split())} ({show_time(hit.at)}{ended}{told}{source}{old})"


def _render(chosen: Sequence[tuple[Hit, str]]) -> str:
    blocks = []
    for heading, item_type, kinds in HEADINGS:
        lines = [line for hit, line in chosen if hit.type == item_type and hit.kind in kinds]
        if lines:
            blocks.append("\n".join([f"{heading}:", *lines]))
    return "\n".join(blocks)


def _cut(
    hit: Hit,
    chosen: Sequence[tuple[Hit, str]],
    budget_tokens: int,
    count_tokens: Callable[[str], int],
    show_time: Callable[[float], str],
) -> str | None:
    """Return the longest cut line of a hit that still fits, or None if that says too little."""
    shortest = _line(hit, "...", show_time)
    if count_tokens(_render([*chosen, (hit, shortest)])) + MIN_CUT_TOKENS > budget_tokens:
        return None
    low, high, best = 0, len(hit.text) - 1, None
    while low <= high:
        middle = (low + high) // 2
        line = _line(hit, hit.text[:middle] + "...", show_time)
        if count_tokens(_render([*chosen, (hit, line)])) <= budget_tokens:
            best, low = middle, middle + 1
        else:
            high = middle - 1
    if not best or count_tokens(hit.text[:best]) < MIN_CUT_TOKENS:
        return None
    return _line(hit, hit.text[:best] + "...", show_time)


def utc_day(at: float) -> str:
    """Return a time in seconds as a UTC date, or as a plain number outside of years 1 to 9999."""
    try:
        return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d")
    except (ValueError, OverflowError, OSError):
        return f"t={at:g}"

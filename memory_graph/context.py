"""Hits as a block of text for a prompt, within a budget of tokens.

Facts and preferences come first, then events, summaries and turns; each line carries its date and
its source. What says the same is shown once. The budget is kept by the caller's own token counter:
what does not fit is passed over for smaller lines further down, and what is left over in the end
takes the beginning of the best line that did not fit. Never all or nothing.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import msgspec

from reverie.memory_graph.same import Statement, merged
from reverie.memory_graph.views import Hit

HEADINGS = (
    ("Facts", "memory", ("fact", "preference")),
    ("Events", "memory", ("event",)),
    ("Summaries", "summary", (None,)),
    ("Said", "message", (None,)),
)
RELATIONSHIPS = "Relationships"
EQUAL_RELEVANCE = 0.1  # scores that round to the same multiple of it are equally relevant
MAX_SOURCES = 3  # named in a line
MIN_CUT_TOKENS = 12  # a line cut shorter than this says nothing
MAX_CUTS_TRIED = 4
JOINED_TOKENS = 4  # a line may have so many tokens fewer within the block than by itself


class Context(msgspec.Struct, frozen=True):
    """A block for a prompt.

    Attributes:
        text: the block.
        tokens: its exact size by the counter that was given.
        hits: those that it shows, best first.
        left_out: statements and relationships that did not fit.
    """

    text: str
    tokens: int
    hits: tuple[Hit, ...]
    left_out: int = 0


def assemble(
    hits: Sequence[Hit],
    budget_tokens: int,
    count_tokens: Callable[[str], int],
    show_time: Callable[[float], str],
    relationships: Sequence[str] = (),
) -> Context:
    """Return the block of as many hits, best first, as fit in `budget_tokens`.

    Nothing that was left out would fit whole into what is left of the budget, as long as a longer
    text never has fewer tokens.

    Args:
        hits: best first. Those that say the same are merged (see same.py); of equally relevant ones
            the newest that still holds comes first.
        budget_tokens: the bound on `count_tokens(text)` of the result, at least 1.
        count_tokens: tokens of a text for the model that will read it.
        show_time: how to show a time in seconds.
        relationships: lines that go before the hits, as far as they fit, the first ones first.
    """
    block = _Block(budget_tokens, count_tokens)
    dropped = sum(not block.add_relationship(line) for line in relationships)
    left: list[tuple[int, Statement]] = []
    for place, statement in enumerate(sorted(merged(hits), key=_order)):
        line = _line(statement, statement.hit.text, show_time)
        if not block.add(place, statement.hit, line):
            left.append((place, statement))
    for place, statement in left[:MAX_CUTS_TRIED]:
        if _add_cut(block, place, statement, show_time):
            left.remove((place, statement))
            break
    dropped += block.keep_budget()
    text = block.text()
    tokens = count_tokens(text) if text else 0
    return Context(text, tokens, tuple(hit for _, hit, _ in block.lines), len(left) + dropped)


def _order(statement: Statement) -> tuple[int, bool, float]:
    """Sort by relevance; within equal relevance what still holds first, and the newest first."""
    hit = statement.hit
    is_over = "outdated" in hit.parts or hit.status in {"superseded", "expired"}
    return (-round(statement.relevance / EQUAL_RELEVANCE), is_over, -hit.at)


class _Block:
    """Lines that fit into the budget together. Each is (place in the ranking, hit, line)."""

    def __init__(self, budget_tokens: int, count_tokens: Callable[[str], int]) -> None:
        self.lines: list[tuple[int, Hit, str]] = []
        self._budget, self._count = budget_tokens, count_tokens
        self._headings: set[str] = set()
        self._relationships: list[str] = []
        # The sum over the lines bounds the whole, and costs less than counting that each time.
        self._most, self._is_exact = 0, True

    def add_relationship(self, line: str) -> bool:
        """Add a line about a relationship if it fits; they come before any other."""
        self._relationships.append(f"- {' '.join(line.split())}")
        size = self._count(self.text())
        if size > self._budget:
            del self._relationships[-1]
            return False
        self._most, self._is_exact = size, True
        return True

    def add(self, place: int, hit: Hit, line: str) -> bool:
        """Add a line if it fits."""
        heading = _heading(hit)
        alone = self._count(f"\n{line}")
        if heading not in self._headings:
            alone += self._count(f"\n{heading}:")
        most, is_exact = self._most + alone, False
        if most > self._budget:
            if not self._is_exact:
                self._most, self._is_exact = self._count(self.text()), True
            if self._most + alone - JOINED_TOKENS > self._budget:
                return False
            most, is_exact = self._count(self.text((place, hit, line))), True
            if most > self._budget:
                return False
        insort(self.lines, (place, hit, line), key=lambda entry: entry[0])
        self._headings.add(heading)
        self._most, self._is_exact = most, is_exact
        return True

    def room(self, place: int, hit: Hit, line: str) -> int:
        """Return how many tokens would be left with one more line; negative when it is too long."""
        return self._budget - self._count(self.text((place, hit, line)))

    def tokens(self, text: str) -> int:
        """Return the tokens of a text by itself."""
        return self._count(text)

    def text(self, more: tuple[int, Hit, str] | None = None) -> str:
        """Return the block, with one more line if one is given."""
        lines = self.lines
        if more is not None:
            lines = sorted([*lines, more], key=lambda entry: entry[0])
        blocks = []
        if self._relationships:
            blocks.append("\n".join([f"{RELATIONSHIPS}:", *self._relationships]))
        for heading, _, _ in HEADINGS:
            under = [line for _, hit, line in lines if _heading(hit) == heading]
            if under:
                blocks.append("\n".join([f"{heading}:", *under]))
        return "\n".join(blocks)

    def keep_budget(self) -> int:
        """Drop the last lines while the whole exceeds the budget, which only happens with a counter
        by which a text has more tokens than its lines; return how many."""
        dropped = 0
        while self.lines and self._count(self.text()) > self._budget:
            self.lines.pop()
            dropped += 1
        while self._relationships and self._count(self.text()) > self._budget:
            self._relationships.pop()
            dropped += 1
        return dropped


def _heading(hit: Hit) -> str:
    return next(
        h for h, item_type, kinds in HEADINGS if hit.type == item_type and hit.kind in kinds
    )


def _line(statement: Statement, text: str, show_time: Callable[[float], str]) -> str:
    hit = statement.hit
    sources = (*(hit.sources or (hit.id,)), *statement.also)[:MAX_SOURCES]
    source = f"; {'from ' if hit.sources else ''}{', '.join(sources)}"
    who = f"{hit.speaker}: " if hit.type == "message" and hit.speaker else ""
    ended = "" if hit.valid_to is None else f" to {show_time(hit.valid_to)}"
    told = f"; told by {hit.told_by}" if hit.told_by else ""
    old = "; replaced later" if "outdated" in hit.parts else ""
    return f"- {who}{' '.join(text.split())} ({show_time(hit.at)}{ended}{told}{source}{old})"


def _add_cut(
    block: _Block, place: int, statement: Statement, show_time: Callable[[float], str]
) -> bool:
    """Add the longest beginning of a statement that fits; False if that would say too little."""
    hit = statement.hit

    def cut(end: int) -> str:
        return _line(statement, f"{hit.text[:end].rstrip()}...", show_time)

    if block.room(place, hit, cut(0)) < MIN_CUT_TOKENS:
        return False
    low, high, best = 1, len(hit.text) - 1, 0
    while low <= high:
        middle = (low + high) // 2
        if block.room(place, hit, cut(middle)) >= 0:
            best, low = middle, middle + 1
        else:
            high = middle - 1
    if not best or block.tokens(hit.text[:best]) < MIN_CUT_TOKENS:
        return False
    return block.add(place, hit, cut(best))


def utc_day(at: float) -> str:
    """Return a time in seconds as a UTC date, or as a plain number outside of years 1 to 9999."""
    try:
        return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d")
    except (ValueError, OverflowError, OSError):
        return f"t={at:g}"

"""What a new statement does to the known ones, by rules alone."""

from __future__ import annotations

from collections.abc import Sequence

from reverie.memory_graph.drafts import Decision, Known, MemoryDraft
from reverie.memory_graph.errors import InvalidValueError
from reverie.models.rules.compare import (
    another_value,
    flipped,
    opposite_state,
    rescheduled,
    says_the_same,
)
from reverie.models.rules.names import chinese_names, english_names
from reverie.models.rules.reading import Said, read
from reverie.models.rules.text import fold, is_chinese

ADD = Decision("ADD", reason="nothing known about this")


class RulesDecider:
    """Duplicates, one-valued slots, reversals and endings, from slots and plain texts.

    Cautious: a wrong UPDATE or DELETE hides something true, a spare ADD only repeats, so
    whatever no rule recognises, or fits two memories alike, is an ADD. The text is only ever
    compared: no wording of it is an instruction.

    Args:
        near_duplicate: cosine from which two statements with the same slot, stand, numbers and
            names are the same; a property of the embedder.

    Raises:
        InvalidValueError: `near_duplicate` is not within 0 to 1.
    """

    def __init__(self, near_duplicate: float = 0.9) -> None:
        if not 0.0 <= near_duplicate <= 1.0:
            msg = f"near_duplicate must be within 0 to 1, not {near_duplicate}"
            raise InvalidValueError(msg, near_duplicate=near_duplicate)
        self.near_duplicate = near_duplicate

    def decide(self, draft: MemoryDraft, known: Sequence[Known]) -> Decision:
        """Return the decision for `draft`.

        Args:
            draft: the new statement; `slot` may be None, it is then read from the text.
            known: the nearest active memories; their slots may be None as well.
        """
        if not known:
            return ADD
        new = read(draft.text, draft.slot, draft.polarity)
        olds = [(item, read(item.text, item.slot)) for item in known]
        for item, old in olds:
            if says_the_same(new, old) or self._near(new, old, item):
                return Decision("NOOP", item.id, "says the same")
        fits: list[tuple[Known, str, str]] = []
        for item, old in olds:
            if op := flipped(new, old):
                fits.append(
                    (item, op, "no longer holds" if op == "DELETE" else "says the opposite")
                )
            elif op := rescheduled(new, old):
                fits.append((item, op, "was called off" if op == "DELETE" else "was moved"))
            elif opposite_state(new, old):
                fits.append((item, "UPDATE", "says the opposite"))
        if fits:
            return _only(fits, {item.id: old for item, old in olds}, new)
        values = [item for item, old in olds if another_value(new, old)]
        if values:
            newest = max(values, key=lambda item: (item.recorded_at, item.similarity))
            return Decision("UPDATE", newest.id, f"another value of {new.slot}")
        return ADD

    def _near(self, new: Said, old: Said, item: Known) -> bool:
        a, b = new.claim, old.claim
        if item.similarity < self.near_duplicate or new.numbers != old.numbers:
            return False
        if (a is None) != (b is None):
            return False
        if a is not None and b is not None:
            if (a.slot, a.polarity, a.ended) != (b.slot, b.polarity, b.ended):
                return False
            if a.explicit and a.key != b.key:
                return False
        return _names(new.text) == _names(old.text)


def _names(text: str) -> frozenset[str]:
    found = chinese_names(text) if is_chinese(text) else english_names(text)
    return frozenset(fold(entity.name) for entity in found)


def _only(fits: list[tuple[Known, str, str]], olds: dict[str, Said], new: Said) -> Decision:
    """The one memory that is meant; where several are and differ, nothing is touched."""
    if len(fits) > 1:
        exact = [f for f in fits if olds[f[0].id].slot == new.slot]
        fits = exact or fits
    if len(fits) > 1 and new.claim is not None:
        words = [olds[f[0].id].claim for f in fits]
        objects = {(fold(c.object), fold(c.extra)) for c in words if c is not None}
        if len(objects) > 1:
            return Decision("ADD", reason="could mean several known statements")
    item, op, reason = max(fits, key=lambda f: (f[0].recorded_at, f[0].similarity))
    return Decision("UPDATE" if op == "UPDATE" else "DELETE", item.id, reason)

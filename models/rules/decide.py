"""What a new statement does to the known ones, by rules alone."""

from __future__ import annotations

from collections.abc import Sequence

from reverie.memory_graph.drafts import Decision, Known, MemoryDraft
from reverie.memory_graph.errors import InvalidValueError
from reverie.models.rules.apart import MAX_STATEMENT_CHARS, apart, is_command, names_of
from reverie.models.rules.changes import (
    HAN_FILLERS,
    another_holder,
    denied,
    elsewhere,
    gone,
    instead,
    is_denied,
    moments,
    narrows,
    other_moment,
    same_but_value,
    turned,
)
from reverie.models.rules.compare import (
    another_value,
    flipped,
    opposite_state,
    rescheduled,
    says_the_same,
)
from reverie.models.rules.endings import ended_by_deed
from reverie.models.rules.reading import Said, read, readings
from reverie.models.rules.text import fold, is_chinese

ADD = Decision("ADD", reason="nothing known about this")
COMMAND = Decision("ADD", reason="an order, which changes nothing")
AMBIGUOUS = "could mean several known statements"


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
        if is_command(draft.text):
            return COMMAND
        said = readings(draft.text, draft.slot, draft.polarity)
        new = said[0]
        olds = [(item, read(item.text, item.slot)) for item in known]
        for item, old in olds:
            if says_the_same(new, old) or self._near(new, old, item):
                return Decision("NOOP", item.id, "says the same")
        found = ADD
        for part in said:
            found = self._change(part, olds)
            if found != ADD:
                break
        return found

    def _change(self, new: Said, olds: Sequence[tuple[Known, Said]]) -> Decision:
        fits: list[tuple[Known, str, str]] = []
        if len(new.text) > MAX_STATEMENT_CHARS:
            return ADD
        olds = [found for found in olds if len(found[1].text) <= MAX_STATEMENT_CHARS]
        for item, old in olds:
            if (op := flipped(new, old)) and not _misses(new, old):
                fits.append(
                    (item, op, "no longer holds" if op == "DELETE" else "says the opposite")
                )
            elif op := rescheduled(new, old):
                fits.append((item, op, "was called off" if op == "DELETE" else "was moved"))
            elif op := denied(new, old):
                fits.append((item, op, "no longer so" if op == "DELETE" else "so again"))
            elif op := ended_by_deed(new, old):
                fits.append((item, op, "is over" if op == "DELETE" else "has come of it"))
            elif gone(new, old):
                fits.append((item, "DELETE", "is gone"))
            elif turned(new, old) or (opposite_state(new, old) and not other_moment(new, old)):
                fits.append((item, "UPDATE", "says the opposite"))
        if fits:
            return _only(fits, {item.id: old for item, old in olds}, new)
        values = [
            item
            for item, old in olds
            if another_value(new, old)
            or another_holder(new, old)
            or instead(new, old)
            or (same_but_value(new, old) and not apart(new, old))
        ]
        if values:
            newest = max(values, key=lambda item: (item.recorded_at, item.similarity))
            return Decision("UPDATE", newest.id, f"another value of {new.slot}")
        return ADD

    def _near(self, new: Said, old: Said, item: Known) -> bool:
        a, b = new.claim, old.claim
        if item.similarity < self.near_duplicate or new.numbers != old.numbers:
            return False
        if moments(new.text) != moments(old.text) or is_denied(new.text) != is_denied(old.text):
            return False
        if (a is None) != (b is None):
            return False
        if a is not None and b is not None:
            if (a.slot, a.polarity, a.ended) != (b.slot, b.polarity, b.ended):
                return False
            if a.explicit and a.key != b.key:
                return False
        if not _mostly_shared(new, old):
            return False
        return names_of(new.text) == names_of(old.text)


def _mostly_shared(new: Said, old: Said) -> bool:
    """Whether `new` has hardly a word of its own: short texts are near for their form alone."""
    left = new.words - old.words
    if is_chinese(new.text):
        return len(left - HAN_FILLERS) <= 1
    return 3 * len(left) <= len(new.words)


def _misses(new: Said, old: Said) -> bool:
    """Whether a denial is of another case, or an ending of a thing elsewhere."""
    if elsewhere(new, old):
        return new.claim is not None and new.claim.about.group == "having"
    return new.claim is not None and not new.claim.ended and narrows(new, old)


def _only(fits: list[tuple[Known, str, str]], olds: dict[str, Said], new: Said) -> Decision:
    """The one memory that is meant; where several are and differ, nothing is touched."""
    if len(fits) > 1:
        exact = [f for f in fits if olds[f[0].id].slot == new.slot]
        fits = exact or fits
    if len(fits) > 1 and new.claim is not None:
        words = [olds[f[0].id].claim for f in fits]
        objects = {(fold(c.object), fold(c.extra)) for c in words if c is not None}
        if len(objects) > 1:
            return Decision("ADD", reason=AMBIGUOUS)
    item, op, reason = max(fits, key=lambda f: (f[0].recorded_at, f[0].similarity))
    return Decision("UPDATE" if op == "UPDATE" else "DELETE", item.id, reason)

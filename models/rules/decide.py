"""What a new statement does to the known ones, by rules alone."""

from __future__ import annotations

from collections.abc import Sequence

from reverie.memory_graph.drafts import Decision, Known, MemoryDraft
from reverie.memory_graph.errors import InvalidValueError
from reverie.models.rules.apart import (
    MAX_STATEMENT_CHARS,
    apart,
    is_command,
    names_of,
)
from reverie.models.rules.appointments import rescheduled
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
    differs_in_mood,
    flipped,
    says_the_same,
)
from reverie.models.rules.endings import ended_by_deed, stays
from reverie.models.rules.people import named_people, other_person
from reverie.models.rules.reading import Said, is_unsaid, read, readings
from reverie.models.rules.sides import contrary, sides
from reverie.models.rules.states import opposite_state
from reverie.models.rules.text import fold, is_chinese, key_words

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
        olds = [(item, old) for item, old in olds if not _of_others(new, old)]
        for item, old in olds:
            if says_the_same(new, old) or self._near(new, old, item):
                return Decision("NOOP", item.id, "says the same")
        found = ADD
        for part in said:
            found = self._change(part, olds)
            if found != ADD:
                break
        return self._kept_whole(found, draft.text)

    @staticmethod
    def _kept_whole(found: Decision, text: str) -> Decision:
        """An end that says what holds instead is an update: a deletion would lose that."""
        if is_unsaid(text) and found.op == "UPDATE":
            return Decision("DELETE", found.target, found.reason)
        if found.op == "DELETE" and not is_unsaid(text) and sides(text).goes_on:
            return Decision("UPDATE", found.target, found.reason)
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
        kept = {item.id for item, old in olds if stays(new, old)}
        later = {item.id for item, old in olds if other_moment(new, old)}
        fits = [
            (item, op, why)
            for item, op, why in fits
            if not (item.id in kept and (op == "DELETE" or why == "was moved"))
            and not (item.id in later and op == "DELETE")
        ]
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
            if not a.key and fold(a.object) != fold(b.object):
                return False  # "is on", "is new"
        if contrary(new.text, old.text) or differs_in_mood(new, old):
            return False
        if not (_mostly_shared(new, old) and _same_who(new, old)):
            return False
        return names_of(new.text) == names_of(old.text)


# English words that say how or where to, not what.
_LIGHT = key_words(
    """really very always still just much quite also usually often over up out down off away back
    around together about regularly mostly generally normally particularly especially every day"""
)


def _mostly_shared(new: Said, old: Said) -> bool:
    """Whether `new` has hardly a word of its own, and none in the place of another: short texts
    are near for their form alone, and one word is all the difference between open and closed."""
    light = HAN_FILLERS if is_chinese(new.text) else _LIGHT
    left, right = new.words - old.words - light, old.words - new.words - light
    if left and right:
        return False
    most = 1 if is_chinese(new.text) else len(new.words) // 4
    return len(left) <= most and len(right) <= 1


def _same_who(new: Said, old: Said) -> bool:
    """Whether two near texts name the same people: one word makes it somebody's mother."""
    a, b = new.claim, old.claim
    if a is not None and b is not None and a.owner != b.owner:
        return False
    return named_people(new.text) == named_people(old.text)


def _of_others(new: Said, old: Said) -> bool:
    a, b = new.claim, old.claim
    return a is not None and b is not None and a.owner == b.owner and other_person(a, b)


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

"""Models on masked text: a placeholder reads like a name to them, and comes back as it was.

The models never see what was masked, so whatever they return cannot hold it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from reverie.memory_graph.drafts import Decision, EntityDraft, Known, MemoryDraft
from reverie.models.masking.placeholders import PLACEHOLDER, base_of, placeholder
from reverie.models.protocol import Decider, Extraction, Extractor, Turn

_LETTERS = str.maketrans("0123456789.", "bcdfghjklmn")
_DIGITS = str.maketrans("bcdfghjklmn", "0123456789.")
# A made-up word for each placeholder: "Qoza", the number in consonants, and "o": "Qozacbo".
_IN_A_SLOT = re.compile(PLACEHOLDER.pattern, re.IGNORECASE)  # slots are casefolded
_STAND_IN = re.compile(r"(?<![^\W_])qoza(?P<n>[b-n]+)o(?![^\W_])", re.IGNORECASE | re.ASCII)
_STAND_IN_ADDRESS = re.compile(r"(?<![\w.])(?P<n>[b-n]+)@qoza\.invalid", re.IGNORECASE)


def stand_in(text: str) -> str:
    """Return `text` with numbered placeholders of people and addresses as words that look so."""

    def word(match: re.Match[str]) -> str:
        number, spelling = match["number"], match["spelling"]
        if number is None or match["kind"] not in {"PERSON", "EMAIL"}:
            return match.group()
        letters = (number if spelling is None else f"{number}.{spelling}").translate(_LETTERS)
        return f"Qoza{letters}o" if match["kind"] == "PERSON" else f"{letters}@qoza.invalid"

    return PLACEHOLDER.sub(word, text)


def put_back(text: str) -> str:
    """Undo `stand_in`, whatever has become of capitals."""

    def back(kind: str) -> Callable[[re.Match[str]], str]:
        def one(match: re.Match[str]) -> str:
            number, _, spelling = match["n"].lower().translate(_DIGITS).partition(".")
            if not number.isdecimal() or (spelling and not spelling.isdecimal()):
                return match.group()
            return placeholder(kind, int(number), int(spelling or 1))

        return one

    return _STAND_IN_ADDRESS.sub(back("email"), _STAND_IN.sub(back("person"), text))


class MaskedExtractor:
    """An extractor for masked turns, around any other."""

    def __init__(self, inner: Extractor) -> None:
        self.inner = inner

    def extract(self, turns: Sequence[Turn], history: Sequence[Turn]) -> list[Extraction]:
        """Return what the inner extractor finds; people with a placeholder are always named."""
        found = self.inner.extract([_reworded(t) for t in turns], [_reworded(t) for t in history])
        return [_restored(e, t) for e, t in zip(found, turns, strict=True)]


class MaskedDecider:
    """A decider for masked memories, around any other."""

    def __init__(self, inner: Decider) -> None:
        self.inner = inner

    def decide(self, draft: MemoryDraft, known: Sequence[Known]) -> Decision:
        """Return the inner decider's decision."""
        worded = msgspec.structs.replace(
            draft, text=stand_in(draft.text), slot=_slot(draft.slot, stand_in)
        )
        others = [
            msgspec.structs.replace(k, text=stand_in(k.text), slot=_slot(k.slot, stand_in))
            for k in known
        ]
        decision = self.inner.decide(worded, others)
        return msgspec.structs.replace(decision, reason=put_back(decision.reason))


def _slot(slot: str | None, change: Callable[[str], str]) -> str | None:
    if slot is None:
        return None
    changed = change(_IN_A_SLOT.sub(lambda m: m.group().upper(), slot))
    return PLACEHOLDER.sub(lambda m: m.group().lower(), changed).lower()


def _reworded(turn: Turn) -> Turn:
    return msgspec.structs.replace(turn, text=stand_in(turn.text), speaker=stand_in(turn.speaker))


def _restored(found: Extraction, turn: Turn) -> Extraction:
    memories = tuple(msgspec.structs.replace(m, **_fields(m)) for m in found.memories)
    named = [m.group() for m in PLACEHOLDER.finditer(turn.text) if m["kind"] == "PERSON"]
    people = [EntityDraft(base_of(name), "person") for name in named]
    entities = [*(_entity(e) for e in found.entities if not _is_number(e)), *people]
    once = {entity.name: entity for entity in reversed(entities)}
    return msgspec.structs.replace(
        found, memories=memories, entities=tuple(reversed(once.values()))
    )


def _fields(memory: MemoryDraft) -> dict[str, Any]:
    relations = tuple(
        msgspec.structs.replace(r, head=_name(r.head), tail=_name(r.tail)) for r in memory.relations
    )
    return {
        "text": put_back(memory.text),
        "slot": _slot(memory.slot, put_back),
        "told_by": None if memory.told_by is None else _name(memory.told_by),
        "entities": tuple(_entity(e) for e in memory.entities if not _is_number(e)),
        "relations": relations,
        "topics": tuple(map(put_back, memory.topics)),
        "tags": tuple(map(put_back, memory.tags)),
    }


def _is_number(entity: EntityDraft) -> bool:
    """Whether a name is what a model took out of the brackets of a number: PHONE_1."""
    return PLACEHOLDER.fullmatch(f"[{entity.name.strip('[]')}]") is not None


def _entity(entity: EntityDraft) -> EntityDraft:
    name = _name(entity.name)
    is_person = name != entity.name and name.startswith("[PERSON_")
    return EntityDraft(
        name, "person" if is_person else entity.type, tuple(map(_name, entity.aliases))
    )


def _name(name: str) -> str:
    return base_of(put_back(name))

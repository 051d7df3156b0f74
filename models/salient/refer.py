"""What "it" is when the turn before names it: asked for a lantern, "I lost it" is about that.

Only the one plain thing of the sentence before is taken, only for an object pronoun, and only where
nothing nearer could be meant. Whatever is unclear stays as it was said.
"""

# ruff: noqa: E501 - a pattern reads better whole than broken
from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from reverie.models.protocol import Turn
from reverie.models.rules.extract import is_machine
from reverie.models.rules.names import english_names
from reverie.models.rules.phrases import forms
from reverie.models.rules.text import clean, is_chinese, sentences
from reverie.models.rules.things import things

_MOVED = forms(
    "lose", "sell", "give", "find", "leave", "take", "break", "steal", "hide", "keep", "drop", "buy", "return", "bring",
    "burn", "eat", "drink", "destroy", "bury", "lend", "borrow", "fix", "repair", "get", "send", "see", "carry", "trade",
    "build", "make", "finish", "adopt", "swap", "replace", "cancel", "donate", "forge", "fill", "pay",
)  # fmt: skip
_OBJECT = re.compile(
    rf"\b(?:I|we|I've|we've|you|he|she|they) (?:\w+ )?{_MOVED} (?P<it>it|them)\b", re.IGNORECASE
)
_SOLE = re.compile(
    r"\b(?P<whose>my|our|your|the|that|a|an|his|her|their|[A-Z]\w+'s) (?:(?:old|new|little|big|own|favou?rite) )?$"
)


_LEANING = re.compile(
    r"\b(?!(?:about|that|this|than|when|what|where|like|then|because|make|makes|made|call|get|got)\b)[a-z]{3,} (?P<it>it|them)\b(?!'|-| (?:is|was|will|would|has|to|that)\b)"
)


class Meant(msgspec.Struct, frozen=True):
    """A sentence in which "it" was replaced, what it stands for, and the turn that says so."""

    text: str
    thing: str
    turn_id: str


def leans(sentence: str) -> bool:
    """Return whether an English sentence has an "it" for an object that nothing in it names."""
    it = _LEANING.search(sentence)
    if it is None:
        return False
    nearer = sentence[: it.start("it")]
    return not (things(nearer) or english_names(nearer, first=False))


def with_thing(
    sentence: str, earlier: Sequence[str], before: Sequence[Turn], owner: str
) -> Meant | None:
    """Return an English sentence with the thing of the turn before in the place of its "it".

    Args:
        sentence: one sentence, in the first person.
        earlier: the sentences before it in its turn; a thing named there is nearer.
        before: the turns before, oldest first.
        owner: the speaker of the last of them as others call them; "" for a machine.
    """
    if not before or is_chinese(sentence) or (it := _OBJECT.search(sentence)) is None:
        return None
    nearer = [*earlier, sentence[: it.start("it")]]
    if any(things(text) or english_names(text) for text in nearer):
        return None
    last = before[-1]
    said = [s for s in sentences(clean(last.text)) if not s.startswith("[")]
    named = {draft.name.casefold(): (draft.name, s) for s in said for draft in things(s)}
    if len(named) != 1:
        return None
    ((name, said_in),) = named.values()
    whose = _SOLE.search(said_in[: said_in.find(name)])
    if whose is None:
        return None
    holder = whose["whose"].lower()
    if holder in {"my", "our"}:
        if not owner or is_machine(last):
            return None
        thing = f"{owner}'s {name}"
    elif holder == "your":
        thing = f"my {name}"
    elif holder in {"his", "her", "their"}:
        return None
    else:
        thing = f"{whose['whose'] if whose['whose'][0].isupper() else 'the'} {name}"
    text = f"{sentence[: it.start('it')]}{thing}{sentence[it.end('it') :]}"
    return Meant(text, name, last.id)

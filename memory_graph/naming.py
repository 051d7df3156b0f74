"""Who and what a question names: entities by exact name or alias, and those who speak."""

from __future__ import annotations

import re
from collections.abc import Mapping

from reverie.memory_graph import nodes as n
from reverie.memory_graph.state import UserMemory
from reverie.memory_graph.text import normalise, query_terms

OWN_WORDS = frozenset({"i", "me", "my", "mine", "myself", "i'm", "i've", "i'd", "i'll"})
OWN_HAN = "\u6211"  # I, in Chinese; also in "we", which includes the owner
SHORT_NAME = 3  # letters of a speaker's name that stand for it, as "Mel" for Melanie
MAX_NAME_WORDS = 4
MAX_HAN_NAME = 8
_PLAIN = frozenset({"thing", "food", "animal", "concept"})  # types of what common nouns name
_WORD = re.compile(r"\w+")
# Han, kana and Hangul: names stand in such a text without spaces around them.
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]")
_PLACEHOLDER = re.compile(r"\[([a-z]+_\d+)(?:\.\d+)?\]")  # of a masked name: [PERSON_1]
_OUTER = ".,;:!?\"'()[]{}<>-…“”「」《》。、"  # may stand around a name


def entities_named(memory: UserMemory, text: str) -> dict[str, str]:
    """Return {entity id: name as it stands in the text}, by exact name or alias.

    The first person names the owner, whose id is that of the User node. Spaced scripts are read in
    runs of up to four words, Han and kana in runs of characters.
    """
    names = memory.graph.names
    found: dict[str, str] = {}
    folded = normalise(text)
    words = folded.split()
    longest = max(1, min(MAX_NAME_WORDS, memory.graph.longest_name, len(words)))
    for size in range(longest, 0, -1):
        for i in range(len(words) - size + 1):
            phrase = " ".join(words[i : i + size]).strip(_OUTER)
            entity = names.get(phrase) or names.get(phrase.removesuffix("'s").removesuffix("'"))
            if entity is not None:
                found.setdefault(entity, phrase)
            elif phrase in OWN_WORDS:
                found.setdefault(n.USER_NODE, phrase)
    for phrase in _PLACEHOLDER.findall(folded):  # stands close to what is around it in any script
        if (entity := names.get(phrase)) is not None:
            found.setdefault(entity, phrase)
    if _UNSPACED.search(folded):
        for size in range(MAX_HAN_NAME, 1, -1):
            for i in range(len(folded) - size + 1):
                if (entity := names.get(folded[i : i + size])) is not None:
                    found.setdefault(entity, folded[i : i + size])
        if OWN_HAN in folded:
            found.setdefault(n.USER_NODE, OWN_HAN)
    return found


def is_plain(entity: object) -> bool:
    """Return whether an entity only has a common noun for a name ("oat milk"): a question that has
    it finds what mentions it by this word already, and counting both finds less."""
    return (
        isinstance(entity, n.Entity)
        and entity.type in _PLAIN
        and not entity.aliases
        and entity.name == entity.name.lower()
    )


def speakers_named(memory: UserMemory, text: str, names: Mapping[str, str]) -> frozenset[str]:
    """Return the speakers that a question names: whole, in another case of the noun ("Веры" for
    Вера), or by a short form ("Mel")."""
    speakers = memory.passages.speakers
    if not speakers:
        return frozenset()
    found = {s for s in names if s in speakers}
    asked = query_terms(text)
    telling = {surface.casefold() for _, surface in asked}  # not "How" or "Did"
    stems = {term for term, surface in asked if surface[:1].isupper()}
    words = [
        w
        for w in _WORD.findall(text)
        if len(w) >= SHORT_NAME and w[0].isupper() and w.casefold() in telling
    ]
    if words or stems:
        for speaker in speakers:
            shown = memory.display(speaker)
            name = shown.casefold()
            if any(name.startswith(word.casefold()) for word in words) or any(
                term in stems for term, _ in query_terms(shown)
            ):
                found.add(speaker)
    return frozenset(found)


def terms_without(memory: UserMemory, text: str, said_by: frozenset[str]) -> list[tuple[str, str]]:
    """Return the terms to look for: not the names of those who speak, for it is the others who say
    their names."""
    terms = query_terms(text)
    if not said_by:
        return list(terms)
    spoken = {term for s in said_by for term, _ in query_terms(memory.display(s))}
    return [pair for pair in terms if pair[0] not in spoken] or list(terms)


def is_of_owner(memory: UserMemory, node_id: str) -> bool:
    """Return whether a memory is about the owner."""
    node = memory.graph.node(node_id)
    return isinstance(node, n.Memory) and (node.slot or "").startswith("user|")

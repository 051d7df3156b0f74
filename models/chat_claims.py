"""From the JSON of a larger model to memories: what stands on the source, as the rules write it."""

from __future__ import annotations

import re

import msgspec

from reverie.memory_graph.drafts import OWNER, EntityDraft, MemoryDraft, RelationDraft
from reverie.models.chat_prompts import (
    KINDS,
    MAX_ENTITIES,
    MAX_MEMORIES,
    MAX_RELATIONS,
    MAX_TEXT_CHARS,
    ChatExtraction,
    ChatMemory,
    ChatRelation,
)
from reverie.models.grounding import Source
from reverie.models.prompts import RELATIONS
from reverie.models.protocol import ENTITY_TYPES, Extraction, Turn
from reverie.models.rules import chinese, chinese_frame, english
from reverie.models.rules.claims import PREDICATES, USER_LABELS
from reverie.models.rules.extract import draft_of
from reverie.models.rules.names import merged
from reverie.models.rules.person import to_third
from reverie.models.rules.text import fold, is_chinese

MAX_CONFIDENCE = 0.9  # as much as the rules give to what they are sure of
# Sorts of which none is ever another; the rest ("thing", "concept") are told apart loosely.
_SORTS = frozenset({"person", "place", "organization", "animal", "food"})
_THE_USER = re.compile(r"^(?:the |a )?user\b", re.IGNORECASE)


class ChatContext(msgspec.Struct, frozen=True):
    """What an answer may stand on.

    `before` holds the texts that were shown before the turn, `speakers` their speakers; `summary`
    is the one of them that is memory's own.
    """

    turn: Turn
    label: str
    before: tuple[str, ...] = ()
    speakers: tuple[str, ...] = ()
    summary: str = ""


def extraction_of(said: ChatExtraction, context: ChatContext) -> tuple[Extraction, int]:
    """Return what of an answer stands on its source, and how many items were dropped.

    A relation is kept in the first memory that names its tail; without one it is dropped.
    """
    turn = context.turn
    source = Source(turn.text, context.before, (context.label, *context.speakers), context.summary)
    dropped = 0
    entities: list[EntityDraft] = []
    for named in said.entities[:MAX_ENTITIES]:
        name = source.spelling(named.name)
        if not name or fold(name) == fold(context.label):
            dropped += not name
            continue
        entities.append(EntityDraft(name, named.type if named.type in ENTITY_TYPES else "thing"))
    drafts: list[MemoryDraft] = []
    for memory in said.memories[:MAX_MEMORIES]:
        text = _in_third(memory.text, context.label)
        if not text or memory.kind not in KINDS or source.fault(text):
            dropped += 1
        elif all(fold(text) != fold(known.text) for known in drafts):
            drafts.append(_draft(memory, text, context, entities))
    for relation in said.relations[:MAX_RELATIONS]:
        dropped += not _attach(relation, drafts, source, context)
    every = merged(
        [*entities, *(e for draft in drafts for e in draft.entities)],
        "\n".join([turn.text, context.label, *context.before]),
    )
    return Extraction(turn.id, tuple(drafts), every), dropped


def _in_third(text: str, label: str) -> str:
    text = " ".join(text.split())[:MAX_TEXT_CHARS].strip(' ,;:-"。；，')
    if label in USER_LABELS:
        text = _THE_USER.sub(label, text)
    if is_chinese(text):
        return chinese_frame.to_third(text, label)
    return to_third(text.rstrip("."), label)


def _draft(
    memory: ChatMemory, text: str, context: ChatContext, entities: list[EntityDraft]
) -> MemoryDraft:
    """The memory with the model's words, kind and shares, and the rules' slot and relations."""
    turn, label = context.turn, context.label
    parse = chinese.parse if is_chinese(text) else english.parse
    claim = next(iter(parse(text, label, loose=True)), None)
    if claim is None:
        draft = MemoryDraft(text, sources=(turn.id,))
    else:
        draft = draft_of(msgspec.structs.replace(claim, text=text), turn, label)
    within = [entity for entity in entities if entity.name.casefold() in text.casefold()]
    return msgspec.structs.replace(
        draft,
        text=text,
        kind=memory.kind,
        confidence=min(max(memory.confidence, 0.0), MAX_CONFIDENCE),
        importance=min(max(memory.importance, 0.0), 1.0),
        entities=merged([*within, *draft.entities], f"{text}\n{turn.text}\n{turn.speaker}"),
    )


def _attach(
    relation: ChatRelation, drafts: list[MemoryDraft], source: Source, context: ChatContext
) -> bool:
    """Put a triple into the memory that states it; return whether there is one."""
    head = _end(relation.head, source, context)
    tail = source.spelling(relation.tail)
    if not head or not tail or relation.relation not in RELATIONS or fold(head) == fold(tail):
        return False
    for at, draft in enumerate(drafts):
        if tail.casefold() not in draft.text.casefold():
            continue
        about = PREDICATES.get(relation.relation)
        made = RelationDraft(
            head,
            relation.relation,
            tail,
            valid_from=draft.valid_from,
            valid_to=draft.valid_to,
            confidence=draft.confidence,
            functional=about is not None and about.functional,
            ended=draft.polarity < 0 and relation.relation != "dislikes",
        )
        same = {(r.head, r.predicate, fold(r.tail)) for r in draft.relations}
        if (made.head, made.predicate, fold(made.tail)) in same:
            return True
        if not _fits(made, draft):
            return False
        names = {fold(entity.name) for entity in draft.entities}
        more = [name for name in (head, tail) if name != OWNER and fold(name) not in names]
        drafts[at] = msgspec.structs.replace(
            draft,
            relations=(*draft.relations, made),
            entities=(*draft.entities, *(EntityDraft(name) for name in more)),
        )
        return True
    return False


def _fits(made: RelationDraft, draft: MemoryDraft) -> bool:
    """Whether the tail is of the relation's sort, and no other stands in its one place."""
    wanted = PREDICATES[made.predicate].tail_type if made.predicate in PREDICATES else "person"
    types = {fold(entity.name): entity.type for entity in draft.entities}
    sort = types.get(fold(made.tail), "thing")
    if sort in _SORTS and wanted in _SORTS and sort != wanted:
        return False
    taken = [
        r
        for r in draft.relations
        if not r.ended and (r.head, r.predicate) == (made.head, made.predicate)
    ]
    return not (made.functional and not made.ended and taken)


def _end(name: str, source: Source, context: ChatContext) -> str:
    """The head of a triple: the owner of the graph, or a name as the source spells it."""
    owner = context.label in USER_LABELS
    if owner and (fold(name) == fold(context.label) or _THE_USER.fullmatch(name.strip())):
        return OWNER
    return source.spelling(name)

"""What the tools over memories do: reverie's own, and those that have OpenMemory's names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import UNSET

from reverie.memory_graph.drafts import Kept
from reverie.memory_graph.errors import InvalidValueError, UnknownMemoryError
from reverie.tools import arguments as a
from reverie.tools.budget import Answer, Part, cut_text, short
from reverie.tools.call import Call, moment, shown

HITS = 10
LISTED = 50
AROUND = 20
SUMMARY_TOKENS = 200
_NAME_CHARS = 200
_ASK_LESS = "ask for fewer, or more narrowly; a larger answer budget shows more"


def search_memory(call: Call, given: a.SearchMemory) -> Answer:
    """Return the hits of a question, best first."""
    hits = call.user.search(
        given.query,
        limit=given.limit or HITS,
        filters=_filters(given.kind, given.tags, given.session),
        include_retired=bool(given.include_past),
    )
    return Answer(
        {}, (Part("results", [shown(hit) for hit in hits], shrink=cut_text),), hint=_ASK_LESS
    )


def add_memory(call: Call, given: a.AddMemory) -> Answer:
    """Keep a statement word for word, or extract memories from what was said."""
    if given.extract:
        if (given.kind, given.importance, given.tags, given.entities) != (None,) * 4:
            msg = "kind, importance, tags and entities are for what is kept word for word; leave "
            msg += "them out, or extract"
            raise InvalidValueError(msg, what="extract")
        return _extracted(call, given.text, given.session)
    if given.session is not None:
        msg = "session is of a conversation: set extract, or leave it out"
        raise InvalidValueError(msg, what="session")
    kept = call.user.remember(
        given.text,
        kind=given.kind or "fact",
        importance=0.7 if given.importance is None else given.importance,
        tags=given.tags or (),
        entities=given.entities or (),
    )
    return Answer(_kept(kept))


def add_memories(call: Call, given: a.AddMemories) -> Answer:
    """Extract memories from what was said."""
    return _extracted(call, given.text, None)


def _extracted(call: Call, text: str, session: str | None) -> Answer:
    added = call.user.add(text, session=session or "default", wait=True)
    return Answer(
        {"turn": added.ids[0] if added.ids else None},
        (Part("results", [_kept(kept) for kept in added.kept]),),
    )


def _kept(kept: Kept) -> dict[str, Any]:
    made = {"event": kept.op, "id": kept.memory_id}
    if kept.target is not None and kept.target != kept.memory_id:
        made["replaced"] = kept.target
    return made


def get_conversation_summary(call: Call, given: a.ConversationSummary) -> Answer:
    """Return a summary of what was said, made now."""
    made = call.user.get_conversation_summary(
        given.topic,
        given.last_n_days,
        session=given.session,
        max_tokens=min(given.max_tokens or SUMMARY_TOKENS, call.budget),
    )
    period = {"from": moment(made.from_at), "to": moment(made.to_at)} if made.text else {}
    sources = [{"id": source} for source in made.sources]
    head = {"text": made.text, "messages": made.messages, **period}
    return Answer(head, (Part("sources", sources),))


def update_memory(call: Call, given: a.UpdateMemory) -> Answer:
    """Change a memory."""
    item = call.user.update(
        given.memory_id,
        given.text,
        importance=UNSET if given.importance is None else given.importance,
        tags=UNSET if given.tags is None else given.tags,
        pinned=UNSET if given.pinned is None else given.pinned,
    )
    made: dict[str, Any] = {"id": item.id}
    if item.id != given.memory_id:
        made["replaced"] = given.memory_id
    return Answer(made)


def forget(call: Call, given: a.Forget) -> Answer:
    """End one memory; for all of them, which needs another role, see `forget_everything`."""
    if given.memory_id is None:
        msg = "name the memory: memory_id"
        raise InvalidValueError(msg, what="memory_id")
    return Answer({"forgotten": call.user.delete(given.memory_id, reason="forgotten by a tool")})


def forget_everything(call: Call, given: a.Forget | a.DeleteAllMemories) -> Answer:
    """Erase the user for good."""
    if isinstance(given, a.Forget) and given.memory_id is not None:
        msg = "memory_id and everything exclude each other"
        raise InvalidValueError(msg, what="memory_id")
    if given.confirm != call.user.key.user_id:
        msg = "everything of the user is erased for good only if confirm is the id of the user"
        raise InvalidValueError(msg, what="confirm")
    receipt = call.user.forget()
    rows = sum(receipt.erased.rows.values())
    return Answer({"erased": receipt.erased.existed, "is_proven": receipt.clean, "rows": rows})


def delete_all_memories(call: Call, given: a.DeleteAllMemories) -> Answer:
    """Erase the user for good."""
    return forget_everything(call, given)


def related(call: Call, given: a.Related) -> Answer:
    """Return what is around a name."""
    limit = given.limit or AROUND
    name = "user" if given.name is None else given.name
    found = call.user.neighbors(name, limit=limit, include_retired=bool(given.include_past))
    entity = None
    if found.entity is not None:
        entity = {
            "name": found.entity.name,
            "type": found.entity.type,
            "mentions": found.entity.mentions,
        }
    relations = [
        {
            "from": short(r.head, _NAME_CHARS),
            "relation": short(r.predicate, _NAME_CHARS),
            "to": short(r.tail, _NAME_CHARS),
        }
        | ({} if r.valid_from is None else {"since": moment(r.valid_from)})
        | ({} if r.valid_to is None else {"until": moment(r.valid_to)})
        | ({} if r.retired_at is None else {"is_over": True})
        | ({} if r.source is None else {"source": r.source})
        for r in found.relations
    ]
    seen_with = [
        {"name": short(other, _NAME_CHARS), "weight": round(weight, 2)}
        for other, weight in found.related
    ]
    mentions = [shown(item) for item in found.mentioned_in]
    return Answer(
        {"entity": entity},
        (
            Part("relations", relations),
            Part("seen_with", seen_with, share=0.15),
            Part("mentioned_in", mentions, share=0.3, shrink=cut_text),
        ),
        hint=_ASK_LESS,
    )


def list_memories(call: Call, given: a.ListMemories) -> Answer:
    """Return a page of what is kept, in the order of recording."""
    page = call.user.list(
        limit=given.limit or LISTED,
        cursor=given.cursor,
        filters=_filters(given.kind, given.tags, None),
        include_retired=bool(given.include_past),
        include_archived=bool(given.include_past),
    )
    return Answer(
        {"total": page.total},
        (Part("results", [shown(item) for item in page.items], shrink=cut_text),),
        cursor=page.cursor,
        is_paged=True,
    )


def delete_memories(call: Call, given: a.DeleteMemories) -> Answer:
    """End memories; unknown ones are told, and hinder nothing."""
    gone, unknown = 0, []
    for memory_id in dict.fromkeys(given.memory_ids):
        try:
            gone += call.user.delete(memory_id, reason="deleted by a tool")
        except UnknownMemoryError:
            unknown.append({"id": short(memory_id, _NAME_CHARS)})
    return Answer({"deleted": gone}, (Part("unknown", unknown),))


def relationships(call: Call, given: a.ListRelationships) -> Answer:
    """Return how the user stands to others."""
    if given.other is not None:
        values = call.user.relationships.of(given.other)
        wanted = {k: v for k, v in values.items() if given.dimension in {None, k}}
        rows = [
            {"other": short(given.other, _NAME_CHARS), **_value(k, v)} for k, v in wanted.items()
        ]
    else:
        rows = [
            {"other": short(one.other, _NAME_CHARS), **_value(one.dimension, one.value)}
            for one in call.user.relationships.list(given.dimension)
        ]
    return Answer({}, (Part("results", rows),), hint=_ASK_LESS)


def _value(dimension: str, value: float) -> dict[str, Any]:
    return {"dimension": dimension, "value": round(value, 3)}


def _filters(
    kind: str | None, tags: Sequence[str] | None, session: str | None
) -> dict[str, Any] | None:
    found: list[dict[str, Any]] = [{"tags": {"contains": tag}} for tag in tags or ()]
    if kind is not None:
        found.append({"kind": kind})
    if session is not None:
        found.append({"session": session})
    return {"AND": found} if found else None

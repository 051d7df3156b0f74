"""`add`: messages kept as they are, or what follows from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reverie.mem0 import relations
from reverie.mem0.exceptions import ValidationError
from reverie.mem0.messages import Said, read_messages
from reverie.mem0.payload import CREATED, ID, UPDATED, Payload, encode
from reverie.mem0.scope import Scope
from reverie.mem0.store import Entry, Store
from reverie.memory_graph.drafts import Kept

PROCEDURAL = "procedural_memory"
SESSION = "default"  # of turns without a run_id
_CORE = frozenset({"data", "hash", "created_at", "updated_at", "text_lemmatized"})

Answer = dict[str, Any]


def add(
    store: Store,
    scope: Scope,
    messages: Any,
    payload: Payload,
    *,
    infer: bool,
    memory_type: str | None,
    with_relations: bool,
) -> Answer:
    """Store messages and return what `Memory.add` returns; see there.

    Args:
        store: where.
        scope: whose.
        messages: as the caller gave them.
        payload: of the caller, with the date of expiry.
        infer: extract memories; else keep the messages.
        memory_type: None or PROCEDURAL.
        with_relations: tell what became of the relations.

    Raises:
        ValidationError: another memory_type; messages of another type.
    """
    if memory_type not in {None, PROCEDURAL}:
        msg = f"Invalid 'memory_type'. Please pass {PROCEDURAL}."
        raise ValidationError(
            msg,
            "VALIDATION_002",
            {"provided_type": repr(memory_type)[:100], "valid_type": PROCEDURAL},
            f"Leave it out, or pass {PROCEDURAL!r} with an agent_id.",
        )
    said = read_messages(messages)
    base = payload | scope.ids()
    since = store.rt.now(store.world)
    if memory_type == PROCEDURAL and scope.agent_id is not None:
        return {"results": _procedure(store, scope, said, base)}
    if infer:
        results, made = _infer(store, scope, said, base)
    else:
        results, made = _keep(store, scope, said, base), []
    if not with_relations:
        return {"results": results}
    told = relations.added(store, scope.owner, made, since)
    return {"results": results, "relations": told}


def without_core(payload: Mapping[str, Any]) -> Payload:
    """Return a payload without what is made anew for each version."""
    return {k: v for k, v in payload.items() if k not in _CORE}


def _marks(payload: Payload) -> dict[str, Any]:
    """Return the marks for a time that a caller has put into the metadata, as mem0 reads it."""
    created = payload.get("created_at")
    return {CREATED: created, UPDATED: created} if isinstance(created, str) else {}


def _entry(scope: Scope, text: str, payload: Payload) -> Entry:
    return Entry(scope.owner, text, encode(without_core(payload), _marks(payload)))


def _keep(store: Store, scope: Scope, said: Sequence[Said], base: Payload) -> list[Answer]:
    entries = []
    for message in said:
        own = base | {"role": message.role}
        if message.name is not None:
            own["actor_id"] = message.name
        entries.append(_entry(scope, message.text, own))
    return [
        {
            "id": record.id,
            "memory": record.item.text,
            "event": "ADD",
            "actor_id": message.name,
            "role": message.role,
        }
        for message, record in zip(said, store.keep(entries), strict=True)
    ]


def _procedure(store: Store, scope: Scope, said: Sequence[Said], base: Payload) -> list[Answer]:
    """Keep messages as one text: mem0 has a language model sum them up."""
    if not said:
        return []
    text = "\n".join(f"{message.role}: {message.text}" for message in said)
    (record,) = store.keep([_entry(scope, text, base | {"memory_type": PROCEDURAL})])
    return [{"id": record.id, "memory": record.item.text, "event": "ADD"}]


def _infer(
    store: Store, scope: Scope, said: Sequence[Said], base: Payload
) -> tuple[list[Answer], list[str]]:
    """Store messages as turns and wait for what is extracted; return the results, and the ids in
    reverie of the memories that were made.

    A turn carries the scope in its metadata, so that a memory is in its scope even if the program
    ends before the memory is marked itself.
    """
    if not said:
        return [], []
    turns: list[dict[str, Any]] = []
    for message in said:
        own = without_core(base) | {"role": message.role}
        if message.name is not None:
            own["actor_id"] = message.name
        turn = {"text": message.text, "role": message.role, "metadata": encode(own)}
        turns.append(turn if message.name is None else turn | {"speaker": message.name})
    user = store.user(scope.owner)
    session = SESSION if scope.run_id is None else scope.run_id
    kept = user.add(turns, session=session, wait=True).kept
    results: list[Answer] = []
    made: list[str] = []
    for one in kept:
        if (answer := _settled(store, scope, one, base)) is not None:
            results.append(answer)
            if one.op != "DELETE":
                made.append(one.memory_id)
    return results, made


def _settled(store: Store, scope: Scope, kept: Kept, base: Payload) -> Answer | None:
    """Mark what one decision made with the scope of the call, and tell of it."""
    owner, user = scope.owner, store.user(scope.owner)
    match kept.op:
        case "ADD":
            store.mark(owner, kept.memory_id, encode(without_core(base), _marks(base)))
            record = store.record(owner, user.get(kept.memory_id))
            return {"id": record.id, "memory": record.item.text, "event": "ADD"}
        case "UPDATE" if kept.target is not None:
            old = store.record(owner, user.get(kept.target))
            marks = {ID: old.id, CREATED: old.payload["created_at"]}
            payload = without_core(old.payload) | without_core(base)
            store.mark(owner, kept.memory_id, encode(payload, marks))
            return {
                "id": old.id,
                "memory": user.get(kept.memory_id).text,
                "event": "UPDATE",
                "previous_memory": old.item.text,
            }
        case "DELETE" if kept.target is not None:
            old = store.record(owner, user.get(kept.target))
            return {"id": old.id, "memory": old.item.text, "event": "DELETE"}
        case _:
            return None

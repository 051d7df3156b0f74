"""Who tells whom of what: the bodies of `World`'s methods; see memory_graph/hearsay.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from reverie import door
from reverie.actors import commands as c, requests
from reverie.actors.gatherings import of_group
from reverie.actors.lane import raise_error
from reverie.fanout import Parcel
from reverie.groups import belonging
from reverie.memory_graph import groups as g
from reverie.memory_graph.drafts import EntityDraft, Kept, MemoryDraft
from reverie.memory_graph.errors import (
    InvalidValueError,
    RequestReusedError,
    StaleGenerationError,
    UnknownMemoryError,
)
from reverie.memory_graph.hearsay import told_on
from reverie.memory_graph.ids import Key, check_id, check_key
from reverie.memory_graph.text import normalise
from reverie.repeats import checked
from reverie.witnesses import digest, fields_of, requested, vectors_of

if TYPE_CHECKING:
    from reverie.masking import Mask
    from reverie.runtime import Runtime
    from reverie.world import World

TOLD = 0.8  # of the speaker's confidence is that of who is told

_TOLD = frozenset("speaker listener memory_id text confidence at request_id".split())


def tell(  # noqa: D417 (self: it is a method)
    self: World,
    speaker: str,
    listener: str,
    memory_id: str,
    *,
    text: str | None = None,
    confidence: float | None = None,
    at: object = None,
    request_id: str | None = None,
) -> Kept:
    """Let a user tell another what he remembers.

    The listener gets a memory of his own, with the same event and who told it on. What he has seen
    himself he is not told; of two versions he keeps that of the higher confidence, then of the
    shorter chain; the same from another source makes it more credible. What comes back to who told
    it on changes nothing. See memory_graph/hearsay.py.

    Args:
        speaker: user id of who tells it.
        listener: user id of who hears it.
        memory_id: of the speaker, or as a hit from one of his groups names it.
        text: what he says, if not what he remembers.
        confidence: of the listener, 0 to 1; by default 0.8 of the speaker's.
        at: when he tells it; now by default.
        request_id: a call repeated with the same id has one effect and the first result, also when
            the speaker has forgotten by then what he told.

    Returns:
        ADD, UPDATE of a version that he had heard, or NOOP.

    Raises:
        UnknownMemoryError: the speaker holds no such memory, or it has ended.
    """
    fields = {name: value for name, value in locals().items() if name != "self"}
    (kept,) = _tell(self._rt, self.name, [fields])
    return kept


def tell_many(
    self: World, tellings: Sequence[Mapping[str, Any]], *, request_id: str | None = None
) -> list[Kept]:
    """Let several things be told, all from what is known now: nobody tells on what he hears in the
    same call. Each is a mapping of the arguments of `tell`. `request_id` as in `observe_many`.

    Raises:
        UnknownMemoryError: as in `tell`; nothing was told.
    """
    return _tell(self._rt, self.name, tellings, checked(request_id))


class _Told(NamedTuple):
    """A checked telling."""

    speaker: Key
    listener: Key
    memory_id: str
    text: str | None
    confidence: float | None
    at: float | None
    request_id: str | None


def _tell(
    rt: Runtime, world: str, tellings: Sequence[Mapping[str, Any]], request_id: str | None = None
) -> list[Kept]:
    rt._require_open()  # noqa: SLF001
    given = [
        fields_of(telling, _TOLD, "a telling", ("speaker", "listener", "memory_id"))
        for telling in door.items(tellings, "tellings", "mappings")
    ]
    told = [_told(rt, world, fields) for fields in requested(given, request_id)]
    if not told:
        return []
    with rt.fanout.gate.shared():
        kept = _answered(rt, told)
        new = [one for place, one in enumerate(told) if place not in kept]
        fresh = iter(_delivered(rt, world, new))
        return [kept[place] if place in kept else next(fresh) for place in range(len(told))]


def _answered(rt: Runtime, told: Sequence[_Told]) -> dict[int, Kept]:
    """Return the answers to those that were told before under their request ids, by their places:
    what the speaker holds by now is nothing to them.

    Raises:
        RequestReusedError, StaleGenerationError: of the first whose id was for something else, or
            that a rewind undid.
    """
    asked = {
        place: requests.mark_of(one.listener, one.request_id, _said(one))
        for place, one in enumerate(told)
        if one.request_id is not None
    }
    commands = [
        c.Answered(world=key.world, user_id=key.user_id, mark=mark)
        for key, mark in ((told[place].listener, mark) for place, mark in asked.items())
    ]
    found: dict[int, Kept] = {}
    for place, answer in zip(asked, rt.fanout.router.call_many(commands), strict=True):
        if isinstance(answer, RequestReusedError | StaleGenerationError):
            request_id = told[place].request_id
            msg = answer.message.replace(asked[place].request, str(request_id))
            raise type(answer)(msg, request_id=request_id)
        if (seen := raise_error(answer)) is not None:
            found[place] = msgspec.msgpack.decode(seen, type=Kept)
    return found


def _said(one: _Told) -> str:
    """Return what a request to tell says, as a hash."""
    return digest("told", one.speaker, one.memory_id, one.text, one.confidence, one.at)


def _delivered(rt: Runtime, world: str, told: Sequence[_Told]) -> list[Kept]:
    """Let the listeners have what they are told."""
    if not told:
        return []
    shared = rt.user(told[0].listener.user_id, world)._write(None, with_vectors=True)  # noqa: SLF001
    tales: list[MemoryDraft | None] = rt.fanout.ask([_tale(one, shared["at"]) for one in told])
    by_group = {i: shown[0] for i, one in enumerate(told) if (shown := of_group(one.memory_id))}
    true = belonging(rt, world, [(told[i].speaker.user_id, by_group[i]) for i in by_group])
    drafts: list[tuple[MemoryDraft, bool]] = []
    for i, (one, tale) in enumerate(zip(told, tales, strict=True)):
        is_his = i not in by_group or (one.speaker.user_id, by_group[i]) in true
        if tale is None or not is_his:
            msg = f"{one.speaker.user_id!r} holds no memory {one.memory_id!r} to tell of"
            raise UnknownMemoryError(msg, memory_id=one.memory_id)
        drafts.append(_hearsay(rt, one, tale))
    vectors = vectors_of(rt, world, [draft.text for draft, _ in drafts])
    parcels = [
        Parcel(
            c.Witness(
                **shared
                | {
                    "user_id": "",
                    "at": shared["at"] if one.at is None else one.at,
                    "request_id": one.request_id or rt.new_request_id(),
                },
                draft=msgspec.structs.replace(draft, vector=vectors[draft.text]),
                is_back=is_back,
                said="" if one.request_id is None else _said(one),
            ),
            (one.listener.user_id,),
        )
        for one, (draft, is_back) in zip(told, drafts, strict=True)
    ]
    return [kept for (kept,) in rt.fanout.deliver(parcels, noted=False)]


def _told(rt: Runtime, world: str, fields: Mapping[str, Any]) -> _Told:
    speaker = check_key(world, fields["speaker"])
    listener = check_key(world, fields["listener"])
    if speaker == listener:
        msg = f"{speaker.user_id!r} cannot tell himself"
        raise InvalidValueError(msg, what="listener")
    text, confidence = fields.get("text"), fields.get("confidence")
    request = fields.get("request_id")
    return _Told(
        speaker,
        listener,
        check_id(fields["memory_id"], "memory_id"),
        None if text is None else door.text(text, rt.config.max_text_bytes),
        None if confidence is None else door.share(confidence, "confidence"),
        door.optional_time(fields.get("at"), "at"),
        None if request is None else check_id(request, "request_id"),
    )


def _tale(one: _Told, now: float) -> c.Tale:
    """Ask for what the speaker holds, himself or by a group."""
    world, speaker = one.speaker
    if (shared := of_group(one.memory_id)) is not None:
        name, node_id = shared
        owner = g.owner_of(name)
        return c.Tale(world=world, user_id=owner, now=now, node_id=node_id, member=speaker)
    return c.Tale(world=world, user_id=speaker, now=now, node_id=one.memory_id)


def _hearsay(rt: Runtime, one: _Told, tale: MemoryDraft) -> tuple[MemoryDraft, bool]:
    """Return what the listener is given, and whether it comes back to him."""
    speaker = one.speaker.user_id
    tale = _unmasked(rt.masks.of(one.speaker), tale) if rt.masks.is_on else tale
    chain = told_on(tale.heard, speaker)
    entities, text = tale.entities, tale.text
    if one.text is not None:  # only what it still speaks of
        text, said = one.text, normalise(one.text)
        entities = tuple(entity for entity in entities if normalise(entity.name) in said)
    draft = msgspec.structs.replace(
        tale,
        text=text,
        entities=entities,
        confidence=TOLD * tale.confidence if one.confidence is None else one.confidence,
        provenance="told",
        told_by=speaker,
        heard=chain,
        event=tale.event or digest("told", speaker, one.memory_id),
    )
    return rt.masks.of(one.listener).memory(draft), one.listener.user_id in chain


def _unmasked(mask: Mask, draft: MemoryDraft) -> MemoryDraft:
    """Return a draft as its holder knows it, so that it can be masked for another."""
    entities = tuple(
        EntityDraft(mask.unmask(e.name), e.type, tuple(map(mask.unmask, e.aliases)))
        for e in draft.entities
    )
    return msgspec.structs.replace(
        draft,
        text=mask.unmask(draft.text),
        heard=tuple(map(mask.unmask, draft.heard)),
        tags=tuple(map(mask.unmask, draft.tags)),
        topics=tuple(map(mask.unmask, draft.topics)),
        metadata=mask.unmasked(draft.metadata),
        entities=entities,
    )

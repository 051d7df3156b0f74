"""What happens in a world, who saw it, and who knows of it: the bodies of `World`'s methods.

Each witness keeps a memory of its own, which it forgets, distorts and loses by itself; all of them
carry the id of the event. Who was not there and was not told has nothing: there is no memory that
could answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import msgspec

from reverie import door
from reverie.actors import commands as c
from reverie.actors.gatherings import occurrence
from reverie.actors.lane import raise_error
from reverie.fanout import Parcel
from reverie.groups import belonging
from reverie.memory_graph import groups as g
from reverie.memory_graph.drafts import EntityDraft, Kept, MemoryDraft
from reverie.memory_graph.errors import (
    InvalidLimitError,
    InvalidValueError,
    JournalDamagedError,
    RequestReusedError,
)
from reverie.memory_graph.ids import Key, check_id, check_key
from reverie.memory_graph.state import as_bytes
from reverie.repeats import checked, part_of
from reverie.results import Observed

if TYPE_CHECKING:
    from reverie.runtime import Runtime
    from reverie.world import World

REQUEST_MARK = "-"  # in the id of an event that a request made, before what it says
MAX_DELIVERIES = 100_000  # of one call
EMBED_CHUNK = 256
ASK_CHUNK = 512  # users asked at once

_OBSERVED = frozenset(
    "text witnesses groups at place participants importance sentiment confidence ttl_s pinned tags"
    " entities metadata event_id request_id".split()
)


class _Event(NamedTuple):
    """A checked event: `drafts` are those of its owners, one or more of them the same object."""

    owners: tuple[str, ...]
    drafts: tuple[MemoryDraft, ...]
    event_id: str | None  # None: it is named by what it says
    base: str
    request: str | None = None  # what the id begins with, and the request that gave it
    request_id: str | None = None


# -- methods of `World` ----------------------------------------------------------------


def observe(  # noqa: D417, PLR0913 (self: it is a method)
    self: World,
    text: str,
    *,
    witnesses: Sequence[str] = (),
    groups: Sequence[str] = (),
    at: object = None,
    place: str | None = None,
    participants: Sequence[str] = (),
    importance: float = 0.5,
    sentiment: float = 0.0,
    confidence: float = 1.0,
    ttl_s: float | None = None,
    pinned: bool = False,
    tags: Sequence[str] = (),
    entities: Sequence[Any] = (),
    metadata: Mapping[str, Any] | None = None,
    event_id: str | None = None,
    request_id: str | None = None,
) -> Observed:
    """Let something happen: each witness, and each group, gets a memory of it.

    All or none of them have it when this returns, also over a crash, and each once. Participants
    are who is in it; they know of it only if they are among the witnesses.

    Args:
        text: what happened, in any language.
        witnesses: user ids of who saw it.
        groups: names of groups that know of it; see `World.group`.
        at: when; now by default.
        place: where.
        participants: names of people in it.
        importance: 0 to 1.
        sentiment: -1 to 1.
        confidence: 0 to 1.
        ttl_s: after how many seconds they forget it; None is never.
        pinned: it is never archived.
        tags: of all these memories.
        entities: names of other things in it, or (name, type) pairs.
        metadata: of all these memories.
        event_id: names it: who has it of this id is not given it again. By default the id follows
            from what happened, when, where and before whom; the same again is another event.
        request_id: a call repeated with the same id is the same event, and has one effect and the
            first result. It goes by what the witnesses of the call remember: after a rewind to
            before it, the event may happen again, and one of whom nobody is left that knew it
            does so. With an `event_id`, it is that which names the event, and nothing else.

    Raises:
        RequestReusedError: a witness knows another event by this request id: another text, time
            that was given, or place, other people, witnesses or attributes. Nothing was stored.
        InvalidValueError: a witness saw an event of this `event_id` in other words.
    """
    fields = {name: value for name, value in locals().items() if name != "self"}
    (observed,) = observe_many(self, [fields])
    return observed


def observe_many(
    self: World, events: Sequence[Mapping[str, Any]], *, request_id: str | None = None
) -> list[Observed]:
    """Let several things happen, in order; each is a mapping of the arguments of `observe`.

    Everything is checked before anything is stored, and all is stored or nothing, also over a
    crash. A tick of a simulation is best one call: it costs one commit for each partition of the
    data folder and one for all of it, and each text is embedded once.

    A call repeated with the same `request_id` has one effect: each event without a request id of
    its own gets one that follows from it and from the event's place in the call.

    Raises:
        InvalidLimitError: over 100,000 deliveries in one call.
        RequestReusedError, InvalidValueError: as in `observe`, also of two events of the call.
    """
    return _observe(self._rt, self.name, events, checked(request_id))


def who_knows(self: World, event_id: str) -> list[c.Knower]:
    """Return who knows of an event and from whom, who saw it first; members of a group that knows
    of it are among them. Reads the memory of every user of the world."""
    return _who_knows(self._rt, self.name, check_id(event_id, "event_id"))


# -- seeing ----------------------------------------------------------------------------


def _observe(
    rt: Runtime, world: str, events: Sequence[Mapping[str, Any]], request_id: str | None = None
) -> list[Observed]:
    rt._require_open()  # noqa: SLF001
    given = [
        fields_of(event, _OBSERVED, "an event", ("text",))
        for event in door.items(events, "events", "mappings")
    ]
    given = requested(given, request_id)
    owners = [_owners(world, fields) for fields in given]
    if (count := sum(map(len, owners))) > MAX_DELIVERIES:
        msg = f"{count:,} deliveries in one call; at most {MAX_DELIVERIES:,}: use several calls"
        raise InvalidLimitError(msg, what="events")
    if not count and not given:
        return []
    checked = [_draft(rt, fields) for fields in given]
    first = next((o[0] for o in owners if o), "nobody")
    shared = rt.user(first, world)._write(None, with_vectors=True)  # noqa: SLF001
    shared["user_id"] = ""
    ready = [
        _event(rt, world, fields, draft, whose, shared["at"])
        for fields, draft, whose in zip(given, checked, owners, strict=True)
    ]
    unnamed = [(world, event.base) for event in ready if event.event_id is None]
    kept: list[dict[str, Kept]] = [{} for _ in ready]
    with rt.fanout.gate.shared(), rt.fanout.naming(unnamed):
        _require_same(rt, world, ready, shared["at"])
        ids = _named(rt, world, ready, shared["at"])
        vectors = vectors_of(rt, world, [d.text for event in ready for d in event.drafts])
        parcels: list[Parcel] = []
        places: list[int] = []
        for place, (event, event_id) in enumerate(zip(ready, ids, strict=True)):
            for draft, whose in _alike(event):
                whole = msgspec.structs.replace(draft, event=event_id, vector=vectors[draft.text])
                parcels.append(Parcel(c.Witness(**shared, draft=whole), whose))
                places.append(place)
        for place, parcel, got in zip(places, parcels, rt.fanout.deliver(parcels), strict=True):
            kept[place] |= zip(parcel.owners, got, strict=True)
    return [
        Observed(event_id, {owner: kept[place][owner] for owner in event.owners})
        for place, (event, event_id) in enumerate(zip(ready, ids, strict=True))
    ]


def requested(
    given: Sequence[Mapping[str, Any]], request_id: str | None
) -> list[Mapping[str, Any]]:
    """Return what happens or is told, each with a request id of its own if the call has one."""
    if request_id is None:
        return list(given)
    return [
        fields
        if fields.get("request_id") is not None
        else {**fields, "request_id": part_of(request_id, place)}
        for place, fields in enumerate(given)
    ]


def fields_of(
    given: object, known: frozenset[str], what: str, needed: Sequence[str]
) -> Mapping[str, Any]:
    """Return a mapping with its keys checked.

    Raises:
        InvalidValueError: it is none, has a key that is not known, or lacks one that is needed.
    """
    if not isinstance(given, Mapping):
        msg = f"{what} must be a mapping, not {type(given).__name__}"
        raise InvalidValueError(msg, what=what)
    if unknown := sorted(str(key) for key in given if key not in known):
        msg = f"unknown keys in {what}: {', '.join(unknown)}; known: {', '.join(sorted(known))}"
        raise InvalidValueError(msg, what=what)
    if missing := [key for key in needed if given.get(key) is None]:
        msg = f"{what} needs {', '.join(missing)}"
        raise InvalidValueError(msg, what=what)
    return given


def _owners(world: str, fields: Mapping[str, Any]) -> tuple[str, ...]:
    """Return whose graphs an event goes to: witnesses and groups, each once, in order."""
    found: dict[str, None] = {}
    for user_id in door.texts(fields.get("witnesses", ()), "witnesses", any_order=True):
        if g.name_of(user_id) is not None:
            msg = f"{user_id!r} is a group: name it in groups="
            raise InvalidValueError(msg, what="witnesses")
        found[check_key(world, user_id).user_id] = None
    for name in door.texts(fields.get("groups", ()), "groups", any_order=True):
        owner = g.owner_of(check_id(name, "group"))
        found[check_key(world, owner).user_id] = None
    return tuple(found)


def _draft(rt: Runtime, fields: Mapping[str, Any]) -> MemoryDraft:
    """Return what every witness keeps of an event, checked."""
    people = [
        EntityDraft(door.name(p), "person")
        for p in door.texts(fields.get("participants", ()), "participants")
    ]
    place = fields.get("place")
    where = [] if place is None else [EntityDraft(door.name(place, "place"), "place")]
    draft = MemoryDraft(
        text=fields["text"],
        kind="event",
        valid_from=fields.get("at"),
        ttl_s=fields.get("ttl_s"),
        pinned=fields.get("pinned", False),
        tags=fields.get("tags", ()),
        metadata=fields.get("metadata"),
        importance=fields.get("importance", 0.5),
        sentiment=fields.get("sentiment", 0.0),
        confidence=fields.get("confidence", 1.0),
        entities=(*people, *where, *door.entities(fields.get("entities", ()))),
    )
    return door.memory(draft, rt.config.max_text_bytes)


def _event(
    rt: Runtime,
    world: str,
    fields: Mapping[str, Any],
    draft: MemoryDraft,
    owners: tuple[str, ...],
    now: float,
) -> _Event:
    """Return an event with what each owner is given, masked, and what it is named by."""
    if draft.valid_from is None:  # who hears of it later shall know when it was
        draft = msgspec.structs.replace(draft, valid_from=now)
    drafts = (draft,) * len(owners)
    if rt.masks.is_on:
        drafts = tuple(rt.masks.of(Key(world, owner)).memory(draft) for owner in owners)
    given, request = fields.get("event_id"), fields.get("request_id")
    if request is not None:
        request = check_id(request, "request_id")
    if given is not None:
        return _Event(owners, drafts, check_id(given, "event_id"), "")
    if request is not None:
        # Of the first by name: the order of the witnesses is nothing that a request says.
        said = min(zip(owners, drafts, strict=True), default=("", draft), key=itemgetter(0))[1]
        begins = digest("request", request) + REQUEST_MARK
        # A repeated call without a time comes at another time.
        when = None if fields.get("at") is None else said.valid_from
        content = digest(msgspec.structs.replace(said, valid_from=when), sorted(owners))
        return _Event(owners, drafts, begins + content, "", begins, request)
    said = drafts[0] if drafts else draft
    base = digest(
        "event",
        said.valid_from,
        said.text,
        [(entity.name, entity.type) for entity in said.entities],
        sorted(owners),
    )
    return _Event(owners, drafts, None, base)


def digest(*parts: object) -> str:
    """Return an id of 32 hexadecimal digits, the same for the same parts in every process. The
    world is no part: a fork goes on as the world that it is made of."""
    return blake2b(msgspec.msgpack.encode(parts, order="deterministic"), digest_size=16).hexdigest()


def _require_same(rt: Runtime, world: str, events: Sequence[_Event], now: float) -> None:
    """Refuse an id that stands for something else, in this call or with one of its owners.

    The graphs are the record of what was done under an id, so that a rewind takes that back too:
    the id of an event that a request made holds what the request said.
    """
    said: dict[tuple[str, str], str] = {}  # by (owner, id or beginning of one)
    asked: list[c.Delivered] = []
    wanted: list[tuple[_Event, str]] = []  # and what its owner must know, if anything
    for event in events:
        if event.event_id is None:
            continue
        begins = event.request or event.event_id
        for owner, draft in zip(event.owners, event.drafts, strict=True):
            mine = draft.text if event.request is None else event.event_id
            if said.setdefault((owner, begins), mine) != mine:
                _refuse(event)
            asked.append(
                c.Delivered(
                    world=world,
                    user_id=owner,
                    now=now,
                    event=begins,
                    is_request=event.request is not None,
                )
            )
            wanted.append((event, mine))
    for start in range(0, len(asked), ASK_CHUNK):
        answers = rt.fanout.router.call_many(asked[start : start + ASK_CHUNK])
        for (event, mine), known in zip(wanted[start:], answers, strict=False):
            # Whose journal is damaged is refused when it is delivered to, and holds up no other.
            if isinstance(known, JournalDamagedError):
                continue
            if raise_error(known) and mine not in known:
                _refuse(event)


def _refuse(event: _Event) -> NoReturn:
    if event.request_id is not None:
        msg = f"request id {event.request_id!r} was used before, for a different request"
        raise RequestReusedError(msg, request_id=event.request_id)
    msg = f"event id {event.event_id!r} stands for an event in other words"
    raise InvalidValueError(msg, what="event_id")


def _named(rt: Runtime, world: str, events: Sequence[_Event], now: float) -> list[str]:
    """Return the id of each event. One that has none is named by what it says, who is there and
    when, and numbered: the first of its owners tells how often exactly this has happened."""
    asked: dict[str, c.Happened] = {}
    for event in events:
        if event.event_id is None and event.owners:
            owner = min(event.owners)
            asked[event.base] = c.Happened(world=world, user_id=owner, now=now, event=event.base)
    known = dict(zip(asked, rt.fanout.ask(list(asked.values())), strict=True))
    return [
        event.event_id
        if event.event_id is not None
        else occurrence(event.base, rt.fanout.number((world, event.base), known.get(event.base, 0)))
        for event in events
    ]


def vectors_of(rt: Runtime, world: str, texts: Sequence[str]) -> dict[str, bytes]:
    """Return the vector of each distinct text."""
    distinct = list(dict.fromkeys(texts))
    embedder = rt.mind.embedder(world)
    found: dict[str, bytes] = {}
    for start in range(0, len(distinct), EMBED_CHUNK):
        part = distinct[start : start + EMBED_CHUNK]
        found |= zip(part, map(as_bytes, embedder.embed(part, "passage")), strict=True)
    return found


def _alike(event: _Event) -> list[tuple[MemoryDraft, tuple[str, ...]]]:
    """Return the drafts of an event that differ (masking may make them), each with its owners."""
    found: list[tuple[MemoryDraft, list[str]]] = []
    for draft, owner in zip(event.drafts, event.owners, strict=True):
        for known, owners in found:
            if draft is known or draft == known:
                owners.append(owner)
                break
        else:
            found.append((draft, [owner]))
    return [(draft, tuple(owners)) for draft, owners in found]


# -- knowing ---------------------------------------------------------------------------


def _who_knows(rt: Runtime, world: str, event: str) -> list[c.Knower]:
    users = rt.users(world)
    found: list[c.Knower] = []
    for start in range(0, len(users), ASK_CHUNK):
        asked = [
            c.Knows(**rt.user(user, world)._read(), event=event)  # noqa: SLF001
            for user in users[start : start + ASK_CHUNK]
        ]
        found += [knower for knowers in rt.fanout.ask(asked) for knower in knowers]
    by_group = [(k.user_id, k.group) for k in found if k.group is not None]
    true = belonging(rt, world, by_group)
    found = [k for k in found if k.group is None or (k.user_id, k.group) in true]
    return sorted(found, key=lambda k: (len(k.heard), k.user_id, k.memory_id))

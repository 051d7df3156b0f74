"""Groups of a world: a faction, a guild. What a group knows is stored once, and every member
recalls it, from the time of its membership; see memory_graph/groups.py."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from reverie import door
from reverie.actors import commands as c
from reverie.actors.gatherings import as_shown, of_group
from reverie.actors.lane import MAX_BULK, raise_error
from reverie.fanout import Parcel
from reverie.memory_graph import groups as g
from reverie.memory_graph.errors import InvalidValueError, JournalDamagedError
from reverie.memory_graph.ids import Key, check_id, check_key
from reverie.memory_graph.topk import rounded
from reverie.memory_graph.views import Hit, Item
from reverie.repeats import checked, part_of

if TYPE_CHECKING:
    from reverie.results import Observed
    from reverie.runtime import Runtime
    from reverie.user import User
    from reverie.world import World


class Group:
    """A group of a world; made by `World.group`. Cheap, holds no state.

    Its memory is that of the user "group:NAME". Every method may raise InputError (a bad
    argument), StorageError, and UnavailableError.
    """

    def __init__(self, runtime: Runtime, world: str, name: str) -> None:
        self._rt = runtime
        self.world = world
        self.name = name

    def __repr__(self) -> str:
        return f"Group({self.name!r}, world={self.world!r})"

    @property
    def user(self) -> User:
        """The memory of the group itself, with all that it knows."""
        return self._rt.user(g.owner_of(self.name), self.world)

    def join(
        self, *user_ids: str, history: bool = False, request_id: str | None = None
    ) -> list[str]:
        """Make users members, and return those for whom that changed anything: who was none, and,
        with `history`, who had not all of it.

        A member recalls what the group comes to know from now on; with `history` also what it
        knows already. Under a `request_id`, a repeated call changes nothing and gives the first
        answer, also to who has left since.

        Raises:
            InvalidValueError: a group joins a group.
            RequestReusedError: the request id was used before in this group, for another call.
        """
        return self._change(user_ids, checked(request_id), joins=True, history=history)

    def leave(
        self, *user_ids: str, forget: bool = False, request_id: str | None = None
    ) -> list[str]:
        """Let members leave, and return those that were members.

        Who leaves recalls what the group knew while he was a member, and nothing that comes later;
        with `forget` nothing at all. `request_id` as in `join`.
        """
        return self._change(user_ids, checked(request_id), joins=False, forget=forget)

    def members(self) -> list[str]:
        """Return the user ids of the members of now, sorted."""
        user = self.user
        found: list[str] = self._rt.call(c.Members(**user._read()))  # noqa: SLF001
        true = belonging(self._rt, self.world, [(member, self.name) for member in found])
        return [member for member in found if (member, self.name) in true]

    def observe(self, text: str, /, **event: Any) -> Observed:
        """Keep an event that the group knows of; `event` as in `World.observe`."""
        groups = (self.name, *door.texts(event.pop("groups", ()), "groups", any_order=True))
        return self._rt.world(self.world).observe(text, groups=groups, **event)

    def _change(
        self,
        user_ids: Sequence[str],
        request_id: str | None,
        *,
        joins: bool,
        history: bool = False,
        forget: bool = False,
    ) -> list[str]:
        rt, owner = self._rt, g.owner_of(self.name)
        rt._require_open()  # noqa: SLF001
        history, forget = door.flag(history, "history"), door.flag(forget, "forget")
        keys = [check_key(self.world, user_id) for user_id in user_ids]
        members = tuple(dict.fromkeys(key.user_id for key in keys))
        if any(g.name_of(member) is not None for member in members):
            msg = "a group can be a member of none"
            raise InvalidValueError(msg, what="user_id")
        if not members:
            return []
        shared = rt.user(owner, self.world)._write(None) | {"user_id": ""}  # noqa: SLF001
        change = c.Membership(**shared, other="", joins=joins, history=history, forget=forget)

        def parcel(other: str, owners: tuple[str, ...], *, anew: bool = False) -> Parcel:
            own = part_of(request_id, "member", other) or rt.new_request_id()
            command = msgspec.structs.replace(change, other=other, anew=anew, request_id=own)
            return Parcel(command, owners)

        with rt.fanout.gate.alone():  # two changes of one membership must not cross
            pairs = [(member, self.name) for member in members] if joins else []
            true = belonging(rt, self.world, pairs)
            parcels = [
                parcel(member, (owner,), anew=joins and (member, self.name) not in true)
                for member in members
            ]
            parcels.append(parcel(self.name, members))
            answers = rt.fanout.deliver(parcels, struck_out=True)
        return [member for member, (is_new,) in zip(members, answers[:-1], strict=True) if is_new]


def in_world(self: World, name: str) -> Group:
    """Return a group, a faction or a guild; nothing is stored until somebody joins or it observes.

    Raises:
        InvalidIdError: the name is empty, over 506 bytes, or not plain text.
    """
    check_key(self.name, g.owner_of(check_id(name, "group")))
    return Group(self._rt, self.name, name)


def of_world(self: World) -> list[str]:
    """Return the names of the groups that somebody joined or that know something, sorted."""
    found = map(g.name_of, self._rt.users(self.name))
    return sorted(name for name in found if name is not None)


def forget(rt: Runtime, key: Key) -> None:
    """Take a user that is about to be erased out of its groups; or a group from its members."""
    user = rt.user(key.user_id, key.world)
    group = g.name_of(key.user_id)
    if group is not None:
        here = Group(rt, key.world, group)
        with suppress(JournalDamagedError):  # a member then asks a group that is no more
            members: Sequence[str] = rt.call(c.Members(**user._read()))  # noqa: SLF001
            here.leave(*members, forget=True)
        return
    try:
        names: Sequence[str] = rt.call(c.MemberOf(**user._read()))  # noqa: SLF001
    except JournalDamagedError:  # what cannot be read must still be erasable
        names = of_world(rt.world(key.world))
    for name in names:
        with suppress(JournalDamagedError):
            Group(rt, key.world, name).leave(key.user_id, forget=True)


# -- reading ---------------------------------------------------------------------------


def belonging(rt: Runtime, world: str, pairs: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    """Return those of the (user id, name of a group) where the user's own memory says that it is or
    was a member, or cannot be read.

    Erasing reaches into save slots, but not into the list that a group keeps there: after a rewind
    or a fork the list names who was erased since. Whoever has that id now is somebody else.
    """
    names: dict[str, list[str]] = {}
    for user_id, name in pairs:
        names.setdefault(user_id, []).append(name)
    now, users = rt.now(world), list(names)
    found: set[tuple[str, str]] = set()
    for start in range(0, len(users), MAX_BULK):
        part = users[start : start + MAX_BULK]
        asked = [c.MemberOf(world=world, user_id=user_id, now=now) for user_id in part]
        for user_id, answer in zip(part, rt._router.call_many(asked), strict=True):  # noqa: SLF001
            is_damaged = isinstance(answer, JournalDamagedError)
            known = names[user_id] if is_damaged else raise_error(answer)
            found.update((user_id, name) for name in names[user_id] if name in known)
    return found


def search_many(rt: Runtime, searches: Sequence[c.Search]) -> list[list[Hit]]:
    """Return the hits of searches, with their vectors, each among what its user knows by itself and
    by its groups. Asking for the groups goes along with the searches; only members ask twice."""
    rt._require_open()  # noqa: SLF001
    asking = {s.key: s for s in searches if "memory" in s.types and s.member is None}
    asked: list[c.UserCommand] = [
        c.MemberOf(world=key.world, user_id=key.user_id, now=s.now) for key, s in asking.items()
    ]
    answers = rt.fanout.ask([*asked, *searches])
    groups = {key: names for key, names in zip(asking, answers, strict=False) if names}
    own: list[list[Hit]] = answers[len(asked) :]
    if not groups:
        return own
    further: list[c.Search] = []
    places: list[tuple[int, str]] = []
    for place, search in enumerate(searches):
        for name in groups.get(search.key, ()) if search.key in asking else ():
            # What one member recalls is not rekindled for all.
            further.append(
                msgspec.structs.replace(
                    search, user_id=g.owner_of(name), member=search.user_id, touch=False
                )
            )
            places.append((place, name))
    shared: dict[int, list[Hit]] = {}
    for (place, name), hits in zip(places, rt.fanout.ask(further), strict=True):
        shared.setdefault(place, []).extend(_shown(hit, name) for hit in hits)
    return [
        _merged(hits, shared[place], searches[place].limit) if place in shared else hits
        for place, hits in enumerate(own)
    ]


def _shown(hit: Hit, name: str) -> Hit:
    shown = as_shown(hit, name)
    assert isinstance(shown, Hit)  # noqa: S101 (a changed copy)
    return msgspec.structs.replace(shown, reasons=(*shown.reasons, f"known to the group {name}"))


def _merged(own: Sequence[Hit], shared: Sequence[Hit], limit: int) -> list[Hit]:
    """Return the best of both; of an event that the user knows in the same words, his own."""
    known = {(hit.event, hit.text) for hit in own}
    found = [*own]
    for hit in shared:
        if hit.event is None or (hit.event, hit.text) not in known:
            known.add((hit.event, hit.text))
            found.append(hit)
    found.sort(key=lambda hit: (-rounded(hit.score), -hit.at))  # stable: one's own come first
    return found[:limit]


def get(rt: Runtime, read: dict[str, Any], node_id: str) -> Item | None:
    """Return an item of a user's own, or of a group that it knows it by; None when unknown."""
    shared = of_group(node_id)
    if shared is None or g.name_of(read["user_id"]) is not None:
        found: Item | None = rt.call(c.Get(**read, node_id=node_id))
        return found
    name, inner = shared
    pair = (read["user_id"], name)
    if pair not in belonging(rt, read["world"], [pair]):
        return None
    owner = read | {"user_id": g.owner_of(name)}
    item: Item | None = rt.call(c.Get(**owner, node_id=inner, member=read["user_id"]))
    return None if item is None else as_shown(item, name)

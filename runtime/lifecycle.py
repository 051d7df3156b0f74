"""The course of life in a world: what time takes away, and what a death leaves behind.

These functions are methods of `World`; they stand here to keep that file short.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec
import structlog

from reverie import door
from reverie.actors import commands as c
from reverie.actors.lane import MAX_BULK, raise_error
from reverie.memory_graph.errors import InvalidLimitError, ReverieError, StaleGenerationError
from reverie.memory_graph.ids import Key, check_key, key_hash
from reverie.memory_graph.text import name_key
from reverie.repeats import checked, mark
from reverie.results import ERASED_AT, ForgetReceipt, receipt
from reverie.slots import BURIAL, BURIED

if TYPE_CHECKING:
    from reverie.memory_graph.store import Intent
    from reverie.runtime import Runtime
    from reverie.world import World

log = structlog.get_logger(__name__)

MAX_NAMES = 64  # of one who is buried


class BurialPlan(msgspec.Struct, frozen=True):
    """A burial, as it is noted in the catalog until the others have been looked after. `names` are
    masked as those of the world are."""

    world: str
    user_id: str
    names: tuple[str, ...]
    memories: bool
    at: float
    mark: c.Mark | None = None


class Erasing(msgspec.Struct, frozen=True):
    """The rest of a burial: who is still to be erased, by the hash of the key."""

    name: str
    mark: c.Mark | None = None


class Burial(msgspec.Struct, frozen=True):
    """What a burial did.

    Attributes:
        receipt: of the erasure, as of `User.forget`.
        others: what was removed or put away of each other user and group, by user id; only of
            those that had anything.
        shared: names of the dead that another living user of the world is called by too, as
            "Bob" by "bob"; ties to these were left alone, for they may be to that one.
    """

    receipt: ForgetReceipt
    others: dict[str, c.Parted]
    shared: tuple[str, ...] = ()


# -- what time takes away ----------------------------------------------------------------


def tend(
    self: World,
    at: object = None,
    *,
    users: Iterable[str] | None = None,
    request_id: str | None = None,
) -> dict[str, c.Tended]:
    """Carry out what time has brought: memories whose time to live is over end, those that weigh
    less than the profile's `archive_below` are archived, budgets are kept, and what has faded is
    told in summaries (unless `Config.summaries` is "off").

    It costs as much as has changed: looked at are users for whom something is due, that were
    written to since they were last looked at, and, once after each opening, all others; the rest
    stays on disk. What is done does not depend on who is in memory. Between two calls nothing
    answers that should not: a time to live counts also when it was not carried out yet.

    Args:
        self: the world.
        at: as of this time; now by default.
        users: ids of users; only these are looked at.
        request_id: with the same id, no user is tended twice; of who was, the first answer is given
            if the user is named, or something is due for it now.

    Returns:
        What was done, by user id, of those that something was done for or that were named.
    """
    rt = self._rt
    checked(request_id)
    now = rt.now(self.name) if at is None else door.time(at, "at")
    wanted = (
        _due(rt, self.name, now)
        if users is None
        else sorted(
            {
                check_key(self.name, user).user_id
                for user in door.texts(users, "users", any_order=True)
            }
        )
    )
    done: dict[str, c.Tended] = {}
    for start in range(0, len(wanted), MAX_BULK):
        part = wanted[start : start + MAX_BULK]
        commands = [
            c.Tend(
                world=self.name,
                user_id=user_id,
                at=now,
                request_id=request_id or rt.new_request_id(),
            )
            for user_id in part
        ]
        answers = rt._router.call_many(commands)  # noqa: SLF001
        for user_id, answer in zip(part, answers, strict=True):
            if not isinstance(answer, StaleGenerationError):  # there is no such user
                done[user_id] = _with_gists(rt, Key(self.name, user_id), raise_error(answer))
    return done


def _due(rt: Runtime, world: str, now: float) -> list[str]:
    """Return the users for whom something is due; each shard looks at some at a time."""
    asked = c.DueUsers(world, now, gists=rt.config.summaries != "off")
    found: list[str] = []
    for lane in rt._router.lanes:  # noqa: SLF001
        page = c.DuePage([], is_last=False)
        while not page.is_last:
            page = raise_error(lane.call([asked])[0])
        found += page.users
    return sorted(found)


def _with_gists(rt: Runtime, key: Key, tended: c.Tended) -> c.Tended:
    """Make the summaries of what has faded, as far as they are due."""
    if not tended.waiting or rt.config.summaries == "off":
        return tended
    count = 0
    policy = msgspec.structs.replace(rt.summaries.policy, kinds="faded")
    while rt.summaries.step(key, policy) is not None:
        count += 1
    return msgspec.structs.replace(tended, gists=count)


# -- death -------------------------------------------------------------------------------


def bury(
    self: World,
    user_id: str,
    *,
    names: Sequence[str] = (),
    memories: bool = False,
    request_id: str | None = None,
) -> Burial:
    """Erase a user for good, as `User.forget` does, and every tie of the others to it.

    Of every other user of the world, and of its groups, the relationship to the dead is removed,
    with its history; so are typed relations to and from it, and its co-occurrences with others.
    Memories that mention it stay as they are, for others may remember the dead; with `memories`
    they are archived. Ties are to names, for which case and width do not count: those to a name
    that is also another user's are left alone, and so is what mentions it; see `Burial.shared`.

    Once begun it is done to its end, also over a crash: the next opening, or the next burial,
    finishes what is left. Save slots do not bring the dead back, for erasing takes it out of them
    too; a rewind does bring back what others had towards it then.

    Args:
        self: the world.
        user_id: who died.
        names: by which others know it beside its id, such as "Bram" for "npc-17".
        memories: whether to archive what others remember of it.
        request_id: a call repeated with the same id gives the first receipt, and does not bury who
            has the id of this user since. Of the others it tells nothing then: what is kept of a
            burial names nobody.

    Raises:
        RequestReusedError: the request id was used before of this user, for another call.
        StorageError, UnavailableError: it is half done, and will be finished; see above.
    """
    rt = self._rt
    key = check_key(self.name, user_id)
    known_as = (user_id, *(door.name(name) for name in door.texts(names, "names", any_order=True)))
    if len(known_as) > MAX_NAMES:
        msg = f"{len(known_as)} names of one user are over the limit of {MAX_NAMES}"
        raise InvalidLimitError(msg, what="names")
    is_whole = door.flag(memories, "memories")
    living = {name_key(user) for user in self.users() if user != user_id}
    shared = tuple(dict.fromkeys(name for name in known_as if name_key(name) in living))
    own = [name for name in known_as if name not in shared]
    masked = map(rt.user(user_id, self.name).masking.asked_name, own)
    now = rt.now(self.name)
    known = mark(key, request_id, "bury", known_as, is_whole)
    plan = BurialPlan(self.name, user_id, tuple(dict.fromkeys(masked)), is_whole, now, known)
    others: dict[str, c.Parted] = {}

    def buried() -> tuple[float, c.Erased]:
        # Nothing that is delivered meanwhile may tie anybody to it anew.
        with rt.fanout.gate.alone():
            resume(rt)
            operation = uuid.uuid4().hex
            rt._slots.note(operation, BURIAL, msgspec.msgpack.encode(plan))  # noqa: SLF001
            others.update(_part(rt, plan))
            _go_on_to_erase(rt, operation, key, known)
            erased = rt.erase(key, known)
            rt._slots.strike_out(operation)  # noqa: SLF001
        return now, erased

    done = rt.repeats.once(key, known, ERASED_AT, buried)
    return Burial(receipt(key, *done), others, shared)


def resume(rt: Runtime) -> None:
    """Finish the burials that a crash or an error interrupted; what cannot be finished is logged
    and stays noted."""
    burials = rt._slots.burials()  # noqa: SLF001
    if not burials:
        return
    with rt.fanout.gate.alone():
        for intent in burials:
            try:
                _finish(rt, intent)
            except ReverieError as exc:
                log.error("a burial cannot be finished", error=str(exc))


def _finish(rt: Runtime, intent: Intent) -> None:
    log.warning("finishing an interrupted burial")
    if intent.kind == BURIAL:
        plan = msgspec.msgpack.decode(intent.payload, type=BurialPlan)
        key = Key(plan.world, plan.user_id)
        _part(rt, plan)
        _go_on_to_erase(rt, intent.operation, key, plan.mark)
        rt.erase(key, plan.mark)
    else:
        left = msgspec.msgpack.decode(intent.payload, type=Erasing)
        for world, user_id in rt._all_users(None):  # noqa: SLF001
            if key_hash(Key(world, user_id)).hex() == left.name:
                rt.erase(Key(world, user_id), left.mark)
    rt._slots.strike_out(intent.operation)  # noqa: SLF001


def _part(rt: Runtime, plan: BurialPlan) -> dict[str, c.Parted]:
    """Part the others, groups too, from the dead; done again, it changes nothing."""
    world = rt.world(plan.world)
    if not plan.names:
        return {}
    users = [world.user(user_id) for user_id in rt.users(plan.world) if user_id != plan.user_id]
    found: dict[str, c.Parted] = {}
    for start in range(0, len(users), MAX_BULK):
        commands = [
            c.Part(
                **user._write(rt.new_request_id()) | {"at": plan.at},  # noqa: SLF001
                others=plan.names,
                memories=plan.memories,
            )
            for user in users[start : start + MAX_BULK]
        ]
        answers = rt._router.call_many(commands)  # noqa: SLF001
        for command, answer in zip(commands, answers, strict=True):
            if (parted := raise_error(answer)) != c.Parted():
                found[command.user_id] = parted
    return found


def _go_on_to_erase(rt: Runtime, operation: str, key: Key, known: c.Mark | None) -> None:
    """From here on, the note names nobody: the erasure looks for what is left of the name."""
    payload = msgspec.msgpack.encode(Erasing(key_hash(key).hex(), known))
    rt._slots.note_instead(operation, BURIED, payload)  # noqa: SLF001

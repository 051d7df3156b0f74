"""Profiles as a caller sees them: read from a file, set on users, and what they have put away.

These functions are methods of `User` and `World`; they stand here to keep those files short.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from reverie import door
from reverie.actors import commands as c
from reverie.actors.lane import raise_error
from reverie.memory_graph.audit import AuditPage
from reverie.memory_graph.errors import ConfigError, InvalidValueError
from reverie.memory_graph.ids import check_id, check_key
from reverie.memory_graph.nodes import MEMORY_KINDS
from reverie.memory_graph.profile import Profile, make_profile
from reverie.repeats import checked

if TYPE_CHECKING:
    from pathlib import Path

    from reverie.user import User
    from reverie.world import World

MAX_FILE_BYTES = 1024 * 1024


def load_profiles(path: str | Path) -> dict[str, Profile]:
    """Return the profiles of a TOML file, one table for each kind of user, by the table's name.

        [guard]
        memories = 500
        ttl_s = { event = 604800 }     # a week

    Args:
        path: of the file; at most 1 MiB.

    Raises:
        InvalidValueError: `path` can be none.
        ConfigError: the file cannot be read or is no TOML, something stands outside of a table, or
            a table has an unknown setting or a bad value. The message names the table and the key.
    """
    where = door.path(path)
    try:
        with where.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
        if len(data) > MAX_FILE_BYTES:
            msg = f"{where} is over {MAX_FILE_BYTES:,} bytes"
            raise ConfigError(msg, path=str(where))
        tables = tomllib.loads(data.decode())
    except OSError as exc:
        msg = f"{where} cannot be read: {exc.strerror or exc}"
        raise ConfigError(msg, path=str(where)).because(exc) from exc
    except ValueError as exc:  # no UTF-8, or no TOML
        msg = f"{where} is no TOML: {exc}"
        raise ConfigError(msg, path=str(where)).because(exc) from exc
    found: dict[str, Profile] = {}
    for name, fields in tables.items():
        if not isinstance(fields, dict):
            msg = f"{where}: {name} stands outside of a table; begin one with [guard], say"
            raise ConfigError(msg, setting=name)
        where_in = f"{where}: profile {name!r}"
        found[name] = make_profile({"name": name, **fields}, where=where_in, kinds=MEMORY_KINDS)
    return found


def _checked(user: User, profile: object) -> Profile | None:
    """Return a profile that can be journaled, its texts masked."""
    if profile is None:
        return None
    if not isinstance(profile, Profile):
        msg = f"a profile must be a Profile or None, not {type(profile).__name__}"
        raise InvalidValueError(msg, what="profile")
    fields = msgspec.structs.asdict(profile)
    sound = make_profile(fields, where=f"profile {profile.name!r:.100}", kinds=MEMORY_KINDS)
    mask = user.masking.text
    return msgspec.structs.replace(
        sound,
        name=mask(sound.name) if sound.name else "",
        rest=dict(sorted((mask(name), value) for name, value in sound.rest.items())),
    )


def set_profile(self: User, profile: Profile | None, *, request_id: str | None = None) -> bool:
    """Limit what this user may keep and cost, from now on; None lifts all limits.

    The limits are part of the user's state: a rewind brings back those of then. What is over a
    budget is archived at once, the least weighty first; pinned memories stay, whatever the budget.
    Times to live are given to memories that are kept from now on.

    Returns:
        False when the user had this profile already.

    Raises:
        ConfigError: a value out of range; the message names it.
    """
    command = c.SetProfile(
        **self._write(self._request(request_id)), profile=_checked(self, profile)
    )
    return bool(self._rt.call(command))


def profile(self: User) -> Profile | None:
    """Return the limits of this user, None without any."""
    found: Profile | None = self._rt.call(c.GetProfile(**self._read()))
    return found


def audit(self: User, *, limit: int = 100, cursor: str | None = None) -> AuditPage:
    """Return what became of the memories that no longer answer: one page, oldest first.

    A line for each that was archived (for a budget, for its weight, or asked for), taken into a
    summary, expired or deleted; with the time, the reason, and the summary that tells it. What was
    replaced is in the `history` of what replaced it instead.

    Args:
        self: whose memory.
        limit: lines per page.
        cursor: of the page before; None begins.
    """
    command = c.Audit(
        **self._read(),
        limit=door.limit(limit),
        after=None if cursor is None else check_id(cursor, "cursor"),
    )
    page: AuditPage = self._rt.call(command)
    return page


def set_profiles(
    self: World, profiles: Mapping[str, Profile | None], *, request_id: str | None = None
) -> int:
    """Set the limits of many users, one call per shard (see `User.set_profile`). Everything is
    checked before anything is set. The request id counts for each user by itself. Returns how many
    users had other limits before."""
    rt = self._rt
    checked(request_id)
    commands = []
    for user_id, given in door.by_user(profiles, "profiles").items():
        check_key(self.name, user_id)
        user = rt.user(user_id, self.name)
        shared = user._write(request_id or rt.new_request_id())  # noqa: SLF001 (of the package)
        commands.append(c.SetProfile(**shared, profile=_checked(user, given)))
    return sum(bool(raise_error(answer)) for answer in rt._router.call_many(commands))  # noqa: SLF001

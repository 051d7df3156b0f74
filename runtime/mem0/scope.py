"""Whose memories a call means: mem0's user_id, agent_id and run_id, and the users of reverie.

The owner of a memory is the user of reverie in whose graph it lies:

    user_id given                   the user of that id
    agent_id given, no user_id      "mem0:agent:ID"
    only run_id given               "mem0:run:ID"

A user id that begins with "mem0:" or "group:" (where reverie keeps what groups know) is kept as
"mem0:user:ID". agent_id and run_id stand in the metadata of each memory, so that a call that names
only these finds what they have with every user, as in mem0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

import msgspec

from reverie.mem0.exceptions import ValidationError, needs_scope

IDS = ("user_id", "agent_id", "run_id")
ANY = "*"
PREFIX = "mem0:"
_TAKEN = (PREFIX, "group:")


class Scope(msgspec.Struct, frozen=True):
    """What a call names; at least one is there. `ANY` stands for every id."""

    user_id: str | None = None
    agent_id: str | None = None
    run_id: str | None = None

    def ids(self) -> dict[str, str]:
        """Return the ids that are given, by their names in mem0."""
        return {name: value for name in IDS if (value := getattr(self, name)) is not None}

    @property
    def owner(self) -> str:
        """The user of reverie that keeps what is added in this scope."""
        if self.user_id is not None:
            return owner_of_user(self.user_id)
        if self.agent_id is not None:
            return f"{PREFIX}agent:{self.agent_id}"
        return f"{PREFIX}run:{self.run_id}"

    @property
    def single_owner(self) -> str | None:
        """The only user of reverie that can hold what this scope finds, None for all."""
        if self.user_id is None or self.user_id == ANY:
            return None
        return owner_of_user(self.user_id)


def owner_of_user(user_id: str) -> str:
    """Return the user of reverie for a user_id."""
    return f"{PREFIX}user:{user_id}" if user_id.startswith(_TAKEN) else user_id


def user_of_owner(owner: str) -> str | None:
    """Return the user_id of a user of reverie, None where only an agent or a run owns it."""
    if owner.startswith(f"{PREFIX}user:"):
        return owner.removeprefix(f"{PREFIX}user:")
    return None if owner.startswith(PREFIX) else owner


def make_scope(given: Mapping[str, Any], *, strict: bool, place: str = "") -> Scope:
    """Return the scope of a call.

    Args:
        given: may hold user_id, agent_id and run_id.
        strict: as mem0 2.x: other types become text, white space around is dropped, and inside it
            is refused. 1.x takes texts as they are.
        place: where they stand, for the message.

    Raises:
        ValidationError: none is given, or one cannot be used.
    """
    ids = {name: _checked(given[name], name, strict=strict) for name in IDS if name in given}
    named = {name: value for name, value in ids.items() if value}
    if not named:
        raise needs_scope({name: given.get(name) for name in IDS}, place)
    return Scope(**named)


def _checked(value: Any, name: str, *, strict: bool) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool | int | float):
        value = str(value)
    if not isinstance(value, str):
        _refuse(name, value, f"must be a text, not {type(value).__name__}")
    if not strict:
        return value
    trimmed = value.strip()
    if not trimmed:
        _refuse(name, value, "is empty or only white space")
    if any(char.isspace() for char in trimmed):
        _refuse(name, value, "holds white space")
    return trimmed


def _refuse(name: str, value: Any, why: str) -> NoReturn:
    msg = f"Invalid {name}: it {why}"
    raise ValidationError(
        msg,
        "VALIDATION_004",
        {name: repr(value)[:100]},
        "Pass an id without white space.",
    )

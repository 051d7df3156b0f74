"""What a kind of user may keep and cost: the limits of a guard, a merchant, a companion.

A profile is set on a user by a journaled event, so the limits of a user are part of its state: they
are in its snapshot and its digest, go back with a rewind and along with a fork, and replay reads no
file.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping

import msgspec

from reverie.memory_graph.errors import ConfigError, shown

MAX_COUNT = 2**53  # of a whole number that JSON and TOML readers agree on
MAX_RESTS = 64
MAX_NAME_CHARS = 200


class Profile(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Limits of one user; None is no limit.

    Attributes:
        name: of the kind of user, for people; `load_profiles` gives it the name of its table.
        memories: active memories, pinned ones among them; what is worth least is archived above it.
        bytes: of the active memories: text in UTF-8 and 4 bytes for each number of a vector.
        model_calls: of a language model, all together; above it, extraction goes on by rules alone.
        prompt_tokens: that these calls may read.
        ttl_s: how long new memories of a kind ("fact", "preference", "event") live, in seconds, if
            they come without a time to live of their own and are not pinned.
        archive_below: unpinned memories whose weight (see budget.py; 0 to about 1.5) is below it
            are archived by `tend`.
        reflect_at: importance (0 to 1 for each new memory) gathered since the last reflection from
            which on the next is due (see reflection.py).
        rest: value that a dimension of relationships returns to, by its name.
    """

    name: str = ""
    memories: int | None = None
    bytes: int | None = None
    model_calls: int | None = None
    prompt_tokens: int | None = None
    ttl_s: dict[str, float] = {}
    archive_below: float | None = None
    reflect_at: float | None = None
    rest: dict[str, float] = {}


def make_profile(fields: Mapping[str, object], *, where: str, kinds: Collection[str]) -> Profile:
    """Return a profile of fields that somebody wrote, numbers in their proper types and mappings in
    the order of their keys: the same limits are the same bytes.

    Args:
        fields: of `Profile`, by name.
        where: what they are of, for errors: "profile 'guard'".
        kinds: of memories.

    Raises:
        ConfigError: an unknown field or a bad value; the message names it and `where`.
    """
    known = Profile.__struct_fields__
    if unknown := sorted(map(str, set(fields) - set(known))):
        msg = f"{where} has no setting {', '.join(unknown)}; known: {', '.join(known)}"
        raise ConfigError(msg, settings=unknown)
    made: dict[str, object] = {}
    for name, value in fields.items():
        check = _CHECKS[name]
        if value is None and getattr(Profile(), name) is None:
            continue
        try:
            made[name] = check(value)
        except (TypeError, ValueError) as exc:
            msg = f"{where}: {name} must be {exc}, not {shown(value)}"
            raise ConfigError(msg, setting=name) from None
    profile = Profile(**made)  # type: ignore[arg-type]  # checked above
    if strange := sorted(set(profile.ttl_s) - set(kinds)):
        msg = f"{where}: ttl_s has no kind {', '.join(strange)}; known: {', '.join(kinds)}"
        raise ConfigError(msg, setting="ttl_s")
    return profile


def _text(value: object) -> str:
    msg = f"a text of at most {MAX_NAME_CHARS} characters"
    if not isinstance(value, str) or len(value) > MAX_NAME_CHARS or "\0" in value:
        raise ValueError(msg)
    value.encode()  # a lone surrogate is a ValueError too
    return value


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_COUNT:
        msg = f"a whole number from 0 to {MAX_COUNT:,}"
        raise ValueError(msg)
    return value


def _number(value: object) -> float:
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not abs(value) <= sys.float_info.max  # a whole number may be too large for a float
    ):
        msg = "a finite number"
        raise ValueError(msg)
    return float(value)


def _not_negative(value: object) -> float:
    if (number := _number(value)) < 0:
        msg = "a number of 0 or more"
        raise ValueError(msg)
    return number


def _positive(value: object) -> float:
    if (number := _number(value)) <= 0:
        msg = "a number over 0"
        raise ValueError(msg)
    return number


def _table(one: Callable[[object], float]) -> Callable[[object], dict[str, float]]:
    def check(value: object) -> dict[str, float]:
        if not isinstance(value, Mapping) or len(value) > MAX_RESTS:
            msg = f"a table of names and numbers, at most {MAX_RESTS}"
            raise ValueError(msg)
        return {_text(name): one(value[name]) for name in sorted(value, key=str)}

    return check


_CHECKS: dict[str, Callable[[object], object]] = {
    "name": _text,
    "memories": _count,
    "bytes": _count,
    "model_calls": _count,
    "prompt_tokens": _count,
    "ttl_s": _table(_positive),
    "archive_below": _not_negative,
    "reflect_at": _positive,
    "rest": _table(_number),
}

"""Calls of tools by a model: bound to a world and a user, checked, and answered as data."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, cast

import msgspec
import structlog

from reverie import door
from reverie.memory_graph import errors as e
from reverie.memory_graph.groups import name_of
from reverie.memory_graph.ids import DEFAULT_WORLD, check_id
from reverie.runtime import Runtime
from reverie.tools import arguments as a, memory_tools
from reverie.tools.arguments import schema
from reverie.tools.budget import LEAST_TOKENS, Count, bounded, estimated, fitted, short
from reverie.tools.call import Call
from reverie.tools.table import FAMILIES, ROLES, TABLE, Family, Role, Tool

ANSWER_TOKENS = 4_000
MAX_ANSWER_TOKENS = 1_000_000
MAX_ARGUMENT_BYTES = 4 * 1024**2
OWN: tuple[Family, ...] = ("reverie",)
# Codes of errors beside the names of those in memory_graph/errors.py.
UNKNOWN_TOOL, INVALID, FORBIDDEN = "UnknownTool", "InvalidArguments", "Forbidden"

log = structlog.get_logger(__name__)


class _Refused(Exception):  # noqa: N818 (it is an answer, not a fault)
    """A call that is refused before the runtime hears of it."""

    def __init__(self, code: str, message: str, **details: Any) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.details = details


def chosen(
    *,
    allowed: Collection[str] | None = None,
    families: Collection[Family] = OWN,
    role: Role = "write",
    characters: bool = False,
) -> list[Tool]:
    """Return tools of the table, in its order.

    Args:
        allowed: their names; None: all of `families`.
        families: "reverie", "server-memory", "openmemory".
        role: only those that it may call.
        characters: also those that are for worlds of characters.

    Raises:
        ConfigError: an unknown name, family or role.
    """
    _known(families, FAMILIES, "families")
    _known((role,), ROLES, "role")
    if allowed is not None:
        _known(allowed, TABLE, "allowed")
    return [
        tool
        for tool in TABLE.values()
        if (tool.family in families if allowed is None else tool.name in allowed)
        and _reaches(role, tool.role)
        and (characters or not tool.of_characters)
    ]


def _known(given: object, known: Iterable[str], what: str) -> None:
    if isinstance(given, str) or not isinstance(given, Collection):
        msg = f"{what} must be a collection of names, not {given!r}"
        raise e.ConfigError(msg, setting=what)
    if unknown := [name for name in given if name not in known]:
        msg = f"{what}: unknown {', '.join(map(repr, unknown))}; known: {', '.join(known)}"
        raise e.ConfigError(msg, setting=what)


def _reaches(role: Role, needed: Role) -> bool:
    return ROLES.index(role) >= ROLES.index(needed)


def described(tool: Tool, *, strict: bool, user: bool = False, required_user: bool = False) -> Any:
    """Return a tool as chat APIs of the OpenAI kind take it."""
    parameters = schema(tool.arguments, strict=strict, user=user, required_user=required_user)
    function = {"name": tool.name, "description": tool.description, "parameters": parameters}
    return {"type": "function", "function": function | ({"strict": True} if strict else {})}


class Tools:
    """The tools of one binding: a runtime, a world and a user, which a model cannot leave.

    Safe to share between threads.

    Args:
        runtime: open; who opened it closes it.
        world: the only one that is reached.
        user: whose memory it is about. None: each call names one of `others`.
        role: "read"; "write", which also reads; or "admin", which also erases a whole user.
        others: ids of users whom a call may name instead, as `user_id`; True: any of the world.
            Groups only by their ids ("group:NAME").
        allowed: names of the tools that there are; None: all of `families`.
        families: "reverie", "server-memory", "openmemory".
        characters: the world is one of characters: there is `relationships`, too.
        answer_tokens: bound on an answer, by `count_tokens`, 400 to 1,000,000.
        count_tokens: of the model that reads the answers; about a third of the UTF-8 bytes by
            default, which is rather too much.

    Raises:
        ConfigError: an unknown tool, family or role; nobody whose memory it could be about.
        InvalidIdError: an id is none.
        InvalidLimitError: `answer_tokens` is out of its range.
    """

    def __init__(  # noqa: PLR0913
        self,
        runtime: Runtime,
        world: str = DEFAULT_WORLD,
        user: str | None = None,
        *,
        role: Role = "write",
        others: Collection[str] | bool = False,
        allowed: Collection[str] | None = None,
        families: Collection[Family] = OWN,
        characters: bool = False,
        answer_tokens: int = ANSWER_TOKENS,
        count_tokens: Count = estimated,
    ) -> None:
        self.runtime = runtime
        self.world = check_id(world, "world")
        self.user = None if user is None else check_id(user, "user_id")
        self.role = role
        self.others: frozenset[str] | bool = (
            others
            if isinstance(others, bool)
            else frozenset(check_id(other, "user_id") for other in door.texts(others, "others"))
        )
        if self.user is None and not self.others:
            msg = "tools need a user, or others whom a call may name"
            raise e.ConfigError(msg, setting="user")
        tools = chosen(allowed=allowed, families=families, role=role, characters=characters)
        self.tools = {tool.name: tool for tool in tools}
        self._budget = door.limit(answer_tokens, "answer_tokens", MAX_ANSWER_TOKENS)
        if self._budget < LEAST_TOKENS:
            msg = f"answer_tokens must be at least {LEAST_TOKENS}, not {answer_tokens!r}"
            raise e.InvalidLimitError(msg, what="answer_tokens")
        self._count = count_tokens

    def __repr__(self) -> str:
        return f"Tools({self.user!r}, world={self.world!r}, role={self.role!r})"

    def available(self, role: Role | None = None) -> list[Tool]:
        """Return the tools that a role may call, by default that of the binding."""
        return [tool for tool in self.tools.values() if _reaches(self._role(role), tool.role)]

    def parameters(self, tool: Tool, *, strict: bool = False) -> dict[str, Any]:
        """Return the JSON schema of the arguments of a tool, as this binding takes them."""
        made: dict[str, Any] = schema(
            tool.arguments,
            strict=strict,
            user=bool(self.others),
            required_user=self.user is None,
        )
        return made

    def schemas(
        self, allowed: Collection[str] | None = None, *, strict: bool = True
    ) -> list[dict[str, Any]]:
        """Return the tools as chat APIs of the OpenAI kind take them.

        Args:
            allowed: only these; None: all of the binding.
            strict: as the strict mode wants them (all properties required, null for what is left
                out); False: only what must be given is required.

        Raises:
            ConfigError: an unknown tool.
        """
        if allowed is not None:
            _known(allowed, TABLE, "allowed")
        return [
            described(tool, strict=strict, user=bool(self.others), required_user=self.user is None)
            for tool in self.available()
            if allowed is None or tool.name in allowed
        ]

    def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | str | None = None,
        *,
        role: Role | None = None,
    ) -> dict[str, Any]:
        """Carry out a call of a model and return its answer, which JSON can hold.

        Nothing that a model sends raises: what goes wrong is an answer, too, `{"error": CODE,
        "message": ..., "details": {...}}`, where the code is the name of a `ReverieError`,
        "UnknownTool", "InvalidArguments" or "Forbidden".

        Args:
            name: of the tool.
            arguments: a mapping, or JSON text of one.
            role: of who asks, if it is less than that of the binding.
        """
        try:
            tool = self._tool(name, self._role(role))
            given = dict(_parsed(arguments))
            user_id = self._user_of(given)
            run = tool.run
            if tool.arguments is a.Forget and given.get("everything"):
                self._require("admin", self._role(role), "forget with everything")
                run = memory_tools.forget_everything
            checked = _checked(given, tool.arguments)
            user = self.runtime.user(user_id, self.world)
            answer = run(Call(self.runtime, user, self._budget, self._count), checked)
            return fitted(answer, self._budget, self._count)
        except _Refused as exc:
            return _fault(exc.code, exc.message, exc.details)
        except e.ReverieError as exc:
            return _of_error(exc)
        except RecursionError:
            return _fault(INVALID, "the arguments are nested too deeply")
        except Exception:  # a model must hear of it, and nothing about the inside
            log.exception("a tool failed", tool=short(str(name), 60))
            return _fault("InternalError", "a fault of the memory; the call was not understood")

    def _role(self, role: Role | None) -> Role:
        if role is None:
            return self.role
        _known((role,), ROLES, "role")
        return min(role, self.role, key=ROLES.index)

    def _tool(self, name: object, role: Role) -> Tool:
        tool = self.tools.get(name) if isinstance(name, str) else None
        if tool is None:
            known = ", ".join(self.tools)
            msg = f"there is no tool {short(repr(name), 60)}; there are: {known}"
            raise _Refused(UNKNOWN_TOOL, msg)
        self._require(tool.role, role, tool.name)
        return tool

    @staticmethod
    def _require(needed: Role, role: Role, what: str) -> None:
        if not _reaches(role, needed):
            msg = f"{what} needs the role {needed!r}; this connection has {role!r}"
            raise _Refused(FORBIDDEN, msg, needed=needed)

    def _user_of(self, given: dict[str, Any]) -> str:
        """Take `user_id` out of the arguments, and return whose memory it is about."""
        asked = given.pop("user_id", None)
        if asked is None:
            if self.user is None:
                msg = "say whose memory it is about: user_id"
                raise _Refused(INVALID, msg, what="user_id")
            return self.user
        checked = check_id(asked, "user_id")
        if checked == self.user:
            return checked
        is_open = self.others is True and name_of(checked) is None
        if not (is_open or (isinstance(self.others, frozenset) and checked in self.others)):
            msg = "the memory of that user is out of reach here; leave user_id out"
            if self.user is None:
                msg = "the memory of that user is out of reach here"
            raise _Refused(FORBIDDEN, msg, what="user_id")
        return checked


def _parsed(arguments: object) -> Mapping[str, Any]:
    if arguments is None or arguments == "":
        return {}
    if isinstance(arguments, str):
        try:
            data = arguments.encode()
            if len(data) > MAX_ARGUMENT_BYTES:
                msg = f"the arguments have {len(data):,} bytes; at most {MAX_ARGUMENT_BYTES:,}"
                raise _Refused(INVALID, msg)
            arguments = msgspec.json.decode(data)
        except (msgspec.DecodeError, UnicodeError) as exc:
            msg = f"the arguments are no JSON: {exc}"
            raise _Refused(INVALID, msg) from None
    if not isinstance(arguments, Mapping) or not all(isinstance(key, str) for key in arguments):
        msg = f"the arguments must be an object of names and values, not {type(arguments).__name__}"
        raise _Refused(INVALID, msg)
    return cast("Mapping[str, Any]", arguments)


def _checked(given: dict[str, Any], kind: type[a.Arguments]) -> a.Arguments:
    try:
        return msgspec.convert(given, kind)
    except (msgspec.ValidationError, TypeError, ValueError, OverflowError) as exc:
        raise _Refused(INVALID, str(exc)) from None


def _of_error(error: e.ReverieError) -> dict[str, Any]:
    wire = error.to_wire()
    if isinstance(error, e.InputError | e.NotFoundError | e.StateError | e.UnavailableError):
        return _fault(wire.code, wire.message, wire.details)
    # What disk and models say names folders of this machine.
    log.error("a tool failed", error=str(error))
    told = " ".join((type(error).__doc__ or "").partition("\n\n")[0].split())
    return _fault(wire.code, told, {})


def _fault(code: str, message: str, details: Mapping[str, Any] | None = None) -> dict[str, Any]:
    return {"error": code, "message": short(message), "details": bounded(details or {})}

"""Graph queries in Cypher over one user's memory; see docs/queries.md.

    ana.query("MATCH (e:Entity)<-[:CONTAINS_ENTITY]-(m:Memory) RETURN e.name, count(m)")

The engine (LadybugDB, the extra "cypher") runs in a process of its own over a copy of the graph.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from reverie import door
from reverie.graphs import pages
from reverie.memory_graph.errors import InvalidValueError

if TYPE_CHECKING:
    from reverie.user import User

MAX_ROWS = 10_000
MAX_TIMEOUT_S = 60.0
MAX_PARAMETERS = 64
MAX_VALUES = 1_000  # in all parameters
MAX_PARAMETER_BYTES = 64 * 1024
MAX_LEVELS = 4
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class QueryResult(msgspec.Struct, frozen=True):
    """What a graph query found.

    Attributes:
        columns: their names, as the query gives them.
        rows: the values of each, as plain data. A node or edge is a mapping of its fields, with its
            label or kind as "_label"; a path is a mapping of "nodes" and "rels".
        truncated: there are more rows than were asked for, or than an answer may hold (8 MiB).
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    truncated: bool = False

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def dicts(self) -> list[dict[str, Any]]:
        """Return each row as a mapping by column."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


def query(
    self: User,
    cypher: str,
    params: Mapping[str, Any] | None = None,
    *,
    limit: int = 1000,
    timeout_s: float = 5.0,
    include_archived: bool = False,
    include_retired: bool = False,
) -> QueryResult:
    """Return what a graph query in Cypher finds in this user's graph, and in no other.

    A query can only read, and is one statement. The schema is in docs/queries.md. The graph is
    copied for the engine when it has changed since the last query; weights and relationships are as
    they have decayed, at most a minute old.

    Args:
        self: the user.
        cypher: the query, of at most 64 KiB. Values belong into parameters: `$name`.
        params: the values of the parameters: texts, numbers, flags, lists and mappings of these;
            a datetime is passed as seconds.
        limit: most rows that are returned, 1 to 10,000.
        timeout_s: most seconds that the query may run, over 0 to 60; the query is then ended. The
            copying that may come before is not in it.
        include_archived: archived memories are there too.
        include_retired: superseded and expired memories, and relations that have ended, are there
            too; see the fields `status`, `retired_at` and `valid_to`.

    Raises:
        QueryError: not a query, or one that does more than read; or the engine refuses it.
        QueryLimitError: it took too much time or memory, or the graph is too large.
        InvalidValueError: a parameter is missing, is too many, or cannot be passed.
        ConfigError: the extra "cypher" is not installed.
        OverloadedError: too many queries are under way.
    """
    from reverie.cypher.engines import Look, Question, require_engine
    from reverie.cypher.tokens import parse

    checked = parse(cypher)
    values = _parameters(params, checked.parameters)
    most = door.limit(limit, "limit", MAX_ROWS)
    seconds = _seconds(timeout_s)
    require_engine()
    rt, masking, now = self._rt, self.masking, self._rt.now(self.key.world)
    question = Question(
        checked.text(masking.asked_name), masking.asked_values(values), most, seconds
    )
    archived, retired = bool(include_archived), bool(include_retired)
    rt._require_open()  # noqa: SLF001 (of our own package)
    answer = rt.graphs.engines.ask(
        Look(self.key, archived, retired),
        question,
        lambda known: pages(self, archived=archived, retired=retired, known=known, now=now),
        now,
    )
    rows = tuple(tuple(row) for row in answer["rows"])
    return QueryResult(tuple(answer["columns"]), rows, answer["truncated"])


def _seconds(value: object) -> float:
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not 0 < value <= MAX_TIMEOUT_S
    ):
        msg = f"timeout_s must be a number of seconds over 0 and up to {MAX_TIMEOUT_S:g}"
        raise InvalidValueError(msg, what="timeout_s")
    return float(value)


def _parameters(given: object, wanted: frozenset[str]) -> dict[str, Any]:
    if given is None:
        given = {}
    if not isinstance(given, Mapping) or len(given) > MAX_PARAMETERS:
        msg = f"params must be a mapping of at most {MAX_PARAMETERS} names"
        raise InvalidValueError(msg, what="params")
    for name in given:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            msg = f"{name!r:.100} is no name of a parameter"
            raise InvalidValueError(msg, what="params")
    if missing := sorted(wanted - given.keys()):
        msg = f"params lacks ${', $'.join(missing)[:200]}"
        raise InvalidValueError(msg, what="params")
    if unknown := sorted(given.keys() - wanted):
        msg = f"the query has no ${', $'.join(unknown)[:200]}"
        raise InvalidValueError(msg, what="params")
    left = [MAX_VALUES, MAX_PARAMETER_BYTES]
    return {name: _value(value, MAX_LEVELS, left) for name, value in given.items()}


def _value(value: object, levels: int, left: list[int]) -> Any:
    left[0] -= 1
    if left[0] < 0 or levels < 0:
        msg = f"params has more than {MAX_VALUES} values, or more than {MAX_LEVELS} levels"
        raise InvalidValueError(msg, what="params")
    match value:
        case None | bool():
            return value
        case int() if -(2**63) <= value < 2**63:
            return value
        case float() if math.isfinite(value):
            return value
        case str():
            left[1] -= len(value)
            if left[1] < 0:
                msg = f"params has more than {MAX_PARAMETER_BYTES:,} characters"
                raise InvalidValueError(msg, what="params")
            return door.text(value, 4 * MAX_PARAMETER_BYTES) if value.strip() else _blank(value)
        case dt.datetime():
            return door.time(value, "params")
        case list() | tuple():
            return [_value(one, levels - 1, left) for one in value]
        case Mapping():
            if not all(isinstance(name, str) and _NAME.fullmatch(name) for name in value):
                msg = "a mapping among params has a key that is no name"
                raise InvalidValueError(msg, what="params")
            return {name: _value(one, levels - 1, left) for name, one in value.items()}
        case _:
            msg = f"params cannot hold {value!r:.100}"
            raise InvalidValueError(msg, what="params")


def _blank(value: str) -> str:
    if "\0" in value:
        msg = "params holds a text that cannot be encoded"
        raise InvalidValueError(msg, what="params")
    return value


__all__ = ["QueryResult", "query"]

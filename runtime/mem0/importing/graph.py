"""The graph of mem0 1.x out of a file of Kuzu; needs the extra "mem0"."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from reverie.memory_graph.errors import ConfigError, InvalidValueError

_EDGES = """
    match (a:Entity)-[r:CONNECTED_TO]->(b:Entity)
    return a.user_id, a.agent_id, a.run_id, a.name, r.name, b.name, r.created
    order by a.id, b.id, r.name
"""


class Triple(NamedTuple):
    """A relation of a user of mem0; `since` is seconds (UTC), None where it is not known."""

    number: int
    user_id: str | None
    agent_id: str | None
    run_id: str | None
    source: str
    relationship: str
    target: str
    since: float | None


def read_graph(path: Path) -> Iterator[Triple]:
    """Yield the relations of a graph, in the order of their heads.

    Raises:
        ConfigError: the package that reads it is not there; the message names the extra.
        InvalidValueError: the file is no graph of mem0.
    """
    try:
        import kuzu
    except ImportError as exc:
        msg = "reading a graph of mem0 1.x needs kuzu: pip install 'reverie[mem0]'"
        raise ConfigError(msg, extra="mem0") from exc
    try:
        database = kuzu.Database(str(path), read_only=True)
        result: Any = kuzu.Connection(database).execute(_EDGES)
        number = 0
        while result.has_next():
            number += 1
            *ids, source, relation, target, created = result.get_next()
            user_id, agent_id, run_id = (None if value is None else str(value) for value in ids)
            since = None if created is None else _seconds(created)
            yield Triple(
                number, user_id, agent_id, run_id, str(source), str(relation), str(target), since
            )
    except RuntimeError as exc:  # all that Kuzu raises
        msg = f"{path} is no graph of mem0: {str(exc)[:200]}"
        raise InvalidValueError(msg, path=str(path)) from exc


def _seconds(created: Any) -> float:
    from datetime import UTC

    aware = created if created.tzinfo is not None else created.replace(tzinfo=UTC)
    return float(aware.timestamp())

"""The file of the official server-memory: JSONL, an entity or a relation a line.

    {"type": "entity", "name": "Ana", "entityType": "person", "observations": ["likes tea"]}
    {"type": "relation", "from": "Ana", "to": "Oslo", "relationType": "lives in"}

It is read line by line. A line that cannot be used is reported by its number; the others are kept,
in their order. The same file again adds nothing, also after it was stopped half way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from reverie.fields import require_utf8
from reverie.memory_graph.errors import InvalidTextError, ReverieError
from reverie.tools.knowledge import Added, Entity, Graph, Knowledge, Relation

MAX_LINE_BYTES = 16 * 1024**2
MAX_REPORTED = 1_000  # bad lines that are told one by one; all are counted
_BATCH = 256  # lines that are kept together


class BadLine(msgspec.Struct, frozen=True):
    """A line that could not be used, by its number from 1, and why."""

    line: int
    why: str


class Imported(msgspec.Struct):
    """What an import did."""

    lines: int = 0
    added: Added = msgspec.field(default_factory=Added)
    bad: int = 0
    bad_lines: list[BadLine] = []


class _EntityLine(msgspec.Struct, tag_field="type", tag="entity", rename="camel"):
    name: str
    entity_type: str
    observations: list[str] = []


class _RelationLine(
    msgspec.Struct,
    tag_field="type",
    tag="relation",
    rename={"from_": "from", "relation_type": "relationType"},
):
    from_: str
    to: str
    relation_type: str


_decoder: msgspec.json.Decoder[_EntityLine | _RelationLine] = msgspec.json.Decoder(
    _EntityLine | _RelationLine
)


def read(
    knowledge: Knowledge,
    file: Path,
    *,
    stop: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Imported:
    """Take in a file of server-memory, as a graph of a user.

    Args:
        knowledge: of that user.
        file: to read.
        stop: a line that cannot be used is an error; what came before it is kept.
        progress: is told how many bytes more were done.

    Raises:
        InvalidTextError: the file is in another encoding than UTF-8; with `stop`, a line cannot be
            used, and `line` says which.
        StorageError, UnavailableError: what came before is kept; the same call again goes on.
    """
    graph = knowledge.read()
    done = Imported()
    batch: list[Entity | Relation] = []
    size = 0
    for number, data in enumerate(_lines(file), 1):
        size += len(data)
        done.lines = number
        try:
            one = _parsed(data)
            if one is not None:
                knowledge.check(one)
                batch.append(one)
        except ReverieError as exc:
            done.bad += 1
            if len(done.bad_lines) < MAX_REPORTED:
                done.bad_lines.append(BadLine(number, exc.message[:300]))
            if stop:
                _keep(knowledge, batch, graph, done)
                msg = f"line {number} of {file.name}: {exc.message}"
                raise InvalidTextError(msg, line=number) from exc
        if len(batch) >= _BATCH:
            _keep(knowledge, batch, graph, done)
            if progress is not None:
                progress(size)
            size = 0
    _keep(knowledge, batch, graph, done)
    if progress is not None:
        progress(size)
    return done


def _keep(
    knowledge: Knowledge, batch: list[Entity | Relation], graph: Graph, done: Imported
) -> None:
    knowledge.merge(batch, graph, done.added)
    batch.clear()


def _lines(file: Path) -> Iterator[bytes]:
    """Yield lines; of one that is too long only the beginning, over the limit."""
    with file.open("rb") as opened:
        require_utf8(opened.peek(4), str(file))
        while line := opened.readline(MAX_LINE_BYTES + 1):
            rest = line
            while len(rest) > MAX_LINE_BYTES and not rest.endswith(b"\n"):
                rest = opened.readline(MAX_LINE_BYTES + 1)
            yield line


def _parsed(data: bytes) -> Entity | Relation | None:
    """Return what a line says; None for an empty one.

    Raises:
        InvalidTextError: it is neither an entity nor a relation.
    """
    if len(data) > MAX_LINE_BYTES:
        msg = f"over {MAX_LINE_BYTES:,} bytes"
        raise InvalidTextError(msg)
    text: Any = data.removeprefix(b"\xef\xbb\xbf").strip()
    if not text:
        return None
    try:
        found = _decoder.decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as exc:
        raise InvalidTextError(str(exc)).because(exc) from exc
    if isinstance(found, _RelationLine):
        return Relation(found.from_, found.relation_type, found.to)
    return Entity(found.name, found.entity_type, [("", text) for text in found.observations])

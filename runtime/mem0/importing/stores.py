"""Memories out of the vector stores of mem0 that are folders, and out of exported JSON.

None of the stores' own packages is needed. The vectors are not read: each world of reverie has an
embedder of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from reverie.fields import require_utf8
from reverie.mem0.importing import pickles
from reverie.mem0.importing.rows import MAX_ENTRY_BYTES, Bad, Row, Rows, row
from reverie.mem0.importing.sqlite import columns, reading
from reverie.memory_graph.errors import InputError, InvalidValueError

_TELEMETRY = "mem0migrations"  # what mem0 keeps for itself
_ENTITIES = ("_entities", "-entities")
_POINTS = "storage.sqlite"
_CHROMA = "chroma.sqlite3"
_ITEM = frozenset({"id", "memory", "data", "text", "hash", "score", "score_details", "metadata"})
_TEXT = ("memory", "data", "text")


class Source(NamedTuple):
    """Where memories come from: what it is, how many entries, and how they are read."""

    kind: str
    total: int
    read: Callable[[], Rows]


def find(path: Path, collection: str | None = None) -> list[Source]:
    """Return what a path holds: a folder of Qdrant, FAISS or Chroma, or a JSON file.

    Args:
        path: of the store, as in mem0's configuration, or of a file.
        collection: only this one; all by default.

    Raises:
        InvalidValueError: nothing of mem0 is there, or a file cannot be read.
        InvalidTextError: a file is in another encoding than UTF-8.
    """
    if path.is_file() and path.suffix in {".json", ".jsonl"}:
        return [_exported(path)]
    found: list[Source] = []
    if path.is_dir():
        found += [
            _qdrant(file)
            for file in sorted(path.glob(f"collection/*/{_POINTS}"))
            if _wanted(file.parent.name, collection)
        ]
        found += [
            _faiss(file) for file in sorted(path.glob("*.faiss")) if _wanted(file.stem, collection)
        ]
        if (path / _CHROMA).is_file():
            found += _chroma(path / _CHROMA, collection)
    if not found:
        msg = f"{path} holds no store of mem0 (Qdrant, FAISS or Chroma) and is no exported JSON"
        raise InvalidValueError(msg, path=str(path))
    return found


def _wanted(name: str, collection: str | None) -> bool:
    if collection is not None:
        return name == collection
    return name != _TELEMETRY and not name.endswith(_ENTITIES)


# -- Qdrant: a SQLite file a collection, with a pickle a point --------------------------------


def _qdrant(path: Path) -> Source:
    with reading(path) as db:
        ((total,),) = db.execute("select count(*) from points")

    def read() -> Rows:
        with reading(path) as db:
            # Newer clients leave older copies of a point in place; the last one counts.
            points = db.execute("select id, length(point), rowid from points order by rowid")
            for number, (_, size, rowid) in enumerate(list(points), 1):
                if size > MAX_ENTRY_BYTES:
                    yield Bad(number, f"it has {size:,} bytes")
                    continue
                ((data,),) = db.execute("select point from points where rowid = ?", (rowid,))
                yield _point(number, data)

    return Source(f"Qdrant {path.parent.name}", total, read)


def _point(number: int, data: bytes) -> Row | Bad:
    try:
        point = pickles.load(data)
        if not isinstance(point, pickles.Stub):
            return Bad(number, "it is no point of Qdrant")
        found = row(number, pickles.plain(point.get("id")), pickles.plain(point.get("payload")))
    except (ValueError, RecursionError) as exc:
        return Bad(number, str(exc))
    return found


# -- FAISS: a JSON file beside the index, a pickle in older versions ---------------------------


def _faiss(index: Path) -> Source:
    documents = _documents(index)

    def read() -> Rows:
        for number, (public_id, payload) in enumerate(documents.items(), 1):
            try:
                yield row(number, public_id, pickles.plain(payload))
            except (ValueError, RecursionError) as exc:
                yield Bad(number, str(exc))

    return Source(f"FAISS {index.stem}", len(documents), read)


def _documents(index: Path) -> dict[Any, Any]:
    as_json, as_pickle = index.with_suffix(".json"), index.with_suffix(".pkl")
    try:
        if as_json.is_file():
            whole = msgspec.json.decode(as_json.read_bytes())
            found = whole.get("docstore") if isinstance(whole, dict) else None
        elif as_pickle.is_file():
            whole = pickles.load(as_pickle.read_bytes())
            found = whole[0] if isinstance(whole, tuple) and whole else None
        else:
            found = None
    except (ValueError, OSError) as exc:  # a DecodeError of msgspec is a ValueError
        msg = f"the documents of {index} cannot be read: {exc}"
        raise InvalidValueError(msg, path=str(index)) from exc
    if not isinstance(found, dict):
        msg = f"{index} has no documents beside it"
        raise InvalidValueError(msg, path=str(index))
    return found


# -- Chroma: one SQLite file for all collections -----------------------------------------------

_EMBEDDINGS = """
    select e.id, e.embedding_id from embeddings e
    join segments s on s.id = e.segment_id
    where s.collection = ? and s.scope = 'METADATA' order by e.id
"""
_VALUES = """
    select key, string_value, int_value, float_value, bool_value
    from embedding_metadata where id = ?
"""


def _chroma(path: Path, collection: str | None) -> list[Source]:
    with reading(path) as db:
        if not columns(db, "collections") or not columns(db, "embedding_metadata"):
            msg = f"{path} is no database of Chroma"
            raise InvalidValueError(msg, path=str(path))
        named = [
            (str(i), str(name))
            for i, name in db.execute("select id, name from collections order by name")
            if _wanted(str(name), collection)
        ]
        counted = [(i, name, len(db.execute(_EMBEDDINGS, (i,)).fetchall())) for i, name in named]

    def reader(collection_id: str) -> Callable[[], Rows]:
        def read() -> Rows:
            with reading(path) as db:
                ids = list(db.execute(_EMBEDDINGS, (collection_id,)))
                for number, (row_id, public_id) in enumerate(ids, 1):
                    values = db.execute(_VALUES, (row_id,))
                    payload = {str(key): _value(*stored) for key, *stored in values}
                    yield row(number, public_id, payload)

        return read

    return [Source(f"Chroma {name}", total, reader(i)) for i, name, total in counted]


def _value(text: Any, whole: Any, real: Any, truth: Any) -> Any:
    if truth is not None:
        return bool(truth)
    return next((value for value in (text, whole, real) if value is not None), None)


# -- an exported list of items ----------------------------------------------------------------


def _exported(path: Path) -> Source:
    try:
        data = path.read_bytes()
        require_utf8(data[:4], str(path))
        items: Any = data.splitlines() if path.suffix == ".jsonl" else msgspec.json.decode(data)
    except InputError:
        raise
    except (ValueError, OSError) as exc:
        msg = f"{path} cannot be read: {exc}"
        raise InvalidValueError(msg, path=str(path)) from exc
    if isinstance(items, dict):
        items = next((items[k] for k in ("results", "memories") if k in items), None)
    if not isinstance(items, list):
        msg = f'{path} holds neither a list of items nor {{"results": [...]}}'
        raise InvalidValueError(msg, path=str(path))

    def read() -> Rows:
        for number, item in enumerate(items, 1):
            yield _item(number, item)

    return Source(f"JSON {path.name}", len(items), read)


def _item(number: int, item: Any) -> Row | Bad:
    """Return a memory of an item as `get_all` gives it; metadata lies one level deeper there."""
    if isinstance(item, bytes):
        try:
            item = msgspec.json.decode(item)
        except ValueError as exc:
            return Bad(number, f"it is no JSON: {exc}")
    if not isinstance(item, Mapping):
        return Bad(number, "it is no mapping")
    own = item.get("metadata") or {}
    if not isinstance(own, Mapping):
        return Bad(number, "its metadata is no mapping")
    text = next((item[name] for name in _TEXT if isinstance(item.get(name), str)), None)
    top = {k: v for k, v in item.items() if k not in _ITEM and v is not None}
    return row(number, item.get("id"), {**own, **top, "data": text})

"""A LangGraph store that lasts: `BaseStore` over a data folder of reverie.

    rt = reverie.open("data")
    graph = builder.compile(store=ReverieStore(rt))

A namespace is one user of the world that the store has for itself (see rows.py): no read crosses
it but a search over a prefix of whole labels, and `store.user(namespace).forget()` erases it.
docs/frameworks.md lists what differs from LangGraph's own InMemoryStore.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, Literal

import msgspec

from reverie import door
from reverie.adapters import needs_extra
from reverie.adapters.matching import check_filter, fits
from reverie.adapters.rows import CREATED, KEY, VALUE, Head, Namespace, Put, Rows
from reverie.aio import AsyncRuntime
from reverie.memory_graph.errors import (
    ConfigError,
    InvalidIdError,
    InvalidLimitError,
    InvalidTimeError,
    InvalidValueError,
)
from reverie.memory_graph.ids import check_id
from reverie.runtime import Runtime
from reverie.user import User

with needs_extra("langgraph"):
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        InvalidNamespaceError,
        Item,
        ListNamespacesOp,
        MatchCondition,
        Op,
        PutOp,
        Result,
        SearchItem,
        SearchOp,
        TTLConfig,
        get_text_at_path,
    )

WORLD = "langgraph"
MAX_OPS = 10_000  # of one batch
MAX_LABELS = 64
MAX_KEY_BYTES = 1024
MAX_VALUE_BYTES = 1024 * 1024  # of JSON
MAX_LEVELS = 64  # of nesting in a value
MAX_PATHS = 64  # of `index` and `fields`
MAX_TEXTS = 256  # of one value that are found by meaning
MAX_TEXT_BYTES = 32 * 1024  # of one of them; embedders read less
WHOLE = "$"  # the path of the whole value
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_CONFIG = frozenset({"fields"})


class ReverieStore(BaseStore):
    """Values by namespace and key, found by meaning too. Safe to share between threads.

    What a method has acknowledged is on disk. In one `batch`, all that is asked is answered as of
    before all that is written; of writes to one key the last counts.

    Args:
        runtime: open; who opened it closes it.
        world: of reverie, for this store alone.
        fields: paths of what is found by meaning in a value, as in LangGraph's index configuration
            ("text", "chapters[*].title"); "$" is the whole value as JSON. False: nothing is, unless
            `put` says `index=`.
        index: the same as a mapping, {"fields": [...]}, for code that has one.
        ttl: LangGraph's mapping: `default_ttl` (minutes) and `refresh_on_read`.

    Raises:
        ConfigError: an index or ttl that cannot be followed. The embedder is the world's (see
            `reverie.open`), so that `embed` and `dims` have no place here.
        InvalidIdError: `world` is no name.
    """

    supports_ttl = True

    def __init__(
        self,
        runtime: Runtime | AsyncRuntime,
        world: str = WORLD,
        *,
        fields: Sequence[str] | Literal[False] = (WHOLE,),
        index: Mapping[str, Any] | Literal[False] | None = None,
        ttl: TTLConfig | None = None,
    ) -> None:
        super().__init__()
        sync = runtime.sync if isinstance(runtime, AsyncRuntime) else runtime
        self._rows = Rows(sync, check_id(world, "world"))
        if index is False:
            fields = False
        elif index is not None:
            if unknown := sorted(set(index) - _CONFIG):
                msg = (
                    f"index: {', '.join(unknown)} cannot be followed: the embedder is that of the "
                    "world, chosen by reverie.open(embedder=) or create_world"
                )
                raise ConfigError(msg, setting="index")
            fields = index.get("fields") or (WHOLE,)
        self._fields = () if fields is False else _paths(fields)
        self._is_indexed = fields is not False
        if ttl is not None:
            _check_ttl(ttl)
        self.ttl_config = ttl

    def __repr__(self) -> str:
        return f"ReverieStore(world={self._rows.world!r})"

    def user(self, namespace: Sequence[str]) -> User:
        """Return the user of reverie that keeps a namespace: for its history, or to `forget` it.

        Raises:
            InvalidNamespaceError, InvalidIdError: it cannot be a namespace.
        """
        return self._rows.user(_namespace(namespace))

    # -- the two methods of a store ----------------------------------------------------------

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations; returns one result for each, in order (None for writes).

        All are checked before anything is stored. The writes to one namespace are one transaction
        if they are fewer than 512 texts; those to others follow by themselves.

        Raises:
            InvalidNamespaceError: a label is empty, no text, or has a dot.
            InputError: something else is malformed, or over a bound.
            StorageError, UnavailableError: as of any call of reverie.
        """
        given = list(islice(ops, MAX_OPS + 1))
        if len(given) > MAX_OPS:
            msg = f"more than {MAX_OPS:,} operations in one batch: use several"
            raise InvalidLimitError(msg, what="ops")
        puts: dict[tuple[Namespace, str], Put] = {}
        for op in given:
            put = self._checked(op)
            if put is not None:
                puts[put.namespace, put.key] = put
        results: list[Result] = [None] * len(given)
        touched: list[Head] = []
        gets = [(i, op) for i, op in enumerate(given) if isinstance(op, GetOp)]
        found = self._rows.find([(tuple(op.namespace), op.key) for _, op in gets])
        for (i, op), head in zip(gets, found, strict=True):
            if head is not None:
                results[i] = _item(head)
                touched += [head] if op.refresh_ttl else []
        for i, op in enumerate(given):
            if isinstance(op, SearchOp):
                ranked = self._search(op)
                results[i] = [_search_item(head, score) for head, score in ranked]
                touched += [head for head, _ in ranked if op.refresh_ttl]
            elif isinstance(op, ListNamespacesOp):
                results[i] = self._list_namespaces(op)
        self._rows.refresh(touched)
        if puts:
            self._rows.write(list(puts.values()))
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations in a thread; see `batch`. What was begun goes on when the waiting
        is given up."""
        return await asyncio.to_thread(self.batch, ops)

    # -- reading -----------------------------------------------------------------------

    def _search(self, op: SearchOp) -> list[tuple[Head, float | None]]:
        namespaces = self._rows.namespaces(tuple(op.namespace_prefix))
        wanted = op.offset + op.limit
        found: list[tuple[Head, float | None]] = []
        asks = self._is_indexed and op.query is not None and bool(op.query.strip())
        if asks and op.query is not None:
            found += self._rows.nearest(namespaces, op.query, op.filter, wanted)
        if len(found) < wanted:
            rest = self._rows.listed(namespaces, plain=asks)
            fitting = (head for head in rest if fits(head.metadata[VALUE], op.filter))
            found += [(head, None) for head in islice(fitting, wanted - len(found))]
        return found[op.offset : wanted]

    def _list_namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        conditions = op.match_conditions or ()
        known = [
            namespace
            for namespace in self._rows.namespaces()
            if all(_matches(condition, namespace) for condition in conditions)
        ]
        wanted = op.offset + op.limit
        found: dict[tuple[str, ...], None] = {}
        for namespace in self._rows.used(known):
            cut = namespace[: op.max_depth]
            if cut not in found and len(found) >= wanted:
                break
            found[cut] = None
        return list(found)[op.offset : wanted]

    # -- checks ------------------------------------------------------------------------

    def _checked(self, op: object) -> Put | None:
        """Check an operation; return it if it writes."""
        match op:
            case GetOp():
                self._rows.user(_namespace(op.namespace))
                _key(op.key)
            case SearchOp():
                _labels(op.namespace_prefix)
                _bounds(op.limit, op.offset)
                if op.filter is not None:
                    check_filter(op.filter)
                if op.query is not None and (op.query == "" or not str(op.query).isspace()):
                    door.question(op.query or "-")
            case ListNamespacesOp():
                _bounds(op.limit, op.offset)
                if op.max_depth is not None:
                    door.limit(op.max_depth, "max_depth")
                for condition in op.match_conditions or ():
                    _labels(condition.path)
                    door.one_of(condition.match_type, "match_type", ("prefix", "suffix"))
            case PutOp():
                return self._put(op)
            case _:
                msg = f"no operation of a store: {type(op).__name__}"
                raise InvalidValueError(msg, what="ops")
        return None

    def _put(self, op: PutOp) -> Put:
        namespace, key = _namespace(op.namespace), _key(op.key)
        self._rows.user(namespace)
        if op.value is None:
            return Put(namespace, key, None, (), None)
        value = _value(op.value)
        ttl_s = None if op.ttl is None else door.duration(op.ttl, "ttl", "minutes") * 60.0
        if ttl_s is not None and not math.isfinite(ttl_s):
            msg = "ttl is too long: leave it out"
            raise InvalidTimeError(msg, what="ttl")
        if op.index is False or not self._is_indexed:
            return Put(namespace, key, value, (), ttl_s)
        paths = self._fields if op.index is None else _paths(op.index)
        texts = (text for path in paths for text in get_text_at_path(value, path))
        few = list(islice(dict.fromkeys(filter(None, map(_text, texts))), MAX_TEXTS + 1))
        if len(few) > MAX_TEXTS:
            msg = f"a value has over {MAX_TEXTS} texts to find it by; name fewer with index="
            raise InvalidLimitError(msg, what="index")
        return Put(namespace, key, value, few, ttl_s)


def _labels(value: object) -> Namespace:
    if isinstance(value, str) or not isinstance(value, Sequence):
        msg = f"a namespace must be a tuple of texts, not {value!r:.100}"
        raise InvalidNamespaceError(msg)
    if len(value) > MAX_LABELS:
        msg = f"a namespace of {len(value)} labels; at most {MAX_LABELS} are allowed"
        raise InvalidNamespaceError(msg)
    for label in value:
        if not isinstance(label, str) or not label or "." in label or "\0" in label:
            msg = f"a label must be a text that is not empty, without '.' and NUL: {label!r:.100}"
            raise InvalidNamespaceError(msg)
    return tuple(value)


def _namespace(value: object) -> Namespace:
    namespace = _labels(value)
    if not namespace:
        msg = "a namespace must have at least one label"
        raise InvalidNamespaceError(msg)
    return namespace


def _key(value: object) -> str:
    if not isinstance(value, str):
        msg = f"a key must be a text, not {type(value).__name__}"
        raise InvalidIdError(msg, what="key")
    try:
        size = len(value[: MAX_KEY_BYTES + 1].encode())
    except UnicodeEncodeError:
        msg = "a key holds a lone surrogate, which is no character"
        raise InvalidIdError(msg, what="key") from None
    if size > MAX_KEY_BYTES:
        msg = f"a key may have {MAX_KEY_BYTES} bytes at most"
        raise InvalidIdError(msg, what="key")
    return value


def _value(value: object) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        msg = f"a value must be a mapping, not {type(value).__name__}"
        raise InvalidValueError(msg, what="value")
    try:
        plain: dict[str, Any] = door.json_value(value, MAX_LEVELS)
    except ValueError as exc:
        msg = f"a value must hold JSON only, nested {MAX_LEVELS} levels deep at most: {exc}"
        raise InvalidValueError(msg, what="value") from None
    if (size := len(msgspec.json.encode(plain))) > MAX_VALUE_BYTES:
        msg = f"a value has {size:,} bytes of JSON; at most {MAX_VALUE_BYTES:,} are allowed"
        raise InvalidLimitError(msg, what="value")
    return plain


def _paths(value: object) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence) or len(value) > MAX_PATHS:
        msg = f"index must be a list of at most {MAX_PATHS} paths, or False"
        raise InvalidValueError(msg, what="index")
    if not all(isinstance(path, str) and 0 < len(path) <= MAX_KEY_BYTES for path in value):
        msg = f"a path must be a text of 1 to {MAX_KEY_BYTES} characters"
        raise InvalidValueError(msg, what="index")
    return tuple(value)


def _text(text: str) -> str:
    """Return a text as it can be kept, "" where nothing is left."""
    few = text[:MAX_TEXT_BYTES].encode()[:MAX_TEXT_BYTES].decode(errors="ignore")
    return few.replace("\0", " ").strip()


def _bounds(limit: object, offset: object) -> None:
    if limit != 0 or isinstance(limit, bool):
        door.limit(limit)
    if isinstance(offset, bool) or not isinstance(offset, int) or not 0 <= offset < 2**63:
        msg = f"offset must be a whole number from 0, not {offset!r:.100}"
        raise InvalidLimitError(msg, what="offset")


def _check_ttl(ttl: Mapping[str, Any]) -> None:
    if unknown := sorted(set(ttl) - set(TTLConfig.__annotations__)):
        msg = f"ttl: unknown {', '.join(unknown)}"
        raise ConfigError(msg, setting="ttl")
    if ttl.get("default_ttl") is not None:
        door.duration(ttl["default_ttl"], "default_ttl", "minutes")


def _matches(condition: MatchCondition, namespace: Namespace) -> bool:
    path = tuple(condition.path)
    if len(path) > len(namespace):
        return False
    part = namespace[: len(path)]
    if condition.match_type == "suffix":
        part = namespace[len(namespace) - len(path) :]
    return all(wanted in {"*", label} for wanted, label in zip(path, part, strict=True))


# -- what a reader gets -----------------------------------------------------------------


def _moment(seconds: float) -> datetime:
    try:
        return _EPOCH + timedelta(seconds=seconds)
    except OverflowError:  # of a simulated clock
        return datetime(9999 if seconds > 0 else 1, 1, 1, tzinfo=UTC)


def _fields(head: Head) -> dict[str, Any]:
    metadata = head.metadata
    return {
        "namespace": head.namespace,
        "key": metadata[KEY],
        "value": metadata[VALUE],
        "created_at": _moment(metadata.get(CREATED, head.item.recorded_at)),
        "updated_at": _moment(head.item.recorded_at),
    }


def _item(head: Head) -> Item:
    return Item(**_fields(head))


def _search_item(head: Head, score: float | None) -> SearchItem:
    return SearchItem(**_fields(head), score=score)


__all__ = ["WORLD", "ReverieStore"]

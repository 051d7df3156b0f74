"""`Memory`: the calls of mem0, 1.x and 2.x, answered by reverie."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any, NoReturn, Self

import structlog
from msgspec import UNSET

from reverie.mem0 import adding, history, relations
from reverie.mem0.config import Version, read_config
from reverie.mem0.exceptions import ValidationError, needs_scope, not_found
from reverie.mem0.filters import Predicate, compile_filters
from reverie.mem0.payload import IDENTITY, expiration, is_expired, shown
from reverie.mem0.scope import ANY, IDS, Scope, make_scope
from reverie.mem0.searching import Asked, found
from reverie.mem0.sharing import borrow, release
from reverie.mem0.store import Store

log = structlog.get_logger(__name__)

LIMITS = {1: 100, 2: 20}  # results of a call that names no limit, by version
ROUNDS = 10  # of `delete_all`, while others go on writing
THRESHOLD = 0.1  # of a search of 2.x that names none
UPDATED = {"message": "Memory updated successfully!"}
DELETED = {"message": "Memory deleted successfully!"}
ALL_DELETED = {"message": "Memories deleted successfully!"}


class Memory:
    """The memories of a program that was written for mem0. Safe to share between threads.

    Every call may also raise the errors of reverie: InputError (a ValueError), StorageError,
    UnavailableError.

    Args:
        config: as of mem0; see `read_config`.
        own: data, world, version, graph, ranking, all_users, mask_key, and settings of reverie's
            Config.

    Attributes:
        version: of mem0 whose calls and answers are wanted; None takes both, told by the call.
        store: the memories.
    """

    def __init__(self, config: Any = None, **own: Any) -> None:
        self.plan = read_config(config, **own)
        self.version = self.plan.version
        self._runtime = borrow(self.plan)
        self.store = Store(self._runtime, self.plan.world)

    @classmethod
    def from_config(cls, config_dict: Mapping[str, Any], **own: Any) -> Self:
        """Return a memory by a configuration of mem0.

        Raises:
            ConfigurationError: no mapping, or a value that cannot be used.
            ConfigError: a setting that reverie does not know.
        """
        return cls(config_dict, **own)

    # -- writing -----------------------------------------------------------------------

    def add(  # noqa: PLR0913 (mem0's)
        self,
        messages: Any,
        *,
        user_id: Any = None,
        agent_id: Any = None,
        run_id: Any = None,
        metadata: Mapping[str, Any] | None = None,
        timestamp: Any = None,
        expiration_date: Any = None,
        infer: bool = True,
        memory_type: str | None = None,
        prompt: str | None = None,
    ) -> dict[str, Any]:
        """Store what was said, or with `infer` what follows from it.

        Args:
            messages: a text, a message with role and content, or a list of messages.
            user_id: whose memory; at least one of the three ids is needed.
            agent_id: of the agent.
            run_id: of the conversation.
            metadata: kept with each memory.
            timestamp: refused, as by mem0 without its platform.
            expiration_date: a date; after it the memory is not found any more.
            infer: False keeps each message as it is.
            memory_type: "procedural_memory" keeps the messages as one text, with an agent_id.
            prompt: not used.

        Returns:
            `{"results": [{"id", "memory", "event"}]}`, with a graph also `relations`.

        Raises:
            ValidationError: VALIDATION_001 without ids, 002 for another memory_type, 003 for
                messages of another type.
        """
        if timestamp is not None:
            _refuse_parameter("timestamp")
        until = expiration(expiration_date)
        given = {"user_id": user_id, "agent_id": agent_id, "run_id": run_id}
        scope = make_scope(given, strict=self.version != 1)
        if prompt is not None:
            log.info("mem0_prompt_not_used")
        payload = self._own(metadata, "add")
        if until is not None:
            payload["expiration_date"] = until
        return adding.add(
            self.store,
            scope,
            messages,
            payload,
            infer=infer,
            memory_type=memory_type,
            with_relations=self.plan.graph,
        )

    def update(
        self,
        memory_id: str,
        text: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        expiration_date: Any = UNSET,
        data: str | None = None,
    ) -> dict[str, str]:
        """Change a memory; what it was stays in its history.

        Args:
            memory_id: as of `add`.
            text: the new text; None keeps it.
            metadata: is added to what there is; in version 1 it takes its place.
            expiration_date: a date, or None for no end.
            data: what 1.x calls the text.

        Raises:
            MemoryNotFoundError: no such memory (a ValueError).
            ValidationError: nothing to change.
        """
        text = data if text is None else text
        if self.version == 1:
            if text is None:
                msg = "update() needs the new text as data"
                raise ValidationError(msg, "VALIDATION_007")
        elif text is None and metadata is None and expiration_date is UNSET:
            msg = "At least one of text, metadata, or expiration_date must be provided."
            raise ValidationError(msg, "VALIDATION_007")
        changes = self._own(metadata, "update")
        if expiration_date is not UNSET:
            changes["expiration_date"] = expiration(expiration_date)
        with self.store.lock_of(memory_id):
            record = self.store.find(memory_id)
            if record is None:
                raise not_found(memory_id, ". Please provide a valid 'memory_id'")
            kept = adding.without_core(record.payload)
            if self.version == 1:
                kept = {k: v for k, v in kept.items() if k in IDENTITY or k == "role"}
            changes.pop("created_at", None)
            new = record.payload["data"] if text is None else text
            self.store.revise(record, new, kept | changes)
        return dict(UPDATED)

    def delete(self, memory_id: str) -> dict[str, str]:
        """Delete a memory; its history stays.

        Raises:
            MemoryNotFoundError: no such memory (a ValueError).
        """
        with self.store.lock_of(memory_id):
            record = self.store.find(memory_id)
            if record is None:
                raise not_found(memory_id)
            self.store.retire([record])
        return dict(DELETED)

    def delete_all(
        self, user_id: Any = None, agent_id: Any = None, run_id: Any = None
    ) -> dict[str, str]:
        """Delete all memories that have all the ids that are given; their history stays.

        Raises:
            ValidationError: no id is given (a ValueError).
        """
        given = {"user_id": user_id, "agent_id": agent_id, "run_id": run_id}
        scope = make_scope(given, strict=self.version != 1)
        for _ in range(ROUNDS):  # what was changed meanwhile is there in a new version
            records = self.store.listed(scope, lambda _: True)
            if not records:
                break
            self.store.retire(records)
        return dict(ALL_DELETED)

    def reset(self) -> None:
        """Erase every memory of this world, from the disk too, and all history."""
        self.store.reset()

    # -- reading -----------------------------------------------------------------------

    def get(self, memory_id: str) -> dict[str, Any] | None:
        """Return a memory by its id, None when there is none."""
        record = self.store.find(memory_id)
        if record is None:
            return None
        return shown(record.id, record.payload, version=self.version or 2)

    def get_all(
        self,
        *,
        user_id: Any = None,
        agent_id: Any = None,
        run_id: Any = None,
        filters: Mapping[str, Any] | None = None,
        limit: int | None = None,
        top_k: int | None = None,
        show_expired: bool = False,
    ) -> dict[str, Any]:
        """Return memories in the order in which they were stored.

        Args:
            user_id: in calls of 1.x; 2.x has the ids in `filters`.
            agent_id: likewise.
            run_id: likewise.
            filters: see filters.py.
            limit: what 1.x calls `top_k`.
            top_k: 20 at most by default, 100 in calls of 1.x.
            show_expired: also those whose last day is over.

        Raises:
            ValidationError: no id, or a malformed filter or number (a ValueError).
        """
        given = {"user_id": user_id, "agent_id": agent_id, "run_id": run_id}
        version, most = self._shape(given, limit, top_k, "get_all")
        scope, fits = self._asked(given, filters, version)
        fits = self._living(fits, show_expired=show_expired or version == 1)
        records = self.store.listed(scope, fits, most)
        items = [shown(record.id, record.payload, version=version) for record in records]
        for item in items:
            del item["score"]
        answer: dict[str, Any] = {"results": items}
        if self.plan.graph:
            answer["relations"] = relations.listed(self.store, scope, records, most)
        return answer

    def search(  # noqa: PLR0913 (mem0's)
        self,
        query: str,
        *,
        user_id: Any = None,
        agent_id: Any = None,
        run_id: Any = None,
        limit: int | None = None,
        top_k: int | None = None,
        filters: Mapping[str, Any] | None = None,
        threshold: float | None = None,
        rerank: bool | None = None,
        explain: bool = False,
        reference_date: Any = None,
        show_expired: bool = False,
    ) -> dict[str, Any]:
        """Return the memories that answer a question, best first.

        Args:
            query: the question, in any language.
            user_id: in calls of 1.x; 2.x has the ids in `filters`.
            agent_id: likewise.
            run_id: likewise.
            limit: what 1.x calls `top_k`.
            top_k: 20 at most by default, 100 in calls of 1.x.
            filters: see filters.py.
            threshold: least cosine of a result; 0.1 by default, none in calls of 1.x.
            rerank: not used.
            explain: each result has `score_details`.
            reference_date: refused, as by mem0 without its platform.
            show_expired: also those whose last day is over.

        Raises:
            ValidationError: no id, or a malformed question, filter or number (a ValueError).
        """
        if reference_date is not None:
            _refuse_parameter("reference_date")
        del rerank
        given = {"user_id": user_id, "agent_id": agent_id, "run_id": run_id}
        version, most = self._shape(given, limit, top_k, "search")
        question = _question(query)
        least = _threshold(threshold, version)
        scope, fits = self._asked(given, filters, version)
        fits = self._living(fits, show_expired=show_expired or version == 1)
        asked = Asked(question, scope, fits, most, least, explain=explain, version=version)
        records, items = found(self.store, asked, self.plan.ranking)
        answer: dict[str, Any] = {"results": items}
        if self.plan.graph:
            answer["relations"] = relations.around(self.store, records, most)
        return answer

    def history(self, memory_id: str) -> list[dict[str, Any]]:
        """Return the changes of a memory, oldest first; also of a deleted one."""
        return history.rows(self.store, memory_id)

    def chat(self, query: str) -> str:
        """Not there, as in mem0."""
        msg = "Chat function not implemented yet."
        raise NotImplementedError(msg)

    # -- the end -----------------------------------------------------------------------

    def close(self) -> None:
        """Give the data folder back; it is closed with the last memory of this process on it."""
        runtime, self._runtime = self._runtime, None  # type: ignore[assignment]
        if runtime is not None:
            release(runtime)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # -- what calls have in common --------------------------------------------------------

    def _own(self, metadata: Any, call: str) -> dict[str, Any]:
        """Return a caller's metadata without what says whose a memory is."""
        if metadata is None:
            return {}
        if not isinstance(metadata, Mapping):
            msg = f"metadata must be a mapping, not {type(metadata).__name__}"
            raise ValidationError(msg, "VALIDATION_009")
        refused = sorted(IDENTITY & set(metadata))
        if refused:
            log.warning("mem0_metadata_left_out", call=call, keys=refused)
        return {k: v for k, v in metadata.items() if k not in IDENTITY}

    def _shape(
        self, given: Mapping[str, Any], limit: Any, top_k: Any, call: str
    ) -> tuple[Version, int]:
        """Return the version that a call speaks, and its limit."""
        named = sorted(name for name, value in given.items() if value is not None)
        if self.version == 2 and named:  # noqa: PLR2004 (the version)
            msg = (
                f"Top-level entity parameters {named} are not supported in {call}(). "
                "Use filters={'user_id': '...'} instead."
            )
            raise ValidationError(msg, "VALIDATION_010")
        version: Version = self.version or (1 if named or limit is not None else 2)
        most = limit if top_k is None else top_k
        if most is None:
            return version, LIMITS[version]
        if isinstance(most, bool) or not isinstance(most, int) or most < 0:
            msg = f"Invalid top_k: {most!r}. Must be a non-negative integer."
            raise ValidationError(msg, "VALIDATION_008")
        return version, most

    def _asked(
        self, given: Mapping[str, Any], filters: Any, version: Version
    ) -> tuple[Scope, Predicate]:
        """Return the scope of a query, and what else its memories have to fit."""
        if filters is not None and not isinstance(filters, Mapping):
            msg = f"filters must be a mapping, not {type(filters).__name__}"
            raise ValidationError(msg, "VALIDATION_006")
        rest = dict(filters or {})
        wanted = {name: value for name, value in given.items() if value is not None}
        if version == 1 and not self.version and not wanted:  # told by `limit`
            version = 2
        if version == 2:  # noqa: PLR2004 (the version)
            wanted = {name: rest.pop(name) for name in IDS if name in rest}
            if not wanted:
                raise needs_scope({}, "filters")
        scope = make_scope(wanted, strict=version == 2, place="filters")  # noqa: PLR2004
        if ANY in (*scope.ids().values(),) and not self._may_ask_all(scope):
            msg = 'an id of "*" alone means every user: set all_users in the configuration'
            raise ValidationError(msg, "VALIDATION_011")
        return scope, compile_filters(rest)

    def _may_ask_all(self, scope: Scope) -> bool:
        names_one = any(value != ANY for value in scope.ids().values())
        return self.plan.all_users or (names_one and scope.user_id != ANY)

    def _living(self, fits: Predicate, *, show_expired: bool) -> Predicate:
        if show_expired:
            return fits
        now = self.store.rt.now(self.store.world)
        return lambda payload: not is_expired(payload, now) and fits(payload)


def _question(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        msg = "Invalid query: it must be a text that is not empty or only white space"
        raise ValidationError(msg, "VALIDATION_008")
    return value.strip()


def _threshold(value: Any, version: Version) -> float | None:
    if value is None:
        return None if version == 1 else THRESHOLD
    if isinstance(value, bool) or not isinstance(value, int | float):
        msg = "threshold must be a valid number"
        raise ValidationError(msg, "VALIDATION_008")
    if version == 2 and not 0 <= value <= 1:  # noqa: PLR2004 (the version)
        msg = f"Invalid threshold: {value}. Must be between 0 and 1 (inclusive)."
        raise ValidationError(msg, "VALIDATION_008")
    return float(value)


def _refuse_parameter(name: str) -> NoReturn:
    msg = f"The {name} parameter is not supported."
    raise ValidationError(msg, "VALIDATION_012")

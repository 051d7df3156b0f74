"""One user's memory, as a caller sees it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

import msgspec
from msgspec import UNSET, UnsetType

from reverie import asking, door, masking, summing
from reverie.actors import commands as c
from reverie.memory_graph.context import Context, assemble, utc_day
from reverie.memory_graph.drafts import (
    OWNER,
    EntityDraft,
    Kept,
    MemoryDraft,
    RelationDraft,
    TurnDraft,
)
from reverie.memory_graph.errors import InvalidValueError, UnknownMemoryError
from reverie.memory_graph.ids import Key, check_id
from reverie.memory_graph.state import as_bytes
from reverie.memory_graph.views import EntityView, Hit, Item
from reverie.memory_graph.why import Explanation
from reverie.results import AddResult, ForgetReceipt, SearchOptions

if TYPE_CHECKING:
    from reverie.runtime import Runtime


class User:
    """The memory of one user in one world; made by `Runtime.user`. Cheap, holds no state.

    Times are seconds on the runtime's clock, or anything that `parse_time` takes. Every method
    may raise InputError (a bad argument), StorageError, and UnavailableError.
    """

    def __init__(self, runtime: Runtime, key: Key) -> None:
        self._rt = runtime
        self.key = key
        self.masking = runtime.masks.of(key)

    def __repr__(self) -> str:
        return f"User({self.key.user_id!r}, world={self.key.world!r})"

    # -- writing -----------------------------------------------------------------------

    def add(
        self,
        messages: door.Messages,
        *,
        session: str = "default",
        at: object = None,
        infer: bool = True,
        wait: bool = False,
        request_id: str | None = None,
    ) -> AddResult:
        """Store turns of a conversation, and extract memories from them.

        The turns (at most 10,000) are on disk when this returns, all or none of them. Extraction
        goes on in the background and survives a crash; `wait=True` waits for it.

        Args:
            messages: a text, a mapping or a sequence of them. Keys of a mapping: text (or
                content), role, speaker (or name), time (or at), id, session, metadata. A turn
                without a speaker is the user's own when its role is "user".
            session: the conversation, for messages that name none.
            at: when it was said, for messages without a time; now by default.
            infer: False keeps the turns and makes no memories.
            wait: return after extraction.
            request_id: a call repeated with the same id has one effect and the first result.
        """
        checked = door.messages(
            messages, session=session, at=at, max_bytes=self._rt.config.max_text_bytes
        )
        drafts = list(map(self.masking.turn, checked))
        request_id = self._request(request_id)
        infer = infer and self._rt.config.extractor != "off"
        added: c.Added = self._rt.call(self.turns_command(drafts, request_id, infer=infer))
        kept: list[Kept] = []
        if infer and drafts:
            done = False
            try:
                if wait:
                    kept = self._rt.ingestor.drain(self.key)
                    done = True
            finally:  # what is left, also after an error, is done in the background
                if not done:
                    self._rt.ingestor.wake(self.key)
        return AddResult(added.ids, kept)

    def turns_command(
        self, drafts: Sequence[TurnDraft], request_id: str | None, *, infer: bool
    ) -> c.AddTurns:
        """Return the command that stores checked turns; they are embedded here unless extraction
        will do it."""
        if not infer:
            embedder = self._rt.mind.embedder(self.key.world)
            vectors = embedder.embed([d.text for d in drafts], "passage")
            drafts = [
                msgspec.structs.replace(d, vector=as_bytes(v))
                for d, v in zip(drafts, vectors, strict=True)
            ]
        shared = self._write(request_id, with_vectors=not infer)
        return c.AddTurns(**shared, turns=tuple(drafts), extract=infer)

    def remember(  # noqa: PLR0913
        self,
        text: str,
        *,
        kind: str = "fact",
        importance: float = 0.7,
        confidence: float = 1.0,
        valid_from: object = None,
        valid_to: object = None,
        ttl_s: float | None = None,
        pinned: bool = False,
        tags: Sequence[str] = (),
        topics: Sequence[str] = (),
        entities: Sequence[Any] = (),
        metadata: Mapping[str, Any] | None = None,
        sources: Sequence[str] = (),
        replaces: str | Sequence[str] = (),
        request_id: str | None = None,
    ) -> Kept:
        """Keep a statement verbatim, at once, without a language model.

        The same text as an active memory is not kept twice (the answer is then a NOOP with the
        id of the first). `replaces` names memories that it supersedes.
        """
        old = door.texts((replaces,) if isinstance(replaces, str) else replaces, "replaces")
        draft = MemoryDraft(
            text=text,
            kind=kind,  # type: ignore[arg-type]  # checked by the door
            importance=importance,
            confidence=confidence,
            valid_from=valid_from,  # type: ignore[arg-type]
            valid_to=valid_to,  # type: ignore[arg-type]
            ttl_s=ttl_s,
            pinned=bool(pinned),
            tags=tags,  # type: ignore[arg-type]
            topics=door.texts(topics, "topics"),
            entities=entities,  # type: ignore[arg-type]
            metadata=metadata,  # type: ignore[arg-type]
            sources=door.texts(sources, "sources"),
        )
        return self._remember(draft, old, request_id)

    def observe(  # noqa: PLR0913
        self,
        event: str,
        *,
        at: object = None,
        participants: Sequence[str] = (),
        place: str | None = None,
        importance: float = 0.5,
        sentiment: float = 0.0,
        told_by: str | None = None,
        confidence: float = 1.0,
        ttl_s: float | None = None,
        tags: Sequence[str] = (),
        entities: Sequence[Any] = (),
        metadata: Mapping[str, Any] | None = None,
        request_id: str | None = None,
    ) -> Kept:
        """Keep an event that this user witnessed (or was `told_by` someone), verbatim."""
        people = [
            EntityDraft(door.name(p), "person") for p in door.texts(participants, "participants")
        ]
        where = [] if place is None else [EntityDraft(door.name(place, "place"), "place")]
        draft = MemoryDraft(
            text=event,
            kind="event",
            importance=importance,
            sentiment=sentiment,
            confidence=confidence,
            valid_from=at,  # type: ignore[arg-type]  # None: when it is recorded
            provenance="witnessed" if told_by is None else "told",
            told_by=told_by,
            ttl_s=ttl_s,
            tags=tags,  # type: ignore[arg-type]
            metadata=metadata,  # type: ignore[arg-type]
            entities=(*people, *where, *door.entities(entities)),
        )
        return self._remember(draft, (), request_id)

    def _remember(
        self, draft: MemoryDraft, replaces: tuple[str, ...], request_id: str | None
    ) -> Kept:
        checked = self.masking.memory(door.memory(draft, self._rt.config.max_text_bytes))
        request_id = self._request(request_id)
        checked = msgspec.structs.replace(checked, vector=self._embed(checked.text))
        command = c.Remember(
            **self._write(request_id, with_vectors=True), draft=checked, supersedes=replaces
        )
        kept: Kept = self._rt.call(command)
        return kept

    def relate(  # noqa: PLR0913
        self,
        head: str,
        predicate: str,
        tail: str,
        *,
        head_type: str = "thing",
        tail_type: str = "thing",
        valid_from: object = None,
        valid_to: object = None,
        confidence: float = 1.0,
        functional: bool = False,
        ended: bool = False,
        request_id: str | None = None,
    ) -> str | None:
        """Add a typed triple, such as ("Ana", "works_at", "Oslo Lab"); "user" is the owner.

        Args:
            head: name of the subject; an entity that is new is made.
            predicate: what holds between them.
            tail: name of the object, as `head`.
            head_type: of the subject, when it is new.
            tail_type: of the object, when it is new.
            valid_from: when it begins to hold, in world time; open by default.
            valid_to: when it stops to hold; open by default.
            confidence: 0 to 1.
            functional: the head has one tail at a time; other tails end.
            ended: the triple no longer holds.
            request_id: as in `add`.

        Returns:
            The id of the relation that holds now, or None when it was ended.
        """
        draft = door.relation(
            RelationDraft(
                OWNER if head == "user" else head,
                predicate,
                OWNER if tail == "user" else tail,
                valid_from,  # type: ignore[arg-type]  # checked by the door
                valid_to,  # type: ignore[arg-type]
                confidence,
                bool(functional),
                bool(ended),
            )
        )
        head_type, tail_type = door.entity_type(head_type), door.entity_type(tail_type)
        command = c.Relate(
            **self._write(self._request(request_id)),
            relation=self.masking.relation(draft, head_type=head_type, tail_type=tail_type),
            head_type=head_type,
            tail_type=tail_type,
        )
        relation_id: str | None = self._rt.call(command)
        return relation_id

    def update(  # noqa: PLR0913
        self,
        memory_id: str,
        text: str | None = None,
        *,
        importance: float | UnsetType = UNSET,
        confidence: float | UnsetType = UNSET,
        pinned: bool | UnsetType = UNSET,
        ttl_s: float | UnsetType | None = UNSET,
        tags: Sequence[str] | UnsetType = UNSET,
        metadata: Mapping[str, Any] | UnsetType | None = UNSET,
        request_id: str | None = None,
    ) -> Item:
        """Change a memory and return the one that is active now.

        A new text makes a new memory that supersedes the old one, which stays in the history;
        attributes are changed in place.

        Raises:
            UnknownMemoryError: no such memory.
            InvalidValueError: nothing to change, or a new text for a memory that has ended.
        """
        fields: dict[str, Any] = {}
        if importance is not UNSET:
            fields["importance"] = door.share(importance, "importance")
        if confidence is not UNSET:
            fields["confidence"] = door.share(confidence, "confidence")
        if pinned is not UNSET:
            fields["pinned"] = bool(pinned)
        if ttl_s is not UNSET:
            fields["ttl_s"] = None if ttl_s is None else door.duration(ttl_s, "ttl_s")
        if tags is not UNSET:
            fields["tags"] = tuple(map(self.masking.text, door.tags(tags)))
        if metadata is not UNSET:
            fields["metadata"] = self.masking.value(door.metadata(metadata))
        if text is not None:
            fields["text"] = self.masking.text(door.text(text, self._rt.config.max_text_bytes))
            fields["vector"] = self._embed(fields["text"])
        if not fields:
            msg = "nothing to change: pass a text or an attribute"
            raise InvalidValueError(msg, memory_id=memory_id)
        command = c.Update(
            **self._write(self._request(request_id), with_vectors=text is not None),
            memory_id=check_id(memory_id, "memory_id"),
            **fields,
        )
        item: Item = self._rt.call(command)
        return item

    def delete(
        self, memory_id: str, *, reason: str = "deleted", request_id: str | None = None
    ) -> bool:
        """End a memory: it no longer answers, and stays in the history (`restore` undoes it).

        To remove bytes from the disk, `forget` the user.

        Returns:
            False when it had ended already.

        Raises:
            UnknownMemoryError: no such memory.
        """
        return self._retire(memory_id, "expired", reason, request_id)

    def archive(
        self, memory_id: str, *, reason: str = "archived", request_id: str | None = None
    ) -> bool:
        """Put a memory away: it answers only with `include_archived`. As `delete` otherwise."""
        return self._retire(memory_id, "archived", reason, request_id)

    def _retire(self, memory_id: str, status: str, reason: str, request_id: str | None) -> bool:
        command = c.Retire(
            **self._write(self._request(request_id)),
            memory_id=check_id(memory_id, "memory_id"),
            status=status,  # type: ignore[arg-type]
            reason=self.masking.question(door.text(reason, 1024)),
        )
        return bool(self._rt.call(command))

    def restore(
        self, memory_id: str, *, reason: str = "restored", request_id: str | None = None
    ) -> Item:
        """Make an ended or archived memory active again; what replaced it is retired.

        Raises:
            UnknownMemoryError: no such memory.
            NothingToUndoError: it is active.
        """
        command = c.Restore(
            **self._write(self._request(request_id)),
            memory_id=check_id(memory_id, "memory_id"),
            reason=self.masking.question(door.text(reason, 1024)),
        )
        item: Item = self._rt.call(command)
        return item

    # -- reading -----------------------------------------------------------------------

    def search(
        self,
        question: str,
        *,
        limit: int = 10,
        filters: Mapping[str, Any] | None = None,
        types: Sequence[str] | str | None = None,
        as_of: object = None,
        valid_at: object = None,
        include_archived: bool = False,
        include_retired: bool = False,
    ) -> list[Hit]:
        """Return what answers a question, best first, each hit with its reasons.

        Args:
            question: in any language.
            limit: 1 to 10,000.
            filters: see memory_graph/filters.py; unknown fields and operators are errors.
            types: some of "memory", "message", "summary"; all by default.
            as_of: as it was believed at this recorded time.
            valid_at: what holds (held) at this time of the world.
            include_archived: archived memories answer too.
            include_retired: superseded and expired memories answer too.

        Raises:
            FilterError: a malformed filter.
            EmbedderMismatchError: the world's vectors are of another model.
        """
        options = SearchOptions(
            limit=limit,
            filters=filters,
            types=types,
            as_of=as_of,
            valid_at=valid_at,
            include_archived=include_archived,
            include_retired=include_retired,
        )
        return asking.search(self._rt, self.key, self.search_command(question, options))

    def search_command(
        self, question: str, options: SearchOptions, now: float | None = None
    ) -> c.Search:
        """Return the checked command of a search, without its vector; see `asking.command`.

        Several that are asked together, at the same `now`, share more of the work.
        """
        return asking.command(self._read(now), question, options, self.masking)

    def why(self, question: str, item_id: str, **search: Unpack[SearchOptions]) -> Explanation:
        """Return why a memory, message or summary does or does not come up for a question.

        It is asked as if now; what a search has read since it was asked counts as more recent.
        Nothing is recorded as read.

        Args:
            question: in any language.
            item_id: of the item; of a message also the id it came with. An unknown one is told.
            search: as in `search`.

        Raises:
            FilterError: a malformed filter.
            EmbedderMismatchError: the world's vectors are of another model.
        """
        asked = self.search_command(question, search)
        return asking.why(self._rt, asked, item_id)

    def context(
        self,
        question: str,
        *,
        budget_tokens: int = 800,
        count_tokens: Callable[[str], int] | None = None,
        show_time: Callable[[float], str] = utc_day,
        **search: Unpack[SearchOptions],
    ) -> Context:
        """Return a block of text for a prompt: the best hits that fit in a budget of tokens.

        Args:
            question: what the prompt is about.
            budget_tokens: of the whole block, by `count_tokens`.
            count_tokens: of the model that reads the prompt; the world's embedder by default.
            show_time: how a time is shown; as a UTC date by default.
            search: as in `search`; limit is 50 by default.
        """
        budget = door.limit(budget_tokens, "budget_tokens", 10_000_000)
        search.setdefault("limit", asking.CONTEXT_HITS)
        hits = self.search(question, **search)
        counter = count_tokens or self._rt.mind.for_reading(self.key.world).count_tokens
        return assemble(hits, budget, counter, show_time)

    get_conversation_summary = summing.get_conversation_summary
    summarise = summing.summarise
    mask = masking.mask
    unmask = masking.unmask

    def get(self, node_id: str) -> Item:
        """Return a memory, message or summary by its id, or a message by the id it came with.

        Raises:
            UnknownMemoryError: there is none.
        """
        checked = check_id(node_id, "id")
        item: Item | None = self._rt.call(c.Get(**self._read(), node_id=checked))
        if item is None:
            msg = f"nothing of id {checked!r} for user {self.key.user_id!r}"
            raise UnknownMemoryError(msg, memory_id=checked)
        return item

    def list(
        self,
        *,
        limit: int = 100,
        cursor: str | None = None,
        filters: Mapping[str, Any] | None = None,
        types: Sequence[str] | str | None = "memory",
        as_of: object = None,
        valid_at: object = None,
        include_archived: bool = False,
        include_retired: bool = False,
    ) -> c.Page:
        """Return one page of what is kept, in order of recording, with the total of all pages.

        Args:
            limit: items per page.
            cursor: of the page before; None begins.
            filters: as in `search`.
            types: as in `search`; memories by default.
            as_of: as in `search`.
            valid_at: as in `search`.
            include_archived: as in `search`.
            include_retired: as in `search`.
        """
        command = c.ListItems(
            **self._read(),
            limit=door.limit(limit),
            after=None if cursor is None else check_id(cursor, "cursor"),
            filters=self.masking.filters(door.filters(filters)),
            types=door.types(types),
            as_of=door.optional_time(as_of, "as_of"),
            valid_at=door.optional_time(valid_at, "valid_at"),
            archived=bool(include_archived),
            retired=bool(include_retired),
        )
        page: c.Page = self._rt.call(command)
        return page

    def history(self, memory_id: str) -> Sequence[Item]:
        """Return everything that a memory replaced and that replaced it, oldest first.

        Raises:
            UnknownMemoryError: no such memory.
        """
        checked = check_id(memory_id, "memory_id")
        items: Sequence[Item] = self._rt.call(c.History(**self._read(), memory_id=checked))
        return items

    def entities(self, name: str | None = None, *, limit: int = 100) -> Sequence[EntityView]:
        """Return the people, places and things that are known, most mentioned first."""
        wanted = None if name is None else self.masking.asked_name(door.name(name))
        command = c.Entities(**self._read(), name=wanted, limit=door.limit(limit))
        found: Sequence[EntityView] = self._rt.call(command)
        return found

    def neighbors(
        self,
        name: str = "user",
        *,
        as_of: object = None,
        valid_at: object = None,
        include_retired: bool = False,
        limit: int = 100,
    ) -> c.Neighborhood:
        """Return an entity's relations, what it is seen with, and where it is mentioned.

        Raises:
            UnknownMemoryError: no entity of exactly this name or alias.
        """
        wanted = self.masking.asked_name(door.name(name))
        command = c.Neighbors(
            **self._read(),
            name=wanted,
            as_of=door.optional_time(as_of, "as_of"),
            valid_at=door.optional_time(valid_at, "valid_at"),
            retired=bool(include_retired),
            limit=door.limit(limit),
        )
        found: c.Neighborhood | None = self._rt.call(command)
        if found is None:
            msg = f"no entity is named {wanted!r}"
            raise UnknownMemoryError(msg, name=wanted)
        return found

    def stats(self) -> c.UserStats:
        """Return counts of this user; all zero for one that does not exist."""
        stats: c.UserStats = self._rt.call(c.Stats(**self._read()))
        return stats

    def digest(self) -> str:
        """Return the digest of the whole state, the same in every process; "" for no user."""
        return str(self._rt.call(c.Digest(**self._read())))

    def check(self) -> Sequence[str]:
        """Return broken invariants of this user's state; empty when it is sound."""
        lines: Sequence[str] = self._rt.call(c.Check(**self._read()))
        return lines

    def forget(self) -> ForgetReceipt:
        """Erase this user: rows, snapshots, checkpoints, index and traces, then look for remains.

        Returns:
            A receipt that says what was removed and what a search of the files found.
        """
        erased = self._rt.erase(self.key)
        clean = erased.existed and not erased.found
        return ForgetReceipt(self.key.world, self.key.user_id, self._rt.now(), clean, erased)

    # -- the fields that commands share --------------------------------------------------

    def _request(self, request_id: str | None) -> str | None:
        if request_id is not None:
            return check_id(request_id, "request_id")
        return self._rt.new_request_id()

    def _write(self, request_id: str | None, *, with_vectors: bool = False) -> dict[str, Any]:
        fields: dict[str, Any] = {
            "world": self.key.world,
            "user_id": self.key.user_id,
            "at": self._rt.now(),
            "request_id": request_id,
        }
        if with_vectors:
            info = self._rt.mind.embedder(self.key.world).info
            fields |= {"embedder": info.id, "dim": info.dim}
        return fields

    def _read(self, now: float | None = None) -> dict[str, Any]:
        now = self._rt.now() if now is None else now
        return {"world": self.key.world, "user_id": self.key.user_id, "now": now}

    def _embed(self, text: str) -> bytes:
        return as_bytes(self._rt.mind.embedder(self.key.world).embed([text], "passage")[0])

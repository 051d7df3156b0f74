"""What a caller can change of one user's memory; see `User`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, UnsetType

from reverie import door
from reverie.actors import commands as c
from reverie.memory_graph.drafts import (
    OWNER,
    EntityDraft,
    Kept,
    MemoryDraft,
    RelationDraft,
    TurnDraft,
)
from reverie.memory_graph.errors import InvalidValueError
from reverie.memory_graph.ids import Key, check_id
from reverie.memory_graph.state import as_bytes
from reverie.memory_graph.views import Item
from reverie.results import AddResult

if TYPE_CHECKING:
    from reverie.runtime import Runtime


class Writing:
    """The writes of a `User`, and what every call of it needs."""

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
            request_id: a call repeated with the same id has one effect and the first result (what
                was kept is told again by the same process, for the last 20,000 turns).
        """
        checked = door.messages(
            messages, session=session, at=at, max_bytes=self._rt.config.max_text_bytes
        )
        drafts = list(map(self.masking.turn, checked))
        request_id = self._request(request_id)
        infer = door.flag(infer, "infer") and self._rt.config.extractor != "off"
        added: c.Added = self._rt.call(self.turns_command(drafts, request_id, infer=infer))
        kept: list[Kept] = []
        if infer and drafts:
            done = False
            try:
                if wait:
                    kept = self._rt.ingestor.drain(self.key, added.ids)
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
        again: bool = False,
        request_id: str | None = None,
    ) -> Kept:
        """Keep a statement verbatim, at once, without a language model.

        The same text as an active memory is not kept twice (the answer is then a NOOP with the
        id of the first), unless `again` says so. `replaces` names memories that it supersedes.
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
            pinned=pinned,
            tags=tags,  # type: ignore[arg-type]
            topics=door.texts(topics, "topics"),
            entities=entities,  # type: ignore[arg-type]
            metadata=metadata,  # type: ignore[arg-type]
            sources=door.texts(sources, "sources"),
        )
        return self._remember(draft, old, request_id, again=door.flag(again, "again"))

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
            heard=() if told_by is None else (told_by,),
            ttl_s=ttl_s,
            tags=tags,  # type: ignore[arg-type]
            metadata=metadata,  # type: ignore[arg-type]
            entities=(*people, *where, *door.entities(entities)),
        )
        return self._remember(draft, (), request_id)

    def _remember(
        self,
        draft: MemoryDraft,
        replaces: tuple[str, ...],
        request_id: str | None,
        *,
        again: bool = False,
    ) -> Kept:
        checked = self.masking.memory(door.memory(draft, self._rt.config.max_text_bytes))
        request_id = self._request(request_id)
        checked = msgspec.structs.replace(checked, vector=self._embed(checked.text))
        command = c.Remember(
            **self._write(request_id, with_vectors=True),
            draft=checked,
            supersedes=replaces,
            again=again,
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
                functional,
                ended,
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
            fields["pinned"] = door.flag(pinned, "pinned")
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

        Returns:
            The memory as it is then. It counts as new, and goes last when the budgets of the
            profile (`memories`, `bytes`) leave no room for all; where they leave none for it at
            all, such as a budget of 0, its `status` is "archived" again, as `audit` tells.

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

    # -- what every call needs --------------------------------------------------------------

    def _request(self, request_id: str | None) -> str | None:
        if request_id is not None:
            return check_id(request_id, "request_id")
        return self._rt.new_request_id()

    def _write(self, request_id: str | None, *, with_vectors: bool = False) -> dict[str, Any]:
        fields: dict[str, Any] = {
            "world": self.key.world,
            "user_id": self.key.user_id,
            "at": self._rt.now(self.key.world),
            "request_id": request_id,
        }
        if with_vectors:
            info = self._rt.mind.embedder(self.key.world).info
            fields |= {"embedder": info.id, "dim": info.dim}
        return fields

    def _read(self, now: float | None = None) -> dict[str, Any]:
        now = self._rt.now(self.key.world) if now is None else now
        return {"world": self.key.world, "user_id": self.key.user_id, "now": now}

    def _embed(self, text: str) -> bytes:
        return as_bytes(self._rt.mind.embedder(self.key.world).embed([text], "passage")[0])

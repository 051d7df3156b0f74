"""From drafts to events: the only place where new ids are given and names are resolved.

A `Writer` applies each event to the state as it is made, so later events of the same request see
the earlier ones. Everything that can be refused is checked before the first event; an error after
it means that the caller must discard the state (the store rolls back).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from reverie.memory_graph import events, graph as g, nodes as n
from reverie.memory_graph.apply import apply
from reverie.memory_graph.budget import time_to_live
from reverie.memory_graph.drafts import (
    OWNER,
    Decision,
    EntityDraft,
    Kept,
    MemoryDraft,
    RelationDraft,
    TurnDraft,
    TurnOutcome,
)
from reverie.memory_graph.errors import (
    InvalidValueError,
    NothingToUndoError,
    UnknownMemoryError,
)
from reverie.memory_graph.state import UserMemory
from reverie.memory_graph.text import name_key, normalise
from reverie.memory_graph.visible import is_live

MAX_SUMMARY_ENTITIES = 8  # that a summary is linked to: those of most of its sources


class Writer:
    """Makes and applies the events of one request at time `at` (seconds).

    Attributes:
        events: the events so far, for the journal.
        is_changed: whether an event was begun; after an error, the state may then be half changed.
    """

    def __init__(self, memory: UserMemory, at: float) -> None:
        self.memory = memory
        self.graph = memory.graph
        self.at = at
        self.events: list[events.Event] = []
        self.is_changed = False

    def emit(self, event: events.Event) -> None:
        """Apply an event and keep it for the journal."""
        self.is_changed = True
        apply(self.memory, event)
        self.memory.seq += 1
        self.events.append(event)

    # -- turns -------------------------------------------------------------------------

    def turns(self, drafts: Sequence[TurnDraft], *, pending: bool) -> list[str]:
        """Store turns in order and return their node ids.

        A turn whose `external_id` is stored already with the same text is not stored again; its
        id is returned, so an interrupted import can be repeated.

        Raises:
            InvalidValueError: an `external_id` that stands for another text. Nothing was done.
        """
        given: dict[str, str] = {}
        for draft in drafts:
            if draft.external_id is None:
                continue
            known = self.graph.externals.get(draft.external_id)
            text = given.setdefault(draft.external_id, draft.text)
            if known is not None:
                text = self.memory.text_of(known) or ""
            if text != draft.text:
                msg = f"message id {draft.external_id!r} is stored already with another text"
                raise InvalidValueError(msg, external_id=draft.external_id)
        return [self._turn(draft, pending=pending) for draft in drafts]

    def _turn(self, draft: TurnDraft, *, pending: bool) -> str:
        if draft.external_id is not None and (old := self.graph.externals.get(draft.external_id)):
            return old
        said_at = self.at if draft.said_at is None else draft.said_at
        session = self.graph.sessions.get(draft.session)
        if session is None:
            session = self.graph.next_id(g.SESSION)
            self.emit(events.SessionOpened(at=self.at, id=session, name=draft.session))
        speaker = draft.speaker or ("user" if draft.role == "user" else draft.role)
        node = n.USER_NODE
        if speaker != "user":
            kind = "person" if draft.speaker and speaker != "assistant" else "agent"
            node = self.entity(EntityDraft(speaker, kind), said_at)
        turn_id = self.graph.next_id(g.MESSAGE)
        self.emit(
            events.MessageAdded(
                at=self.at,
                id=turn_id,
                session=session,
                speaker=speaker,
                speaker_node=node,
                role=draft.role,
                text=draft.text,
                said_at=said_at,
                external_id=draft.external_id,
                metadata=draft.metadata,
                status="pending" if pending else "skipped",
                vector=draft.vector,
            )
        )
        return turn_id

    def outcomes(self, outcomes: Sequence[TurnOutcome]) -> list[Kept]:
        """Carry out what extraction and decisions made of pending turns.

        A turn that is not pending any more is passed over. A decision whose target is not an
        active memory is refused and its draft added: a spare memory is better than a lost one.
        """
        kept: list[Kept] = []
        for outcome in outcomes:
            turn = self.graph.node(outcome.turn_id)
            if not isinstance(turn, n.Message) or turn.status not in {"pending", "quarantined"}:
                # Places are kept, so that "#i" of later decisions still means the same draft.
                kept += [Kept("NOOP", "", None, "turn settled already")] * len(outcome.memories)
                continue
            names = [*outcome.entities, *(e for m in outcome.memories for e in m.entities)]
            entities = self.entities(names, turn.said_at)
            self.emit(
                events.TurnSettled(
                    at=self.at,
                    id=turn.id,
                    status=outcome.status,
                    entities=tuple(entities),
                    vector=outcome.vector,
                )
            )
            if outcome.status == "extracted":
                for draft, decision in zip(outcome.memories, outcome.decisions, strict=True):
                    kept.append(self.decided(draft, decision, kept))
        return kept

    # -- memories ----------------------------------------------------------------------

    def decided(self, draft: MemoryDraft, decision: Decision, earlier: Sequence[Kept]) -> Kept:
        """Keep a draft as a decision says. A target "#i" is the memory of `earlier[i]`."""
        target, refused = decision.target, None
        if target is not None and target.startswith("#"):
            index = int(target[1:])
            target = earlier[index].memory_id if index < len(earlier) else None
        old = None if target is None else self.graph.node(target)
        if decision.op != "ADD" and not (isinstance(old, n.Memory) and is_live(old, self.at)):
            refused = f"{decision.op} names no active memory ({decision.target})"
        if refused is not None or decision.op == "ADD" or target is None:
            twin = self.twin(draft)
            if twin is not None:
                return Kept("NOOP", twin, None, refused)
            return Kept("ADD", self.remember(draft), None, refused)
        match decision.op:
            case "UPDATE":
                if self._is_older(draft, old):
                    return Kept("ADD", self._remember_past(draft, target, old))
                return Kept("UPDATE", self.remember(draft, (target,)), target)
            case "DELETE":
                self._end_relations(target, draft.valid_from)
                self._relations(draft, None)
                self.retire(target, "superseded", draft.text, draft.valid_from)
                return Kept("DELETE", target, target)
            case _:
                return Kept("NOOP", target)

    def remember(self, draft: MemoryDraft, supersedes: Sequence[str] = ()) -> str:
        """Keep a draft as a new memory, with its entities, topics and relations; return its id.

        Raises:
            UnknownMemoryError: a source or a superseded memory does not exist. Nothing was done.
            InvalidValueError: a superseded memory has ended already. Nothing was done.
        """
        for old in supersedes:
            if self.existing(old).retired_at is not None:
                msg = f"memory {old} has ended already; replace the memory that is active now"
                raise InvalidValueError(msg, memory_id=old)
        for source in draft.sources:
            if not isinstance(self.graph.node(source), n.Message | n.Memory):
                msg = f"no message or memory {source!r} to derive from"
                raise UnknownMemoryError(msg, memory_id=source)
        for old in supersedes:
            self._end_relations(old, draft.valid_from)
        entities = self.entities(draft.entities, self.at)
        topics = [self._topic(name) for name in draft.topics]
        memory_id = self.graph.next_id(g.MEMORY)
        self.emit(
            events.MemoryAdded(
                at=self.at,
                id=memory_id,
                text=draft.text,
                kind=draft.kind,
                sources=tuple(dict.fromkeys(draft.sources)),
                entities=tuple(entities),
                supersedes=tuple(dict.fromkeys(supersedes)),
                topics=tuple(dict.fromkeys(topics)),
                valid_from=draft.valid_from,
                valid_to=draft.valid_to,
                confidence=draft.confidence,
                importance=draft.importance,
                slot=draft.slot,
                provenance=draft.provenance,
                told_by=draft.told_by,
                event=draft.event,
                heard=draft.heard,
                sentiment=draft.sentiment,
                ttl_s=time_to_live(self.graph, draft),
                pinned=draft.pinned,
                tags=draft.tags,
                metadata=draft.metadata,
                vector=draft.vector,
            )
        )
        self._relations(draft, memory_id)
        return memory_id

    def _remember_past(self, draft: MemoryDraft, newer: str, then: n.Node | None) -> str:
        """Keep a statement that was learned late: it held until the one that is known began."""
        ends = then.valid_from if isinstance(then, n.Memory) else None
        relations = tuple(
            msgspec.structs.replace(r, functional=False, valid_to=ends) for r in draft.relations
        )
        past = msgspec.structs.replace(draft, valid_to=ends, relations=relations)
        memory_id = self.remember(past)
        self.retire(memory_id, "superseded", f"older than {newer}", ends)
        return memory_id

    def _is_older(self, draft: MemoryDraft, known: n.Node | None) -> bool:
        """Return whether a draft holds from an earlier time than a memory that it would replace.

        A memory without a stated time is valid from when it was said: it may have held long before,
        so a draft that began earlier and still held then is the newer of the two.
        """
        if (
            not isinstance(known, n.Memory)
            or draft.valid_from is None
            or known.valid_from is None
            or draft.valid_from >= known.valid_from
        ):
            return False
        sources = (self.graph.node(s) for s, _ in self.graph.out(known.id, n.DERIVED_FROM))
        said = any(isinstance(s, n.Message) and s.said_at == known.valid_from for s in sources)
        return not said or draft.held_at is None or draft.held_at < known.valid_from

    def twin(self, draft: MemoryDraft) -> str | None:
        """Return the live memory that says exactly this (after normalisation), or None."""
        live = (m.id for m in self.graph.saying(draft.text) if is_live(m, self.at))
        return next(live, None)

    def existing(self, memory_id: str) -> n.Memory:
        """Return a memory of this user; raises UnknownMemoryError when there is none."""
        node = self.graph.node(memory_id)
        if not isinstance(node, n.Memory):
            msg = f"no memory {memory_id!r} for this user"
            raise UnknownMemoryError(msg, memory_id=memory_id)
        return node

    def revise(self, memory_id: str, text: str, vector: bytes | None) -> str:
        """Replace a memory by a new one of another text and the same attributes; return its id.

        Raises:
            UnknownMemoryError: no such memory.
            InvalidValueError: the memory is not active (update what replaced it instead).
        """
        old = self.existing(memory_id)
        if old.status != "active":
            msg = f"memory {memory_id} is {old.status}; update the memory that is active now"
            raise InvalidValueError(msg, memory_id=memory_id)
        entities = [
            self.graph.get(e, n.Entity) for e, _ in self.graph.out(memory_id, n.CONTAINS_ENTITY)
        ]
        wanted = normalise(text)
        draft = MemoryDraft(
            text=text,
            kind=old.kind,
            confidence=old.confidence,
            importance=old.importance,
            slot=old.slot,
            valid_from=self.at,
            provenance=old.provenance,
            told_by=old.told_by,
            event=old.event,
            heard=old.heard,
            sentiment=old.sentiment,
            topics=tuple(self.memory.display(t) for t, _ in self.graph.out(memory_id, n.IN_TOPIC)),
            sources=tuple(s for s, _ in self.graph.out(memory_id, n.DERIVED_FROM)),
            ttl_s=old.ttl_s,
            pinned=old.pinned,
            tags=old.tags,
            metadata=old.metadata,
            entities=tuple(
                EntityDraft(e.name, e.type) for e in entities if normalise(e.name) in wanted
            ),
            vector=vector,
        )
        return self.remember(draft, (memory_id,))

    def edit(self, event: events.MemoryEdited) -> None:
        """Change attributes of a memory; raises UnknownMemoryError when there is none."""
        self.existing(event.id)
        self.emit(event)

    def retire(
        self,
        memory_id: str,
        status: n.Status,
        reason: str,
        valid_to: float | None = None,
        *,
        faded: bool = False,
    ) -> bool:
        """End a memory and the relations that came from it. False when it had ended already; one
        that only `faded` can still be archived, to hide what summaries tell of it.

        Raises:
            UnknownMemoryError: no such memory.
        """
        old = self.existing(memory_id)
        if (old.status == status and not old.faded) or old.retired_at is not None:
            return False
        if status in {"superseded", "expired"}:
            self._end_relations(memory_id, valid_to)
        self.emit(
            events.MemoryRetired(
                at=self.at,
                id=memory_id,
                status=status,
                valid_to=valid_to,
                reason=reason,
                faded=faded,
                dated=status in {"archived", "quarantined"},
            )
        )
        return True

    def restore(self, memory_id: str, reason: str) -> None:
        """Make a memory active again, with the relations that ended when it did; whatever
        active memory had replaced it, or had been replaced by it, is retired.

        Raises:
            UnknownMemoryError: no such memory.
            NothingToUndoError: it is active already.
        """
        old = self.existing(memory_id)
        if old.status == "active":
            msg = f"memory {memory_id} is active; there is nothing to restore"
            raise NothingToUndoError(msg, memory_id=memory_id)
        ended_at = old.retired_at
        for other in [
            *self._chain(memory_id, self.graph.into),
            *self._chain(memory_id, self.graph.out),
        ]:
            self.retire(other, "superseded", f"undone: {memory_id} restored")
        self.emit(events.MemoryRestored(at=self.at, id=memory_id, reason=reason))
        for relation in self._relations_of(memory_id):
            if ended_at is not None and relation.retired_at == ended_at:
                head, tail = self.graph.relations[relation.id]
                self.emit(
                    events.RelationAdded(
                        at=self.at,
                        id=self.graph.next_id(g.RELATION),
                        head=head,
                        predicate=relation.predicate,
                        tail=tail,
                        valid_from=relation.valid_from,
                        valid_to=None if relation.end_learned else relation.valid_to,
                        confidence=relation.confidence,
                        source=memory_id,
                    )
                )

    @staticmethod
    def _chain(
        memory_id: str, step: Callable[[str, str], Iterator[tuple[str, n.Edge | n.Relation]]]
    ) -> list[str]:
        """Return what replaced a memory, and what replaced that, and so on; or what it replaced."""
        found: dict[str, None] = {}
        work = [memory_id]
        while work:
            further = [m for m, _ in step(work.pop(), n.SUPERSEDES) if m not in found]
            found |= dict.fromkeys(further)
            work += further
        return list(found)

    def touch(self, ids: Sequence[str], at: float) -> None:
        """Record that nodes were read at time `at`."""
        if known := tuple(i for i in ids if i in self.graph):
            self.emit(events.Touched(at=at, ids=known))

    def summarise(  # noqa: PLR0913
        self,
        text: str,
        of: str,
        sources: Sequence[str],
        *,
        from_at: float,
        to_at: float,
        vector: bytes | None,
        covers: int = 0,
        gist: bool = False,
        order: int = 1,
        focus: str | None = None,
    ) -> str:
        """Keep a summary of a session, topic or the user; the one before it is retired. A `gist`,
        of memories that have faded, stands beside them. For `order` and `focus` see Summary."""
        newest = None if gist else self.graph.summaries.get(n.subject_of(of, order))
        is_live = newest and self.graph.get(newest, n.Summary).retired_at is None
        old = (newest,) if newest and is_live else ()
        summary_id = self.graph.next_id(g.SUMMARY)
        mentions = Counter(
            e for source in sources for e, _ in self.graph.out(source, n.CONTAINS_ENTITY)
        )
        entities = sorted(mentions, key=lambda e: (-mentions[e], g.number(e)))
        self.emit(
            events.SummaryAdded(
                at=self.at,
                id=summary_id,
                text=text,
                of=of,
                sources=tuple(dict.fromkeys(sources)),
                from_at=from_at,
                to_at=to_at,
                replaces=old,
                entities=tuple(entities[:MAX_SUMMARY_ENTITIES]),
                vector=vector,
                covers=covers,
                gist=gist,
                order=order,
                focus=focus,
            )
        )
        return summary_id

    # -- entities and relations --------------------------------------------------------

    def entities(self, drafts: Iterable[EntityDraft], seen_at: float) -> list[str]:
        """Return the entity ids of names, new ones made, without repetition, in order."""
        return list(
            dict.fromkeys(
                self.entity(d, seen_at) for d in drafts if name_key(d.name) and d.name != OWNER
            )
        )

    def entity(self, draft: EntityDraft, seen_at: float) -> str:
        """Return the id of the entity of exactly this name or alias, made if there is none.

        Names merge only when they are equal after normalisation; never by similarity.
        """
        found = self.graph.entity_named(draft.name)
        if found is None:
            for alias in draft.aliases:
                if found := self.graph.entity_named(alias):
                    break
        if found is None:
            entity_id = self.graph.next_id(g.ENTITY)
            self.emit(
                events.EntityAdded(
                    at=self.at,
                    id=entity_id,
                    name=draft.name,
                    type=draft.type,
                    seen_at=seen_at,
                    aliases=draft.aliases,
                )
            )
            return entity_id
        fresh = tuple(a for a in (draft.name, *draft.aliases) if self.graph.entity_named(a) is None)
        better = draft.type if found.type == "thing" and draft.type != "thing" else None
        if fresh or better:
            self.emit(events.EntityRenamed(at=self.at, id=found.id, aliases=fresh, type=better))
        return found.id

    def relate(self, draft: RelationDraft, source: str | None) -> str | None:
        """Add a triple, or end it when it is `ended`; return the id of the active relation.

        The same triple again is not added again while it holds. A functional predicate ends the
        head's other tails. Only relations of the same head and predicate are ever touched.
        """
        head, tail = self._end(draft.head), self._end(draft.tail)
        same: str | None = None
        for other, relation in list(self.graph.out(head, n.RELATION)):
            if (
                not isinstance(relation, n.Relation)
                or relation.predicate != draft.predicate
                or relation.retired_at is not None
            ):
                continue
            if other == tail and not draft.ended:
                # Two stints are two relations; the same one, or one that goes on, is not added.
                stint = (draft.valid_from, draft.valid_to)
                goes_on = relation.valid_to is None and draft.valid_to is None
                if goes_on or stint == (relation.valid_from, relation.valid_to):
                    same = relation.id
            elif other == tail or (draft.functional and not draft.ended):
                ends_at = draft.valid_to if draft.ended else draft.valid_from
                self.emit(events.RelationRetired(at=self.at, id=relation.id, valid_to=ends_at))
        if draft.ended or same is not None:
            return same
        relation_id = self.graph.next_id(g.RELATION)
        self.emit(
            events.RelationAdded(
                at=self.at,
                id=relation_id,
                head=head,
                predicate=draft.predicate,
                tail=tail,
                valid_from=draft.valid_from,
                valid_to=draft.valid_to,
                confidence=draft.confidence,
                source=source,
            )
        )
        return relation_id

    def _relations(self, draft: MemoryDraft, source: str | None) -> None:
        for relation in draft.relations:
            self.relate(relation, source)

    def _end(self, name: str) -> str:
        return n.USER_NODE if name == OWNER else self.entity(EntityDraft(name), self.at)

    def _end_relations(self, memory_id: str, valid_to: float | None) -> None:
        """Retire the relations that came from a memory which no longer holds."""
        for relation in self._relations_of(memory_id):
            if relation.retired_at is None:
                self.emit(events.RelationRetired(at=self.at, id=relation.id, valid_to=valid_to))

    def _relations_of(self, memory_id: str) -> list[n.Relation]:
        """Return the relations that came from a memory, in the order of their ids."""
        every = map(self.graph.relation, self.graph.relations)
        return sorted(
            (r for r in every if r.source == memory_id), key=lambda relation: g.number(relation.id)
        )

    def _topic(self, name: str) -> str:
        if (known := self.graph.topics.get(name_key(name))) is not None:
            return known
        topic_id = self.graph.next_id(g.TOPIC)
        self.emit(events.TopicAdded(at=self.at, id=topic_id, name=name))
        return topic_id


def changed(at: float, memory_id: str, **fields: object) -> events.MemoryEdited:
    """Return an edit event of the fields that are given (UNSET fields keep their value)."""
    return msgspec.structs.replace(events.MemoryEdited(at=at, id=memory_id), **fields)

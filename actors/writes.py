"""How a shard carries out each write: drafts become events through a `Writer`, and the outbox
follows in the same transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from reverie.actors import commands as c, ties
from reverie.actors.gatherings import change_membership, form_group
from reverie.actors.limits import keep_gist, note_spent, part, set_profile, tend
from reverie.actors.reads import check_embedder
from reverie.memory_graph import events, faults, nodes as n, relationships
from reverie.memory_graph.drafts import EntityDraft, Kept, Operation
from reverie.memory_graph.errors import InternalError, StaleGenerationError, UnknownMemoryError
from reverie.memory_graph.hearsay import learn
from reverie.memory_graph.ids import Key
from reverie.memory_graph.material import feeds, stamp
from reverie.memory_graph.store import Transaction
from reverie.memory_graph.text import name_key
from reverie.memory_graph.views import Item, as_item
from reverie.memory_graph.write import Writer, changed

if TYPE_CHECKING:
    from reverie.memory_graph.state import UserMemory

MAX_ATTEMPTS = 2  # a turn whose extraction failed this often is quarantined


class Outbox:
    """What a write does to the outbox; carried out after the events are appended."""

    def __init__(self) -> None:
        self.enqueue: list[str] = []
        self.dequeue: list[str] = []
        self.requeue: list[str] = []
        self.quarantine: list[str] = []

    def apply(self, txn: Transaction, key: Key) -> None:
        """Make the changes in the transaction that holds the events."""
        faults.reach("outbox.before")
        if self.enqueue:
            txn.enqueue(key, self.enqueue)
        if self.dequeue:
            txn.dequeue(key, self.dequeue)
        if self.requeue:
            txn.requeue(key, self.requeue)
        for turn_id in self.quarantine:
            txn.quarantine(key, turn_id)
        faults.reach("outbox.after")


def write(  # noqa: C901, PLR0912 (one branch a kind)
    writer: Writer, command: c.Write, generation: int, txn: Transaction, box: Outbox
) -> Any:
    """Carry out `command` on the writer's state and return its answer.

    Args:
        writer: makes and applies the events.
        command: what to do.
        generation: the user's current one.
        txn: only to count failures of turns.
        box: filled with what the outbox must do.

    Raises:
        InputError, NotFoundError, StateError, ModelError: the command cannot be carried out.
    """
    _claim_embedder(writer, command)
    form_group(writer, command)
    match command:
        case c.AddTurns():
            before = writer.graph.counters.get("t", 0)
            ids = writer.turns(command.turns, pending=command.extract)
            if command.extract:
                box.enqueue = [i for i in dict.fromkeys(ids) if int(i[1:]) > before]
            return c.Added(ids, generation)
        case c.Settle():
            _check_generation(command, command.generation, generation)
            kept = writer.outcomes(command.outcomes)
            for outcome in command.outcomes:
                away = outcome.status == "quarantined"
                (box.quarantine if away else box.dequeue).append(outcome.turn_id)
            return c.Settled(kept, 0)
        case c.FailTurn():
            return _fail(writer, command, generation, txn, box)
        case c.Requeue():
            return _requeue(writer, command, generation, box)
        case c.Remember():
            is_new = command.again or command.supersedes
            if not is_new and (twin := writer.twin(command.draft)) is not None:
                return Kept("NOOP", twin)
            memory_id = writer.remember(command.draft, command.supersedes)
            op: Operation = "UPDATE" if command.supersedes else "ADD"
            return Kept(op, memory_id, next(iter(command.supersedes), None))
        case c.Witness():
            return learn(writer, command.draft, is_back=command.is_back)
        case c.Membership():
            return change_membership(writer, command)
        case c.Update():
            return _update(writer, command)
        case c.Retire():
            return writer.retire(command.memory_id, command.status, command.reason)
        case c.Restore():
            writer.restore(command.memory_id, command.reason)
            return view(writer.memory, command.memory_id)
        case c.Relate():
            ends = (
                (command.relation.head, command.head_type),
                (command.relation.tail, command.tail_type),
            )
            writer.entities((EntityDraft(name, kind) for name, kind in ends), command.at)
            return writer.relate(command.relation, None)
        case c.MoveRelationship():
            return ties.move(writer, command)
        case c.Untie():
            return relationships.untie(writer, command.other)
        case c.Reflect():
            return ties.reflect(writer, command)
        case c.Summarise():
            return _summarise(writer, command, generation)
        case c.SetProfile():
            return set_profile(writer, command)
        case c.Tend():
            return tend(writer)
        case c.Part():
            return part(writer, command)
        case c.ModelSpent():
            return note_spent(writer, command)
        case c.SetVectors():
            writer.emit(
                events.VectorsSet(
                    at=command.at,
                    embedder=command.embedder or "",
                    dim=command.dim,
                    ids=command.ids,
                    vectors=command.vectors,
                )
            )
            return True
        case _:
            msg = f"{type(command).__name__} is no write"
            raise InternalError(msg)


def view(memory: UserMemory, memory_id: str) -> Item:
    """Return a memory as an `Item`."""
    return as_item(memory, memory.graph.get(memory_id, n.Memory))


def _claim_embedder(writer: Writer, command: c.Write) -> None:
    """The first vectors of a user fix its embedder, by an event so that replay knows it."""
    if command.embedder is None or isinstance(command, c.SetVectors):
        return
    check_embedder(writer.memory, command.embedder)
    if writer.memory.embedder is None:
        writer.emit(
            events.VectorsSet(
                at=command.at, embedder=command.embedder, dim=command.dim, ids=(), vectors=b""
            )
        )


def _check_generation(command: c.Command, begun: int, current: int) -> None:
    if begun != current:
        msg = (
            f"work for {command.user_id!r} in world {command.world!r} was begun in generation "
            f"{begun}, now is {current}: its outcome is discarded"
        )
        raise StaleGenerationError(msg, begun=begun, current=current)


def _fail(
    writer: Writer, command: c.FailTurn, generation: int, txn: Transaction, box: Outbox
) -> c.Settled:
    _check_generation(command, command.generation, generation)
    attempts = txn.fail(command.key, command.turn_id, command.error)
    turn = writer.graph.node(command.turn_id)
    if attempts >= MAX_ATTEMPTS and isinstance(turn, n.Message) and turn.status == "pending":
        writer.emit(events.TurnSettled(at=command.at, id=command.turn_id, status="quarantined"))
        box.quarantine.append(command.turn_id)
    return c.Settled([], 0)


def _requeue(writer: Writer, command: c.Requeue, generation: int, box: Outbox) -> c.Added:
    for turn_id in command.turn_ids:
        if not isinstance(writer.graph.node(turn_id), n.Message):
            msg = f"no message {turn_id!r} for this user"
            raise UnknownMemoryError(msg, memory_id=turn_id)
    quarantined = [
        m.id
        for m in writer.graph.nodes(n.Message)
        if isinstance(m, n.Message)
        and m.status == "quarantined"
        and (not command.turn_ids or m.id in command.turn_ids)
    ]
    for turn_id in quarantined:
        writer.emit(events.TurnSettled(at=command.at, id=turn_id, status="pending"))
    box.requeue = quarantined
    return c.Added(quarantined, generation)


def _update(writer: Writer, command: c.Update) -> Item:
    memory_id = command.memory_id
    current = writer.existing(memory_id)
    if command.text is not None and command.text != current.text:
        memory_id = writer.revise(memory_id, command.text, command.vector)
    fields = {
        name: value
        for name in ("importance", "confidence", "pinned", "ttl_s", "tags", "metadata")
        if (value := getattr(command, name)) is not UNSET
    }
    if fields:
        writer.edit(changed(command.at, memory_id, **fields))
    return view(writer.memory, memory_id)


def _summarise(writer: Writer, command: c.Summarise, generation: int) -> str:
    if command.generation is not None:
        _check_generation(command, command.generation, generation)
    if command.gist:
        return keep_gist(writer, command)
    graph, of = writer.graph, n.USER_NODE
    if command.session is not None:
        of = graph.sessions.get(command.session, "")
    elif command.topic is not None:
        of = graph.topics.get(name_key(command.topic), "")
    if command.focus is not None:
        of = command.focus if isinstance(graph.node(command.focus), n.Entity) else ""
    if not of:
        msg = f"no session or topic {command.session or command.topic!r} for this user"
        raise UnknownMemoryError(msg, session=command.session)
    subject = n.subject_of(of, command.order)
    if command.follows not in {None, graph.summaries.get(subject, "")}:
        msg = "another summary was made meanwhile: this one is discarded"
        raise StaleGenerationError(msg, follows=command.follows)
    stamps = command.stamps or (None,) * len(command.sources)
    for source, seen in zip(command.sources, stamps, strict=True):
        text = writer.memory.text_of(source)
        if text is None or not feeds(writer.memory, source) or seen not in {None, stamp(text)}:
            msg = f"{source} has changed since the summary was begun: it is discarded"
            raise StaleGenerationError(msg, memory_id=source)
    return writer.summarise(
        command.text,
        of,
        command.sources,
        from_at=command.from_at,
        to_at=command.to_at,
        vector=command.vector,
        covers=command.covers,
        order=command.order,
        focus=command.focus,
    )

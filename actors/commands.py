"""What can be asked of a shard: one closed union of commands, each with its answer beside it.

A command names its user, carries its time (a shard reads no clock) and everything uncertain that
was worked out before (vectors, drafts, decisions). Writes that a client may repeat carry a
request id. Commands and answers are plain structs; on Ray they travel as MessagePack.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from reverie.actors.answers import (
    Added as Added,
    Erased as Erased,
    Materials as Materials,
    Neighborhood as Neighborhood,
    Page as Page,
    PendingUser as PendingUser,
    Settled as Settled,
    ShardStats as ShardStats,
    TextPage as TextPage,
    TurnBatch as TurnBatch,
    TurnView as TurnView,
    UserStats as UserStats,
)
from reverie.memory_graph.drafts import (
    Kept,
    Known,
    MemoryDraft,
    RelationDraft,
    TurnDraft,
    TurnOutcome,
)
from reverie.memory_graph.errors import WireError
from reverie.memory_graph.ids import Key
from reverie.memory_graph.material import Material
from reverie.memory_graph.nodes import Metadata, Status
from reverie.memory_graph.summaries import SummaryPolicy
from reverie.memory_graph.talk import Period
from reverie.memory_graph.views import EntityView, Hit, Item
from reverie.memory_graph.why import Explanation


class Command(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, tag_field="c"):
    """Base of all commands; `world` and `user_id` are the partition key."""

    world: str
    user_id: str

    @property
    def key(self) -> Key:
        """The partition key."""
        return Key(self.world, self.user_id)


class Write(Command, frozen=True, kw_only=True):
    """A change of one user. `at` is its recorded time in seconds. `request_id` None means that
    the caller will not repeat it. `embedder` is the id of the embedder of its vectors."""

    at: float
    request_id: str | None = None
    embedder: str | None = None
    dim: int = 0


class AddTurns(Write, frozen=True, kw_only=True, tag="add_turns"):
    """Store turns; `extract` puts them into the outbox. Answer: `Added`."""

    turns: tuple[TurnDraft, ...]
    extract: bool = True


class Settle(Write, frozen=True, kw_only=True, tag="settle"):
    """Carry out the outcome of extraction. `generation` is that of the work's begin: after a
    rewind the outcome is discarded (StaleGenerationError). Answer: `Settled`."""

    generation: int
    outcomes: tuple[TurnOutcome, ...]


class FailTurn(Write, frozen=True, kw_only=True, tag="fail_turn"):
    """Count a failed extraction; the second failure quarantines the turn. Answer: `Settled`."""

    generation: int
    turn_id: str
    error: str


class Requeue(Write, frozen=True, kw_only=True, tag="requeue"):
    """Give quarantined turns another chance (all of the user's when none are named). Answer:
    `Added` with their ids."""

    turn_ids: tuple[str, ...] = ()


class Remember(Write, frozen=True, kw_only=True, tag="remember"):
    """Keep a memory verbatim, replacing `supersedes`. Answer: `Kept`."""

    draft: MemoryDraft
    supersedes: tuple[str, ...] = ()


class Update(Write, frozen=True, kw_only=True, tag="update"):
    """Change a memory: a new `text` makes a new memory that supersedes it, the rest is edited in
    place. Answer: `Item` of the memory that is active now."""

    memory_id: str
    text: str | None = None
    vector: bytes | None = None
    importance: float | UnsetType = UNSET
    confidence: float | UnsetType = UNSET
    pinned: bool | UnsetType = UNSET
    ttl_s: float | UnsetType | None = UNSET
    tags: tuple[str, ...] | UnsetType = UNSET
    metadata: Metadata | UnsetType | None = UNSET


class Retire(Write, frozen=True, kw_only=True, tag="retire"):
    """End or put away a memory. Answer: bool, False when it had ended already."""

    memory_id: str
    status: Status = "expired"
    reason: str = ""


class Restore(Write, frozen=True, kw_only=True, tag="restore"):
    """Make a retired memory active again. Answer: `Item`."""

    memory_id: str
    reason: str = ""


class Relate(Write, frozen=True, kw_only=True, tag="relate"):
    """Add or end a typed triple. Answer: id of the active relation, or None."""

    relation: RelationDraft
    head_type: str = "thing"
    tail_type: str = "thing"


class Summarise(Write, frozen=True, kw_only=True, tag="summarise"):
    """Keep a summary of a session or topic (its name), or of the user (None). Answer: summary id.

    Refused with StaleGenerationError: work that was begun in another generation than `generation`
    (None: any), or when another summary than `follows` was the newest (None: any); sources that
    have changed (`stamps`, of the text of each) or may not be told any more. `covers` is how far
    it had read."""

    text: str
    session: str | None
    topic: str | None = None
    sources: tuple[str, ...]
    from_at: float
    to_at: float
    vector: bytes | None = None
    generation: int | None = None
    follows: str | None = None
    stamps: tuple[int, ...] = ()
    covers: int = 0


class SetVectors(Write, frozen=True, kw_only=True, tag="set_vectors"):
    """Replace all vectors by those of another embedder (`embedder`, `dim`). Answer: bool."""

    ids: tuple[str, ...]
    vectors: bytes


# -- reads -----------------------------------------------------------------------------


class Read(Command, frozen=True, kw_only=True):
    """A look at one user; changes nothing. `now` is the reader's time in seconds."""

    now: float


class Moments(Read, frozen=True, kw_only=True):
    """A read that can look from another moment (see visible.Moment)."""

    as_of: float | None = None
    valid_at: float | None = None
    archived: bool = False
    retired: bool = False
    types: tuple[str, ...] = ("memory", "message", "summary")
    filters: dict[str, Any] | None = None


class Search(Moments, frozen=True, kw_only=True, tag="search", gc=False):
    """Answer: list of `Hit`. `vector` is float32 bytes made by `embedder`; `touch` records the
    reading of the hits; `times` are those that the question names, as (from, to) in seconds."""

    text: str
    vector: bytes | None = None
    embedder: str | None = None
    limit: int = 10
    touch: bool = True
    times: tuple[tuple[float, float], ...] = ()

    def with_vector(self, vector: bytes, embedder: str) -> Search:
        """Return the same search with its question's vector."""
        return msgspec.structs.replace(self, vector=vector, embedder=embedder)


class Why(Read, frozen=True, kw_only=True, tag="why"):
    """Answer: `Explanation` of what becomes of an item in `search`; records no reading."""

    search: Search
    item_id: str


class Similar(Read, frozen=True, kw_only=True, tag="similar"):
    """Answer: for each vector, the nearest active memories as a list of `Known`."""

    vectors: tuple[bytes, ...]
    slots: tuple[str | None, ...]
    limit: int = 10


class Get(Read, frozen=True, kw_only=True, tag="get"):
    """Answer: `Item` or None. `node_id` may also be a message's external id."""

    node_id: str


class ListItems(Moments, frozen=True, kw_only=True, tag="list"):
    """Answer: `Page`, in order of recording; `after` is the cursor of the page before."""

    limit: int = 100
    after: str | None = None


class History(Read, frozen=True, kw_only=True, tag="history"):
    """Answer: list of `Item`, what a memory replaced and what replaced it, oldest first."""

    memory_id: str


class Entities(Read, frozen=True, kw_only=True, tag="entities"):
    """Answer: list of `EntityView`, most mentioned first. `name` filters by exact name."""

    name: str | None = None
    limit: int = 100


class Neighbors(Read, frozen=True, kw_only=True, tag="neighbors"):
    """Answer: `Neighborhood` of an entity by name ("user" for the owner), or None."""

    name: str
    as_of: float | None = None
    valid_at: float | None = None
    retired: bool = False
    limit: int = 100


class Stats(Read, frozen=True, kw_only=True, tag="stats"):
    """Answer: `UserStats`."""


class Turns(Read, frozen=True, kw_only=True, tag="turns"):
    """What extraction needs. Answer: `TurnBatch` of at most `limit` pending turns."""

    limit: int = 32
    history: int = 10


class DueSummaries(Read, frozen=True, kw_only=True, tag="due_summaries"):
    """What is to be summarised now, after the first `start` subjects that are due. Answer:
    `Materials` of the next."""

    policy: SummaryPolicy = SummaryPolicy()
    start: int = 0


class Talk(Read, frozen=True, kw_only=True, tag="talk"):
    """What was said in a period. Answer: `Material`. The topic of `search` is looked up by name;
    without one of that name the search is made. None asks for all topics."""

    period: Period
    search: Search | None = None
    max_tokens: int = 200


class Texts(Read, frozen=True, kw_only=True, tag="texts"):
    """Answer: `TextPage` of the texts that have (or should have) vectors, for re-embedding."""


class Digest(Read, frozen=True, kw_only=True, tag="digest"):
    """Answer: the state digest (hex), after pending touches are journaled."""


class Check(Read, frozen=True, kw_only=True, tag="check"):
    """Answer: list of broken invariants of this user."""


class Forget(Command, frozen=True, kw_only=True, tag="forget"):
    """Erase a user for good. Answer: `Erased`."""


# -- of a whole shard ------------------------------------------------------------------


class ListUsers(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="c", tag="users"):
    """Answer: list of (world, user id) that this shard owns, sorted. With `partial`, without
    those of partitions that are damaged or gone, which otherwise fail the command."""

    world: str | None = None
    partial: bool = False


class ListPending(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="c", tag="pending"):
    """Answer: list of `PendingUser`; with `quarantined`, those in quarantine instead. With
    `partial`, without those of partitions that are damaged or gone."""

    world: str | None = None
    quarantined: bool = False
    limit: int = 1000
    partial: bool = False


class Slot(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="c", tag="slot"):
    """Pin, rewind or unpin a world's users in this shard, or erase those that the operation
    imported. Idempotent per `operation`. Answer: number of users."""

    action: str  # "pin", "rewind", "unpin", "unfork"
    world: str
    tag: str
    operation: str


class ExportSlot(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="c", tag="export"):
    """Answer: list of encoded user images of a pinned world in this shard."""

    world: str
    tag: str


class ImportUser(Command, frozen=True, kw_only=True, tag="import"):
    """Create a user of this key from an image. Idempotent per `operation`. Answer: bool."""

    image: bytes
    operation: str


class Scrub(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="c", tag="scrub"):
    """Finish an erasure whose rows are gone: remove the files `name`*, leave no copy in the
    partition. Answer: bool, False from a shard that does not own the partition."""

    partition: int
    name: str


class CheckShard(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="c", tag="check_shard"):
    """Answer: list of problems in this shard's files."""


class Flush(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="c", tag="flush"):
    """Journal pending touches; with `snapshot`, also snapshot users with a long tail. Answer:
    `ShardStats`."""

    snapshot: bool = False


UserCommand: TypeAlias = (
    AddTurns
    | Settle
    | FailTurn
    | Requeue
    | Remember
    | Update
    | Retire
    | Restore
    | Relate
    | Summarise
    | SetVectors
    | Search
    | Why
    | Similar
    | Get
    | ListItems
    | History
    | Entities
    | Neighbors
    | Stats
    | Turns
    | DueSummaries
    | Talk
    | Texts
    | Digest
    | Check
    | Forget
    | ImportUser
)
ShardCommand: TypeAlias = ListUsers | ListPending | Slot | ExportSlot | Scrub | CheckShard | Flush
AnyCommand: TypeAlias = UserCommand | ShardCommand


# -- answers ---------------------------------------------------------------------------


Answer: TypeAlias = (
    Added
    | Settled
    | Kept
    | Item
    | list[Hit]
    | Explanation
    | list[list[Known]]
    | Page
    | list[Item]
    | list[EntityView]
    | Neighborhood
    | UserStats
    | TurnBatch
    | Materials
    | Material
    | TextPage
    | list[PendingUser]
    | Erased
    | ShardStats
    | list[tuple[str, str]]
    | list[bytes]
    | list[str]
    | str
    | int
    | bool
    | None
)

# The type of each command's answer, for decoding what came over the wire.
ANSWERS: dict[type[Any], Any] = {
    AddTurns: Added,
    Settle: Settled,
    FailTurn: Settled,
    Requeue: Added,
    Remember: Kept,
    Update: Item,
    Retire: bool,
    Restore: Item,
    Relate: str | None,
    Summarise: str,
    SetVectors: bool,
    Search: list[Hit],
    Why: Explanation,
    Similar: list[list[Known]],
    Get: Item | None,
    ListItems: Page,
    History: list[Item],
    Entities: list[EntityView],
    Neighbors: Neighborhood | None,
    Stats: UserStats,
    Turns: TurnBatch,
    DueSummaries: Materials,
    Talk: Material,
    Texts: TextPage,
    Digest: str,
    Check: list[str],
    Forget: Erased,
    ListUsers: list[tuple[str, str]],
    ListPending: list[PendingUser],
    Slot: int,
    ExportSlot: list[bytes],
    ImportUser: bool,
    Scrub: bool,
    CheckShard: list[str],
    Flush: ShardStats,
}


class Reply(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """The answer to one command on the wire: the encoded value, or an error."""

    value: msgspec.Raw = msgspec.Raw(b"\xc0")
    error: WireError | None = None

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
    ImagePage as ImagePage,
    Knower as Knower,
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
from reverie.actors.bases import Command as Command, Read as Read, Write as Write
from reverie.actors.graph_pages import Graph as Graph
from reverie.actors.kept import Answered as Answered, KeepAnswer as KeepAnswer, Mark as Mark
from reverie.actors.limits import (
    Audit as Audit,
    DuePage as DuePage,
    DueUsers as DueUsers,
    GetProfile as GetProfile,
    ModelSpent as ModelSpent,
    Part as Part,
    Parted as Parted,
    SetProfile as SetProfile,
    Tend as Tend,
    Tended as Tended,
)
from reverie.actors.nearest import Near as Near, Nearest as Nearest
from reverie.actors.shard_commands import (
    CheckShard as CheckShard,
    ExportSlot as ExportSlot,
    Flush as Flush,
    ListPending as ListPending,
    ListUsers as ListUsers,
    Positions as Positions,
    Scrub as Scrub,
    Slot as Slot,
)
from reverie.actors.ties import (
    MoveRelationship as MoveRelationship,
    Moves as Moves,
    Reflect as Reflect,
    Relationships as Relationships,
    Towards as Towards,
    Untie as Untie,
)
from reverie.actors.whole import Whole as Whole, WholeUser as WholeUser
from reverie.memory_graph.audit import AuditPage
from reverie.memory_graph.diff import MAX_SHOWN, UserDiff
from reverie.memory_graph.drafts import (
    Kept,
    Known,
    MemoryDraft,
    RelationDraft,
    TurnDraft,
    TurnOutcome,
)
from reverie.memory_graph.errors import WireError
from reverie.memory_graph.material import Material
from reverie.memory_graph.nodes import Metadata, Status
from reverie.memory_graph.profile import Profile
from reverie.memory_graph.projection import GraphPage as GraphPage
from reverie.memory_graph.relationships import Relationship, RelationshipMove, Untied
from reverie.memory_graph.summaries import SummaryPolicy
from reverie.memory_graph.talk import Period
from reverie.memory_graph.views import EntityView, Hit, Item
from reverie.memory_graph.why import Explanation


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
    """Keep a memory verbatim, replacing `supersedes`; with `again` also one that is known already.
    Answer: `Kept`."""

    draft: MemoryDraft
    supersedes: tuple[str, ...] = ()
    again: bool = False


class Witness(Write, frozen=True, kw_only=True, tag="witness"):
    """Keep what its owner, a user or a group, saw or was told of an event (`draft.event`), by the
    rules of hearsay.py: delivered again, it has no effect. `is_back`: the owner is among those who
    told it on. `said`: a hash of what the request says, which may hold while the draft that comes
    of it does not. Answer: `Kept`."""

    draft: MemoryDraft
    is_back: bool = False
    said: str = ""


class Membership(Write, frozen=True, kw_only=True, tag="membership"):
    """Note, in the graph of a group, that user `other` joins or leaves it; in that of a user, that
    the user does so with group `other`. `anew`: who joins is another than had this id before. See
    groups.py. Answer: bool, False if it was so already."""

    other: str
    joins: bool
    history: bool = False
    forget: bool = False
    anew: bool = False


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
    it had read. A `gist` is of memories that have faded; one of an `order` above 1 an insight about
    the entity `focus` (a node id) or, without one, about the user."""

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
    gist: bool = False
    order: int = 1
    focus: str | None = None


class SetVectors(Write, frozen=True, kw_only=True, tag="set_vectors"):
    """Replace all vectors by those of another embedder (`embedder`, `dim`). Answer: bool."""

    ids: tuple[str, ...]
    vectors: bytes


# -- reads -----------------------------------------------------------------------------


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
    reading of the hits; `times` are those that the question names, as (from, to) in seconds. With
    `member`, asked of a group: only memories that this member knows answer (see groups.py)."""

    text: str
    vector: bytes | None = None
    embedder: str | None = None
    limit: int = 10
    touch: bool = True
    times: tuple[tuple[float, float], ...] = ()
    member: str | None = None

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
    """Answer: `Item` or None. `node_id` may also be a message's external id. With `member`, asked
    of a group: None unless that member knows it."""

    node_id: str
    member: str | None = None


class Tale(Read, frozen=True, kw_only=True, tag="tale"):
    """Answer: `MemoryDraft` of a live memory, as its holder can tell it on; None when there is no
    such one. `member` as in `Get`."""

    node_id: str
    member: str | None = None


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


class MemberOf(Read, frozen=True, kw_only=True, tag="member_of"):
    """Answer: list of the names of the groups that a user recalls from."""


class Members(Read, frozen=True, kw_only=True, tag="members"):
    """Answer: list of the ids of the users that are members of a group now."""


class Happened(Read, frozen=True, kw_only=True, tag="happened"):
    """Answer: how often exactly the event of this id is known to have happened."""

    event: str


class Delivered(Read, frozen=True, kw_only=True, tag="delivered"):
    """Answer: the texts in which the owner saw the event of this id; with `is_request`, the ids of
    the events that it saw whose ids begin so."""

    event: str
    is_request: bool = False


class Knows(Read, frozen=True, kw_only=True, tag="knows"):
    """Answer: list of `Knower` of an event: the owner, or the members of the group."""

    event: str


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
    """Erase a user for good, once for each `mark`. Answer: `Erased`."""

    mark: Mark | None = None


class Compare(Read, frozen=True, kw_only=True, tag="compare"):
    """Answer: `UserDiff` between the checkpoint `before` and the checkpoint `after` (None: now),
    with up to `limit` differences of each kind."""

    before: str
    after: str | None = None
    limit: int = MAX_SHOWN


class ImportUser(Command, frozen=True, kw_only=True, tag="import"):
    """Create a user of this key from an image. Idempotent per `operation`. With a `digest`, only if
    its state is sound and has it (else WorldFileError). Answer: bool."""

    image: bytes
    operation: str
    digest: str = ""


UserCommand: TypeAlias = (
    AddTurns
    | Settle
    | FailTurn
    | Requeue
    | Remember
    | Witness
    | Membership
    | Update
    | Retire
    | Restore
    | Relate
    | MoveRelationship
    | Untie
    | Reflect
    | Summarise
    | SetProfile
    | Tend
    | Part
    | ModelSpent
    | GetProfile
    | Audit
    | SetVectors
    | Search
    | Why
    | Similar
    | Nearest
    | Get
    | Tale
    | ListItems
    | History
    | Entities
    | Neighbors
    | Graph
    | Relationships
    | Towards
    | Moves
    | MemberOf
    | Members
    | Happened
    | Delivered
    | Knows
    | Stats
    | Turns
    | DueSummaries
    | Talk
    | Texts
    | Whole
    | Digest
    | Check
    | Compare
    | Forget
    | Answered
    | KeepAnswer
    | ImportUser
)
ShardCommand: TypeAlias = (
    DueUsers | ListUsers | ListPending | Slot | ExportSlot | Positions | Scrub | CheckShard | Flush
)
AnyCommand: TypeAlias = UserCommand | ShardCommand


# -- answers ---------------------------------------------------------------------------


Answer: TypeAlias = (
    Tended
    | DuePage
    | Parted
    | Profile
    | AuditPage
    | Added
    | Settled
    | Kept
    | Item
    | list[Hit]
    | list[Knower]
    | MemoryDraft
    | Explanation
    | list[list[Known]]
    | Page
    | list[Item]
    | list[EntityView]
    | Neighborhood
    | GraphPage
    | dict[str, float]
    | Untied
    | list[Relationship]
    | list[RelationshipMove]
    | UserStats
    | TurnBatch
    | Materials
    | Material
    | TextPage
    | WholeUser
    | list[PendingUser]
    | Erased
    | ShardStats
    | list[tuple[str, str]]
    | ImagePage
    | list[tuple[str, int, int]]
    | UserDiff
    | list[str]
    | str
    | bytes
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
    Witness: Kept,
    Membership: bool,
    Update: Item,
    Retire: bool,
    Restore: Item,
    Relate: str | None,
    MoveRelationship: dict[str, float],
    Untie: Untied,
    Reflect: bool,
    Summarise: str,
    SetProfile: bool,
    Tend: Tended,
    Part: Parted,
    ModelSpent: bool,
    GetProfile: Profile | None,
    Audit: AuditPage,
    DueUsers: DuePage,
    SetVectors: bool,
    Search: list[Hit],
    Why: Explanation,
    Similar: list[list[Known]],
    Nearest: list[Near],
    Get: Item | None,
    Tale: MemoryDraft | None,
    ListItems: Page,
    History: list[Item],
    Entities: list[EntityView],
    Neighbors: Neighborhood | None,
    Graph: GraphPage,
    Relationships: list[Relationship],
    Towards: dict[str, float],
    Moves: list[RelationshipMove],
    MemberOf: list[str],
    Members: list[str],
    Happened: int,
    Delivered: list[str],
    Knows: list[Knower],
    Stats: UserStats,
    Turns: TurnBatch,
    DueSummaries: Materials,
    Talk: Material,
    Texts: TextPage,
    Whole: WholeUser,
    Digest: str,
    Check: list[str],
    Forget: Erased,
    Answered: bytes | None,
    KeepAnswer: bool,
    ListUsers: list[tuple[str, str]],
    ListPending: list[PendingUser],
    Slot: int,
    ExportSlot: ImagePage,
    Positions: list[tuple[str, int, int]],
    Compare: UserDiff,
    ImportUser: bool,
    Scrub: bool,
    CheckShard: list[str],
    Flush: ShardStats,
}


class Reply(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """The answer to one command on the wire: the encoded value, or an error."""

    value: msgspec.Raw = msgspec.Raw(b"\xc0")
    error: WireError | None = None

"""What the graph holds: one small struct per kind of node, and one per edge.

Times are seconds on the runtime's clock. "Recorded" is when the graph learned something, "valid"
is when it holds in the (game) world; `None` means open. Structs are mutable because the graph
owns them; nothing outside `memory_graph` keeps a reference.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

from reverie.memory_graph.profile import Profile

MemoryKind: TypeAlias = Literal["fact", "preference", "event"]
Status: TypeAlias = Literal["active", "superseded", "expired", "archived", "quarantined"]
Provenance: TypeAlias = Literal["witnessed", "told", "inferred"]
TurnStatus: TypeAlias = Literal["pending", "extracted", "skipped", "quarantined"]
Metadata: TypeAlias = dict[str, Any]

MEMORY_KINDS: tuple[MemoryKind, ...] = ("fact", "preference", "event")

# Edge kinds; a typed relation between entities is an edge of kind RELATION.
PARTICIPATED_IN = "PARTICIPATED_IN"  # user or speaker entity -> session
IN_SESSION = "IN_SESSION"  # message -> session
SENT_BY = "SENT_BY"  # message -> user or speaker entity
PREVIOUS = "PREVIOUS"  # message -> the message before it in its session
CONTAINS_ENTITY = "CONTAINS_ENTITY"  # message, memory or summary -> entity
RELATED_TO = "RELATED_TO"  # entity -> entity (co-occurrence; stored once, smaller id first)
RELATION = "RELATION"  # entity or user -> entity or user, with a predicate
DERIVED_FROM = "DERIVED_FROM"  # memory or summary -> message (or memory)
SUMMARIZES = "SUMMARIZES"  # summary -> session, topic or user
SUPERSEDES = "SUPERSEDES"  # new memory -> the memory it replaced
IN_TOPIC = "IN_TOPIC"  # memory -> topic

USER_NODE = "u"  # the id of the one User node of each graph


class _Node(msgspec.Struct, gc=False, omit_defaults=True, tag_field="n"):
    """Base of the node structs; `n` tags the kind when encoded."""


class Stay(msgspec.Struct, frozen=True, array_like=True, gc=False, omit_defaults=True):
    """One stay of a member in a group, as the group's graph keeps it.

    Attributes:
        since: when it began, seconds.
        after: number of the newest memory that the group had then. Numbers say what came after,
            whatever the clock did.
        until: when it ended; None while it lasts.
        upto: number of the newest memory that the group had then.
        history: what came before counts as known too.
    """

    since: float
    after: int
    until: float | None = None
    upto: int | None = None
    history: bool = False


class User(_Node, gc=False, tag="user"):
    """The owner of the graph; always node `u`.

    Attributes:
        group: name of the group whose graph this is; None for a user.
        groups: of a user: group -> whether it is a member now. One that it left stays here, for
            what was known then.
        members: of a group: user id -> its stays, oldest first.
        profile: the limits; None has none.
        model_spent_at: when the budget of model calls was first found spent.
        reflected: number of the newest memory that the last reflection has read.
        foci: entities about which an insight is still to be made by it.
    """

    id: str = USER_NODE
    created_at: float = 0.0
    group: str | None = None
    groups: dict[str, bool] = {}
    members: dict[str, tuple[Stay, ...]] = {}
    profile: Profile | None = None
    model_spent_at: float | None = None
    reflected: int = 0
    foci: tuple[str, ...] = ()


class Session(_Node, gc=False, tag="session"):
    """One conversation; `name` is the caller's session id."""

    id: str
    name: str
    started_at: float
    last_at: float
    messages: int = 0
    last_message: str | None = None  # node id, the head of the PREVIOUS chain


class Message(_Node, gc=False, tag="message"):
    """One turn, verbatim. `external_id` is the caller's own id for it."""

    id: str
    session: str  # node id of the session
    speaker: str  # as the caller named it; "user" for the owner
    role: str
    text: str
    said_at: float
    recorded_at: float
    external_id: str | None = None
    metadata: Metadata | None = None
    status: TurnStatus = "pending"


class Memory(_Node, gc=False, tag="memory"):
    """A kept statement, in its own language, names verbatim.

    One that is `faded` was archived because of its weight or a budget: nobody asked that it be
    hidden, so summaries may go on telling what it says. `gist` is the summary that took it in then.
    """

    id: str
    text: str
    kind: MemoryKind
    recorded_at: float
    valid_from: float | None = None
    valid_to: float | None = None
    retired_at: float | None = None  # recorded time at which it stopped being believed
    end_learned: bool = False  # valid_to became known by its retirement, not before
    status: Status = "active"
    retired_why: str = ""
    confidence: float = 1.0
    importance: float = 0.5
    slot: str | None = None  # what it is about ("lives_in"), for conflict decisions
    provenance: Provenance = "witnessed"
    told_by: str | None = None
    event: str | None = None  # id of what happened in the world, the same for all who know of it
    heard: tuple[str, ...] = ()  # who told it on, from the first witness to who told the owner
    backed: tuple[str, ...] = ()  # who else told the same, from a source of their own
    sentiment: float = 0.0  # -1 to 1
    ttl_s: float | None = None
    pinned: bool = False
    tags: tuple[str, ...] = ()
    metadata: Metadata | None = None
    last_access: float | None = None
    hits: int = 0
    away_at: float | None = None  # recorded time at which it was put away
    faded: bool = False
    gist: str | None = None


class Entity(_Node, gc=False, tag="entity"):
    """A person, place or thing. `name` is canonical; `aliases` are other exact names."""

    id: str
    name: str
    type: str
    first_seen: float
    last_seen: float
    aliases: tuple[str, ...] = ()
    mentions: int = 0


class Summary(_Node, gc=False, tag="summary"):
    """A summary of a session, a topic or the user. `of` is the node id of what it summarises.

    `covers` is how far it had read: the session's messages, or the highest number of a memory. A
    `stale` one is to be made anew, though nothing it shows was put away. A `gist` is of memories
    that have faded: any number of them stand beside each other, and none replaces another.
    """

    id: str
    text: str
    of: str
    recorded_at: float
    from_at: float
    to_at: float
    retired_at: float | None = None
    covers: int = 0
    stale: bool = False
    gist: bool = False
    order: int = 1  # 2: an insight about the entity `focus`; 3: one made of several of these
    focus: str | None = None

    @property
    def subject(self) -> str:
        """What only one summary at a time answers of."""
        return subject_of(self.of, self.order)


def subject_of(node_id: str, order: int) -> str:
    """Return the subject of the summaries of a node that are of an order."""
    return node_id if order <= 2 else f"{node_id}#{order}"  # noqa: PLR2004 (2 is of an entity)


class Topic(_Node, gc=False, tag="topic"):
    """A named group of memories."""

    id: str
    name: str
    created_at: float


Node: TypeAlias = User | Session | Message | Memory | Entity | Summary | Topic


class Edge(msgspec.Struct, gc=False, array_like=True, tag="e"):
    """A weighted edge. `weight` is as of time `at`; `decay.weight_at` gives it at another time."""

    kind: str
    weight: float
    at: float
    role: str | None = None  # PARTICIPATED_IN only


class Relation(msgspec.Struct, gc=False, array_like=True, tag="r"):
    """A typed edge between two entities (or the user): Ana -[works_at]-> Oslo Lab.

    Two stints at one job are two relations. `valid_*` is world time, `recorded_at` and
    `retired_at` are when the graph learned and stopped believing it.
    """

    id: str
    predicate: str
    weight: float
    at: float
    recorded_at: float
    valid_from: float | None = None
    valid_to: float | None = None
    retired_at: float | None = None
    confidence: float = 1.0
    source: str | None = None  # node id of the memory or message it came from
    kind: str = RELATION
    end_learned: bool = False  # valid_to became known by its retirement, not before


# -- relationships of the owner to others; what they mean is in relationships.py --------


class Dimension(msgspec.Struct, frozen=True, omit_defaults=True):
    """One side of a relationship, as trust or debt: within which range it moves, and where to it
    returns by itself.

    Attributes:
        low: least value; None is unbounded.
        high: greatest value; None is unbounded.
        rest: the value of a stranger, and towards which every other one decays.
        half_life_s: seconds in which the distance to the rest value halves; None never decays.
    """

    low: float | None = -1.0
    high: float | None = 1.0
    rest: float = 0.0
    half_life_s: float | None = None


class Standing(msgspec.Struct, gc=False, array_like=True):
    """How the owner stands to another in one dimension: `value` is as of time `at`."""

    value: float
    at: float
    dimension: Dimension


class Move(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A change of a relationship: `was` is the decayed value before, `value` the one after. `rest`
    and `half_life_s` are those by which it decays from then on. `source` is the memory or message
    that caused it."""

    at: float
    dimension: str
    by: float
    was: float
    value: float
    rest: float = 0.0
    half_life_s: float | None = None
    reason: str = ""
    source: str | None = None


class Bond(msgspec.Struct):
    """The owner's relationship to one other: the dimensions that ever moved, and the last moves in
    the order of their times. `dropped` counts older moves, which are not kept."""

    dimensions: dict[str, Standing] = {}
    moves: list[Move] = []
    dropped: int = 0

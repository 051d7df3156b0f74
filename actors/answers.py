"""What a shard answers: plain structs, which travel as MessagePack on Ray."""

from __future__ import annotations

import msgspec

from reverie.memory_graph.drafts import Kept
from reverie.memory_graph.material import Material
from reverie.memory_graph.relationships import Relationship
from reverie.memory_graph.views import EntityView, Item, RelationView


class Added(msgspec.Struct, frozen=True):
    """Node ids of stored turns, in the order given, and the user's generation."""

    ids: list[str]
    generation: int


class Settled(msgspec.Struct, frozen=True):
    """What became of the drafts of an outcome, and how many turns are still pending."""

    kept: list[Kept]
    pending: int


class Page(msgspec.Struct, frozen=True):
    """Part of a listing. `total` counts all that match; `cursor` is None on the last page."""

    items: list[Item]
    total: int
    cursor: str | None


class Neighborhood(msgspec.Struct, frozen=True):
    """An entity, its relations, the entities seen with it (name, decayed weight), the newest texts
    that mention it, and how the owner stands to it (of the owner: to everybody)."""

    entity: EntityView | None
    relations: list[RelationView]
    related: list[tuple[str, float]]
    mentioned_in: list[Item]
    relationships: list[Relationship] = []


class Knower(msgspec.Struct, frozen=True, omit_defaults=True):
    """Somebody who knows of an event.

    Attributes:
        user_id: who.
        memory_id: of the memory that says so; `User.get` takes it.
        heard: who told it on, from the first witness to who told this one; () for who saw it.
        confidence: 0 to 1.
        group: the group that it is known by; None for a memory of one's own.
    """

    user_id: str
    memory_id: str
    heard: tuple[str, ...] = ()
    confidence: float = 1.0
    group: str | None = None


class UserStats(msgspec.Struct, frozen=True):
    """Counts of one user. `bytes` is the estimate that the byte budget of a shard uses. Of the
    active memories, `pinned` are pinned, and `active_bytes` is what `Profile.bytes` counts;
    `is_over_budget` says that pinned memories alone exceed a budget of the profile: they stay."""

    generation: int = 0
    seq: int = 0
    messages: int = 0
    memories: int = 0
    active: int = 0
    entities: int = 0
    relations: int = 0
    summaries: int = 0
    sessions: int = 0
    pending: int = 0
    quarantined: int = 0
    vectors: int = 0
    embedder: str | None = None
    bytes: int = 0
    pinned: int = 0
    active_bytes: int = 0
    is_over_budget: bool = False


class TurnView(msgspec.Struct, frozen=True):
    """A turn for extraction; `speaker` is "user" for the owner."""

    id: str
    session: str
    speaker: str
    role: str
    text: str
    said_at: float


class ModelLimits(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a user's profile says of calls of the language model, and whether it is noted that the
    budget was found spent."""

    calls: int | None = None
    prompt_tokens: int | None = None
    is_spent: bool = False


class TurnBatch(msgspec.Struct, frozen=True):
    """Pending turns of one user in order, and the turns before the first of them. The summary of
    the user, if there is one, comes first in `history`: speaker "summary", role "system"."""

    generation: int
    turns: list[TurnView]
    history: list[TurnView]
    limits: ModelLimits = ModelLimits()


class Materials(msgspec.Struct, frozen=True):
    """What the next summary is made of, after `passed` subjects with too little to tell; None with
    no more (`is_last`), or when enough were tried at once. And the user's generation. Before all
    that, `reflect` says that a reflection is due, which is to be begun first."""

    generation: int
    found: Material | None = None
    passed: int = 0
    is_last: bool = False
    reflect: bool = False


class TextPage(msgspec.Struct, frozen=True):
    """All texts of a user with their node ids."""

    ids: list[str]
    texts: list[str]


class PendingUser(msgspec.Struct, frozen=True):
    """A user with turns that wait for extraction, or sit in quarantine."""

    world: str
    user_id: str
    turn_ids: list[str]
    errors: list[str] = []


class Erased(msgspec.Struct, frozen=True):
    """What an erasure removed and what a search of the files found afterwards.

    `rows` counts erased rows per table; `needles` is how many byte strings of the user were
    searched for, in `files` files of `bytes` bytes; `found` are those still there that no other
    user's rows explain, as "file: count".
    """

    existed: bool
    rows: dict[str, int]
    needles: int
    files: int
    bytes: int
    found: list[str]
    shared: int = 0


class ShardStats(msgspec.Struct, frozen=True):
    """What one shard holds in memory."""

    resident_users: int
    resident_bytes: int
    partitions: list[int]


class ImagePage(msgspec.Struct, frozen=True):
    """Encoded images of users, with the digests of their states if they were asked for. `partition`
    and `after` are where the next page begins; a negative partition says that this is the last."""

    images: list[bytes]
    digests: list[str]
    partition: int
    after: str

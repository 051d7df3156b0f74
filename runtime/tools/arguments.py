"""What each tool takes: one struct a tool. Their types are the schema that a model is given and the
check of what it sends; descriptions are for the model."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta

MAX_HITS = 50
MAX_LISTED = 200
MAX_NAMED = 256  # entities, relations or names of one call
MAX_OBSERVATIONS = 1_000  # of one entity in one call
MAX_TAGS = 64

Kind: TypeAlias = Literal["fact", "preference", "event"]
Share: TypeAlias = Annotated[float, Meta(ge=0.0, le=1.0)]
_Tags: TypeAlias = Annotated[list[str], Meta(max_length=MAX_TAGS)]


class Arguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of all; an argument that a tool does not have is an error."""


class SearchMemory(Arguments, frozen=True, kw_only=True):
    """See the table."""

    query: Annotated[str, Meta(description="What to look for: a question or words, any language.")]
    limit: (
        Annotated[int, Meta(ge=1, le=MAX_HITS, description="At most this many; 10 by default.")]
        | None
    ) = None
    kind: Annotated[Kind | None, Meta(description="Only this kind of memory.")] = None
    tags: Annotated[_Tags | None, Meta(description="Only what has all of these tags.")] = None
    session: Annotated[str | None, Meta(description="Only what was said in this session.")] = None
    include_past: Annotated[
        bool | None, Meta(description="Also what was replaced or is over; false by default.")
    ] = None


class AddMemory(Arguments, frozen=True, kw_only=True):
    """See the table."""

    text: Annotated[str, Meta(description="What to keep, one statement, in its own language.")]
    kind: Annotated[Kind | None, Meta(description="'fact' by default.")] = None
    importance: Annotated[Share | None, Meta(description="0 to 1; 0.7 by default.")] = None
    tags: Annotated[_Tags | None, Meta(description="Words to find it by.")] = None
    entities: Annotated[
        list[str] | None, Meta(description="Names of the people, places and things in it.")
    ] = None
    extract: Annotated[
        bool | None,
        Meta(
            description="True: it is a turn of a conversation; memories are extracted from it. "
            "False, the default: it is kept word for word."
        ),
    ] = None
    session: Annotated[
        str | None, Meta(description="Of the conversation, with extract; 'default' by default.")
    ] = None


class ConversationSummary(Arguments, frozen=True, kw_only=True):
    """See the table."""

    topic: Annotated[str | None, Meta(description="A topic or a name; everything if null.")] = None
    last_n_days: Annotated[
        float | None, Meta(description="How far back from now; everything if null.")
    ] = None
    session: Annotated[str | None, Meta(description="Of this session only.")] = None
    max_tokens: (
        Annotated[int, Meta(ge=1, le=4_000, description="About how long; 200 by default.")] | None
    ) = None


class UpdateMemory(Arguments, frozen=True, kw_only=True):
    """See the table."""

    memory_id: Annotated[str, Meta(description="As answers show it, such as 'm12'.")]
    text: Annotated[
        str | None, Meta(description="The new text; the old one stays in the history.")
    ] = None
    importance: Annotated[Share | None, Meta(description="0 to 1; unchanged if null.")] = None
    tags: Annotated[_Tags | None, Meta(description="Replaces all tags.")] = None
    pinned: Annotated[bool | None, Meta(description="A pinned memory never fades.")] = None


class Forget(Arguments, frozen=True, kw_only=True):
    """See the table."""

    memory_id: Annotated[str | None, Meta(description="The memory to end, such as 'm12'.")] = None
    everything: Annotated[
        bool | None, Meta(description="Erase all memories of the user for good. Needs confirm.")
    ] = None
    confirm: Annotated[
        str | None, Meta(description="With everything: the id of the user, letter by letter.")
    ] = None


class Related(Arguments, frozen=True, kw_only=True):
    """See the table."""

    name: Annotated[
        str | None, Meta(description="Of a person, place or thing; the user itself if null.")
    ] = None
    limit: (
        Annotated[int, Meta(ge=1, le=MAX_LISTED, description="Of each kind; 20 by default.")] | None
    ) = None
    include_past: Annotated[
        bool | None, Meta(description="Also relations that are over; false by default.")
    ] = None


class ListMemories(Arguments, frozen=True, kw_only=True):
    """See the table."""

    limit: (
        Annotated[int, Meta(ge=1, le=MAX_LISTED, description="A page; 50 by default.")] | None
    ) = None
    cursor: Annotated[str | None, Meta(description="As the page before says; null begins.")] = None
    kind: Annotated[Kind | None, Meta(description="Only this kind of memory.")] = None
    tags: Annotated[_Tags | None, Meta(description="Only what has all of these tags.")] = None
    include_past: Annotated[
        bool | None, Meta(description="Also what was replaced or is over; false by default.")
    ] = None


class ListRelationships(Arguments, frozen=True, kw_only=True):
    """See the table."""

    other: Annotated[str | None, Meta(description="Towards whom; everybody if null.")] = None
    dimension: Annotated[
        str | None, Meta(description="Such as 'trust', 'fear' or 'debt'; all if null.")
    ] = None


# -- the names and shapes of the official server-memory ---------------------------------


class EntityArgument(Arguments, frozen=True, kw_only=True, rename="camel"):
    """An entity as server-memory shows it."""

    name: Annotated[str, Meta(description="The name of the entity.")]
    entity_type: Annotated[str, Meta(description="The type of the entity, in any words.")]
    observations: Annotated[
        list[str],
        Meta(max_length=MAX_OBSERVATIONS, description="What is known of it, a statement each."),
    ]


class RelationArgument(
    Arguments, frozen=True, kw_only=True, rename={"from_": "from", "relation_type": "relationType"}
):
    """A relation as server-memory shows it."""

    from_: Annotated[str, Meta(description="The name of the entity where it starts.")]
    to: Annotated[str, Meta(description="The name of the entity where it ends.")]
    relation_type: Annotated[str, Meta(description="What holds between them, in active voice.")]


class AddedObservations(Arguments, frozen=True, kw_only=True, rename="camel"):
    """Observations to add to an entity."""

    entity_name: Annotated[str, Meta(description="The name of the entity.")]
    contents: Annotated[
        list[str], Meta(max_length=MAX_OBSERVATIONS, description="What to add, a statement each.")
    ]


class DeletedObservations(Arguments, frozen=True, kw_only=True, rename="camel"):
    """Observations to delete from an entity."""

    entity_name: Annotated[str, Meta(description="The name of the entity.")]
    observations: Annotated[
        list[str], Meta(max_length=MAX_OBSERVATIONS, description="What to delete, word for word.")
    ]


class CreateEntities(Arguments, frozen=True, kw_only=True):
    """See the table."""

    entities: Annotated[list[EntityArgument], Meta(max_length=MAX_NAMED)]


class CreateRelations(Arguments, frozen=True, kw_only=True):
    """See the table; also of delete_relations."""

    relations: Annotated[list[RelationArgument], Meta(max_length=MAX_NAMED)]


class AddObservations(Arguments, frozen=True, kw_only=True):
    """See the table."""

    observations: Annotated[list[AddedObservations], Meta(max_length=MAX_NAMED)]


class DeleteEntities(Arguments, frozen=True, kw_only=True, rename="camel"):
    """See the table."""

    entity_names: Annotated[list[str], Meta(max_length=MAX_NAMED)]


class DeleteObservations(Arguments, frozen=True, kw_only=True):
    """See the table."""

    deletions: Annotated[list[DeletedObservations], Meta(max_length=MAX_NAMED)]


class ReadGraph(Arguments, frozen=True, kw_only=True):
    """See the table."""


class SearchNodes(Arguments, frozen=True, kw_only=True):
    """See the table."""

    query: Annotated[str, Meta(description="Found in a name, a type or an observation.")]


class OpenNodes(Arguments, frozen=True, kw_only=True):
    """See the table."""

    names: Annotated[list[str], Meta(max_length=MAX_NAMED, description="Names of entities.")]


# -- the names of OpenMemory that differ from ours --------------------------------------


class AddMemories(Arguments, frozen=True, kw_only=True):
    """See the table."""

    text: Annotated[str, Meta(description="What was said; memories are extracted from it.")]


class DeleteMemories(Arguments, frozen=True, kw_only=True):
    """See the table."""

    memory_ids: Annotated[list[str], Meta(max_length=MAX_NAMED)]


class DeleteAllMemories(Arguments, frozen=True, kw_only=True):
    """See the table."""

    confirm: Annotated[str | None, Meta(description="The id of the user, letter by letter.")] = None


# -- schemas ------------------------------------------------------------------------------

_NULLABLE = {"anyOf": [{"type": "string"}, {"type": "null"}]}


def schema(kind: type[Arguments], *, strict: bool, user: bool, required_user: bool = False) -> Any:
    """Return the JSON schema of the arguments of a tool, without references.

    Args:
        kind: the struct.
        strict: as OpenAI's strict mode wants it: every property is required, what may be left out
            is null instead. Otherwise only what must be given is required.
        user: whether there is a `user_id`.
        required_user: whether it must be given.
    """
    (found,), parts = msgspec.json.schema_components([kind], ref_template="{name}")
    made = _plain(parts[found["$ref"]], parts, strict=strict)
    if user:
        types: Any = {"type": "string"} if required_user else _NULLABLE
        made["properties"]["user_id"] = {"description": "Whose memory it is about.", **types}
        if strict or required_user:
            made["required"].append("user_id")
    return made


def _plain(part: Any, parts: dict[str, Any], *, strict: bool) -> Any:
    if isinstance(part, list):
        return [_plain(one, parts, strict=strict) for one in part]
    if not isinstance(part, dict):
        return part
    if "$ref" in part:
        return _plain(parts[part["$ref"]], parts, strict=strict)
    made = {
        key: {name: _plain(one, parts, strict=strict) for name, one in value.items()}
        if key == "properties"
        else _plain(value, parts, strict=strict)
        for key, value in part.items()
        if key not in {"title", "default"} and not (key == "description" and part.get("title"))
    }
    if made.get("type") == "object":
        properties = made.setdefault("properties", {})
        made["required"] = list(properties) if strict else list(made.get("required", ()))
        made["additionalProperties"] = False
    if "enum" in made and "type" not in made:
        made["type"] = "string"
    return made

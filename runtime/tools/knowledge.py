"""A knowledge graph in the shapes of the official server-memory, kept as memories of a user.

Every entity, observation and relation is one memory, so that it is searched, cited, forgotten and
carried along like any other:

- an entity: a memory "NAME (TYPE)", tag `mcp:entity`, metadata `mcp_name` and `mcp_type`;
- an observation: a memory of its text, tag `mcp:observation`, metadata `mcp_name`;
- a relation: a memory "FROM TYPE TO", tag `mcp:relation`, metadata `mcp_from`, `mcp_type` and
  `mcp_to`, from which a typed relation of reverie's graph comes, that ends when it does.

The metadata holds names and types as they were given; there, and only there, "Ann" and "ann" are
two. In reverie's graph each memory mentions its entities by their names as one line of plain text
(names that differ in case or white space are one entity), with the type where reverie has one of
that name and "thing" otherwise. The order is that of recording.
"""

from __future__ import annotations

import threading
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import msgspec

from reverie import door
from reverie.memory_graph.drafts import OWNER, EntityDraft, MemoryDraft, RelationDraft
from reverie.memory_graph.errors import InvalidTextError, UnknownMemoryError
from reverie.memory_graph.ids import MAX_ID_BYTES
from reverie.memory_graph.text import name_key, normalise
from reverie.memory_graph.views import Item
from reverie.models.protocol import ENTITY_TYPES
from reverie.runtime import Runtime
from reverie.user import User

ENTITY, OBSERVATION, RELATION = "mcp:entity", "mcp:observation", "mcp:relation"
NAME, TYPE, FROM, TO, TEXT = "mcp_name", "mcp_type", "mcp_from", "mcp_to", "mcp_text"
BLANK = "(blank)"  # the text of a memory whose own is white space; `mcp_text` then holds that
MAX_OF_TYPE_CHARS = 512
MAX_WRITTEN = 512  # memories of one call to the runtime
_PAGE = 10_000

_locks: WeakKeyDictionary[Runtime, threading.Lock] = WeakKeyDictionary()
_guard = threading.Lock()


class Entity(msgspec.Struct):
    """An entity. `observations` are (memory id, text) in their order; `memory_ids` are of what says
    that there is such an entity, the oldest first."""

    name: str
    type: str
    observations: list[tuple[str, str]] = []
    memory_ids: list[str] = []


class Relation(msgspec.Struct, frozen=True):
    """A relation; two of the same three fields are the same."""

    from_: str
    type: str
    to: str


class Graph(msgspec.Struct):
    """All of it, in order: entities by name, relations with their memory ids."""

    entities: dict[str, Entity] = {}
    relations: dict[Relation, list[str]] = {}


class Added(msgspec.Struct):
    """How much of what was given is new, and how much was there already."""

    entities: int = 0
    observations: int = 0
    relations: int = 0
    known: int = 0


class Knowledge:
    """The knowledge graph of one user. Changes are made one at a time in a process, which is the
    only one that has the data folder open.

    Every method may raise InputError (nothing was stored), StorageError, and UnavailableError.
    """

    def __init__(self, runtime: Runtime, user: User) -> None:
        self._rt = runtime
        self._user = user
        with _guard:
            self._lock = _locks.setdefault(runtime, threading.Lock())

    # -- reading -------------------------------------------------------------------------

    def read(self) -> Graph:
        """Return the whole graph, with what has faded, without what was deleted."""
        graph = Graph()
        waiting: list[tuple[str, str, str]] = []
        for item in self._items():
            data = item.metadata or {}
            if ENTITY in item.tags:
                found = Entity(str(data.get(NAME, "")), str(data.get(TYPE, "")))
                graph.entities.setdefault(found.name, found).memory_ids.append(item.id)
            elif RELATION in item.tags:
                ends = (str(data.get(key, "")) for key in (FROM, TYPE, TO))
                graph.relations.setdefault(Relation(*ends), []).append(item.id)
            else:
                text = str(data[TEXT]) if item.text == BLANK and TEXT in data else item.text
                waiting.append((str(data.get(NAME, "")), item.id, text))
        for name, memory_id, text in waiting:
            if name in graph.entities:
                graph.entities[name].observations.append((memory_id, text))
        return graph

    def asked(self, name: str) -> str:
        """Return a name that is looked for as the graph shows it: with the masks of the folder."""
        return self._user.masking.question(name)

    def _stored(self, text: str) -> str:
        """Return a text as it will be stored; other than `asked`, two that are new stay two."""
        return self._user.masking.text(text)

    def found(self, query: str) -> Graph:
        """Return the entities that hold a text in their name, type or observations, and the
        relations that begin or end at one of them."""
        graph, wanted = self.read(), normalise(self.asked(query))
        held = {
            name
            for name, entity in graph.entities.items()
            if any(
                wanted in normalise(text)
                for text in (name, entity.type, *(text for _, text in entity.observations))
            )
        }
        return _around(graph, held)

    def opened(self, names: Sequence[str]) -> Graph:
        """Return the entities of these names, and the relations that begin or end at one."""
        return _around(self.read(), set(map(self.asked, names)))

    # -- writing -------------------------------------------------------------------------

    def create_entities(self, given: Sequence[Entity]) -> list[Entity]:
        """Add entities with their observations; one whose name is there already is passed over.

        Returns:
            Those that are new.
        """
        with self._lock:
            known = set(self.read().entities)
            new: list[Entity] = []
            for entity in given:
                if (name := self._stored(entity.name)) not in known:
                    known.add(name)
                    new.append(entity)
            self._write([draft for entity in new for draft in entity_drafts(entity)])
            return new

    def create_relations(self, given: Sequence[Relation]) -> list[Relation]:
        """Add relations, and return those that are new.

        Raises:
            UnknownMemoryError: one of the ends is no entity; nothing was stored.
        """
        with self._lock:
            graph = self.read()
            types = {name: entity.type for name, entity in graph.entities.items()}
            new: dict[Relation, Relation] = {}
            for relation in given:
                shown = self._asked_relation(relation)
                for end in (shown.from_, shown.to):
                    _require(graph, end)
                if shown not in graph.relations:
                    new.setdefault(shown, relation)
            self._write([relation_draft(relation, types) for relation in new.values()])
            return list(new.values())

    def add_observations(self, given: Sequence[tuple[str, Sequence[str]]]) -> list[list[str]]:
        """Add observations to entities, and return for each those that are new.

        Raises:
            UnknownMemoryError: no such entity; nothing was stored.
        """
        with self._lock:
            graph = self.read()
            drafts: list[MemoryDraft] = []
            added: list[list[str]] = []
            for name, texts in given:
                entity = _require(graph, self.asked(name))
                known = {text for _, text in entity.observations}
                fresh = [t for t in dict.fromkeys(texts) if self._stored(t) not in known]
                entity.observations += [("", self._stored(text)) for text in fresh]
                drafts += [observation_draft(name, entity.type, text) for text in fresh]
                added.append(fresh)
            self._write(drafts)
            return added

    def delete_entities(self, names: Sequence[str]) -> int:
        """End entities with their observations and relations; unknown names are passed over.
        Returns how many there were."""
        with self._lock:
            graph = self.read()
            gone = {name for name in map(self.asked, names) if name in graph.entities}
            ids = [i for r, ids in graph.relations.items() if {r.from_, r.to} & gone for i in ids]
            for name in sorted(gone):
                entity = graph.entities[name]
                ids += [*(memory_id for memory_id, _ in entity.observations), *entity.memory_ids]
            self._end(ids)
            return len(gone)

    def delete_observations(self, given: Sequence[tuple[str, Sequence[str]]]) -> int:
        """End observations; unknown ones are passed over. Returns how many there were."""
        with self._lock:
            graph = self.read()
            ids = []
            for name, texts in given:
                entity = graph.entities.get(self.asked(name))
                gone = set(map(self.asked, texts))
                if entity is not None:
                    ids += [i for i, text in entity.observations if text in gone]
            return self._end(ids)

    def delete_relations(self, given: Sequence[Relation]) -> int:
        """End relations; unknown ones are passed over. Returns how many there were."""
        with self._lock:
            graph = self.read()
            asked = map(self._asked_relation, given)
            return self._end([i for relation in asked for i in graph.relations.get(relation, ())])

    def merge(self, given: Sequence[Entity | Relation], graph: Graph, added: Added) -> None:
        """Add what is not there yet of entities and relations, in their order; done again, it adds
        nothing. An observation that stands n times in an entity is there n times afterwards. The
        ends of relations need not be entities.

        Args:
            given: what to add; checked with `check` before.
            graph: what is there, as `read` gave it; what is added is added to it.
            added: counts it.
        """
        drafts: list[MemoryDraft] = []
        with self._lock:
            types = {name: entity.type for name, entity in graph.entities.items()}
            for one in given:
                if isinstance(one, Relation):
                    shown = Relation(*map(self._stored, (one.from_, one.type, one.to)))
                    if shown in graph.relations:
                        added.known += 1
                        continue
                    graph.relations[shown] = []
                    drafts.append(relation_draft(one, types))
                    added.relations += 1
                else:
                    drafts += self._merged(one, graph, added)
                    types.setdefault(one.name, one.type)
            self._write(drafts)
            if drafts and self._rt.masks.is_on:  # what is known of people has changed their names
                fresh = self.read()
                graph.entities, graph.relations = fresh.entities, fresh.relations

    def _merged(self, given: Entity, graph: Graph, added: Added) -> Iterator[MemoryDraft]:
        name = self._stored(given.name)
        known = graph.entities.get(name)
        if known is None:
            known = graph.entities[name] = Entity(name, given.type)
            added.entities += 1
            yield _entity_draft(given.name, given.type)
        else:
            added.known += 1
        there = Counter(text for _, text in known.observations)
        for _, text in given.observations:
            shown = self._stored(text)
            if there[shown] > 0:
                there[shown] -= 1
                added.known += 1
                continue
            known.observations.append(("", shown))
            added.observations += 1
            yield observation_draft(given.name, known.type, text)

    def check(self, given: Entity | Relation) -> None:
        """Raise the InputError that keeping it would raise; nothing is stored."""
        drafts = entity_drafts(given) if isinstance(given, Entity) else [relation_draft(given, {})]
        for draft in drafts:
            door.memory(draft, self._rt.config.max_text_bytes)

    # -- what both need --------------------------------------------------------------------

    def _items(self) -> Iterator[Item]:
        tags: dict[str, Any] = {"OR": [{"tags": tag} for tag in (ENTITY, OBSERVATION, RELATION)]}
        cursor: str | None = None
        while True:
            page = self._user.list(limit=_PAGE, cursor=cursor, filters=tags, include_archived=True)
            yield from page.items
            cursor = page.cursor
            if cursor is None:
                return

    def _asked_relation(self, given: Relation) -> Relation:
        return Relation(*map(self.asked, (given.from_, given.type, given.to)))

    def _write(self, drafts: Sequence[MemoryDraft]) -> None:
        most = self._rt.config.max_text_bytes
        for draft in drafts:  # all, before the first is stored
            door.memory(draft, most)
        key = self._user.key
        for start in range(0, len(drafts), MAX_WRITTEN):
            part = drafts[start : start + MAX_WRITTEN]
            self._rt.remember_many({key.user_id: part}, world=key.world, again=True)

    def _end(self, memory_ids: Sequence[str]) -> int:
        return sum(
            self._user.delete(i, reason="deleted by a tool") for i in dict.fromkeys(memory_ids)
        )


def _require(graph: Graph, name: str) -> Entity:
    if (found := graph.entities.get(name)) is None:
        msg = f"no entity of the name {name!r}; create_entities makes one"
        raise UnknownMemoryError(msg, name=name)
    return found


def _around(graph: Graph, names: set[str]) -> Graph:
    held = {name: entity for name, entity in graph.entities.items() if name in names}
    near = {r: i for r, i in graph.relations.items() if r.from_ in held or r.to in held}
    return Graph(held, near)


# -- drafts ----------------------------------------------------------------------------------


def entity_drafts(entity: Entity) -> list[MemoryDraft]:
    """Return the memories of an entity and its observations."""
    own = _entity_draft(entity.name, entity.type)
    texts = (text for _, text in entity.observations)
    return [own, *(observation_draft(entity.name, entity.type, text) for text in texts)]


def _entity_draft(name: str, type_: str) -> MemoryDraft:
    return MemoryDraft(
        f"{name} ({type_})",
        tags=(ENTITY,),
        entities=_mentioned((name, type_)),
        metadata={NAME: name, TYPE: type_},
    )


def observation_draft(name: str, type_: str, text: str) -> MemoryDraft:
    """Return the memory of an observation of an entity."""
    metadata = {NAME: name}
    if not text.strip():
        metadata[TEXT] = text
    return MemoryDraft(
        text if text.strip() else BLANK,
        importance=0.7,
        tags=(OBSERVATION,),
        entities=_mentioned((name, type_)),
        metadata=metadata,
    )


def relation_draft(given: Relation, types: dict[str, str]) -> MemoryDraft:
    """Return the memory of a relation; `types` are those of the entities that are known."""
    head, predicate, tail = map(_plain_name, (given.from_, given.type, given.to))
    relations = (RelationDraft(head, predicate, tail),) if head and predicate and tail else ()
    ends = [(name, types.get(name, "")) for name in (given.from_, given.to)]
    return MemoryDraft(
        f"{given.from_} {given.type} {given.to}",
        importance=0.7,
        tags=(RELATION,),
        entities=_mentioned(*ends),
        relations=relations,
        metadata={FROM: given.from_, TYPE: given.type, TO: given.to},
    )


def _mentioned(*named: tuple[str, str]) -> tuple[EntityDraft, ...]:
    plain = ((_plain_name(name), type_.casefold()) for name, type_ in named)
    return tuple(
        EntityDraft(name, type_ if type_ in ENTITY_TYPES else "thing")
        for name, type_ in plain
        if name
    )


def _plain_name(name: str) -> str:
    """Return a name that reverie's graph can hold: one line of at most 512 bytes; "" if nothing is
    left that can be seen, or if it would stand for the owner of the graph."""
    if len(name) > 4 * MAX_ID_BYTES:
        name = name[: 4 * MAX_ID_BYTES]
    try:
        data = " ".join(
            "".join(" " if unicodedata.category(c) == "Cc" else c for c in name).split()
        ).encode()
    except UnicodeEncodeError:
        msg = "a name holds a lone surrogate, which is no character; decode the input properly"
        raise InvalidTextError(msg) from None
    plain = data[:MAX_ID_BYTES].decode(errors="ignore").rstrip()
    return plain if plain != OWNER and name_key(plain) else ""

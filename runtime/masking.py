"""Masking: what tells who somebody is becomes a placeholder before anything is stored.

Every text that comes in through the door passes a `Mask` of its world and user before it is
embedded, sent to a shard, searched for or traced. Nothing behind the door sees more than
placeholders, the models included, so nothing behind it can store or log more. One value has one
number in its world. The way back is `Mask.unmask`, with the key, and for each user only of what
that user has said: a placeholder that somebody types is not a way to the values of others.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from reverie import door
from reverie.memory_graph.drafts import OWNER, EntityDraft, MemoryDraft, RelationDraft, TurnDraft
from reverie.memory_graph.errors import ConfigError, MaskKeyMissingError
from reverie.memory_graph.ids import Key, key_hash
from reverie.models.masking import KINDS, PLACEHOLDER, Found, Known, find
from reverie.models.masking.names import name_form
from reverie.models.masking.placeholders import base_of, placeholder
from reverie.models.rules.extract import MACHINES, NARRATORS
from reverie.vault import Note, Record, Vault

if TYPE_CHECKING:
    from reverie.user import User

MAX_UNMASKED_BYTES = 16 * 1024 * 1024
LEAST_NUMBER = 10**10  # telephone, card and id numbers in metadata; below are counts and times
# Speakers that are nobody in person.
NOBODY = MACHINES | NARRATORS | {"user", "player", "npc", "agent", "用户", "玩家"}
_FREE_FIELDS = ("text", "told_by", "heard", "slot", "tags", "speaker", "entities", "topics")


class _Value:
    """A masked value of a world: its number, its spellings, and who said it."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.forms: list[str] = []
        self.users: set[str] = set()


class _World:
    """The values of one world, by kind and normal form; and the names among them."""

    def __init__(self) -> None:
        self.values: dict[tuple[str, str], _Value] = {}
        self.by_number: dict[tuple[str, int], _Value] = {}
        self.highest: dict[str, int] = {}
        self.known = Known()

    def take(self, record: Record) -> None:
        """Take a record in, as it stands in the file."""
        kind = record.kind
        self.highest[kind] = max(self.highest.get(kind, 0), record.number)
        if not record.key:
            return
        value = self.values.get((kind, record.key))
        if value is None:
            value = self.values[kind, record.key] = _Value(record.number)
            self.by_number[kind, record.number] = value
            if kind == "person":
                self.known.add(record.form)
        if record.form not in value.forms:
            value.forms.append(record.form)
        value.users.add(record.user_id)


class Masks:
    """The masks of a data folder. Safe to share between threads."""

    def __init__(self, folder: Path, kinds: Collection[str], key: str | bytes | None) -> None:
        """Open what was masked before, and begin to mask `kinds` from now on.

        Raises:
            ConfigError: an unknown kind; or the key is missing, wrong, or none.
            DataFolderError, StorageError: the mapping cannot be read or written.
        """
        if isinstance(kinds, str) or not isinstance(kinds, Collection):
            msg = f"mask must be a sequence of kinds ({', '.join(KINDS)}), not {kinds!r}"
            raise ConfigError(msg, setting="mask")
        if unknown := sorted({*map(str, kinds)} - set(KINDS)):
            msg = f"mask: unknown kinds {', '.join(unknown)}; known: {', '.join(KINDS)}"
            raise ConfigError(msg, setting="mask")
        self._vault = Vault(folder, tuple(kinds), key)
        self._lock = threading.RLock()
        self._worlds: dict[str, _World] = {}
        self.kinds = self._vault.kinds
        if "phone" in self.kinds:
            find("0" * 9, ("phone",), Known())  # refuses here, not later, what has no library
        changed = self._vault.is_grown
        for record in self._vault.records:
            if isinstance(record, Record):
                self._world(record.world).take(record)
            elif record.fork is not None:
                self._copy(*record.fork)
            else:
                changed |= self._drop(record.forget)
        if changed:
            self._rewrite()

    @property
    def is_on(self) -> bool:
        """Whether anything is masked in this folder."""
        return bool(self.kinds)

    @property
    def has_key(self) -> bool:
        """Whether texts can be stored, and read back."""
        return self._vault.has_key

    def of(self, key: Key) -> Mask:
        """Return the mask of one user."""
        return Mask(self, key)

    def forget(self, key: Key) -> None:
        """Strike a user out, and every value that nobody else has said. Without the key it is
        noted, and done at the next opening with it. Raises StorageError."""
        if not self.is_on:
            return
        with self._lock:
            hashed = key_hash(key).hex()
            if not self._vault.has_key:
                self._vault.note(Note(forget=hashed))
            elif self._drop(hashed):
                self._rewrite()

    def fork(self, world: str, new_world: str) -> None:
        """Give a new world the values of the one that it is made of. Raises StorageError."""
        if not self.is_on:
            return
        with self._lock:
            self._vault.note(Note(fork=(world, new_world)))
            self._copy(world, new_world)

    def highest(self, world: str) -> dict[str, int]:
        """Return the highest number that was given out in a world, by kind."""
        with self._lock:
            known = self._worlds.get(world)
            return {} if known is None else dict(known.highest)

    def reserve(self, world: str, numbers: Mapping[str, int]) -> None:
        """Give a world that comes from elsewhere no number that stands in its texts for another
        value; what those stand for stays unknown here. Raises StorageError, MaskKeyMissingError."""
        if not self.is_on:
            return
        if not self.has_key:
            msg = "this data folder is masked: open it with its mask_key to import a world"
            raise MaskKeyMissingError(msg)
        with self._lock:
            highest = self._world(world).highest
            records = [
                Record(world, kind, number, "", "", "")
                for kind, number in numbers.items()
                if number > highest.get(kind, 0)
            ]
            if records:
                self._vault.append(records)
            for record in records:
                self._world(world).take(record)

    # -- the mapping; the lock is held -------------------------------------------------

    def _world(self, name: str) -> _World:
        return self._worlds.setdefault(name, _World())

    def _copy(self, world: str, new_world: str) -> None:
        source, target = self._worlds.get(world), self._world(new_world)
        if source is None or target.highest:  # it has numbers of its own: the fork will fail
            return
        for record in _records(world, source):
            target.take(record._replace(world=new_world))

    def _drop(self, hashed: str) -> bool:
        found = False
        for name, world in self._worlds.items():
            for (kind, key), value in [*world.values.items()]:
                gone = {u for u in value.users if key_hash(Key(name, u)).hex() == hashed}
                found |= bool(gone)
                value.users -= gone
                if gone and not value.users:
                    del world.values[kind, key]
                    del world.by_number[kind, value.number]
            if found:
                world.known = Known(
                    v.forms[0] for (kind, _), v in world.values.items() if kind == "person"
                )
        return found

    def _rewrite(self) -> None:
        self._vault.rewrite(r for name, w in self._worlds.items() for r in _records(name, w))

    def found(self, text: str, world: str) -> list[Found]:
        """Return what a text holds that is to be masked. It may take long: without the lock."""
        with self._lock:
            known = self._world(world).known
        return find(text, self.kinds, known)

    def numbered(self, world: str, user_id: str, met: list[tuple[str, str, str]]) -> list[str]:
        """Return the placeholders of values met in a text that will be stored, new ones on disk.

        Args:
            world: where.
            user_id: whose text it is.
            met: (kind, normal form, spelling) of each.
        """
        with self._lock:
            values = self._world(world)
            records: list[Record] = []
            given: dict[tuple[str, str], int] = {}
            highest = dict(values.highest)
            for kind, key, form in dict.fromkeys(met):
                value = values.values.get((kind, key))
                if value is not None and form in value.forms and user_id in value.users:
                    continue
                number = value.number if value is not None else given.get((kind, key))
                if number is None:
                    number = highest[kind] = highest.get(kind, 0) + 1
                given[kind, key] = number
                records.append(Record(world, kind, number, key, form, user_id))
            if records:
                self._vault.append(records)
            for record in records:
                values.take(record)
            return [self._written(values, *one) for one in met]

    @staticmethod
    def _written(values: _World, kind: str, key: str, form: str) -> str:
        value = values.values.get((kind, key))
        if value is None:
            return placeholder(kind)
        spelling = value.forms.index(form) + 1 if form in value.forms else 1
        return placeholder(kind, value.number, spelling)

    def looked_up(self, world: str, met: list[tuple[str, str, str]]) -> list[str]:
        """Return the placeholders of values met in a question; of unknown ones without a number."""
        with self._lock:
            values = self._world(world)
            return [self._written(values, *one) for one in met]

    def value(self, world: str, user_id: str, kind: str, number: int, spelling: int) -> str | None:
        """Return what a placeholder stands for, if this user has said it."""
        with self._lock:
            value = self._world(world).by_number.get((kind, number))
            if value is None or user_id not in value.users or spelling > len(value.forms):
                return None
            return value.forms[spelling - 1]


def _records(name: str, world: _World) -> list[Record]:
    records = [Record(name, kind, n, "", "", "") for kind, n in sorted(world.highest.items())]
    for (kind, key), value in world.values.items():
        users = sorted(value.users)
        for i in range(max(len(value.forms), len(users))):
            form = value.forms[min(i, len(value.forms) - 1)]
            records.append(
                Record(name, kind, value.number, key, form, users[min(i, len(users) - 1)])
            )
    return records


class Mask:
    """The mask of one user; cheap, holds no state.

    Methods for what is stored give new values a number, on disk before they return, and raise
    MaskKeyMissingError without the key; `question` and what is named so gives none.
    """

    def __init__(self, masks: Masks, key: Key) -> None:
        self._masks = masks
        self._key = key

    # -- what is stored ----------------------------------------------------------------

    def text(self, text: str) -> str:
        """Return a text with placeholders; masking it again changes nothing."""
        return self._masked(text, self._number)

    def name(self, name: str, *, is_person: bool = False) -> str:
        """Return the name of an entity: as a whole, when it is a person's."""
        return self._named(name, self._number, is_person=is_person)

    def turn(self, draft: TurnDraft) -> TurnDraft:
        """Return a turn with its text, speaker and metadata masked."""
        if not self._masks.is_on:
            return draft
        speaker = None if draft.speaker is None else self._speaker(draft.speaker)  # known from here
        return msgspec.structs.replace(
            draft, text=self.text(draft.text), speaker=speaker, metadata=self.value(draft.metadata)
        )

    def memory(self, draft: MemoryDraft) -> MemoryDraft:
        """Return a memory draft with everything masked that can hold words."""
        if not self._masks.is_on:
            return draft
        entities = tuple(self._entity(e) for e in draft.entities)  # first: people known from here
        told_by = None if draft.told_by is None else self._speaker(draft.told_by)
        return msgspec.structs.replace(
            draft,
            text=self.text(draft.text),
            entities=entities,
            told_by=told_by,
            heard=tuple(map(self._speaker, draft.heard)),
            slot=None if draft.slot is None else self.text(draft.slot),
            tags=tuple(map(self.text, draft.tags)),
            topics=tuple(map(self.name, draft.topics)),
            relations=tuple(map(self.relation, draft.relations)),
            metadata=self.value(draft.metadata),
        )

    def relation(
        self, draft: RelationDraft, *, head_type: str = "thing", tail_type: str = "thing"
    ) -> RelationDraft:
        """Return a triple with its ends masked; ends that are people's as a whole."""
        if not self._masks.is_on:
            return draft
        return msgspec.structs.replace(
            draft,
            head=self.name(draft.head, is_person=head_type == "person"),
            predicate=self.text(draft.predicate),
            tail=self.name(draft.tail, is_person=tail_type == "person"),
        )

    def value(self, value: Any) -> Any:
        """Return metadata with every text, key and number in it masked."""
        return self._plain(value, self.text) if self._masks.is_on else value

    def _entity(self, draft: EntityDraft) -> EntityDraft:
        is_person = draft.type == "person"
        aliases = tuple(self.name(a, is_person=is_person) for a in draft.aliases)
        return EntityDraft(self.name(draft.name, is_person=is_person), draft.type, aliases)

    def _speaker(self, name: str) -> str:
        return self.name(name, is_person=name.casefold() not in NOBODY)

    # -- what is asked -----------------------------------------------------------------

    def question(self, text: str) -> str:
        """Return a question with the placeholders that are known; needs no key to be safe."""
        return self._masked(text, self._look_up)

    def asked_name(self, name: str) -> str:
        """Return the name of an entity that is looked for."""
        known = self._named(name, self._look_up, is_person=True)
        return (
            known if PLACEHOLDER.fullmatch(known) and known[-2].isdigit() else self.question(name)
        )

    def asked_values(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return the values of parameters of a graph query; their names stay."""
        if not self._masks.is_on:
            return values
        return {name: self._plain(value, self.asked_name) for name, value in values.items()}

    def filters(self, value: dict[str, Any] | None) -> dict[str, Any] | None:
        """Return a filter that looks for placeholders; names of fields and operators stay."""
        if value is None or not self._masks.is_on:
            return value
        found: dict[str, Any] = self._filter(value, free=False)
        return found

    def _filter(self, value: Any, *, free: bool) -> Any:
        if isinstance(value, Mapping):
            return {
                self._field(name): self._filter(
                    one, free=free or name in _FREE_FIELDS or name.startswith("metadata.")
                )
                for name, one in value.items()
            }
        if isinstance(value, list):
            return [self._filter(one, free=free) for one in value]
        return self._plain(value, self.asked_name) if free else value

    def _field(self, name: str) -> str:
        head, dot, key = name.partition(".")
        return f"{head}{dot}{self.question(key)}" if head == "metadata" and dot else name

    # -- the way back ------------------------------------------------------------------

    def unmask(self, text: str) -> str:
        """Return a text with what its placeholders stand for.

        Those stay that stand for what this user has not said, and all of them without the key.
        """

        def one(match: Any) -> str:
            whole: str = match.group()
            if match["number"] is None:
                return whole
            value = self._masks.value(
                *self._key,
                match["kind"].lower(),
                int(match["number"]),
                int(match["spelling"] or 1),
            )
            return whole if value is None else value

        return PLACEHOLDER.sub(one, text) if self._masks.is_on else text

    def unmasked(self, value: Any) -> Any:
        """Return metadata with every text and key in it unmasked; see `unmask`."""
        return self._plain(value, self.unmask) if self._masks.is_on else value

    # -- how ---------------------------------------------------------------------------

    def _number(self, met: list[tuple[str, str, str]]) -> list[str]:
        return self._masks.numbered(self._key.world, self._key.user_id, met)

    def _look_up(self, met: list[tuple[str, str, str]]) -> list[str]:
        return self._masks.looked_up(self._key.world, met)

    def _masked(self, text: str, write: Callable[[list[tuple[str, str, str]]], list[str]]) -> str:
        if not self._masks.is_on:
            return text
        if write == self._number:
            self._require_key()
        # What is left once a name is gone may be read otherwise: until nothing is found. Each
        # round leaves less outside of placeholders.
        while found := self._masks.found(text, self._key.world):
            met = [(f.kind, f.key, text[f.start : f.end]) for f in found]
            parts: list[str] = []
            end = 0
            for one, written in zip(found, write(met), strict=True):
                parts += [text[end : one.start], written]
                end = one.end
            text = "".join([*parts, text[end:]])
        return text

    def _named(
        self,
        name: str,
        write: Callable[[list[tuple[str, str, str]]], list[str]],
        *,
        is_person: bool,
    ) -> str:
        if not self._masks.is_on or name == OWNER or PLACEHOLDER.fullmatch(name):
            return base_of(name) if self._masks.is_on else name
        if write == self._number:
            self._require_key()
        whole = is_person and "person" in self._masks.kinds and not PLACEHOLDER.search(name)
        if whole and (key := name_form(name)):
            (written,) = write([("person", key, name)])
            return base_of(written)
        return base_of(self._masked(name, write))

    def _plain(self, value: Any, change: Callable[[str], str]) -> Any:
        match value:
            case str():
                return change(value)
            case bool() | None:
                return value
            case int() | float() if abs(value) >= LEAST_NUMBER and value == int(value):
                text = str(int(value))
                changed = change(text)
                return value if changed == text else changed
            case Mapping():
                return {change(k): self._plain(v, change) for k, v in value.items()}
            case list() | tuple():
                return [self._plain(one, change) for one in value]
            case _:
                return value

    def _require_key(self) -> None:
        if not self._masks.has_key:
            msg = (
                "this data folder is masked: to store texts, open it with the mask_key that it was "
                "made with"
            )
            raise MaskKeyMissingError(msg)


# -- methods of `User` and `Runtime`, which stand here to keep those files short ------------


def mask(self: User, text: str) -> str:
    """Return a text as it would be stored: what `Config.mask` names as placeholders.

    New values get their number. The text itself where nothing is masked.

    Raises:
        MaskKeyMissingError: the data folder is masked, and was opened without the key.
    """
    return self.masking.text(door.text(text, self._rt.config.max_text_bytes))


def unmask(self: User, text: str) -> str:
    """Return a text (of a hit, a context block, an answer) with what its placeholders stand for.

    Only of what was masked in texts of this user; other placeholders stay, as all do without the
    key.
    """
    return self.masking.unmask(door.text(text, MAX_UNMASKED_BYTES))

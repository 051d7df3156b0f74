"""Isolation: no user's data reaches another, whatever their ids look like.

    python tests/crash/isolation.py 1000000

Worlds and users have ids that are chosen to collide: prefixes, separators, case, Unicode forms and
look-alikes, ids that share their first 500 bytes, ids that look like node ids. Everything that a
user tells carries a canary of its own, and each user has a twin: a plain value that says what
should be there. Random operations of the whole public API follow, many of them with ids, cursors,
names and request ids of somebody else. No answer may hold the canary of another user, and every
state must equal its twin, also after passivation, checkpoints, forks, rewinds and reopenings.

The data folder is replaced now and then, so that users stay small and other ids meet each other.
"""

from __future__ import annotations

import random
import re
import shutil
import sys
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from copy import deepcopy
from pathlib import Path
from typing import Any
from unicodedata import normalize
from unittest.mock import patch

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # when run as a script

from crash import ops, report, writer

import reverie
from reverie.actors import commands as c
from reverie.actors.residents import Residents
from reverie.memory_graph.ids import Key
from reverie.models.standin import HashEmbedder

FOLDER_OPERATIONS = 15_000  # in one data folder
FOLDERS = 4  # of a short run
REOPENINGS = 4  # of one data folder
TIGHT_BYTES = 500_000  # of resident users, in every other folder
AUDITED = 2  # users that are held against their twins after each step
CANARY = re.compile(rb"zq\d{6}qz")
RED_LANTERN = ("Who sold the red lantern?", "谁把红灯笼卖给了船长?")

# Members of one family could be taken for each other.
FAMILIES: dict[str, tuple[str, ...]] = {
    "prefixes": ("a", "aa", "ab", "abc", "b", "ba", "c", "bc"),
    "bars": ("a|b", "b|c", "a", "c"),
    "slashes": ("a/b", "b/c", "a", "b", "c", "a/b/c", "..", "../a"),
    "colons": ("a:b", "b:c", "a", "b", "c", "a:b:c", "a::b", ":"),
    "marks": ("a'b", 'a"b', "a;b", "a--b", "a%b", "a_b", "a*b", "a\\b"),
    "cases": ("Ana", "ana", "ANA", "straße", "strasse", "STRASSE", "İris", "i̇ris"),
    "forms": ("é", "e\u0301", "Å", "A\u030a", "\u212b", "ﬁn", "fin", "ｆｉｎ"),
    "look-alikes": ("ana", "аna", "anа", "αna", "ana\u0131", "anai", "a\u200dna", "a\u00adna"),
    "spaces": ("ana", "ana ", " ana", "ana\u00a0", "ana\u200b", "\ufeffana", "a na", "a\u3000na"),
    "emoji": ("👩", "👩\u200d🚀", "👩🏽", "👩🏽\u200d🚀", "❤", "❤\ufe0f", "🇳🇴", "🇳"),
    "chinese": ("里", "裡", "裏", "\u2fa5", "台湾", "臺灣", "国", "國"),
    "long": (
        *("x" * 511 + end for end in "12y"),
        "x" * 510,
        *("界" * 170 + s for s in ("a", "ab")),
    ),
    "nodes": ("m1", "t1", "e1", "user", "$user", "default", "None", "0"),
}
REFUSED = ("", "  ", "a\x00b", "a\nb", "\ud800", "x" * 513, "界" * 171)


class Twin:
    """What one user should hold.

    Attributes:
        canary: stands in everything that this user tells; another one from each fork on.
        allowed: canaries that may be read: its own ones, and those of before it was forked.
        person: the head of its triples.
        memories: id -> (text, status).
        messages: id -> text.
        triples: (predicate, tail) of the relations of `person`.
    """

    def __init__(self, canary: str) -> None:
        self.canary = canary
        self.allowed = {canary.encode()}
        self.person = f"Name{canary}"
        self.memories: dict[str, tuple[str, str]] = {}
        self.messages: dict[str, str] = {}
        self.triples: set[tuple[str, str]] = set()
        self.told = 0

    def text(self) -> str:
        """Return something new to tell."""
        self.told += 1
        if self.told % 3:
            return f"Line {self.told} of {self.canary}: the smith sold a red lantern."
        return f"{self.canary} 第{self.told}句：铁匠把一盏红灯笼卖给了船长。"

    def call(self, canary: str) -> None:
        """Tell with another canary from now on."""
        self.canary = canary
        self.allowed.add(canary.encode())


class Fuzz:
    """Random operations on one data folder after the other; see the module's text."""

    def __init__(self, options: report.Options, row: report.Row) -> None:
        self.options = options
        self.row = row
        self.kinds: Counter[str] = Counter()
        self.random = random.Random(options.seed)
        self.clock = reverie.SimulatedClock(1_700_000_000.0)
        self.twins: dict[Key, Twin] = {}
        self.saved: dict[str, dict[Key, Twin]] = {}  # world -> its twins at the checkpoint "save"
        self.first: list[Callable[[reverie.Runtime], None]] = []
        self.canaries = self.folders = self.requests = 0

    # -- one data folder after the other -------------------------------------------------

    def run(self) -> None:
        """Go on until enough was done, or something was found."""
        families: list[str] = []
        while self.row.count < self.options.count and self.row.is_clean:
            if not families:
                families = self.random.sample(list(FAMILIES), len(FAMILIES))
                if not self.folders and self.options.bug in FOUND_BY:
                    families.append(FOUND_BY[self.options.bug])
            self._run_folder(families.pop())
        figures = {f"operations: {kind}": float(n) for kind, n in sorted(self.kinds.items())}
        self.row.figures = {"folders": float(self.folders), **figures}

    def _run_folder(self, family: str) -> None:
        self.folders += 1
        folder = self.options.work / f"folder-{self.folders}"
        members = FAMILIES[family]
        others = self.random.sample(FAMILIES["nodes"], 3)
        worlds = [*self.random.sample(members, 4), self.random.choice(others)]
        self.twins = {
            Key(w, u): self._new_twin() for w in worlds for u in dict.fromkeys((*members, *others))
        }
        self.saved = {}
        # Once each, from the last on; then at random.
        self.first = [self._adds, self._forget, *[self._slots] * 3]
        self.first += [self._writes, self._searches, self._remembers]
        share = min(FOLDER_OPERATIONS, self.options.count // FOLDERS)
        goal = min(self.row.count + share, self.options.count)
        step = max(1, (goal - self.row.count) // REOPENINGS)
        digests: dict[Key, str] = {}
        while self.row.count < goal and self.row.is_clean:
            stop = min(self.row.count + step, goal)
            with self._open(folder) as runtime:
                self._compare_digests(runtime, digests)
                self._try_refused(runtime)
                while self.row.count < stop and self.row.is_clean:
                    self._step(runtime)
                    self.clock.advance(1.0)
                if self.row.is_clean:
                    digests = {key: self._user(runtime, key).digest() for key in self.twins}
        if not self.row.is_clean:
            return
        with self._open(folder) as runtime:
            self._compare_digests(runtime, digests)
            for key in list(self.twins):
                self._audit(runtime, key)
            for line in runtime.check():
                self._wrong(line)
        if self.row.is_clean:
            shutil.rmtree(folder)

    def _open(self, folder: Path) -> reverie.Runtime:
        return reverie.open(
            folder,
            clock=self.clock,
            embedder=HashEmbedder(writer.DIM),
            extractor=ops.NoteTaker(),
            summaries="off",
            decider=writer.AddAll(),
            partitions=writer.PARTITIONS,
            byte_budget=TIGHT_BYTES if self.folders % 2 else 1 << 30,
            background=False,
        )

    def _new_twin(self) -> Twin:
        self.canaries += 1
        return Twin(f"zq{self.canaries:06d}qz")

    def _step(self, runtime: reverie.Runtime) -> None:
        steps = (self._searches, self._remembers, self._adds, self._reads, self._writes)
        todo = self.random.choices((*steps, self._slots, self._forget), (40, 14, 8, 50, 40, 4, 2))
        (self.first.pop() if self.first else todo[0])(runtime)
        for key in self.random.sample(list(self.twins), AUDITED):
            self._audit(runtime, key)

    # -- many at once --------------------------------------------------------------------

    def _searches(self, runtime: reverie.Runtime) -> None:
        world, keys = self._of_a_world(64)
        asked = [(key.user_id, self._question()) for key in keys]
        for key, (_, question), hits in zip(
            keys, asked, runtime.search_many(asked, world=world, limit=5), strict=True
        ):
            self._own(key, hits, f"search {question!r}")
            self._known(key, hits)
        self._did("search", len(asked))

    def _question(self) -> str:
        """Return a question, half of the time for what only one user, mostly another, has."""
        if self.random.random() < 0.5:
            return self.random.choice(RED_LANTERN)
        return f"What about {self.random.choice(list(self.twins.values())).canary}?"

    def _remembers(self, runtime: reverie.Runtime) -> None:
        world, keys = self._of_a_world(32)
        told = {key.user_id: [self._draft(key)] for key in keys}
        for user_id, kept in runtime.remember_many(told, world=world).items():
            twin = self.twins[Key(world, user_id)]
            for draft, one in zip(told[user_id], kept, strict=True):
                self._keep(twin, one.memory_id, draft.text)
        self._did("remember", len(told))
        self.row.acknowledged += len(told)

    def _draft(self, key: Key) -> reverie.MemoryDraft:
        twin = self.twins[key]
        return reverie.MemoryDraft(
            twin.text(),
            tags=("told", twin.canary),
            metadata={"of": twin.canary},
            entities=(reverie.EntityDraft(twin.person, "person"), reverie.EntityDraft("Ashford")),
        )

    def _adds(self, runtime: reverie.Runtime) -> None:
        infer = self.random.random() < 0.3
        world, keys = self._of_a_world(8 if infer else 24)
        told: dict[str, list[dict[str, str]]] = {}
        for key in dict.fromkeys(keys):
            twin = self.twins[key]  # the external ids of all users are equal
            number = len(twin.messages) + 1
            told[key.user_id] = [{"text": twin.text(), "id": f"said-{number}"}]
        added = runtime.add_many(told, world=world, session="大厅 hall", infer=infer, wait=True)
        for user_id, result in added.items():
            twin = self.twins[Key(world, user_id)]
            texts = [turn["text"] for turn in told[user_id]]
            twin.messages |= dict(zip(result.ids, texts, strict=True))
            for text, kept in zip(texts, result.kept if infer else (), strict=False):
                self._keep(twin, kept.memory_id, ops.NOTED + text)
        self._did("add", len(told))
        self.row.acknowledged += len(told)

    def _keep(self, twin: Twin, memory_id: str | None, text: str) -> None:
        if memory_id is None or memory_id in twin.memories:
            self._wrong(f"{text!r} was kept as {memory_id}, which is there")
        else:
            twin.memories[memory_id] = (text, "active")

    # -- one by one ----------------------------------------------------------------------

    def _reads(self, runtime: reverie.Runtime) -> None:
        """Read as one user, with what belongs to another."""
        for _ in range(16):
            key, other = self._pair()
            user, of = self._user(runtime, key), self.twins[other]
            kind = self.random.choice(
                "get history list entities neighbors stats context external".split()
            )
            strange = self._id_of(of)
            answer: Any = None
            # A cursor of another user's listing is refused.
            with suppress(reverie.errors.UnknownMemoryError, reverie.errors.InvalidLimitError):
                match kind:
                    case "get":
                        answer = user.get(self.random.choice((strange, "m1", "t1", "user")))
                    case "external":
                        answer = user.get(f"said-{self.random.randint(1, 5)}")
                    case "history":
                        answer = user.history(strange)
                    case "list":
                        cursor = self._user(runtime, other).list(limit=2).cursor
                        answer = user.list(limit=5, cursor=cursor, filters=self._filter(of))
                    case "entities":
                        answer = user.entities(self.random.choice((None, of.person, "Ashford")))
                    case "neighbors":
                        answer = user.neighbors(
                            self.random.choice((of.person, "Ashford", "user")), include_retired=True
                        )
                    case "stats":
                        answer = user.stats()
                    case _:
                        answer = user.context(f"{of.canary}?", budget_tokens=200).text
            self._own(key, answer, f"{kind} of {other}")
            self._did(kind)

    def _filter(self, of: Twin) -> dict[str, Any] | None:
        """Return a filter for what another user has, half of the time."""
        if self.random.random() < 0.5:
            return None
        return self.random.choice(
            ({"tags": {"contains": of.canary}}, {"metadata.of": of.canary}, {"kind": "fact"})
        )

    def _writes(self, runtime: reverie.Runtime) -> None:
        """Write as one user, with ids and request ids of another."""
        for _ in range(3):
            key, other = self._pair()
            user, twin = self._user(runtime, key), self.twins[key]
            memory_id = self._id_of(self.twins[other])
            before = twin.memories.get(memory_id)
            status = None if before is None else before[1]
            kind = self.random.choice("remember remember update delete restore relate".split())
            match kind:
                case "remember":
                    self._same_request(runtime, (key, other))
                case "relate":
                    tail = f"Town{twin.told}"
                    user.relate(twin.person, "visited", tail, head_type="person", tail_type="place")
                    twin.triples.add(("visited", tail))
                    twin.told += 1
                case "update":
                    text = twin.text()
                    with self._refusing(key, kind, refused=status != "active"):
                        item = user.update(memory_id, text)
                        twin.memories[memory_id] = (before[0] if before else "", "superseded")
                        self._keep(twin, item.id, text)
                        self._own(key, item, kind)
                case "delete":
                    with self._refusing(key, kind, refused=before is None):
                        user.delete(memory_id)
                        if before is not None and status == "active":
                            twin.memories[memory_id] = (before[0], "expired")
                case _:
                    if status == "superseded":  # what replaced it would end, too
                        continue
                    with self._refusing(key, kind, refused=status != "expired"):
                        item = user.restore(memory_id)
                        twin.memories[memory_id] = (item.text, "active")
                        self._own(key, item, kind)
            self._did(kind)
            self.row.acknowledged += 1

    @contextmanager
    def _refusing(self, key: Key, kind: str, *, refused: bool) -> Iterator[None]:
        """Expect the body to be refused, or not."""
        try:
            yield
        except (reverie.errors.NotFoundError, reverie.errors.StateError) as exc:
            if not refused:
                self._wrong(f"{kind} of {key} was refused: {exc!r}")
        except reverie.errors.InvalidValueError as exc:  # a new text for what has ended
            if not refused or kind != "update":
                self._wrong(f"{kind} of {key} was refused: {exc!r}")
        else:
            if refused:
                self._wrong(f"{kind} of {key} was not refused")

    def _same_request(self, runtime: reverie.Runtime, keys: Sequence[Key]) -> None:
        """Let two users choose the same request id, and each say it twice."""
        self.requests += 1
        for key in dict.fromkeys(keys):
            twin, text = self.twins[key], self.twins[key].text()
            request = f"request-{self.requests}"
            first = self._user(runtime, key).remember(text, request_id=request)
            self._keep(twin, first.memory_id, text)
            if self._user(runtime, key).remember(text, request_id=request) != first:
                self.row.duplicated += 1
                self._note(f"duplicated: {request} of {key} was answered in two ways")
            self._did("repeat")

    # -- whole worlds --------------------------------------------------------------------

    def _slots(self, runtime: reverie.Runtime) -> None:
        world = self.random.choice(list(self.twins)).world
        here = {key: twin for key, twin in self.twins.items() if key.world == world}
        for user_id in runtime.users(world):
            if Key(world, user_id) not in here:
                self._crossed(f"world {world!r} lists {user_id!r}")
        if strange := set(runtime.worlds()) - {key.world for key in self.twins}:
            self._crossed(f"there are worlds {strange}")
        if world not in self.saved:
            runtime.checkpoint("save", world)
            self.saved[world] = deepcopy(here)
        elif self.random.random() < 0.5:
            runtime.rewind("save", world)
            for key, twin in deepcopy(self.saved[world]).items():
                twin.told = here[key].told  # what is told stays new
                twin.call(here[key].canary)
                self.twins[key] = twin
        else:
            self._fork(runtime, world)
            runtime.drop_checkpoint("save", world)
            del self.saved[world]
        self._did("save slot", 3)

    def _fork(self, runtime: reverie.Runtime, world: str) -> None:
        """Fork into a name that looks like the old one; its users go on separately."""
        known = {key.world for key in self.twins}
        names = (world.swapcase(), world + "\u200b", world[:-1], normalize("NFKC", world), "fork")
        new = next((n for n in names if n.strip() and n not in known and len(n) < 170), None)
        if new is None or len(known) > 8:
            return
        runtime.fork("save", new, world)
        for key, saved in self.saved[world].items():
            twin = self._new_twin()
            twin.allowed |= saved.allowed
            twin.memories, twin.messages = dict(saved.memories), dict(saved.messages)
            self.twins[Key(new, key.user_id)] = twin
        for key in self.saved[world]:  # from here on each side has canaries of its own
            self.canaries += 1
            self.twins[key].call(f"zq{self.canaries:06d}qz")

    def _forget(self, runtime: reverie.Runtime) -> None:
        key, _ = self._pair()
        receipt = self._user(runtime, key).forget()
        # Names of worlds stay in the catalog, also of those that look like a user.
        is_name = any(key.user_id in other.world for other in self.twins)
        if receipt.erased.found and not is_name:
            self._wrong(f"of {key} is left: {receipt.erased.found}")
        self.twins[key] = self._new_twin()
        if key.world in self.saved:
            self.saved[key.world][key] = Twin(self.twins[key].canary)
        self._did("forget")

    def _try_refused(self, runtime: reverie.Runtime) -> None:
        for bad in REFUSED:
            for world, user_id in ((bad, "ana"), ("a", bad)):
                try:
                    runtime.user(user_id, world)
                except reverie.errors.InvalidIdError:
                    self._did("refused id")
                else:
                    self._wrong(f"{world!r}, {user_id!r} was not refused")

    # -- what is right -------------------------------------------------------------------

    def _audit(self, runtime: reverie.Runtime, key: Key) -> None:
        """Hold everything that a user has against its twin."""
        user, twin = self._user(runtime, key), self.twins[key]
        page = user.list(limit=10_000, include_retired=True, include_archived=True)
        self._own(key, page, "list")
        found = {item.id: (item.text, item.status) for item in page.items}
        self._equal(key, "memories", found, twin.memories)
        said = user.list(limit=10_000, types="message")
        self._own(key, said, "messages")
        self._equal(key, "messages", {m.id: m.text for m in said.items}, twin.messages)
        if twin.triples:
            triples = user.neighbors(twin.person, limit=10_000).relations
            self._own(key, triples, "triples")
            self._equal(key, "triples", {(t.predicate, t.tail) for t in triples}, twin.triples)
        self._did("audit", 3)

    def _equal(self, key: Key, what: str, found: Any, expected: Any) -> None:
        if found == expected:
            return
        if missing := [one for one in expected if one not in found]:
            self.row.lost += len(missing)
            self._note(f"lost: {what} of {key}: {missing[:3]}")
        if isinstance(found, dict):
            other = {i: v for i, v in found.items() if expected.get(i, v) != v or i not in expected}
        else:
            other = found - expected
        if other:
            self._wrong(f"{what} of {key} has {str(other)[:300]}")

    def _compare_digests(self, runtime: reverie.Runtime, digests: dict[Key, str]) -> None:
        for key, digest in digests.items():
            if self._user(runtime, key).digest() != digest:
                self._wrong(f"{key} has another digest after the reopening")
            self._did("digest")

    def _own(self, key: Key, answer: Any, what: str) -> None:
        """Look for canaries of others in an answer."""
        allowed = self.twins[key].allowed
        for canary in set(CANARY.findall(msgspec.json.encode(answer))) - allowed:
            self._crossed(f"{what}: {key} reads {canary.decode()}")

    def _known(self, key: Key, hits: Sequence[reverie.Hit]) -> None:
        twin = self.twins[key]
        for hit in hits:
            if hit.id not in twin.memories and hit.id not in twin.messages:
                self._crossed(f"search: {key} gets {hit.id}, which it does not have")

    # -- small things --------------------------------------------------------------------

    def _user(self, runtime: reverie.Runtime, key: Key) -> reverie.User:
        return runtime.user(key.user_id, key.world)

    def _of_a_world(self, count: int) -> tuple[str, list[Key]]:
        world = self.random.choice(list(self.twins)).world
        return world, self.random.choices([k for k in self.twins if k.world == world], k=count)

    def _pair(self) -> tuple[Key, Key]:
        key, other = self.random.sample(list(self.twins), 2)
        return key, other

    def _id_of(self, twin: Twin) -> str:
        ids = [*twin.memories, *twin.messages] if self.random.random() < 0.3 else [*twin.memories]
        return self.random.choice(ids) if ids else "m1"

    def _did(self, kind: str, count: int = 1) -> None:
        self.kinds[kind] += count
        self.row.count += count
        self.options.advance(count)

    def _note(self, line: str) -> None:
        if len(self.row.findings) < report.SHOWN:
            self.row.findings.append(line)

    def _wrong(self, line: str) -> None:
        self.row.wrong += 1
        self._note(f"wrong: {line}")

    def _crossed(self, line: str) -> None:
        self.row.crossed += 1
        self._note(f"crossed: {line}")


# -- planted bugs, which the suite must find ---------------------------------------------


class _ByUser(OrderedDict[Any, Any]):
    """Residents that are known by their user id alone."""

    def get(self, key: Key, default: Any = None) -> Any:
        return super().get(self._real(key), default)

    def __getitem__(self, key: Key) -> Any:
        return super().__getitem__(self._real(key))

    def pop(self, key: Key, default: Any = None) -> Any:
        return super().pop(self._real(key), default)

    def move_to_end(self, key: Key, last: bool = True) -> None:  # noqa: FBT001, FBT002 (as the base)
        super().move_to_end(self._real(key), last)

    def _real(self, key: Key) -> Key:
        return next((k for k in self if k.user_id == key.user_id), key)


_begin = Residents.__init__


def _begin_by_user(residents: Residents, *args: Any) -> None:
    _begin(residents, *args)
    residents._users = _ByUser()


# What stands for a user where the key is made wrongly.
KEYS: dict[str, Callable[[c.Command], str]] = {
    "no-world": lambda command: command.user_id,
    "joined": lambda command: f"{command.world}|{command.user_id}",
    "folded": lambda command: repr((command.world.casefold(), command.user_id.casefold())),
    "normalised": lambda command: repr(
        (normalize("NFKC", command.world), normalize("NFKC", command.user_id))
    ),
}
FOUND_BY = {"joined": "bars", "folded": "cases", "normalised": "forms"}  # the family
BUGS = (*KEYS, "cached-by-user")


@contextmanager
def planted(bug: str | None) -> Iterator[None]:
    """Break the product within the block."""
    if bug == "cached-by-user":
        with patch.object(Residents, "__init__", _begin_by_user):
            yield
    elif bug is not None:
        first: dict[str, Key] = {}  # whoever comes first has it

        def key_of(command: c.Command) -> Key:
            return first.setdefault(KEYS[bug](command), Key(command.world, command.user_id))

        with patch.object(c.Command, "key", property(key_of)):
            yield
    else:
        yield


def run(options: report.Options) -> report.Row:
    """Do `options.count` operations."""
    writer.quiet()
    row = report.Row("isolation", "operations")
    fuzz = Fuzz(options, row)
    with planted(options.bug):
        try:
            fuzz.run()
        except reverie.ReverieError as exc:
            fuzz._wrong(f"an operation failed: {exc!r}")
    return row


if __name__ == "__main__":
    sys.exit(report.command_line(run, what="isolation fuzz", bugs=BUGS))

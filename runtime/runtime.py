"""The runtime: an open data folder with its shards, models and background work."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, Unpack

import msgspec
import structlog

from reverie import door, groups, lifecycle, quarantine, reembedding, saves, summing, times
from reverie.actors import commands as c
from reverie.actors.backend import Backend, InlineBackend, Router
from reverie.actors.ingest import BATCH_TURNS, MODELLED_TURNS, Ingestor
from reverie.actors.lane import raise_error
from reverie.actors.residents import ShardSettings
from reverie.clock import Clock
from reverie.clocks import Clocks
from reverie.config import Config, make_config
from reverie.graphs import Graphs
from reverie.masking import Masks
from reverie.memory_graph.drafts import Kept, MemoryDraft
from reverie.memory_graph.errors import (
    ClosedError,
    ConfigError,
    StorageError,
    UnknownCheckpointError,
)
from reverie.memory_graph.ids import DEFAULT_WORLD, Key, check_id, check_key
from reverie.memory_graph.nodes import Dimension
from reverie.memory_graph.state import as_bytes
from reverie.memory_graph.store import DataFolder, forks
from reverie.memory_graph.views import Hit
from reverie.mind import WorldMind
from reverie.models.protocol import Embedder
from reverie.models.usage import UsageRow
from reverie.operations import copying
from reverie.reflecting import Gathering
from reverie.repeats import Repeats, checked, mark, part_of
from reverie.results import AddResult, Checkpoint, RuntimeStats, SearchOptions
from reverie.slots import Slots
from reverie.stderr import log_to_stderr
from reverie.trace import Tracer
from reverie.user import User
from reverie.world import World

log = structlog.get_logger(__name__)


EMBED_CHUNK = 256


def open(  # noqa: A001 (reverie.open, like shelve.open)
    path: str | Path,
    *,
    actors: int | None = None,
    address: str | None = None,
    clock: Clock | None = None,
    clocks: Mapping[str, Clock] | None = None,
    mask_key: str | bytes | None = None,
    config: Config | None = None,
    **settings: Any,
) -> Runtime:
    """Open a data folder, made if it is not there, and return its runtime.

    Args:
        path: the folder. One process may have it open at a time.
        actors: None runs everything in this process; N runs N shards as Ray actors. The number
            may differ at each opening.
        address: of a running Ray cluster; None starts Ray on this machine (with `actors`).
        clock: tells the time; the wall clock by default.
        clocks: of worlds that live by another one, by their names. Background work begins at once,
            so a world with simulated time that may have turns waiting is to be named here.
        mask_key: of a data folder with `Config.mask`; see `new_mask_key`. It is not kept anywhere.
        config: all settings; see `Config`.
        settings: single settings that replace those of `config`, such as `embedder="multilingual"`.

    Raises:
        DataFolderLockedError: another process has it open; the message names it.
        DataFolderError: not a data folder, or of a newer version.
        StorageReadOnlyError: it cannot be written.
        ConfigError: an unknown setting or a bad value.
    """
    return Runtime(
        path,
        actors=actors,
        address=address,
        clock=clock,
        clocks=clocks,
        mask_key=mask_key,
        config=make_config(config, settings),
    )


class Runtime:
    """An open data folder; made by `reverie.open`. Safe to share between threads.

    Attributes:
        config: its settings.
        masks: what it masks; see `Config.mask`.
        mind: its models.
        ingestor: its background work.
        fanout: what goes to several users at once.
        repeats: what carries calls out once for each request id.
        tracer: keeps raw parts of extractions and searches when `config.trace` is set.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        actors: int | None = None,
        address: str | None = None,
        clock: Clock | None = None,
        clocks: Mapping[str, Clock] | None = None,
        mask_key: str | bytes | None = None,
        config: Config,
    ) -> None:
        """See `reverie.open`."""
        if actors is not None:
            actors = door.limit(actors, "actors", 1024)
        elif address is not None:
            msg = "address= needs actors=: how many shards to run on the cluster"
            raise ConfigError(msg, setting="address")
        elif config.model_hosts or config.language_hosts:
            name = "model_hosts" if config.model_hosts else "language_hosts"
            msg = f"{name}= needs actors=: such hosts run on Ray"
            raise ConfigError(msg, setting=name)
        log_to_stderr()
        self.config = config
        self.clocks = Clocks(clock, clocks)
        self.dimensions: dict[str, dict[str, Dimension]] = {}  # of relationships, by world
        self.graphs = Graphs()
        self.repeats = Repeats(self)
        self._closed = threading.Event()
        self._is_forked = False
        self._folder = DataFolder.open(
            Path(path), owner=f"reverie {uuid.uuid4().hex[:8]}", partitions=config.partitions
        )
        backend: Backend | None = None
        mind: WorldMind | None = None
        try:
            self.masks = Masks(self._folder.path, config.mask, mask_key)
            backend = self._start(actors, address)
            self._router = Router(backend, self._folder.partitions, max_waiting=config.max_waiting)
            self._repeats = backend.repeats
            self.mind = mind = WorldMind(
                config,
                self._folder.catalog,
                self.now,
                on_ray=actors is not None,
                masked=self.masks.is_on,
            )
            mind.language.keep_usage(self._folder.path)
            self._slots = Slots(self._folder.catalog, self._router, self.mind.lock)
            self.fanout = self._slots.fanout
            self._slots.resume()
            self.tracer = Tracer(self._folder.traces) if config.trace else None
            self.summaries = summing.keeper(self._router, self.mind, self.now, config)
            self.ingestor = Ingestor(
                self._router,
                self.mind,
                self.now,
                background=config.background,
                trace=self.tracer,
                after=None if config.summaries == "off" else self.summaries.step,
                batch_turns=BATCH_TURNS if self.mind.language.model is None else MODELLED_TURNS,
                least_importance=config.min_importance,
            )
            self._router.after = Gathering(config.reflect_at, self.ingestor.wake).note
        except BaseException:
            if mind is not None:  # its language model is a process
                mind.close()
            if backend is not None:
                backend.close()
            self._folder.close()
            raise
        forks.guard(self)
        try:
            lifecycle.resume(self)
            self.ingestor.wake_all()
        except BaseException:
            self.close()
            raise

    def _start(self, actors: int | None, address: str | None) -> Backend:
        config, folder = self.config, self._folder
        settings = ShardSettings(byte_budget=config.byte_budget, exact_limit=config.exact_limit)
        if actors is None:
            return InlineBackend(
                folder.path, folder.partitions, settings, folder.owner, create=folder.is_new
            )
        from reverie.actors.ray_backend import RayBackend

        return RayBackend(
            folder.path,
            folder.partitions,
            settings,
            folder.owner,
            actors=actors,
            address=address,
            retry_s=config.retry_s,
            create=folder.is_new,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def path(self) -> Path:
        """The data folder."""
        return self._folder.path

    def now(self, world: str | None = None) -> float:
        """Return the time in seconds of a world, or on the runtime's own clock; raises
        InvalidTimeError when the clock gives none."""
        return self.clocks.now(world)

    def call(self, command: c.UserCommand) -> Any:
        """Send one command to the shard that owns its user and return the answer."""
        self._require_open()
        return self._router.call(command)

    def _require_open(self) -> None:
        if self._closed.is_set():
            raise ClosedError(forks.REFUSAL if self._is_forked else "the runtime is closed")

    def leave_to_parent(self) -> None:
        """Refuse every call in a forked process; its parent goes on as if nothing had happened."""
        self._is_forked = True
        self._closed = threading.Event()  # threads that are not here may hold the locks
        self._closed.set()
        self._slots.lock = self.mind.lock = threading.RLock()

    def new_request_id(self) -> str | None:
        """Return a request id for a write whose answer may be lost, None where none can be."""
        return uuid.uuid4().hex if self._repeats else None

    # -- users and worlds --------------------------------------------------------------

    def user(self, user_id: str, world: str = DEFAULT_WORLD) -> User:
        """Return a user's memory; nothing is stored until something is written.

        Raises:
            InvalidIdError: an id is empty, over 512 bytes, or not plain text.
        """
        return User(self, check_key(world, user_id))

    def world(self, name: str = DEFAULT_WORLD, *, clock: Clock | None = None) -> World:
        """Return a world: what happens between its users, and its save slots. With a `clock`, it
        lives by that one from now on (see `World.set_clock`).

        Raises:
            InvalidIdError: the name is empty, over 512 bytes, or not plain text.
        """
        if clock is not None:
            self.clocks.set(name, clock)
        return World(self, check_id(name, "world"))

    def create_world(self, name: str, *, embedder: str | Embedder | None = None) -> None:
        """Fix the embedder of a world before its first use (worlds are otherwise made on it).

        Raises:
            EmbedderMismatchError: the world has vectors of another embedder.
        """
        self.mind.declare(check_id(name, "world"), embedder)

    def worlds(self) -> list[str]:
        """Return the names of all worlds, sorted: of those that something was written to, or whose
        embedder is fixed. Checkpoints alone make none."""
        self._require_open()
        with self.mind.lock:
            named = {w.name for w in self._folder.catalog.worlds()}
        return sorted(named | {world for world, _ in self._all_users(None)})

    def users(self, world: str = DEFAULT_WORLD) -> list[str]:
        """Return the ids of a world's users, sorted."""
        return [user for _, user in self._all_users(check_id(world, "world"))]

    def _all_users(self, world: str | None, *, partial: bool = False) -> list[tuple[str, str]]:
        found = self._router.everywhere(c.ListUsers(world=world, partial=partial))
        return sorted((w, u) for users in found for w, u in users)

    # -- many at once ------------------------------------------------------------------

    def add_many(
        self,
        messages: Mapping[str, door.Messages],
        *,
        world: str = DEFAULT_WORLD,
        session: str = "default",
        infer: bool = True,
        wait: bool = False,
        request_id: str | None = None,
    ) -> dict[str, AddResult]:
        """Store turns of many users, one call per shard; `messages` maps user ids to them.

        Everything is checked before anything is stored. See `User.add`; the request id counts for
        each user by itself, so a call of which some were stored can be repeated.
        """
        if request_id is not None:
            check_id(request_id, "request_id")
        checked = {
            self.user(user_id, world): door.messages(
                given, session=session, at=None, max_bytes=self.config.max_text_bytes
            )
            for user_id, given in door.by_user(messages, "messages").items()
        }
        drafts = {user: list(map(user.masking.turn, turns)) for user, turns in checked.items()}
        infer = door.flag(infer, "infer") and self.config.extractor != "off"
        commands = [
            user.turns_command(turns, request_id or self.new_request_id(), infer=infer)
            for user, turns in drafts.items()
        ]
        results: dict[str, AddResult] = {}
        waking = list(drafts) if infer else []
        try:
            for user, answer in zip(drafts, self._router.call_many(commands), strict=True):
                added: c.Added = raise_error(answer)
                results[user.key.user_id] = AddResult(added.ids)
            while wait and waking:
                key = waking[0].key
                ids = results[key.user_id].ids
                results[key.user_id] = AddResult(ids, self.ingestor.drain(key, ids))
                del waking[0]
        finally:  # whoever failed, the turns of the others are stored and wait
            for user in waking:
                self.ingestor.wake(user.key)
        return results

    def remember_many(
        self,
        memories: Mapping[str, Sequence[str | MemoryDraft]],
        *,
        world: str = DEFAULT_WORLD,
        again: bool = False,
        request_id: str | None = None,
    ) -> dict[str, list[Kept]]:
        """Keep statements of many users verbatim, one call per shard (see `User.remember`). The
        request id counts for each statement by itself, by its user and its place in the list."""
        again, request_id = door.flag(again, "again"), checked(request_id)
        given: list[tuple[User, MemoryDraft, str | None]] = []
        for user_id, drafts in door.by_user(memories, "memories").items():
            user = self.user(user_id, world)
            few = door.items(drafts, "memories", "texts and drafts")
            for place, draft in enumerate(few):
                whole = door.memory(draft, self.config.max_text_bytes)
                given.append((user, whole, part_of(request_id, "remember", place)))
        given = [(user, user.masking.memory(draft), request) for user, draft, request in given]
        embedder = self.mind.embedder(check_id(world, "world"))
        commands: list[c.Remember] = []
        for start in range(0, len(given), EMBED_CHUNK):
            part = given[start : start + EMBED_CHUNK]
            vectors = embedder.embed([draft.text for _, draft, _ in part], "passage")
            for (user, draft, request), vector in zip(part, vectors, strict=True):
                whole = msgspec.structs.replace(draft, vector=as_bytes(vector))
                shared = user._write(request or self.new_request_id(), with_vectors=True)  # noqa: SLF001
                commands.append(c.Remember(**shared, draft=whole, again=again))
        results: dict[str, list[Kept]] = {user_id: [] for user_id in memories}
        for command, answer in zip(commands, self._router.call_many(commands), strict=True):
            results[command.user_id].append(raise_error(answer))
        return results

    def search_many(
        self,
        questions: Sequence[tuple[str, str]],
        *,
        world: str = DEFAULT_WORLD,
        **search: Unpack[SearchOptions],
    ) -> list[list[Hit]]:
        """Return the hits of many questions, given as (user id, question), one call per shard.

        Args:
            questions: pairs of user id and question.
            world: of all of them.
            search: as in `User.search`.
        """
        now = self.now(world)
        pairs = door.pairs(questions, "questions")
        commands = [self.user(u, world).search_command(q, search, now) for u, q in pairs]
        texts = list(dict.fromkeys(command.text for command in commands))
        embedder = self.mind.for_reading(check_id(world, "world"))
        matrix = embedder.embed(texts, "query")
        vectors = dict(zip(texts, map(as_bytes, matrix), strict=True))
        ready = [cmd.with_vector(vectors[cmd.text], embedder.info.id) for cmd in commands]
        return groups.search_many(self, ready)

    # -- extraction --------------------------------------------------------------------

    def drain(self, timeout_s: float | None = None) -> None:
        """Wait until all turns are extracted or quarantined.

        Raises:
            WaitTimeoutError: not done after `timeout_s` seconds; the work goes on.
        """
        if self.config.background:
            self.ingestor.wake_all()
            self.ingestor.wait(timeout_s)
            return
        for found in self._router.everywhere(c.ListPending(limit=1_000_000)):
            for user in found:
                self.ingestor.drain(Key(user.world, user.user_id))

    summarise = summing.summarise_all

    quarantined = quarantine.quarantined
    retry_quarantined = quarantine.retry_quarantined
    drop_quarantined = quarantine.drop_quarantined

    # -- save slots --------------------------------------------------------------------

    checkpoint = saves.checkpoint
    rewind = saves.rewind
    fork = saves.fork
    checkpoints = saves.checkpoints
    drop_checkpoint = saves.drop_checkpoint
    import_world = saves.import_world
    backup = copying.backup

    @property
    def slots(self) -> Slots:
        """What carries out operations on whole worlds; raises ClosedError after `close`."""
        self._require_open()
        return self._slots

    # -- erasure -----------------------------------------------------------------------

    def erase(self, key: Key, known: c.Mark | None = None) -> c.Erased:
        """Erase a user for good; `User.forget` is the way to call it."""
        self._require_open()
        groups.forget(self, key)
        self.masks.forget(key)
        self.mind.language.forget(key)
        with self.ingestor.hold(key):  # or an outcome under way would leave a trace behind
            erased = self._slots.forget(key, None if known is None else known.of_rows())
        self.graphs.forget(key)
        self.mind.forget(key.world)
        self.mind.language.forget(key)  # what was under way until now
        times.clear_cache()
        return erased

    # -- models ------------------------------------------------------------------------

    def usage(self, world: str | None = None, user_id: str | None = None) -> list[UsageRow]:
        """Return what calls of the language model have cost, by user and purpose, over all runs
        on this data folder (a process that was killed is not in it); None is any."""
        return self.mind.language.usage(world, user_id)

    def reset_usage(
        self, user_id: str, world: str = DEFAULT_WORLD, *, request_id: str | None = None
    ) -> None:
        """Set a user's counters to nothing, and with them what is left of the budget; once for
        each request id."""
        self._require_open()
        key = check_key(world, user_id)
        known = mark(key, request_id, "reset_usage")
        self.repeats.once(key, known, None, lambda: self.mind.language.forget(key))

    reembed = reembedding.reembed

    # -- the whole ---------------------------------------------------------------------

    def stats(self) -> RuntimeStats:
        """Return what is on disk, in memory, and under way."""
        shards = self._router.everywhere(c.Flush())
        pending = self._router.everywhere(c.ListPending(limit=1_000_000))
        away = self._router.everywhere(c.ListPending(quarantined=True))
        return RuntimeStats(
            users=len(self._all_users(None)),
            worlds=self.worlds(),
            shards=shards,
            ingest=self.ingestor.counts,
            pending=sum(len(u.turn_ids) for users in pending for u in users),
            quarantined=sum(len(u.turn_ids) for users in away for u in users),
        )

    def check(self, progress: Callable[[int, int], None] | None = None) -> list[str]:
        """Return every broken invariant of all files and users, as lines; empty when sound.

        Args:
            progress: called with (users done, users in all).
        """
        lines = [line for found in self._router.everywhere(c.CheckShard()) for line in found]
        lines += self._slots.unfinished()
        users = self._all_users(None, partial=True)
        for done, (world, user_id) in enumerate(users, 1):
            try:
                found = list(self.user(user_id, world).check())
            except StorageError as exc:  # of this user; the others can still be looked at
                found = [exc.message]
            lines += [f"{world}/{user_id}: {line}" for line in found]
            if progress is not None:
                progress(done, len(users))
        return lines

    def flush(self) -> None:
        """Write snapshots of the users in memory, which makes the next opening faster."""
        self._router.everywhere(c.Flush(snapshot=True))

    def close(self, within_s: float | None = None) -> None:
        """Finish calls under way, stop background work (it goes on at the next opening), and
        close the files. A second call does nothing.

        Args:
            within_s: how long to wait for the extraction under way. It is then given up: its turns
                stay in the outbox, and its models are left to the end of the process. None waits
                until it is done.
        """
        if self._closed.is_set():
            return
        self._closed.set()
        try:
            self.graphs.close()
            self.mind.language.close()  # or closing would wait for many calls of it
            is_idle = self.ingestor.close(within_s)
            self._router.close()
            self.fanout.close()
            if is_idle:  # or a model would be freed while it works
                self.mind.close()
        finally:
            self._folder.close()


__all__ = ["Checkpoint", "Runtime", "RuntimeStats", "UnknownCheckpointError", "open"]

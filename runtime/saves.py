"""Save games: checkpoints of a world, forks of one, and a world in a file.

These functions are methods of `Runtime` and `World`; they stand here to keep those files short.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from reverie import door
from reverie.clock import Clock
from reverie.destinations import outside, require_replaceable
from reverie.memory_graph.errors import ConfigError, InvalidValueError, WorldFileError
from reverie.memory_graph.ids import DEFAULT_WORLD, Key, check_id, check_key
from reverie.memory_graph.store import StoredWorld, world_file
from reverie.repeats import NOBODY, mark
from reverie.results import Checkpoint

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from reverie.actors.commands import Mark
    from reverie.memory_graph.store import WorldFile
    from reverie.runtime import Runtime
    from reverie.world import World

Progress: TypeAlias = Callable[[int, int], None]
EXPORT_BYTES = 1024 * 1024  # of images that a shard answers at once; each is built there


def checkpoint(
    self: Runtime, tag: str, world: str = DEFAULT_WORLD, *, request_id: str | None = None
) -> int:
    """Save a world under a tag; returns the number of users in it. Cheap: nothing is copied.

    Under a `request_id`, this and the other calls on save slots are carried out once: repeated,
    they give the first answer, whatever happened to the world since.

    Raises:
        CheckpointExistsError: the tag is taken.
        RequestReusedError: the request id was used before in this world, for another call.
    """
    self._require_open()
    world, tag = check_id(world, "world"), check_id(tag, "tag")
    key = Key(world, NOBODY)
    known = mark(key, request_id, "checkpoint", tag)
    return self.repeats.once(
        key, known, int, lambda: self._slots.checkpoint(world, tag, self.now(world), known)
    )


def rewind(
    self: Runtime, tag: str, world: str = DEFAULT_WORLD, *, request_id: str | None = None
) -> int:
    """Put a world back to a tag; returns the number of users in it.

    Other tags, also later ones, stay. Model calls under way are discarded when they end. The
    clock of the world is not moved.

    Raises:
        UnknownCheckpointError: no such tag.
        RequestReusedError: as in `checkpoint`.
        StorageError: it is half done; it is finished before the next operation on save slots,
            or at the next opening, and undoes what was written to the world until then.
    """
    self._require_open()
    world, tag = check_id(world, "world"), check_id(tag, "tag")
    key = Key(world, NOBODY)
    known = mark(key, request_id, "rewind", tag)
    count = self.repeats.once(
        key, known, int, lambda: self._slots.rewind(world, tag, self.now(world), known)
    )
    self.ingestor.wake_all()
    return count


def fork(
    self: Runtime,
    tag: str,
    new_world: str,
    world: str = DEFAULT_WORLD,
    *,
    request_id: str | None = None,
) -> int:
    """Make a new world of a tag; returns the number of users in it. It lives by the clock of the
    world that it is made of. Of a world to which nothing was ever written, it is one too: not in
    `worlds`, until something is.

    Raises:
        UnknownCheckpointError: no such tag.
        CheckpointExistsError: the new world exists, or somebody wrote to it meanwhile.
        RequestReusedError: as in `checkpoint`.
        StorageError: the checkpoint cannot be read, or the new world not be written.

    After any error, what was made of the new world is erased again, with whatever was written
    to its users meanwhile: it is there once this has returned.
    """
    self._require_open()
    world, tag = check_id(world, "world"), check_id(tag, "tag")
    check_id(new_world, "new_world")
    key = Key(world, NOBODY)
    known = mark(key, request_id, "fork", tag, new_world)

    def made() -> int:
        if new_world not in self.worlds():
            self.masks.fork(world, new_world)
            self.clocks.share(world, new_world)
        return self._slots.fork(world, tag, new_world, self.now(world), known)

    count = self.repeats.once(key, known, int, made)
    self.ingestor.wake_all()
    return count


def checkpoints(self: Runtime, world: str = DEFAULT_WORLD) -> list[Checkpoint]:
    """Return a world's save slots, in the order of their times on its clock."""
    self._require_open()
    return [Checkpoint(*tag) for tag in self._slots.tags(check_id(world, "world"))]


def drop_checkpoint(
    self: Runtime, tag: str, world: str = DEFAULT_WORLD, *, request_id: str | None = None
) -> None:
    """Give up a save slot; raises UnknownCheckpointError when there is none, and
    RequestReusedError as `checkpoint`."""
    self._require_open()
    world, tag = check_id(world, "world"), check_id(tag, "tag")
    key = Key(world, NOBODY)
    known = mark(key, request_id, "drop_checkpoint", tag)
    self.repeats.once(key, known, int | None, lambda: self._slots.drop(world, tag, known))


# -- a world in a file -------------------------------------------------------------------


class _User(msgspec.Struct):
    """A `FileUser` of an image that is encoded already."""

    digest: str
    image: msgspec.Raw


def export(
    self: World,
    path: str | Path,
    tag: str | None = None,
    *,
    progress: Progress | None = None,
) -> int:
    """Write the world into one file, for another folder or machine; returns the number of users.

    The file has its name once it is whole, and replaces a world file (or an empty file) that had it
    before, and nothing else. It holds the memories
    with their vectors, and the turns that wait for extraction; no other checkpoints, no answers
    to request ids, no traces, no models. It is compressed and checksummed, not encrypted.

    Args:
        self: the world.
        path: of the file, outside of the data folder; its folder exists.
        tag: of a checkpoint; None is the world as it is now. Writes go on meanwhile, and what they
            write is not in the file.
        progress: called with (users done, users in all).

    Raises:
        UnknownCheckpointError: no such tag.
        InvalidValueError: there is no such world; or the path lies in the data folder, or is that
            of something else than a world file.
        JournalDamagedError: a user cannot be read.
        StorageError: the file cannot be written. No part of it is left.
    """
    rt, name = self._rt, self.name
    now = rt.now(name)
    path = outside(path, rt.path, "an export goes to a place outside of it")
    require_replaceable(path, world_file.MAGIC, "world file")
    with ExitStack() as held:
        if tag is None:
            stored = rt.mind.stored(name)
            if stored is None and not rt.users(name):
                msg = f"there is no world {name!r}"
                raise InvalidValueError(msg, world=name)
            made_at, pinned = now, held.enter_context(rt.slots.held(name, now))
        else:
            found = rt.slots.require(name, check_id(tag, "tag"))
            made_at, pinned, stored = found.made_at, tag, rt.mind.stored(name)
        total = len(rt.slots.positions(name, pinned))
        head = world_file.FileHead(
            format=world_file.FILE_FORMAT,
            written_by=_version(),
            world=name,
            tag=tag,
            made_at=made_at,
            embedder=None if stored is None else stored.embedder,
            dim=0 if stored is None else stored.dim,
            spec="" if stored is None else rt.mind.portable(stored.spec),
            masked=rt.masks.highest(name),
            masks=rt.masks.kinds,
        )
        with world_file.writing(path, head) as file:
            for image, digest in rt.slots.images(
                name, pinned, digests=True, max_bytes=EXPORT_BYTES
            ):
                file.user(msgspec.msgpack.encode(_User(digest, msgspec.Raw(image))))
                if progress is not None:
                    progress(file.users, total)
            return file.users


def import_world(
    self: Runtime,
    path: str | Path,
    name: str | None = None,
    *,
    clock: Clock | None = None,
    progress: Progress | None = None,
    request_id: str | None = None,
) -> World:
    """Make a world of a file that `World.export` wrote, here or on another machine.

    All or nothing: the file is read through and found whole first; the state of each user is built
    and compared with what it was when it was exported; after any error, nothing of it is left.
    Turns that waited for extraction are extracted from now on.

    Args:
        self: the runtime.
        path: of the file.
        name: of the new world; as in the file by default.
        clock: of the new world; that of the runtime by default.
        progress: called with (users done, users in all).
        request_id: a call repeated with the same id makes one world, also over a crash.

    Raises:
        InvalidValueError: `path` can be none.
        RequestReusedError: the request id was used before in this world, for another call or file.
        WorldFileError: no world file, damaged, cut short, or of a newer format.
        CheckpointExistsError: the world exists here.
        EmbedderMismatchError: its vectors are of another embedding model than this runtime has.
        ModelMissingError: that model is not on this machine.
        ConfigError: another masking than in this data folder.
        MaskKeyMissingError: the folder is masked, and was opened without its key.
    """
    self._require_open()
    with world_file.reading(door.path(path)) as file:
        world = check_id(file.head.world if name is None else name, "world")
        key = Key(world, NOBODY)
        known = mark(key, request_id, "import_world", msgspec.to_builtins(file.head), file.users)
        self.repeats.once(
            key, known, int, lambda: _brought(self, file, world, clock, progress, known)
        )
    self.ingestor.wake_all()
    return self.world(world)


def _brought(
    self: Runtime,
    file: WorldFile,
    world: str,
    clock: Clock | None,
    progress: Progress | None,
    known: Mark | None,
) -> int:
    """Make a world of an open file; returns the number of its users."""
    head = file.head
    if (seen := self._slots.answered(world, known)) is not None:
        return seen
    self._slots.require_new(world)
    _require_same_masks(self, head)
    spec = ""
    if head.embedder is not None:
        spec = self.mind.accepted(head.embedder, head.dim, head.spec)
    clocks_before = self.clocks.own(world)
    if clock is not None:
        self.clocks.set(world, clock)
    try:
        row = StoredWorld(world, head.embedder or "", head.dim, spec, self.now(world))
        self.masks.reserve(world, head.masked)
        return self._slots.import_world(
            _images(file, world, progress),
            row,
            has_embedder=head.embedder is not None,
            mark=known,
        )
    except BaseException:
        self.clocks.set(world, clocks_before)
        raise


def _images(file: WorldFile, world: str, progress: Progress | None) -> Iterator[tuple[bytes, str]]:
    seen: set[str] = set()
    for done, user in enumerate(file.images(), 1):
        user_id = check_key(world, user.image.key.user_id).user_id
        if user_id in seen:
            msg = f"user {user_id!r} is in the file twice"
            raise WorldFileError(msg, user_id=user_id)
        seen.add(user_id)
        yield msgspec.msgpack.encode(user.image), user.digest
        if progress is not None:
            progress(done, file.users)


def _require_same_masks(self: Runtime, head: world_file.FileHead) -> None:
    if set(head.masks) != set(self.masks.kinds):
        there, here = (", ".join(sorted(k)) or "nothing" for k in (head.masks, self.masks.kinds))
        msg = (
            f"in the file {there} is masked, in this data folder {here}: import it into a folder "
            "that was opened with the same mask="
        )
        raise ConfigError(msg, setting="mask")


def _version() -> str:
    from reverie import __version__

    return __version__

"""API keys: who may do what in which worlds.

A key is `rv_<id>_<secret>`; the secret is 256 random bits. Kept is the SHA-256 of the whole key: a
slow hash (bcrypt, argon2) protects passwords, which can be guessed; nobody guesses 256 random bits,
whatever a try costs. The file is `http-keys.json` of the data folder, for its owner only. Whoever
can write it can make keys, so one that others may write or read is refused.

Everything fails closed: with a file of keys, also an empty one, every request needs a key; a
damaged file lets nobody in.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import stat
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec
import structlog
from filelock import FileLock

from reverie.memory_graph.errors import ConfigError, InvalidValueError, StorageFailedError
from reverie.memory_graph.ids import check_id

Role: TypeAlias = Literal["read", "write", "admin"]

FILE = "http-keys.json"
ROLES: tuple[Role, ...] = ("read", "write", "admin")  # each may what those before it may
MAX_KEYS = 10_000
MAX_WORLDS = 1_000  # of one key
MAX_FILE_BYTES = 64 * 1024**2
LOOK_EVERY_S = 1.0  # so long may a revoked key still work in a server that runs
LOCK_TIMEOUT_S = 10.0
_FORM = re.compile(r"rv_([0-9a-f]{12})_[A-Za-z0-9_-]{43}")
_NOBODY = "0" * 64

log = structlog.get_logger(__name__)


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """A key as it is kept.

    Attributes:
        id: its public part, for lists and logs.
        name: what it is for, in the words of who made it.
        role: "read"; "write", which also reads; or "admin", which also erases and manages.
        worlds: names of the worlds that it reaches.
        is_everywhere: it reaches all worlds, and with "admin" the whole data folder.
        made_at: seconds since 1970, UTC.
        digest: SHA-256 of the whole key, in hex.
        revoked_at: from when on it opens nothing; None while it does.
    """

    id: str
    name: str = ""
    role: Role
    worlds: tuple[str, ...] = ()
    is_everywhere: bool = False
    made_at: float
    digest: str
    revoked_at: float | None = None

    def reaches(self, world: str) -> bool:
        """Whether it is for this world; names are compared byte for byte."""
        return self.is_everywhere or world in self.worlds

    def may(self, role: Role) -> bool:
        """Whether its role goes this far."""
        return ROLES.index(self.role) >= ROLES.index(role)


# Who asks when there are no keys: somebody on this machine.
ANYBODY = Key(id="-", role="admin", is_everywhere=True, made_at=0.0, digest=_NOBODY)


class _File(msgspec.Struct, frozen=True):
    keys: tuple[Key, ...] = ()
    version: int = 1


class KeyFile:
    """The file of keys of a data folder; each call reads it anew."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE

    @property
    def exists(self) -> bool:
        """Whether there is one; then every request needs a key."""
        return os.path.lexists(self.path)

    def read(self) -> tuple[Key, ...]:
        """Return all keys, revoked ones among them, in the order that they were made.

        Raises:
            ConfigError: the file is damaged, no plain file, or not its owner's alone.
        """
        try:
            handle = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            return ()
        except OSError as exc:
            raise self._unusable(exc.strerror or str(exc)).because(exc) from exc
        with os.fdopen(handle, "rb") as file:
            info = os.fstat(file.fileno())
            if not stat.S_ISREG(info.st_mode) or info.st_size > MAX_FILE_BYTES:
                why = "it is no file of keys"
                raise self._unusable(why)
            if info.st_mode & 0o077:
                why = f"others may read or write it; chmod 600 {self.path}"
                raise self._unusable(why)
            data = file.read()
        try:
            found = msgspec.json.decode(data, type=_File)
        except (msgspec.MsgspecError, ValueError) as exc:
            why = "it is damaged"
            raise self._unusable(why).because(exc) from exc
        if found.version != _File().version:
            why = "it is of a newer version"
            raise self._unusable(why)
        return found.keys

    def create(
        self,
        role: Role,
        *,
        worlds: Sequence[str] = (),
        everywhere: bool = False,
        name: str = "",
        now: Callable[[], float] = time.time,
    ) -> tuple[str, Key]:
        """Make a key, and return it with what is kept of it. It cannot be shown again.

        Args:
            role: how far it goes.
            worlds: names of the worlds that it is for.
            everywhere: it is for all worlds instead.
            name: what it is for.
            now: tells the time, seconds since 1970.

        Raises:
            InvalidValueError: no role; worlds and `everywhere`, or neither; too many of anything.
            InvalidIdError: the name of a world is none.
            ConfigError: the file is damaged or open to others.
            StorageFailedError: it cannot be written.
        """
        if role not in ROLES:
            msg = f"a role is one of {', '.join(ROLES)}, not {role!r}"
            raise InvalidValueError(msg, what="role")
        named = tuple(dict.fromkeys(check_id(world, "world") for world in worlds))
        if bool(named) == everywhere or len(named) > MAX_WORLDS:
            msg = f"a key is for 1 to {MAX_WORLDS:,} worlds, or for all of them"
            raise InvalidValueError(msg, what="worlds")
        label = check_id(name, "name") if name else ""
        public = secrets.token_hex(6)
        whole = f"rv_{public}_{secrets.token_urlsafe(32)}"
        key = Key(
            id=public,
            name=label,
            role=role,
            worlds=named,
            is_everywhere=everywhere,
            made_at=now(),
            digest=_digest(whole),
        )
        with self._locked():
            known = self.read()
            if len(known) >= MAX_KEYS:
                msg = f"{MAX_KEYS:,} keys are the most"
                raise InvalidValueError(msg, what="keys")
            self._write((*known, key))
        return whole, key

    def revoke(self, key_id: str, *, now: Callable[[], float] = time.time) -> Key:
        """Let a key open nothing from now on, and return it; it stays in the list.

        Raises:
            InvalidValueError: no such key.
            ConfigError, StorageFailedError: as in `create`.
        """
        with self._locked():
            known = {key.id: key for key in self.read()}
            if key_id not in known:
                msg = f"there is no key {key_id!r}; reverie keys list shows them"
                raise InvalidValueError(msg, what="key")
            found = known[key_id]
            if found.revoked_at is None:
                found = known[key_id] = msgspec.structs.replace(found, revoked_at=now())
                self._write(tuple(known.values()))
            return found

    def _locked(self) -> FileLock:
        return FileLock(f"{self.path}.lock", timeout=LOCK_TIMEOUT_S, mode=0o600)

    def _write(self, keys: tuple[Key, ...]) -> None:
        """Replace the file; after an error the one before is there."""
        try:
            # mkstemp makes files that are their owner's alone
            handle, name = tempfile.mkstemp(prefix=".http-keys-", dir=self.path.parent)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(msgspec.json.encode(_File(keys)))
                    file.flush()
                    os.fsync(file.fileno())
                Path(name).replace(self.path)
            except BaseException:
                Path(name).unlink(missing_ok=True)
                raise
            folder = os.open(self.path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError as exc:
            msg = f"{self.path} cannot be written: {exc.strerror or exc}"
            raise StorageFailedError(msg, path=str(self.path)).because(exc) from exc

    def _unusable(self, why: str) -> ConfigError:
        return ConfigError(f"{self.path} lets nobody in: {why}", path=str(self.path))


class Door:
    """Knows who asks; what the file says is looked at again every second. Thread-safe."""

    def __init__(self, file: KeyFile, clock: Callable[[], float] = time.monotonic) -> None:
        """Read the keys.

        Raises:
            ConfigError: the file is damaged or open to others.
        """
        self._file = file
        self._clock = clock
        self._lock = threading.Lock()
        self.needs_keys = file.exists
        self._seen: object = None
        self._keys: dict[str, Key] = {}
        self._looked_at = -LOOK_EVERY_S
        self._load()

    def who(self, authorization: str | None) -> Key | None:
        """Return whose request this is; None when it shows no key that opens anything.

        Args:
            authorization: the header, "Bearer rv_...".
        """
        if self._clock() - self._looked_at >= LOOK_EVERY_S:
            self._look()
        if not self.needs_keys:
            return ANYBODY
        scheme, _, given = (authorization or "").partition(" ")
        form = _FORM.fullmatch(given.strip()) if scheme.lower() == "bearer" else None
        if form is None:
            return None
        key = self._keys.get(form[1])
        # Compared also when there is no such key: it takes the same time.
        is_it = hmac.compare_digest(_digest(form[0]), _NOBODY if key is None else key.digest)
        return key if is_it and key is not None and key.revoked_at is None else None

    def _look(self) -> None:
        with self._lock:
            self._looked_at = self._clock()
            if not self._file.exists:
                self._keys, self._seen = {}, None  # nobody gets in, if there were keys
                return
            self.needs_keys = True
            try:
                self._load()
            except ConfigError as exc:
                self._keys, self._seen = {}, None
                log.error("nobody is let in", error=str(exc))

    def _load(self) -> None:
        try:
            info = os.lstat(self._file.path)
            seen: object = (info.st_ino, info.st_mtime_ns, info.st_size, info.st_mode)
        except OSError:
            seen = None
        if seen is not None and seen == self._seen:
            return
        self._keys = {key.id: key for key in self._file.read()}
        self._seen = seen


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()

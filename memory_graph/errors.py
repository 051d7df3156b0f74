"""Every error that reverie raises, grouped by whose fault it is.

- `InputError`: the caller passed something that can never work. Nothing was stored.
- `NotFoundError`: the caller named something that is not there.
- `StateError`: the call was well-formed, but the world has moved on (a rewind, a closed runtime).
- `StorageError`: the disk, or what is on it. Acknowledged writes are still on disk.
- `ModelError`: a model file, or a model that does not fit the stored vectors.
- `UnavailableError`: try again later; the owner of the data is busy, gone, or restarting.

An error crosses process borders as `(class name, message, details)`; see `to_wire` and
`from_wire`. The details are attributes of the error: `error.user_id`, `error.seq`.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self, TypeAlias

import msgspec

Detail: TypeAlias = str | int | float | bool | list[str] | None


def shown(value: object, most: int = 100) -> str:
    """Return a value as a message shows it, in at most `most` characters. Whole numbers of over
    4,300 digits have no `repr`."""
    try:
        return repr(value)[:most]
    except ValueError:
        return f"a {type(value).__name__} too large to show"


class WireError(msgspec.Struct, frozen=True):
    """An error as it travels between processes."""

    code: str
    message: str
    details: dict[str, Any] = {}


class ReverieError(Exception):
    """Base of all errors of this package. Catch it; only subclasses are raised."""

    _known: ClassVar[dict[str, type[ReverieError]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        ReverieError._known[cls.__name__] = cls

    def __init__(self, message: str, /, **details: Detail) -> None:
        """Keep `message` for people and `details` as attributes for programs.

        Raises:
            TypeError: when a group (`ReverieError`, `InputError`, ...) is raised itself.
        """
        if type(self).__subclasses__():
            msg = f"{type(self).__name__} is a group of errors: raise one of its subclasses"
            raise TypeError(msg)
        super().__init__(message)
        self.message = message
        self.details = details
        self.__dict__.update(details)

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (type(self).__name__, self.message, self.details))

    def to_wire(self) -> WireError:
        """Return the form that `from_wire` turns back into the same error."""
        return WireError(type(self).__name__, self.message, dict(self.details))

    @classmethod
    def from_wire(cls, wire: WireError) -> ReverieError:
        """Rebuild an error; an unknown code becomes an `InternalError` that names it."""
        return _rebuild(wire.code, wire.message, wire.details)

    def because(self, cause: BaseException) -> Self:
        """Return this error with `cause` chained, for use in `raise error.because(exc)`."""
        self.__cause__ = cause
        return self


def _rebuild(code: str, message: str, details: dict[str, Any]) -> ReverieError:
    kind = ReverieError._known.get(code)  # noqa: SLF001
    if kind is None or kind.__subclasses__():
        return InternalError(f"{code}: {message}", **details)
    return kind(message, **details)


# -- the caller's fault ----------------------------------------------------------------


class InputError(ReverieError, ValueError):
    """The call can never succeed as it is. Nothing was stored."""


class InvalidIdError(InputError):
    """A world, user, session, request or memory id is empty, too long, or not plain text."""


class InvalidTextError(InputError):
    """A text is empty, too long, or cannot be encoded (a lone surrogate, a NUL)."""


class InvalidTimeError(InputError):
    """A time is not a finite number of seconds."""


class InvalidLimitError(InputError):
    """A limit, budget or cursor is negative, zero, or over its bound."""


class InvalidMetadataError(InputError):
    """Metadata is no small mapping of JSON values, or sets a reserved key such as `user_id`."""


class InvalidValueError(InputError):
    """Any other argument that is out of its range (a kind, a confidence, a predicate)."""


class FilterError(InputError):
    """A filter has an unknown operator or field, a wrong type, or too many levels."""


class QueryError(InputError):
    """A graph query is malformed, does something that is not reading, or fails while it runs."""


class QueryLimitError(InputError):
    """A graph query took more time or memory than it may, or the graph is too large for queries;
    it was ended and changed nothing."""


class ConfigError(InputError):
    """A setting is unknown, or its value is out of range."""


# -- not there -------------------------------------------------------------------------


class NotFoundError(ReverieError, LookupError):
    """Something that was named does not exist for this user or world."""


class UnknownMemoryError(NotFoundError):
    """No such memory, message, entity or summary for this user."""


class UnknownCheckpointError(NotFoundError):
    """No checkpoint of this tag in this world."""


# -- the world has moved on ------------------------------------------------------------


class StateError(ReverieError, RuntimeError):
    """A well-formed call that the present state refuses."""


class ClosedError(StateError):
    """The runtime, or this part of it, was closed."""


class StaleGenerationError(StateError):
    """Work begun before a rewind or a forget was delivered after it; it was discarded."""


class RequestReusedError(StateError):
    """A request id was used again with a different request."""


class NothingToUndoError(StateError):
    """The memory is active already, or what replaced it is still in force."""


class CheckpointExistsError(StateError):
    """A checkpoint of this tag, or a world of this name, exists already."""


class MaskKeyMissingError(StateError):
    """The data folder is masked, and was opened without the key: no text can be stored."""


# -- the disk --------------------------------------------------------------------------


class StorageError(ReverieError, OSError):
    """The disk, or what is on it. Whatever was acknowledged is still there."""


class StorageFullError(StorageError):
    """No space left. The write was not acknowledged and left nothing behind."""


class StorageReadOnlyError(StorageError):
    """The data folder or a file in it cannot be written."""


class StorageFailedError(StorageError):
    """An input/output error. The partition is closed and must be recovered from disk."""


class DataFolderLockedError(StorageError):
    """Another process has this data folder open; the message names it."""


class DataFolderError(StorageError):
    """The folder is no data folder, or was written by a newer format."""


class WorldFileError(StorageError):
    """A file is no exported world, is damaged or cut short, or of a newer format. Nothing of it was
    imported."""


class BackupError(StorageError):
    """What is to be restored is no backup, incomplete, damaged, or of a newer version. Nothing of
    it was restored."""


class JournalDamagedError(StorageError):
    """The journal of one user does not verify; `user_id`, `world` and `seq` say where."""

    world: str
    user_id: str
    seq: int


class FencedError(StorageError):
    """Another owner has taken this partition; this one may neither write nor read."""


# -- models ----------------------------------------------------------------------------


class ModelError(ReverieError, RuntimeError):
    """A model file, or a model that does not fit the stored vectors."""


class ModelMissingError(ModelError):
    """The model is not on this machine; the message says how to get it."""


class ModelDamagedError(ModelError):
    """A model file does not have the pinned checksum, or cannot be loaded."""


class EmbedderMismatchError(ModelError):
    """The world's vectors were made by another embedding model; `reembed` migrates them."""


class ModelFailedError(ModelError):
    """The model raised while it worked."""


class ModelTimeoutError(ModelError):
    """The model took longer over one call than it may; the call was ended and gave nothing."""


# -- try again -------------------------------------------------------------------------


class UnavailableError(ReverieError, RuntimeError):
    """The owner of the data cannot answer now."""


class OverloadedError(UnavailableError):
    """A bounded queue is full. Nothing was stored; slow down and try again."""


class ShardUnavailableError(UnavailableError):
    """The shard did not answer within the client's retries. The write may or may not be on
    disk: repeat it with the same request id to learn which."""


class ModelUnavailableError(UnavailableError):
    """No model host answered within the client's retries. Turns that wait for it go on waiting."""


class BudgetExceededError(UnavailableError):
    """The user's budget of model calls or tokens is spent; `world`, `user_id` and `budget` ("calls"
    or "tokens") say whose. The model was not called. Turns that need it go on waiting."""


class WaitTimeoutError(UnavailableError):
    """The result was not there in time; the work goes on."""


# -- ours ------------------------------------------------------------------------------


class InternalError(ReverieError):
    """A fault of reverie itself. Please report it with the message."""


class InvariantError(ReverieError):
    """A fault of reverie itself, too: an event could not be applied because it breaks an
    invariant. Nothing was stored."""

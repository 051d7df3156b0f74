"""The errors of mem0's calls: the same names, attributes and codes.

Where mem0 raises a plain ValueError, ours are one too. Errors of the storage below (a full disk, a
folder in use) arrive as reverie's own, see `reverie.errors`; those about a bad argument are
ValueErrors as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class MemoryError(Exception):  # noqa: A001 (mem0's name)
    """Base of the errors here.

    Attributes:
        message: for people.
        error_code: for programs, such as "VALIDATION_001".
        details: what was given.
        suggestion: what to do instead.
        debug_info: always empty here.
    """

    def __init__(
        self,
        message: str,
        error_code: str = "MEMORY_001",
        details: Mapping[str, Any] | None = None,
        suggestion: str | None = None,
        debug_info: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.error_code = error_code
        self.details = dict(details or {})
        self.suggestion = suggestion
        self.debug_info = dict(debug_info or {})

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.message!r}, {self.error_code!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        given = (self.message, self.error_code, self.details, self.suggestion, self.debug_info)
        return (type(self), given)


class ValidationError(MemoryError, ValueError):
    """An argument that can never work. Nothing was stored."""


class ConfigurationError(MemoryError, ValueError):
    """The configuration is no mapping, or a value of it cannot be used."""


class MemoryNotFoundError(MemoryError, ValueError):
    """No memory has this id; mem0 raises a ValueError."""


def not_found(memory_id: object, hint: str = "") -> MemoryNotFoundError:
    """Return the error for an id that names no memory."""
    return MemoryNotFoundError(
        f"Memory with id {memory_id} not found{hint}",
        "MEMORY_404",
        {"memory_id": str(memory_id)},
        "Ids come from add, get_all and search.",
    )


def needs_scope(given: Mapping[str, Any], place: str = "") -> ValidationError:
    """Return the error for a call that names neither a user nor an agent nor a run."""
    where = f"{place} must contain at least one of" if place else "At least one is required:"
    return ValidationError(
        f"{where} user_id, agent_id, run_id",
        "VALIDATION_001",
        {"provided_ids": dict(given)},
        "Name whose memories are meant; an id of None or '' names nobody.",
    )


__all__ = ["ConfigurationError", "MemoryError", "MemoryNotFoundError", "ValidationError"]

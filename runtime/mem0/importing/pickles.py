"""Pickles of other programs, read without running anything that they name.

A pickle names classes and functions, which Python imports and calls while it loads. Here only
harmless values of the standard library are made; a class of Qdrant's client or of numpy becomes a
`Stub`, which keeps what it was given and does nothing; anything else is refused.
"""

from __future__ import annotations

import collections
import datetime as dt
import io
import pickle
import uuid
from decimal import Decimal
from typing import Any, Self

_HARMLESS: dict[tuple[str, str], Any] = {
    ("builtins", "set"): set,
    ("builtins", "frozenset"): frozenset,
    ("collections", "OrderedDict"): collections.OrderedDict,
    ("datetime", "date"): dt.date,
    ("datetime", "datetime"): dt.datetime,
    ("datetime", "timedelta"): dt.timedelta,
    ("datetime", "timezone"): dt.timezone,
    ("decimal", "Decimal"): Decimal,
    ("uuid", "UUID"): uuid.UUID,
}
_STUBBED = ("qdrant_client", "numpy", "pydantic")


class Stub:
    """Stands for an object of a class that is not loaded; `state` is what it was made of."""

    state: dict[str, Any]

    def __new__(cls, *_given: Any) -> Self:
        """Take any arguments."""
        made = object.__new__(cls)
        made.state = {}
        return made

    def __setstate__(self, state: Any) -> None:
        """Keep the attributes; pydantic puts them one level deeper."""
        inner = state.get("__dict__", state) if isinstance(state, dict) else {}
        self.state = inner if isinstance(inner, dict) else {}

    def get(self, name: str) -> Any:
        """Return an attribute, None where there is none."""
        return self.state.get(name)


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        """Return what a name stands for; nothing is imported."""
        if (module, name) in _HARMLESS:
            return _HARMLESS[module, name]
        if module.partition(".")[0] in _STUBBED:
            return Stub
        msg = f"it names {module}.{name}, which is not loaded"
        raise pickle.UnpicklingError(msg)

    def persistent_load(self, _: Any) -> Any:
        """Refuse references to elsewhere."""
        msg = "it refers to something outside of it"
        raise pickle.UnpicklingError(msg)


def load(data: bytes) -> Any:
    """Return the value of a pickle.

    Raises:
        ValueError: no pickle, a damaged one, or one that names what is not allowed.
    """
    try:
        return _Reader(io.BytesIO(data)).load()
    except Exception as exc:  # noqa: BLE001 (a pickle can make each of the harmless ones raise anything)
        msg = f"its pickle cannot be read: {type(exc).__name__}: {str(exc)[:200]}"
        raise ValueError(msg) from None


def plain(value: Any) -> Any:
    """Return a value of a pickle as JSON can hold it: dates and ids as texts, sets as lists.

    Raises:
        ValueError: an object that has no such form.
    """
    match value:
        case None | bool() | int() | float() | str():
            return value
        case dict():
            return {str(key): plain(item) for key, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [plain(item) for item in value]
        case dt.date():  # a datetime is one, too
            return value.isoformat()
        case uuid.UUID() | Decimal():
            return str(value)
        case _:
            msg = f"it holds a {type(value).__name__}"
            raise ValueError(msg)

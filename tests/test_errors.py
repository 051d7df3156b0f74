"""Every error crosses processes as itself, and groups are never raised."""

from __future__ import annotations

import copy
import importlib
import pickle

import msgspec
import pytest

import reverie
from reverie.memory_graph import errors
from reverie.memory_graph.errors import InternalError, ReverieError, WireError

KINDS = sorted(
    (k for k in vars(errors).values() if isinstance(k, type) and issubclass(k, ReverieError)),
    key=lambda kind: kind.__name__,
)
LEAVES = [kind for kind in KINDS if not kind.__subclasses__()]
GROUPS = [kind for kind in KINDS if kind.__subclasses__()]
DETAILS = {"user_id": "李雷", "seq": 7, "ratio": 0.5, "found": True, "none": None, "keys": ["a"]}


def same(a: ReverieError, b: ReverieError) -> bool:
    return type(a) is type(b) and a.message == b.message and a.details == b.details


@pytest.mark.parametrize("kind", LEAVES)
def test_pickled_copied_and_sent(kind: type[ReverieError]) -> None:
    error = kind("was wolltest du? 你要什么？", **DETAILS)  # type: ignore[arg-type]
    assert same(pickle.loads(pickle.dumps(error)), error)
    assert same(copy.copy(error), error)
    sent = msgspec.msgpack.encode(error.to_wire())
    back = ReverieError.from_wire(msgspec.msgpack.decode(sent, type=WireError))
    assert same(back, error)
    assert back.user_id == "李雷"  # type: ignore[attr-defined]
    assert str(back) == "was wolltest du? 你要什么？"
    assert kind.__doc__


@pytest.mark.parametrize("group", GROUPS)
def test_groups_are_only_caught(group: type[ReverieError]) -> None:
    with pytest.raises(TypeError, match="group"):
        group("x")
    back = ReverieError.from_wire(WireError(group.__name__, "x"))
    assert type(back) is InternalError
    assert any(issubclass(leaf, group) for leaf in LEAVES)


def test_an_unknown_error_of_another_version_is_named() -> None:
    back = ReverieError.from_wire(WireError("FutureError", "x", {"a": 1}))
    assert type(back) is InternalError
    assert back.message == "FutureError: x"
    assert back.details == {"a": 1}


def test_causes_are_chained() -> None:
    cause = KeyError("x")
    with pytest.raises(InternalError) as caught:
        raise InternalError("y").because(cause)
    assert caught.value.__cause__ is cause


def test_errors_are_also_what_python_programmers_expect() -> None:
    for group, builtin in [
        (errors.InputError, ValueError),
        (errors.NotFoundError, LookupError),
        (errors.StateError, RuntimeError),
        (errors.StorageError, OSError),
        (errors.ModelError, RuntimeError),
        (errors.UnavailableError, RuntimeError),
    ]:
        assert issubclass(group, builtin)


def test_all_are_in_the_module_that_the_docs_name() -> None:
    from reverie import errors as public
    from reverie.errors import InputError

    assert importlib.import_module("reverie.errors") is public is reverie.errors
    assert issubclass(InputError, ValueError)
    assert set(public.__all__) == {kind.__name__ for kind in KINDS}
    assert all(getattr(public, kind.__name__) is kind for kind in KINDS)

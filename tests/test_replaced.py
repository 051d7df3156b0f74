"""A shard that was replaced gives no answers, and a client waits for its actors within a bound."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from support import START

from reverie.actors import commands as c
from reverie.actors.residents import ShardSettings, open_partitions
from reverie.actors.shard import Shard, open_shard
from reverie.memory_graph import errors
from reverie.memory_graph.drafts import MemoryDraft

WHO: dict[str, Any] = {"world": "w", "user_id": "ana"}


def folder(path: Path) -> Path:
    for name in ("partitions", "indices", "traces"):
        (path / name).mkdir(exist_ok=True)
    return path


def shard(path: Path, owner: str) -> Shard:
    return open_shard(folder(path), [0], 1, ShardSettings(), owner)


def remember(text: str) -> c.Remember:
    return c.Remember(**WHO, at=START, request_id=text, draft=MemoryDraft(text))


READS: list[c.AnyCommand] = [
    c.Get(**WHO, now=START, node_id="m1"),
    c.Get(**WHO, now=START, node_id="m9"),
    c.Search(**WHO, now=START, text="bees"),
    c.Search(**WHO, now=START, text="wasps"),
    c.ListItems(**WHO, now=START),
    c.Stats(**WHO, now=START),
    c.Digest(**WHO, now=START),
    c.Turns(**WHO, now=START),
]


def test_a_shard_that_was_replaced_answers_nothing(tmp_path: Path) -> None:
    old = shard(tmp_path, "old")
    assert old.execute([remember("Ana keeps bees.")])[0].op == "ADD"
    assert not [a for a in old.execute(READS) if isinstance(a, Exception)]
    new = shard(tmp_path, "new")
    assert new.execute([remember("Ana keeps wasps.")])[0].memory_id == "m2"
    refused = [*old.execute([c.Flush()]), *old.execute(READS)]
    refused += old.execute([*READS, remember("No.")])
    for _ in range(2):  # reopening does not help
        next(iter(old.partitions.values()))._db._break("planted")
        refused += old.execute([*READS, remember("No.")])
    assert {type(answer) for answer in refused} == {errors.FencedError}
    assert len(new.execute([c.ListItems(**WHO, now=START)])[0].items) == 2
    for one in (old, new):
        one.close()


# -- an actor, without Ray around it ------------------------------------------------------


def actor_of(path: Path, owner: str) -> Any:
    from reverie.actors.ray_backend import ShardActor

    return ShardActor(str(path), [0], 1, msgspec.msgpack.encode(ShardSettings()), owner)


def ask(actor: Any, *batch: c.AnyCommand) -> list[Any]:
    from reverie.actors.ray_backend import _decoded

    return _decoded(actor.execute(msgspec.msgpack.encode(list(batch))), list(batch))


def claim(path: Path, owner: str) -> None:
    for partition in open_partitions(folder(path), [0], owner).values():
        partition.close()


@pytest.mark.ray
def test_an_actor_of_a_client_that_was_replaced_cannot_come_back(tmp_path: Path) -> None:
    claim(tmp_path, "client 1")
    claim(tmp_path, "client 2")
    owner = actor_of(tmp_path, "client 2")
    late = actor_of(tmp_path, "client 1")
    for _ in range(2):
        answers = ask(late, remember("No."), READS[0])
        assert [type(answer) for answer in answers] == [errors.FencedError] * 2
    assert ask(owner, remember("Yes."))[0].op == "ADD"
    owner.stop()


@pytest.mark.ray
def test_an_actor_that_finds_itself_replaced_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[int] = []
    monkeypatch.setattr(os, "_exit", ended.append)
    claim(tmp_path, "client")
    old = actor_of(tmp_path, "client")
    new = actor_of(tmp_path, "client")
    assert ask(new, remember("Yes."))[0].op == "ADD"
    assert ended == []
    ask(old, remember("No."))
    assert ended == [1]
    for actor in (old, new):
        actor.stop()


@pytest.mark.ray
def test_an_actor_outlives_any_error_of_its_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ray starts no actor again whose `__init__` raised."""
    from reverie.actors import ray_backend, ray_hosts

    def fail(*_: object, **__: object) -> Any:
        msg = "too many open files"
        raise OSError(msg)

    claim(tmp_path, "client")
    with monkeypatch.context() as patch:
        patch.setattr(ray_backend, "open_shard", fail)
        patch.setattr(ray_hosts, "open_embedder", fail)
        broken = actor_of(tmp_path, "client")
        host = ray_hosts.EmbedderActor("standin", str(tmp_path), 1)
        with pytest.raises(OSError, match="too many"):  # Ray brings it to the client
            ask(broken, remember("No."))
    _, error = host.call("info")
    assert error.code == "ModelFailedError"
    broken._open = actor_of(tmp_path, "client")._open
    assert ask(broken, remember("Yes."))[0].op == "ADD"
    broken.stop()


# -- the client's side --------------------------------------------------------------------


class FakeActor:
    """Answers each call with the next outcome, the last one for ever: an answer; an error, raised
    when it is waited for; or a list of one error, raised when the call is sent."""

    def __init__(self) -> None:
        self.outcomes: list[Any] = []
        self.calls = 0
        self.execute = self.call = self

    def remote(self, *_: Any) -> Any:
        self.calls += 1
        outcome = self.outcomes.pop(0) if len(self.outcomes) > 1 else self.outcomes[0]
        if isinstance(outcome, list):
            raise outcome[0]
        return outcome


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeActor:
    """A Ray whose time passes by sleeping only."""
    ray = pytest.importorskip("ray")
    from reverie.actors import ray_backend, ray_hosts

    now = [1000.0]

    def get(ref: Any, timeout: float) -> Any:
        if isinstance(ref, Exception):
            raise ref
        return ref

    def sleep(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr(ray, "get", get)
    for module in (ray_backend, ray_hosts):
        monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
        monkeypatch.setattr(module.time, "sleep", sleep)
    return FakeActor()


def line(actor: FakeActor, retry_s: float = 10.0) -> Callable[[], bytes]:
    from reverie.actors.ray_backend import _Line

    way = _Line(actor, retry_s=retry_s, call_timeout_s=5.0)
    return lambda: way.wait(b"", way.send(b""))


def of_task(cause: Exception) -> Exception:
    from ray.exceptions import RayTaskError

    error: Exception = RayTaskError("execute", "trace", cause)  # type: ignore[no-untyped-call]
    return error


@pytest.mark.ray
def test_a_call_is_repeated_while_ray_has_no_room(fake: FakeActor) -> None:
    from ray.exceptions import ActorUnavailableError, ObjectStoreFullError, OutOfDiskError

    fake.outcomes = [
        [ObjectStoreFullError()],  # when it is sent
        of_task(OutOfDiskError()),  # when the actor stores its answer
        ActorUnavailableError("away", b"1" * 16),
        b"done",
    ]
    assert line(fake)() == b"done"
    fake.outcomes = [[ObjectStoreFullError()]]
    with pytest.raises(errors.ShardUnavailableError, match="within 10 s"):
        line(fake)()


@pytest.mark.ray
def test_what_an_actor_raises_is_not_repeated(fake: FakeActor) -> None:
    fake.outcomes = [of_task(ValueError("planted"))]
    with pytest.raises(errors.InternalError, match="planted"):
        line(fake)()
    assert fake.calls == 1


@pytest.mark.ray
@pytest.mark.parametrize("retry_s", [0.0, 0.5, 10.0])
def test_calls_behind_one_that_gave_up_are_tried_once_each(fake: FakeActor, retry_s: float) -> None:
    from ray.exceptions import ActorUnavailableError

    away = ActorUnavailableError("away", b"1" * 16)
    call = line(fake, retry_s)
    fake.outcomes = [away]
    with pytest.raises(errors.ShardUnavailableError):
        call()
    first = fake.calls
    assert (first > 1) == (retry_s > 0)
    for waiting in range(1, 6):
        with pytest.raises(errors.ShardUnavailableError):
            call()
        assert fake.calls == first + waiting
    fake.outcomes = [b"back"]
    assert call() == b"back"
    fake.outcomes = [away]  # gone once more: all of the time is there again
    with pytest.raises(errors.ShardUnavailableError):
        call()
    assert fake.calls == 2 * first + 6


def embedder(actors: list[FakeActor]) -> Any:
    import itertools
    import threading

    from reverie.actors.ray_hosts import RayEmbedder

    made: Any = RayEmbedder.__new__(RayEmbedder)
    made._actors, made._turns = actors, itertools.cycle(range(len(actors)))
    made._lock, made._retry_s = threading.Lock(), 10.0
    return made


@pytest.mark.ray
def test_a_model_host_may_take_its_time_to_come_back(fake: FakeActor) -> None:
    from ray.exceptions import ActorUnavailableError

    away = ActorUnavailableError("away", b"1" * 16)
    fake.outcomes = [away] * 8 + [(np.ones((1, 2), np.float32), None)]
    assert embedder([fake]).embed(["text"], "passage").shape == (1, 2)
    fake.outcomes = [away]
    with pytest.raises(errors.ModelUnavailableError, match="within 10 s"):
        embedder([fake]).embed(["text"], "passage")
    assert issubclass(errors.ModelUnavailableError, errors.UnavailableError)  # no fault of a turn


@pytest.mark.ray
def test_a_model_host_tells_its_share_about_pairs(fake: FakeActor, tmp_path: Path) -> None:
    from reverie.actors.ray_hosts import EmbedderActor

    host = EmbedderActor("standin", str(tmp_path), 1)
    fake.outcomes = [host.call("pair_share")]
    assert embedder([fake]).pair_share() == 0.0
    fake.outcomes = [host.call("weigh_pairs", [("用户住在杭州", "用户搬到了深圳")])]
    with pytest.raises(errors.ConfigError, match="no adapter"):
        embedder([fake]).weigh_pairs([("用户住在杭州", "用户搬到了深圳")])
    fake.outcomes = [([[0.1, 0.2, 0.3, 0.4]], None)]
    assert embedder([fake]).weigh_pairs([("a", "b")]) == [[0.1, 0.2, 0.3, 0.4]]


@pytest.mark.ray
def test_what_a_model_raises_is_its_failure(fake: FakeActor) -> None:
    fake.outcomes = [of_task(ValueError("planted"))]
    with pytest.raises(errors.ModelFailedError, match="planted"):
        embedder([fake]).embed(["text"], "passage")
    assert fake.calls == 1
    with pytest.raises(errors.ClosedError):
        embedder([]).embed(["text"], "passage")

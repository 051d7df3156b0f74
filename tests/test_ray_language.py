"""Language model hosts on Ray: shared out, started again, and told apart from faults of a call."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest
from local_ray import local_ray
from tiny_llama import write_llama

from reverie.actors.language import open_language_model
from reverie.memory_graph.errors import (
    ClosedError,
    ConfigError,
    InvalidValueError,
    ModelMissingError,
    ModelTimeoutError,
    ModelUnavailableError,
    OverloadedError,
)
from reverie.models.language import HostedModel, LanguageSettings, open_in_process
from reverie.models.protocol import ChatMessage
from reverie.models.usage import Meter

HOSTS = 2

pytestmark = pytest.mark.ray


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> LanguageSettings:
    path = write_llama(tmp_path_factory.mktemp("tiny") / "tiny.gguf")
    return LanguageSettings(model=str(path), call_timeout_s=60)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with local_ray() as ray:
        yield ray


@pytest.fixture
def model(cluster: Any, settings: LanguageSettings) -> Iterator[HostedModel]:
    with open_language_model(settings, meter=Meter(), ray_hosts=HOSTS) as model:
        yield model


def pids(cluster: Any, model: Any) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = cluster.get(
        [actor.pids.remote() for actor in model._inner.actors], timeout=120
    )
    return found


def test_hosts_answer_like_the_model_itself_and_outlive_kills(
    cluster: Any, model: HostedModel, settings: LanguageSettings
) -> None:
    with open_in_process(settings) as here:
        assert model.info == here.info
        expected = here.complete("the tale", max_tokens=6)
        messages = [ChatMessage("user", "你好")]
        assert model.count_prompt(messages) == here.count_prompt(messages)
        assert model.choose(["the"], ["a", "b"]) == here.choose(["the"], ["a", "b"])
    before = pids(cluster, model)
    assert len({pid for pair in before for pid in pair}) == 2 * HOSTS
    for pid in (before[0][1], before[1][0]):  # one child, and another's actor
        os.kill(pid, signal.SIGKILL)
        assert all(model.complete("the tale", max_tokens=6) == expected for _ in range(2 * HOSTS))
    after = pids(cluster, model)
    assert after[0][0] == before[0][0]
    assert {after[0][1], *after[1]}.isdisjoint({before[0][1], *before[1]})
    until = time.monotonic() + 30
    while Path(f"/proc/{before[1][1]}").exists():  # the child of the actor that died
        assert time.monotonic() < until
        time.sleep(0.05)
    model.clear()
    with pytest.raises(InvalidValueError):
        model.complete("the", max_tokens=3, grammar="root ::= root")
    with pytest.raises(InvalidValueError):
        model.complete("\ud800", max_tokens=3)
    model.close()
    with pytest.raises(ClosedError):
        model.count_tokens("x")


def test_what_cannot_be_opened(cluster: Any, tmp_path: Path, settings: LanguageSettings) -> None:
    with pytest.raises(ModelMissingError):
        open_language_model(LanguageSettings(folder=str(tmp_path)), meter=Meter(), ray_hosts=1)
    for hosts in (-1, 65):
        with pytest.raises(ConfigError):
            open_language_model(settings, meter=Meter(), ray_hosts=hosts)


def test_a_slow_call_is_ended_and_its_actor_is_not(
    cluster: Any, settings: LanguageSettings
) -> None:
    quick = msgspec.structs.replace(settings, call_timeout_s=1.0)
    with open_language_model(quick, meter=Meter(), ray_hosts=1) as model:
        expected = model.complete("the tale", max_tokens=6)
        ((actor, child),) = pids(cluster, model)
        os.kill(child, signal.SIGSTOP)
        with pytest.raises(ModelTimeoutError):
            model.complete("the tale", max_tokens=6)
        assert model.complete("the tale", max_tokens=6) == expected
        ((same_actor, other_child),) = pids(cluster, model)
        assert (same_actor, other_child == child) == (actor, False)


def test_calls_that_wait_are_bounded(cluster: Any, settings: LanguageSettings) -> None:
    narrow = msgspec.structs.replace(settings, max_waiting=3)
    with open_language_model(narrow, meter=Meter(), ray_hosts=1) as model:
        ((_, child),) = pids(cluster, model)
        os.kill(child, signal.SIGSTOP)
        with ThreadPoolExecutor(3) as pool:
            calls = [pool.submit(model.count_tokens, "a") for _ in range(3)]
            time.sleep(1.0)
            with pytest.raises(OverloadedError):
                model.count_tokens("a")
            os.kill(child, signal.SIGCONT)
            assert [call.result(60) for call in calls] == [1, 1, 1]


def test_a_host_that_does_not_come_back_is_unavailable(
    cluster: Any, settings: LanguageSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    from reverie.actors import ray_language

    class Dead:
        """An actor that is always starting."""

        call = property(lambda self: self)

        def remote(self, data: bytes) -> object:
            msg = "starting"
            raise cluster.exceptions.ActorUnavailableError(msg, None)

    short = msgspec.structs.replace(settings, retry_s=0.3)
    with open_language_model(short, meter=Meter(), ray_hosts=1) as model:
        inner: Any = model._inner
        monkeypatch.setattr(inner, "actors", [Dead()])
        assert isinstance(inner, ray_language.RayLanguageModel)
        with pytest.raises(ModelUnavailableError, match=r"within 0.3 s"):
            model.count_tokens("x")
        monkeypatch.undo()
        assert model.count_tokens("a") == 1

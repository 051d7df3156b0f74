"""kill -9 of the model host amid background extractions: each turn is done, or known as failed."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest
from local_ray import local_ray
from support import Always, fact, opened
from tiny_llama import write_llama

from reverie import Runtime
from reverie.actors import ingest
from reverie.actors.language import open_language_model
from reverie.memory_graph.drafts import Decision
from reverie.memory_graph.errors import ModelFailedError, ModelUnavailableError
from reverie.models.host import ProcessLanguageModel
from reverie.models.language import LanguageSettings
from reverie.models.protocol import Extraction, LanguageModel, Turn
from reverie.models.usage import Meter, MeteredLanguageModel

USERS, TURNS = 10, 20  # of each: 200 in all
KILLS = 8
GARBAGE_EVERY = 17
WAIT_S = 120.0
ADDS = Always(Decision("ADD"))

Pids = Callable[[], Sequence[int]]

pytestmark = [pytest.mark.slow]


class AsksTheModel:
    """Keeps each turn as a memory, if the model has anything to say to it."""

    def __init__(self, model: LanguageModel) -> None:
        self.model = model
        self.done = 0

    def extract(self, turns: Sequence[Turn], history: Sequence[Turn]) -> list[Extraction]:
        found = []
        for turn in turns:
            answer = self.model.complete(turn.text, max_tokens=60)
            if "garbage" in turn.text:
                raise ModelFailedError("garbage: " + answer.text)
            found.append(Extraction(turn.id, (fact(turn.text, sources=(turn.id,)),)))
            self.done += 1
        return found


@pytest.fixture
def settings(tmp_path: Path) -> LanguageSettings:
    path = write_llama(tmp_path / "tiny.gguf")
    return LanguageSettings(model=str(path), retry_s=60, call_timeout_s=60)


@pytest.fixture(params=["process", pytest.param("ray", marks=pytest.mark.ray)])
def hosted(
    request: pytest.FixtureRequest, settings: LanguageSettings
) -> Iterator[tuple[MeteredLanguageModel, Pids]]:
    """The model, and whom to kill for it: its process; with Ray two of them, and their actors."""
    if request.param == "process":
        with open_language_model(settings, meter=Meter()) as model:
            inner = model._inner
            assert isinstance(inner, ProcessLanguageModel)
            yield model, lambda: [inner.pid] if inner.pid else []
        return
    with local_ray() as ray, open_language_model(settings, meter=Meter(), ray_hosts=2) as model:

        def pids() -> list[int]:
            found: list[int] = []
            for actor in model._inner.actors:  # type: ignore[attr-defined]
                with suppress(ray.exceptions.RayError):
                    found += [p for p in ray.get(actor.pids.remote(), timeout=20) if p]
            return found

        yield model, pids


def texts_of(user: int) -> list[str]:
    """What a user says; some of it the extractor cannot bear."""
    texts = []
    for turn in range(TURNS):
        kind = "garbage" if (user * TURNS + turn) % GARBAGE_EVERY == 0 else "message"
        texts.append(f"{kind} {turn} of {user}: the boats come and go. 第{turn}条消息")
    return texts


def kill_some(pids: Pids, extractor: AsksTheModel, total: int) -> int:
    """Kill hosts at random moments while there is work; return how many were hit before its end."""
    rng, kills = random.Random(7), 0
    until = time.monotonic() + WAIT_S
    while kills < KILLS and extractor.done < total and time.monotonic() < until:
        time.sleep(rng.uniform(0.05, 0.4))
        for pid in rng.sample(found := list(pids()), min(1, len(found))):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                kills += extractor.done < total
    return kills


def check_each_turn_once(rt: Runtime) -> None:
    """Each turn is a memory, or in quarantine, and no turn is both or twice."""
    failed = {(u.user_id, turn) for u in rt.quarantined() for turn in u.turn_ids}
    for number in range(USERS):
        user = rt.user(str(number))
        turns = {item.id: item.text for item in user.list(types="message").items}
        assert sorted(turns.values()) == sorted(texts_of(number))
        kept = Counter(source for item in user.list().items for source in item.sources)
        assert set(kept.values()) == {1}
        bad = {turn for turn, text in turns.items() if text.startswith("garbage")}
        assert set(kept) == turns.keys() - bad
        assert {turn for who, turn in failed if who == str(number)} == bad
        assert {item.text for item in user.list().items} == {turns[turn] for turn in kept}


def test_kill_9_of_the_host_amid_200_background_extractions(
    hosted: tuple[MeteredLanguageModel, Pids], tmp_path: Path
) -> None:
    model, pids = hosted
    extractor = AsksTheModel(model)
    good = sum(text.startswith("message") for u in range(USERS) for text in texts_of(u))
    # Every turn is kept by its own text: no two of them are to be taken for near duplicates.
    with opened(tmp_path / "data", extractor=extractor, decider=ADDS) as rt:
        for number in range(USERS):
            rt.user(str(number)).add(texts_of(number))
        kills = kill_some(pids, extractor, good)
        rt.drain(WAIT_S)
        stats = rt.stats()
        assert (stats.pending, stats.quarantined) == (0, USERS * TURNS - good)
        check_each_turn_once(rt)
    assert kills > 0
    used = model.meter.used("default", "0")
    assert used.calls >= TURNS
    assert used.prompt_tokens > 0


def test_turns_wait_for_a_host_that_is_away(
    settings: LanguageSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is quarantined however long it takes, and it goes on by itself."""
    monkeypatch.setattr(ingest, "RETRY_S", 0.1)
    path = Path(settings.model)
    impatient = msgspec.structs.replace(settings, retry_s=0.2)
    with (
        open_language_model(impatient, meter=Meter()) as model,
        opened(tmp_path / "data", extractor=AsksTheModel(model), decider=ADDS) as rt,
    ):
        inner = model._inner
        assert isinstance(inner, ProcessLanguageModel)
        path.rename(tmp_path / "away.gguf")
        assert inner.pid is not None
        os.kill(inner.pid, signal.SIGKILL)
        rt.user("ana").add(["One. 一。", "Two. 二。"])
        with pytest.raises(ModelUnavailableError):
            rt.drain(WAIT_S)
        for _ in range(5):
            time.sleep(0.2)
            assert rt.stats().quarantined == 0
            assert rt.user("ana").stats().pending == 2
        assert rt.ingestor.counts.failed == 0
        (tmp_path / "away.gguf").rename(path)
        until = time.monotonic() + WAIT_S
        while rt.user("ana").stats().pending:
            assert time.monotonic() < until
            time.sleep(0.05)
        assert rt.user("ana").stats().memories == 2


def test_what_is_postponed_is_tried_again_though_others_are_busy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest, "RETRY_S", 0.5)
    away = threading.Event()

    class Away:
        """Cannot be reached for one user's turns, at first."""

        def extract(self, turns: Sequence[Turn], history: Sequence[Turn]) -> list[Extraction]:
            if "ana" in turns[0].text and not away.is_set():
                msg = "away"
                raise ModelUnavailableError(msg)
            return [Extraction(turn.id, (fact(turn.text, sources=(turn.id,)),)) for turn in turns]

    with opened(tmp_path / "data", extractor=Away()) as rt:
        rt.user("ana").add("I am ana.")
        with pytest.raises(ModelUnavailableError):
            rt.drain(WAIT_S)
        away.set()
        until, number = time.monotonic() + 20, 0
        while rt.user("ana").stats().pending:  # somebody always speaks within RETRY_S
            assert time.monotonic() < until
            number += 1
            rt.user("bo").add(f"This is message {number}.")
            time.sleep(0.1)
        assert number > 1


def test_kills_as_the_fault_of_the_turns_are_noticed(
    settings: LanguageSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A planted bug: with an ingestor that does not postpone, the tests above would fail."""
    impatient = msgspec.structs.replace(settings, retry_s=0.2)
    monkeypatch.setattr(ingest, "_POSTPONING", ())
    with (
        open_language_model(impatient, meter=Meter()) as model,
        opened(tmp_path / "data", extractor=AsksTheModel(model), decider=ADDS) as rt,
    ):
        inner = model._inner
        assert isinstance(inner, ProcessLanguageModel)
        Path(settings.model).rename(tmp_path / "away.gguf")
        assert inner.pid is not None
        os.kill(inner.pid, signal.SIGKILL)
        for number in range(USERS):
            rt.user(str(number)).add(texts_of(number)[:2])
        rt.drain(WAIT_S)
        assert rt.stats().quarantined > 0

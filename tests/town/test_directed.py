"""A town with a language model: what it chooses happens; where it fails the script goes on; and the
log of it plays the town again."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from town_models import Leaning, chooses, large
from town_played import SMALL, Played

from reverie.memory_graph.errors import (
    ConfigError,
    DataFolderError,
    ModelFailedError,
    ModelTimeoutError,
)
from reverie.models.catalog import default_folder, model_path
from reverie.models.host import ProcessLanguageModel
from reverie.town import Outcome, Plan, run
from reverie.town.director import (
    GARBAGE,
    LATE,
    LEFT_ALONE,
    NO_MODEL,
    PATIENCE,
    SPENT,
)
from reverie.town.record import reasons
from reverie.town.scene import CONFIDE, TWIST
from reverie.town.schedule import HOURS as DAY
from reverie.town.script_log import NAME, UNSEEN, choices, read_log, texts
from reverie.town.truth import Truth, compare
from reverie.town.words import is_new

MANY = 28  # scenes a day: two in each hour


# -- a town with a model -----------------------------------------------------------------------


def directed(
    plan: Plan,
    model: object | None,
    at_end: Callable[[Outcome], None] | None = None,
    **changes: object,
) -> Outcome:
    settings = {} if model is None else {"language_model": model, "summaries": "written"}
    return run(msgspec.structs.replace(plan, settings=settings, **changes), at_end=at_end)


def played_with(plan: Plan, model: object | None, **changes: object) -> tuple[Outcome, Truth]:
    """A town whose memories are compared with its script, too, which takes a third of the time."""
    found: list[Truth] = []

    def finish(outcome: Outcome) -> None:
        found.append(compare(outcome.play))

    return directed(plan, model, finish, **changes), found[0]


def plan_in(folder: Path) -> Plan:
    return msgspec.structs.replace(SMALL, folder=folder, scenes=MANY, what_if=False)


@pytest.fixture(scope="module")
def driven(tmp_path_factory: pytest.TempPathFactory) -> tuple[Outcome, Truth]:
    """Two days in which a large model likes to tell, to lie, and to make peace."""
    liked = iter(range(10_000))

    def answer(prompt: str) -> str:
        turns = (CONFIDE, TWIST, "peace", "gift", "quarrel", "refusal")
        at = next(liked) % len(turns)
        return chooses(*turns[at:], *turns[:at])(prompt)

    plan = plan_in(tmp_path_factory.mktemp("driven") / "t")
    return played_with(plan, large(answer), save_day=1, what_if=True)


def test_what_a_model_chooses_happens_and_nobody_knows_what_he_cannot(
    driven: tuple[Outcome, Truth],
) -> None:
    outcome, truth = driven
    assert truth.holds, truth
    scenes = outcome.play.record.scenes
    assert len(scenes) > 40
    assert all(scene.by_model for scene in scenes)
    ledger = outcome.play.book.ledger
    chosen = {h.id for h in ledger.happenings.values() if h.by_model}
    told = [t for t in ledger.tellings if t.by_model]
    assert chosen == {scene.event for scene in scenes if scene.event in chosen}
    assert len(chosen) > 10
    assert len(told) == sum(scene.took in {CONFIDE, TWIST} for scene in scenes) > 3
    assert any(t.distortion for t in told)
    for happening in ledger.happenings.values():
        assert happening.by_model == (happening.id in chosen)
    words = [scene for scene in scenes if scene.words]
    assert any(scene.words.isascii() for scene in words)
    assert any(not scene.words.isascii() for scene in words)
    assert all(ledger.happenings[scene.event].text == scene.words for scene in words)


def test_the_report_tells_who_chose(driven: tuple[Outcome, Truth]) -> None:
    from reverie.town.report import page

    outcome, truth = driven
    made = page(outcome, truth)
    assert "What was chosen" in made
    assert "large:1" in made
    scenes = outcome.play.record.scenes
    assert f"{len(scenes)} of {len(scenes)} by the model" in made
    worded = next(scene for scene in scenes if scene.words and scene.words.isascii())
    assert worded.words in made


def test_it_is_played_again_from_its_log(driven: tuple[Outcome, Truth], tmp_path: Path) -> None:
    outcome, _ = driven
    folder = outcome.plan.folder
    again = run(Plan(folder=tmp_path / "t", replay=folder))
    assert again.digests == outcome.digests
    assert again.play.book.ledger == outcome.play.book.ledger
    assert again.play.record.scenes == outcome.play.record.scenes
    assert again.other is not None
    assert outcome.other is not None
    assert again.other.book.ledger == outcome.other.book.ledger
    assert again.model == "large:1"
    first, second = (read_log(path)[1] for path in (folder, tmp_path / "t" / NAME))
    assert choices(first) == choices(second)
    assert choices(first, UNSEEN) == choices(second, UNSEEN)
    assert texts(first) == texts(second)
    assert texts(first)


def test_a_resumed_town_goes_on_as_chosen(driven: tuple[Outcome, Truth], tmp_path: Path) -> None:
    """With its log also without its model; without both, by the script."""
    outcome, _ = driven
    folder = shutil.copytree(outcome.plan.folder, tmp_path / "t")
    plan = msgspec.structs.replace(plan_in(folder), scenes=None, resume=True, save_day=1)
    for _ in range(2):
        resumed = directed(plan, None)
        assert resumed.digests == outcome.digests
        assert resumed.play.record.scenes == outcome.play.record.scenes
    (folder / NAME).unlink()
    resumed, truth = played_with(plan, None)
    assert truth.holds, truth
    after = [scene for scene in resumed.play.record.scenes if scene.tick >= DAY]
    assert after
    assert reasons(after) == {NO_MODEL: len(after)}
    assert resumed.play.record.scenes[: -len(after)] == [
        scene for scene in outcome.play.record.scenes if scene.tick < DAY
    ]


def test_a_model_that_fails_leaves_the_choice_to_the_script(tmp_path: Path, plain: Outcome) -> None:
    model = large(lambda _: "no JSON")
    outcome = directed(plan_in(tmp_path / "t"), model, days=1)
    assert outcome.digests == plain.digests  # so nobody knows what he cannot, here too
    scenes = outcome.play.record.scenes
    assert [scene.took for scene in scenes] == [s.took for s in plain.play.record.scenes]
    assert reasons(scenes) == {GARBAGE: PATIENCE, LEFT_ALONE: len(scenes) - PATIENCE}
    assert len(model.calls) == PATIENCE


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """A day whose scenes are the script's."""
    plan = plan_in(tmp_path_factory.mktemp("plain") / "t")
    outcome, truth = played_with(plan, None, days=1)
    assert truth.holds, truth
    assert reasons(outcome.play.record.scenes) == {NO_MODEL: len(outcome.play.record.scenes)}
    return outcome


def test_a_model_that_comes_back_is_asked_again(tmp_path: Path, plain: Outcome) -> None:
    answers = iter([ModelTimeoutError("late")] * (PATIENCE - 1))

    def answer(prompt: str) -> str | Exception:
        return next(answers, None) or chooses("gift", words=False)(prompt)

    outcome, truth = played_with(plan_in(tmp_path / "t"), large(answer), days=1)
    assert truth.holds, truth
    scenes = outcome.play.record.scenes
    assert reasons(scenes) == {LATE: PATIENCE - 1}
    assert {scene.took for scene in scenes[PATIENCE - 1 :]} == {"gift"}
    assert outcome.digests != plain.digests


def test_a_budget_is_kept(tmp_path: Path) -> None:
    model = large(chooses("gift"))
    plan = plan_in(tmp_path / "t")
    settings = {"language_model": model, "model_calls": 1}
    outcome = run(msgspec.structs.replace(plan, days=1, settings=settings))
    scenes = outcome.play.record.scenes
    assert SPENT in reasons(scenes)
    assert len(model.calls) == len({scene.who for scene in scenes if scene.by_model}) > 0
    assert len(model.calls) == sum(scene.by_model for scene in scenes)


def test_without_scenes_a_model_changes_nothing(tmp_path: Path, played: Played) -> None:
    model = large(lambda _: ModelFailedError("not to be asked"))
    outcome = directed(plan_in(tmp_path / "t"), model, scenes=0)
    assert outcome.digests == played.outcome.digests
    assert not outcome.play.record.scenes
    assert not (played.outcome.plan.folder / NAME).exists()


def test_a_small_model_directs_too(tmp_path: Path) -> None:
    model = Leaning({"forgives": 0.5, "lies": 0.5})
    outcome, truth = played_with(plan_in(tmp_path / "t"), model, days=1)
    assert truth.holds, truth
    scenes = outcome.play.record.scenes
    assert all(scene.by_model and not scene.words for scene in scenes)
    took = {scene.took for scene in scenes if {"peace", TWIST} & set(scene.offered)}
    assert {"peace", TWIST} <= took


# -- logs --------------------------------------------------------------------------------------


def test_a_log_that_does_not_fit_is_refused(driven: tuple[Outcome, Truth], tmp_path: Path) -> None:
    log = driven[0].plan.folder / NAME
    lines = log.read_bytes().splitlines(keepends=True)
    bad = tmp_path / "bad.jsonl"

    def replay(**changes: object) -> Outcome:
        given = {"folder": tmp_path / "t", "replay": bad, **changes}
        return run(Plan(**given))  # type: ignore[arg-type]  # a plan's own fields

    for content, error, words in (
        (b"", DataFolderError, "no script log"),
        (b"{}\n", DataFolderError, "cannot be read"),
        (b'{"line":"scene"}\n', DataFolderError, "cannot be read"),
        (b"".join(lines[1:]), DataFolderError, "no script log"),
        (b"".join(lines[:3]), ConfigError, "does not have scene"),
        (b"".join([*lines[:3], lines[3].replace(b'"took":"', b'"took":"x')]), ConfigError, "has"),
        (b"".join(lines).replace(b'"seed":1', b'"seed":2', 1), ConfigError, "something else"),
        (b"".join(lines).replace(b"standin", b"another", 1), ConfigError, "embedder"),
    ):
        bad.write_bytes(content)
        with pytest.raises(error, match=words):
            replay(days=1, given=("days",))
        assert error is ConfigError or not (tmp_path / "t").exists()
        shutil.rmtree(tmp_path / "t", ignore_errors=True)
    with pytest.raises(DataFolderError, match="cannot be read"):
        replay(replay=tmp_path / "none")
    bad.write_bytes(b"".join(lines) + b'{"line":"scene","id":"d9')  # killed as it wrote
    with pytest.raises(ConfigError, match="leave --npcs out"):
        replay(npcs=9, given=("npcs",))
    with pytest.raises(ConfigError, match="needs no language model"):
        replay(settings={"language_model": large(lambda _: "")})
    one = replay(days=1, given=("days",), what_if=False)
    scenes = driven[0].play.record.scenes
    assert one.play.record.scenes == [scene for scene in scenes if scene.tick < DAY]


@pytest.mark.model
@pytest.mark.slow
def test_the_default_model_directs(tmp_path: Path) -> None:
    """Whatever it likes: it is asked, what it chooses happens, and its end ends nothing."""
    model_path("smollm2", default_folder())  # says how to get it
    plan = msgspec.structs.replace(plan_in(tmp_path / "t"), scenes=7)
    settings = {"language_model": "smollm2", "summaries": "written"}
    killed: list[int] = []
    found: list[Truth] = []

    def kill(play: object, day: int) -> None:
        if day == 1:
            model = play.rt.mind.language.model._inner  # type: ignore[attr-defined]
            assert isinstance(model, ProcessLanguageModel)
            assert model.pid is not None
            os.kill(model.pid, signal.SIGKILL)
            killed.append(model.pid)

    outcome = run(
        msgspec.structs.replace(plan, settings=settings),
        after_day=kill,
        at_end=lambda outcome: found.append(compare(outcome.play)),
    )
    assert killed
    assert found[0].holds, found[0]
    scenes = outcome.play.record.scenes
    assert 6 < len(scenes) <= 14  # at some hours nobody meets anybody
    assert all(scene.by_model for scene in scenes), reasons(scenes)
    assert len({scene.took for scene in scenes}) > 2
    again = run(Plan(folder=tmp_path / "again", replay=tmp_path / "t"))
    assert again.digests == outcome.digests


def test_is_new(driven: tuple[Outcome, Truth]) -> None:
    ledger = driven[0].play.book.ledger
    text = next(iter(ledger.happenings.values())).text
    assert not is_new(ledger, text)
    assert not is_new(ledger, text.rstrip(".。"))
    assert not is_new(ledger, f"And so {text}")
    assert is_new(ledger, "Nobody ever said such a thing in this town.")

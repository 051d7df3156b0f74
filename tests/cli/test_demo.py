"""`reverie demo` holds what it claims, and fails when something does not hold."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reverie.cli.story import Question, example_file, is_answered, load_stories, told_in_order
from reverie.memory_graph.views import Hit

Run = Callable[..., Any]
QUICK = ("demo", "--no-download", "--inline")


def claims(report: Any, words: str) -> list[bool]:
    return [claim["true"] for claim in report["claims"] if words in claim["claim"]]


def check_report(report: Any) -> None:
    assert report["held"], [c["claim"] for c in report["claims"] if not c["true"]]
    assert report["turns"] == 281
    assert report["asked"] == 44
    assert report["answered"] >= 26
    assert report["answered_after_opening_again"] >= 26
    assert claims(report, "problems found in all files: none") == [True]
    assert claims(report, "superseded") == [True, True]


def test_inline_with_the_stand_in(run_json: Run, tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    report = run_json(*QUICK, "--data", folder)
    check_report(report)
    assert claims(report, "the same state") == [True, True]
    assert run_json("stats", "--data", folder)["worlds"] == ["chinese", "english"]
    error = run_json(*QUICK, "--data", folder, expect=1)
    assert error["error"] == "DataFolderError"


def test_what_it_prints_is_readable(run: Run) -> None:
    shown = run(*QUICK).stdout
    for words in ("similar in meaning", "Facts:", "superseded", "digest", "seconds", "我住在哪里"):
        assert words in shown
    assert "FAILED" not in shown


@pytest.mark.ray
@pytest.mark.slow
def test_on_ray_actors(run_json: Run) -> None:
    report = run_json("demo", "--no-download")
    check_report(report)
    assert claims(report, "on actor 1") == [True, True]
    assert claims(report, "in this process") == [True, True]


@pytest.mark.model
@pytest.mark.slow
def test_with_models(run_json: Run) -> None:
    check_report(run_json("demo", "--inline"))


def test_it_fails_when_questions_are_not_answered(run: Run, run_json: Run, tmp_path: Path) -> None:
    for name in ("english.jsonl", "chinese.jsonl"):
        shutil.copy(example_file(name), tmp_path)
    questions = json.loads(example_file("questions.json").read_text())
    for entry in questions.values():
        for question in entry["questions"]:
            question["keywords"] = ["no text holds this"]
    (tmp_path / "questions.json").write_text(json.dumps(questions))
    files = ("--english", tmp_path / "english.jsonl", "--chinese", tmp_path / "chinese.jsonl")
    report = run_json(*QUICK, *files, expect=1)
    assert not report["held"]
    assert claims(report, "0 of 44 questions") == [False, False]
    assert "did not hold: 0 of 44" in run(*QUICK, *files, expect=1).stdout


def test_missing_files_are_named(run_json: Run, tmp_path: Path) -> None:
    error = run_json(*QUICK, "--english", tmp_path / "none.jsonl", expect=1)
    assert error["error"] == "InvalidValueError"
    assert str(tmp_path) in error["message"]
    untimed = tmp_path / "english.jsonl"
    untimed.write_text('{"text": "Hello.", "id": "first"}\n')
    shutil.copy(example_file("questions.json"), tmp_path)
    assert "'first' has none" in run_json(*QUICK, "--english", untimed, expect=1)["message"]
    with pytest.raises(ValueError, match="--english and --chinese"):
        example_file("no-such.jsonl")


def test_stories_are_told_in_the_order_of_time() -> None:
    stories = load_stories(None, None, embedder=None)
    told = list(told_in_order(stories))
    assert [at for at, _, _ in told] == sorted(at for at, _, _ in told)
    for story in stories:
        assert [turn for _, teller, turn in told if teller is story] == story.turns
        assert len(story.shown_questions()) == len({q.kind for q in story.questions}) == 6


def test_an_answer_holds_all_keywords_in_the_first_hits() -> None:
    question = Question("q", "single", "?", "!", ["Oslo", "münchen"])

    def hits(*texts: str) -> list[Hit]:
        return [
            Hit(id=t, type="memory", text=t, at=0, recorded_at=0, score=1, parts={}) for t in texts
        ]

    assert is_answered(question, hits("In OSLO", "near MÜNCHEN"))
    assert not is_answered(question, hits("In Oslo"))
    assert not is_answered(question, hits("In Oslo", *"abcd", "near München"))

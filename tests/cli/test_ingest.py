"""`reverie ingest`: what is in a file is in memory once, at its own time, or reported."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reverie import parse_time

STANDIN = ("--embedder", "standin")


def messages(run_json: Callable[..., Any], *args: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = run_json("show", "--types", "message", *args)["items"]
    return items


def test_a_file_is_stored_and_extracted(
    run_json: Callable[..., Any], run: Callable[..., Any], talk: Path
) -> None:
    report = run_json("ingest", talk, *STANDIN)
    assert (report["turns"], report["stored"], report["known"]) == (5, 5, 0)
    assert report["memories"] >= 4
    assert report["pending"] == 0
    assert report["users"] == [{"world": "default", "user": "user"}]
    found = messages(run_json)
    assert [m["external_id"] for m in found] == ["a1", "a2", "a3", "a4", "a5"]
    assert found[0]["at"] == parse_time("2024-03-01T10:00:00Z")
    assert found[0]["recorded_at"] > parse_time("2025-01-01")  # now, not then


def test_a_repeated_run_adds_nothing(
    run_json: Callable[..., Any], run: Callable[..., Any], talk: Path
) -> None:
    run("ingest", talk, *STANDIN)
    before = run_json("stats")["by_user"]
    report = run_json("ingest", talk, *STANDIN)
    assert (report["stored"], report["known"], report["memories"]) == (0, 5, 0)
    assert run_json("stats")["by_user"] == before


def test_turns_without_ids_are_known_again_too(
    run_json: Callable[..., Any], lines: Callable[..., Path]
) -> None:
    turns: list[Any] = [{"text": "Yes."}, {"text": "Yes."}, {"text": "No."}]
    assert run_json("ingest", lines(turns), *STANDIN)["stored"] == 3
    longer = lines([*turns, {"text": "I have a dog."}])
    report = run_json("ingest", longer, *STANDIN)
    assert (report["stored"], report["known"]) == (1, 3)
    assert [m["text"] for m in messages(run_json)] == ["Yes.", "Yes.", "No.", "I have a dog."]


BAD: list[Any] = [
    {"text": "One.", "id": "1"},
    "{not json",
    {"text": "Two.", "id": "2"},
    {"text": "   ", "id": "3"},
    {"text": "Another one.", "id": "1"},  # an id that stands for another text
    {"text": "Mine.", "metadata": {"user_id": "somebody"}},
    {"text": "Three.", "id": "4"},
]


def test_bad_lines_are_skipped_and_reported(
    run_json: Callable[..., Any], run: Callable[..., Any], lines: Callable[..., Path]
) -> None:
    path = lines(BAD)
    report = run_json("ingest", path, *STANDIN, "--on-bad-line", "skip")
    assert [bad["line"] for bad in report["skipped"]] == [2, 4, 5, 6]
    assert (report["turns"], report["stored"]) == (7, 3)
    assert [m["text"] for m in messages(run_json)] == ["One.", "Two.", "Three."]
    shown = run("ingest", path, *STANDIN, "--on-bad-line", "skip").stdout
    assert "4 turns skipped, lines 2, 4, 5, 6" in shown


@pytest.mark.parametrize(("first", "stored"), [(0, ["One."]), (2, ["Two."])])
def test_a_bad_line_stops_by_default_and_what_stands_before_it_is_stored(
    run_json: Callable[..., Any], lines: Callable[..., Path], first: int, stored: list[str]
) -> None:
    error = run_json("ingest", lines(BAD[first:]), *STANDIN, expect=1)
    assert error["error"] in {"InvalidValueError", "InvalidTextError"}
    assert "line 2" in error["message"]
    assert [m["text"] for m in messages(run_json)] == stored


LOCOMO = [
    {
        "sample_id": name,
        "conversation": {
            "speaker_a": "Bo",
            "speaker_b": "Cy",
            "session_1_date_time": "12:30 pm on 29 February, 2024",
            "session_1": [
                {"speaker": "Bo", "dia_id": "D1:1", "text": f"I live in {town}."},
                {"speaker": "Cy", "dia_id": "D1:2", "text": "I have a parrot."},
            ],
        },
    }
    for name, town in (("talk-1", "Bergen"), ("talk-2", "Turku"))
]


@pytest.mark.parametrize(
    ("options", "users"),
    [
        ([], [("talk-1", "user"), ("talk-2", "user")]),
        (["--user", "bo"], [("talk-1", "bo"), ("talk-2", "bo")]),
        (["--world", "all"], [("all", "talk-1"), ("all", "talk-2")]),
    ],
)
def test_each_conversation_of_locomo_has_its_own_memory(
    run_json: Callable[..., Any], tmp_path: Path, options: list[str], users: list[tuple[str, str]]
) -> None:
    path = tmp_path / "locomo.json"
    path.write_text(json.dumps(LOCOMO))
    report = run_json("ingest", path, *STANDIN, *options)
    assert [(u["world"], u["user"]) for u in report["users"]] == users
    assert report["stored"] == 4
    for (world, user), town in zip(users, ("Bergen", "Turku"), strict=True):
        texts = [m["text"] for m in messages(run_json, "--world", world, "--user", user)]
        assert texts == [f"I live in {town}.", "I have a parrot."]


def test_one_user_cannot_own_two_conversations(
    run_json: Callable[..., Any], tmp_path: Path
) -> None:
    path = tmp_path / "locomo.json"
    path.write_text(json.dumps(LOCOMO))
    both = ("--world", "w", "--user", "u")
    assert "2 conversations" in run_json("ingest", path, *STANDIN, *both, expect=1)["message"]
    path.write_text(json.dumps(LOCOMO[:1]))
    assert run_json("ingest", path, *STANDIN, *both)["users"] == [{"world": "w", "user": "u"}]


@pytest.mark.usefixtures("told")
def test_followed_time_is_the_time_of_recording(run_json: Callable[..., Any]) -> None:
    for item in messages(run_json):
        assert item["recorded_at"] == item["at"]
    home = ("show", "--filters", '{"slot": "user|lives_in"}')
    assert [m["text"] for m in run_json(*home)["items"]] == ["User lives in Oslo now"]
    earlier = run_json(*home, "--as-of", "2024-04-01")["items"]
    assert [m["text"] for m in earlier] == ["User lives in Berlin"]


def test_followed_time_never_goes_back(
    run_json: Callable[..., Any], lines: Callable[..., Path]
) -> None:
    turns: list[Any] = [
        {"text": "One.", "time": 2000},
        {"text": "Two.", "time": 1000},
        {"text": "Three."},
        {"text": "Four.", "time": 3000},
    ]
    run_json("ingest", lines(turns), *STANDIN, "--follow-time")
    assert [m["recorded_at"] for m in messages(run_json)] == [2000, 2000, 2000, 3000]
    assert [m["at"] for m in messages(run_json)] == [2000, 1000, 2000, 3000]


def test_turns_can_be_kept_without_memories(run_json: Callable[..., Any], talk: Path) -> None:
    report = run_json("ingest", talk, *STANDIN, "--no-infer")
    assert (report["stored"], report["memories"], report["pending"]) == (5, 0, 0)
    assert run_json("search", "coffee")["hits"][0]["text"] == "I love coffee."


def test_extraction_can_be_left_to_a_later_run(
    run_json: Callable[..., Any], talk: Path, lines: Callable[..., Path]
) -> None:
    assert run_json("ingest", talk, *STANDIN, "--no-wait")["stored"] == 5
    assert run_json("ingest", lines([], "empty.jsonl"), *STANDIN)["turns"] == 0
    (user,) = run_json("stats")["by_user"]
    assert user["pending"] == 0
    assert user["memories"] >= 4

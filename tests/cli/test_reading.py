"""`search`, `context`, `show` and `stats`: the same for people and for programs."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest
from rich.console import Console

from reverie.cli.search import explained, rounded_parts
from reverie.memory_graph.views import Hit

pytestmark = pytest.mark.usefixtures("told")

Run = Callable[..., Any]


def texts(found: Any) -> list[str]:
    return [item["text"] for item in found.get("hits", found.get("items"))]


def test_hits_have_a_score_and_reasons(run: Run, run_json: Run) -> None:
    found = run_json("search", "Where do I live?", "-n", 2)
    assert (found["world"], found["user"], len(found["hits"])) == ("default", "user", 2)
    hit = found["hits"][0]
    assert "Oslo" in hit["text"]
    assert hit["reasons"]
    assert hit["score"] == pytest.approx(sum(hit["parts"].values()), abs=1e-4)
    shown = run("search", "Where do I live?", "-n", 2).stdout
    assert hit["reasons"][0] in shown


@pytest.mark.parametrize("question", ["Where do I live?", "我对什么过敏？"])
@pytest.mark.parametrize("width", ["60", "220"])
def test_explained_parts_sum_to_the_score(
    run: Run, run_json: Run, monkeypatch: pytest.MonkeyPatch, question: str, width: str
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    found = run_json("search", question)["hits"]
    assert len(found) == 8
    hits = [msgspec.convert(hit, Hit) for hit in found]
    screen = Console(record=True, width=300)
    screen.print(explained(hits))
    shown = figures(screen.export_text())
    for table in (shown, figures(run("search", question, "--explain").stdout)):
        assert table.keys() == {hit.id for hit in hits}
        for *parts, total in table.values():
            assert sum(parts) == total
    for hit in hits:
        assert hit.score == pytest.approx(sum(hit.parts.values()), abs=1e-9)
        assert shown[hit.id][-1] == Decimal(f"{hit.score:.2f}")
        assert len(shown[hit.id]) == 1 + sum(1 for value in hit.parts.values() if value)


def test_a_signal_that_adds_to_no_hit_has_no_column(run: Run) -> None:
    head = run("search", "Where do I live?", "--explain").stdout.partition("─")[0].split()
    assert {"words", "around", "meaning", "sum"} <= {*head}
    assert "time" not in head
    head = run("search", "Where did I live on 1 March 2024?", "--explain").stdout.partition("─")[0]
    assert "time" in head.split()


def figures(text: str) -> dict[str, list[Decimal]]:
    """Return what stands in each row of the table of an explained search, by the id of the hit."""
    rows = [line.split() for line in text.splitlines()]
    return {
        row[0]: [Decimal(cell) for cell in row[1:] if re.fullmatch(r"-?\d+\.\d\d", cell)]
        for row in rows
        if row and re.fullmatch(r"[mt]\d+", row[0])
    }


def test_rounded_parts_sum_to_the_rounded_score() -> None:
    for parts in ({"a": 0.005, "b": 0.005, "c": 0.005}, {"a": 1.026, "b": -1.0, "c": 0.333}, {}):
        score = sum(parts.values())
        shown = rounded_parts(parts, score)
        assert sum(Decimal(f"{value:.2f}") for value in shown.values()) == Decimal(f"{score:.2f}")
        assert all(abs(shown[name] - parts[name]) < 0.01 for name in parts)


def test_why_something_comes_up_or_not(run: Run, run_json: Run) -> None:
    (best, *_, last) = run_json("search", "Where do I live?")["hits"]
    told = run_json("why", "Where do I live?", best["id"])
    assert (told["verdict"], told["rank"], told["item"]["text"]) == ("shown", 1, best["text"])
    assert "rank 1 of 8" in run("why", "Where do I live?", best["id"]).stdout
    lost = run_json("why", "Where do I live?", last["id"], "-n", 2)
    assert (lost["verdict"], lost["rank"], len(lost["ahead"])) == ("outranked", 8, 2)
    shown = run("why", "Where do I live?", last["id"], "-n", 2).stdout
    assert "Ahead of it" in shown
    assert next(iter(lost["lost"])) in shown
    old = run_json("show", "--include-retired", "--filters", '{"text": "User lives in Berlin"}')
    kept_out = run_json("why", "Where do I live?", old["items"][0]["id"])
    assert (kept_out["verdict"], kept_out["filtered_by"]) == ("filtered", ["retired"])
    mango = run("why", "我对什么过敏？", "a5", "--types", "memory").stdout
    assert "芒果" in mango
    assert "it is a message; asked for were only: memory" in mango
    assert run_json("why", "x", "m99")["verdict"] == "unknown"
    nobody = run("why", "x", "m1", "--user", "nobody")
    assert "is no memory, message or summary" in nobody.stdout
    assert "--world default --user user" in nobody.stderr


def test_searches_look_from_another_moment(run_json: Run) -> None:
    asked = ("search", "Where do I live?", "--types", "memory", "-n", 1)
    assert texts(run_json(*asked)) == ["User lives in Oslo now"]
    assert texts(run_json(*asked, "--valid-at", "2024-04-01")) == ["User lives in Berlin"]
    assert texts(run_json(*asked, "--as-of", "2024-04-01")) == ["User lives in Berlin"]
    both = run_json(*asked[:4], "--include-retired")
    assert {"User lives in Oslo now", "User lives in Berlin"} <= set(texts(both))


def test_filters_and_types_are_checked(run: Run, run_json: Run) -> None:
    only = run_json("search", "Berlin", "--types", "message", "--filters", '{"role": "assistant"}')
    assert texts(only) == ["Noted."]
    for bad, why in (("{", "no JSON"), ("[]", "object"), ('{"colour": 1}', "colour")):
        error = run_json("search", "Berlin", "--filters", bad, expect=1)
        assert error["error"] == "FilterError"
        assert why in error["message"]
    assert "memory, message" in run_json("search", "x", "--types", "all", expect=1)["message"]
    assert run_json("search", "x", "--as-of", "soon", expect=1)["error"] == "InvalidTimeError"


def test_chinese_is_found_and_shown(run: Run) -> None:
    assert "芒果" in run("search", "我对什么过敏？", "-n", 1).stdout


def test_a_context_is_the_block_alone(run: Run, run_json: Run) -> None:
    block = run_json("context", "Where do I live?", "-b", 60)
    assert 0 < block["tokens"] <= 60
    result = run("context", "Where do I live?", "-b", 60)
    assert result.stdout.startswith("Facts:\n- User lives in Oslo now (2024-05-01; from t4)\n")
    assert result.stdout.endswith(")\n")
    assert result.stderr == ""


def test_an_unknown_user_is_told_who_is_known(run: Run, run_json: Run) -> None:
    assert run_json("search", "x", "--user", "nobody")["hits"] == []
    for command in (["search", "x"], ["context", "x"], ["show"]):
        result = run(*command, "--user", "nobody")
        assert result.stdout == ""
        assert "--world default --user user" in result.stderr


def test_memories_are_listed_page_by_page(run: Run, run_json: Run) -> None:
    whole = run_json("show")
    assert whole["total"] == len(whole["items"])
    assert {item["type"] for item in whole["items"]} == {"memory"}
    paged, cursor = [], None
    while True:
        page = run_json("show", "-n", 2, *(["--cursor", cursor] if cursor else []))
        paged += page["items"]
        cursor = page["cursor"]
        if cursor is None:
            break
    assert paged == whole["items"]
    assert "go on with --cursor" in run("show", "-n", 2).stderr


def test_one_item_is_shown_with_history_and_source(run: Run, run_json: Run) -> None:
    (home,) = run_json("show", "--filters", '{"slot": "user|lives_in"}')["items"]
    one = run_json("show", home["id"])
    assert [item["text"] for item in one["history"]] == [
        "User lives in Berlin",
        "User lives in Oslo now",
    ]
    assert [source["text"] for source in one["sources"]] == ["I live in Oslo now."]
    shown = run("show", home["id"]).stdout
    assert "superseded" in shown
    assert "2024-05-01 10:00" in shown
    assert run_json("show", "a3")["item"]["text"] == "I love coffee."  # by the caller's own id
    assert run_json("show", "m99", expect=1)["error"] == "UnknownMemoryError"


def test_entities_and_neighbors(run: Run, run_json: Run) -> None:
    names = {entity["name"] for entity in run_json("show", "--entities")["entities"]}
    assert {"Berlin", "Oslo"} <= names
    assert "Oslo" in run("show", "--entities").stdout
    around = run_json("show", "--neighbors", "user")
    assert ("lives_in", "Oslo") in {(r["predicate"], r["tail"]) for r in around["relations"]}
    assert "user - lives_in - Oslo" in run("show", "--neighbors", "user").stdout
    assert run_json("show", "--neighbors", "Atlantis", expect=1)["error"] == "UnknownMemoryError"
    assert "exclude" in run("show", "m1", "--entities", expect=2).stderr


def test_stats_count(run: Run, run_json: Run) -> None:
    counted = run_json("stats")
    assert (counted["users"], counted["worlds"], counted["pending"]) == (1, ["default"], 0)
    assert counted["by_user"][0]["messages"] == 5
    assert run_json("stats", "--user", "nobody")["by_user"] == []
    assert "standin" in run("stats").stdout


def test_text_out_of_memory_does_nothing_to_the_terminal(
    run: Run, lines: Callable[..., Path]
) -> None:
    evil = "I live in [bold]Rome[/bold] \x1b[2J\x07 :smile: [link=x]"
    run("ingest", lines([{"text": evil}], "evil.jsonl"), "--user", "eve")
    shown = run("search", "Rome", "--user", "eve", "--types", "message").stdout
    assert "\x1b" not in shown
    assert "\x07" not in shown
    assert "[bold]Rome[/bold]" in shown
    assert ":smile:" in shown

"""The forms of questions and answers that training and use share."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, strategies as st

from reverie.models.prompts import (
    MAX_HAN,
    MAX_LINES,
    MAX_PAIR_CHARS,
    MAX_WORDS,
    NONE,
    RELATIONS,
    SpanFact,
    format_spans,
    pair_prompt,
    parse_spans,
    span_grammar,
    span_prompt,
    word_runs,
)

TURN = "I quit my job at Amazon last week, so I'm a UX designer now."
HAN = "我上个月搬到了深圳，现在在腾讯上班。"


def test_a_pair_is_one_line_each_whatever_the_texts_hold() -> None:
    asked = pair_prompt("User lives in\nOslo ", "User moved\tto Rome\nRelation: same")
    assert asked.split("\n") == [
        "Old: User lives in Oslo",
        "New: User moved to Rome Relation: same",
        "Relation:",
    ]
    assert len(pair_prompt("x" * 9_000, "y" * 9_000)) < 2 * MAX_PAIR_CHARS + 40


def test_runs_are_short_and_end_at_punctuation() -> None:
    runs = word_runs(TURN)
    assert {"Amazon", "UX designer", "job at Amazon last"} <= set(runs)
    assert "week so" not in runs
    assert not any("," in run for run in runs)
    assert max(len(run.split()) for run in runs) == MAX_WORDS
    han = word_runs(HAN)
    assert {"深圳", "腾讯", "上个月搬到了"} <= set(han)
    assert max(len(run) for run in han) == MAX_HAN


def test_names_with_marks_inside_stay_whole() -> None:
    runs = word_runs("I like C++, AT&T and J.R.R. at 3.5 or O'Brien")
    assert {"C++", "AT&T", "3.5", "O'Brien"} <= set(runs)


def test_an_answer_comes_back_as_it_was_written() -> None:
    facts = (
        SpanFact("User", "works_at", "Amazon", holds=False),
        SpanFact("User", "works_as", "UX designer"),
    )
    assert parse_spans(format_spans(facts), TURN, ("User",)) == (facts, 0)
    assert parse_spans(NONE, TURN, ("User",)) == ((), 0)
    assert parse_spans("", TURN, ("User",)) == ((), 0)


@pytest.mark.parametrize(
    "line",
    [
        "User | works_at | Google",  # not in the turn
        "User | invented | Amazon",
        "Ana | works_at | Amazon",  # nobody
        "User | works_at | week, so",
        "User | Amazon",
        "User | works_at | Amazon | now",
    ],
)
def test_what_does_not_stand_on_the_turn_is_dropped_and_counted(line: str) -> None:
    assert parse_spans(line, TURN, ("User",)) == ((), 1)


def test_more_lines_than_allowed_are_dropped_and_repeats_are_not_counted() -> None:
    line = "User | works_at | Amazon"
    assert parse_spans(f"{line}\n{line}", TURN, ("User",))[1] == 0
    many = "\n".join(f"User | {relation} | Amazon" for relation in RELATIONS[: MAX_LINES + 2])
    found, dropped = parse_spans(many, TURN, ("User",))
    assert (len(found), dropped) == (MAX_LINES, 2)


def test_history_is_short_and_the_turn_comes_last() -> None:
    asked = span_prompt(HAN, "用户", [("a", "1"), ("助手", "你住哪？"), ("b", "x" * 900)])
    lines = asked.split("\n")
    assert lines[0] == "助手: 你住哪？"
    assert len(lines[1]) < 300
    assert lines[2] == f"用户: {HAN}"


@given(st.text(max_size=120), st.text(max_size=12))
def test_a_grammar_has_a_rule_for_each_rule_that_it_names(text: str, speaker: str) -> None:
    rules = dict(line.split(" ::= ", 1) for line in span_grammar(text, (speaker,)).splitlines())
    assert "root" in rules
    for body in rules.values():
        bare = re.sub(r'"(?:[^"\\]|\\.)*"|\{0,\d\}', " ", body)
        assert set(re.findall(r"[a-z]+\d*", bare)) <= set(rules)


@given(st.text(max_size=200))
def test_every_run_is_accepted_as_a_span(text: str) -> None:
    for run in word_runs(text):
        if "|" not in run:
            found, dropped = parse_spans(f"User | likes | {run}", text, ("User",))
            assert (len(found), dropped) == (1, 0)

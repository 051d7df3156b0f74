"""Generated data: what it is made of, that splits do not meet, that labels mean what they say."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given, strategies as st

from reverie.models.prompts import MAX_LINES, PAIR_CHOICES, RELATIONS, format_spans, parse_spans
from reverie.models.rules import RELATION_PREDICATES
from reverie.models.training import LABELS, cases, pairs, spans
from reverie.models.training.decisions import CASES, OPERATIONS
from reverie.models.training.lexicon import (
    LANGUAGES,
    SPLITS,
    TRAINED,
    Kind,
    Language,
    Split,
    kinds,
    kinds_of,
    values,
)
from reverie.models.training.pairs import Label, Scene, make_pair, related
from reverie.models.training.spans import bank

languages = st.sampled_from(LANGUAGES)
splits = st.sampled_from(SPLITS)
seeds = st.integers(0, 1000)


def lists_of(kind: Kind) -> set[str]:
    return ({kind.values} | {name for _, name in kind.keyed}) - {""}


@pytest.mark.parametrize("language", LANGUAGES)
def test_kinds_are_many_and_each_is_complete(language: Language) -> None:
    found = kinds(language)
    assert len(found) == len({kind.name for kind in found}) >= 150
    assert sum(kind.split == "heldout" for kind in found) >= 10
    assert sum(kind.split == "unseen" for kind in found) >= 10
    assert sum(kind.split == "late" for kind in found) >= 10
    assert sum(kind.split == "validation" for kind in found) >= 15
    for kind in found:
        assert kind.pairs or len(kind.state) >= 2, kind.name
        assert lists_of(kind), kind.name
        for name in lists_of(kind):
            assert len(values(language, name, "train")) >= 2, name
            assert len(values(language, name, "heldout")) >= 2, name
        for template in (*kind.change, *kind.swap):
            assert kind.one or kind.swap or "{o}" not in template, template


@pytest.mark.parametrize("language", LANGUAGES)
def test_splits_meet_in_no_kind_and_no_word(language: Language) -> None:
    train, wide, validation, test, heldout, unseen, late = (
        {kind.name for kind in kinds_of(language, split)} for split in SPLITS
    )
    assert train == test < wide
    for one, two in combinations((wide, validation, heldout, unseen, late), 2):
        assert one
        assert two
        assert not one & two
    for name in ("first", "city", "food", "job", "gameitem", "@phone"):
        seen = {way for value in values(language, name, "train") for way in value}
        rest = {way for value in values(language, name, "test") for way in value}
        assert seen
        assert rest
        assert not seen & rest, name


def test_the_same_seed_gives_the_same_pairs_and_another_gives_others() -> None:
    one = list(pairs("train", 300, seed=1))
    assert one == list(pairs("train", 300, seed=1))
    two = list(pairs("train", 300, seed=2))
    assert len({(p.old, p.new) for p in one} & {(p.old, p.new) for p in two}) < 10


@pytest.mark.slow
def test_ten_thousand_pairs_are_cheap_various_and_in_both_languages() -> None:
    found = list(pairs("train", 10_000, seed=1))
    assert len({(p.old, p.new) for p in found}) == 10_000
    by_label = Counter(p.label for p in found)
    assert set(by_label) == set(LABELS)
    assert min(by_label.values()) > 1_000
    assert len({p.shape for p in found}) >= 18
    assert 2_500 < sum(p.language == "zh" for p in found) < 4_500
    assert not any("{" in p.old + p.new for p in found)


@pytest.mark.slow
def test_no_pair_of_the_tests_is_a_pair_of_training() -> None:
    train = {(p.old, p.new) for trained in TRAINED for p in pairs(trained, 4_000, seed=1)}
    for split in ("validation", "heldout", "unseen", "late"):
        assert not train & {(p.old, p.new) for p in pairs(split, 400, seed=5)}, split
    assert len(train & {(p.old, p.new) for p in pairs("test", 400, seed=5)}) < 4


@given(languages, splits, seeds, st.sampled_from(LABELS))
def test_a_pair_is_two_different_statements(
    language: Language, split: Split, seed: int, label: str
) -> None:
    import random

    rng = random.Random(seed)
    kind = rng.choice(kinds_of(language, split))
    made = make_pair(kind, label, language, split, rng)  # type: ignore[arg-type]
    if made is not None:
        assert made.old.strip()
        assert made.new.strip()
        assert made.old.rstrip(".。").casefold() != made.new.rstrip(".。").casefold()


def shapes_of(language: Language, name: str, label: Label) -> set[str]:
    """The shapes that pairs of a kind with a label come in."""
    import random

    rng = random.Random(3)
    kind = next(kind for kind in kinds(language) if kind.name == name)
    made = (make_pair(kind, label, language, "train", rng) for _ in range(300))
    return {pair.shape for pair in made if pair is not None}


@pytest.mark.parametrize(
    ("language", "name", "shape", "label"),
    [
        ("en", "home", "changed", "replaced"),
        ("en", "likes_food", "reversed", "replaced"),
        ("en", "likes_food", "another", "unrelated"),
        ("en", "kin", "other_key", "unrelated"),
        ("en", "employer", "ended", "ended"),
        ("en", "pet", "end_other", "unrelated"),
        ("en", "employer", "denied", "ended"),
        ("en", "pet", "denied_other", "unrelated"),
        ("zh", "home", "denied", "ended"),
        ("zh", "home", "changed", "replaced"),
        ("zh", "allergy", "paraphrase", "same"),
        ("zh", "gameitem", "ended", "ended"),
    ],
)
def test_shapes_carry_their_label(language: Language, name: str, shape: str, label: Label) -> None:
    assert shape in shapes_of(language, name, label)
    assert not any(shape in shapes_of(language, name, other) for other in LABELS if other != label)


@pytest.mark.slow
def test_many_valued_kinds_never_replace_by_another_value() -> None:
    many = {kind.name for lang in LANGUAGES for kind in kinds(lang) if not kind.one}
    one = {kind.name for lang in LANGUAGES for kind in kinds(lang) if kind.one}
    for pair in pairs("train", 6_000, seed=4):
        if pair.shape in {"other_value", "changed"}:
            assert pair.kind in one
        if pair.shape == "another":
            assert pair.kind in many
            assert pair.label == "unrelated"


def test_what_training_has_more_of_leaves_the_other_splits_alone() -> None:
    only_trained = {"denied", "denied_other"}
    assert only_trained <= {p.shape for p in pairs("train", 1_500, seed=6)}
    for split in ("validation", "test", "heldout"):
        assert not only_trained & {p.shape for p in pairs(split, 1_500, seed=6)}


def test_a_scene_has_other_people_and_other_values() -> None:
    import random

    kind = next(kind for kind in kinds("en") if kind.name == "home")
    scene = Scene(kind, "en", "train", random.Random(2))
    assert len(set(scene.values)) == 3
    assert scene.subject != scene.other_subject


# -- cases ------------------------------------------------------------------------------


@pytest.mark.parametrize("split", ["heldout", "unseen", "late"])
def test_the_cases_left_out_are_enough_of_kinds_that_training_lacks(split: Split) -> None:
    found = cases(split)
    assert len(found) >= 200
    trained = {kind.name for lang in LANGUAGES for kind in kinds_of(lang, "wide")}
    assert not {case.kind for case in found} & trained
    assert {case.op for case in found} == set(OPERATIONS.values())
    assert sum(case.lang == "zh" for case in found) >= 60


@pytest.mark.parametrize("split", SPLITS)
def test_a_case_names_a_memory_that_it_holds(split: Split) -> None:
    assert CASES[split] >= 240  # what `write_cases` writes when not told how many
    for case in cases(split, 60):
        ids = [memory.id for memory in case.memories]
        assert ids == list(range(1, len(ids) + 1))
        assert (case.target is None) == (case.op == "ADD")
        assert case.target is None or case.target in ids
        assert case.candidate not in {memory.text for memory in case.memories}


def test_memories_beside_the_target_have_nothing_to_do_with_it() -> None:
    by_name = {kind.name: kind for kind in kinds("en")}
    assert related(by_name["home"], by_name["address"])
    assert not related(by_name["home"], by_name["employer"])


def test_cases_are_written_as_lines_that_the_benchmark_reads(tmp_path: Path) -> None:
    file = tmp_path / "cases.jsonl"
    module = "reverie.models.training.write_cases"
    subprocess.run([sys.executable, "-m", module, "heldout", file, "--count", "20"], check=True)
    lines = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    assert len(lines) == 20
    assert {"id", "lang", "memories", "candidate", "op", "target", "kind"} <= set(lines[0])


# -- spans ------------------------------------------------------------------------------


def test_relations_are_those_of_the_rules_and_each_is_taught() -> None:
    assert set(RELATIONS) <= RELATION_PREDICATES
    taught = {clause.relation for lang in LANGUAGES for clause in bank(lang).clause}
    assert set(RELATIONS) - taught <= {"father"}
    assert taught <= set(RELATIONS)


@given(seeds)
def test_every_answer_stands_on_its_turn(seed: int) -> None:
    for case in spans("train", 20, seed=seed):
        found, dropped = parse_spans(format_spans(case.facts), case.text, (case.speaker,))
        assert dropped == 0
        assert set(found) == set(case.facts)
        assert len(case.facts) <= MAX_LINES


def test_turns_are_of_both_languages_and_some_state_nothing() -> None:
    found = list(spans("train", 2_000, seed=1))
    assert found == list(spans("train", 2_000, seed=1))
    assert 450 < sum(case.language == "zh" for case in found) < 950
    assert 200 < sum(not case.facts for case in found) < 600
    assert any(not fact.holds for case in found for fact in case.facts)
    assert {case.speaker for case in found} > {"User", "用户"}


def test_choices_and_labels_agree() -> None:
    assert tuple(choice.strip() for choice in PAIR_CHOICES) == LABELS
    assert set(OPERATIONS) == set(LABELS)
    assert set(get_args(Split)) == set(SPLITS)

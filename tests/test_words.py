"""Text analysis and the word index, against a plain BM25 that recounts everything each time."""

from __future__ import annotations

import math
import sys
import threading
import tracemalloc
import unicodedata
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from reverie.memory_graph import text as analysis, words as words_module
from reverie.memory_graph.asked import hash_of
from reverie.memory_graph.errors import InvalidValueError
from reverie.memory_graph.text import (
    join_surfaces,
    name_key,
    normalise,
    query_terms,
    scripts,
    terms,
)
from reverie.memory_graph.words import WordIndex

# -- text ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("She works at the harbour", ["work", "harbour"]),
        ("Where is she working? In Oslo!", ["work", "oslo"]),
        ("I don't know, it's Ana's; she'll go", ["know", "ana", "go"]),
        ("I don’t know, it’s Ana’s", ["know", "ana"]),
        ("O'Brien met Jean-Luc", ["obrien", "brien", "met", "jeanluc", "jean", "luc"]),
        ("café, CAFE\u0301, cafe", ["cafe", "cafe", "cafe"]),
        ("3.5 km in 2023, at 10:30", ["3.5", "km", "2023", "10:30"]),
        ("2023-05-01 cost 1,000,000 or 12,50", ["2023", "05", "01", "cost", "1000000", "12,50"]),
        ("the U.S.A. and J.R.R. Tolkien", ["usa", "jrr", "tolkien"]),
        ("GPT-4 at 3pm", ["gpt4", "gpt", "3pm"]),
        ("ｆｕｌｌ　ｗｉｄｔｈ １２", ["full", "width", "12"]),
        ("co\u00adop\u200berate", ["cooper"]),
        ("", []),
        ("?! -- ...", []),
    ],
)
def test_english_and_numbers(text: str, expected: list[str]) -> None:
    assert terms(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("我喜欢猫", ["我喜", "喜欢", "欢猫", "喜", "欢", "猫"]),
        ("猫", ["猫"]),
        ("我的", []),  # function characters only
        ("5月3日去了Oslo。", ["5", "月", "3", "日去", "去了", "日", "去", "oslo"]),
        ("カレーだ", ["カレ", "レー", "ーだ"]),
        ("집에 개", ["집에", "개"]),
        ("葛飾区の", ["葛飾", "飾区", "区の", "葛", "飾", "区"]),
    ],
)
def test_scripts_without_spaces_give_pairs(text: str, expected: list[str]) -> None:
    assert terms(text) == expected


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("живёт в Москве", "жила Москва"),  # Russian: stems, and yo as written
        ("الكُتُب", "كتب"),  # Arabic: article and vowel points
        ("٢٠٢٣", "2023"),
        ("Ελληνικά", "ΕΛΛΗΝΙΚΑ"),
        ("שָׁלוֹם", "שלום"),
        ("हिन्दी", "हिन्दी में"),
        ("🍕!", "a 🍕 pizza"),
        ("Straße", "STRASSE"),
        ("ชอบแมว", "แมวตัวหนึ่ง"),
    ],
)
def test_other_scripts_meet(one: str, other: str) -> None:
    assert set(terms(one)) & set(terms(other))


def test_the_language_is_that_of_the_latin_words() -> None:
    assert terms("Les chats de la maison", "french") == ["chat", "maison"]
    assert terms("les chats", "none") == ["les", "chats"]
    assert "amour" in terms("l'amour", "french")
    assert terms("running в Осло", "russian") == ["run", *terms("Осло")]
    with pytest.raises(InvalidValueError, match="klingon"):
        terms("text", "klingon")
    with pytest.raises(InvalidValueError, match="klingon"):
        WordIndex(language="klingon")


def test_query_terms_keep_the_writing_of_the_text() -> None:
    assert query_terms("Living in Oslo") == [("live", "Living"), ("oslo", "Oslo")]
    assert query_terms("ＯＳＬＯ") == [("oslo", "OSLO")]
    assert ("strass", "strasse") in query_terms("Straße")  # longer when folded: shown folded


def test_join_surfaces_makes_words_whole() -> None:
    assert join_surfaces(["喜欢", "欢猫", "猫", "Oslo", "Oslo"]) == ["喜欢猫", "Oslo"]
    assert join_surfaces(["art", "tart"]) == ["art", "tart"]


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("The Beatles", "beatles"),
        ("  a  red\thouse! ", "red house"),
        ("An Nguyen", "an nguyen"),
        ("A Coruña", "a coruña"),
        ("the", "the"),
        ("C#", "c#"),
        ("“Ana”", "ana"),
        ("O’Brien", "o'brien"),
        ("«Париж»", "париж"),
        ("（東京）", "東京"),
        ("?!", "?!"),
    ],
)
def test_name_key(name: str, key: str) -> None:
    assert name_key(name) == key


def test_scripts_are_shares_of_letters() -> None:
    assert scripts("Ana 喜欢 123!") == {"han": 2 / 5, "latin": 3 / 5}
    assert scripts("123 !?") == {}


@given(st.text(max_size=60))
def test_any_text_is_analysed(text: str) -> None:
    folded = normalise(text)
    assert normalise(folded) == folded
    found = query_terms(text)
    assert [term for term, _ in found] == terms(text)
    assert all(term and surface for term, surface in found)
    if any(char.isalpha() for char in text):
        assert name_key(text)


@given(st.text(st.characters(categories=["Ll", "Lu", "Mn", "Mc", "Lo"]), max_size=20))
def test_composed_and_decomposed_text_are_the_same(text: str) -> None:
    assert terms(unicodedata.normalize("NFD", text)) == terms(unicodedata.normalize("NFC", text))


def test_threads_do_not_disturb_each_other() -> None:
    numbered = [f"running{'s' * (i % 7)}x{i} houses happily" for i in range(2000)]
    expected = [terms(text) for text in numbered]
    analysis.clear_caches()
    wrong: list[str] = []

    def work() -> None:
        wrong.extend(t for t, e in zip(numbered, expected, strict=True) if terms(t) != e)

    threads = [threading.Thread(target=work) for _ in range(4)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.setswitchinterval(interval)
    assert not wrong


# -- the index -------------------------------------------------------------------------


class Twin:
    """BM25 as it is written in the paper, over a dict of texts."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    def add(self, node_id: str, text: str) -> None:
        self.texts.pop(node_id, None)
        self.texts[node_id] = text

    def scores(self, query: str) -> dict[str, float]:
        documents = {i: Counter(terms(text)) for i, text in self.texts.items()}
        total = sum(d.total() for d in documents.values())
        out = dict.fromkeys(documents, 0.0)
        for term in terms(query):
            df = sum(term in d for d in documents.values())
            idf = math.log(1 + (len(documents) - df + 0.5) / (df + 0.5))
            for i, d in documents.items():
                if term in d:
                    norm = 1.5 * (1 - 0.75 + 0.75 * d.total() * len(documents) / total)
                    out[i] += idf * d[term] * 2.5 / (d[term] + norm)
        return out

    def search(
        self, query: str, k: int, allowed: Callable[[str], bool] = lambda _: True
    ) -> list[tuple[str, float]]:
        found = [(i, round(s, 6)) for i, s in self.scores(query).items() if s > 0 and allowed(i)]
        return sorted(found, key=lambda hit: -hit[1])[:k]  # stable: ties by age


def _is_even(node_id: str) -> bool:
    return node_id.isdecimal() and int(node_id) % 2 == 0


def assert_same(index: WordIndex, twin: Twin, query: str, k: int) -> None:
    assert len(index) == len(twin.texts)
    for allowed in (None, _is_even):
        hits = index.search(query, k, allowed)
        wanted = twin.search(query, k, allowed or (lambda _: True))
        assert [i for i, _ in hits] == [i for i, _ in wanted]
        assert [s for _, s in hits] == pytest.approx([s for _, s in wanted], abs=2e-6)
    ids = [*twin.texts, "unknown"]
    scores = [*twin.scores(query).values(), 0.0]
    assert index.score(query, ids).tolist() == pytest.approx(scores, abs=1e-5)
    for node_id, text in twin.texts.items():
        shared = {t for t, _ in query_terms(query)} & set(terms(text))
        matched = index.matched(query_terms(query), node_id)
        assert bool(matched) == bool(shared)
        if text.isascii() and query.isascii():
            assert matched == join_surfaces([s for t, s in query_terms(query) if t in shared])


WORDS = ["cat", "dogs", "house", "Oslo", "the", "running", "run", "红", "茶", "红茶", "3.5"]
TEXTS = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)
IDS = st.integers(0, 12).map(str)
OPERATIONS = st.one_of(
    st.tuples(st.just("add"), IDS, TEXTS),
    st.tuples(st.just("remove"), IDS),
    st.tuples(st.just("erase"), st.lists(IDS, max_size=3)),
    st.tuples(st.just("search"), TEXTS, st.integers(-1, 15)),
)


@given(st.lists(OPERATIONS, max_size=40))
@settings(max_examples=150, deadline=None)
def test_random_operations_agree_with_the_twin(operations: list[tuple[Any, ...]]) -> None:
    with pytest.MonkeyPatch.context() as patch:  # so that a few documents reach every tier
        patch.setattr(words_module, "_MIN_TAIL_DOCUMENTS", 3)
        patch.setattr(words_module, "_MIN_DEAD", 2)
        index, twin = WordIndex(), Twin()
        for name, *arguments in operations:
            if name == "add":
                index.add(*arguments)
                twin.add(*arguments)
            elif name == "remove":
                assert index.remove(arguments[0]) == (arguments[0] in twin.texts)
                twin.texts.pop(arguments[0], None)
            elif name == "erase":
                index.erase(arguments[0])
                for node_id in arguments[0]:
                    twin.texts.pop(node_id, None)
            else:
                assert_same(index, twin, arguments[0], max(0, arguments[1]))
                assert index.search(arguments[0], 0) == index.search(arguments[0], -1) == []
        assert_same(index, twin, "cats run 红茶 home oslo oslo", 10)


def test_many_documents_agree_with_the_twin() -> None:
    rng = np.random.default_rng(5)
    index, twin = WordIndex(), Twin()
    for i in range(700):
        text = " ".join(f"w{min(int(w), 300)}" for w in rng.zipf(1.3, rng.integers(1, 20)))
        index.add(str(i), text)
        twin.add(str(i), text)
        if i % 97 == 0:
            index.search("w1", 1)  # build in several steps
        if i % 5 == 0:
            index.remove(str(i // 2))
            twin.texts.pop(str(i // 2), None)
    for query in ("w1 w2 w3", "w7 w7 w300", "w55", "none"):
        assert_same(index, twin, query, 20)
    index.add("loud", "w9 " * 300)  # counts over one byte
    twin.add("loud", "w9 " * 300)
    assert_same(index, twin, "w9", 3)


def test_steps_of_building_do_not_show() -> None:
    texts = [(str(i), f"cat w{i % 17} w{i % 5} house w{i % 3}") for i in range(300)]
    at_once, stepwise = WordIndex(), WordIndex()
    at_once.add_many(texts)
    for node_id, text in texts:
        stepwise.add(node_id, text)
        stepwise.search("cat", 1)
    assert at_once.search("w1 w2 cat", 300) == stepwise.search("w1 w2 cat", 300)


def test_a_chinese_question_finds_its_answer() -> None:
    index = WordIndex()
    index.add_many([("tea", "她最喜欢喝红茶"), ("cat", "他养了一只猫"), ("en", "She likes tea")])
    assert index.search("红茶", 3)[0][0] == "tea"
    assert [i for i, _ in index.search("猫呢？", 3)] == ["cat"]
    assert index.matched(query_terms("你喜欢红茶吗"), "tea") == ["喜欢", "红茶"]


def test_nothing_is_analysed_before_the_first_search(monkeypatch: pytest.MonkeyPatch) -> None:
    index = WordIndex()
    monkeypatch.setattr(analysis, "_word_terms", None)  # analysing would raise
    index.add_many((str(i), "some text") for i in range(500))
    assert index.remove("3")
    assert "3" not in index
    assert len(index) == 499
    with pytest.raises(TypeError):
        index.search("text", 1)


def test_erased_documents_leave_no_trace() -> None:
    def holds(index: WordIndex, term: str) -> bool:
        wanted = hash_of(term)
        return wanted in index._base.terms or wanted in index._tail.terms

    index = WordIndex()
    index.add_many((f"m{i}", f"common text{i}") for i in range(100))
    index.search("common", 1)
    index.add("late", "common secret")
    index.search("common", 1)
    index.add("pending", "common riddle")
    assert holds(index, "text5")
    assert holds(index, "secret")
    index.erase(["m5", "late", "pending", "unknown"])
    assert analysis._word_terms.cache_info().currsize == 0
    assert not holds(index, "text5")
    assert not holds(index, "secret")
    assert not holds(index, "riddl")
    assert not {"m5", "late", "pending"} & {*index._ids, *index._rows}
    assert index._pending == []
    assert len(index.search("common", 200)) == 99


def test_memory_of_a_small_index() -> None:
    rng = np.random.default_rng(1)
    texts = [
        (f"m{i}", " ".join([*(f"w{min(int(w), 2000)}" for w in rng.zipf(1.2, 10)), *["the"] * 5]))
        for i in range(200)
    ]
    for _, text in texts:  # the caches of words are the process's, not the user's
        for term in terms(text):
            hash_of(term)
    tracemalloc.start()
    index = WordIndex()
    index.add_many(texts)
    index.search("w1", 1)
    used = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert used / 200 < 250
    assert index.size_bytes == pytest.approx(used, rel=0.4)

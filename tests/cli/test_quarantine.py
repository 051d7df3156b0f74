"""`reverie quarantine`: what failed twice is listed, tried again, or given up and kept a turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import reverie
from reverie.memory_graph.errors import UnknownMemoryError
from reverie.models.protocol import Extraction, Turn
from reverie.models.rules import RulesExtractor
from reverie.models.standin import HashEmbedder

Run = Callable[..., Any]

TURNS = ["I live in Berlin.", "I live in Oslo. Boom.", "我住在上海。轰。", "I love tea."]


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """The rules raise on some turns, within the block."""
    real = RulesExtractor.extract

    def extract(
        self: RulesExtractor, turns: Sequence[Turn], history: Sequence[Turn]
    ) -> list[Extraction]:
        if bad := [t.text for t in turns if "oom" in t.text or "轰" in t.text]:
            msg = f"cannot read {bad[0]}"
            raise RuntimeError(msg)
        return real(self, turns, history)

    with monkeypatch.context() as patch:
        patch.setattr(RulesExtractor, "extract", extract)
        yield patch


@pytest.fixture
def away(failing: pytest.MonkeyPatch, data: Path) -> pytest.MonkeyPatch:
    """Two of the user's four turns are in quarantine, and one of Bo's in another world."""
    with reverie.open(data, embedder="standin", background=False) as rt:
        rt.user("user").add(TURNS, wait=True)
        rt.user("bo", "moon").add("boom!", wait=True)
    return failing


@pytest.mark.usefixtures("away")
def test_the_list_says_whose_and_why(run: Run, run_json: Run) -> None:
    rows = run_json("quarantine", "list")["turns"]
    assert [(r["world"], r["user"], r["text"]) for r in rows] == [
        ("default", "user", TURNS[1]),
        ("default", "user", TURNS[2]),
        ("moon", "bo", "boom!"),
    ]
    assert rows[0]["error"] == f"RuntimeError: cannot read {TURNS[1]}"
    shown = run("quarantine", "list", "--world", "moon").stdout
    assert "boom!" in shown
    assert "Oslo" not in shown
    assert run_json("quarantine", "list", "--user", "nobody")["turns"] == []
    assert "no turn" in run("quarantine", "list", "--user", "nobody").stderr


def test_a_retry_extracts_what_the_model_can_read_by_now(
    away: pytest.MonkeyPatch, run: Run, run_json: Run
) -> None:
    assert run_json("quarantine", "retry", "--all") == {"retried": 2, "failed": 2}
    away.undo()
    first, _ = run_json("quarantine", "list", "--world", "default")["turns"]
    assert run_json("quarantine", "retry", first["id"]) == {"retried": 1, "failed": 0}
    assert "again: 1, back in quarantine: 0" in run("quarantine", "retry", "--all").stdout
    texts = {item["text"] for item in run_json("show", "--include-retired")["items"]}
    assert any("Oslo" in text for text in texts)
    assert any("上海" in text for text in texts)


def test_what_is_given_up_stays_a_turn_that_is_found(
    away: pytest.MonkeyPatch, run: Run, run_json: Run
) -> None:
    before = run_json("show", "--include-retired")["items"]
    first, second = run_json("quarantine", "list", "--world", "default")["turns"]
    assert run_json("quarantine", "drop", second["id"]) == {"dropped": 1}
    assert "given up" in run("quarantine", "drop", "--all").stdout
    away.undo()
    assert run_json("quarantine", "list", "--world", "default")["turns"] == []
    assert run_json("quarantine", "retry", "--all") == {"retried": 0, "failed": 0}
    assert run_json("show", "--include-retired")["items"] == before
    for question, row in (("我住在哪里？", second), ("Where do I live? Oslo", first)):
        hits = run_json("search", question, "--types", "message")["hits"]
        assert hits[0]["id"] == row["id"]
        assert hits[0]["parts"].get("meaning", 0) > 0  # it has a vector


@pytest.mark.usefixtures("away")
def test_turns_must_be_named(run: Run, run_json: Run) -> None:
    for command in ("retry", "drop"):
        assert "--all" in run("quarantine", command, expect=2).stderr
        assert run_json("quarantine", command, "t1", "--all", expect=2)["error"]
        wrong = run_json("quarantine", command, "t99", expect=1)
        assert wrong["error"] == "UnknownMemoryError"
    assert len(run_json("quarantine", "list")["turns"]) == 3


@pytest.mark.usefixtures("away")
def test_a_drop_is_journaled_and_survives(data: Path) -> None:
    with reverie.open(data, embedder="standin", background=False) as rt:
        with pytest.raises(UnknownMemoryError):
            rt.drop_quarantined("user", turn_ids=["t1"])  # extracted: nothing to give up
        assert rt.drop_quarantined("user") == 2
        assert rt.drop_quarantined("user") == 0
        kept = rt.user("user").digest()
        assert rt.user("user").stats().quarantined == 0
        assert rt.user("bo", "moon").stats().quarantined == 1
    with reverie.open(data, embedder="standin", background=False) as rt:
        assert rt.user("user").digest() == kept
        assert rt.check() == []


class _Deaf(HashEmbedder):
    """Cannot embed "boom"."""

    def embed(self, texts: Sequence[str], role: Any) -> Any:
        if any("boom" in text for text in texts):
            msg = "deaf"
            raise RuntimeError(msg)
        return super().embed(texts, role)


def test_a_turn_that_cannot_be_embedded_is_given_up_all_the_same(tmp_path: Path) -> None:
    with reverie.open(tmp_path / "deaf", embedder=_Deaf(32), background=False) as rt:
        ana = rt.user("ana")
        ana.add(["I live in Berlin.", "boom"], wait=True)
        assert rt.drop_quarantined("ana") == 1
        assert ana.stats().quarantined == 0
        assert rt.check() == []

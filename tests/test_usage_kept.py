"""What the language model has cost is kept with the data folder, and goes with the user."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from fake_language import FakeLanguageModel

import reverie
from reverie import errors
from reverie.memory_graph.ids import Key
from reverie.models.usage import Meter, Usage, UsageRow
from reverie.usage import FILE, KeptUsage

EMPTY = '{"memories": [], "entities": [], "relations": []}'
SAID = "My sister keeps goats by the river. 我姐姐在河边养羊。"


def opened(path: Path, **settings: Any) -> reverie.Runtime:
    model = FakeLanguageModel(lambda _: EMPTY)
    return reverie.open(path, embedder="standin", language_model=model, **settings)


def row(user_id: str, calls: int = 1) -> UsageRow:
    return UsageRow("港口", user_id, "extract", Usage(calls, prompt_tokens=7, seconds=0.5))


def meter_of(*rows: UsageRow) -> Meter:
    meter = Meter()
    meter.restore(rows)
    return meter


def test_usage_is_counted_over_all_runs(tmp_path: Path) -> None:
    for run in (1, 2):
        with opened(tmp_path) as rt:
            rt.user("安娜", "港口").add(SAID, wait=True)
            rt.user("bo").add(SAID, wait=True)
            (found,) = rt.usage("港口")
            assert (found.world, found.user_id, found.purpose) == ("港口", "安娜", "extract")
            assert found.usage.calls == run
            assert found.usage.prompt_tokens > found.usage.completion_tokens > 0
            assert [r.user_id for r in rt.usage(user_id="bo")] == ["bo"]
            assert len(rt.usage()) == 2
            assert rt.usage("nowhere") == []
    with reverie.open(tmp_path, embedder="standin") as rt:  # without a model
        assert [r.usage.calls for r in rt.usage()] == [2, 2]


def test_a_budget_holds_over_runs_until_it_is_reset(tmp_path: Path) -> None:
    for calls, refused in ((1, 0), (1, 1)):
        with opened(tmp_path, model_calls=1) as rt:
            rt.user("ana").add(SAID, wait=True)
            (found,) = rt.usage()
            assert (found.usage.calls, found.usage.refused) == (calls, refused)
    with opened(tmp_path, model_calls=1) as rt:
        rt.reset_usage("ana")
        assert rt.usage() == []
        rt.user("ana").add(SAID, wait=True)
        assert [r.usage.calls for r in rt.usage()] == [1]
        with pytest.raises(errors.InputError):
            rt.reset_usage("")


def test_nothing_is_left_of_who_is_forgotten(tmp_path: Path) -> None:
    with opened(tmp_path) as rt:
        for name in ("安娜", "bo"):
            rt.user(name).add(SAID, wait=True)
    with opened(tmp_path) as rt:
        before = (tmp_path / FILE).open("rb")  # the blocks that the file has now
        rt.user("安娜").forget()
        assert {r.user_id for r in rt.usage()} == {"bo"}
        assert "安娜" not in (tmp_path / FILE).read_text("utf-8")
        assert before.read().strip() == b""
        before.close()
    with opened(tmp_path) as rt:
        assert {r.user_id for r in rt.usage()} == {"bo"}


def test_a_folder_where_no_model_was_called_has_no_such_file(tmp_path: Path) -> None:
    with reverie.open(tmp_path, embedder="standin") as rt:
        rt.user("ana").add(SAID, wait=True)
    assert not (tmp_path / FILE).exists()


@pytest.mark.parametrize("junk", [b"", b"{", b"[1]", b'[{"world": 1}]', b"\xff"])
def test_a_damaged_file_counts_as_nothing(tmp_path: Path, junk: bytes) -> None:
    (tmp_path / FILE).write_bytes(junk)
    meter = Meter()
    kept = KeptUsage(meter, tmp_path)
    assert meter.rows() == []
    meter.restore([row("ana")])
    kept.save()
    again = Meter()
    KeptUsage(again, tmp_path)
    assert again.rows() == [row("ana")]


@pytest.mark.parametrize("fails", ["fsync", "replace", "mkstemp"])
def test_a_full_disk_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(28, "full")

    meter = Meter()
    kept = KeptUsage(meter, tmp_path)
    meter.restore([row("ana")])
    where: Any = {"fsync": os, "replace": Path, "mkstemp": __import__("tempfile")}[fails]
    with monkeypatch.context() as patch:
        patch.setattr(where, fails, refuse)
        kept.save()
    assert list(tmp_path.iterdir()) == []
    kept.save()  # it is tried again
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


def test_what_has_not_changed_is_not_written(tmp_path: Path) -> None:
    kept = KeptUsage(meter := meter_of(row("ana")), tmp_path)
    kept.save()
    assert not (tmp_path / FILE).exists()
    meter.reset(*Key("港口", "ana"))
    kept.save()
    assert (tmp_path / FILE).read_bytes() == b"[]"

"""Closing while an extraction is under way: it is waited for, or given up and done again later."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from support import DIM, Gate, check_folder

import reverie
from reverie.models.standin import HashEmbedder


def opened(folder: Path, extractor: object) -> reverie.Runtime:
    return reverie.open(folder, embedder=HashEmbedder(DIM), extractor=extractor, partitions=4)


def test_an_extraction_that_takes_too_long_is_given_up_and_done_again(tmp_path: Path) -> None:
    gate = Gate()
    others = set(threading.enumerate())
    runtime = opened(tmp_path, gate)
    runtime.user("ana").add("Ana keeps bees. 安娜养蜂。")
    assert gate.entered.wait(30)
    runtime.close(within_s=0.05)
    with pytest.raises(reverie.errors.ClosedError):
        runtime.users()
    other = Gate()
    other.go.set()
    with opened(tmp_path, other) as again:  # at once, in the same process
        gate.go.set()  # the first one ends now: its outcome reaches nobody
        again.drain(30)
        (item,) = again.user("ana").list().items
        assert item.text == "Ana keeps bees. 安娜养蜂。"
    for thread in set(threading.enumerate()) - others:
        if thread.name == "reverie-ingest":
            thread.join(30)
    assert runtime.ingestor.counts.turns == 0
    check_folder(tmp_path)


def test_without_a_limit_it_is_waited_for(tmp_path: Path) -> None:
    gate = Gate()
    runtime = opened(tmp_path, gate)
    runtime.user("ana").add("Ana keeps bees.")
    assert gate.entered.wait(30)
    closing = threading.Thread(target=runtime.close)
    closing.start()
    closing.join(0.1)
    assert closing.is_alive()
    gate.go.set()
    closing.join(30)
    assert runtime.ingestor.counts.turns == 1
    check_folder(tmp_path)

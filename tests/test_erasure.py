"""Erasing: nothing of the user stays in any file, also when it is interrupted; others stay."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support import Factory

from reverie import errors
from reverie.memory_graph.store import Partition, search_files

CANARIES = ["canary-4711 likes green tea", "金丝雀的秘密藏在第九棵树下"]


def _left(folder: Path) -> list[str]:
    found = search_files(folder, [c.encode() for c in [*CANARIES, "canary-user"]])
    return [f"{path.name}: {n}" for places in found.values() for path, n in places]


@pytest.fixture
def factory(tmp_path: Path) -> Factory:
    return Factory(tmp_path, None)


def test_an_interrupted_erasure_is_finished_at_the_next_opening(
    factory: Factory, monkeypatch: pytest.MonkeyPatch
) -> None:
    rt = factory(trace=True, background=False)  # a reader would reopen the failed partition
    user, other = rt.user("canary-user"), rt.user("other")
    for text in CANARIES * 3:
        user.add(text, wait=True)
        user.remember(text)
        other.remember(f"other: {len(text)}")
    kept = other.digest()

    def crash(_partition: Partition) -> None:
        msg = "the power went"
        raise errors.StorageFailedError(msg)

    with monkeypatch.context() as patch:
        patch.setattr(Partition, "scrub", crash)
        with pytest.raises(errors.StorageFailedError):
            user.forget()
    shutil.copytree(factory.folder / "data", factory.folder / "killed")  # closing would scrub
    assert _left(factory.folder / "killed")  # rows are gone, copies are not
    rt.close()
    rt = factory("killed")
    assert _left(factory.folder / "killed") == []
    assert rt.users() == ["other"]
    assert rt.user("other").digest() == kept
    factory.finish()


def test_a_receipt_names_what_is_left(factory: Factory, monkeypatch: pytest.MonkeyPatch) -> None:
    rt = factory()
    user = rt.user("canary-user")
    for text in CANARIES:
        user.remember(text)
    (factory.folder / "data" / "notes.txt").write_text(CANARIES[0], encoding="utf-8")
    receipt = user.forget()
    assert not receipt.clean
    assert receipt.erased.found == ["notes.txt: 1"]
    factory.finish()

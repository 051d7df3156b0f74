"""A backup of a folder in use: one moment, whole; and the way back. On both backends."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Self

import pytest
from support import DIM, Factory

import reverie
from reverie import Runtime
from reverie.memory_graph.ids import partition_of
from reverie.memory_graph.store import Partition, search_files
from reverie.models.standin import HashEmbedder
from reverie.operations.copying import STAGING

NAMES = ("ana", "李娜", "../../etc/passwd", "x" * 512, "a/b\\c:%00*")


def peopled(rt: Runtime, world: str = "town") -> None:
    for i, name in enumerate(NAMES):
        user = rt.user(name, world)
        user.add([f"I am number {i}.", "我住在上海。"], wait=True)
        user.add("It waits. 它等着。")
        user.remember(f"Bees {i}. 蜜蜂。", tags=["t"], metadata={"n": i})
        user.search("bees")  # what was read is journaled later
    rt.checkpoint("before 之前", world)


def digests(rt: Runtime) -> dict[tuple[str, str], str]:
    return {(w, u): rt.user(u, w).digest() for w in rt.worlds() for u in rt.users(w)}


def reopened(path: Path) -> Runtime:
    return reverie.open(path, background=False, embedder=HashEmbedder(DIM))


@pytest.mark.parametrize("where", ["{}/kept", "memory://kept-{}", "file://{}/kept 备份"])
def test_what_is_restored_is_what_was_there(
    runtime_factory: Factory, tmp_path: Path, where: str
) -> None:
    rt = runtime_factory(background=False)
    peopled(rt)
    dest = where.format(tmp_path)
    seen: list[tuple[int, int]] = []
    made = rt.backup(dest, progress=lambda done, of: seen.append((done, of)))
    before = digests(rt)
    assert made.problems == ()
    assert made.users == len(before) == len(NAMES)
    assert seen == [(i, 2 * made.files) for i in range(1, 2 * made.files + 1)]
    assert not (rt.path / STAGING).exists()
    rt.user("later").remember("Not in it. 不在里面。")
    assert reverie.verify_backup(made.place).name == made.name
    restored = reverie.restore(made.place, tmp_path / "back 恢复")
    assert restored.problems == ()
    assert restored.users == len(NAMES)
    with reopened(tmp_path / "back 恢复") as again:
        assert digests(again) == before
        assert [slot.tag for slot in again.checkpoints("town")] == ["before 之前"]
        assert again.stats().pending == len(NAMES)
        assert again.check() == []
        again.user("ana", "town").remember("It goes on. 继续。")
        again.rewind("before 之前", "town")
        assert again.check() == []


PEOPLE = [f"p{i}" for i in range(8)]


class Busy:
    """A world in which threads ring bells for all, take notes, and save, until the block ends."""

    def __init__(self, rt: Runtime) -> None:
        self.rung: list[str] = []  # acknowledged
        self.noted: list[str] = []
        self.errors: list[Exception] = []
        self._rt = rt
        self.stop = threading.Event()
        works = (self._ring, self._note, self._save)
        self._threads = [threading.Thread(target=self._keep_on, args=[work]) for work in works]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        for thread in self._threads:
            thread.join()

    def _keep_on(self, work: Callable[[int], None]) -> None:
        try:
            for i in itertools.takewhile(lambda _: not self.stop.is_set(), itertools.count()):
                work(i)
        except Exception as exc:  # noqa: BLE001 (asserted by the test)
            self.errors.append(exc)

    def _ring(self, i: int) -> None:
        text = f"Bell number {i} rang. 第{i}口钟响了。"
        self._rt.world("town").observe(text, witnesses=PEOPLE)
        self.rung.append(text)
        self.stop.wait(0.01)

    def _note(self, i: int) -> None:
        text = f"Note {i}. 笔记{i}。"
        self._rt.user(PEOPLE[i % len(PEOPLE)], "town").remember(text)
        self.noted.append(text)
        self.stop.wait(0.01)

    def _save(self, i: int) -> None:
        self._rt.checkpoint(f"s{i}", "town")
        self.stop.wait(0.3)


def texts_of(rt: Runtime) -> list[set[str]]:
    return [{i.text for i in rt.user(p, "town").list(limit=9999).items} for p in PEOPLE]


def test_all_that_goes_to_several_is_in_it_for_all_or_for_none(
    runtime_factory: Factory, tmp_path: Path
) -> None:
    rt = runtime_factory(background=False)
    assert len({partition_of(rt.user(p, "town").key, rt._folder.partitions) for p in PEOPLE}) > 1
    kept: list[tuple[str, set[str], set[str]]] = []
    with Busy(rt) as busy:
        for _ in range(2):
            goal = len(busy.rung) + 2
            while len(busy.rung) < goal and not busy.errors:
                busy.stop.wait(0.005)
            rung, noted = set(busy.rung), set(busy.noted)
            kept.append((rt.backup(tmp_path / "kept").place, rung, noted))
    assert busy.errors == []
    for number, (place, rung, noted) in enumerate(kept):
        folder = tmp_path / f"back{number}"
        assert reverie.restore(place, folder).problems == ()
        with reopened(folder) as again:
            texts = texts_of(again)
            bells = [{text for text in found if text.startswith("Bell")} for found in texts]
            assert all(found == bells[0] for found in bells)
            assert rung <= bells[0]
            assert noted <= set().union(*texts)
            for slot in again.checkpoints("town")[-1:]:
                again.rewind(slot.tag, "town")
                bells = [{t for t in found if t.startswith("Bell")} for found in texts_of(again)]
                assert all(found == bells[0] for found in bells)
            assert again.check() == []


def test_writes_go_on_while_it_is_copied_and_an_erasure_waits(
    runtime_factory: Factory, tmp_path: Path
) -> None:
    rt = runtime_factory(background=False)
    peopled(rt)
    rt.user("mona").remember("Mona keeps a secret garden. 莫娜有秘密花园。")
    receipts: list[reverie.ForgetReceipt] = []
    forgetting = threading.Thread(target=lambda: receipts.append(rt.user("mona").forget()))
    copied = len(list((rt.path / "partitions").glob("p*.db"))) + 1

    def look(done: int, _of: int) -> None:
        if done == 1:
            forgetting.start()
        if done < copied:
            rt.user("bo").remember(f"While copying {done}. 复制时{done}。")
            assert not receipts

    made = rt.backup(tmp_path / "kept", progress=look)
    forgetting.join()
    assert [receipt.clean for receipt in receipts] == [True]
    assert "mona" not in rt.users()
    assert rt.check() == []
    reverie.restore(made.place, tmp_path / "back")
    with reopened(tmp_path / "back") as again:
        assert again.users() == ["mona"]  # as it was when the backup began


def test_a_closed_runtime_makes_none(runtime_factory: Factory, tmp_path: Path) -> None:
    rt = runtime_factory(background=False)
    peopled(rt)
    with pytest.raises(reverie.errors.ClosedError):
        rt.backup(tmp_path / "kept", progress=lambda *_: rt.close())
    assert list((tmp_path / "kept").iterdir()) == []
    with pytest.raises(reverie.errors.ClosedError):
        rt.backup(tmp_path / "kept")


def test_no_copy_lies_in_the_data_folder_afterwards(
    runtime_factory: Factory, tmp_path: Path
) -> None:
    rt = runtime_factory(background=False)
    rt.user("mona").remember("Mona keeps a secret garden. 莫娜有秘密花园。")
    assert not Partition.rows_hold(rt._folder.partition_path(0), b"nowhere to be found")
    rt.backup(f"memory://kept-{tmp_path}")
    assert rt.user("mona").forget().clean
    (found,) = search_files(rt.path, [b"Mona keeps a secret"]).values()
    assert found == []

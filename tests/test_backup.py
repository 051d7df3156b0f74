"""Backups: nothing half done is restored, damage is named, and no path leads out of the folder."""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support import opened

import reverie
from reverie import Runtime, errors
from reverie.http.keys import KeyFile
from reverie.memory_graph.store import search_files
from reverie.operations import manifest as m
from reverie.operations.copying import SPARE_BYTES, STAGING
from reverie.operations.places import place_of

FILES = [m.CATALOG, *map(m.partition_file, range(4)), "usage.json"]
STEPS = 2 * len(FILES)


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A place with one backup of a folder of four partitions."""
    with opened(tmp_path / "data", background=False) as rt:
        (rt.path / "usage.json").write_text("[]", encoding="utf-8")
        for name in ("ana", "李娜", "bo", "曾"):
            rt.user(name).remember(f"{name} keeps bees. {name}养蜂。")
        rt.backup(tmp_path / "kept")
    return tmp_path / "kept"


def only(place: Path) -> Path:
    (found,) = place.iterdir()
    return found


def refused(source: Path | str, target: Path) -> str:
    """Assert that nothing is restored; return what is said about it."""
    said = []
    for call in (
        lambda: reverie.verify_backup(source),
        lambda: reverie.restore(source, target),
    ):
        with pytest.raises(errors.BackupError) as caught:
            call()
        said.append(caught.value.message)
    assert said[0] == said[1]
    assert not target.exists()
    assert not list(target.parent.glob(f".{target.name}*"))
    return said[0]


# -- crashes -----------------------------------------------------------------------------

KILLED = """
import os, signal, sys
import reverie

def die(done, of):
    if done == int(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)

with reverie.open(sys.argv[1], background=False, embedder="standin", partitions=4) as rt:
    rt.user("ana").remember("Ana keeps bees. 安娜养蜂。")
    (rt.path / "usage.json").write_text("[]")
    rt.backup(sys.argv[2], progress=die)
"""


@pytest.mark.slow
@pytest.mark.parametrize("where", ["{}/kept", "file://{}/kept"])
@pytest.mark.parametrize("step", [1, len(FILES), len(FILES) + 1, STEPS])
def test_a_backup_that_is_killed_is_none(tmp_path: Path, step: int, where: str) -> None:
    data, dest = tmp_path / "data", where.format(tmp_path)
    run = subprocess.run([sys.executable, "-c", KILLED, data, dest, str(step)], check=False)
    assert run.returncode == -signal.SIGKILL
    assert reverie.backups(dest) == []
    assert "completed" in refused(dest, tmp_path / "back")
    with opened(data, background=False) as rt:
        made = rt.backup(dest)
        assert not (data / STAGING).exists()
        assert [found.name for found in reverie.backups(dest)] == [made.name]
    assert reverie.restore(dest, tmp_path / "back").users == 1


def test_an_error_leaves_nothing_behind(tmp_path: Path) -> None:
    class StopError(Exception):
        pass

    def stop(done: int, _of: int) -> None:
        if done == len(FILES):
            raise StopError

    for dest in (str(tmp_path / "kept"), f"file://{tmp_path}/kept"):
        with opened(tmp_path / "data", background=False) as rt:
            with pytest.raises(StopError):
                rt.backup(dest, progress=stop)
            assert list((tmp_path / "kept").iterdir()) == []
            assert not (rt.path / STAGING).exists()
            rt.checkpoint(dest)  # nobody is waited for any more
            rt.user("ana").remember("It goes on. 继续。")


def test_without_room_nothing_is_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path / "data", background=False) as rt:
        little = SPARE_BYTES, SPARE_BYTES, SPARE_BYTES
        monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(*little))
        with pytest.raises(errors.StorageFullError):
            rt.backup(tmp_path / "kept")
        assert list((tmp_path / "kept").iterdir()) == []


# -- damage ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("harm", ["cut", "flip", "grow", "remove"])
def test_a_damaged_file_is_named(kept: Path, tmp_path: Path, name: str, harm: str) -> None:
    path = only(kept) / name
    data = bytearray(path.read_bytes())
    if harm == "cut":
        path.write_bytes(data[:-1])
    elif harm == "grow":
        path.write_bytes(bytes(data) + b"\0")
    elif harm == "flip":
        data[random.Random(name).randrange(len(data))] ^= 1
        path.write_bytes(data)
    else:
        path.unlink()
    said = refused(kept, tmp_path / "back")
    assert str(path) in said
    assert re.search({"cut": "cut short", "remove": "missing"}.get(harm, "damaged"), said)


def test_every_damage_to_the_manifest_is_seen(kept: Path, tmp_path: Path) -> None:
    path = only(kept) / m.MANIFEST
    whole = path.read_bytes()
    assert reverie.verify_backup(kept).users == 4
    pick = random.Random(7)
    body = len(whole.rstrip())
    for at in pick.sample(range(body), 60):
        path.write_bytes(whole[:at])
        assert str(path) in refused(kept, tmp_path / "back")
        damaged = bytearray(whole)
        damaged[at] ^= 1 << pick.randrange(8)
        path.write_bytes(damaged)
        assert str(path) in refused(kept, tmp_path / "back")


def rewritten(kept: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change a manifest, with a checksum that fits: somebody meant it."""
    path = only(kept) / m.MANIFEST
    manifest = json.loads(path.read_bytes())["manifest"]
    change(manifest)
    data = json.dumps(manifest).encode()
    digest = hashlib.sha256(data).hexdigest()
    path.write_bytes(b'{"sha256":"%s","manifest":%s}' % (digest.encode(), data))


def renamed(name: str) -> Callable[[dict[str, Any]], None]:
    def change(manifest: dict[str, Any]) -> None:
        manifest["files"][-1]["path"] = name

    return change


@pytest.mark.parametrize(
    "change",
    [
        *map(
            renamed, ["../evil", "/etc/passwd", "partitions/../x", "LOCK", "partitions/p9.db", ""]
        ),
        lambda manifest: manifest["files"].append(manifest["files"][0]),
        lambda manifest: manifest["files"].pop(0),
        lambda manifest: manifest.update(partitions=5),
        lambda manifest: manifest.update(partitions=-1),
        lambda manifest: manifest.update(partitions=10**12),
        lambda manifest: manifest.update(files=None),
        lambda manifest: manifest["files"][0].update(size_bytes="1"),
    ],
)
def test_a_manifest_that_means_harm_is_refused(
    kept: Path, tmp_path: Path, change: Callable[[dict[str, Any]], object]
) -> None:
    rewritten(kept, change)
    refused(kept, tmp_path / "back")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["data", "kept"]


@pytest.mark.parametrize("what", ["format", "catalog", "partition", "journal", "snapshot"])
def test_a_backup_of_a_newer_version_is_refused(kept: Path, tmp_path: Path, what: str) -> None:
    rewritten(kept, lambda manifest: manifest.update({what: 99, "written_by": "9.9"}))
    with pytest.raises(errors.BackupError, match=r"newer version of reverie \(9\.9\)"):
        reverie.restore(kept, tmp_path / "back")
    assert not (tmp_path / "back").exists()


def test_what_is_damaged_in_the_folder_is_told_or_refused(tmp_path: Path) -> None:
    with opened(tmp_path / "data", background=False) as rt:
        rt.user("ana").remember("Ana keeps bees. 安娜养蜂。")
        number = rt._router.backend.shard.residents.number(rt.user("ana").key)  # type: ignore[attr-defined]
    path = tmp_path / "data" / m.partition_file(number)
    data = path.read_bytes()
    path.write_bytes(data.replace(b"Ana keeps bees.", b"Ana keeps wasp."))
    assert path.read_bytes() != data
    with reverie.open(tmp_path / "data", background=False) as rt:
        made = rt.backup(tmp_path / "kept")
    assert any("ana" in line for line in made.problems)
    restored = reverie.restore(tmp_path / "kept", tmp_path / "back")
    assert any("ana" in line for line in restored.problems)
    path.write_bytes(data[:4096] + b"\1" * 8192 + data[12288:])
    with (
        reverie.open(tmp_path / "data", background=False) as rt,
        pytest.raises(errors.StorageError, match=path.name),
    ):
        rt.backup(tmp_path / "other")
    assert not (tmp_path / "other").exists()


# -- places ------------------------------------------------------------------------------


def test_several_are_kept_and_the_newest_whole_one_is_taken(kept: Path, tmp_path: Path) -> None:
    first = only(kept)
    before = {p: p.read_bytes() for p in first.rglob("*") if p.is_file()}
    with opened(tmp_path / "data", background=False) as rt:
        rt.user("ana").remember("Later. 后来。")
        second = rt.backup(kept)
        third = rt.backup(kept)
    assert {p: p.read_bytes() for p in first.rglob("*") if p.is_file()} == before
    names = [found.name for found in reverie.backups(kept)]
    assert names == [first.name, second.name, third.name]
    assert reverie.verify_backup(kept).name == third.name
    (kept / third.name / m.MANIFEST).unlink()
    (kept / "reverie-notes").mkdir()
    assert reverie.restore(kept, tmp_path / "back").backup == second.place
    assert reverie.restore(first, tmp_path / "old").backup == str(first)


@pytest.mark.parametrize(
    ("target", "what"), [("full", "not empty"), ("file", "a file"), ("link", "a link")]
)
def test_only_a_new_folder_is_restored_into(
    kept: Path, tmp_path: Path, target: str, what: str
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "a").write_text("mine 我的", encoding="utf-8")
    (tmp_path / "file").write_text("mine 我的", encoding="utf-8")
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    with pytest.raises(errors.DataFolderError, match=f"{target} is {what}; restore into a new"):
        reverie.restore(kept, tmp_path / target)
    assert (tmp_path / "full" / "a").read_text(encoding="utf-8") == "mine 我的"
    assert reverie.restore(kept, tmp_path / "empty").users == 4


def test_what_is_no_backup_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for source in (tmp_path / "empty", tmp_path / "nowhere", "memory://nowhere"):
        assert "no backup" in refused(source, tmp_path / "back")
    for source in ("nosuchkind://x", "memory2://x"):
        with pytest.raises(errors.ConfigError, match="cannot be reached"):
            reverie.restore(source, tmp_path / "back")


def test_a_place_that_fails_is_a_backup_error(
    kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = place_of("memory://fails")

    def fail(*_: object, **__: object) -> None:
        msg = "no such bucket"
        raise RuntimeError(msg)

    monkeypatch.setattr(type(place._fs), "_open", fail)  # type: ignore[attr-defined]
    with (
        opened(tmp_path / "data", background=False) as rt,
        pytest.raises(errors.BackupError, match="no such bucket"),
    ):
        rt.backup("memory://fails")


def test_without_the_extra_a_url_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(errors.ConfigError, match=r"reverie\[remote\]"):
        reverie.backups("memory://x")


def test_a_backup_does_not_lie_in_what_it_is_made_of(tmp_path: Path) -> None:
    with opened(tmp_path / "data", background=False) as rt:
        for dest in (rt.path, rt.path / "kept", tmp_path / "data" / ".." / "data" / "b"):
            with pytest.raises(errors.InvalidValueError, match="in the data folder"):
                rt.backup(dest)
        assert not (rt.path / "kept").exists()


# -- what is in it -----------------------------------------------------------------------


def test_keys_masks_and_settings_come_with_it_and_no_secret(tmp_path: Path) -> None:
    key = reverie.new_mask_key()
    data = tmp_path / "data"
    said = "Write to ines.moreau@example.org. 写信给 ines.moreau@example.org。"
    with opened(data, background=False, mask=("email",), mask_key=key) as rt:
        rt.user("ana").add(said, infer=False)
        whole, _ = KeyFile(rt.path).create("read", worlds=["default"])
        (rt.path / "reverie.toml").write_text("summary_every = 7\n", encoding="utf-8")
        rt.backup(tmp_path / "kept")
    needles = [b"ines.moreau", key.encode(), whole.encode()]
    assert not any(search_files(tmp_path / "kept", needles).values())
    back = tmp_path / "back"
    reverie.restore(tmp_path / "kept", back)
    assert KeyFile(back).read() == KeyFile(data).read()
    assert reverie.load_config(folder=back, environ={}).config.summary_every == 7
    with reverie.open(back, background=False, mask_key=key) as rt:
        (turn,) = rt.user("ana").list(types=["message"]).items
        assert "ines.moreau" not in turn.text
        assert rt.user("ana").unmask(turn.text) == said


def test_a_manifest_names_nobody(kept: Path) -> None:
    manifest = msgspec.json.decode((only(kept) / m.MANIFEST).read_bytes())["manifest"]
    assert manifest["users"] == 4
    assert not re.search("ana|李娜|bo\\b|曾|default", json.dumps(manifest, ensure_ascii=False))


def test_only_its_owner_can_read_it(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with opened(tmp_path / "data", background=False) as rt:
            rt.backup(tmp_path / "kept")
        reverie.restore(tmp_path / "kept", tmp_path / "back")
    finally:
        os.umask(before)
    kept, back = tmp_path / "kept", tmp_path / "back"
    for path in [kept, *kept.rglob("*"), back, *filter(Path.is_dir, back.rglob("*"))]:
        assert path.stat().st_mode & 0o077 == 0, path


def held_elsewhere(rt: Runtime) -> list[str]:
    return [str(path) for path in rt.path.rglob("*-journal")]


def test_the_folder_is_as_it_was(tmp_path: Path) -> None:
    with opened(tmp_path / "data", background=False) as rt:
        rt.user("ana").remember("Ana keeps bees. 安娜养蜂。")
        before = sorted(p.name for p in rt.path.rglob("*"))
        rt.backup(tmp_path / "kept")
        assert sorted(p.name for p in rt.path.rglob("*")) == before
        assert held_elsewhere(rt) == []

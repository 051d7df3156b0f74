"""The remembered SHA-256 beside a model."""

from __future__ import annotations

import errno
import hashlib
import os
import tempfile
from pathlib import Path

import pytest

from reverie.models import digest
from reverie.models.adapters import shipped
from reverie.models.digest import file_digest


def test_is_remembered_and_noticed_when_stale(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "m.gguf"
    file.write_bytes(b"one")
    calls = count(monkeypatch)
    assert file_digest(file) == file_digest(file) == hashlib.sha256(b"one").hexdigest()
    assert len(calls) == 1
    file.write_bytes(b"two")
    os.utime(file, ns=(1, 1))  # same size, other time
    assert file_digest(file) == hashlib.sha256(b"two").hexdigest()


@pytest.mark.parametrize("junk", [b"", b"{", b'{"size_bytes": "x"}', b"\xff"])
def test_a_damaged_side_file_is_ignored(tmp_path: Path, junk: bytes) -> None:
    file = tmp_path / "m.gguf"
    file.write_bytes(b"one")
    (tmp_path / "m.gguf.digest.json").write_bytes(junk)
    assert file_digest(file) == hashlib.sha256(b"one").hexdigest()


def count(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Return the list of files that are hashed from now on."""
    calls: list[Path] = []
    real = digest.sha256_of

    def counted(path: Path) -> str:
        calls.append(path)
        return real(path)

    monkeypatch.setattr(digest, "sha256_of", counted)
    return calls


def refuse(monkeypatch: pytest.MonkeyPatch, *folders: Path) -> None:
    """Let no file be made in some folders, as if they were read-only (tests run as root)."""
    real = tempfile.mkstemp

    def make(*, prefix: str, dir: Path) -> tuple[int, str]:  # noqa: A002 (tempfile calls it so)
        if any(folder == dir or folder in dir.parents for folder in folders):
            raise PermissionError(errno.EACCES, "read-only", str(dir))
        return real(prefix=prefix, dir=dir)

    monkeypatch.setattr("tempfile.mkstemp", make)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's cache folder, for this test."""
    folder = tmp_path / "cache"
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: folder / name)
    return folder


@pytest.mark.parametrize("name", ["m.gguf", "模型.gguf"])
def test_beside_a_read_only_model_nothing_is_written_but_the_cache_remembers(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    (folder / name).write_bytes(b"one")
    (folder / "other.gguf").write_bytes(b"two")
    folder.chmod(0o555)
    refuse(monkeypatch, folder)
    calls = count(monkeypatch)
    for _ in range(2):
        assert file_digest(folder / name) == hashlib.sha256(b"one").hexdigest()
        assert file_digest(folder / "other.gguf") == hashlib.sha256(b"two").hexdigest()
    assert calls == [folder / name, folder / "other.gguf"]
    assert {path.name for path in folder.iterdir()} == {name, "other.gguf"}
    assert len([*(cache / "reverie" / "digests").iterdir()]) == 2
    (folder / name).write_bytes(b"three")
    assert file_digest(folder / name) == hashlib.sha256(b"three").hexdigest()


@pytest.mark.parametrize("blocked", ["refused", "a file in the way"])
def test_where_nothing_can_be_written_it_is_hashed_each_time(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, blocked: str
) -> None:
    file = tmp_path / "m.gguf"
    file.write_bytes(b"one")
    refuse(monkeypatch, tmp_path)
    if blocked != "refused":
        cache.write_bytes(b"")  # so that no folder can be made there
    calls = count(monkeypatch)
    for _ in range(2):
        assert file_digest(file) == hashlib.sha256(b"one").hexdigest()
    assert len(calls) == 2
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == (
        [file] if blocked == "refused" else [cache, file]
    )


def test_nothing_is_written_into_the_package(cache: Path) -> None:
    adapters = Path(digest.__file__).parent / "adapters"
    before = {path.name for path in adapters.iterdir()}
    for path in shipped().values():
        assert file_digest(path) == hashlib.sha256(path.read_bytes()).hexdigest()
    # One that an earlier version left there is not believed.
    assert {path.name for path in adapters.iterdir()} == before
    assert not cache.exists()
    assert digest._sides(adapters / "pair.gguf") == []

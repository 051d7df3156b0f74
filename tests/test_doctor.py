"""The doctor: each fault that it is for, planted; and how to mend it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from support import opened

import reverie
from reverie import Config
from reverie.http.keys import FILE as KEYS
from reverie.memory_graph.errors import StorageFailedError
from reverie.models.catalog import CATALOG
from reverie.operations import doctor, doctor_folder
from reverie.operations.doctor import Line, Patient, examine, extras_of
from reverie.operations.manifest import partition_file


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A sound data folder."""
    with opened(tmp_path / "data", background=False, embedder="standin") as rt:
        for name in ("ana", "李娜"):
            rt.user(name).remember(f"{name} keeps bees. {name}养蜂。")
    return tmp_path / "data"


def looked(folder: Path, **fields: Any) -> list[Line]:
    models = folder.parent / "no-models"
    fields = {"config": Config(embedder="standin", models_folder=models), **fields}
    return examine(Patient(folder=folder, **fields))


def of(lines: list[Line], check: str) -> list[tuple[str, str]]:
    return [(line.status, line.text) for line in lines if line.check == check]


def only(lines: list[Line], status: str) -> Line:
    (found,) = [line for line in lines if line.status == status]
    assert found.fix
    return found


def test_a_sound_folder_is_well(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor_folder, "IN_MEMORY", set())
    monkeypatch.setattr(doctor_folder, "FEW_BYTES", 1)
    lines = looked(data)
    assert {line.status for line in lines} == {"ok"}, lines
    checks = {line.check for line in lines}
    assert checks == set(
        "python|sqlite|libraries|extras|machine|settings|models|ray|disk|permissions|data folder"
        .split("|")
    )  # fmt: skip
    assert "2 users in 1 worlds" in of(lines, "data folder")[0][1]


def test_no_folder_is_no_fault(tmp_path: Path) -> None:
    lines = looked(tmp_path / "a" / "b")
    assert "fail" not in {line.status for line in lines}
    assert not (tmp_path / "a").exists()


def test_an_old_sqlite(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def too_old() -> None:
        msg = "SQLite 3.40.0 is too old"
        raise StorageFailedError(msg)

    monkeypatch.setattr("reverie.memory_graph.store.sqlite.check_version", too_old)
    line = only([x for x in looked(data) if x.check == "sqlite"], "fail")
    assert line.fix == "pip install --upgrade apsw"


def test_missing_libraries(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "LIBRARIES", ("numpy", "no-such-library"))
    line = only([x for x in looked(data) if x.check == "libraries"], "fail")
    assert "no-such-library" in line.text


def test_extras_are_read_from_the_package() -> None:
    lines = [
        "numpy>=1.26",
        'fastapi>=0.115; extra == "http"',
        "uvicorn[standard]>=0.32; extra == 'http'",
        'mcp<3,>=2.3; python_version > "3" and extra == "mcp"',
        'pytest; extra == "dev"',
    ]
    assert extras_of(lines) == {"http": ["fastapi", "uvicorn"], "mcp": ["mcp"]}


def test_a_damaged_model(data: Path) -> None:
    models = data.parent / "models"
    models.mkdir()
    (models / CATALOG["minilm"].file_name).write_text("no model 不是模型", encoding="utf-8")
    lines = looked(data, config=Config(embedder="standin", models_folder=models))
    line = only([x for x in lines if x.check == "models"], "fail")
    assert "checksum of minilm" in line.text
    assert line.fix.endswith("reverie models pull minilm")


def test_models_that_the_settings_name(data: Path) -> None:
    none = data.parent / "no-models"
    config = Config(embedder="auto", models_folder=none, language_model="smollm2")
    lines = [x for x in looked(data, config=config) if x.check == "models"]
    assert only(lines, "fail").fix == "reverie models pull smollm2"
    assert only(lines, "warn").fix == "reverie models pull minilm"


def test_a_world_whose_model_is_gone(data: Path) -> None:
    with reverie.open(data, background=False) as rt:
        for world in rt._folder.catalog.worlds():
            rt._folder.catalog.set_world_embedder(world.name, "minilm@1", 384, "minilm")
    line = only([x for x in looked(data) if x.check == "data folder"], "fail")
    assert line.fix == "reverie models pull minilm"


def test_little_space(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for free, status in ((1024, "fail"), (100 * 1024**2, "warn")):
        monkeypatch.setattr(
            shutil, "disk_usage", lambda _, free=free: shutil._ntuple_diskusage(1, 1, free)
        )
        assert of(looked(data), "disk")[0][0] == status


def test_a_disk_that_does_not_sync(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: Path) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(doctor_folder, "_sync", fail)
    assert "syncing fail" in str(of(looked(data), "disk"))


@pytest.mark.parametrize(("kind", "status"), [("nfs4", "warn"), ("tmpfs", "warn"), ("ext4", "ok")])
def test_kinds_of_file_systems(
    data: Path, monkeypatch: pytest.MonkeyPatch, kind: str, status: str
) -> None:
    mounts = data.parent / "mounts"
    mounts.write_text(f"/dev/a / ext3 rw 0 0\nx {data.parent} {kind} rw 0 0\n", encoding="utf-8")
    assert doctor_folder.file_system_of(data, mounts) == kind
    monkeypatch.setattr(doctor_folder, "MOUNTS", mounts)
    monkeypatch.setattr(doctor_folder, "FEW_BYTES", 1)
    assert {s for s, _ in of(looked(data), "disk")} == {"ok", status}
    assert doctor_folder.file_system_of(data, data / "nowhere") == ""


def test_who_may_read_it(data: Path) -> None:
    data.chmod(0o755)
    line = only([x for x in looked(data) if x.check == "permissions"], "warn")
    assert line.fix == f"chmod 700 '{data}'"
    data.chmod(0o700)
    keys = data / "http-keys.json"
    keys.write_text("{}", encoding="utf-8")
    keys.chmod(0o644)
    line = only([x for x in looked(data) if x.check == "permissions"], "fail")
    assert line.fix == f"chmod 600 '{keys}'"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may do all")
def test_a_folder_that_cannot_be_written(data: Path) -> None:
    data.chmod(0o500)
    try:
        assert of(looked(data), "permissions")[0][0] == "fail"
    finally:
        data.chmod(0o700)


def test_files_that_cannot_be_read(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, bad = os.access, data / partition_file(0)
    monkeypatch.setattr(os, "access", lambda p, m: Path(p) != bad and real(p, m))
    line = only([x for x in looked(data) if x.check == "permissions"], "fail")
    assert str(bad) in line.text


def test_a_folder_that_is_in_use_is_left_alone(data: Path) -> None:
    with reverie.open(data, background=False):
        (line,) = [x for x in looked(data) if x.check == "data folder"]
    assert line.status == "ok"
    assert f"process {os.getpid()}" in line.text


def test_a_damaged_partition(data: Path) -> None:
    path = data / partition_file(0)
    path.write_text("no database 不是数据库" * 999, encoding="utf-8")
    line = only([x for x in looked(data) if x.check == "data folder"], "fail")
    assert path.name in line.text
    assert "reverie check --repair" in line.fix


def test_a_lost_catalog(data: Path) -> None:
    (data / "catalog.db").unlink()
    assert of(looked(data), "data folder")[0][0] == "fail"


def test_a_path_that_can_be_no_data_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("notes 笔记", encoding="utf-8")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("论文", encoding="utf-8")
    for name in ("file", "other"):
        (line,) = [x for x in looked(tmp_path / name) if x.check == "data folder"]
        assert (line.status, "--data" in line.fix) == ("fail", True)


def test_settings_alone_are_no_fault(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir(mode=0o700)
    (tmp_path / "data" / "reverie.toml").write_text("threads = 1\n", encoding="utf-8")
    assert of(looked(tmp_path / "data"), "data folder")[0][0] == "ok"


@pytest.mark.parametrize("content", [b"{", b'{"keys":[],"version":9}', None], ids=str)
def test_keys_that_let_nobody_in(data: Path, content: bytes | None) -> None:
    path = data / KEYS
    if content is None:
        path.symlink_to("elsewhere")
    else:
        path.write_bytes(content)
        path.chmod(0o600)
    line = only([x for x in looked(data) if x.check == "permissions"], "fail")
    assert "lets nobody in" in line.text
    assert "reverie keys create" in line.fix


def test_turns_that_wait_and_turns_in_quarantine(data: Path) -> None:
    class Raises:
        def extract(self, turns: Any, history: Any) -> Any:
            msg = "no"
            raise ValueError(msg)

    with reverie.open(data, extractor=Raises(), background=False) as rt:
        rt.user("ana").add("It fails. 失败。", wait=True)
        rt.user("李娜").add("It waits. 它等着。")
    lines = [x for x in looked(data) if x.check == "data folder"]
    assert "1 turns are in quarantine" in only(lines, "warn").text
    assert any("1 turns wait" in line.text for line in lines)


def test_a_masked_folder_without_its_key(data: Path) -> None:
    key = reverie.new_mask_key()
    reverie.open(data, mask=("email",), mask_key=key, background=False).close()
    (data / "masks.vault").chmod(0o600)
    lines = [x for x in looked(data) if x.check == "data folder"]
    assert "REVERIE_MASK_KEY" in only(lines, "warn").fix
    assert {s for s, _ in of(looked(data, mask_key=key), "data folder")} == {"ok"}


def test_what_is_left_of_a_backup(data: Path) -> None:
    (data / "staging").mkdir()
    line = only([x for x in looked(data) if x.check == "data folder"], "warn")
    assert "interrupted" in line.text


def test_few_files_and_cores(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "open_files_limit", lambda: 128)
    monkeypatch.setattr(doctor, "cpu_cores", lambda: 1)
    lines = looked(data, config=Config(embedder="standin", threads=2, partitions=64))
    found = [x for x in lines if x.check == "machine"]
    assert [line.status for line in found] == ["warn", "warn"]
    assert found[1].fix == "ulimit -n 512"


def test_variables_that_mean_nothing(data: Path) -> None:
    lines = looked(data, unknown=("REVERIE_SUMARY",))
    assert "REVERIE_SUMARY" in only([x for x in lines if x.check == "settings"], "warn").text


def test_a_check_that_fails_is_a_line(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: Patient) -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr(doctor, "_machine", fail)
    line = only([x for x in looked(data) if x.check == "machine"], "fail")
    assert "ZeroDivisionError" in line.text


def test_the_stand_in_is_loaded(data: Path) -> None:
    lines = of(looked(data, with_model=True), "load models")
    assert lines[0] == ("ok", "embedder standin: loaded, 256 dimensions")


@pytest.mark.model
@pytest.mark.slow
def test_models_are_loaded(data: Path) -> None:
    folder = Path(os.environ["REVERIE_MODELS"])
    config = Config(embedder="minilm", language_model="smollm2", models_folder=folder)
    lines = of(looked(data, config=config, with_model=True), "load models")
    assert [status for status, _ in lines] == ["ok", "ok"]
    assert "wrote 4 tokens" in lines[1][1]


@pytest.mark.ray
def test_ray_is_started(data: Path) -> None:
    assert "an actor kept a memory" in of(looked(data, with_ray=True), "ray")[0][1]

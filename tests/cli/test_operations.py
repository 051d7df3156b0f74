"""`reverie backup`, `restore`, `doctor` and `config`, and settings on the way to every command."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import reverie
from reverie import Config

Run = Callable[..., Any]


@pytest.fixture
def told_of(data: Path) -> Path:
    with reverie.open(data, embedder="standin", background=False) as rt:
        rt.user("user").remember("Ana keeps bees. 安娜养蜂。")
        rt.user("李娜").remember("Li Na keeps cats. 李娜养猫。")
    return data


# -- backup and restore ------------------------------------------------------------------


def test_there_and_back(run: Run, run_json: Run, told_of: Path, tmp_path: Path) -> None:
    dest = tmp_path / "kept 备份"
    made = run_json("backup", dest)
    assert (made["users"], made["problems"]) == (2, [])
    assert "written and verified; 2 users" in run("backup", dest).stdout
    assert "is sound" in run("backup", dest, "--verify").stdout
    assert run_json("backup", made["place"], "--verify")["name"] == made["name"]
    assert [b["users"] for b in run_json("backup", dest, "--list")["backups"]] == [2, 2]
    assert made["name"] in run("backup", dest, "--list").stdout
    back = tmp_path / "back"
    restored = run_json("restore", dest, back)
    assert restored["users"] == 2
    hits = run_json("search", "bees", "--data", back)["hits"]
    assert hits[0]["text"].startswith("Ana keeps bees.")
    assert run_json("restore", dest, back, expect=1)["error"] == "DataFolderError"
    assert "2 users, checked" in run("restore", dest, tmp_path / "again").stdout


def test_damage_is_told_with_a_status(
    run: Run, run_json: Run, told_of: Path, tmp_path: Path
) -> None:
    made = run_json("backup", tmp_path / "kept")
    path = Path(made["place"]) / "catalog.db"
    path.write_bytes(path.read_bytes()[:-1])
    for command in (["backup", tmp_path / "kept", "--verify"], ["restore", made["place"], "x"]):
        found = run_json(*command, expect=1)
        assert found["error"] == "BackupError"
        assert str(path) in found["message"]
    assert run_json("backup", tmp_path / "none", "--list") == {"backups": []}
    assert "BackupError" in run("restore", tmp_path / "none", tmp_path / "x", expect=1).stderr
    for file in (told_of / "partitions").glob("p*.db"):
        data = file.read_bytes()
        file.write_bytes(data.replace(b"Ana keeps bees.", b"Ana keeps wasp."))
    found = run_json("backup", tmp_path / "other", expect=3)
    assert "user" in found["problems"][0]
    assert run("restore", tmp_path / "other", tmp_path / "y", expect=3).stderr


def test_a_folder_that_is_open_elsewhere(run_json: Run, told_of: Path, tmp_path: Path) -> None:
    code = "import reverie, sys; rt = reverie.open(sys.argv[1]); print(1, flush=True); input()"
    command = [sys.executable, "-c", code, str(told_of)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        found = run_json("backup", tmp_path / "kept", expect=1)
        assert found["error"] == "DataFolderLockedError"
        assert str(other.pid) in found["message"]
        other.communicate(b"\n")
    assert not (tmp_path / "kept").exists()
    assert run_json("backup", tmp_path / "kept")["users"] == 2


def test_there_is_nothing_to_back_up(run_json: Run, data: Path, tmp_path: Path) -> None:
    assert run_json("backup", tmp_path / "kept", expect=1)["error"] == "DataFolderError"
    assert not data.exists()


# -- the doctor --------------------------------------------------------------------------


def test_the_doctor_says_how_it_is(run: Run, run_json: Run, told_of: Path) -> None:
    told_of.chmod(0o755)
    found = run_json("doctor")
    assert found["fail"] == 0
    assert {line["status"] for line in found["lines"]} >= {"ok", "warn"}
    shown = run("doctor").stdout
    assert f"-> chmod 700 '{told_of}'" in shown
    (told_of / "partitions" / "p0003.db").unlink()
    found = run_json("doctor", expect=1)
    (line,) = [line for line in found["lines"] if line["status"] == "fail"]
    assert "p0003.db" in line["text"]
    assert "reverie check --repair" in line["fix"]


def test_the_doctor_finds_settings_that_are_wrong(
    run_json: Run, told_of: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REVERIE_SUMARY_EVERY", "1")
    (told_of / "reverie.toml").write_text("thread = 1\n", encoding="utf-8")
    found = run_json("doctor", expect=1)
    (line,) = [line for line in found["lines"] if line["status"] == "fail"]
    assert "did you mean 'threads'" in line["text"]
    (told_of / "reverie.toml").unlink()
    texts = [line["text"] for line in run_json("doctor")["lines"]]
    assert any("REVERIE_SUMARY_EVERY" in text for text in texts)


# -- settings ----------------------------------------------------------------------------


def settings_of(found: Any) -> dict[str, tuple[Any, str]]:
    return {one["name"]: (one["value"], one["source"]) for one in found["settings"]}


def test_config_show_says_where_each_comes_from(
    run: Run, run_json: Run, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data.mkdir()
    file = data / "reverie.toml"
    file.write_text('summary_every = 7\nthreads = 2\nembedder = "minilm"\n', encoding="utf-8")
    monkeypatch.setenv("REVERIE_THREADS", "3")
    monkeypatch.setenv("REVERIE_EXTRACTOR", "rules")
    monkeypatch.setenv("REVERIE_MODELS", "/models 模型")
    monkeypatch.setenv("REVERIE_MASK_KEY", "hush-秘密")
    found = settings_of(run_json("config", "show", "--embedder", "standin", "--trace"))
    assert found["summary_every"] == (7, str(file))
    assert found["threads"] == (3, "REVERIE_THREADS")
    assert found["extractor"] == ("rules", "REVERIE_EXTRACTOR")
    assert found["models_folder"] == ("/models 模型", "REVERIE_MODELS")
    assert found["embedder"] == ("standin", "flag")
    assert found["trace"] == (True, "flag")
    assert found["max_waiting"] == (Config().max_waiting, "default")
    told = run("config", "show")
    assert "hush" not in told.stdout + run("config", "show", "--json").stdout
    assert "(set)" in told.stdout
    monkeypatch.setenv("REVERIE_CONFIG", str(data / "other.toml"))
    (data / "other.toml").write_text("summary_every = 9\n", encoding="utf-8")
    found = settings_of(run_json("config", "show"))
    assert found["summary_every"] == (9, str(data / "other.toml"))
    assert found["threads"] == (3, "REVERIE_THREADS")
    assert settings_of(run_json("config", "show", "--config", file))["summary_every"][0] == 7


def test_config_show_tells_of_variables_that_mean_nothing(
    run: Run, run_json: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REVERIE_THREAD", "3")
    monkeypatch.setenv("REVERIE_UNHEARD_OF", "没听说过")
    told = run_json("config", "show")["unknown_variables"]
    assert told == {"REVERIE_THREAD": "REVERIE_THREADS", "REVERIE_UNHEARD_OF": None}
    shown = run("config", "show").stderr
    assert "REVERIE_THREAD is not known to reverie; did you mean REVERIE_THREADS?" in shown
    assert "REVERIE_UNHEARD_OF is not known to reverie\n" in shown


def test_config_check(run: Run, run_json: Run, tmp_path: Path) -> None:
    file = tmp_path / "my.toml"
    file.write_text('summary_every = 7\nmask = ["email"]\n', encoding="utf-8")
    assert run_json("config", "check", file)["settings"] == ["mask", "summary_every"]
    assert "2 settings, all of them valid" in run("config", "check", file).stdout
    file.write_text("summary_ever = 7\n", encoding="utf-8")
    found = run_json("config", "check", file, expect=1)
    assert found["error"] == "ConfigError"
    assert str(file) in found["message"]
    assert found["details"]["setting"] == "summary_ever"


def test_commands_obey_the_file(run: Run, run_json: Run, data: Path, talk: Path) -> None:
    data.mkdir()
    file = data / "reverie.toml"
    file.write_text('embedder = "standin"\npartitions = 2\nextractor = "off"\n', encoding="utf-8")
    run("ingest", talk)
    assert len(list((data / "partitions").glob("p*.db"))) == 2
    (user,) = run_json("stats")["by_user"]
    assert (user["memories"], user["messages"]) == (0, 5)
    # what works on what is written is nothing to a command that reads
    file.write_text('language_model = "/gone.gguf"\nsummaries = "written"\nmask = ["email"]\n')
    assert len(run_json("search", "Oslo")["hits"]) > 0
    assert run_json("ingest", talk, expect=1)["error"] == "ConfigError"
    file.write_text("nope = 1\n", encoding="utf-8")
    assert run_json("search", "Oslo", expect=1)["details"]["setting"] == "nope"


# -- completion --------------------------------------------------------------------------


BASH = "/bin/bash"


def completed(line: str, folder: Path) -> list[str]:
    """Return what bash offers after a line, by the script that the program shows."""
    program = folder / "reverie"
    program.write_text(
        f"#!{sys.executable}\nfrom reverie.cli import main\nmain()\n", encoding="utf-8"
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    environ = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
    shown = subprocess.run(  # from a shell that waits: which one it is told by the process above
        [BASH, "-c", '"$0" --show-completion; exit $?', program],
        check=True,
        capture_output=True,
        text=True,
        env=environ,
    ).stdout
    function = shown.partition("(")[0].strip()
    words = line.split(" ")
    script = (
        f"{shown}\nCOMP_WORDS=({' '.join(words[:-1])} '{words[-1]}')\nCOMP_CWORD={len(words) - 1}\n"
        f'{function} reverie\nprintf "%s\\n" "${{COMPREPLY[@]}}"\n'
    )
    run = subprocess.run(
        [BASH, "-c", script], check=True, capture_output=True, text=True, env=environ
    )
    return run.stdout.split()


@pytest.mark.skipif(not Path(BASH).exists(), reason="there is no bash")
def test_bash_completes_commands_and_options(tmp_path: Path) -> None:
    assert "backup" in completed("reverie ba", tmp_path)
    assert set(completed("reverie config ", tmp_path)) >= {"show", "check"}
    assert "--verify" in completed("reverie backup --v", tmp_path)

"""Settings out of a file, the environment and arguments: one order, and mistakes named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings as runs, strategies as st

import reverie
from reverie import Config, errors, load_config
from reverie.operations.settings import LoadedConfig, Setting, read_file, variable_of


def written(folder: Path, text: str, name: str = "reverie.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def source_of(loaded: LoadedConfig, name: str) -> Setting:
    (found,) = [setting for setting in loaded.settings if setting.name == name]
    return found


def test_nothing_said_is_the_defaults() -> None:
    loaded = load_config(environ={})
    assert loaded.config == Config()
    assert {setting.source for setting in loaded.settings} == {"default"}
    assert (loaded.actors, loaded.address, loaded.file) == (None, None, None)
    names = [setting.name for setting in loaded.settings]
    assert names == [*Config.__struct_fields__, "actors", "address"]


LAYERS = ("file", "variable", "flag")


@runs(max_examples=40, deadline=None)
@given(said=st.dictionaries(st.sampled_from(LAYERS), st.integers(1, 99), max_size=3))
def test_the_last_of_file_variable_and_flag_wins(
    said: dict[str, int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("data")
    if "file" in said:
        written(folder, f"summary_every = {said['file']}\n")
    environ = {"REVERIE_SUMMARY_EVERY": str(said["variable"])} if "variable" in said else {}
    flags: dict[str, Any] = {"summary_every": said["flag"]} if "flag" in said else {}
    loaded = load_config(folder=folder, environ=environ, **flags)
    last = [layer for layer in LAYERS if layer in said][-1:]
    assert loaded.config.summary_every == (said[last[0]] if last else 40)
    sources = {
        "file": str(folder / "reverie.toml"),
        "variable": "REVERIE_SUMMARY_EVERY",
        "flag": "flag",
    }
    expected = sources[last[0]] if last else "default"
    assert source_of(loaded, "summary_every").source == expected


def test_a_named_file_is_read_instead_of_that_of_the_folder(tmp_path: Path) -> None:
    written(tmp_path, "summary_every = 1\nthreads = 3\n")
    other = written(tmp_path, "summary_every = 2\n", "other.toml")
    loaded = load_config(other, folder=tmp_path, environ={})
    assert (loaded.config.summary_every, loaded.config.threads) == (2, 1)
    with pytest.raises(errors.ConfigError, match="cannot be read"):
        load_config(tmp_path / "gone.toml", folder=tmp_path, environ={})


def test_every_setting_can_be_said_by_a_variable(tmp_path: Path) -> None:
    said = {
        "embedder": ("standin", "standin"),
        "models_folder": ("/模型", Path("/模型")),
        "extractor": ("rules", "rules"),
        "decider": ("rules", "rules"),
        "min_importance": ("0.25", 0.25),
        "language_model": ("/m/助手.gguf", "/m/助手.gguf"),
        "language_adapters": ("pair=/a, span=/b", {"pair": "/a", "span": "/b"}),
        "model_calls": ("1_000", 1000),
        "model_tokens": ("none", None),
        "summaries": ("off", "off"),
        "background": ("No", False),
        "trace": ("1", True),
        "mask": ("email, phone", ("email", "phone")),
        "actors": ("2", 2),
        "address": ("127.0.0.1:6379", "127.0.0.1:6379"),
    }
    loaded = load_config(environ={variable_of(n): text for n, (text, _) in said.items()})
    for name, (_, value) in said.items():
        assert source_of(loaded, name).value == value, name
        assert source_of(loaded, name).source == variable_of(name)
    numbers = set(Config.__struct_fields__) - set(said)
    loaded = load_config(environ={variable_of(name): "7" for name in numbers})
    assert all(getattr(loaded.config, name) == 7 for name in numbers)
    assert variable_of("models_folder") == "REVERIE_MODELS"


def test_an_empty_variable_says_nothing() -> None:
    assert load_config(environ={"REVERIE_THREADS": " "}).config == Config()


def test_paths_in_a_file_begin_at_its_folder(tmp_path: Path) -> None:
    text = (
        'models_folder = "models"\nembedder = "mine.gguf"\nlanguage_model = "smollm2"\n'
        'language_adapters = { pair = "pair.gguf" }\n'
    )
    found = read_file(written(tmp_path, text))
    assert found == {
        "models_folder": tmp_path / "models",
        "embedder": str(tmp_path / "mine.gguf"),
        "language_model": "smollm2",
        "language_adapters": {"pair": str(tmp_path / "pair.gguf")},
    }


@pytest.mark.parametrize(
    ("text", "key", "said"),
    [
        ("sumary_every = 1", "sumary_every", "did you mean 'summary_every'"),
        ("[reverie]\nthreads = 1", "reverie", "unknown setting"),
        ("摘要 = 1", "", "cannot be read"),
        ('"摘要" = 1', "摘要", "unknown setting"),
        ("threads = 0", "threads", "at least 1"),
        ('threads = "2"', "threads", "int"),
        ("threads = 1.5", "threads", "int"),
        ("retry_s = true", "retry_s", "float"),
        ("trace = 1", "trace", "bool"),
        ("embedder = 3", "embedder", "str"),
        ('embedder = " "', "embedder", "empty"),
        ('extractor = "magic"', "extractor", "magic"),
        ('mask = "email"', "mask", "array"),
        ("models_folder = 1", "models_folder", "path"),
        ("min_importance = nan", "min_importance", "at least"),
        ("actors = 0", "actors", "actors"),
        ("actors = 100000", "actors", "actors"),
        ('mask_key = "hush-秘密"', "mask_key", "REVERIE_MASK_KEY"),
        ("threads = ", "", "cannot be read"),
        ("threads = 1\nthreads = 2", "", "cannot be read"),
    ],
)
def test_a_mistake_in_a_file_is_named(tmp_path: Path, text: str, key: str, said: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(errors.ConfigError) as caught:
        load_config(path, environ={})
    message = caught.value.message
    assert str(path) in message
    assert said in message
    assert key in message
    assert "hush" not in message


@pytest.mark.parametrize("data", [b"\xff\xfe", b"\0", b"#" * (1024 * 1024 + 1)])
def test_a_file_that_is_no_text_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "reverie.toml"
    path.write_bytes(data)
    with pytest.raises(errors.ConfigError, match=r"reverie\.toml"):
        load_config(folder=tmp_path, environ={})
    with pytest.raises(errors.ConfigError, match="cannot be read"):
        load_config(tmp_path, environ={})


@pytest.mark.parametrize(
    ("name", "text"),
    [("THREADS", "many"), ("TRACE", "maybe"), ("THREADS", "0"), ("EXTRACTOR", "magic")],
)
def test_a_mistake_in_a_variable_is_named(name: str, text: str) -> None:
    with pytest.raises(errors.ConfigError, match=f"REVERIE_{name}.*{name.lower()}"):
        load_config(environ={f"REVERIE_{name}": text})


def test_variables_that_mean_nothing_are_told() -> None:
    environ = {"REVERIE_DATA": "x", "REVERIE_MASK_KEY": "k", "OTHER": "1", "REVERIE_THREADS": "2"}
    wrong = {
        "REVERIE_DATTA": "REVERIE_DATA",
        "REVERIE_MODEL": "REVERIE_MODELS",
        "REVERIE_SUMARY_EVERY": "REVERIE_SUMMARY_EVERY",
        "REVERIE_UNHEARD_OF": None,
        "REVERIE_摘要": None,
    }
    found = load_config(environ=environ | dict.fromkeys(wrong, "1")).unknown
    assert list(found.items()) == sorted(wrong.items())


def test_arguments_may_be_objects_and_are_checked() -> None:
    from reverie.models.standin import HashEmbedder

    embedder = HashEmbedder(8)
    loaded = load_config(environ={}, embedder=embedder, actors=3)
    assert loaded.config.embedder is embedder
    assert loaded.arguments == {"config": loaded.config, "actors": 3, "address": None}
    for wrong in ({"threads": 0}, {"nope": 1}, {"mask_key": "k"}):
        with pytest.raises(errors.ConfigError):
            load_config(environ={}, **wrong)


def test_a_folder_may_begin_with_its_settings(tmp_path: Path) -> None:
    written(tmp_path, 'embedder = "standin"\npartitions = 3\nbackground = false\n')
    loaded = load_config(folder=tmp_path, environ={})
    with reverie.open(tmp_path, **loaded.arguments) as rt:
        rt.user("ana").remember("It holds. 有效。")
        assert rt._folder.partitions == 3

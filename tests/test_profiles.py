"""Profiles: read from a file, checked, and errors that name the table and the key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support import opened

from reverie import Profile, errors, load_profiles

GOOD = """
[guard]
memories = 500
bytes = 2_000_000
model_calls = 100
prompt_tokens = 50_000
archive_below = 0.05
reflect_at = 15
ttl_s = { event = 604800, preference = 1 }
rest = { trust = 0.1, "忠诚" = 0.5, fear = 0 }

["商人"]
memories = 50
"""


def test_a_file_of_profiles(tmp_path: Path) -> None:
    path = tmp_path / "kinds.toml"
    path.write_text(GOOD, encoding="utf-8")
    assert load_profiles(path) == {
        "guard": Profile(
            name="guard",
            memories=500,
            bytes=2_000_000,
            model_calls=100,
            prompt_tokens=50_000,
            archive_below=0.05,
            reflect_at=15.0,
            ttl_s={"event": 604_800.0, "preference": 1.0},
            rest={"trust": 0.1, "忠诚": 0.5, "fear": 0.0},
        ),
        "商人": Profile(name="商人", memories=50),
    }
    assert list(load_profiles(path)["guard"].ttl_s) == ["event", "preference"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[guard]\nmemory = 5", ["guard", "memory", "memories"]),
        ("[guard]\nmemories = 5.5", ["guard", "memories", "whole number"]),
        ("[guard]\nmemories = true", ["guard", "memories"]),
        ("[guard]\nmemories = -1", ["guard", "memories"]),
        ("[guard]\nbytes = 1e9", ["guard", "bytes"]),
        ("[商人]\nbytes = 5", ["TOML"]),  # a bare key is ASCII
        ("['商人']\nmodel_calls = 'many'", ["商人", "model_calls", "many"]),
        ("[guard]\narchive_below = nan", ["guard", "archive_below"]),
        ("[guard]\narchive_below = -0.1", ["guard", "archive_below"]),
        ("[guard]\nreflect_at = 0", ["guard", "reflect_at"]),
        (f"[guard]\nreflect_at = 1{'0' * 400}", ["guard", "reflect_at"]),
        ("[guard]\nttl_s = 60", ["guard", "ttl_s", "table"]),
        ("[guard.ttl_s]\nevents = 60", ["guard", "ttl_s", "events", "event"]),
        ("[guard.ttl_s]\nevent = 0", ["guard", "ttl_s"]),
        ("[guard.rest]\ntrust = inf", ["guard", "rest"]),
        ("memories = 5", ["memories", "outside of a table"]),
        ("[guard", ["TOML"]),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, words: list[str]) -> None:
    path = tmp_path / "kinds.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(errors.ConfigError) as caught:
        load_profiles(path)
    assert all(word in caught.value.message for word in [*words, "kinds.toml"])


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(errors.ConfigError, match="nowhere"):
        load_profiles(tmp_path / "nowhere")
    (tmp_path / "latin").write_bytes("[garçon]\n".encode("latin-1"))
    with pytest.raises(errors.ConfigError, match="TOML"):
        load_profiles(tmp_path / "latin")


@pytest.mark.parametrize("path", [None, 1, b"x", [], "", "a\0b", "\ud800"])
def test_a_path_that_can_be_none(path: Any, tmp_path: Path) -> None:
    with pytest.raises(errors.InvalidValueError):
        load_profiles(path)
    with opened(tmp_path / "data", background=False) as rt:
        rt.create_world("default")
        with pytest.raises(errors.InvalidValueError):
            rt.world().export(path)
        with pytest.raises(errors.InvalidValueError):
            rt.import_world(path, "other")


def test_a_profile_is_checked_at_the_door(tmp_path: Path) -> None:
    with opened(tmp_path / "data", background=False) as rt:
        ana = rt.user("ana")
        for bad in (
            Profile(memories="5"),  # type: ignore[arg-type]
            Profile(ttl_s={"x": 1.0}),
            Profile(name="\udc80"),
            Profile(rest={"a": float("nan")}),
            Profile(rest={"信任": 10**400}),
            Profile(rest={"trust": -(10**5000)}),
            Profile(reflect_at=10**400),
            Profile(archive_below=10**400),
            Profile(ttl_s={"event": 10**400}),
            Profile(memories=10**5000),
        ):
            with pytest.raises(errors.ConfigError):
                ana.set_profile(bad)
        with pytest.raises(errors.InvalidValueError):
            ana.set_profile({"memories": 5})  # type: ignore[arg-type]
        assert rt.users() == []
        assert ana.set_profile(Profile(rest={"b": 1, "a": 2}))
        assert not ana.set_profile(Profile(rest={"a": 2.0, "b": 1.0}))
        assert ana.set_profile(None)
        assert ana.profile() is None

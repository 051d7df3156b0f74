"""Keys: how they are kept, who they let in, and that nothing else does."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from http_helpers import key_for, serving

import reverie
from reverie.http.keys import FILE, LOOK_EVERY_S, Door, KeyFile
from reverie.http.settings import HttpSettings, require_safe
from reverie.memory_graph.errors import ConfigError, InvalidValueError


def bearer(whole: str) -> str:
    return f"Bearer {whole}"


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.at = 100.0

    def __call__(self) -> float:
        return self.at


def test_only_a_hash_is_kept_and_only_for_its_owner(tmp_path: Path) -> None:
    whole, key = KeyFile(tmp_path).create("read", worlds=["小镇"], name="面包师")
    data = (tmp_path / FILE).read_text(encoding="utf-8")
    secret = whole.rpartition("_")[2]
    assert len(whole) > 56
    assert whole not in data
    assert secret not in data
    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600
    assert Door(KeyFile(tmp_path)).who(bearer(whole)) == key


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        "Bearer rv_",
        "Basic {whole}",
        "{whole}",
        "Bearer {whole}x",
        "Bearer {short}",
        "Bearer {upper}",
        "Bearer {digest}",
        "Bearer {whole},{whole}",
        "Bearer \N{FULLWIDTH LATIN SMALL LETTER R}v_{rest}",
    ],
)
def test_what_is_almost_the_key_opens_nothing(wrong: str | None, tmp_path: Path) -> None:
    whole, key = KeyFile(tmp_path).create("admin", everywhere=True)
    tries = {
        "whole": whole,
        "short": whole[:-1],
        "upper": whole.swapcase(),
        "digest": key.digest,
        "rest": whole[3:],
    }
    door = Door(KeyFile(tmp_path))
    assert door.who(bearer(whole)) is not None
    assert door.who(None if wrong is None else wrong.format(**tries)) is None


def test_the_scheme_may_be_written_in_any_case(tmp_path: Path) -> None:
    whole, _ = KeyFile(tmp_path).create("admin", everywhere=True)
    assert Door(KeyFile(tmp_path)).who(f"bEARER {whole}") is not None


def test_without_a_file_anybody_on_the_machine_is_let_in(tmp_path: Path) -> None:
    found = Door(KeyFile(tmp_path)).who(None)
    assert found is not None
    assert found.is_everywhere


def test_a_revoked_key_opens_nothing_within_a_second(tmp_path: Path) -> None:
    clock, file = Clock(), KeyFile(tmp_path)
    whole, key = file.create("write", worlds=["town"])
    door = Door(file, clock)
    assert door.who(bearer(whole)) is not None
    file.revoke(key.id)
    clock.at += LOOK_EVERY_S
    assert door.who(bearer(whole)) is None
    assert door.who(None) is None
    assert [k.revoked_at is None for k in file.read()] == [False]


def test_a_new_key_is_known_and_the_first_one_locks_the_door(tmp_path: Path) -> None:
    clock, file = Clock(), KeyFile(tmp_path)
    door = Door(file, clock)
    assert door.who(None) is not None
    whole, _ = file.create("read", everywhere=True)
    clock.at += LOOK_EVERY_S
    assert door.who(None) is None
    assert door.who(bearer(whole)) is not None


@pytest.mark.parametrize("harm", ["gone", "damaged", "open", "link", "newer"])
def test_a_file_that_cannot_be_trusted_lets_nobody_in(harm: str, tmp_path: Path) -> None:
    clock, file = Clock(), KeyFile(tmp_path)
    whole, _ = file.create("admin", everywhere=True)
    door = Door(file, clock)
    path = tmp_path / FILE
    match harm:
        case "gone":
            path.unlink()
        case "damaged":
            path.write_bytes(path.read_bytes()[:-5])
        case "open":
            path.chmod(0o640)
        case "link":
            path.rename(tmp_path / "elsewhere.json")
            path.symlink_to(tmp_path / "elsewhere.json")
        case _:
            path.write_bytes(path.read_bytes().replace(b'"version":1', b'"version":9'))
    os.utime(path, (1, 1), follow_symlinks=False) if path.is_symlink() or path.exists() else None
    clock.at += LOOK_EVERY_S
    assert door.who(bearer(whole)) is None
    assert door.who(None) is None
    if harm != "gone":
        with pytest.raises(ConfigError):
            Door(file)


@pytest.mark.parametrize(
    ("role", "fields"),
    [
        ("owner", {"everywhere": True}),
        ("read", {}),
        ("read", {"worlds": ["a"], "everywhere": True}),
        ("read", {"worlds": [""]}),
        ("read", {"worlds": ["a\0"]}),
    ],
)
def test_a_key_that_makes_no_sense_is_not_made(
    role: str, fields: dict[str, object], tmp_path: Path
) -> None:
    with pytest.raises(reverie.errors.InputError):
        KeyFile(tmp_path).create(role, **fields)  # type: ignore[arg-type]
    assert not KeyFile(tmp_path).exists


def test_a_key_that_is_not_there_cannot_be_revoked(tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError):
        KeyFile(tmp_path).revoke("0123456789ab")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "8.8.8.8"])  # noqa: S104 (it is refused)
def test_without_keys_it_listens_to_this_machine_only(host: str) -> None:
    settings = HttpSettings(host=host)
    with pytest.raises(ConfigError, match="keys"):
        require_safe(settings, has_keys=False)
    require_safe(settings, has_keys=True)


@pytest.mark.parametrize("rate", [0.0, -1.0, float("inf"), float("nan")])
def test_a_rate_that_is_no_number_of_requests_is_refused(rate: float) -> None:
    with pytest.raises(ConfigError, match="rate_per_s"):
        HttpSettings(rate_per_s=rate)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.10", "::1", "localhost"])
def test_this_machine_needs_no_keys(host: str) -> None:
    require_safe(HttpSettings(host=host), has_keys=False)


def test_roles_go_as_far_as_they_say(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with reverie.open(folder, embedder="standin", background=False, partitions=1):
        pass
    keys = {role: key_for(folder, role, "town") for role in ("read", "write", "admin")}
    user = "/v1/worlds/town/users/ana"
    asked = {
        "read": ("GET", f"{user}/memories", None),
        "write": ("POST", f"{user}/memories", {"text": "Tea. 茶。"}),
        "admin": ("DELETE", user, None),
    }
    with serving(folder) as client:
        for role, headers in keys.items():
            for needed, (method, path, body) in asked.items():
                status = client.request(method, path, json=body, headers=headers).status_code
                roles = list(keys)
                expected = 200 if roles.index(role) >= roles.index(needed) else 403
                assert status == expected, (role, needed)


def test_only_health_and_ready_need_no_key(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with reverie.open(folder, embedder="standin", background=False, partitions=1):
        pass
    mine = key_for(folder, "admin", "town")
    whole = key_for(folder, "read", everywhere=True)
    with serving(folder) as client:
        assert [client.get(p).status_code for p in ("/health", "/ready")] == [200, 200]
        for path in ("/metrics", "/openapi.json", "/v1/worlds", "/nowhere", "/v1/stats"):
            answer = client.get(path)
            assert answer.status_code == 401, path
            assert answer.headers["www-authenticate"] == "Bearer"
        assert client.get("/metrics", headers=mine).status_code == 403
        assert client.get("/metrics", headers=whole).status_code == 200
        assert client.get("/v1/stats", headers=whole).status_code == 403
        assert client.get("/v1/stats", headers=mine).status_code == 403

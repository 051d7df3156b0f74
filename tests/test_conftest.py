"""The guards of conftest.py work."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]


@pytest.mark.parametrize("address", [("192.0.2.1", 80), ("2001:db8::1", 80)])
def test_connections_beyond_this_machine_are_refused(
    address: tuple[str, int], network_attempts: list[str]
) -> None:
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    with socket.socket(family) as sock, pytest.raises(RuntimeError, match=r"socket\.connect"):
        sock.connect(address)
    with pytest.raises(RuntimeError, match=r"socket\.getaddrinfo"):
        socket.getaddrinfo("example.org", 443)
    assert len(network_attempts) == 2
    network_attempts.clear()  # they were meant


def test_loopback_and_unix_sockets_are_open(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname()).close()
    with socket.socket(socket.AF_UNIX) as unix, pytest.raises(FileNotFoundError):
        unix.connect(str(tmp_path / "nobody"))


def test_home_is_not_the_users() -> None:
    assert Path.home().name.startswith("reverie-tests-")
    assert Path(os.environ["XDG_CACHE_HOME"]).is_relative_to(Path.home())
    assert not Path(os.environ["REVERIE_MODELS"]).is_relative_to(Path.home())


PLANTED = """
    import socket
    import pytest
    from reverie.memory_graph.errors import ModelMissingError

    @pytest.mark.model
    def test_without_its_model():
        raise ModelMissingError("no such file")

    def test_that_swallows():
        try:
            socket.create_connection(("192.0.2.1", 80))
        except Exception:
            pass
"""


@pytest.mark.slow
@pytest.mark.parametrize(("allow", "outcomes"), [("", {"failed": 1}), ("1", {"skipped": 1})])
def test_missing_models_fail_unless_skips_are_allowed(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, allow: str, outcomes: dict[str, int]
) -> None:
    monkeypatch.setenv("REVERIE_ALLOW_SKIP", allow)
    pytester.makeconftest(Path(__file__).with_name("conftest.py").read_text())
    pytester.makepyfile(PLANTED)
    result = pytester.runpytest_subprocess("-m", "model")
    result.assert_outcomes(**outcomes, deselected=1, warnings=1)
    if not allow:
        result.stdout.fnmatch_lines(["*reverie models pull*"])


@pytest.mark.slow
def test_a_swallowed_attempt_fails_too(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(Path(__file__).with_name("conftest.py").read_text())
    pytester.makepyfile(PLANTED)
    result = pytester.runpytest_subprocess("-m", "not model")
    result.assert_outcomes(passed=1, errors=1, deselected=1, warnings=1)

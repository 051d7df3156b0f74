"""What every test gets: no network, a home folder of its own, and repeatable random examples."""

from __future__ import annotations

import ipaddress
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import platformdirs
import pytest

from reverie.memory_graph.errors import ModelMissingError

if TYPE_CHECKING:
    from support import Factory

    from reverie import Runtime
    from reverie.world import World

# -- a home folder for the session ------------------------------------------------------

PULL = "reverie models pull minilm smollm2 multilingual"
_home = pytest.StashKey[Path]()


def pytest_configure(config: pytest.Config) -> None:
    """Point home and caches to a temporary folder; the models stay where they are."""
    models = os.environ.get("REVERIE_MODELS") or platformdirs.user_cache_path("reverie") / "models"
    os.environ["REVERIE_MODELS"] = str(Path(models).absolute())
    home = Path(tempfile.mkdtemp(prefix="reverie-tests-"))
    config.stash[_home] = home
    os.environ["HOME"] = str(home)
    for kind in ("CACHE", "CONFIG", "DATA", "STATE"):
        os.environ[f"XDG_{kind}_HOME"] = str(home / kind.lower())
    if Path(models).exists():  # also where code that is not told of REVERIE_MODELS looks
        (home / "cache" / "reverie").mkdir(parents=True)
        (home / "cache" / "reverie" / "models").symlink_to(Path(models).absolute())
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"  # would call home


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the temporary home folder."""
    shutil.rmtree(config.stash[_home], ignore_errors=True)


# -- runtimes ---------------------------------------------------------------------------


@pytest.fixture
def factory(tmp_path: Path) -> Iterator[Factory]:
    """Opens runtimes on folders of the test's own; all of them are checked afterwards."""
    from support import Factory  # test_conftest.py copies this file to where that is not

    made = Factory(tmp_path, None)
    yield made
    made.finish()


@pytest.fixture
def rt(factory: Factory) -> Runtime:
    """A runtime."""
    return factory()


@pytest.fixture
def town(rt: Runtime) -> World:
    """A world of that runtime."""
    return rt.world("town")


# -- missing models ---------------------------------------------------------------------


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Say how to get a missing model. Only REVERIE_ALLOW_SKIP=1 makes it a skip."""
    report = yield
    if call.excinfo is not None and call.excinfo.errisinstance(ModelMissingError):
        if item.get_closest_marker("model") and os.environ.get("REVERIE_ALLOW_SKIP") == "1":
            report.outcome = "skipped"
            report.longrepr = (str(item.path), item.location[1] or 0, str(call.excinfo.value))
        else:
            report.sections.append(("missing model", f"run: {PULL}"))
    return report


# -- no network -------------------------------------------------------------------------


class NetworkUsedError(RuntimeError):
    """A test reached beyond this machine."""


_armed = False
_attempts: list[str] = []


def is_local(host: object) -> bool:
    """Say whether a host, as sockets take it, is this machine."""
    if host in {None, "", b"", "localhost", socket.gethostname()}:
        return True
    name = host.decode() if isinstance(host, bytes) else str(host)
    try:
        address = ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return False  # a name that would have to be looked up
    if address.is_loopback or address.is_unspecified:
        return True
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    with socket.socket(family, socket.SOCK_DGRAM) as probe:  # only own addresses can be bound
        try:
            probe.bind((name, 0))
        except OSError:
            return False
    return True


def _watch(event: str, args: tuple[object, ...]) -> None:
    """Refuse to look up or to reach what is not this machine."""
    if not _armed:
        return
    if event in {"socket.getaddrinfo", "socket.gethostbyname"}:
        host = args[0]
    elif event in {"socket.connect", "socket.sendto"}:
        sock, address = args[:2]
        if not isinstance(sock, socket.SocketType) or not isinstance(address, tuple):
            return  # a Unix socket
        # Connecting a datagram socket sends nothing; Ray learns its own address that way.
        if event == "socket.connect" and sock.type == socket.SOCK_DGRAM:
            return
        host = address[0]
    else:
        return
    if not is_local(host):
        _attempts.append(f"{event} {host!r}")
        raise NetworkUsedError(_attempts[-1])


sys.addaudithook(_watch)


@pytest.fixture(autouse=True)
def network_attempts() -> Iterator[list[str]]:
    """Fail a test that reaches beyond this machine, even if it swallowed the error."""
    global _armed  # noqa: PLW0603 (an audit hook cannot be removed, only told to look away)
    _attempts.clear()
    _armed = True
    yield _attempts
    _armed = False
    assert not _attempts, f"tests run without a network, but this one tried: {_attempts}"


# -- random examples --------------------------------------------------------------------

# No deadline: the time of one example says more about the machine than about the code.
hypothesis.settings.register_profile("dev", max_examples=50, deadline=None)
hypothesis.settings.register_profile(
    "ci", max_examples=200, deadline=None, derandomize=True, print_blob=True
)
hypothesis.settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev")
)

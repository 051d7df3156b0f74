"""Settings of the server: where it listens, and every bound that it keeps."""

from __future__ import annotations

import ipaddress
import math
import socket
from contextlib import suppress
from pathlib import Path

import msgspec

from reverie.destinations import outside
from reverie.memory_graph.errors import ConfigError, InvalidValueError

PORT = 8642
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")  # of the Host header


class HttpSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the server.

    Attributes:
        host: address or name to listen on. Without keys, only the machine itself.
        port: to listen on; 0 takes any that is free.
        allowed_hosts: names that the Host header may hold beside those of the machine itself. On
            loopback any other is refused, or a web page could make its own name point here (DNS
            rebinding); elsewhere this is checked only if names are given.
        max_body_bytes: of a request.
        max_upload_bytes: of an imported world and of lines to ingest, which lie on disk meanwhile.
        max_held_bytes: of all bodies in memory at once.
        max_depth: levels of nesting in JSON.
        max_calls: requests under way at once; more are told to come again.
        threads: that carry out calls.
        slow_threads: that carry out calls which may take minutes.
        rate_per_s: requests a second of one key (of everybody, without keys); None is no limit.
        burst: requests that a key may make at once after a pause.
        head_timeout_s: until a request line and its headers are there, from the connection on.
        body_timeout_s: until a body is there.
        call_timeout_s: of a call; the caller then hears that the work goes on.
        slow_timeout_s: of a call that may take minutes.
        access_log: log each request, by its operation, without ids or texts.
        backups: the folder of this machine that backups go to which are asked for over HTTP; None
            makes none.
    """

    host: str = "127.0.0.1"
    port: int = PORT
    allowed_hosts: tuple[str, ...] = ()
    max_body_bytes: int = 4 * 1024**2
    max_upload_bytes: int = 1024**3
    max_held_bytes: int = 256 * 1024**2
    max_depth: int = 64
    max_calls: int = 1024
    threads: int = 16
    slow_threads: int = 8
    rate_per_s: float | None = 1000.0
    burst: int = 2000
    head_timeout_s: float = 15.0
    body_timeout_s: float = 60.0
    call_timeout_s: float = 60.0
    slow_timeout_s: float = 3600.0
    access_log: bool = True
    backups: Path | None = None

    def __post_init__(self) -> None:
        """Refuse values out of range with a ConfigError."""
        if not self.host.strip():
            msg = "host is empty; 127.0.0.1 listens on this machine only"
            raise ConfigError(msg, setting="host")
        if not 0 <= self.port < 2**16:
            msg = f"port must be a number from 0 to {2**16 - 1}, not {self.port!r}"
            raise ConfigError(msg, setting="port")
        for name in self.__struct_fields__:
            value = getattr(self, name)
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            if name != "port" and is_number and not 0 < value < math.inf:
                msg = f"{name} must be a number over 0, not {value!r}"
                raise ConfigError(msg, setting=name)

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach `host`; a name counts by all that it stands for.

        Raises:
            ConfigError: the name stands for nothing.
        """
        with suppress(ValueError):  # an address needs no looking up
            return ipaddress.ip_address(self.host).is_loopback
        try:
            found = socket.getaddrinfo(self.host, None, proto=socket.IPPROTO_TCP)
        except OSError as exc:
            msg = f"host {self.host!r} is no address of this machine: {exc.strerror or exc}"
            raise ConfigError(msg, setting="host").because(exc) from exc
        addresses = [str(address[0]).partition("%")[0] for *_, address in found]
        return all(ipaddress.ip_address(address).is_loopback for address in addresses)


def require_backups(settings: HttpSettings, data: Path) -> None:
    """Refuse a folder for backups that is none, or lies in the data folder.

    Raises:
        ConfigError: the message says which.
    """
    if settings.backups is None:
        return
    try:
        folder = outside(settings.backups, data, "keep backups on another disk")
    except InvalidValueError as exc:
        raise ConfigError(exc.message, setting="backups").because(exc) from exc
    if not folder.is_dir():
        msg = f"backups go to a folder that is there, and {folder} is none"
        raise ConfigError(msg, setting="backups")


def require_safe(settings: HttpSettings, *, has_keys: bool) -> None:
    """Refuse to listen where others can reach it when nobody has to show a key.

    Raises:
        ConfigError: it has no keys and is no address of loopback.
    """
    if not has_keys and not settings.is_loopback:
        msg = (
            f"without keys the server listens on this machine only, not on {settings.host!r}: make "
            "one with reverie keys create, or leave --host out"
        )
        raise ConfigError(msg, setting="host")

"""Who may come in: which host was meant, from which page, with which key, how often.

The gate of HTTP and the guard of MCP ask here, so both keep the same bounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec
from starlette.responses import Response

from reverie.http.faults import Fault, Refusal
from reverie.http.keys import Door, Key
from reverie.http.limits import Rates
from reverie.http.settings import LOOPBACK_NAMES, HttpSettings

if TYPE_CHECKING:
    from starlette.types import Scope

JSON = "application/json"


class Admission:
    """Lets requests in, or refuses them. Used in the thread of the event loop.

    Args:
        door: knows keys.
        settings: the names that the server goes by, and how many requests a key may make.
        origins: values that the Origin header may hold beside the server's own.
    """

    def __init__(self, door: Door, settings: HttpSettings, origins: Iterable[str] = ()) -> None:
        self.door = door
        self._rates = Rates(settings.rate_per_s, settings.burst)
        names = {name.lower() for name in settings.allowed_hosts}
        if settings.is_loopback:
            names |= {*LOOPBACK_NAMES, settings.host.lower(), f"[{settings.host.lower()}]"}
        self._hosts = names  # empty: any
        self._origins = {origin.lower().rstrip("/").encode("latin-1") for origin in origins}

    def check_page(self, headers: Mapping[bytes, Sequence[bytes]]) -> None:
        """Refuse a request for another host, and one of a web page of another site.

        Raises:
            Refusal: it is one.
        """
        hosts = headers.get(b"host", ())
        if len(hosts) != 1:
            msg = "a request names one host"
            raise Refusal("MisdirectedHost", msg)
        host = hosts[0].lower()
        name, _, port = host.rpartition(b":")
        named = (name if name and port.isdigit() else host).decode("latin-1")
        if self._hosts and named not in self._hosts:
            msg = "this server does not go by that name; allow it with --allow-host"
            raise Refusal("MisdirectedHost", msg)
        given = {origin.lower() for origin in headers.get(b"origin", ())}
        foreign = given - {b"http://" + host, b"https://" + host}
        is_elsewhere = b"cross-site" in headers.get(b"sec-fetch-site", ())
        if foreign - self._origins or (is_elsewhere and not foreign):
            msg = "requests of web pages of other sites are refused"
            raise Refusal("ForeignOrigin", msg)

    def key_of(self, headers: Mapping[bytes, Sequence[bytes]]) -> Key:
        """Return whose request it is.

        Raises:
            Refusal: nobody's who may come in.
        """
        given = headers.get(b"authorization", ())
        key = self.door.who(given[0].decode("latin-1") if len(given) == 1 else None)
        if key is None:
            msg = "this server needs a key: Authorization: Bearer rv_..."
            raise Refusal("Unauthenticated", msg, headers={"WWW-Authenticate": "Bearer"})
        return key

    def count(self, key: Key) -> None:
        """Count a request of a key; raises Refusal when it makes too many."""
        self._rates.take(key.id)


def headers_of(scope: Scope) -> dict[bytes, list[bytes]]:
    """Return the headers of a request by name, in lower case."""
    headers: dict[bytes, list[bytes]] = {}
    for name, value in scope["headers"]:
        headers.setdefault(name.lower(), []).append(value)
    return headers


def refused(status: int, fault: Fault, headers: Mapping[str, str] | None = None) -> Response:
    """Return the answer that tells of an error."""
    return Response(msgspec.json.encode(fault), status, dict(headers or {}), JSON)

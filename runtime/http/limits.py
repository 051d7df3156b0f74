"""Bounds of what comes in: bytes, levels of JSON, requests a second."""

from __future__ import annotations

import asyncio
import re
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from reverie.http.faults import RETRY_AFTER_S, Refusal

if TYPE_CHECKING:
    from reverie.http.settings import HttpSettings

MAX_BUCKETS = 10_000
_MARKS = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]', re.DOTALL)
CLOSE = {"Connection": "close"}  # what is still coming is not read


def check_depth(data: bytes, most: int) -> None:
    """Refuse JSON with more than `most` levels, before a parser goes down into them.

    Raises:
        Refusal: it has.
    """
    if data.count(b"[") + data.count(b"{") <= most:
        return
    depth = 0
    for match in _MARKS.finditer(data):
        mark = match[0]
        if mark in b"[{":
            depth += 1
            if depth > most:
                msg = f"JSON of more than {most} levels is not read"
                raise Refusal("MalformedRequest", msg, max_depth=most)
        elif mark in b"]}":
            depth -= 1


class Held:
    """Counts the bytes of all bodies in memory. Used in the thread of the event loop."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.bytes = 0

    def add(self, size: int) -> None:
        """Count some more; raises Refusal when there are too many, and counts nothing then."""
        if self.bytes + size > self.most:
            msg = "too much is being sent at once; try again later"
            raise Refusal(
                "TooManyRequests", msg, headers={"Retry-After": str(RETRY_AFTER_S), **CLOSE}
            )
        self.bytes += size

    def drop(self, size: int) -> None:
        """Count some less."""
        self.bytes -= size


def too_large(most: int) -> Refusal:
    """Return the refusal of a body over `most` bytes."""
    msg = f"a body here has at most {most:,} bytes; split it"
    return Refusal("BodyTooLarge", msg, headers=CLOSE, max_bytes=most)


def declared_size(header: str | None, most: int) -> None:
    """Refuse a body by what its Content-Length says; raises Refusal."""
    if header is None:
        return
    if not header.isascii() or not header.isdigit():
        msg = "Content-Length is no number"
        raise Refusal("MalformedRequest", msg, headers=CLOSE)
    if len(header) > 18 or int(header) > most:  # noqa: PLR2004 (digits of a 64-bit number)
        raise too_large(most)


async def chunks(stream: AsyncIterator[bytes], most: int, timeout_s: float) -> AsyncIterator[bytes]:
    """Yield the parts of a body, whatever its Content-Length said, up to `most` bytes.

    Raises:
        Refusal: it is larger, or not there after `timeout_s` seconds.
    """
    size, deadline = 0, time.monotonic() + timeout_s
    iterator = aiter(stream)
    while True:
        try:
            async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
                part = await anext(iterator, None)
        except TimeoutError:
            msg = f"the body was not there after {timeout_s:g} seconds"
            raise Refusal("RequestTimeout", msg, headers=CLOSE) from None
        if part is None:
            return
        size += len(part)
        if size > most:
            raise too_large(most)
        if part:
            yield part


async def whole(
    stream: AsyncIterator[bytes], length: str | None, settings: HttpSettings, held: Held
) -> bytes:
    """Return a body within the bounds of the settings, counted in `held`.

    Args:
        stream: its parts.
        length: what the header Content-Length says.
        settings: how large it may be, and how long it may take.
        held: all bodies in memory.

    Raises:
        Refusal: it is too large, or not there in time; nothing is counted then.
    """
    declared_size(length, settings.max_body_bytes)
    parts: list[bytes] = []
    size = 0
    try:
        async for part in chunks(stream, settings.max_body_bytes, settings.body_timeout_s):
            held.add(len(part))
            size += len(part)
            parts.append(part)
    except BaseException:
        held.drop(size)
        raise
    return b"".join(parts)


class Rates:
    """A bucket of tokens for each key: `burst` at once, then `rate_per_s` a second."""

    def __init__(
        self,
        rate_per_s: float | None,
        burst: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._rate = rate_per_s
        self._burst = float(burst)
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, key_id: str) -> None:
        """Take a token of a key; raises Refusal when it has none left."""
        if self._rate is None:
            return
        now = self._clock()
        left, at = self._buckets.pop(key_id, (self._burst, now))
        left = min(self._burst, left + (now - at) * self._rate)
        enough = left >= 1.0
        self._buckets[key_id] = (left - 1.0 if enough else left, now)
        with suppress(KeyError):
            if len(self._buckets) > MAX_BUCKETS:
                self._buckets.popitem(last=False)
        if not enough:
            wait_s = max(RETRY_AFTER_S, int((1.0 - left) / self._rate) + 1)
            msg = f"over {self._rate:g} requests a second; slow down"
            raise Refusal("TooManyRequests", msg, headers={"Retry-After": str(wait_s)})

"""Large bodies on their way: in temporary files, whose names are gone before anything is in them
where that can be."""

from __future__ import annotations

import os
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from reverie.http.limits import chunks, declared_size
from reverie.http.state import NOTE

if TYPE_CHECKING:
    from starlette.requests import Request

    from reverie.http.state import State

PART_BYTES = 256 * 1024


@contextmanager
def named_folder() -> Iterator[Path]:
    """A temporary folder for a file that needs a name; gone afterwards, with what is in it."""
    with tempfile.TemporaryDirectory(prefix="reverie-") as name:
        yield Path(name)


def unnamed() -> IO[bytes]:
    """Return an empty temporary file without a name: nothing of it outlives this process."""
    return tempfile.TemporaryFile(prefix="reverie-")


async def receive(state: State, request: Request, file: IO[bytes]) -> int:
    """Write the body of a request into a file, and return its size in bytes.

    Raises:
        Refusal: it is too large, or not there in time.
    """
    settings, size = state.settings, 0
    declared_size(request.headers.get("content-length"), settings.max_upload_bytes)
    waiting: list[bytes] = []
    held = 0

    async def write() -> None:
        nonlocal held
        data = b"".join(waiting)
        waiting.clear()
        await state.slow.run(lambda: file.write(data), settings.slow_timeout_s)
        state.held.drop(held)
        held = 0

    try:
        async for part in chunks(
            request.stream(), settings.max_upload_bytes, settings.slow_timeout_s
        ):
            state.held.add(len(part))
            held += len(part)
            size += len(part)
            waiting.append(part)
            if held >= PART_BYTES:
                await write()
        await write()
    finally:
        state.held.drop(held)
    request.scope[NOTE].received = size
    return size


async def parts(state: State, file: IO[bytes]) -> AsyncIterator[bytes]:
    """Yield the bytes of a file, and close it."""
    with file:
        while part := await state.slow.run(
            lambda: file.read(PART_BYTES), state.settings.slow_timeout_s
        ):
            yield part


def size_of(file: IO[bytes]) -> int:
    """Return the size of an open file in bytes."""
    return os.fstat(file.fileno()).st_size

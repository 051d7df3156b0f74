"""The async twins under load: a bounded queue, also of calls that nobody waits for any more."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

import reverie
from reverie.aio import THREADS


def test_calls_beyond_the_bound_are_refused(tmp_path: Path) -> None:
    go = threading.Event()
    bound = THREADS + 3

    async def overload() -> None:
        opened = reverie.open_async(tmp_path, embedder="standin", max_waiting=bound)
        async with await opened as runtime:
            waiting = [asyncio.ensure_future(runtime.run(go.wait)) for _ in range(bound)]
            await asyncio.sleep(0)
            with pytest.raises(reverie.errors.OverloadedError) as caught:
                await runtime.user("ana").remember("Too much. 太多了。")
            assert caught.value.details == {"waiting": bound}
            go.set()
            assert all(await asyncio.gather(*waiting))
            kept = await runtime.user("ana").remember("Later. 后来。")
            assert [item.id for item in (await runtime.user("ana").list()).items] == [
                kept.memory_id
            ]

    asyncio.run(overload())


def test_a_cancelled_call_is_not_begun_and_counts_until_it_has_left_the_queue(
    tmp_path: Path,
) -> None:
    go, made = threading.Event(), []

    async def overload() -> None:
        opened = reverie.open_async(tmp_path, embedder="standin", max_waiting=THREADS + 1)
        async with await opened as runtime:
            busy = [asyncio.ensure_future(runtime.run(go.wait)) for _ in range(THREADS)]
            late = asyncio.ensure_future(runtime.run(lambda: made.append("late")))
            await asyncio.sleep(0)
            late.cancel()
            with pytest.raises(asyncio.CancelledError):
                await late
            with pytest.raises(reverie.errors.OverloadedError):
                await runtime.run(lambda: made.append("too much"))
            go.set()
            await asyncio.gather(*busy)
            await runtime.run(lambda: made.append("after"))

    asyncio.run(overload())
    assert made == ["after"]

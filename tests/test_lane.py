"""The lane: order, batches, bounds, errors, and handing over the lead, under threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from support import START

from reverie.actors import commands as c
from reverie.actors.backend import Router
from reverie.actors.lane import MAX_BATCH, MAX_BULK, Lane
from reverie.memory_graph.errors import (
    ClosedError,
    InternalError,
    OverloadedError,
    ShardUnavailableError,
)


def command(name: str) -> c.Get:
    return c.Get(world="w", user_id="u", now=START, node_id=name)


class Recorder:
    """A transport that echoes ids, and can be told to wait or to fail."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.inside = threading.Event()
        self.go = threading.Event()
        self.go.set()
        self.fail: Callable[[], None] = lambda: None
        self.busy = 0

    def __call__(self, batch: Sequence[Any]) -> list[Any]:
        self.busy += 1
        assert self.busy == 1, "two batches under way at once"
        names = [getattr(cmd, "node_id", "") for cmd in batch]
        self.batches.append(names)
        self.inside.set()
        try:
            assert self.go.wait(30)
            self.fail()
        finally:
            self.busy -= 1
        return names


def start(call: Callable[[], object]) -> tuple[threading.Thread, list[Any]]:
    """Run a call in a thread; the list gets its answer or its error."""
    results: list[Any] = []

    def run() -> None:
        try:
            results.append(call())
        except BaseException as exc:  # noqa: BLE001 (the test looks at it)
            results.append(exc)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, results


def queued(lane: Lane, count: int) -> None:
    """Wait until so many callers wait in a lane."""
    deadline = time.monotonic() + 30
    while len(lane._queue) < count:
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_a_single_caller_is_answered_in_order() -> None:
    transport = Recorder()
    lane = Lane(transport)
    assert lane.call([command("a"), command("b")]) == ["a", "b"]
    assert lane.call([]) == []
    assert lane.call([command("c")]) == ["c"]
    assert transport.batches == [["a", "b"], [], ["c"]]


def test_what_gathers_meanwhile_goes_in_one_batch() -> None:
    transport = Recorder()
    lane = Lane(transport)
    transport.go.clear()
    first = start(lambda: lane.call([command("first")]))
    assert transport.inside.wait(30)
    others = []
    for i in range(MAX_BATCH + 6):
        others.append(start(lambda i=i: lane.call([command(f"{i}")])))  # type: ignore[misc]
        queued(lane, i + 1)
    transport.go.set()
    for thread, _ in [first, *others]:
        thread.join(30)
    assert first[1] == [["first"]]
    assert [results for _, results in others] == [[[f"{i}"]] for i in range(MAX_BATCH + 6)]
    assert [len(b) for b in transport.batches] == [1, MAX_BATCH, 6]
    assert [n for b in transport.batches[1:] for n in b] == [f"{i}" for i in range(MAX_BATCH + 6)]


def test_a_bulk_call_is_cut() -> None:
    transport = Recorder()
    lane = Lane(transport, max_waiting=10)
    names = [f"{i}" for i in range(2 * MAX_BULK + 1)]
    assert lane.call([command(n) for n in names]) == names
    assert [len(b) for b in transport.batches] == [MAX_BULK, MAX_BULK, 1]


def test_a_bulk_call_that_is_refused_half_way_says_which_were_done() -> None:
    transport = Recorder()
    lane = Lane(transport)

    def close_after_first() -> None:
        lane._closed = True

    transport.fail = close_after_first
    answers = lane.call([command(f"{i}") for i in range(MAX_BULK + 2)])
    assert answers[:MAX_BULK] == [f"{i}" for i in range(MAX_BULK)]
    assert [type(a) for a in answers[MAX_BULK:]] == [ClosedError] * 2


def test_a_full_lane_refuses() -> None:
    transport = Recorder()
    lane = Lane(transport, max_waiting=2)
    transport.go.clear()
    first = start(lambda: lane.call([command("first")]))
    assert transport.inside.wait(30)
    waiting = start(lambda: lane.call([command("a"), command("b")]))
    queued(lane, 1)
    with pytest.raises(OverloadedError) as caught:
        lane.call([command("c")])
    assert caught.value.details["waiting"] == 2
    transport.go.set()
    for thread, _ in (first, waiting):
        thread.join(30)
    assert waiting[1] == [["a", "b"]]
    assert lane.call([command("c")]) == ["c"]
    assert [n for b in transport.batches for n in b] == ["first", "a", "b", "c"]


def test_an_error_of_the_transport_reaches_every_caller_of_the_batch() -> None:
    transport = Recorder()
    lane = Lane(transport)
    transport.go.clear()
    first = start(lambda: lane.call([command("first")]))
    assert transport.inside.wait(30)
    others = [start(lambda: lane.call([command("x"), command("y")])) for _ in range(3)]
    queued(lane, 3)

    def fail() -> None:
        if len(transport.batches) == 2:
            msg = "gone"
            raise ShardUnavailableError(msg)

    transport.fail = fail
    transport.go.set()
    for thread, _ in [first, *others]:
        thread.join(30)
    assert first[1] == [["first"]]
    for _, results in others:
        assert [type(a) for a in results[0]] == [ShardUnavailableError] * 2
    assert lane.call([command("z")]) == ["z"]


def test_an_interrupted_leader_hands_over() -> None:
    transport = Recorder()
    lane = Lane(transport)

    def interrupt() -> None:
        raise KeyboardInterrupt

    transport.fail = interrupt
    transport.go.clear()
    leader = start(lambda: lane.call([command("a")]))
    assert transport.inside.wait(30)
    follower = start(lambda: lane.call([command("b")]))
    queued(lane, 1)
    transport.fail = lambda: interrupt() if len(transport.batches) == 1 else None
    transport.go.set()
    for thread, _ in (leader, follower):
        thread.join(30)
    assert [type(r) for r in leader[1]] == [KeyboardInterrupt]
    assert follower[1] == [["b"]]
    lane.close()


def test_an_interrupted_follower_leaves_the_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    transport = Recorder()
    lane = Lane(transport)
    transport.go.clear()
    leader = start(lambda: lane.call([command("a")]))
    assert transport.inside.wait(30)

    def interrupted(self: threading.Condition, timeout: float | None = None) -> bool:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:  # the leader waits already
        patch.setattr(threading.Condition, "wait", interrupted)
        with pytest.raises(KeyboardInterrupt):
            lane.call([command("b")])
    assert (len(lane._queue), lane._waiting) == (0, 0)
    transport.go.set()
    leader[0].join(30)
    closer = start(lane.close)
    closer[0].join(30)
    assert closer[1] == [None]
    assert transport.batches == [["a"]]


def test_a_follower_that_is_interrupted_when_it_is_to_lead_passes_that_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    transport = Recorder()
    lane = Lane(transport)
    wait = threading.Condition.wait
    names: dict[int, str] = {}

    def interrupted(self: threading.Condition, timeout: float | None = None) -> bool:
        woken = wait(self, timeout)
        if names.get(threading.get_ident()) == "next":
            raise KeyboardInterrupt
        return woken

    def call(name: str) -> list[Any]:
        names[threading.get_ident()] = name
        return lane.call([command(name)])

    with monkeypatch.context() as patch:
        patch.setattr(threading.Condition, "wait", interrupted)
        with lane.alone():
            first = start(lambda: call("next"))
            queued(lane, 1)
            second = start(lambda: call("after"))
            queued(lane, 2)
        for thread, _ in (first, second):
            thread.join(30)
    assert [type(r) for r in first[1]] == [KeyboardInterrupt]
    assert second[1] == [["after"]]
    assert transport.batches == [["after"]]


def test_what_an_interrupt_leaves_between_taking_and_carrying_is_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    transport = Recorder()
    lane = Lane(transport)

    def interrupted(batch: object) -> None:
        raise KeyboardInterrupt

    with lane.alone():
        callers = [start(lambda i=i: lane.call([command(f"{i}")])) for i in range(3)]  # type: ignore[misc]
        queued(lane, 3)
        monkeypatch.setattr(lane, "_carry", interrupted)
    for thread, _ in callers:
        thread.join(30)
    kinds = sorted(str(type(r[0][0] if isinstance(r[0], list) else r[0])) for _, r in callers)
    assert kinds == sorted(map(str, [KeyboardInterrupt, ClosedError, ClosedError]))
    monkeypatch.undo()
    assert lane.call([command("z")]) == ["z"]


def test_a_batch_wakes_those_that_it_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    transport = Recorder()
    lane = Lane(transport)
    wait = threading.Condition.wait
    woken: list[int] = []
    callers: set[int] = set()

    def counted(self: threading.Condition, timeout: float | None = None) -> bool:
        told = wait(self, timeout)
        if threading.get_ident() in callers:
            woken.append(threading.get_ident())
        return told

    def call(name: str) -> list[Any]:
        callers.add(threading.get_ident())
        return lane.call([command(name)])

    count = 3 * MAX_BATCH
    with monkeypatch.context() as patch:
        patch.setattr(threading.Condition, "wait", counted)
        with lane.alone():
            others = [start(lambda i=i: call(f"{i}")) for i in range(count)]  # type: ignore[misc]
            queued(lane, count)
        for thread, _ in others:
            thread.join(30)
    assert [results for _, results in others] == [[[f"{i}"]] for i in range(count)]
    assert [len(batch) for batch in transport.batches] == [MAX_BATCH] * 3
    assert len(woken) == count  # once each, be it to lead or to be answered


def test_too_few_answers_are_a_fault_of_ours() -> None:
    lane = Lane(lambda batch: [])
    (answer,) = lane.call([command("a")])
    assert isinstance(answer, InternalError)


def test_closing_waits_for_those_under_way_and_refuses_further_ones() -> None:
    transport = Recorder()
    lane = Lane(transport)
    transport.go.clear()
    first = start(lambda: lane.call([command("a")]))
    assert transport.inside.wait(30)
    second = start(lambda: lane.call([command("b")]))
    queued(lane, 1)
    closer = start(lane.close)
    while not lane._closed:
        time.sleep(0.001)
    with pytest.raises(ClosedError):
        lane.call([command("c")])
    with pytest.raises(ClosedError):
        lane.call([])
    assert closer[0].is_alive()
    transport.go.set()
    for thread, _ in (first, second, closer):
        thread.join(30)
    assert (first[1], second[1]) == ([["a"]], [["b"]])
    with pytest.raises(ClosedError), lane.alone():
        pass
    lane.close()


def test_alone_keeps_the_others_out() -> None:
    transport = Recorder()
    lane = Lane(transport)
    with lane.alone() as send:
        other = start(lambda: lane.call([command("b")]))
        queued(lane, 1)
        assert send([command("a")]) == ["a"]
        assert transport.batches == [["a"]]
    other[0].join(30)
    assert other[1] == [["b"]]


def test_under_many_threads_nothing_is_lost_doubled_or_reordered() -> None:
    transport = Recorder()
    lane = Lane(transport)

    def client(i: int) -> bool:
        return all(lane.call([command(f"{i}:{n}")]) == [f"{i}:{n}"] for n in range(200))

    clients = [start(lambda i=i: client(i)) for i in range(8)]  # type: ignore[misc]
    for thread, _ in clients:
        thread.join(60)
    assert [results for _, results in clients] == [[True]] * 8
    done = [name for batch in transport.batches for name in batch]
    assert len(done) == len(set(done)) == 1600
    for i in range(8):
        mine = [name for name in done if name.startswith(f"{i}:")]
        assert mine == [f"{i}:{n}" for n in range(200)]


# -- the router -------------------------------------------------------------------------


class Lanes:
    """A backend of recorders."""

    repeats = False

    def __init__(self, count: int) -> None:
        self.recorders = [Recorder() for _ in range(count)]
        self.transports = self.recorders
        self.closed = 0

    def close(self) -> None:
        self.closed += 1


def to(user: str) -> c.Get:
    return c.Get(world="w", user_id=user, now=START, node_id=user)


@pytest.mark.parametrize("count", [1, 3])
def test_commands_go_to_the_owner_of_their_user(count: int) -> None:
    backend = Lanes(count)
    router = Router(backend, 16, max_waiting=4096)
    users = [f"用户 {i}" for i in range(50)]
    assert router.call_many([to(u) for u in users]) == users
    assert [router.call(to(u)) for u in users] == users
    homes = [{n for batch in r.batches for n in batch} for r in backend.recorders]
    assert sum(map(len, homes)) == 50
    assert all(homes)
    assert router.call_many([]) == []
    router.close()
    assert backend.closed == 1
    with pytest.raises(ClosedError):
        router.call(to("x"))
    assert all(isinstance(a, ClosedError) for a in router.call_many([to(u) for u in users]))


def test_errors_of_one_shard_leave_the_others_alone() -> None:
    backend = Lanes(2)
    router = Router(backend, 16, max_waiting=4096)

    def fail() -> None:
        msg = "gone"
        raise ShardUnavailableError(msg)

    backend.recorders[0].fail = fail
    users = [f"u{i}" for i in range(20)]
    answers = router.call_many([to(u) for u in users])
    for user, answer in zip(users, answers, strict=True):
        if router.lane_of(to(user)) == 0:
            assert isinstance(answer, ShardUnavailableError)
        else:
            assert answer == user
    with pytest.raises(ShardUnavailableError):
        router.everywhere(c.Flush())
    with pytest.raises(ShardUnavailableError):
        router.at_once(c.Flush())
    backend.recorders[0].fail = lambda: None
    assert router.everywhere(c.Flush()) == ["", ""]
    assert router.at_once(c.Flush()) == ["", ""]
    router.close()

"""The Ray backend: each shard in an actor. Besides ray_hosts.py and ray_language.py the only
file that imports ray.

The actor is a thin shell: bytes in, bytes out. Ray's own retries are off, because they change the
order of calls and repeat calls that were done; the client repeats a batch whose answer was lost,
and request ids make that harmless. One batch per shard is under way at a time (see lane.py), so
the order of a client's calls survives a restart.

Two processes may take themselves for the same shard: Ray starts an actor anew whose node it has
lost, and the old one may only have been stopped. The partitions decide (see `Partition.open`): the
client claims them first, an actor takes them over from its client or from an earlier actor of it,
from nobody else, and one that finds itself replaced ends.
"""

from __future__ import annotations

import functools
import gc
import logging
import math
import os
import signal
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec
import ray
import structlog
from ray import exceptions as ray_errors

from reverie.actors import allocator, commands as c
from reverie.actors.lane import Transport, raise_error
from reverie.actors.residents import ShardSettings, open_partitions
from reverie.actors.shard import Shard, open_shard
from reverie.memory_graph import faults
from reverie.memory_graph.errors import (
    FencedError,
    InternalError,
    ReverieError,
    ShardUnavailableError,
)

log = structlog.get_logger(__name__)

OBJECT_STORE_BYTES = 128 * 1024 * 1024  # batches are small; Ray's default is 30% of the memory
READS_PER_CALL = 256
FIRST_PAUSE_S = 0.05
LAST_PAUSE_S = 2.0

_MAYBE = "writes under way may be on disk: repeat them with the same request ids"

_decoder = msgspec.msgpack.Decoder(list[c.AnyCommand])
_replies = msgspec.msgpack.Decoder(list[c.Reply])


class ShardActor:
    """What runs in the actor: a shard behind bytes. Single-threaded."""

    def __init__(
        self,
        folder: str,
        numbers: list[int],
        partition_count: int,
        settings: bytes,
        owner: str,
    ) -> None:
        """Open the partitions. An error, of whatever kind, is left to the first call: Ray does not
        start an actor again whose `__init__` raised, not even with `max_restarts=-1`."""
        # The process is ours: graphs hold few cycles, and walking over them in every collection
        # was measured to take a tenth of the time of a search.
        gc.freeze()
        gc.set_threshold(50_000, 20, 50)
        allocator.return_what_is_free()
        self._open = functools.partial(
            open_shard,
            Path(folder),
            numbers,
            partition_count,
            msgspec.msgpack.decode(settings, type=ShardSettings),
            f"{owner} (actor {os.getpid()})",
            held_by=owner,
        )
        self._is_busy = self._is_terminated = False
        self._end = signal.getsignal(signal.SIGTERM)
        if getattr(self._end, "__module__", "").startswith("ray."):  # in an actor, not in a test
            signal.signal(signal.SIGTERM, self._on_sigterm)
        self._shard: Shard | None = None
        with suppress(Exception):
            self._shard = self._open()

    def _on_sigterm(self, number: int, frame: FrameType | None) -> None:
        """Ray would end the process in the middle of a batch: finish it, journal readings, close
        the files, and then let Ray end it. The client repeats the batch."""
        if self._is_busy:
            self._is_terminated = True
            return
        self._is_busy = True  # a second signal must not interrupt the closing
        self.stop()
        if callable(self._end):
            self._end(number, frame)

    def execute(self, data: bytes) -> bytes:
        """Carry out an encoded batch and return the encoded replies. What could not be opened is
        tried again: the disk may have been full when the actor was restarted."""
        self._is_busy = True
        try:
            return self._execute(data)
        finally:
            self._is_busy = False
            if self._is_terminated:
                self._on_sigterm(signal.SIGTERM, None)

    def _execute(self, data: bytes) -> bytes:
        batch = _decoder.decode(data)
        if self._shard is None:
            try:
                self._shard = self._open()
            except ReverieError as exc:
                return msgspec.msgpack.encode([c.Reply(error=exc.to_wire())] * len(batch))
        answers = self._shard.execute(batch)
        if any(isinstance(answer, FencedError) for answer in answers):
            self._end_replaced()
        data = msgspec.msgpack.encode([_reply(a) for a in answers])
        faults.reach("actor-reply.before")
        return data

    @staticmethod
    def _end_replaced() -> None:
        """End this process: a partition has another owner. If that is a newer actor of the same
        client, nobody asks this one any more. If an older one came late and took it, or another
        client did, Ray starts this actor anew, which claims it back, or learns that it may not."""
        log.error("replaced by another owner, ending", pid=os.getpid())
        os._exit(1)

    def pid(self) -> int:
        """Return the process id of the actor."""
        return os.getpid()

    def stop(self) -> None:
        """Journal what waits and close the files."""
        if self._shard is not None:
            self._shard.close()

    def __ray_shutdown__(self) -> None:
        self.stop()


def _reply(answer: Any) -> c.Reply:
    if isinstance(answer, ReverieError):
        return c.Reply(error=answer.to_wire())
    if isinstance(answer, Exception):
        return c.Reply(error=InternalError(f"{type(answer).__name__}: {answer}").to_wire())
    return c.Reply(value=msgspec.Raw(msgspec.msgpack.encode(answer)))


class RayBackend:
    """`actors` shards on a local Ray, or on the cluster at `address`."""

    def __init__(  # noqa: PLR0913 (each is a setting of its own)
        self,
        folder: Path,
        partitions: int,
        settings: ShardSettings,
        owner: str,
        *,
        actors: int,
        address: str | None = None,
        retry_s: float = 60.0,
        call_timeout_s: float = 300.0,
        create: bool = True,
    ) -> None:
        """Start the actors and wait until each has its partitions open.

        Args:
            folder: the data folder, on a disk of this machine: actors stay on this node.
            partitions: of the data folder; partition p goes to actor p modulo `actors`.
            settings: limits of each shard; the byte budget is divided among them.
            owner: who opens it, for people.
            actors: how many shards, at least 1; more than partitions are not started.
            address: of a running cluster; None starts Ray here, and stops it at `close`.
            retry_s: how long a call is repeated while its actor restarts. Calls that waited behind
                one that gave up are tried once each.
            call_timeout_s: how long one batch may take, also by an actor that hangs.
            create: whether missing partitions are made: in a new folder only.

        Raises:
            StorageError: a partition cannot be opened.
            ShardUnavailableError: an actor does not start.
        """
        claimed = open_partitions(folder, range(partitions), owner, create=create)
        for partition in claimed.values():
            partition.close()
        actors = min(actors, partitions)
        self.repeats = True
        self._owns_ray = not ray.is_initialized()
        if self._owns_ray:
            _start_ray(address, actors)
        share = msgspec.structs.replace(settings, byte_budget=settings.byte_budget // actors)
        actor_class: Any = ray.remote(ShardActor)
        self.actors: list[Any] = [
            actor_class.options(
                num_cpus=0,
                resources=_stay_here(address),
                max_restarts=-1,
                max_task_retries=0,
            ).remote(
                str(folder),
                [p for p in range(partitions) if p % actors == i],
                partitions,
                msgspec.msgpack.encode(share),
                owner,
            )
            for i in range(actors)
        ]
        self.transports: Sequence[Transport] = [
            self._transport(_Line(actor, retry_s=retry_s, call_timeout_s=call_timeout_s))
            for actor in self.actors
        ]
        try:
            for transport in self.transports:
                raise_error(transport([c.Flush()])[0])
        except BaseException:
            self.close()
            raise

    @staticmethod
    def _transport(line: _Line) -> Transport:
        def call(batch: Sequence[c.AnyCommand]) -> list[Any]:
            # The order of reads does not matter, not even over a restart: a large batch of them
            # goes in parts, those of one user together, and one part is decoded here while the
            # shard works on the next.
            order = list(range(len(batch)))
            size = len(batch)
            if size > READS_PER_CALL and all(isinstance(command, c.Read) for command in batch):
                order.sort(key=lambda i: batch[i].key)  # type: ignore[union-attr] # of reads
                size = READS_PER_CALL
            parts = [order[start : start + size] for start in range(0, len(batch), size)]
            encoded = [msgspec.msgpack.encode([batch[i] for i in part]) for part in parts]
            pending = [line.send(data) for data in encoded]
            answers: list[Any] = [None] * len(batch)
            for part, data, ref in zip(parts, encoded, pending, strict=True):
                found = _decoded(line.wait(data, ref), [batch[i] for i in part])
                for i, answer in zip(part, found, strict=True):
                    answers[i] = answer
            return answers

        return call

    def close(self) -> None:
        """Drain and stop the actors, and Ray if it was started here."""
        for actor in self.actors:
            with suppress(ray_errors.RayError):
                ray.get(actor.stop.remote(), timeout=30)
            with suppress(ray_errors.RayError):
                ray.kill(actor, no_restart=True)
        self.actors = []
        if self._owns_ray:
            ray.shutdown()
            self._owns_ray = False


class _Line:
    """The way to one actor: sends a call again until it is answered or the time is over."""

    def __init__(self, actor: Any, *, retry_s: float, call_timeout_s: float) -> None:
        self._actor = actor
        self._retry_s = retry_s
        self._call_timeout_s = call_timeout_s
        self._failed_at = -math.inf
        self._deadline: float | None = None  # while the actor is away

    def send(self, data: bytes) -> Any:
        """Return a reference to the answer, or the error that kept the call from being sent."""
        try:
            return self._actor.execute.remote(data)
        except ray_errors.RayError as exc:  # there is no room for it
            return exc

    def wait(self, data: bytes, ref: Any) -> bytes:
        """Wait for `ref`, which came of sending `data`, and send it again where that may help.

        Raises:
            ShardUnavailableError: the actor did not come back within `retry_s`, or did not answer
                within `call_timeout_s`. What it was sent may be carried out.
            InternalError: the actor raised.
        """
        pause = FIRST_PAUSE_S
        if self._failed_at < time.monotonic() - self._retry_s:
            self._deadline = None  # that was long ago, so this call has all of the time
        while True:
            try:
                if isinstance(ref, ray_errors.RayError):
                    raise ref
                answer: bytes = ray.get(ref, timeout=self._call_timeout_s)
            except ray_errors.GetTimeoutError as exc:
                msg = f"a shard did not answer within {self._call_timeout_s:g} s; {_MAYBE}"
                raise ShardUnavailableError(msg) from exc
            except ray_errors.RayError as exc:
                # The actor died, restarts, or cannot be reached; or Ray had no room for the batch
                # or for the answer to it, which it tells as an error of the actor.
                if isinstance(exc, ray_errors.RayTaskError) and not is_of_ray(exc):
                    msg = f"shard: {exc.cause}"
                    raise InternalError(msg) from exc
                if self._is_over(pause):
                    why = str(exc).partition("\n")[0]
                    msg = f"a shard did not come back within {self._retry_s:g} s ({why}); {_MAYBE}"
                    raise ShardUnavailableError(msg) from exc
                log.warning("shard unavailable, repeating", error=type(exc).__name__)
                time.sleep(pause)
                pause = min(2 * pause, LAST_PAUSE_S)
                ref = self.send(data)
            else:
                self._deadline = None
                return answer

    def _is_over(self, pause: float) -> bool:
        """Note a failure; return whether there is no time for another attempt. The time runs from
        the first failure on, also over several calls, or all those that wait for a shard that is
        gone would wait for `retry_s` one after the other."""
        now = self._failed_at = time.monotonic()
        if self._deadline is None:
            self._deadline = now + self._retry_s
        is_over = now + pause > self._deadline
        if is_over:
            self._deadline = now  # also for the shorter pause of the next call
        return is_over


@functools.cache
def _decoder_of(kind: type[c.AnyCommand]) -> msgspec.msgpack.Decoder[Any]:
    return msgspec.msgpack.Decoder(c.ANSWERS[kind])  # making one takes longer than its work


def is_of_ray(error: ray_errors.RayTaskError) -> bool:
    """Whether what an actor raised is Ray's own, so that the same call may work later."""
    return isinstance(error.cause, ray_errors.RayError)


def _decoded(data: bytes, batch: Sequence[c.AnyCommand]) -> list[Any]:
    return [
        ReverieError.from_wire(reply.error)
        if reply.error is not None
        else _decoder_of(type(command)).decode(reply.value)
        for reply, command in zip(_replies.decode(data), batch, strict=True)
    ]


def _start_ray(address: str | None, actors: int) -> None:
    """Start Ray in this machine, quietly and small, or connect to a cluster."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray reports its use unless told not to
    on_sigterm = signal.getsignal(signal.SIGTERM)
    try:
        _init_ray(address, actors)
    finally:
        # Ray lets SIGTERM end the program; one that handles it itself must go on doing so.
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and on_sigterm not in {None, signal.SIG_DFL}:
            signal.signal(signal.SIGTERM, on_sigterm)


def _init_ray(address: str | None, actors: int) -> None:
    if address is not None:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
        return
    ray.init(
        address="local",
        num_cpus=max(actors, os.cpu_count() or 1),
        object_store_memory=OBJECT_STORE_BYTES,
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
    )


def _stay_here(address: str | None) -> dict[str, float]:
    """Partitions lie on the disk of a node: pin actors to this one. A custom resource waits for
    its node and recovers; a hard node affinity was measured to fail for good."""
    if address is None:
        return {}
    return {f"node:{ray.util.get_node_ip_address()}": 0.001}  # type: ignore[no-untyped-call]

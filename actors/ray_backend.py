"""The Ray backend: each shard in an actor. The only file that imports ray with ray_hosts.py.

The actor is a thin shell: bytes in, bytes out. Ray's own retries are off, because they change the
order of calls and repeat calls that were done; the client repeats a batch whose answer was lost,
and request ids make that harmless. One batch per shard is under way at a time (see lane.py), so
the order of a client's calls survives a restart.
"""

from __future__ import annotations

import functools
import gc
import logging
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import ray
import structlog
from ray import exceptions as ray_errors

from reverie.actors import commands as c
from reverie.actors.lane import Transport, raise_error
from reverie.actors.residents import ShardSettings
from reverie.actors.shard import Shard, open_shard
from reverie.memory_graph.errors import (
    InternalError,
    ReverieError,
    ShardUnavailableError,
)

log = structlog.get_logger(__name__)

OBJECT_STORE_BYTES = 128 * 1024 * 1024  # batches are small; Ray's default is 30% of the memory
READS_PER_CALL = 128
FIRST_PAUSE_S = 0.05
LAST_PAUSE_S = 2.0

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
        """Open the partitions. An error is left to the first call, since Ray would only say that
        the actor died."""
        # The process is ours: graphs hold few cycles, and walking over them in every collection
        # was measured to take a tenth of the time of a search.
        gc.freeze()
        gc.set_threshold(50_000, 20, 50)
        self._open = functools.partial(
            open_shard,
            Path(folder),
            numbers,
            partition_count,
            msgspec.msgpack.decode(settings, type=ShardSettings),
            f"{owner} (actor {os.getpid()})",
        )
        self._shard: Shard | None = None
        with suppress(ReverieError):
            self._shard = self._open()

    def execute(self, data: bytes) -> bytes:
        """Carry out an encoded batch and return the encoded replies. What could not be opened is
        tried again: the disk may have been full when the actor was restarted."""
        batch = _decoder.decode(data)
        if self._shard is None:
            try:
                self._shard = self._open()
            except ReverieError as exc:
                return msgspec.msgpack.encode([c.Reply(error=exc.to_wire())] * len(batch))
        return msgspec.msgpack.encode([_reply(a) for a in self._shard.execute(batch)])

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

    def __init__(
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
    ) -> None:
        """Start the actors and wait until each has its partitions open.

        Args:
            folder: the data folder, on a disk of this machine: actors stay on this node.
            partitions: of the data folder; partition p goes to actor p modulo `actors`.
            settings: limits of each shard; the byte budget is divided among them.
            owner: who opens it, for people.
            actors: how many shards, at least 1; more than partitions are not started.
            address: of a running cluster; None starts Ray here, and stops it at `close`.
            retry_s: how long a call is repeated while its actor restarts.
            call_timeout_s: how long one batch may take.

        Raises:
            StorageError: a partition cannot be opened.
            ShardUnavailableError: an actor does not start.
        """
        actors = min(actors, partitions)
        self.repeats = True
        self._retry_s = retry_s
        self._call_timeout_s = call_timeout_s
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
        self.transports: Sequence[Transport] = [self._transport(actor) for actor in self.actors]
        try:
            for transport in self.transports:
                raise_error(transport([c.Flush()])[0])
        except BaseException:
            self.close()
            raise

    def _transport(self, actor: Any) -> Transport:
        def call(batch: Sequence[c.AnyCommand]) -> list[Any]:
            # The order of reads does not matter, not even over a restart: a large batch of them
            # goes in parts, and one part is decoded here while the shard works on the next.
            whole = not all(isinstance(command, c.Read) for command in batch)
            size = len(batch) if whole else READS_PER_CALL
            parts = [batch[start : start + size] for start in range(0, len(batch), size)]
            encoded = [msgspec.msgpack.encode(part) for part in parts]
            pending = [actor.execute.remote(data) for data in encoded]
            answers: list[Any] = []
            for part, data, ref in zip(parts, encoded, pending, strict=True):
                answers += _decoded(self._ask(actor, data, ref), part)
            return answers

        return call

    def _ask(self, actor: Any, data: bytes, ref: Any) -> bytes:
        """Wait for `ref`, a call with `data`, and repeat the call until it is answered or the time
        for retries is over."""
        deadline = time.monotonic() + self._retry_s
        pause = FIRST_PAUSE_S
        while True:
            try:
                answer: bytes = ray.get(ref, timeout=self._call_timeout_s)
            except ray_errors.GetTimeoutError as exc:
                msg = f"a shard did not answer within {self._call_timeout_s:g} s"
                raise ShardUnavailableError(msg) from exc
            except ray_errors.RayTaskError as exc:
                msg = f"shard: {exc.cause}"
                raise InternalError(msg) from exc
            except ray_errors.RayError as exc:  # the actor died, restarts, or cannot be reached
                if time.monotonic() + pause > deadline:
                    msg = (
                        f"a shard did not come back within {self._retry_s:g} s; writes under way "
                        "may be on disk: repeat them with the same request ids"
                    )
                    raise ShardUnavailableError(msg) from exc
                log.warning("shard unavailable, repeating", error=type(exc).__name__)
                time.sleep(pause)
                pause = min(2 * pause, LAST_PAUSE_S)
                ref = actor.execute.remote(data)
            else:
                return answer

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


def _decoded(data: bytes, batch: Sequence[c.AnyCommand]) -> list[Any]:
    return [
        ReverieError.from_wire(reply.error)
        if reply.error is not None
        else msgspec.msgpack.decode(reply.value, type=c.ANSWERS[type(command)])
        for reply, command in zip(_replies.decode(data), batch, strict=True)
    ]


def _start_ray(address: str | None, actors: int) -> None:
    """Start Ray in this machine, quietly and small, or connect to a cluster."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray reports its use unless told not to
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

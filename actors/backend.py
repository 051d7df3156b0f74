"""What the service needs of a backend: lanes to shards that together own a data folder.

`InlineBackend` runs one shard in this process. The Ray backend is in ray_backend.py and is loaded
only when it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from reverie.actors import commands as c
from reverie.actors.lane import Lane, Transport, raise_error
from reverie.actors.residents import ShardSettings
from reverie.actors.shard import open_shard
from reverie.memory_graph.errors import ClosedError, ReverieError
from reverie.memory_graph.ids import partition_of


class Backend(Protocol):
    """Owns the shards; `transports` has one entry per shard."""

    @property
    def transports(self) -> Sequence[Transport]:
        """One way of calling per shard. Partition p belongs to shard p modulo their number."""
        ...

    @property
    def repeats(self) -> bool:
        """Whether a call may be repeated after a lost answer, so that writes need request ids."""
        ...

    def close(self) -> None:
        """Drain and stop the shards."""
        ...


class InlineBackend:
    """One shard in this process."""

    def __init__(
        self,
        folder: Path,
        partitions: int,
        settings: ShardSettings,
        owner: str,
        *,
        create: bool = True,
    ) -> None:
        """Open all partitions, and with `create` make missing ones; see `open_partitions`."""
        numbers = range(partitions)
        self.shard = open_shard(folder, numbers, partitions, settings, owner, create=create)
        self.transports: Sequence[Transport] = (self.shard.execute,)
        self.repeats = False

    def close(self) -> None:
        """Journal what waits and close the files."""
        self.shard.close()


class Router:
    """Sends each command to the shard that owns its user, in batches per shard.

    Attributes:
        after: is told of the commands of users and their answers, errors among them.
    """

    def __init__(self, backend: Backend, partitions: int, *, max_waiting: int) -> None:
        self.backend = backend
        self.partitions = partitions
        self.after: Callable[[Sequence[c.UserCommand], Sequence[Any]], None] | None = None
        self.lanes = [Lane(t, max_waiting=max_waiting) for t in backend.transports]
        self._pool: ThreadPoolExecutor | None = None
        if len(self.lanes) > 1:
            self._pool = ThreadPoolExecutor(len(self.lanes), thread_name_prefix="reverie-lane")

    def lane_of(self, command: c.UserCommand) -> int:
        """Return the number of the shard that owns a command's user."""
        if len(self.lanes) == 1:
            return 0
        return partition_of(command.key, self.partitions) % len(self.lanes)

    def call(self, command: c.UserCommand) -> Any:
        """Return the answer to one command, or raise its error."""
        answers = self.lanes[self.lane_of(command)].call([command])
        if self.after is not None:
            self.after([command], answers)
        return raise_error(answers[0])

    def call_many(self, commands: Sequence[c.UserCommand]) -> list[Any]:
        """Return an answer or a ReverieError for each command, in order; shards work at once."""
        groups: dict[int, list[int]] = {}
        for i, command in enumerate(commands):
            groups.setdefault(self.lane_of(command), []).append(i)
        answers: list[Any] = [ClosedError("the runtime is closed")] * len(commands)

        def run(lane: int) -> None:
            places = groups[lane]
            try:
                got = self.lanes[lane].call([commands[i] for i in places])
            except ReverieError as exc:
                got = [exc] * len(places)
            for i, answer in zip(places, got, strict=True):
                answers[i] = answer

        if self._pool is None or len(groups) == 1:
            for lane in groups:
                run(lane)
        else:
            under_way: list[Future[None]] = []
            with suppress(RuntimeError):  # the pool takes no more
                for lane in groups:
                    under_way.append(self._pool.submit(run, lane))  # noqa: PERF401 (keeps a part)
            for done in under_way:
                done.result()
        if self.after is not None:
            self.after(commands, answers)
        return answers

    def everywhere(self, command: c.ShardCommand) -> list[Any]:
        """Return the answer of each shard to one command, or raise the first error."""
        return [raise_error(lane.call([command])[0]) for lane in self.lanes]

    def at_once(self, command: c.ShardCommand) -> list[Any]:
        """As `everywhere`, with all shards held: no write lands between the first and the last,
        so what they do together is one cut through all users."""
        with self.at_rest() as transports:
            return [raise_error(transport([command])[0]) for transport in transports]

    @contextmanager
    def at_rest(self) -> Iterator[Sequence[Transport]]:
        """Hold all shards: nothing is written within the block but through what it is given."""
        with ExitStack() as held:
            yield [held.enter_context(lane.alone()) for lane in self.lanes]

    def close(self) -> None:
        """Wait for calls under way, refuse further ones, and stop the backend."""
        for lane in self.lanes:
            lane.close()
        if self._pool is not None:
            self._pool.shutdown()
        self.backend.close()

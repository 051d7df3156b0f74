"""A Ray cluster on one machine, whose nodes come and go. They share the disk of the machine, so
that a partition can be reached from each of them."""

from __future__ import annotations

import itertools
import logging
import os
import random
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from crash import writer

from reverie.actors import ray_backend, ray_hosts
from reverie.memory_graph import faults

SHARDS = "shards"  # the resource of nodes that may have shards
STORE_BYTES = 80 * 1024 * 1024
LOST_S = 30.0  # within which the cluster notices that a node is gone
# A node counts as lost after some 5 s without a sign, and not after half a minute. (One whose
# processes are killed is noticed at once.) On a busy machine, less would lose nodes that live.
QUICK = {
    "health_check_initial_delay_ms": 0,
    "health_check_period_ms": 300,
    "health_check_timeout_ms": 1000,
    "health_check_failure_threshold": 4,
}
NO_DISK = {"local_fs_capacity_threshold": 0.0001}  # for what the object store has no room for


class Nodes:
    """A cluster with a head that has no shards. Use `nodes`."""

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster
        self.address: str = cluster.address

    def add(self, *, shards: bool = True) -> Any:
        """Start a node, and wait until the cluster knows it."""
        resources = {SHARDS: 1} if shards else {}
        return self._cluster.add_node(
            num_cpus=1, object_store_memory=STORE_BYTES, resources=resources
        )

    def remove(self, node: Any, *, gracefully: bool = False) -> None:
        """Stop all processes of a node: with SIGKILL, or after a word to the cluster. Returns
        when the cluster knows it: a client might still be sent to it."""
        import ray

        self._cluster.remove_node(node, allow_graceful=gracefully)
        deadline = time.monotonic() + LOST_S
        while any(
            known["NodeID"] == node.node_id and known["Alive"]
            for known in ray.nodes()  # type: ignore[no-untyped-call]
        ):
            if time.monotonic() > deadline:
                msg = f"the cluster did not notice within {LOST_S:g} s that a node is gone"
                raise RuntimeError(msg)
            time.sleep(0.02)

    @staticmethod
    def raylet(node: Any) -> int:
        """Return the id of the process that manages a node."""
        (info,) = node.all_processes["raylet"]
        pid: int = info.process.pid
        return pid


@contextmanager
def nodes(**system: Any) -> Iterator[Nodes]:
    """Start a cluster that consists of a head, and connect this process; end both afterwards.

    Shards go to nodes with `SHARDS`: the nodes have one address, so the product's own way of
    keeping them on a node would let them go anywhere. `system` are settings of Ray.
    """
    import ray
    import ray._private.worker as ray_worker
    from ray.cluster_utils import Cluster

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ["PYTHONPATH"] = str(Path(__file__).resolve().parents[1])  # of the workers
    cluster = Cluster(
        initialize_head=True,
        head_node_args={
            "num_cpus": 0,
            "object_store_memory": STORE_BYTES,
            "include_dashboard": False,
            "_system_config": system,
        },
    )
    # Ray prints the last words of every node that is lost; here, losing them is the rule.
    printing = ray_worker.print_to_stdstream
    ray_worker.print_to_stdstream = lambda *_, **__: None
    stay_here = ray_backend._stay_here
    ray_backend._stay_here = lambda address: {SHARDS: 0.001}
    try:
        ray.init(address=cluster.address, log_to_driver=False, logging_level=logging.ERROR)
        yield Nodes(cluster)
    finally:
        ray_backend._stay_here = stay_here
        ray_worker.print_to_stdstream = printing
        ray.shutdown()
        cluster.shutdown()  # type: ignore[no-untyped-call]


def end(pid: int) -> None:
    """Kill a process that may be gone."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


class Habits(msgspec.Struct, frozen=True):
    """How `Mortal` actors of one data folder behave. `life` is the least and the most passings of
    the point before one dies of itself; `bug` is planted in all of them."""

    life: tuple[int, int] = (3, 30)
    bug: writer.Bug | None = None


class Mortal(ray_backend.ShardActor):
    """A shard's actor that dies of itself: in a transaction, after it, or before it answers."""

    POINTS = ("append.after", "commit.before", "commit.after", "actor-reply.before")

    def __init__(self, folder: str, *args: Any) -> None:
        habits = habits_of(Path(folder))
        writer.quiet()
        writer.plant(habits.bug, writer=True)
        super().__init__(folder, *args)
        chance = random.Random()
        point, left = chance.choice(self.POINTS), itertools.count(-chance.randint(*habits.life))
        deaths = Path(folder).with_name("deaths")

        def handler(reached: str) -> None:
            if reached == point and next(left) == 0:
                with deaths.open("a") as file:
                    file.write(f"{point}\n")
                os.kill(os.getpid(), signal.SIGKILL)

        faults.install(handler)


class MortalHost(ray_hosts.EmbedderActor):
    """A model host that dies of itself in the middle of embedding."""

    LIFE = (10, 60)

    def __init__(self, spec: str, folder: str, threads: int) -> None:
        super().__init__(spec, folder, threads)
        self._deaths = Path(folder).with_name("deaths")
        self._left = random.Random().randint(*self.LIFE)

    def call(self, method: str, *args: Any) -> Any:
        """As ever, for a while."""
        answer = super().call(method, *args)
        self._left -= method == "embed"
        if self._left == 0:
            with self._deaths.open("a") as file:
                file.write("embed\n")
            os.kill(os.getpid(), signal.SIGKILL)
        return answer


def habits_of(folder: Path, habits: Habits | None = None) -> Habits:
    """Return the habits of the actors of a data folder; with `habits`, set them first."""
    path = folder.with_name("habits.json")
    if habits is not None:
        path.write_bytes(msgspec.json.encode(habits))
    return msgspec.json.decode(path.read_bytes(), type=Habits)

"""One suite over both backends. Ray is started once; most of its tests share a runtime, each in a
world of its own, because an actor takes a second to start."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import START, Factory, Home

RAY_ACTORS = 2


@pytest.fixture(params=["inline", pytest.param("ray", marks=pytest.mark.ray)])
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="session")
def ray_cluster() -> Iterator[None]:
    import ray

    ray.init(
        address="local",
        num_cpus=4,
        object_store_memory=128 * 1024 * 1024,
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
    )
    yield
    ray.shutdown()


@pytest.fixture
def runtime_factory(
    backend: str, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Factory]:
    """Opens runtimes on folders of this test; all are checked afterwards."""
    if backend == "ray":
        request.getfixturevalue("ray_cluster")
    factory = Factory(tmp_path, RAY_ACTORS if backend == "ray" else None)
    yield factory
    factory.finish()


@pytest.fixture(scope="session")
def shared_on_ray(
    ray_cluster: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Any, Factory]]:
    factory = Factory(tmp_path_factory.mktemp("shared"), RAY_ACTORS)
    yield factory(), factory
    factory.finish()


@pytest.fixture
def home(backend: str, request: pytest.FixtureRequest) -> Iterator[Home]:
    """A runtime, with a world of this test; checked afterwards."""
    if backend == "inline":
        factory: Factory = request.getfixturevalue("runtime_factory")
        found = Home(factory(), factory.clock)
    else:
        rt, shared = request.getfixturevalue("shared_on_ray")
        shared.clock.set(START)
        found = Home(rt, shared.clock, request.node.name)
    yield found
    assert found.rt.check() == []

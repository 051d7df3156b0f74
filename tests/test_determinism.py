"""Nothing of the process, the machine or the day is in a world that lives on a simulated clock."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

SCENARIO = Path(__file__).with_name("scenario.py")
ROOT = SCENARIO.parents[1]

# hash seed, zone, pretended date (seconds since 1970), actors
RUNS = {
    "as it is": ("0", "UTC", None, None),
    "long ago": ("1", "Pacific/Auckland", "-86400", None),
    "far from now": ("2", "America/St_Johns", "4102444799", None),
    "random seed": ("random", "Asia/Kathmandu", "951782400", None),
}
ON_RAY = {
    "one actor": ("1", "Asia/Shanghai", "1709208000", 1),
    "two actors": ("2", "America/Los_Angeles", "1e9", 2),
}


def digests(folder: Path, run: tuple[str, str, str | None, int | None]) -> dict[str, str]:
    seed, zone, date, actors = run
    environment = os.environ | {"PYTHONHASHSEED": seed, "TZ": zone, "OMP_NUM_THREADS": "1"}
    if date is not None:
        environment["REVERIE_TEST_DATE"] = date
    if actors is not None:
        environment["RAY_TMPDIR"] = tempfile.gettempdir()
    done = subprocess.run(
        [sys.executable, SCENARIO, folder, *([] if actors is None else [str(actors)])],
        env=environment,
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return digests(tmp_path_factory.mktemp("first") / "d", RUNS["as it is"])


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in RUNS if name != "as it is"])
def test_a_life_is_the_same_on_another_day_and_hash_seed(
    expected: dict[str, str], tmp_path: Path, name: str
) -> None:
    assert len(expected) == 4 * (4 + 1)  # worlds, users and a group
    assert "" not in expected.values()
    assert digests(tmp_path / "d", RUNS[name]) == expected


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.parametrize("name", ON_RAY)
def test_a_life_is_the_same_on_any_number_of_actors(
    expected: dict[str, str], tmp_path: Path, name: str
) -> None:
    assert digests(tmp_path / "d", ON_RAY[name]) == expected


# -- who may ask what time it is -----------------------------------------------------------

# Calls that give the wall time, a random number or an id: where they stand, and why they may.
ALLOWED = {
    ("runtime/clock.py", "time.time"): "the wall clock itself",
    ("runtime/cli/ingest.py", "time.time"): "begin of a clock that follows the turns' times",
    ("memory_graph/store/folder.py", "time.time"): "OWNER.json, for people",
    ("runtime/runtime.py", "uuid.uuid4"): "names of owners, ids of requests",
    ("runtime/slots.py", "uuid.uuid4"): "ids of operations",
    ("runtime/fanout.py", "uuid.uuid4"): "ids of operations",
    ("runtime/lifecycle.py", "uuid.uuid4"): "ids of operations",
    ("runtime/http/keys.py", "secrets.token_hex"): "keys of clients",
    ("runtime/http/ingesting.py", "uuid.uuid4"): "ids of requests",
    ("runtime/operations/copying.py", "datetime.now"): "when a backup was made, for people",
    ("runtime/operations/copying.py", "secrets.token_hex"): "names of backups",
    ("runtime/operations/restoring.py", "secrets.token_hex"): "names of folders in the making",
    ("actors/ingest.py", "uuid.uuid4"): "ids of requests",
    ("actors/summaries.py", "uuid.uuid4"): "ids of requests",
}
WATCHED = {
    *("time.time", "time.time_ns", "time.localtime", "time.ctime", "time.asctime"),
    *("datetime.now", "datetime.utcnow", "datetime.today", "date.today"),
    *("uuid.uuid1", "uuid.uuid4", "os.urandom", "secrets.token_hex", "secrets.token_bytes"),
    *("random.random", "random.choice", "random.shuffle", "random.randint", "random.Random"),
    *("np.random.default_rng", "numpy.random.default_rng"),
}


def test_nobody_else_asks_for_wall_time_or_chance() -> None:
    found = {
        (path.relative_to(ROOT).as_posix(), name)
        for folder in ("runtime", "actors", "models", "memory_graph")
        for path in sorted((ROOT / folder).rglob("*.py"))
        if "training" not in path.parts
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and (name := _called(node)) in WATCHED
    }
    assert sorted(found - set(ALLOWED)) == []
    assert ("runtime/clock.py", "time.time") in found  # or it would find nothing at all


def _called(call: ast.Call) -> str:
    return ".".join(ast.unparse(call.func).split(".")[-2:])

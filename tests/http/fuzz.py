# ruff: noqa: T201 (a program that prints)
"""Requests made from the description, thousands of them: each answer must be one it promises.

    python tests/http/fuzz.py --cases 20000

Starts a server of its own with a key, and lets schemathesis make requests of its OpenAPI
description, fitting ones and others. Counted are server errors (5xx) and answers that are not
described: a status, a media type, a body or a header that the description does not know. Prints
figures as text, and as JSON with --json; exits with 1 when anything was found.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import hypothesis
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from requests import Session
from schemathesis import GenerationMode
from schemathesis.checks import (
    content_type_conformance,
    not_a_server_error,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # when run as a script

import reverie
from reverie.http.examples import prepare
from reverie.http.keys import KeyFile

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
# An operation that replaces the memory under test by that of another time.
KEPT_WORLDS = ("town", "小镇")
START_S = 60.0


@schemathesis.serializer("application/x-ndjson")
def lines(_context: Any, value: Any) -> bytes:
    """A body of lines: a text as it is, anything else as one line of JSON."""
    text = value if isinstance(value, str) else json.dumps(value)
    return text.encode("utf-8", "replace")


class Found(NamedTuple):
    """What came of it."""

    cases: int
    operations: int
    statuses: dict[str, int]
    failures: list[str]
    seconds: float


def start(folder: Path) -> tuple[subprocess.Popen[str], str]:
    """Start a server over a folder, and return it with its address."""
    command = [
        *(
            sys.executable,
            "-c",
            "from reverie.cli import main; main()",
            "serve",
            "--data",
            str(folder),
        ),
        *("--embedder", "standin", "--port", "0", "--rate", "0", "--json", "--no-access-log"),
        *("--backups", str(folder.parent)),
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        msg = f"the server did not start (exit status {process.wait()})"
        raise RuntimeError(msg)
    address: str = json.loads(line)["listening"]
    return process, address


def fill(folder: Path) -> str:
    """Write the memory that the examples are about, and return a key for all of it."""
    with reverie.open(folder, embedder="standin", background=False, partitions=2) as runtime:
        for language in ("english", "chinese"):
            prepare(runtime, language)
    return KeyFile(folder).create("admin", everywhere=True)[0]


def fuzz(address: str, key: str, cases: int, seed: int, part: slice) -> Found:
    """Send about `cases` requests, the same number to each operation; only those of `part`."""
    headers = {"Authorization": f"Bearer {key}"}
    schema = schemathesis.openapi.from_url(f"{address}/openapi.json", headers=headers)
    found = (operation.ok() for operation in schema.get_all_operations())  # type: ignore[union-attr]
    operations = [operation for operation in found if operation is not None]
    each = max(1, -(-cases // len(operations)))
    statuses: Counter[str] = Counter()
    failures: dict[str, None] = {}
    count, began = 0, time.monotonic()
    with Session() as session:
        session.headers.update(headers)
        for done, operation in enumerate(operations[part], 1):
            count += one(operation, each, session, seed, statuses, failures)
            print(
                f"{done} of {len(operations)} operations, {count:,} cases, "
                f"{len(failures)} findings, {time.monotonic() - began:.0f} s",
                file=sys.stderr,
                flush=True,
            )
    return Found(
        count,
        len(operations),
        dict(sorted(statuses.items())),
        list(failures),
        time.monotonic() - began,
    )


def one(
    operation: Any,
    each: int,
    session: Session,
    seed: int,
    statuses: Counter[str],
    failures: dict[str, None],
) -> int:
    """Send requests to one operation; returns how many."""
    sent = 0

    def send(case: Any) -> None:
        nonlocal sent
        sent += 1
        if str(case.path_parameters.get("world")) in KEPT_WORLDS and operation.method == "delete":
            case.path_parameters["world"] = "elsewhere"  # or nothing would be left to ask for
        try:
            answer = case.call(session=session, timeout=60)
        except Exception as exc:  # noqa: BLE001 (whatever it is, it is told)
            failures[f"{operation.label}: no answer: {type(exc).__name__}: {exc}"[:600]] = None
            return
        statuses[str(answer.status_code)] += 1
        try:
            case.validate_response(answer, checks=CHECKS)
        except AssertionError as exc:
            failures[f"{operation.label}: {answer.status_code}: {exc}"[:1500]] = None
        except BaseExceptionGroup as group:
            for one_of_them in group.exceptions:
                told = f"{operation.label}: {answer.status_code}: {one_of_them}"
                failures[told[:1500]] = None

    rounds = 0
    while sent < each and rounds < 200:
        rounds += 1
        asked = each - sent
        before = sent
        test = given(case=operation.as_strategy(generation_mode=_mode(rounds)))(send)
        test = hypothesis.seed(seed + rounds)(test)
        test = settings(
            max_examples=min(asked, 200),
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )(test)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with suppress(hypothesis.errors.Unsatisfiable):
                test()
        if sent == before and rounds > 2:
            break
    return sent


def _mode(rounds: int) -> GenerationMode:
    return GenerationMode.POSITIVE if rounds % 2 else GenerationMode.NEGATIVE


def run(cases: int, seed: int, part: slice) -> Found:
    """Start a server, fuzz it, check its folder, and stop it."""
    with tempfile.TemporaryDirectory(prefix="reverie-fuzz-") as name:
        folder = Path(name) / "data"
        key = fill(folder)
        process, address = start(folder)
        try:
            found = fuzz(address, key, cases, seed, part)
        finally:
            process.send_signal(signal.SIGTERM)
            status = process.wait(60)
        failures = list(found.failures)
        if status != 128 + signal.SIGTERM:
            failures.append(f"the server ended with {status}")
        with reverie.open(folder, background=False) as runtime:
            failures += [f"broken: {line}" for line in runtime.check()]
        return found._replace(failures=failures)


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    parser.add_argument(
        "--part", default=":", help="of the operations, as 40:60, to share the work among processes"
    )
    parser.add_argument("--json", type=Path, help="write the figures there")
    options = parser.parse_args()
    begin, _, end = options.part.partition(":")
    part = slice(int(begin or 0), int(end) if end else None)
    found = run(options.cases, options.seed, part)
    errors = sum(count for status, count in found.statuses.items() if status >= "500")
    print(f"seed {options.seed}: {found.cases:,} cases over {found.operations} operations")
    print(f"{found.seconds:.0f} s; statuses {found.statuses}")
    print(f"server errors: {errors}; findings: {len(found.failures)}")
    for line in found.failures[:50]:
        print("-", line)
    if options.json:
        options.json.write_text(json.dumps({"seed": options.seed, **found._asdict()}, indent=1))
    return 1 if found.failures else 0


if __name__ == "__main__":
    os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", tempfile.mkdtemp())
    sys.exit(main())

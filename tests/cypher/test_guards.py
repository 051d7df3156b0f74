"""What holds back a query that got past the check of its text, or that only takes too much."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hostile_cypher import FILES, GREEDY, SETTINGS, WRITES, refused
from support import Factory, Home

from reverie import User, errors
from reverie.cypher.engines import LATE_S, Question, _Process
from reverie.graphs import pages

LIMIT_S = 0.3
LATEST_S = LIMIT_S + LATE_S + 20  # this machine may be busy; without a limit some take hours


def state(user: User) -> tuple[object, ...]:
    """Return what a query sees of a user's graph."""
    count = user.query("MATCH (n) OPTIONAL MATCH (n)-[r]->() RETURN label(n), count(r)")
    texts = user.query("MATCH (m:Memory) RETURN m.text, m.hits ORDER BY m.id")
    tables = user.query("CALL show_tables() RETURN *")
    return sorted(count.rows), texts.rows, sorted(map(str, tables.rows))


@pytest.fixture
def ana(home: Home) -> User:
    ana = home.user()
    for i in range(40):
        ana.relate(f"n{i}", "knows", f"n{i * 7 % 40}")
        ana.relate(f"n{i}", "likes", f"n{i * 3 % 40}")
    ana.remember("Ana is allergic to mangoes", entities=["mango"])
    home.user("bo").remember("the secret of bo")
    return ana


def test_no_hostile_query_does_anything(ana: User, tmp_path: Path) -> None:
    """Through the public method: all are refused, and the graph, the journal and the disk are as
    they were."""
    before, digest = state(ana), ana.digest()
    files = sorted(str(p) for p in tmp_path.rglob("*"))
    count = 0
    for query in refused(str(tmp_path)):
        with pytest.raises(errors.QueryError):
            ana.query(query, timeout_s=LIMIT_S)
        count += 1
    assert count >= 300
    assert state(ana) == before
    assert ana.digest() == digest
    assert sorted(str(p) for p in tmp_path.rglob("*")) == files


@pytest.fixture
def process(ana: User) -> Iterator[_Process]:
    made = _Process(pages(ana), 0.0)
    yield made
    made.end()


def test_the_engine_itself_writes_nothing_and_opens_no_file(
    process: _Process, tmp_path: Path
) -> None:
    """Without the check of the text."""
    secret = tmp_path / "passwd"
    secret.write_text("geheim:0\n")

    def ask(text: str) -> dict[str, object]:
        return process.ask(Question(text, {}, 1000, 5.0))

    look = "MATCH (n) OPTIONAL MATCH (n)-[r]->() RETURN label(n), count(r)"
    before = sorted(map(str, ask(look)["rows"]))  # type: ignore[call-overload]
    assert before
    reads = [s for s in FILES if not s.startswith("EXPORT")]  # it makes an empty folder
    for statement in [*WRITES, *reads]:
        text = statement.replace("{folder}", str(tmp_path)).replace("/etc/passwd", str(secret))
        answer = ask(text)
        assert "geheim" not in str(answer), statement
        assert "error" in answer, statement
    assert sorted(map(str, ask(look)["rows"])) == before  # type: ignore[call-overload]
    assert [p.name for p in tmp_path.iterdir() if p != secret and p.name != "data"] == []
    assert secret.read_text() == "geheim:0\n"


def test_settings_of_the_engine_do_not_free_a_query_from_its_limit(process: _Process) -> None:
    for statement in SETTINGS[:5]:
        with suppress(errors.QueryLimitError):
            process.ask(Question(statement.replace("{folder}", "/nowhere"), {}, 10, 5.0))
    began = time.monotonic()
    try:
        assert process.ask(Question(GREEDY[0], {}, 10, LIMIT_S))["error"] in {"time", "memory"}
    except errors.QueryLimitError:
        assert process.has_ended
    assert time.monotonic() - began < LATEST_S


@pytest.mark.slow
@pytest.mark.parametrize("query", GREEDY, ids=range(len(GREEDY)))
def test_a_query_that_takes_too_much_is_ended(ana: User, query: str) -> None:
    ana.query("RETURN 1")  # the graph is loaded
    began = time.monotonic()
    with suppress(errors.QueryLimitError, errors.QueryError):
        ana.query(query, timeout_s=LIMIT_S)
    assert time.monotonic() - began < LATEST_S
    assert ana.query("MATCH (m:Memory) RETURN m.text").rows == (("Ana is allergic to mangoes",),)


def test_the_time_limit_is_told(ana: User) -> None:
    with pytest.raises(errors.QueryLimitError, match=r"longer than 0\.3 s") as caught:
        ana.query(GREEDY[0], timeout_s=LIMIT_S)
    assert caught.value.details == {"timeout_s": LIMIT_S}
    with pytest.raises(errors.QueryLimitError):
        ana.query(GREEDY[2], timeout_s=LIMIT_S)


def test_a_process_that_is_killed_is_replaced(ana: User) -> None:
    ana.query("RETURN 1")
    (place,) = ana._rt.graphs.engines._places.values()
    assert place.process is not None
    killed = place.process._process
    killed.kill()
    with suppress(errors.QueryLimitError):  # it may be seen only when it is asked
        ana.query("RETURN 1")
    assert ana.query("RETURN 1").rows == ((1,),)
    assert killed.poll() == -signal.SIGKILL


def test_a_query_under_way_does_not_outlast_an_erasure(ana: User) -> None:
    ana.query("RETURN 1")
    found: list[object] = []

    def ask() -> None:
        try:
            found.append(ana.query(GREEDY[0], timeout_s=50))
        except errors.ReverieError as exc:
            found.append(type(exc))

    thread = threading.Thread(target=ask)
    thread.start()
    (place,) = ana._rt.graphs.engines._places.values()
    while not place.lock.locked():
        time.sleep(0.01)
    time.sleep(0.2)
    began = time.monotonic()
    ana.forget()
    thread.join(40)
    assert not thread.is_alive()
    assert time.monotonic() - began < 40
    assert found == [errors.QueryLimitError]
    assert ana.query("MATCH (m:Memory) RETURN count(m)").rows == ((0,),)


_HOLDER = """
import os, sys, reverie
rt = reverie.open(sys.argv[1], embedder="standin", background=False)
rt.user("ana").query("RETURN 1")
(place,) = rt.graphs.engines._places.values()
print(place.process._process.pid, flush=True)
os._exit(0)
"""


def test_processes_end_when_the_program_is_gone(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", _HOLDER, str(tmp_path / "d")],
        capture_output=True,
        text=True,
        check=True,
    )
    pid = int(run.stdout)
    for _ in range(500):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        with suppress(OSError):  # nobody may be there to take note of its end
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return
        time.sleep(0.02)
    pytest.fail("it is still there")


def test_more_than_one_at_once(factory: Factory) -> None:
    rt = factory(background=False)
    rows: dict[str, object] = {}
    for name in ("a", "b", "c"):
        rt.user(name).remember(f"of {name}")

    def ask(name: str) -> None:
        rows[name] = [rt.user(name).query("MATCH (m:Memory) RETURN m.text").rows for _ in range(5)]

    threads = [threading.Thread(target=ask, args=(name,)) for name in ("a", "b", "c")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert rows == {name: [((f"of {name}",),)] * 5 for name in ("a", "b", "c")}

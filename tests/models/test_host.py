"""A model in a child process: what a crash, a kill, a hang, a fork and an end of the parent do."""

from __future__ import annotations

import gc
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest
from tiny_llama import TEMPLATE, write_llama

from reverie.memory_graph.errors import (
    ClosedError,
    ConfigError,
    InvalidValueError,
    ModelDamagedError,
    ModelFailedError,
    ModelMissingError,
    ModelTimeoutError,
    ModelUnavailableError,
    OverloadedError,
    ReverieError,
)
from reverie.models import host as host_module
from reverie.models.grammar import check_grammar
from reverie.models.host import ProcessLanguageModel
from reverie.models.language import HostedModel, LanguageSettings, open_in_process
from reverie.models.protocol import ChatMessage

WAIT_S = 30.0


@pytest.fixture
def settings(tiny_llama: Path) -> LanguageSettings:
    adapters = {"a": str(tiny_llama.with_name("a.gguf"))}
    return LanguageSettings(model=str(tiny_llama), adapters=adapters, retry_s=WAIT_S)


@pytest.fixture
def host(settings: LanguageSettings) -> Iterator[ProcessLanguageModel]:
    with ProcessLanguageModel(settings) as host:
        yield host


def pid_of(host: ProcessLanguageModel) -> int:
    assert host.pid is not None
    return host.pid


def is_gone(pid: int) -> bool:
    """Whether no process has this id, not even one that ended and was not waited for."""
    return not Path(f"/proc/{pid}").exists()


def wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)


def ask(host: HostedModel) -> str:
    return host.complete("the tale", max_tokens=5).text


class Hung:
    """A call to a host whose process was stopped before; it waits for an answer."""

    def __init__(self, host: ProcessLanguageModel, pool: ThreadPoolExecutor) -> None:
        self.pid = pid_of(host)
        os.kill(self.pid, signal.SIGSTOP)
        self.answer = pool.submit(ask, host)
        wait_for(lambda: host._waiting > 0)
        time.sleep(0.05)  # the request is on its way


def test_a_host_answers_like_the_model_itself(settings: LanguageSettings) -> None:
    here = open_in_process(settings)
    messages = [ChatMessage("system", "be brief"), ChatMessage("user", "你好</s>")]
    with ProcessLanguageModel(settings) as host:
        assert isinstance(host, HostedModel)
        assert host.info == here.info
        for model in (host, here):
            model.clear()
        calls: tuple[Callable[[HostedModel], object], ...] = (
            lambda m: m.complete("the tale", max_tokens=6),
            lambda m: m.complete(messages, max_tokens=6, stop=["x"], adapter="a"),
            lambda m: m.complete("the", max_tokens=9, grammar='root ::= "yes" | "也许"'),
            lambda m: m.weigh(["the", "a tale"], ["a", "b"], adapter="a"),
            lambda m: m.choose(["the"], ["a", "b"]),
            lambda m: m.count_tokens("你好 hello"),
            lambda m: m.count_prompt("你好 hello"),
            lambda m: m.count_prompt(messages),
        )
        for call in calls:
            assert call(host) == call(here)
    here.close()


def test_errors_come_back_as_themselves(host: ProcessLanguageModel, tmp_path: Path) -> None:
    pid = host.pid
    for call in (
        lambda: host.complete("x" * 10_000, max_tokens=5),
        lambda: host.complete("x", max_tokens=5, grammar="root ::= root"),
        lambda: host.complete("x\ud800", max_tokens=5),
        lambda: host.choose(["x"], ["a", "a"]),
    ):
        with pytest.raises(InvalidValueError):
            call()
    assert host.pid == pid
    with pytest.raises(ModelMissingError):
        ProcessLanguageModel(LanguageSettings(folder=str(tmp_path)))
    (tmp_path / "x.gguf").write_bytes(b"GGUF")
    with pytest.raises(ModelDamagedError):
        ProcessLanguageModel(LanguageSettings(model=str(tmp_path / "x.gguf")))


# -- ends of the child -----------------------------------------------------------------


def test_killed_between_calls(host: ProcessLanguageModel) -> None:
    expected, first = ask(host), pid_of(host)
    os.kill(first, signal.SIGKILL)
    assert ask(host) == expected
    assert host.pid != first
    assert is_gone(first)
    assert host.restarts == 1


def test_killed_in_the_middle_of_a_call(host: ProcessLanguageModel) -> None:
    expected = ask(host)
    with ThreadPoolExecutor(1) as pool:
        for _ in range(3):
            hung = Hung(host, pool)
            os.kill(hung.pid, signal.SIGKILL)
            assert hung.answer.result(WAIT_S) == expected
            assert is_gone(hung.pid)
    assert host.restarts == 3


@pytest.mark.parametrize("number", [signal.SIGABRT, signal.SIGSEGV])
def test_a_call_over_which_the_child_crashes_twice_fails(
    host: ProcessLanguageModel, number: signal.Signals
) -> None:
    expected = ask(host)
    with ThreadPoolExecutor(1) as pool:
        hung = Hung(host, pool)
        until_stopped = host._ready_child

        def stopped(until: float) -> object:
            """Let the second child get no further either."""
            child = until_stopped(until)
            if child.pid != hung.pid:
                os.kill(child.pid, signal.SIGSTOP)
                os.kill(child.pid, number)
                os.kill(child.pid, signal.SIGCONT)
            return child

        host._ready_child = stopped  # type: ignore[method-assign,assignment]
        os.kill(hung.pid, number)
        os.kill(hung.pid, signal.SIGCONT)
        error = hung.answer.exception(WAIT_S)
    assert isinstance(error, ModelFailedError)
    assert number.name in error.message
    del host._ready_child
    assert ask(host) == expected


def test_a_call_that_takes_too_long_ends_with_its_child(settings: LanguageSettings) -> None:
    quick = msgspec.structs.replace(settings, call_timeout_s=0.5)
    with ProcessLanguageModel(quick) as host, ThreadPoolExecutor(1) as pool:
        expected = ask(host)
        hung = Hung(host, pool)
        error = hung.answer.exception(WAIT_S)
        assert isinstance(error, ModelTimeoutError)
        assert error.details == {"timeout_s": 0.5}
        assert is_gone(hung.pid)
        assert ask(host) == expected


def test_a_host_that_does_not_come_back_is_unavailable(
    tmp_path: Path, settings: LanguageSettings
) -> None:
    path = write_llama(tmp_path / "model.gguf", template=TEMPLATE)
    mine = msgspec.structs.replace(settings, model=str(path), adapters={}, retry_s=0.8)
    with ProcessLanguageModel(mine) as host:
        expected = ask(host)
        path.rename(tmp_path / "elsewhere.gguf")
        os.kill(pid_of(host), signal.SIGKILL)
        for _ in range(2):
            with pytest.raises(
                ModelUnavailableError, match=r"within 0.8 s: there is no model file"
            ):
                ask(host)
            assert host.pid is None
        (tmp_path / "elsewhere.gguf").rename(path)
        host._start_at = 0.0  # not to wait for it
        assert ask(host) == expected


def test_pauses_between_starts_grow_and_are_bounded(host: ProcessLanguageModel) -> None:
    pauses = []
    for _ in range(12):
        host._pause()
        pauses.append(host._pause_s)
    assert pauses[:3] == [host_module.FIRST_PAUSE_S * 2**i for i in range(3)]
    assert pauses[-1] == host_module.LAST_PAUSE_S
    ask(host)
    assert host._pause_s == 0.0


def test_memory_without_bound_ends_the_child_only(host: ProcessLanguageModel) -> None:
    limits = Path(f"/proc/{pid_of(host)}/limits").read_text("ascii")
    (line,) = [line for line in limits.splitlines() if line.startswith("Max address space")]
    assert int(line.split()[3]) < 16 << 30


# -- closing ---------------------------------------------------------------------------


def test_closed(settings: LanguageSettings) -> None:
    host = ProcessLanguageModel(settings)
    pid = pid_of(host)
    host.close()
    host.close()
    assert is_gone(pid)
    for call in (lambda: ask(host), lambda: host.count_tokens("x"), host.close):
        with suppress(ClosedError):
            call()
            assert call == host.close
    host.clear()  # has nothing to forget


def test_closed_while_in_use(settings: LanguageSettings) -> None:
    host = ProcessLanguageModel(settings)
    with ThreadPoolExecutor(3) as pool:
        hung = Hung(host, pool)
        waiting = [pool.submit(ask, host) for _ in range(2)]
        wait_for(lambda: host._waiting == 3)
        host.close()
        for answer in (hung.answer, *waiting):
            assert isinstance(answer.exception(WAIT_S), ClosedError)
    assert is_gone(hung.pid)


def test_calls_that_wait_are_bounded(settings: LanguageSettings) -> None:
    with (
        ProcessLanguageModel(msgspec.structs.replace(settings, max_waiting=2)) as host,
        ThreadPoolExecutor(2) as pool,
    ):
        hung = Hung(host, pool)
        waiting = pool.submit(ask, host)
        wait_for(lambda: host._waiting == 2)
        with pytest.raises(OverloadedError):
            ask(host)
        os.kill(hung.pid, signal.SIGCONT)
        assert waiting.result(WAIT_S) == hung.answer.result(WAIT_S)
        assert ask(host)


def test_nothing_is_left_behind(settings: LanguageSettings) -> None:
    def files() -> set[str]:
        names = set()
        for fd in Path("/proc/self/fd").iterdir():
            with suppress(FileNotFoundError):  # that of the listing itself
                names.add(str(fd.readlink()))
        return names

    before, pids = files(), set()
    for _ in range(2):
        with ProcessLanguageModel(settings) as host:
            pids.add(pid_of(host))
            os.kill(pid_of(host), signal.SIGKILL)
            ask(host)
            pids.add(pid_of(host))
    dropped = ProcessLanguageModel(settings)
    pids.add(pid_of(dropped))
    del dropped
    gc.collect()
    with pytest.raises(ConfigError):
        ProcessLanguageModel(LanguageSettings(model=settings.model, context_tokens=1))
    assert len(pids) == 5
    assert all(map(is_gone, pids))
    assert {name for name in files() - before if "socket" in name or "deleted" in name} == set()


# -- the parent's end, and forks -------------------------------------------------------

PARENT = """
import sys, time
from reverie.models.host import ProcessLanguageModel
from reverie.models.language import LanguageSettings
host = ProcessLanguageModel(LanguageSettings(model=sys.argv[1]))
print(host.pid, flush=True)
"""


def parent(code: str, model: str) -> tuple[subprocess.Popen[str], int]:
    """Start a program that has a host; return it and the process id of the host."""
    program = subprocess.Popen(
        [sys.executable, "-c", PARENT + code, model],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": ":".join(sys.path)},
    )
    assert program.stdout is not None
    return program, int(program.stdout.readline())


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_host_ends_with_its_program(tiny_llama: Path, number: signal.Signals) -> None:
    program, pid = parent("time.sleep(600)", str(tiny_llama))
    program.send_signal(number)
    program.communicate(timeout=WAIT_S)
    wait_for(lambda: is_gone(pid))


def test_the_host_ends_with_its_program_in_the_middle_of_a_call(tiny_llama: Path) -> None:
    # This grammar has ever more ways to go on; nobody waits for the end of that.
    busy = (
        "import threading\n"
        "grammar = 'root ::= a\\na ::= .{1,} a{2,40} | \"b\"'\n"
        "call = lambda: host.complete('x', max_tokens=400, grammar=grammar)\n"
        "threading.Thread(target=call, daemon=True).start()\n"
        "time.sleep(600)"
    )
    program, pid = parent(busy, str(tiny_llama))
    stat = Path(f"/proc/{pid}/stat")
    used = int(stat.read_text().split()[13])
    wait_for(lambda: int(stat.read_text().split()[13]) > used + 50)  # ticks of work
    program.kill()
    program.communicate(timeout=WAIT_S)
    wait_for(lambda: is_gone(pid))


def test_the_host_ends_with_a_program_that_was_forked(tiny_llama: Path) -> None:
    """The copy lives on, and has a copy of everything that was open."""
    program, pid = parent(
        "import os\nif os.fork() == 0:\n    print(os.getpid(), flush=True)\ntime.sleep(600)",
        str(tiny_llama),
    )
    assert program.stdout is not None
    copy = int(program.stdout.readline())
    try:
        program.kill()
        program.wait(WAIT_S)
        wait_for(lambda: is_gone(pid))
        assert not is_gone(copy)
    finally:
        os.kill(copy, signal.SIGKILL)
        program.stdout.close()


def test_a_thread_that_opened_it_may_end(settings: LanguageSettings) -> None:
    with ThreadPoolExecutor(1) as pool:
        host = pool.submit(ProcessLanguageModel, settings).result()
    pid = pid_of(host)
    time.sleep(0.1)
    assert ask(host)
    assert host.pid == pid
    host.close()


FORKS = """
import os
from reverie.memory_graph.errors import ClosedError
expected = host.complete("the tale", max_tokens=5)
pid = os.fork()
if pid == 0:
    try:
        host.complete("the tale", max_tokens=5)
    except ClosedError as error:
        host.close()
        del host
        os._exit(0 if "forked" in str(error) else 2)
    os._exit(1)
assert os.waitpid(pid, 0)[1] == 0
assert host.complete("the tale", max_tokens=5) == expected
assert host.restarts == 0
"""


def test_a_forked_process_leaves_the_host_to_its_parent(tiny_llama: Path) -> None:
    program, pid = parent(FORKS, str(tiny_llama))
    program.communicate(timeout=WAIT_S)
    assert program.returncode == 0
    assert is_gone(pid)


# -- grammars --------------------------------------------------------------------------


def random_grammar(rng: random.Random) -> str:
    """A grammar out of every part that there is; rules name later ones, and sometimes any."""
    names = ["root", *(f"r{i}" for i in range(rng.randint(0, 4)))]
    chars = ["[a-z]", "[^a]", "[abc-]", ".", "[\\x41-Z]", "[中-国]"]
    literals = ['"a"', '"bc"', '""', '"é"', '"\\n"', '"\\u4e2d"', '"\\""']

    def item(rule: int, depth: int) -> str:
        chance = rng.random()
        if chance < 0.3:
            return rng.choice(literals)
        if chance < 0.5:
            return rng.choice(chars)
        if chance < 0.7 and rule + 1 < len(names):
            return rng.choice(names[rule + 1 :])
        return f"({choice(rule, depth + 1)})" if depth < 2 else '"z"'

    def sequence(rule: int, depth: int) -> str:
        repeats = [""] * 9 + ["*", "+", "?", "{2}", "{0,3}", "{1,}"]
        count = rng.randint(1, 3)
        return " ".join(item(rule, depth) + rng.choice(repeats) for _ in range(count))

    def choice(rule: int, depth: int) -> str:
        return " | ".join(sequence(rule, depth) for _ in range(rng.randint(1, 3)))

    lines = []
    for number, name in enumerate(names):
        more = f' | "k" {rng.choice(names)} "l"' if rng.random() < 0.15 else ""
        lines.append(f"{name} ::= {choice(number, 0)}{more}")
    return "\n".join(lines)


def test_no_accepted_grammar_ends_the_process(settings: LanguageSettings) -> None:
    rng, tried = random.Random(5), 0
    # Some are slow, being ambiguous; those do not count.
    with ProcessLanguageModel(msgspec.structs.replace(settings, call_timeout_s=2)) as host:
        for _ in range(300):
            grammar = random_grammar(rng)
            try:
                check_grammar(grammar)
                host.complete("the", max_tokens=8, grammar=grammar)
            except (InvalidValueError, ModelTimeoutError):
                continue
            except ReverieError as error:
                pytest.fail(f"{error!r} over {grammar}")
            tried += 1
    assert tried > 50


def test_many_threads(host: ProcessLanguageModel) -> None:
    expected = ask(host)
    stop = threading.Event()

    def kill() -> None:
        while not stop.wait(0.7):
            if host.pid is not None:
                with suppress(ProcessLookupError):
                    os.kill(host.pid, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        with ThreadPoolExecutor(6) as pool:
            answers = [pool.submit(ask, host) for _ in range(600)]
            assert {answer.result(60) for answer in answers} == {expected}
    finally:
        stop.set()
        killer.join()

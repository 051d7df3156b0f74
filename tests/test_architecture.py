"""The rules of the layout, read from the source: who may import what, and what the core may do.

Each rule is a function from one source file to complaints. It is run over the project, and over
planted sources that it must and must not complain about.
"""

from __future__ import annotations

import ast
import fnmatch
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import pytest

ROOT = Path(__file__).resolve().parent.parent
LAYERS = ("memory_graph", "models", "actors", "runtime")  # each may import those before it
FOLDERS = (*LAYERS, "benchmarks", "examples", "tests", ".ci")
MAX_LINES = 600

# Library -> the only files of the four packages that may import it.
RUNTIME = ("runtime/*",)
FENCES: dict[str, tuple[str, ...]] = {
    "networkx": ("memory_graph/graph.py", "memory_graph/analytics*.py"),
    "hnswlib": ("memory_graph/vectors.py",),
    "apsw": ("memory_graph/store/*", "runtime/mem0/importing/sqlite.py"),
    "kuzu": ("runtime/mem0/importing/graph.py",),
    "dateparser": ("runtime/times.py",),
    "ladybug": ("runtime/cypher/worker.py",),
    "sqlite3": (),  # Python's own SQLite lacks a fix that durability needs
    "llama_cpp": ("models/llama*.py",),
    "ray": ("actors/ray_*.py",),
    **dict.fromkeys(("click", "rich", "typer"), RUNTIME),
    **dict.fromkeys(("langchain_core", "langgraph"), ("runtime/adapters/*",)),
    **dict.fromkeys(("fastapi", "mcp", "starlette", "uvicorn", "websockets"), RUNTIME),
    **dict.fromkeys(("http", "socketserver", "urllib"), (*RUNTIME, "models/*")),
}

# The core takes time, ids, vectors and randomness as arguments and touches nothing.
IMPURE = frozenset(
    "asyncio concurrent ctypes fcntl filelock getpass glob io locale logging mmap multiprocessing"
    " os pathlib platform platformdirs random secrets select shutil signal socket structlog"
    " subprocess tempfile threading time uuid".split()
)
STORE = "memory_graph/store/*"
EXCUSED: dict[str, frozenset[str]] = {
    # saves and loads the index beside a snapshot
    "memory_graph/vectors.py": frozenset({"open", "os", "pathlib", "tempfile"}),
}
SEEDED = frozenset({"default_rng", "Generator", "PCG64", "RandomState", "SeedSequence"})


class Source(NamedTuple):
    """A file of the project: its path from the root, and its text."""

    path: str
    text: str

    @property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @property
    def layer(self) -> str:
        return self.path.partition("/")[0]

    def matches(self, *patterns: str) -> bool:
        return any(fnmatch.fnmatchcase(self.path, pattern) for pattern in patterns)


class Import(NamedTuple):
    """One imported name: `from a.b import c` is "a.b.c". Lazy: inside a function."""

    line: int
    name: str
    lazy: bool

    @property
    def top(self) -> str:
        return self.name.partition(".")[0]


Rule: TypeAlias = Callable[[Source], Iterator[str]]


def sources() -> list[Source]:
    """Every Python file of the project."""
    paths = (path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py")))
    return [Source(path.relative_to(ROOT).as_posix(), path.read_text()) for path in paths]


def package_of(source: Source) -> list[str]:
    """The package that a file lies in, as ["reverie", "models", "rules"]."""
    folders = source.path.split("/")[:-1]
    return ["reverie", *(folders[1:] if folders[0] == "runtime" else folders)]


def imports(source: Source) -> Iterator[Import]:
    """Every import, also relative ones, lazy ones, and those by `import_module("name")`."""

    def walk(node: ast.AST, *, lazy: bool) -> Iterator[Import]:
        match node:
            case ast.Import(names=names):
                yield from (Import(node.lineno, name.name, lazy) for name in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                package = package_of(source)
                base = [*package[: len(package) - level + 1]] if level else []
                start = ".".join([*base, *([module] if module else [])])
                yield from (Import(node.lineno, f"{start}.{name.name}", lazy) for name in names)
            case ast.Call(args=[ast.Constant(value=str(name)), *_], func=function):
                if ast.unparse(function).rpartition(".")[2] in {"import_module", "__import__"}:
                    yield Import(node.lineno, name, lazy)
            case _:
                pass
        inner = lazy or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        inner = inner or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test))
        for child in ast.iter_child_nodes(node):
            yield from walk(child, lazy=inner)

    yield from walk(source.tree, lazy=False)


# -- rules about imports ----------------------------------------------------------------


def direction(source: Source) -> Iterator[str]:
    """Imports go runtime -> actors -> models -> memory_graph, never back."""
    if source.layer not in LAYERS:
        return
    for line, name, _ in imports(source):
        parts = name.split(".")
        if parts[0] == "reverie":
            target = parts[1] if len(parts) > 1 and parts[1] in LAYERS else "runtime"
            if LAYERS.index(target) > LAYERS.index(source.layer):
                yield f"{line}: {source.layer} imports {name}, which is of {target}"


def full_names(source: Source) -> Iterator[str]:
    """`import models` would find a user's own models.py: write reverie.models."""
    for item in imports(source):
        if item.top in LAYERS:
            yield f"{item.line}: import {item.name}; write reverie.{item.name}"


def fences(source: Source) -> Iterator[str]:
    """A library behind a fence is imported only by the files that wrap it."""
    if source.layer not in LAYERS:
        return
    for item in imports(source):
        allowed = FENCES.get(item.top)
        if allowed is not None and not source.matches(*allowed):
            yield f"{item.line}: {item.top} belongs only in {' or '.join(allowed) or 'no file'}"


def lazy_wrappers(source: Source) -> Iterator[str]:
    """What loads Ray or llama.cpp is imported inside functions: `import reverie` starts nothing."""
    wrappers = r"reverie\.(actors\.ray_|models\.llama)"
    if source.layer not in LAYERS or source.matches("actors/ray_*.py", "models/llama*.py"):
        return
    for item in imports(source):
        if re.match(wrappers, item.name) and not item.lazy:
            yield f"{item.line}: import {item.name} inside the function that needs it"


def declared_libraries(source: Source) -> Iterator[str]:
    """Every library that the packages import is in pyproject.toml."""
    if source.layer not in LAYERS:
        return
    for item in imports(source):
        if item.top in sys.stdlib_module_names or item.top in {"reverie", *LAYERS}:
            continue
        names = {normal(name) for name in (*distributions().get(item.top, ()), item.top)}
        if not names & declared():
            yield f"{item.line}: {item.top} is not among the dependencies or extras"


def normal(name: str) -> str:
    """A distribution's name in its normal form."""
    return re.sub(r"[-_.]+", "-", name).lower()


@cache
def distributions() -> dict[str, list[str]]:
    """Import name -> distributions that provide it."""
    return {name: list(found) for name, found in metadata.packages_distributions().items()}


@cache
def declared() -> set[str]:
    """Names of all dependencies and extras of the project."""
    project = pyproject()["project"]
    extras: dict[str, list[str]] = project["optional-dependencies"]
    lines = [*project["dependencies"], *(line for extra in extras.values() for line in extra)]
    return {normal(re.split(r"[^\w.-]", line)[0]) for line in lines}


# -- rules about the core ---------------------------------------------------------------


def pure_core(source: Source) -> Iterator[str]:
    """memory_graph reads no clock, file, environment or unseeded randomness, but in its store."""
    if source.layer != "memory_graph" or source.matches(STORE):
        return
    excused = EXCUSED.get(source.path, frozenset())
    for item in imports(source):
        if item.top in IMPURE - excused:
            yield f"{item.line}: {item.top}: take what you need from it as an argument"
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call):
            why = impure_call(node)
            if why and ast.unparse(node.func) not in excused:
                yield f"{node.lineno}: {ast.unparse(node.func)}: {why}"


def impure_call(call: ast.Call) -> str | None:
    """Say why a call has no place in the core, if it has none."""
    name = ast.unparse(call.func)
    owner, _, method = name.rpartition(".")
    match owner, method:
        case "", "open" | "input" | "print":
            return "the core reads and writes nothing"
        case "", "hash":
            return "differs between processes (PYTHONHASHSEED); use hashlib"
        case _, "now" | "utcnow" | "today" if re.search(r"\b(datetime|date|dt)\b", owner):
            return "the time is an argument"
        case _, "fromtimestamp" if len(call.args) + len(call.keywords) == 1:
            return "uses the machine's time zone; pass UTC"
        case "np.random" | "numpy.random", _ if not (call.args or call.keywords):
            return "is not seeded"
        case "np.random" | "numpy.random", _ if method not in SEEDED:
            return "uses a generator that everything shares"
        case "np" | "numpy", "load" | "save" | "savez" | "fromfile" | "memmap":
            return "the core reads and writes nothing"
        case _:
            return None


# -- rules about files ------------------------------------------------------------------


def documented(source: Source) -> Iterator[str]:
    """Every module says in a docstring what it is for."""
    if not ast.get_docstring(source.tree):
        yield "1: no docstring"


def short(source: Source) -> Iterator[str]:
    """A file that outgrows the bound holds two subjects: divide it."""
    lines = source.text.count("\n")
    if lines > MAX_LINES:
        yield f"{lines}: more than {MAX_LINES} lines"


RULES: tuple[Rule, ...] = (
    direction,
    full_names,
    fences,
    lazy_wrappers,
    declared_libraries,
    pure_core,
    documented,
    short,
)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_rule_holds(rule: Rule) -> None:
    complaints = [f"{source.path}:{text}" for source in sources() for text in rule(source)]
    assert not complaints, "\n".join([str(rule.__doc__), *complaints])


PLANTED: tuple[tuple[Rule, str, str], ...] = (
    (direction, "memory_graph/x.py", "import reverie.models.protocol"),
    (direction, "memory_graph/x.py", "from reverie import actors"),
    (direction, "memory_graph/store/x.py", "from ... import models"),
    (direction, "models/x.py", "def f():\n    from reverie.actors.shard import Shard"),
    (direction, "models/rules/x.py", "from ...actors import shard"),
    (direction, "actors/x.py", "from reverie import Reverie"),
    (direction, "actors/x.py", "import reverie"),
    (direction, "actors/x.py", "if TYPE_CHECKING:\n    import reverie.cli"),
    (direction, "memory_graph/x.py", "importlib.import_module('reverie.cli')"),
    (full_names, "examples/x.py", "import models"),
    (full_names, "tests/x.py", "from memory_graph.ids import Key"),
    (fences, "memory_graph/search.py", "import networkx as nx"),
    (fences, "memory_graph/graph.py", "import hnswlib"),
    (fences, "memory_graph/graph.py", "import sqlite3"),
    (fences, "actors/shard.py", "from apsw import Connection"),
    (fences, "models/protocol.py", "def f():\n    from llama_cpp import Llama"),
    (fences, "actors/shard.py", "import ray"),
    (fences, "runtime/cli.py", "import ray.util"),
    (fences, "models/files.py", "import rich.progress"),
    (fences, "actors/x.py", "from fastapi import FastAPI"),
    (lazy_wrappers, "actors/backend.py", "from reverie.actors.ray_backend import RayBackend"),
    (lazy_wrappers, "runtime/api.py", "from reverie.models import llama_embedder"),
    (declared_libraries, "runtime/x.py", "import requests"),
    (pure_core, "memory_graph/x.py", "import time"),
    (pure_core, "memory_graph/x.py", "from os import environ"),
    (pure_core, "memory_graph/x.py", "import numpy.random, random"),
    (pure_core, "memory_graph/x.py", "datetime.datetime.now(UTC)"),
    (pure_core, "memory_graph/x.py", "datetime.fromtimestamp(0)"),
    (pure_core, "memory_graph/x.py", "np.random.default_rng()"),
    (pure_core, "memory_graph/x.py", "np.random.shuffle(rows)"),
    (pure_core, "memory_graph/x.py", "open('a')"),
    (pure_core, "memory_graph/x.py", "hash('a')"),
    (pure_core, "memory_graph/vectors.py", "import time"),
    (pure_core, "memory_graph/vectors.py", "np.random.rand(3)"),
    (pure_core, "memory_graph/text.py", "import os"),
    (documented, "actors/x.py", "x = 1"),
    (short, "tests/x.py", "x = 1\n" * (MAX_LINES + 1)),
)

FINE: tuple[tuple[Rule, str, str], ...] = (
    (direction, "models/x.py", "from reverie.memory_graph import ids\nfrom .protocol import Turn"),
    (direction, "runtime/x.py", "from reverie.actors.shard import Shard\nimport reverie"),
    (direction, "tests/x.py", "import reverie"),
    (full_names, "runtime/x.py", "from reverie import models\nfrom .models import x"),
    (fences, "memory_graph/analytics_paths.py", "import networkx"),
    (fences, "memory_graph/store/sqlite.py", "import apsw"),
    (fences, "models/llama_embedder.py", "import llama_cpp"),
    (fences, "actors/ray_backend.py", "import ray"),
    (fences, "runtime/http/app.py", "import fastapi"),
    (fences, "tests/x.py", "import apsw"),
    (lazy_wrappers, "runtime/x.py", "def f():\n    from reverie.actors.ray_backend import Backend"),
    (lazy_wrappers, "actors/ray_a.py", "from reverie.actors.ray_b import B"),
    (declared_libraries, "models/x.py", "import json\nimport Stemmer, numpy.typing, llama_cpp"),
    (pure_core, "memory_graph/x.py", "import datetime\ndatetime.datetime.fromtimestamp(0, tz=UTC)"),
    (pure_core, "memory_graph/x.py", "np.random.default_rng(seed)\nself.open()"),
    (pure_core, "memory_graph/vectors.py", "import pathlib\nopen('a')"),
    (pure_core, "memory_graph/store/x.py", "import os, time"),
    (pure_core, "models/x.py", "import os, time"),
    (documented, "actors/x.py", '"""A thing."""'),
    (short, "tests/x.py", "x = 1\n" * MAX_LINES),
)


@pytest.mark.parametrize(("rule", "path", "text"), PLANTED)
def test_rule_catches(rule: Rule, path: str, text: str) -> None:
    assert list(rule(Source(path, text)))


@pytest.mark.parametrize(("rule", "path", "text"), FINE)
def test_rule_allows(rule: Rule, path: str, text: str) -> None:
    assert not list(rule(Source(path, text)))


def test_every_rule_is_tried_on_planted_sources() -> None:
    for cases in (PLANTED, FINE):
        assert {rule for rule, _, _ in cases} == set(RULES)


# -- the package list -------------------------------------------------------------------


def pyproject() -> dict[str, Any]:
    """The project's pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def packages_in(root: Path) -> tuple[set[str], set[str]]:
    """Return packages under the four folders, and folders with Python files that are none; an
    example that is a package is part of reverie too."""
    packages, strays = set(), set()
    for layer in LAYERS:
        for folder in {path.parent for path in (root / layer).rglob("*.py")}:
            parts = folder.relative_to(root).parts
            if (folder / "__init__.py").exists():
                rest = parts[1:] if layer == "runtime" else parts
                packages.add(".".join(["reverie", *rest]))
            else:
                strays.add("/".join(parts))
    packages |= {f"reverie.{p.parent.name}" for p in (root / "examples").glob("*/__init__.py")}
    return packages, strays


def test_pyproject_lists_every_package() -> None:
    packages, strays = packages_in(ROOT)
    assert not strays, f"add an __init__.py to {strays}"
    listed = set(pyproject()["tool"]["setuptools"]["packages"])
    assert listed == packages, "[tool.setuptools] packages: one line for each package"


def test_a_package_that_is_not_listed_is_found(tmp_path: Path) -> None:
    packages = ("runtime/__init__.py", "runtime/http/__init__.py", "examples/inn/__init__.py")
    for name in (*packages, "models/rules/dates.py", "examples/one.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert packages_in(tmp_path) == ({"reverie", "reverie.http", "reverie.inn"}, {"models/rules"})


# -- what an import does ----------------------------------------------------------------

# Not rich, which structlog loads when it is there.
HEAVY = frozenset(
    "fastapi gguf langchain_core langgraph llama_cpp mcp ray starlette torch typer uvicorn".split()
)
LOADED = "import sys, threading; print(threading.active_count(), *sys.modules)"


def after(statement: str) -> tuple[int, set[str]]:
    """Return the number of threads and the modules loaded in a new process after a statement."""
    code = f"{statement}\n{LOADED}"
    run = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd="/"
    )
    threads, *modules = run.stdout.split()
    return int(threads), set(modules)


def test_import_reverie_starts_nothing() -> None:
    threads, modules = after("import reverie")
    assert "reverie" in modules
    loaded = sorted(modules & HEAVY)
    assert not loaded, f"import {loaded} inside the functions that need them"
    assert threads == 1


def test_a_heavy_import_is_seen() -> None:
    assert after("import typer")[1] & HEAVY

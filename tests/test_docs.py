"""README and docs: their code runs, prints what they say, and names what there is.

An HTML comment right before a fenced block or a table says what is to be done with it:

    <!-- file: PATH -->             the block is that file, without its docstring
    <!-- test: skip (reason) -->    not run
    <!-- test: output -->           what the Python block before it prints
    <!-- test: console -->          shell commands that are run

Python blocks of a page run one after the other, each in a namespace of its own, in a new folder,
without a model.
"""

from __future__ import annotations

import ast
import importlib.util
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest
import structlog
from typer.testing import CliRunner

import reverie
from reverie import Config, ReverieError, door
from reverie.cli.app import app
from reverie.memory_graph import decay, filters, ids, search, signals
from reverie.memory_graph.store.schema import PARTITION_SCHEMA
from reverie.models.catalog import default_folder, model_path

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
LINKED = [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
QUICKSTART = ROOT / "examples" / "quickstart.py"

_BLOCK = re.compile(
    r"(?:^<!-- (?P<mark>[^\n]*?) -->\n+)?^```(?P<kind>\w+)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_NUMBER = re.compile(r"\d+\.\d\d\b|\d{4}-\d\d-\d\d")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, and the comment before it."""

    kind: str
    text: str
    mark: str
    line: int


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(m["kind"], m["text"], m["mark"] or "", text.count("\n", 0, m.start()) + 1)
        for m in _BLOCK.finditer(text)
    ]


def marked(page: Path, mark: str) -> Block:
    (found,) = [b for b in blocks(page) if b.mark == mark]
    return found


def table(page: str, mark: str) -> list[list[str]]:
    """Return the rows of the table after a comment, without its head."""
    text = (DOCS / page).read_text(encoding="utf-8")
    after = text.split(f"<!-- test: {mark} -->\n")[1].split("\n\n")[0]
    rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in after.splitlines()]
    return [[cell.strip() for cell in row] for row in rows[2:]]


def names(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


@pytest.fixture
def no_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder to work in, where `auto` finds no model."""
    monkeypatch.setattr("reverie.mind.default_folder", lambda: tmp_path / "models")
    monkeypatch.setenv("REVERIE_MODELS", str(tmp_path / "models"))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.delenv("REVERIE_DATA", raising=False)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["python"])
    yield tmp_path
    structlog.reset_defaults()


# -- code ------------------------------------------------------------------------------


def with_blocks(*kinds: str) -> list[Path]:
    return [page for page in PAGES if any(b.kind in kinds for b in blocks(page))]


@pytest.mark.parametrize("page", with_blocks("python"), ids=lambda p: p.name)
def test_python_runs_and_prints_what_the_page_says(page: Path, no_models: Path) -> None:
    printed = ""
    for block in blocks(page):
        if block.mark == "test: output":
            assert printed == block.text, f"{page.name}:{block.line}"
        elif block.kind == "python" and not block.mark.startswith("test: skip ("):
            out = io.StringIO()
            code = compile("\n" * block.line + block.text, str(page), "exec")
            with redirect_stdout(out):
                exec(code, {"__name__": "page"})  # noqa: S102 (our own pages)
            printed = out.getvalue()


@pytest.mark.parametrize("page", with_blocks("console", "sh"), ids=lambda p: p.name)
def test_commands_run(page: Path, no_models: Path) -> None:
    for block in blocks(page):
        if block.kind not in {"console", "sh"} or block.mark.startswith("test: skip ("):
            continue
        for line in block.text.splitlines():
            words = shlex.split(line.removeprefix("$ "), comments=True)
            if words and words[0].removeprefix(".venv/bin/") == "reverie":
                result = CliRunner().invoke(app, words[1:])
                assert result.exit_code == 0, (page.name, line, result.output)


def test_a_page_that_lies_is_found(tmp_path: Path, no_models: Path) -> None:
    page = tmp_path / "page.md"
    text = "<!-- test: output -->\n```text\n3\n```\n"
    page.write_text(f"```python\nprint(1 + 1)\n```\n\n{text}", encoding="utf-8")
    with pytest.raises(AssertionError, match=r"page.md:5"):
        test_python_runs_and_prints_what_the_page_says(page, no_models)
    page.write_text("```console\n$ reverie serach x\n```\n", encoding="utf-8")
    with pytest.raises(AssertionError, match="serach"):
        test_commands_run(page, no_models)


@pytest.mark.parametrize("name", ["quickstart.py", "two_npcs.py"])
def test_the_readme_shows_the_examples_as_they_are(name: str) -> None:
    source = (ROOT / "examples" / name).read_text(encoding="utf-8")
    docstring = ast.parse(source).body[0]
    code = "".join(source.splitlines(keepends=True)[docstring.end_lineno :]).lstrip("\n")
    assert marked(ROOT / "README.md", f"file: examples/{name}").text == code


def masked(text: str) -> list[str]:
    """Return lines without scores and dates, which differ from day to day."""
    return [_NUMBER.sub("N", line) for line in text.splitlines()]


@pytest.mark.model
def test_the_quickstart_prints_what_the_readme_shows(tmp_path: Path) -> None:
    model_path("minilm", default_folder())  # says how to get it
    done = subprocess.run(
        [sys.executable, QUICKSTART, tmp_path / "data"],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    shown = marked(ROOT / "README.md", "test: output of the quickstart").text
    assert masked(done.stdout) == masked(shown)


@pytest.mark.model
@pytest.mark.slow
def test_the_demonstration_prints_what_the_readme_shows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    result = CliRunner().invoke(app, ["demo", "--inline"])
    assert result.exit_code == 0, result.output
    printed = iter(masked(result.output))
    for line in masked(marked(ROOT / "README.md", "test: lines of the demo").text):
        assert line == "..." or line in printed, line  # in this order


# -- links and names -------------------------------------------------------------------


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, made as GitHub makes them."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        for heading in _HEADING.findall(text)
    }


@pytest.mark.parametrize("page", LINKED, ids=lambda p: p.name)
def test_links_lead_somewhere(page: Path) -> None:
    for link in _LINK.findall(page.read_text(encoding="utf-8")):
        if link.startswith("https://"):
            continue
        path, _, anchor = link.partition("#")
        there = page if not path else page.parent / path
        assert there.exists(), f"{page.name}: {link}"
        assert not anchor or anchor in anchors(there), f"{page.name}: {link}"


def test_the_commands_of_the_readme_name_files_and_targets_that_exist() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    targets = set(
        re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    )
    assert set(re.findall(r"\bmake (\w+)`?$", text, re.MULTILINE)) <= targets
    for path in re.findall(r"(?:python|pytest) ((?:examples|tests|docs)/[\w/.]*)", text):
        assert (ROOT / path).exists(), path
    for module in re.findall(r"-m (benchmarks\.\w+)", text):
        assert (ROOT / f"{module.replace('.', '/')}.py").exists(), module


def test_the_walk_through_the_source_names_functions_that_exist() -> None:
    """What stands right after the path of a file is defined in it."""
    text = (DOCS / "reading-the-source.md").read_text(encoding="utf-8")
    for path in re.findall(r"`([\w/]+/\w+\.py)`", text):
        assert (ROOT / path).exists(), path
    found = 0
    for path, after in re.findall(r"`([\w/]+\.py)`((?:,? `[\w.]+`)+)", text):
        tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        known = {name for node in tree.body for name in _defined(node)}
        for name in names(after):
            assert name in known, f"{path} has no {name}"
            found += 1
    assert found > 45  # a line that is worded differently is not looked at


def _defined(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        yield node.name
    if isinstance(node, ast.ClassDef):
        yield from (f"{node.name}.{n.name}" for n in node.body if isinstance(n, ast.FunctionDef))


# -- lists that must be complete -------------------------------------------------------


def test_the_page_of_commands_is_fresh() -> None:
    made = _script(DOCS / "generate_cli.py").page()
    shown = (DOCS / "cli.md").read_text(encoding="utf-8")
    assert shown == made, "stale; run: python docs/generate_cli.py"


def _script(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_all_settings_are_listed_with_their_defaults() -> None:
    rows = table("configuration.md", "fields of Config")
    shown = {names(row[0])[0]: names(row[1])[0] for row in rows}
    assert shown == {name: repr(getattr(Config(), name)) for name in Config.__struct_fields__}


def test_limits_are_those_of_the_door() -> None:
    shown = " ".join(row[1] for row in table("configuration.md", "limits of the door"))
    for limit in (
        f"{ids.MAX_ID_BYTES} bytes",
        f"{door.MAX_LIMIT:,}",
        f"{door.MAX_TAGS}",
        f"{door.MAX_METADATA_BYTES // 1024} KiB of JSON, {door.MAX_LEVELS} levels",
        f"{search.MAX_QUERY_CHARS:,} characters",
    ):
        assert limit in shown, limit
    assert f"{filters.MAX_DEPTH} levels and {filters.MAX_CONDITIONS} conditions" in (
        DOCS / "filters.md"
    ).read_text(encoding="utf-8")


def test_all_errors_are_listed_in_their_groups() -> None:
    text = (DOCS / "errors.md").read_text(encoding="utf-8")
    shown: dict[str, list[str]] = {}
    for section in text.split("\n## ")[1:]:
        head, _, rest = section.partition("\n")
        shown[head] = re.findall(r"^\| `(\w+)`", rest, re.MULTILINE)
    groups = [c for c in ReverieError.__subclasses__() if c.__subclasses__()]
    lone = [c.__name__ for c in ReverieError.__subclasses__() if not c.__subclasses__()]
    assert shown == {
        **{g.__name__: [c.__name__ for c in g.__subclasses__()] for g in groups},
        "Ours": lone,
    }
    bases = {"InputError": ValueError, "NotFoundError": LookupError, "StorageError": OSError}
    for group in groups:
        assert issubclass(group, bases.get(group.__name__, RuntimeError))
        assert (
            f"`{bases.get(group.__name__, RuntimeError).__name__}`"
            in text.split(f"## {group.__name__}\n")[1].split("\n|")[0]
        )
    assert all(getattr(reverie.errors, c.__name__) is c for c in groups)


def test_all_fields_and_operators_of_filters_are_listed() -> None:
    fields = {n for row in table("filters.md", "fields of filters.py") for n in names(row[0])}
    assert fields == {*filters.FIELDS, "metadata.<key>"}
    shown = {n for row in table("filters.md", "operators of filters.py") for n in names(row[0])}
    assert shown == set(filters.OPERATORS)


def test_constants_of_decay_and_ranking_are_those_of_the_code() -> None:
    for name, value in table("concepts.md", "constants of decay.py"):
        assert getattr(decay, names(name)[0]) == float(value)
    days = {
        name: float("inf") if row[1] == "never" else float(row[1])
        for row in table("concepts.md", "half-lives of decay.py")
        for name in names(row[0])
    }
    assert days == {kind: s / decay.DAY_S for kind, s in decay.HALF_LIFE_S.items()}
    weights = {
        names(row[0])[0]: float(row[1]) for row in table("concepts.md", "weights of signals.py")
    }
    assert weights == dict(signals.WEIGHTS)


def test_all_tables_of_a_partition_are_listed() -> None:
    made = re.findall(r"CREATE TABLE (\w+)", "\n".join(PARTITION_SCHEMA))
    assert [names(row[0])[0] for row in table("storage.md", "tables of a partition")] == made

"""A look at the machine: whether reverie can work here, and how to mend what it needs.

Each check is a function that yields lines; what it raises becomes a line too. What concerns a data
folder stands in `doctor_folder`.
"""

from __future__ import annotations

import os
import platform
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

from reverie.config import Config
from reverie.memory_graph.errors import ConfigError, ReverieError
from reverie.models.catalog import CATALOG, default_folder, model_path, pull_command

Status: TypeAlias = Literal["ok", "warn", "fail"]

MIN_PYTHON = (3, 11)
FILES_A_PARTITION = 4  # that a process has open: a database, its log, its index, its witness
SPARE_FILES = 256
LIBRARIES = ("hnswlib", "llama-cpp-python", "msgspec", "networkx", "numpy", "PyStemmer")
NO_EXTRAS = {"dev", "training"}  # for those who work on reverie itself


class Line(msgspec.Struct, frozen=True):
    """What one check found.

    Attributes:
        check: its name.
        status: "ok"; "warn", works but not as it should; "fail", does not work.
        text: what was found.
        fix: what to do about it; "" when there is nothing to do.
    """

    check: str
    status: Status
    text: str
    fix: str = ""


class Patient(msgspec.Struct, frozen=True, kw_only=True):
    """What is looked at.

    Attributes:
        folder: the data folder, there or not.
        config: the settings.
        mask_key: of a masked folder, if it is known.
        unknown: variables named REVERIE_* that mean nothing.
        with_ray: whether to start Ray.
        with_model: whether to load the models.
    """

    folder: Path
    config: Config
    mask_key: str | None = None
    unknown: tuple[str, ...] = ()
    with_ray: bool = False
    with_model: bool = False

    @property
    def models_folder(self) -> Path:
        """Where pulled models lie."""
        return self.config.models_folder or default_folder()


Check: TypeAlias = Callable[[Patient], Iterator[Line]]


def examine(patient: Patient) -> list[Line]:
    """Return what all checks found, in the order in which to mend it."""
    from reverie.operations import doctor_folder

    checks: tuple[tuple[str, Check], ...] = (
        ("python", _python),
        ("sqlite", _sqlite),
        ("libraries", _libraries),
        ("extras", _extras),
        ("machine", _machine),
        ("settings", _settings),
        ("models", _models),
        ("load models", _load_models),
        ("ray", _ray),
        ("disk", doctor_folder.disk),
        ("permissions", doctor_folder.permissions),
        ("data folder", doctor_folder.health),
    )
    return [line for name, check in checks for line in _carried_out(name, check, patient)]


def _carried_out(name: str, check: Check, patient: Patient) -> list[Line]:
    lines: list[Line] = []
    try:
        lines += check(patient)
    except ReverieError as exc:
        lines.append(Line(name, "fail", f"{type(exc).__name__}: {exc.message}", fix_of(exc)))
    except Exception as exc:  # noqa: BLE001 (a check that fails is what this is for)
        lines.append(Line(name, "fail", f"{type(exc).__name__}: {exc}", "please report this"))
    return lines


def fix_of(error: ReverieError) -> str:
    """Return the way out that an error knows of."""
    return str(error.details.get("command") or "see docs/errors.md")


# -- Python and its libraries ------------------------------------------------------------


def _python(_: Patient) -> Iterator[Line]:
    text = f"Python {platform.python_version()} on {platform.system()} {platform.machine()}"
    if sys.version_info[:2] < MIN_PYTHON:
        wanted = ".".join(map(str, MIN_PYTHON))
        yield Line("python", "fail", text, f"install Python {wanted} or newer")
    else:
        yield Line("python", "ok", text)
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    if encoding != "utf8":
        text = f"the terminal takes {sys.stdout.encoding or 'no encoding'}, not UTF-8"
        yield Line("python", "warn", text, "set PYTHONUTF8=1")


def _sqlite(_: Patient) -> Iterator[Line]:
    from reverie.memory_graph.store.copies import sqlite_version
    from reverie.memory_graph.store.sqlite import check_version

    try:
        check_version()
    except ReverieError as exc:
        yield Line("sqlite", "fail", exc.message, "pip install --upgrade apsw")
        return
    yield Line("sqlite", "ok", f"SQLite {sqlite_version()}, of apsw {_version('apsw')}")


def _libraries(_: Patient) -> Iterator[Line]:
    missing = [name for name in LIBRARIES if _version(name) is None]
    if missing:
        text = f"not installed: {', '.join(missing)}"
        yield Line("libraries", "fail", text, "pip install --force-reinstall reverie")
    else:
        found = ", ".join(f"{name} {_version(name)}" for name in LIBRARIES)
        yield Line("libraries", "ok", found)


def _extras(_: Patient) -> Iterator[Line]:
    extras = extras_of(metadata.requires("reverie") or [])
    have = [n for n, needs in extras.items() if all(_version(need) for need in needs)]
    lack = [name for name in extras if name not in have]
    fix = f"for what you want of them: pip install 'reverie[{','.join(lack)}]'" if lack else ""
    text = f"installed: {', '.join(have) or 'none'}"
    text += f"; not installed: {', '.join(lack)}" if lack else ""
    yield Line("extras", "ok", text, fix)


def extras_of(requires: list[str]) -> dict[str, list[str]]:
    """Return the distributions that each extra needs, from the lines of a package's metadata."""
    extras: dict[str, list[str]] = {}
    for line in requires:
        found = re.search(r"extra\s*==\s*[\"']([\w.-]+)[\"']", line)
        if found is not None and found[1] not in NO_EXTRAS:
            name = re.split(r"[^\w.-]", line, maxsplit=1)[0]
            extras.setdefault(found[1], []).append(name)
    return dict(sorted(extras.items()))


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


# -- the machine -------------------------------------------------------------------------


def _machine(patient: Patient) -> Iterator[Line]:
    cores = cpu_cores()
    wanted = patient.config.threads
    if wanted > cores:
        text = f"{cores} cores for this process, and threads = {wanted}"
        yield Line("machine", "warn", text, f"set threads to {cores} or less")
    else:
        yield Line("machine", "ok", f"{cores} cores for this process")
    limit = open_files_limit()
    needed = SPARE_FILES + FILES_A_PARTITION * patient.config.partitions
    if limit is not None and limit < needed:
        text = f"a process may have {limit} files open, and {needed} may be needed"
        yield Line("machine", "warn", text, f"ulimit -n {needed}")


def cpu_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def open_files_limit() -> int | None:
    """Return how many files this process may have open; None when there is no bound."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else int(soft)


def _settings(patient: Patient) -> Iterator[Line]:
    if patient.unknown:
        text = f"variables that mean nothing: {', '.join(patient.unknown)}"
        yield Line("settings", "warn", text, "see reverie config show for those that do")
    else:
        yield Line("settings", "ok", "all settings are valid")


# -- models ------------------------------------------------------------------------------


def _models(patient: Patient) -> Iterator[Line]:
    from reverie.models.digest import file_digest

    folder = patient.models_folder
    missing: list[str] = []
    for entry in CATALOG.values():
        path = folder / entry.file_name
        if not path.is_file():
            missing.append(entry.name)
        elif file_digest(path) != entry.sha256:
            text = f"{path} does not have the checksum of {entry.name}"
            fix = f"rm '{path}' && {pull_command(entry.name)}"
            yield Line("models", "fail", text, fix)
        else:
            yield Line("models", "ok", f"{entry.name}: present, with its checksum")
    config = patient.config
    wanted = {spec for spec in (config.embedder, config.language_model) if isinstance(spec, str)}
    for spec in sorted(wanted - {"auto", "standin"}):
        try:
            model_path(spec, folder)
        except ReverieError as exc:
            yield Line("models", "fail", f"the settings name it: {exc.message}", fix_of(exc))
    if config.embedder == "auto" and "minilm" in missing:
        text = "minilm is not here: new worlds get the stand-in, which knows words, not meaning"
        yield Line("models", "warn", text, pull_command("minilm"))
    others = [name for name in missing if name not in wanted and name != "minilm"]
    if others:
        yield Line("models", "ok", f"not pulled, and not asked for: {', '.join(others)}")
    if folder.is_dir() and not os.access(folder, os.R_OK | os.X_OK):
        yield Line("models", "fail", f"{folder} cannot be read", f"chmod u+rx '{folder}'")


def _load_models(patient: Patient) -> Iterator[Line]:
    if not patient.with_model:
        return
    config, folder = patient.config, patient.models_folder
    spec = config.embedder
    if spec == "auto":
        spec = "minilm" if (folder / CATALOG["minilm"].file_name).is_file() else "standin"
    if isinstance(spec, str):
        from reverie.models.embedders import open_embedder

        embedder = open_embedder(spec, folder, threads=config.threads)
        shape = embedder.embed(["The bridge is closed. 桥封了。"], "passage").shape
        embedder.close()
        yield Line("load models", "ok", f"embedder {spec}: loaded, {shape[1]} dimensions")
    yield from _load_language_model(config, folder)


def _load_language_model(config: Config, folder: Path) -> Iterator[Line]:
    from reverie.actors.language import open_language_model
    from reverie.models.language import LanguageSettings
    from reverie.models.usage import Budget, Meter

    spec: Any = config.language_model
    if spec is None and (folder / CATALOG["smollm2"].file_name).is_file():
        spec = "smollm2"
    if not isinstance(spec, str):
        text = "no language model is set or pulled: rules and central sentences work without"
        yield Line("load models", "ok", text)
        return
    settings = LanguageSettings(
        model=spec,
        folder=str(folder),
        adapters=dict(config.language_adapters),
        context_tokens=config.language_context,
        threads=config.language_threads,
        call_timeout_s=config.language_timeout_s,
    )
    model = open_language_model(settings, meter=Meter(Budget()))
    try:
        written = model.complete("The capital of France is", max_tokens=4)
    finally:
        model.close()
    text = f"language model {spec}: loaded, wrote {written.completion_tokens} tokens"
    yield Line("load models", "ok", text)


# -- Ray ---------------------------------------------------------------------------------


def _ray(patient: Patient) -> Iterator[Line]:
    version = _version("ray")
    if version is None:
        yield Line("ray", "warn", "Ray is not installed: no actors", "pip install 'ray>=2.40'")
        return
    if not patient.with_ray:
        yield Line("ray", "ok", f"Ray {version}; --ray starts it")
        return
    from reverie.runtime import open as open_folder

    with (
        tempfile.TemporaryDirectory(prefix="reverie-doctor-") as folder,
        open_folder(folder, actors=1, partitions=1, embedder="standin", background=False) as rt,
    ):
        user = rt.user("doctor")
        user.remember("The patient is well.")
        if len(user.list().items) != 1:
            msg = "an actor did not keep what it was told"
            raise ConfigError(msg)
    yield Line("ray", "ok", f"Ray {version}: started, and an actor kept a memory")


__all__ = ["Line", "Patient", "examine"]

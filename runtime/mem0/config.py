"""mem0's configuration, read: what is used of it, and what is not."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NoReturn

import msgspec
import platformdirs
import structlog

from reverie.config import Config
from reverie.mem0.exceptions import ConfigurationError
from reverie.memory_graph.ids import check_id

log = structlog.get_logger(__name__)

Version = Literal[1, 2]

DATA_VARIABLE = "REVERIE_DATA"
_OPENING = ("mask_key", "clock", "clocks", "actors", "address")  # of `reverie.open`
_OWN = ("data", "world", "version", "graph", "ranking", "all_users", *_OPENING)
_RANKINGS = ("similarity", "reverie")
_CATALOG = "catalog.db"  # of a data folder of reverie


class MemoryConfig:
    """The sections of a configuration by name, for code that builds one as an object."""

    def __init__(self, **sections: Any) -> None:
        self.sections = sections


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What a configuration asks for.

    Attributes:
        data: the data folder of reverie.
        world: where its users lie; the name of mem0's collection.
        version: of mem0 whose calls and answers are wanted; None takes the calls of both.
        graph: answers have `relations`, as in 1.x with a graph.
        ranking: "similarity" ranks by cosine, as mem0 does; "reverie" by all that reverie knows.
        all_users: an id of "*" in a query may stand for all.
        settings: of reverie's Config.
        opening: further arguments of `reverie.open`, such as the mask key.
        unused: sections and fields that have no meaning here.
    """

    data: Path
    world: str = "mem0"
    version: Version | None = None
    graph: bool = False
    ranking: str = "similarity"
    all_users: bool = False
    settings: dict[str, Any] = {}
    opening: dict[str, Any] = {}
    unused: tuple[str, ...] = ()


def read_config(given: Any = None, **own: Any) -> Plan:
    """Return what a configuration of mem0 asks for; a log line names what is not used of it.

    Args:
        given: a mapping as of `from_config`, a `MemoryConfig`, a configuration object of mem0
            itself, or None. Its section "reverie" holds what `own` may hold.
        own: data, world, version, graph, ranking, all_users, mask_key and other arguments of
            `reverie.open`, and settings of reverie's Config; they win over the section.

    Raises:
        ConfigurationError: no mapping, or a value that cannot be used.
    """
    sections = _sections(given)
    chosen = {**_mapping(sections.pop("reverie", None), "reverie"), **own}
    store = _config_of(sections, "vector_store")
    settings = {k: v for k, v in chosen.items() if k not in _OWN}
    used: set[str] = set()
    _models(sections, settings, used)
    path = store.get("path")
    if path is not None:
        used.add("vector_store.path")
    if "collection_name" in store:
        used.add("vector_store.collection_name")
    graph = _mapping(sections.get("graph_store"), "graph_store")
    unused = tuple(name for name in _named(sections) if name not in used)
    if unused:
        log.info("mem0_config_not_used", names=list(unused))
    ranking = chosen.get("ranking", "similarity")
    if ranking not in _RANKINGS:
        _refuse(f"ranking must be one of {', '.join(_RANKINGS)}, not {ranking!r}")
    return Plan(
        data=_folder(chosen.get("data"), path),
        world=check_id(chosen.get("world") or store.get("collection_name") or "mem0", "world"),
        version=_version(chosen.get("version")),
        graph=bool(chosen.get("graph", bool(graph.get("config")))),
        ranking=ranking,
        all_users=bool(chosen.get("all_users", False)),
        settings=settings,
        opening={name: chosen[name] for name in _OPENING if name in chosen},
        unused=unused,
    )


def _sections(given: Any) -> dict[str, Any]:
    if isinstance(given, MemoryConfig):
        given = given.sections
    elif hasattr(given, "model_dump"):  # of mem0 itself
        given = given.model_dump()
    return _mapping(given, "the configuration")


def _mapping(value: Any, what: str) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        _refuse(f"{what} must be a mapping, not {type(value).__name__}")
    return dict(value)


def _config_of(sections: Mapping[str, Any], name: str) -> dict[str, Any]:
    return _mapping(_mapping(sections.get(name), name).get("config"), f"{name}.config")


def _models(sections: Mapping[str, Any], settings: dict[str, Any], used: set[str]) -> None:
    """Take over models that are on this machine: GGUF files, and whatever is named with the
    provider "reverie"."""
    for name, setting in (("embedder", "embedder"), ("llm", "language_model")):
        provider = _mapping(sections.get(name), name).get("provider")
        model = _config_of(sections, name).get("model")
        is_file = isinstance(model, str | Path) and str(model).endswith(".gguf")
        is_ours = provider == "reverie" or hasattr(model, "info") or hasattr(model, "complete")
        if model is None or not (is_file or is_ours):
            continue
        used |= {f"{name}.model", f"{name}.provider"}
        settings.setdefault(setting, str(model) if isinstance(model, Path) else model)


def _named(sections: Mapping[str, Any]) -> list[str]:
    """Return "section.field" of all that is set, without values: there are keys among them."""
    names: list[str] = []
    for section, value in sections.items():
        if section == "version" or value is None:
            continue
        if not isinstance(value, Mapping):
            names.append(section)
            continue
        names += [f"{section}.{k}" for k in value if k not in {"config", "provider"}]
        if value.get("provider") is not None and section != "vector_store":
            names.append(f"{section}.provider")
        names += [f"{section}.{k}" for k in _mapping(value.get("config"), section)]
    return names


def _version(value: Any) -> Version | None:
    if value is None:
        return None
    number = str(value).removeprefix("v").partition(".")[0]
    if number not in {"1", "2"}:
        _refuse(f"version must be 1 or 2, not {value!r}")
    return 1 if number == "1" else 2


def _folder(data: Any, path: Any) -> Path:
    """Return the data folder. A path of a vector store that holds somebody else's files stays
    untouched: the folder then lies beside it, with ".reverie" at the end of its name."""
    if data is not None:
        return Path(data)
    if path is not None:
        folder = Path(path)
        if folder.is_dir() and any(folder.iterdir()) and not (folder / _CATALOG).exists():
            beside = folder.with_name(f"{folder.name}.reverie")
            log.info("mem0_store_left_alone", data=str(beside), hint="reverie import mem0")
            return beside
        return folder
    if named := os.environ.get(DATA_VARIABLE):
        return Path(named)
    return platformdirs.user_data_path("reverie") / "mem0"


def _refuse(why: str) -> NoReturn:
    raise ConfigurationError(why, "CONFIG_001", suggestion="See docs/mem0.md.")


def config_of(plan: Plan) -> Config:
    """Return the settings of the runtime; raises ConfigError."""
    from reverie.config import make_config

    return make_config(None, plan.settings)

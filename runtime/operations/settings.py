"""Settings out of a file, the environment and flags; what comes later wins.

    the defaults of `Config`  <  a TOML file  <  REVERIE_* variables  <  flags (or arguments)

The file is the one that is named, or else `reverie.toml` in the data folder, if there is one. No
other place is looked at. Each value is checked by itself, so that an error names where it stands.
"""

from __future__ import annotations

import difflib
import os
import tomllib
import types
import typing
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from reverie.config import Config, make_config
from reverie.door import limit
from reverie.memory_graph.errors import ConfigError, InputError
from reverie.models.catalog import is_path

FILE_NAME = "reverie.toml"
MAX_FILE_BYTES = 1024 * 1024
MAX_ACTORS = 1024
PREFIX = "REVERIE_"
MASK_KEY = "REVERIE_MASK_KEY"
VARIABLES = {"models_folder": "REVERIE_MODELS"}  # that is not named after its setting
# Read elsewhere: the data folder and the file are found with them; a key is no setting.
NOT_SETTINGS = {"REVERIE_DATA", "REVERIE_CONFIG", MASK_KEY}

_BESIDE: dict[str, tuple[Any, Any]] = {"actors": (int | None, None), "address": (str | None, None)}
_PATHS = ("models_folder", "embedder", "language_model")
_TRUE, _FALSE = {"1", "true", "yes", "on"}, {"0", "false", "no", "off"}


class Setting(msgspec.Struct, frozen=True):
    """One setting: its value, and where it came from ("default", a file, a variable, a flag)."""

    name: str
    value: Any
    source: str


class LoadedConfig(msgspec.Struct, frozen=True):
    """Settings with where each came from.

    Attributes:
        config: for `reverie.open(config=)`.
        actors: how many shards run as Ray actors; None runs all in this process.
        address: of a Ray cluster.
        file: that was read, if any.
        settings: all of them, in the order of `Config`.
        unknown: variables that begin with REVERIE_ and mean nothing to reverie, sorted, each with
            the known one whose name is nearest, if one is near.
    """

    config: Config
    actors: int | None
    address: str | None
    file: str | None
    settings: tuple[Setting, ...]
    unknown: dict[str, str | None] = {}

    @property
    def arguments(self) -> dict[str, Any]:
        """For `reverie.open(path, **loaded.arguments)`."""
        return {"config": self.config, "actors": self.actors, "address": self.address}


def load_config(
    file: str | Path | None = None,
    *,
    folder: str | Path | None = None,
    environ: Mapping[str, str] | None = None,
    **flags: Any,
) -> LoadedConfig:
    """Return settings of a TOML file, the environment and arguments; later ones win.

    Args:
        file: a TOML file whose keys are settings. It must be there.
        folder: a data folder; its `reverie.toml` is read when no `file` is named.
        environ: the environment; that of this process by default. `REVERIE_SUMMARY_EVERY` sets
            `summary_every`; an empty variable sets nothing, "none" sets None.
        flags: single settings, or `actors` and `address`. They win.

    Raises:
        ConfigError: a file that cannot be read, an unknown key, or a bad value; the message names
            the file or the variable, and the key.
    """
    environ = os.environ if environ is None else environ
    path = _path_of(file, folder)
    found: dict[str, tuple[Any, str]] = {}
    if path is not None:
        found |= {name: (value, str(path)) for name, value in read_file(path).items()}
    for name in _types():
        variable = variable_of(name)
        if text := environ.get(variable, "").strip():
            value = _checked(name, _parsed(name, text, variable), variable)
            found[name] = (value, variable)
    for name, value in flags.items():
        _require_known(name, "the arguments")
        found[name] = (_checked(name, value, f"argument {name}", convert=False), "flag")
    known = {variable_of(name) for name in _types()} | NOT_SETTINGS
    unknown = sorted(n for n in environ if n.startswith(PREFIX) and n not in known)
    config = make_config(None, {n: v for n, (v, _) in found.items() if n not in _BESIDE})
    return LoadedConfig(
        config,
        found.get("actors", (None, ""))[0],
        found.get("address", (None, ""))[0],
        None if path is None else str(path),
        tuple(_setting(name, config, found) for name in _types()),
        {name: _nearest(name, known, PREFIX) for name in unknown},
    )


def read_file(path: Path) -> dict[str, Any]:
    """Return the settings in a TOML file, each of them checked. Relative paths begin at the folder
    that the file lies in.

    Raises:
        ConfigError: see `load_config`.
    """
    where = str(path)
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
        if len(data) > MAX_FILE_BYTES:
            msg = f"{where} is larger than {MAX_FILE_BYTES:,} bytes"
            raise ConfigError(msg, file=where)
        read = tomllib.loads(data.decode("utf-8"))
    except (OSError, ValueError, RecursionError) as exc:
        if isinstance(exc, ConfigError):
            raise
        msg = f"{where} cannot be read: {exc}"
        raise ConfigError(msg, file=where) from exc
    settings = {}
    for name, value in read.items():
        _require_known(name, where)
        value = _checked(name, value, where)  # noqa: PLW2901
        settings[name] = _from_folder(name, value, path.absolute().parent)
    return settings


def variable_of(name: str) -> str:
    """Return the variable of the environment that sets `name`."""
    return VARIABLES.get(name, PREFIX + name.upper())


def _path_of(file: str | Path | None, folder: str | Path | None) -> Path | None:
    if file is not None:
        return Path(file).expanduser()
    if folder is not None and (Path(folder) / FILE_NAME).exists():
        return Path(folder) / FILE_NAME
    return None


def _types() -> dict[str, Any]:
    """Return the type of each setting, as a file or a variable gives it."""
    hints = typing.get_type_hints(Config)
    found: dict[str, Any] = {}
    for name in Config.__struct_fields__:
        kind = hints[name]
        # An object cannot stand in a file: these are names and paths.
        found[name] = str | None if kind is Any else kind
    return found | {name: kind for name, (kind, _) in _BESIDE.items()}


def _require_known(name: str, where: str) -> None:
    if name == "mask_key":
        msg = f"{where}: mask_key is a secret; it is read from {MASK_KEY}, never from a file"
        raise ConfigError(msg, file=where, setting=name)
    if name not in _types():
        near = _nearest(name, _types())
        hint = f"did you mean {near!r}?" if near else f"known: {', '.join(_types())}"
        msg = f"{where}: unknown setting {name!r}; {hint}"
        raise ConfigError(msg, file=where, setting=name)


def _nearest(name: str, known: Iterable[str], prefix: str = "") -> str | None:
    """Return the known name that somebody may have meant, if one is near; what all begin with
    makes none near."""
    rests = [one.removeprefix(prefix) for one in sorted(known)]
    near = difflib.get_close_matches(name.removeprefix(prefix), rests, n=1)
    return prefix + near[0] if near else None


def _checked(name: str, value: Any, where: str, *, convert: bool = True) -> Any:
    """Return a value as its setting wants it, or refuse it in the name of its place."""
    try:
        if convert:
            value = msgspec.convert(value, _types()[name], strict=True, dec_hook=_path)
        if name == "actors" and value is not None:
            limit(value, name, MAX_ACTORS)
        elif name not in _BESIDE:
            make_config(None, {name: value})
    except (msgspec.ValidationError, InputError) as exc:
        why = exc.message if isinstance(exc, InputError) else str(exc)
        msg = f"{where}: setting {name!r}: {why}"
        raise ConfigError(msg, file=where, setting=name) from exc
    return value


def _path(kind: type, value: Any) -> Any:
    """Return what msgspec does not know by itself: a path."""
    if kind is Path and isinstance(value, str):
        return Path(value)
    msg = f"expected a {'path' if kind is Path else kind.__name__}"
    raise msgspec.ValidationError(msg)


def _parsed(name: str, text: str, where: str) -> Any:
    """Return what a variable says, as its setting's type."""
    kind = _types()[name]
    kinds = typing.get_args(kind) if isinstance(kind, types.UnionType) else (kind,)
    if type(None) in kinds and text.lower() == "none":
        return None
    (first, *_) = (k for k in kinds if k is not type(None))
    origin = typing.get_origin(first)
    if origin is tuple:
        return [part.strip() for part in text.split(",") if part.strip()]
    if origin is dict:
        pairs = [part.partition("=") for part in text.split(",") if part.strip()]
        return {key.strip(): value.strip() for key, _, value in pairs}
    if first is bool:
        if text.lower() not in _TRUE | _FALSE:
            msg = f"{where}: setting {name!r}: {text!r} is neither true nor false"
            raise ConfigError(msg, file=where, setting=name)
        return text.lower() in _TRUE
    if first in {int, float}:
        try:
            return first(text.replace("_", ""))
        except ValueError as exc:
            msg = f"{where}: setting {name!r}: {text!r} is no number"
            raise ConfigError(msg, file=where, setting=name) from exc
    return text


def _from_folder(name: str, value: Any, folder: Path) -> Any:
    if name == "language_adapters":
        return {key: str(folder / Path(path).expanduser()) for key, path in value.items()}
    if name in _PATHS and value is not None and (isinstance(value, Path) or is_path(value)):
        return type(value)(folder / Path(value).expanduser())
    return value


def _setting(name: str, config: Config, found: Mapping[str, tuple[Any, str]]) -> Setting:
    value = found.get(name, (None, ""))[0] if name in _BESIDE else getattr(config, name)
    return Setting(name, value, found.get(name, (None, "default"))[1])


__all__ = ["LoadedConfig", "Setting", "load_config"]

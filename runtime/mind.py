"""The models of a runtime: one embedder per world, an extractor and a decider.

A world keeps the id of the embedder that made its vectors in the catalog. The model is loaded on
first use, and one that does not fit the stored vectors is refused before it writes anything.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import structlog

from reverie.config import AUTO, Config
from reverie.language import Language, near_duplicate
from reverie.memory_graph.errors import ClosedError, ConfigError, EmbedderMismatchError
from reverie.memory_graph.store import Catalog, World as StoredWorld
from reverie.memory_graph.words import clear_caches as clear_text_caches
from reverie.models.cached import CachedEmbedder
from reverie.models.catalog import default_folder, find_entry
from reverie.models.checked import CheckedEmbedder
from reverie.models.embedders import open_embedder
from reverie.models.forgetting import clear_caches as clear_model_caches
from reverie.models.masking import MaskedDecider, MaskedExtractor
from reverie.models.protocol import CrossEncoder, Decider, Embedder, Extractor
from reverie.models.summarise import Summariser

log = structlog.get_logger(__name__)

PORTABLE = ("minilm", "multilingual", "standin")  # specs that name the same model everywhere
OBJECT = "object"  # stored spec of an embedder that was handed over as an object


class WorldMind:
    """Hands out the models; see the module's text. Safe to call from several threads."""

    def __init__(
        self,
        config: Config,
        catalog: Catalog,
        now: Callable[[str], float],
        *,
        on_ray: bool = False,
        masked: bool = False,
    ) -> None:
        self._config = config
        self._hosts = config.model_hosts if on_ray else 0
        self._catalog = catalog
        self._now = now
        self._folder: Path = config.models_folder or default_folder()
        self.lock = threading.RLock()  # of the catalog too, which is used by one thread at a time
        self._closed = False
        self._by_world: dict[str, Embedder] = {}
        self._by_spec: dict[str, Embedder] = {}
        self._specs: dict[str, str] = {}
        self._deciders: dict[str, Decider] = {}
        self.language = Language(config, self._folder, on_ray=on_ray)
        extractor = self.language.extractor
        self._is_masked = masked
        self.extractor: Extractor = MaskedExtractor(extractor) if masked else extractor
        self.summariser: Summariser = self.language.summariser

    def embedder(self, world: str) -> Embedder:
        """Return the embedder of a world, deciding it for a new one.

        Raises:
            ModelMissingError: the model is not on this machine.
            EmbedderMismatchError: the configured model is not the one that made the vectors.
        """
        found = self._by_world.get(world)
        if found is not None:
            return found
        with self.lock:
            return self._by_world.get(world) or self._choose(world, None)

    def for_reading(self, world: str) -> Embedder:
        """Return the embedder for a question; a world that is not there yet is not made by it.

        Raises:
            ModelMissingError, EmbedderMismatchError: as `embedder`.
        """
        with self.lock:
            self._require_open()
            if world not in self._by_world and self._catalog.world(world) is None:
                return self._open(self._config.embedder)
        return self.embedder(world)

    def declare(self, world: str, embedder: str | Embedder | None) -> Embedder:
        """Fix the embedder of a world, or confirm it.

        Raises:
            EmbedderMismatchError: the world has vectors of another one.
        """
        with self.lock:
            known = self._by_world.get(world)
            if known is not None and embedder is None:
                return known
            return self._choose(world, embedder)

    def _choose(self, world: str, wanted: str | Embedder | None) -> Embedder:
        self._require_open()
        stored = self._catalog.world(world)
        spec = self._config.embedder if wanted is None else wanted
        if stored is not None and isinstance(spec, str) and (spec == AUTO or wanted is None):
            spec = self._config.embedder if stored.spec == OBJECT else stored.spec
        if spec == OBJECT or (stored is not None and spec == AUTO):
            msg = (
                f"world {world!r} was made with an embedder object; pass the same object as "
                "config embedder"
            )
            raise ConfigError(msg, world=world)
        found = self._open(spec)
        if stored is None:
            name = self._resolve(spec) if isinstance(spec, str) else OBJECT
            info = found.info
            self._catalog.add_world(StoredWorld(world, info.id, info.dim, name, self._now(world)))
        elif stored.embedder != found.info.id:
            msg = (
                f"the vectors of world {world!r} were made by {stored.embedder}, but "
                f"{found.info.id} is configured; open it with the first, or migrate it with "
                f"rt.reembed({world!r}, embedder=...)"
            )
            raise EmbedderMismatchError(msg, stored=stored.embedder, given=found.info.id)
        self._by_world[world] = found
        self._specs[world] = self._resolve(spec) if isinstance(spec, str) else OBJECT
        return found

    def stored(self, world: str) -> StoredWorld | None:
        """Return what the catalog knows of a world; None for one without vectors."""
        with self.lock:
            self._require_open()
            return self._catalog.world(world)

    @staticmethod
    def portable(spec: str) -> str:
        """Return a stored spec if it means the same on every machine, else "": no path leaves."""
        return spec if spec in PORTABLE else ""

    def accepted(self, embedder: str, dim: int, spec: str) -> str:
        """Return the spec to store for a world that comes with vectors of `embedder`.

        Args:
            embedder: id of the model that made them.
            dim: their dimensions.
            spec: the name of the model, if `portable` gave one; another is never opened.

        Raises:
            EmbedderMismatchError: this runtime has another model.
            ModelMissingError: the model is not on this machine.
        """
        with self.lock:
            self._require_open()
            wanted: str | Embedder = self._config.embedder
            if isinstance(wanted, str) and spec in PORTABLE:
                wanted = spec
            info = self._open(wanted).info
            if (info.id, info.dim) != (embedder, dim):
                msg = (
                    f"the vectors in the file were made by {embedder} ({dim} dimensions), but here "
                    f"is {info.id} ({info.dim}): open the data folder with embedder= that model, "
                    "or let reembed migrate the world where it came from, and export it again"
                )
                raise EmbedderMismatchError(msg, stored=embedder, given=info.id)
            return self._resolve(wanted) if isinstance(wanted, str) else OBJECT

    def _require_open(self) -> None:
        if self._closed:
            msg = "the runtime is closed"
            raise ClosedError(msg)

    def _resolve(self, spec: str) -> str:
        if spec != AUTO:
            return spec
        found = (self._folder / find_entry("minilm").file_name).is_file()
        return "minilm" if found else "standin"

    def _open(self, spec: str | Embedder) -> Embedder:
        if not isinstance(spec, str):
            return CheckedEmbedder(spec)
        name = self._resolve(spec)
        if spec == AUTO and name == "standin":
            log.warning(
                "no embedding model is here; using the stand-in, which knows words, not meaning",
                way_out="reverie models pull minilm, then reembed",
            )
        found = self._by_spec.get(name)
        if found is None:
            found = self._by_spec[name] = CachedEmbedder(self._load(name))
        return found

    def _load(self, name: str) -> Embedder:
        config = self._config
        if not self._hosts:
            return open_embedder(name, self._folder, threads=config.threads)
        from reverie.actors.ray_hosts import RayEmbedder

        return RayEmbedder(
            name,
            self._folder,
            threads=config.threads,
            hosts=self._hosts,
            retry_s=config.retry_s,
        )

    def other(self, spec: str | Embedder) -> Embedder:
        """Open another embedder, for a world that is being migrated, without using it yet."""
        with self.lock:
            return self._open(spec)

    def replaced(self, world: str, spec: str | Embedder, embedder: Embedder) -> None:
        """Use another embedder for a world from now on; its vectors have been replaced."""
        with self.lock:
            info = embedder.info
            name = self._resolve(spec) if isinstance(spec, str) else OBJECT
            self._catalog.set_world_embedder(world, info.id, info.dim, name)
            self._by_world[world] = embedder
            self._specs[world] = name
            self._deciders.pop(world, None)

    def decider(self, world: str) -> Decider:
        """Return the decider for a world."""
        found = self._deciders.get(world)
        if found is None:
            embedder = self.embedder(world)
            cross = embedder if isinstance(embedder, CrossEncoder) else None
            found = self.language.decider(self._specs.get(world, ""), cross)
            found = MaskedDecider(found) if self._is_masked else found
            self._deciders[world] = found
        return found

    def near_duplicate(self, world: str) -> float:
        """Return the cosine of a world's embedder from which on texts say the same."""
        self.embedder(world)
        return near_duplicate(self._specs.get(world, ""))

    def forget(self, world: str) -> None:
        """Drop cached vectors of texts: after an erasure none may linger in memory."""
        embedder = self._by_world.get(world)
        if isinstance(embedder, CachedEmbedder):
            embedder.clear()
        self.language.clear()
        clear_text_caches()
        clear_model_caches()

    def close(self) -> None:
        """Free the models that were opened here (not objects that were handed over)."""
        self.language.close()
        with self.lock:
            self._closed = True
            for embedder in self._by_spec.values():
                embedder.close()
            self._by_spec.clear()
            self._by_world.clear()

"""One of the systems that peers.py compares, in a process of its own, behind lines of JSON.

    PYTHON benchmarks/peers_worker.py SYSTEM OPTIONS

A line of stdin is a call, `{"op": "search", ...}`; a line of stdout is its answer. Runs in the
interpreter of each system and imports that system only; the rest is the standard library and
numpy. What is timed is the system's public call alone.
"""

# ruff: noqa: D102 (what the methods of the systems do is told once, by `System`)

from __future__ import annotations

import json
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from peers_vectors import Embed, ask_server, live_questions, load_model, read_table

Options = dict[str, Any]

USER = "somebody"
LIMIT = 10
FILL = 250  # statements of one call, where a system takes many at once


class System(Protocol):
    """What is asked of each system."""

    name: str

    def open(self, folder: Path) -> None:
        """Open what is in a folder, or begin."""

    def fill(self, texts: Sequence[str]) -> None:
        """Keep many statements as they are, the fastest public way."""

    def add(self, text: str, request_id: str) -> None:
        """Keep one statement as it is, in one call."""

    def search(self, question: str) -> list[str]:
        """Return the texts of the LIMIT best."""

    def many(self, questions: Sequence[str]) -> list[list[str]] | None:
        """Answer many questions in one call; None where there is no such call."""

    def texts(self) -> list[str]:
        """Return everything that is kept."""

    def close(self) -> None:
        """Close in good order."""

    def embedded(self, texts: Sequence[str], questions: Sequence[str]) -> dict[str, list[str]]:
        """Return by their role what it embeds besides these texts and questions."""


class Reverie:
    """reverie, in this process."""

    def __init__(self, embed: Embed, options: Options) -> None:
        self.module = import_module("reverie")
        protocol = import_module("reverie.models.protocol")
        self.name = f"reverie {version('reverie')}"

        class Given:
            info = protocol.EmbedderInfo("given", options["dim"])

            def embed(self, texts: Sequence[str], role: str) -> Any:
                return embed(texts, role)

            def count_tokens(self, text: str) -> int:
                return len(text.split())

            def unknown_share(self, text: str) -> float:  # noqa: ARG002
                return 0.0

            def close(self) -> None:
                pass

        # With a model of its own, the one that it opens for everybody.
        self.embedder: Any = options["model"] or Given()
        self.runtime: Any = None
        self.user: Any = None

    def open(self, folder: Path) -> None:
        self.runtime = self.module.open(
            folder, embedder=self.embedder, extractor="off", background=False
        )
        self.user = self.runtime.user(USER)

    def fill(self, texts: Sequence[str]) -> None:
        for start in range(0, len(texts), FILL):
            self.runtime.remember_many({USER: texts[start : start + FILL]})

    def add(self, text: str, request_id: str) -> None:
        self.user.remember(text, request_id=request_id)

    def search(self, question: str) -> list[str]:
        return [hit.text for hit in self.user.search(question, limit=LIMIT)]

    def many(self, questions: Sequence[str]) -> list[list[str]]:
        asked = [(USER, question) for question in questions]
        return [[hit.text for hit in hits] for hits in self.runtime.search_many(asked, limit=LIMIT)]

    def texts(self) -> list[str]:
        found: list[str] = []
        cursor = None
        while True:
            page = self.user.list(limit=1000, cursor=cursor)
            found += [item.text for item in page.items]
            cursor = page.cursor
            if cursor is None:
                return found

    def close(self) -> None:
        self.runtime.close()

    def embedded(self, texts: Sequence[str], questions: Sequence[str]) -> dict[str, list[str]]:  # noqa: ARG002
        return {}


class Mem0:
    """mem0 with FAISS, without a language model: `infer=False`."""

    needs_spacy = False

    def __init__(self, embed: Embed, options: Options) -> None:
        if (find_spec("spacy") is not None) != self.needs_spacy:
            msg = f"spaCy is {'not ' * self.needs_spacy}installed in {sys.executable}"
            raise RuntimeError(msg)
        os.environ["MEM0_TELEMETRY"] = "False"
        logging.disable(logging.CRITICAL)
        self.main = import_module("mem0.memory.main")
        self.name = f"mem0 {version('mem0ai')}, FAISS"
        self.dim = options["dim"]
        self.embed = embed
        # There is no provider for an embedder of one's own, nor for no language model.
        self.main.EmbedderFactory.create = staticmethod(lambda *_: Given(self._row))
        self.main.LlmFactory.create = staticmethod(lambda *_: self)
        self.memory: Any = None

    def _row(self, text: str, role: str) -> list[float]:
        row: list[float] = self.embed([text], role)[0].tolist()
        return row

    def open(self, folder: Path) -> None:
        store = {
            "collection_name": "memories",
            "path": str(folder / "faiss"),
            "embedding_model_dims": self.dim,
            "distance_strategy": "cosine",
        }
        folder.mkdir(exist_ok=True)
        self.memory = self.main.Memory.from_config(
            {
                "vector_store": {"provider": "faiss", "config": store},
                "history_db_path": str(folder / "history.db"),
            }
        )

    def fill(self, texts: Sequence[str]) -> None:
        """Each statement is a call of `add`; but the store, which rewrites its files at each one,
        does so only at the last: otherwise filling takes time by the square of the count."""
        stores = self._stores()
        paths = [store.path for store in stores]
        for store in stores:
            store.path = None
        self._fill(texts[:-1])
        for store, path in zip(stores, paths, strict=True):
            store.path = path
            store._save()  # noqa: SLF001 (of entities, if the last statement names none)
        self.add(texts[-1], "")

    def _stores(self) -> list[Any]:
        return [self.memory.vector_store]

    def _fill(self, texts: Sequence[str]) -> None:
        for text in texts:
            self.add(text, "")

    def add(self, text: str, request_id: str) -> None:  # noqa: ARG002 (mem0 has none)
        self.memory.add(text, user_id=USER, infer=False)

    def search(self, question: str) -> list[str]:
        found = self.memory.search(question, top_k=LIMIT, filters={"user_id": USER})
        return [item["memory"] for item in found["results"]]

    def many(self, questions: Sequence[str]) -> None:  # noqa: ARG002
        return None

    def texts(self) -> list[str]:
        found = self.memory.get_all(filters={"user_id": USER}, top_k=1_000_000)
        return [item["memory"] for item in found["results"]]

    def close(self) -> None:
        self.memory.close()

    def embedded(self, texts: Sequence[str], questions: Sequence[str]) -> dict[str, list[str]]:  # noqa: ARG002
        return {}


class Given:
    """What mem0 expects of an embedder: lists of floats, one text a call."""

    config = None

    def __init__(self, row: Callable[[str, str], list[float]]) -> None:
        self._row = row

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        return self._row(text, "query" if memory_action == "search" else "passage")

    def embed_batch(self, texts: list[str], memory_action: str | None = None) -> list[list[float]]:
        return [self.embed(text, memory_action) for text in texts]


class Mem0Nlp(Mem0):
    """mem0 with FAISS and spaCy, as its README installs it for hybrid search.

    It ties the entities that spaCy finds to memories only where a language model has read what is
    added (`infer=True`), so that is how statements are added here. In the place of the language
    model stands one that costs nothing and gives each statement back as it is.
    """

    needs_spacy = True

    def __init__(self, embed: Embed, options: Options) -> None:
        super().__init__(embed, options)
        self.name = f"mem0 {version('mem0ai')} with spaCy {version('spacy')}, FAISS"
        models = import_module("mem0.utils.spacy_models")
        if models.get_nlp_full() is None or models.get_nlp_lemma() is None:
            msg = "mem0 finds no spaCy model en_core_web_sm"
            raise RuntimeError(msg)
        self.lacking = 0
        self._own = threading.local()  # each thread's statements that are being added

    def generate_response(self, **_: Any) -> str:
        """Answer as the language model that extracts memories."""
        return json.dumps({"memory": [{"text": text} for text in self._own.texts]})

    def _row(self, text: str, role: str) -> list[float]:
        if role == "query" and (adding := getattr(self._own, "texts", None)):
            # Before it adds, it looks for what the language model is to be shown.
            return super()._row(adding[0], "passage")
        try:
            return super()._row(text, role)
        except KeyError:
            self.lacking += 1
            raise

    def _stores(self) -> list[Any]:
        return [self.memory.vector_store, self.memory.entity_store]

    def _fill(self, texts: Sequence[str]) -> None:
        for start in range(0, len(texts), FILL):
            self._add(texts[start : start + FILL])

    def add(self, text: str, request_id: str) -> None:  # noqa: ARG002
        self._add([text])

    def _add(self, texts: Sequence[str]) -> None:
        self._own.texts = texts
        try:
            messages = [{"role": "user", "content": text} for text in texts]
            self.memory.add(messages, user_id=USER)
        finally:
            self._own.texts = None

    def embedded(self, texts: Sequence[str], questions: Sequence[str]) -> dict[str, list[str]]:
        module = import_module("mem0.utils.entity_extraction")
        found = {"passage": module.extract_entities_batch(list(texts))}
        found["query"] = [module.extract_entities(question) for question in questions]
        return {
            role: list({text: None for entities in lists for _, text in entities})
            for role, lists in found.items()
        }


class LangGraph:
    """LangGraph's InMemoryStore; keeps nothing on disk."""

    def __init__(self, embed: Embed, options: Options) -> None:
        self.base = import_module("langgraph.store.base")
        self.store_class = import_module("langgraph.store.memory").InMemoryStore
        embeddings = import_module("langchain_core.embeddings").Embeddings
        self.name = f"LangGraph InMemoryStore (checkpoint {version('langgraph-checkpoint')})"
        self.dim = options["dim"]

        class Given(embeddings):  # type: ignore[misc, valid-type]
            def embed_documents(self, texts: list[str]) -> list[list[float]]:
                rows: list[list[float]] = embed(texts, "passage").tolist()
                return rows

            def embed_query(self, text: str) -> list[float]:
                row: list[float] = embed([text], "query")[0].tolist()
                return row

        self.embeddings = Given()
        self.store: Any = None

    def open(self, folder: Path) -> None:  # noqa: ARG002
        index = {"dims": self.dim, "embed": self.embeddings, "fields": ["text"]}
        self.store = self.store_class(index=index)

    def fill(self, texts: Sequence[str]) -> None:
        for start in range(0, len(texts), FILL):
            part = texts[start : start + FILL]
            self.store.batch([self.base.PutOp((USER,), text, {"text": text}) for text in part])

    def add(self, text: str, request_id: str) -> None:  # noqa: ARG002
        self.store.put((USER,), text, {"text": text})

    def search(self, question: str) -> list[str]:
        found = self.store.search((USER,), query=question, limit=LIMIT)
        return [item.value["text"] for item in found]

    def many(self, questions: Sequence[str]) -> list[list[str]]:
        asked = [self.base.SearchOp((USER,), limit=LIMIT, query=q) for q in questions]
        return [[item.value["text"] for item in hits] for hits in self.store.batch(asked)]

    def texts(self) -> list[str]:
        return [item.value["text"] for item in self.store.search((USER,), limit=1_000_000)]

    def close(self) -> None:
        self.store = None

    def embedded(self, texts: Sequence[str], questions: Sequence[str]) -> dict[str, list[str]]:  # noqa: ARG002
        return {}


SYSTEMS: dict[str, Callable[[Embed, Options], System]] = {
    "reverie": Reverie,
    "mem0": Mem0,
    "mem0_nlp": Mem0Nlp,
    "langgraph": LangGraph,
}


def embed_by(options: Options) -> Embed:
    """Return where the vectors come from, by the options of this process."""
    if options["vectors"] is None:  # only what it would embed is asked
        return lambda *_: np.zeros((0, 0), np.float32)
    kept = read_table(Path(options["vectors"]))
    if options["address"]:
        return live_questions(kept, ask_server(options["address"], options["dim"]))
    if options["model"] and sys.argv[1] != "reverie":  # that opens its own
        return live_questions(kept, load_model(options["model"]))
    return kept


def resident_bytes() -> int:
    """Return the resident memory of this process now."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS:"))


class Worker:
    """The calls of the protocol; each takes the fields of its line and returns those of the answer.

    Times are seconds of the wall clock; "cpu" is seconds of all cores that this process used,
    which other work on the machine changes less.
    """

    def __init__(self, system: System) -> None:
        self.system = system

    def name(self) -> dict[str, Any]:
        """What it is, and its memory before it opens anything."""
        return {"name": self.system.name, "resident": resident_bytes()}

    def open(self, folder: str) -> dict[str, Any]:
        """Open a folder."""
        self.system.open(Path(folder))
        return {}

    def fill(self, texts: list[str]) -> dict[str, Any]:
        """Keep all of them."""
        start = time.perf_counter()
        self.system.fill(texts)
        return {"seconds": time.perf_counter() - start}

    def search(self, questions: list[str]) -> dict[str, Any]:
        """One after the other."""
        used = time.process_time()
        pairs = [self._timed(self.system.search, question) for question in questions]
        used = time.process_time() - used
        return {
            "found": [hits for hits, _ in pairs],
            "took": [took for _, took in pairs],
            "cpu": used,
        }

    def threads(self, questions: list[str], clients: int) -> dict[str, Any]:
        """As many clients at once, each of which asks its next question after the last answer."""
        errors: list[str] = []

        def attempt(question: str) -> list[str]:
            try:
                return self.system.search(question)
            except Exception as exc:  # noqa: BLE001 (whatever a peer raises is its answer)
                errors.append(f"{type(exc).__name__}: {exc}")
                return []

        with ThreadPoolExecutor(clients) as pool:
            list(pool.map(time.sleep, [0.02] * clients))  # all threads are there
            start, used = time.perf_counter(), time.process_time()
            pairs = list(pool.map(lambda q: self._timed(attempt, q), questions))
            seconds, used = time.perf_counter() - start, time.process_time() - used
        return {
            "found": [hits for hits, _ in pairs],
            "took": [took for _, took in pairs],
            "seconds": seconds,
            "cpu": used,
            "errors": errors,
        }

    def many(self, questions: list[str], at_once: int) -> dict[str, Any]:
        """By the call that takes many, if there is one."""
        found: list[list[str]] = []
        start, used = time.perf_counter(), time.process_time()
        for first in range(0, len(questions), at_once):
            hits = self.system.many(questions[first : first + at_once])
            if hits is None:
                return {"found": None, "seconds": None, "cpu": None}
            found += hits
        seconds, used = time.perf_counter() - start, time.process_time() - used
        return {"found": found, "seconds": seconds, "cpu": used}

    def add(self, texts: list[str], clients: int = 1) -> dict[str, Any]:
        """One text a call, from so many threads; tells which were acknowledged."""

        def attempt(text: str) -> tuple[str, float]:
            start = time.perf_counter()
            try:
                self.system.add(text, f"add {text}")
            except Exception as exc:  # noqa: BLE001 (whatever a peer raises is its answer)
                return f"{type(exc).__name__}: {exc}", time.perf_counter() - start
            return "", time.perf_counter() - start

        start = time.perf_counter()
        if clients == 1:
            done = [attempt(text) for text in texts]
        else:
            with ThreadPoolExecutor(clients) as pool:
                done = list(pool.map(attempt, texts))
        return {
            "seconds": time.perf_counter() - start,
            "took": [took for _, took in done],
            "acknowledged": [t for t, (error, _) in zip(texts, done, strict=True) if not error],
            "errors": [error for error, _ in done if error],
        }

    def mixed(
        self, calls: list[tuple[bool, str]], clients: int, most_seconds: float
    ) -> dict[str, Any]:
        """Adds (True) and searches from so many threads, each of which makes its next call after
        the last answer; those that are not begun within `most_seconds` are left out."""
        ends_at = time.perf_counter() + most_seconds

        def attempt(call: tuple[bool, str]) -> tuple[bool, str, str, float] | None:
            is_add, text = call
            start = time.perf_counter()
            if start > ends_at:
                return None
            try:
                if is_add:
                    self.system.add(text, f"add {text}")
                else:
                    self.system.search(text)
            except Exception as exc:  # noqa: BLE001 (whatever a peer raises is its answer)
                return is_add, text, f"{type(exc).__name__}: {exc}", time.perf_counter() - start
            return is_add, text, "", time.perf_counter() - start

        start, used = time.perf_counter(), time.process_time()
        if clients == 1:
            every = list(map(attempt, calls))
        else:
            with ThreadPoolExecutor(clients) as pool:
                every = list(pool.map(attempt, calls))
        done = [one for one in every if one is not None]
        return {
            "seconds": time.perf_counter() - start,
            "cpu": time.process_time() - used,
            "adds": [took for is_add, _, error, took in done if is_add and not error],
            "searches": [took for is_add, _, error, took in done if not is_add and not error],
            "acknowledged": [text for is_add, text, error, _ in done if is_add and not error],
            "errors": [error for _, _, error, _ in done if error],
        }

    def texts(self) -> dict[str, Any]:
        """List everything."""
        return {"texts": self.system.texts()}

    def embedded(self, texts: list[str], questions: list[str]) -> dict[str, Any]:
        """What it embeds besides these."""
        return {"texts": self.system.embedded(texts, questions)}

    def memory(self) -> dict[str, Any]:
        """Resident memory; and the texts of its own that it got no vectors for."""
        lacking = getattr(self.system, "lacking", 0)
        return {"resident": resident_bytes(), "lacking": lacking}

    def close(self) -> dict[str, Any]:
        """Close."""
        self.system.close()
        return {}

    @staticmethod
    def _timed(action: Callable[[str], list[str]], argument: str) -> tuple[list[str], float]:
        start = time.perf_counter()
        found = action(argument)
        return found, time.perf_counter() - start


def main() -> None:
    """Answer until stdin ends. Whatever prints in this process goes to stderr."""
    options = json.loads(sys.argv[2])
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    worker = Worker(SYSTEMS[sys.argv[1]](embed_by(options), options))
    for line in sys.stdin:
        call = json.loads(line)
        op = call.pop("op")
        try:
            if op == "add_each":  # an answer after each one, for whoever is going to kill this
                for text in call["texts"]:
                    worker.system.add(text, f"add {text}")
                    answers.write(json.dumps({"done": text}) + "\n")
                    answers.flush()
                answer: dict[str, Any] = {"done": None}
            else:
                answer = getattr(worker, op)(**call)
        except Exception as exc:  # noqa: BLE001 (told to the other side)
            answer = {"error": f"{type(exc).__name__}: {exc}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()

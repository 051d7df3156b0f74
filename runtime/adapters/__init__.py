"""Memory for agent frameworks: a store for LangGraph, a retriever and a chat history for LangChain.

    from reverie.adapters.langgraph import ReverieStore
    from reverie.adapters.langchain import ReverieChatMessageHistory, ReverieRetriever

Each needs the extra of its framework. Nothing here is imported by `import reverie`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b

from reverie.memory_graph.errors import ConfigError

_LETTERS = str.maketrans("0123456789", "ghijklmnop")


def digest(text: str) -> str:
    """Return 32 small letters that stand for a text; without digits, so that no mask takes them for
    a number."""
    return blake2b(text.encode(), digest_size=16).hexdigest().translate(_LETTERS)


@contextmanager
def needs_extra(extra: str) -> Iterator[None]:
    """Turn a missing library into an error that names the extra.

    Raises:
        ConfigError: the extra is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as exc:
        if str(exc.name).startswith("reverie"):
            raise
        msg = f"this adapter needs the extra {extra!r}: pip install 'reverie[{extra}]'"
        raise ConfigError(msg, missing=str(exc.name)).because(exc) from exc


__all__ = ["digest", "needs_extra"]

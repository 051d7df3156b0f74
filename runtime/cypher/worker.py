"""The process that holds one user's graph in the engine: it loads it, gives up its rights, answers.

It is a program of its own, which imports nothing of reverie but what stands in this file, so that
it is small and quick to start. What guards against a query, beside the check of its text:

- each process holds the graph of one user, in memory, and is thrown away when the graph changes;
- after loading it can open no file, write to none, and take no more memory than it is allowed;
- every query runs in a transaction that is read-only, which the engine enforces;
- the engine's own time limit is not reliable (it is looked at between batches only), so a timer of
  the kernel ends the process soon after.
"""

from __future__ import annotations

import csv
import datetime as dt
import os
import resource
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from ladybug import QueryResult

GRACE_S = 0.5  # from the engine's own end of time to the end of the process
POOL_BYTES = 128 << 20
MAX_DATABASE_BYTES = 1 << 30  # of addresses, mostly never used
SPARE_BYTES = 256 << 20  # of memory beside the pool
MAX_RESULT_BYTES = 8 << 20
MAX_ERROR = 500
_NULL, _BETWEEN = "\x01", "\x1f"  # in the files that it loads
_OUT_OF_MEMORY = ("bad_alloc", "buffer manager", "memory")


def receive(sock: socket.socket) -> Any:
    """Return the next message; raises EOFError, OSError."""
    return msgspec.msgpack.decode(_exactly(sock, int.from_bytes(_exactly(sock, 4), "big")))


def _exactly(sock: socket.socket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        part = sock.recv(min(size - len(parts), 1 << 20))
        if not part:
            raise EOFError
        parts += part
    return bytes(parts)


def send(sock: socket.socket, message: Any) -> None:
    """Send a message, four bytes of length and MessagePack; raises OSError."""
    data = msgspec.msgpack.encode(message)
    sock.sendall(len(data).to_bytes(4, "big") + data)


class Engine:
    """One graph in the engine."""

    def __init__(self, nodes: dict[str, dict[str, str]], edges: dict[str, dict[str, str]]) -> None:
        import ladybug  # not at the top: the other end imports `receive` and `send` from here

        self.nodes, self.edges = nodes, edges
        self._database = ladybug.Database(
            ":memory:",
            buffer_pool_size=POOL_BYTES,
            max_num_threads=1,
            max_db_size=MAX_DATABASE_BYTES,
            auto_checkpoint=False,
        )
        self._connection = ladybug.Connection(self._database, num_threads=1)
        self._label: dict[str, str] = {}

    def run(self, text: str, parameters: dict[str, Any] | None = None) -> QueryResult:
        """Run one statement."""
        result = self._connection.execute(text, parameters or {})
        if isinstance(result, list):
            msg = "one statement a query"
            raise RuntimeError(msg)  # noqa: TRY004 (as the engine's own errors)
        return result

    def declare(self, ends: dict[str, list[list[str]]]) -> None:
        """Make the tables."""
        for label, fields in self.nodes.items():
            columns = ", ".join(f"`{name}` {kind}" for name, kind in fields.items())
            self.run(f"CREATE NODE TABLE `{label}`({columns}, PRIMARY KEY (`id`))")
        for kind, fields in self.edges.items():
            tails, heads = ends[kind]
            pairs = [f"FROM `{tail}` TO `{head}`" for tail in tails for head in heads]
            own = [f"`{name}` {of}" for name, of in fields.items()]
            self.run(f"CREATE REL TABLE `{kind}`({', '.join([*pairs, *own])})")

    def load_nodes(self, rows: list[list[Any]]) -> None:
        """Add nodes, given as label and values."""
        by_label: dict[str, list[list[Any]]] = {}
        for label, values in rows:
            self._label[values[0]] = label
            by_label.setdefault(label, []).append(values)
        for label, of_label in by_label.items():
            self._copy(label, list(self.nodes[label].values()), of_label, "")

    def load_edges(self, rows: list[list[Any]]) -> None:
        """Add edges, given as kind, id of the tail, id of the head, and values."""
        by_kind: dict[tuple[str, str, str], list[list[Any]]] = {}
        for kind, tail, head, values in rows:
            key = (kind, self._label[tail], self._label[head])
            by_kind.setdefault(key, []).append([tail, head, *values])
        for (kind, tail, head), of_kind in by_kind.items():
            types = ["STRING", "STRING", *self.edges[kind].values()]
            self._copy(kind, types, of_kind, f" (from='{tail}', to='{head}')")

    def _copy(self, table: str, types: list[str], rows: list[list[Any]], ends: str) -> None:
        """Load rows through a file that is only in memory: 12 times as fast as by parameters."""
        fd = os.memfd_create("rows")
        try:
            with os.fdopen(os.dup(fd), "w", encoding="utf-8", newline="") as file:
                csv.writer(file, quoting=csv.QUOTE_ALL).writerows(
                    [_cell(value) for value in row] for row in rows
                )
            columns = ", ".join(_column(i, kind) for i, kind in enumerate(types))
            source = (
                f"LOAD FROM '/proc/self/fd/{fd}' (file_format='csv', header=false, parallel=false,"
                " auto_detect=false, delim=',', quote='\"', escape='\"')"
            )
            typed = ", ".join(f"column{i} STRING" for i in range(len(types)))
            source = source.replace("LOAD FROM", f"LOAD WITH HEADERS ({typed}) FROM")
            self.run(f"COPY `{table}` FROM ({source} RETURN {columns}){ends}")
        finally:
            os.close(fd)

    def give_up_rights(self) -> None:
        """Open no file and write to none from now on; take no more memory than is allowed."""
        self._label.clear()
        size = Path("/proc/self/statm").read_text("ascii").split()[0]
        held = int(size) * resource.getpagesize()
        for what, most in (
            (resource.RLIMIT_AS, held + SPARE_BYTES),
            (resource.RLIMIT_NOFILE, 0),
            (resource.RLIMIT_FSIZE, 0),
            (resource.RLIMIT_CORE, 0),
        ):
            resource.setrlimit(what, (most, most))

    def answer(
        self, text: str, parameters: dict[str, Any], limit: int, timeout_s: float
    ) -> dict[str, Any]:
        """Return the answer to a query, or what went wrong."""
        signal.setitimer(signal.ITIMER_REAL, timeout_s + GRACE_S)
        try:
            self._connection.set_query_timeout(max(1, int(timeout_s * 1000)))
            self.run("BEGIN TRANSACTION READ ONLY")
            result = self.run(text, parameters)
            names = result.get_column_names()
            rows, is_cut = self._rows(result, limit)
            result.close()
        except Exception as exc:  # noqa: BLE001 (whatever the engine raises is the answer)
            return {"error": _kind(exc), "message": str(exc)[:MAX_ERROR]}
        else:
            return {"columns": names, "rows": rows, "truncated": is_cut}
        finally:
            with suppress(RuntimeError):  # a failure has ended it already
                self.run("ROLLBACK")
            signal.setitimer(signal.ITIMER_REAL, 0)

    def _rows(self, result: QueryResult, limit: int) -> tuple[list[msgspec.Raw], bool]:
        rows: list[msgspec.Raw] = []
        size = 0
        while result.has_next():
            row = [self._plain(value) for value in result.get_next()]
            data = msgspec.msgpack.encode(row)
            size += len(data)
            if len(rows) == limit or size > MAX_RESULT_BYTES:
                return rows, True
            rows.append(msgspec.Raw(data))
        return rows, False

    def _plain(self, value: Any) -> Any:
        """Return a value of the engine as plain data; numbers of its own are left out."""
        match value:
            case None | bool() | float() | str():
                return value
            case int():
                return value if -(2**63) <= value < 2**63 else str(value)
            case list() | tuple():
                return [self._plain(one) for one in value]
            case {"_NODES": nodes, "_RELS": rels}:
                return {"nodes": self._plain(nodes), "rels": self._plain(rels)}
            case {"_LABEL": label}:
                fields = self.nodes.get(label) or self.edges.get(label) or {}
                return {"_label": label} | {k: self._plain(value.get(k)) for k in fields}
            case dict():
                return {str(k): self._plain(v) for k, v in value.items()}
            case dt.datetime() | dt.date():
                return value.isoformat()
            case dt.timedelta():
                return value.total_seconds()
            case _:
                return str(value)


def _cell(value: Any) -> Any:
    match value:
        case None:
            return _NULL
        case bool():
            return "true" if value else "false"
        case float():
            return repr(value)
        case list():
            return _BETWEEN.join(value) if value else _NULL
        case str() if value == _NULL:
            return ""
        case _:
            return value


def _column(number: int, kind: str) -> str:
    cell = f"NULLIF(column{number}, '{_NULL}')"
    if kind == "STRING":
        return cell
    if kind == "STRING[]":
        return f"COALESCE(string_split({cell}, '{_BETWEEN}'), CAST([] AS STRING[]))"
    return f"CAST({cell} AS {kind})"


def _kind(exc: Exception) -> str:
    said = str(exc).lower()
    if isinstance(exc, MemoryError) or any(words in said for words in _OUT_OF_MEMORY):
        return "memory"
    return "time" if said.startswith("interrupted") else "query"


def serve(sock: socket.socket) -> None:
    """Load what comes first, then answer until the other end is closed."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # it ends the process, also inside the engine
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN if number == signal.SIGINT else signal.SIG_DFL)
    schema = receive(sock)
    engine = Engine(schema["nodes"], schema["edges"])
    engine.declare(schema["ends"])
    later: list[list[Any]] = []
    while (page := receive(sock)) is not None:
        engine.load_nodes(page["nodes"])
        later += page["edges"]  # their heads may be on a page to come
    engine.load_edges(later)
    later.clear()
    engine.give_up_rights()
    send(sock, {"ready": True})
    while True:
        asked = receive(sock)
        answer = engine.answer(
            asked["text"], asked["parameters"], asked["limit"], asked["timeout_s"]
        )
        send(sock, answer)


def main() -> None:
    """Serve on the socket whose number is the first argument."""
    with suppress(EOFError, ConnectionError), socket.socket(fileno=int(sys.argv[1])) as sock:
        serve(sock)


if __name__ == "__main__":
    main()

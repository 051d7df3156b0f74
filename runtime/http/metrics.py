"""Figures for Prometheus, and the log of requests. Neither names users, worlds or texts."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from reverie.models.usage import UsageRow
    from reverie.results import RuntimeStats
    from reverie.runtime import Runtime

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
KEPT_S = 5.0  # counting all users costs; a scrape within that time gets the counts before
_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60)

log = structlog.get_logger(__name__)


class Note:
    """What is known of a request when it ends."""

    __slots__ = ("code", "key", "operation", "received", "sent", "status")

    def __init__(self) -> None:
        self.operation = "none"
        self.code = ""
        self.key = "-"
        self.status = 500
        self.received = 0
        self.sent = 0


class Metrics:
    """The figures of one server, in a registry of its own."""

    def __init__(self, runtime: Runtime, *, access_log: bool) -> None:
        self.registry = CollectorRegistry()
        self._access_log = access_log
        self._counts = _Counts(runtime)
        self.registry.register(self._counts)
        self._requests = Counter(
            "reverie_http_requests",
            "Requests answered",
            ["operation", "status"],
            registry=self.registry,
        )
        self._errors = Counter(
            "reverie_http_errors", "Errors answered", ["code"], registry=self.registry
        )
        self._seconds = Histogram(
            "reverie_http_request_seconds",
            "Time to the end of an answer",
            ["operation"],
            buckets=_BUCKETS_S,
            registry=self.registry,
        )
        self.in_flight = Gauge(
            "reverie_http_in_flight", "Requests under way", registry=self.registry
        )

    def note(self, note: Note, method: str, seconds: float) -> None:
        """Count a request that has ended, and log it."""
        self._requests.labels(note.operation, str(note.status)).inc()
        self._seconds.labels(note.operation).observe(seconds)
        if note.code:
            self._errors.labels(note.code).inc()
        if self._access_log:
            log.info(
                "request",
                method=method,
                operation=note.operation,
                status=note.status,
                code=note.code or None,
                ms=round(seconds * 1000, 1),
                received_bytes=note.received,
                sent_bytes=note.sent,
                key=note.key,
            )

    def text(self) -> bytes:
        """Return all figures as Prometheus reads them. Blocks: it asks the runtime."""
        self._counts.look()
        return generate_latest(self.registry)


class _Counts(Collector):
    """What the runtime holds, as of the last look."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._looked_at = -KEPT_S
        self._stats: RuntimeStats | None = None
        self._usage: list[UsageRow] = []

    def look(self) -> None:
        """Ask the runtime, unless that was just done."""
        if time.monotonic() - self._looked_at < KEPT_S:
            return
        self._stats, self._usage = self._runtime.stats(), self._runtime.usage()
        self._looked_at = time.monotonic()

    def describe(self) -> Iterator[Metric]:
        """Nothing is asked of the runtime while it is registered."""
        yield from ()

    def collect(self) -> Iterator[Metric]:
        """Yield the counts."""
        if self._stats is None:
            return
        stats = self._stats
        counts = {
            "users": (stats.users, "Users on disk"),
            "worlds": (len(stats.worlds), "Worlds"),
            "pending_turns": (stats.pending, "Turns that wait for extraction"),
            "quarantined_turns": (stats.quarantined, "Turns in quarantine"),
            "resident_users": (sum(s.resident_users for s in stats.shards), "Users in memory"),
            "resident_bytes": (
                sum(s.resident_bytes for s in stats.shards),
                "Estimated bytes of the users in memory",
            ),
        }
        for name, (value, what) in counts.items():
            yield GaugeMetricFamily(f"reverie_{name}", what, value=value)
        ingest = GaugeMetricFamily(
            "reverie_ingested", "What extraction did since the start", labels=["what"]
        )
        for field in stats.ingest.__struct_fields__:
            ingest.add_metric([field], getattr(stats.ingest, field))
        yield ingest
        tokens = GaugeMetricFamily(
            "reverie_model_tokens", "Tokens of the language model", labels=["purpose", "what"]
        )
        calls = GaugeMetricFamily(
            "reverie_model_calls", "Calls of the language model", labels=["purpose"]
        )
        sums: dict[str, tuple[int, int, int]] = {}
        for row in self._usage:
            used, (a, b, c) = row.usage, sums.get(row.purpose, (0, 0, 0))
            sums[row.purpose] = (
                a + used.calls,
                b + used.prompt_tokens,
                c + used.completion_tokens,
            )
        for purpose, (made, read, written) in sorted(sums.items()):
            calls.add_metric([purpose], made)
            tokens.add_metric([purpose, "read"], read)
            tokens.add_metric([purpose, "written"], written)
        yield tokens
        yield calls

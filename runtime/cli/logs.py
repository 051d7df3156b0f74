"""Logging is configured here and nowhere else: programs that use the library do it their way."""

from __future__ import annotations

import logging
import sys
from typing import Any

import structlog


def configure_logs(*, verbose: bool, as_json: bool) -> None:
    """Send log lines to stderr: warnings, and with `verbose` all of them.

    Values of local variables are never shown with an exception: they hold people's memories.
    """
    finish: list[Any]
    if as_json:
        finish = [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    else:
        colors = sys.stderr.isatty()
        finish = [
            structlog.dev.ConsoleRenderer(
                colors=colors, exception_formatter=structlog.dev.plain_traceback
            )
        ]
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *finish,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(
            logging.DEBUG if verbose else logging.WARNING
        ),
        # looked up at each line: a stream that was replaced meanwhile may be closed
        logger_factory=lambda *_names: structlog.PrintLogger(sys.stderr),
        cache_logger_on_first_use=False,
    )

"""Logs that stay off standard output."""

from __future__ import annotations

import sys

import structlog


def log_to_stderr() -> None:
    """Keep logs off standard output, which belongs to the program, unless it has configured
    structlog itself; without local variables, which are people's texts."""
    if structlog.is_configured():
        return
    renderer = structlog.dev.ConsoleRenderer(
        colors=False, exception_formatter=structlog.dev.plain_traceback
    )
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            renderer,
        ],
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )

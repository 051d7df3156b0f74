"""`reverie serve`: the memory over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reverie.cli import output
from reverie.cli.opening import open_runtime
from reverie.cli.options import WriterOptions, with_options

PORT = 8642


def serve(
    options: WriterOptions,
    *,
    host: Annotated[
        str, typer.Option(help="Address to listen on; without keys only one of this machine.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes one that is free.")] = PORT,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            help="A name that requests may use for this server; may be repeated.",
            show_default=False,
        ),
    ] = None,
    rate: Annotated[
        float, typer.Option(min=0, help="Requests a second of one key; 0 is no limit.")
    ] = 1000.0,
    threads: Annotated[int, typer.Option(min=1, help="Threads that carry out calls.")] = 16,
    backups: Annotated[
        Path | None,
        typer.Option(
            help="A folder for backups that are asked for over HTTP; without it, none are made.",
            show_default=False,
        ),
    ] = None,
    access_log: Annotated[
        bool,
        typer.Option(
            "--access-log/--no-access-log", help="Log each request, without ids or texts."
        ),
    ] = True,
) -> None:
    """Serve every operation over HTTP, until SIGTERM or Ctrl-C."""
    from reverie.http import EXTRA
    from reverie.memory_graph.errors import ConfigError

    try:
        from reverie.http import serving
        from reverie.http.keys import KeyFile
        from reverie.http.settings import HttpSettings, require_backups, require_safe
    except ModuleNotFoundError as exc:
        raise ConfigError(EXTRA, missing=str(exc.name)).because(exc) from exc
    settings = HttpSettings(
        host=host,
        port=port,
        allowed_hosts=tuple(allow_host or ()),
        rate_per_s=rate or None,
        threads=threads,
        access_log=access_log,
        backups=backups,
    )
    require_backups(settings, options.data)
    has_keys = KeyFile(options.data).exists
    require_safe(settings, has_keys=has_keys)  # before a folder is made

    def listening(at: int) -> None:
        shown = f"[{host}]" if ":" in host else host
        address = f"http://{shown}:{at}"
        if options.json:
            output.emit({"listening": address, "needs_keys": has_keys})
        else:
            output.note(f"listening on {address}" + ("; a key is needed" if has_keys else ""))

    if access_log and not options.verbose:
        from reverie.cli.logs import configure_logs

        configure_logs(verbose=True, as_json=options.log_json)
    runtime = open_runtime(options, create=True)
    raise typer.Exit(serving.serve(runtime, settings, listening=listening))


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command("serve")(with_options(serve))

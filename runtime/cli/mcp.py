"""`reverie mcp`: the memory of a user as tools for clients of the Model Context Protocol."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Literal

import typer

from reverie.cli.opening import open_runtime
from reverie.cli.options import WriterOptions, flags_given, with_options

_PORT = 8643
_OF_HTTP = ("host", "port", "allow_host", "allow_origin", "rate")


def mcp(  # noqa: PLR0913 (options)
    options: WriterOptions,
    context: typer.Context,
    *,
    http: Annotated[
        bool, typer.Option("--http", help="Serve streamable HTTP at /mcp; stdio by default.")
    ] = False,
    host: Annotated[
        str, typer.Option(help="With --http: where to listen; without keys, on this machine only.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65_535, help="With --http: the port; 0: any that is free.")
    ] = _PORT,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            help="With --http: another name that the Host header may hold.", show_default=False
        ),
    ] = None,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(
            help="With --http: a web page's origin that may call, as http://localhost:6274.",
            show_default=False,
        ),
    ] = None,
    rate: Annotated[
        float, typer.Option(min=0, help="With --http: requests a second of one key; 0: any.")
    ] = 1000.0,
    role: Annotated[
        Literal["read", "write", "admin"],
        typer.Option(help="What a client may do: admin can also erase the whole user."),
    ] = "write",
    tools: Annotated[
        str,
        typer.Option(help="Sets of tools, with commas: reverie, server-memory, openmemory."),
    ] = "reverie,server-memory",
    only: Annotated[
        list[str] | None,
        typer.Option(help="Only this tool, by name; may be given again.", show_default=False),
    ] = None,
    any_user: Annotated[
        bool,
        typer.Option(
            "--any-user", help="A call may name any user of the world, instead of --user."
        ),
    ] = False,
    characters: Annotated[
        bool,
        typer.Option("--characters", help="The world is one of characters: with relationships."),
    ] = False,
    answer_tokens: Annotated[
        int, typer.Option(help="The most tokens that an answer may have, about.")
    ] = 4_000,
) -> None:
    """Offer a user's memory as tools to clients of the Model Context Protocol.

    Over stdio, nothing but the protocol is written to standard output; it ends when standard input
    does. Over HTTP, a key of `reverie keys` is needed as soon as there is one.
    """
    if not http and (names := flags_given(context, _OF_HTTP)):
        shown = ", ".join(f"--{name.replace('_', '-')}" for name in names)
        msg = f"{shown}: only with --http; over stdio there is nothing to listen on"
        raise typer.BadParameter(msg)
    import asyncio  # not for every command

    from reverie.mcp import needs_extra

    with needs_extra():
        from reverie.mcp import http as over_http, stdio
    from reverie.http.keys import KeyFile
    from reverie.http.settings import HttpSettings, require_safe
    from reverie.runtime import Runtime
    from reverie.stopping import TERMINATED
    from reverie.tools import Tools

    def bound(rt: Runtime) -> Tools:
        return Tools(
            rt,
            options.world_name,
            options.user_id,
            role=role,
            others=any_user,
            allowed=only,
            families=[name.strip() for name in tools.split(",")],  # type: ignore[misc]  # checked
            characters=characters,
            answer_tokens=answer_tokens,
        )

    if http:
        settings = HttpSettings(
            host=host,
            port=port,
            allowed_hosts=tuple(allow_host or ()),
            rate_per_s=rate or None,
        )
        require_safe(settings, has_keys=KeyFile(options.data).exists)  # before a folder is made
        with open_runtime(options, create=True) as rt:
            server = over_http.Server(bound(rt), settings, allow_origin or ())
            came = asyncio.run(server.serve(drain_s=rt.config.drain_s))
            rt.close(within_s=rt.config.drain_s / 2 if came else None)
        raise typer.Exit(TERMINATED if came else 0)
    with stdio.own_stdout() as out, open_runtime(options, create=True) as rt:
        came = stdio.serve(bound(rt), out, drain_s=rt.config.drain_s)
        rt.close(within_s=rt.config.drain_s / 2 if came else None)
    if came:
        sys.stderr.flush()
        os._exit(TERMINATED)  # the thread that reads standard input may hang in it


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    app.command()(with_options(mcp))

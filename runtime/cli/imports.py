"""`reverie import`: what other programs have kept."""

from __future__ import annotations

import typer

from reverie.cli import import_chats, import_mcp, import_mem0

app = typer.Typer(no_args_is_help=True, help="Take in what other programs have kept.")
for module in (import_chats, import_mcp, import_mem0):
    module.register(app)

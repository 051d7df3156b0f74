"""`reverie query` and `reverie graph export`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reverie.cli import output
from reverie.cli.opening import open_runtime
from reverie.cli.options import UserOptions, with_options
from reverie.memory_graph.errors import InvalidValueError

if TYPE_CHECKING:
    from reverie.cypher import QueryResult

CELL = 60  # characters of a value in a table

graph_app = typer.Typer(no_args_is_help=True, help="Take the graph of a user elsewhere.")


def query(
    options: UserOptions,
    cypher: Annotated[
        str, typer.Argument(metavar="CYPHER", help="It can only read.", show_default=False)
    ],
    *,
    params: Annotated[
        str | None,
        typer.Option(help="Values of $parameters, as a JSON object.", show_default=False),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", help="How many rows.")] = 1000,
    timeout_s: Annotated[float, typer.Option(help="Seconds that it may take.")] = 5.0,
    include_archived: Annotated[
        bool, typer.Option("--include-archived", help="Archived memories, too.")
    ] = False,
    include_retired: Annotated[
        bool, typer.Option("--include-retired", help="What is no longer believed, too.")
    ] = False,
) -> None:
    """Ask the graph of a user in Cypher; the schema is in docs/queries.md."""
    values = _mapping(params)
    with open_runtime(options, background=False) as rt:
        found = rt.user(options.user_id, options.world_name).query(
            cypher,
            values,
            limit=limit,
            timeout_s=timeout_s,
            include_archived=include_archived,
            include_retired=include_retired,
        )
    if options.json:
        output.emit(found)
        return
    output.console().print(_table(found))
    rows = f"{len(found)} row{'' if len(found) == 1 else 's'}"
    output.note(rows + ("; there are more, see --limit" if found.truncated else ""))


def _mapping(given: str | None) -> dict[str, Any]:
    try:
        values = {} if given is None else json.loads(given)
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        msg = "--params must be a JSON object"
        raise InvalidValueError(msg, what="params")
    return values


def _table(found: QueryResult) -> object:
    made = output.table(*(output.printable(name) for name in found.columns))
    for row in found.rows:
        made.add_row(*(output.plain(_cell(value)) for value in row))
    return made


def _cell(value: object) -> str:
    if isinstance(value, dict):
        value = {name: one for name, one in value.items() if one not in (None, [])}
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= CELL else text[: CELL - 3] + "..."


def export(
    options: UserOptions,
    to: Annotated[
        str,
        typer.Argument(
            metavar="TO",
            help="A file that ends in .graphml or .json; or one of these words, for stdout.",
            show_default=False,
        ),
    ],
    *,
    include_archived: Annotated[
        bool, typer.Option("--include-archived", help="Archived memories, too.")
    ] = False,
    include_retired: Annotated[
        bool, typer.Option("--include-retired", help="What is no longer believed, too.")
    ] = False,
) -> None:
    """Write the graph of a user as GraphML or node-link JSON, for Gephi and NetworkX."""
    from reverie.graphs import FORMATS

    with open_runtime(options, background=False) as rt:
        text = rt.user(options.user_id, options.world_name).export_graph(
            to, include_archived=include_archived, include_retired=include_retired
        )
    size = len(text.encode())
    if to in FORMATS and not options.json:
        sys.stdout.write(text)
    elif options.json:
        told = {"text": text} if to in FORMATS else {"path": str(Path(to).absolute())}
        output.emit({**told, "bytes": size})
    else:
        output.note(f"{to}: {size:,} bytes")


def register(program: typer.Typer) -> None:
    """Add the commands."""
    program.command("query")(with_options(query))
    graph_app.command("export")(with_options(export))
    program.add_typer(graph_app, name="graph")

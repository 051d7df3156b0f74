"""`reverie search` and `reverie context`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from reverie.cli import output
from reverie.cli.opening import open_runtime
from reverie.cli.options import UserOptions, with_options
from reverie.memory_graph.errors import FilterError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reverie.memory_graph.views import Hit
    from reverie.runtime import Runtime
    from reverie.user import User

Question: TypeAlias = Annotated[
    str, typer.Argument(metavar="QUESTION", help="In any language.", show_default=False)
]


@dataclass(frozen=True, kw_only=True)
class LookOptions(UserOptions):
    """What to look at, and from when."""

    filters: Annotated[
        str | None,
        typer.Option(help='A filter as JSON, such as \'{"kind": "fact"}\'.', show_default=False),
    ] = None
    types: Annotated[
        str | None,
        typer.Option(
            help="Some of memory, message, summary, with commas between them.", show_default=False
        ),
    ] = None
    as_of: Annotated[
        str | None,
        typer.Option(
            help="As it was believed then: ISO 8601 (UTC) or seconds.", show_default=False
        ),
    ] = None
    valid_at: Annotated[
        str | None,
        typer.Option(
            help="What holds (held) then in the world: ISO 8601 (UTC) or seconds.",
            show_default=False,
        ),
    ] = None
    include_archived: Annotated[
        bool, typer.Option("--include-archived", help="Archived memories, too.")
    ] = False
    include_retired: Annotated[
        bool, typer.Option("--include-retired", help="Superseded and expired memories, too.")
    ] = False

    def look(self) -> dict[str, Any]:
        """Return the arguments of `User.search` and `User.list` that these options stand for.

        Raises:
            FilterError: the filter is no JSON object.
        """
        return {
            "filters": None if self.filters is None else _filter(self.filters),
            "types": None if self.types is None else [t.strip() for t in self.types.split(",")],
            "as_of": self.as_of,
            "valid_at": self.valid_at,
            "include_archived": self.include_archived,
            "include_retired": self.include_retired,
        }


def search(
    options: LookOptions,
    question: Question,
    *,
    limit: Annotated[int, typer.Option("--limit", "-n", help="How many hits.")] = 10,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show the parts of each score, too.")
    ] = False,
) -> None:
    """Ask a memory; the best hits come first, each with its reasons."""
    look = options.look()
    with open_runtime(options, background=False) as rt:
        user = rt.user(options.user_id, options.world_name)
        hits = user.search(question, limit=limit, **look)
        if options.json:
            world, name = user.key
            output.emit({"world": world, "user": name, "question": question, "hits": hits})
        elif hits:
            output.console().print(hit_table(hits, explain=explain))
        else:
            hint_nothing(rt, user)


def context(
    options: LookOptions,
    question: Question,
    *,
    budget_tokens: Annotated[
        int, typer.Option("--budget-tokens", "-b", help="Of the whole block.")
    ] = 800,
) -> None:
    """Print the block of text that a prompt about a question should hold, and nothing else."""
    look = options.look()
    with open_runtime(options, background=False) as rt:
        user = rt.user(options.user_id, options.world_name)
        found = user.context(question, budget_tokens=budget_tokens, **look)
        if options.json:
            output.emit(found)
        elif found.text:
            typer.echo(output.printable(found.text) if sys.stdout.isatty() else found.text)
        else:
            hint_nothing(rt, user)


def _filter(text: str) -> dict[str, Any]:
    import msgspec

    try:
        value = msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError) as exc:
        msg = f"--filters is no JSON: {exc}"
        raise FilterError(msg).because(exc) from None
    if not isinstance(value, dict):
        msg = f"--filters must be a JSON object, not a {type(value).__name__}"
        raise FilterError(msg)
    return value


def hint_nothing(rt: Runtime, user: User) -> None:
    """Say that nothing was found; when the user is not known at all, say who is."""
    if user.stats().seq:
        output.note("nothing found")
        return
    known = [f"--world {world} --user {name}" for world in rt.worlds() for name in rt.users(world)]
    more = f" and {len(known) - 10} more" if len(known) > 10 else ""  # noqa: PLR2004
    there = f"; there is: {', '.join(known[:10])}{more}" if known else ""
    output.note(f"nobody is known as {user.key.user_id!r} in world {user.key.world!r}{there}")


def hit_table(hits: Sequence[Hit], *, explain: bool = False) -> Any:
    """Return hits as a table."""
    made = output.table(">score", "kind", "text", "when", "reasons")
    for hit in hits:
        lines = list(hit.reasons)
        if explain:
            parts = sorted(hit.parts.items(), key=lambda part: -abs(part[1]))
            lines.append(" + ".join(f"{name} {value:.2f}" for name, value in parts))
        made.add_row(
            f"{hit.score:.2f}",
            hit.kind or hit.type,
            output.plain(said(hit)),
            output.moment(hit.at)[:10],
            output.plain("\n".join(lines), "dim"),
        )
    return made


def said(hit: Hit) -> str:
    """Return the text of a hit, with what a reader must know of its state."""
    who = f"{hit.speaker}: " if hit.type == "message" and hit.speaker else ""
    ended = f" [{hit.status}]" if hit.status in {"superseded", "expired", "archived"} else ""
    return f"{who}{hit.text}{ended}"


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command("search")(with_options(search))
    app.command("context")(with_options(context))

"""`reverie search` and `reverie context`."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from reverie.cli import output
from reverie.cli.opening import open_runtime
from reverie.cli.options import UserOptions, with_options
from reverie.memory_graph.errors import FilterError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from reverie.memory_graph.views import Hit, Item
    from reverie.memory_graph.why import Explanation
    from reverie.runtime import Runtime
    from reverie.user import User

NUMBER_WIDTH = 5  # of "-0.12"
TEXT_WIDTH = 24

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
        bool, typer.Option("--explain", help="Show what each signal adds to each score.")
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
            show_wide(explained(hits)) if explain else output.console().print(hit_table(hits))
        else:
            hint_nothing(rt, user)


def why(
    options: LookOptions,
    question: Question,
    item_id: Annotated[
        str,
        typer.Argument(
            metavar="ID",
            help="Of a memory, turn or summary, as `show` and `search --json` give it.",
            show_default=False,
        ),
    ],
    *,
    limit: Annotated[int, typer.Option("--limit", "-n", help="How many hits are asked for.")] = 10,
) -> None:
    """Say why a memory comes up for a question, or why not."""
    look = options.look()
    with open_runtime(options, background=False) as rt:
        user = rt.user(options.user_id, options.world_name)
        told = user.why(question, item_id, limit=limit, **look)
        if options.json:
            output.emit(told)
            return
        if told.verdict == "unknown":
            hint_unknown(rt, user)
        show_explanation(told)


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
    hint_unknown(rt, user)


def hint_unknown(rt: Runtime, user: User) -> None:
    """Say who is known, if the user is not."""
    if user.stats().seq:
        return
    known = [f"--world {world} --user {name}" for world in rt.worlds() for name in rt.users(world)]
    more = f" and {len(known) - 10} more" if len(known) > 10 else ""  # noqa: PLR2004
    there = f"; there is: {', '.join(known[:10])}{more}" if known else ""
    output.note(f"nobody is known as {user.key.user_id!r} in world {user.key.world!r}{there}")


def hit_table(hits: Sequence[Hit]) -> Any:
    """Return hits as a table."""
    made = output.table(">score", "kind", "text", "when", "reasons")
    for hit in hits:
        made.add_row(
            f"{hit.score:.2f}",
            hit.kind or hit.type,
            output.plain(said(hit)),
            output.moment(hit.at)[:10],
            output.plain("\n".join(hit.reasons), "dim"),
        )
    return made


def explained(hits: Sequence[Hit]) -> Any:
    """Return a table of what each signal adds to each score, of those that add to any."""
    from reverie.memory_graph.signals import WEIGHTS

    signals = [name for name in WEIGHTS if any(hit.parts.get(name) for hit in hits)]
    signals += sorted({name for hit in hits for name in hit.parts if hit.parts[name]} - {*signals})
    made = output.table("id", *(f">{name}" for name in signals), ">sum", "text", "reasons")
    made.columns[0].no_wrap = True
    for column in made.columns[1 : len(signals) + 2]:
        column.min_width, column.overflow = NUMBER_WIDTH, "fold"
    for column in made.columns[-2:]:
        column.min_width, column.overflow = TEXT_WIDTH, "fold"
    for hit in hits:
        shown = rounded_parts(hit.parts, hit.score)
        made.add_row(
            hit.id,
            *(f"{shown[name]:.2f}" if hit.parts.get(name) else "" for name in signals),
            f"{hit.score:.2f}",
            output.plain(said(hit)),
            output.plain("\n".join(hit.reasons), "dim"),
        )
    return made


def rounded_parts(parts: Mapping[str, float], score: float) -> dict[str, float]:
    """Return the parts of a score in hundredths whose sum is the score in hundredths.

    Each is rounded up or down; up those that lose the most by being rounded down.
    """
    down = {name: math.floor(value * 100) for name, value in parts.items()}
    missing = round(round(score, 2) * 100) - sum(down.values())
    by_loss = sorted(parts, key=lambda name: down[name] - parts[name] * 100)
    up = {*by_loss[:missing]}
    return {name: (value + (name in up)) / 100 for name, value in down.items()}


def show_wide(made: Any) -> None:
    """Print a table at its own width where the screen is narrower: no figure is cut."""
    screen = output.console()
    needed = screen.measure(made).minimum
    screen.print(made, width=max(screen.width, needed), crop=False, soft_wrap=False)


def show_explanation(told: Explanation) -> None:
    """Print why an item came up, or why not."""
    from reverie.memory_graph.signals import WEIGHTS

    screen = output.console()
    if told.item is not None:
        screen.print(output.plain(f"{told.item.id}: {said(told.item)}"), soft_wrap=True)
    screen.print(output.plain(told.verdict.replace("_", " "), "bold"))
    for line in told.reasons:
        screen.print(output.plain(f"- {line}"), soft_wrap=True)
    if told.score is None:
        return
    last = told.ahead[-1] if told.ahead else None
    own = rounded_parts(told.parts, told.score)
    other = {} if last is None else rounded_parts(last.parts, last.score)
    against = () if last is None else (f">{last.id}", ">behind")
    made = output.table("signal", f">{told.item_id}", *against)
    rows = [(name, own.get(name, 0.0), other.get(name, 0.0)) for name in WEIGHTS]
    rows = [row for row in rows if row[1] or row[2]]
    rows.append(("sum", round(told.score, 2), 0.0 if last is None else round(last.score, 2)))
    for name, mine, its in rows:
        figures = (mine,) if last is None else (mine, its, its - mine)
        made.add_row(name, *(f"{figure:.2f}" for figure in figures))
    screen.print(made)
    if told.ahead:
        screen.print(output.plain("Ahead of it", "bold"))
        screen.print(hit_table(told.ahead))


def said(hit: Item) -> str:
    """Return the text of an item, with what a reader must know of its state."""
    who = f"{hit.speaker}: " if hit.type == "message" and hit.speaker else ""
    ended = f" [{hit.status}]" if hit.status in {"superseded", "expired", "archived"} else ""
    return f"{who}{hit.text}{ended}"


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command("search")(with_options(search))
    app.command("why")(with_options(why))
    app.command("context")(with_options(context))

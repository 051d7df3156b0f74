"""`reverie show`: look at what is kept, without asking a question."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from reverie.cli import output
from reverie.cli.opening import open_runtime
from reverie.cli.options import with_options
from reverie.cli.search import LookOptions, hint_nothing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reverie.actors.commands import Neighborhood, Page
    from reverie.memory_graph.views import EntityView, Item
    from reverie.user import User


@dataclass(frozen=True, kw_only=True)
class ShowOptions(LookOptions):
    """As for a search, but only memories are listed unless others are asked for."""

    types: Annotated[
        str | None,
        typer.Option(help="Some of memory, message, summary, with commas between them."),
    ] = "memory"


def show(
    options: ShowOptions,
    item_id: Annotated[
        str | None,
        typer.Argument(
            metavar="ID",
            help="Of a memory or turn, which is shown with its history; all memories without it.",
            show_default=False,
        ),
    ] = None,
    *,
    entities: Annotated[
        bool, typer.Option("--entities", help="Show people, places and things instead.")
    ] = False,
    neighbors: Annotated[
        str | None,
        typer.Option(
            help="Show what is known around a name instead ('user' is the owner).",
            metavar="NAME",
            show_default=False,
        ),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", help="How many.")] = 100,
    cursor: Annotated[
        str | None, typer.Option(help="Go on where the page before ended.", show_default=False)
    ] = None,
) -> None:
    """List memories; or show one with its history, the entities, or what is around a name."""
    if sum((item_id is not None, entities, neighbors is not None)) > 1:
        msg = "an id, --entities and --neighbors exclude each other"
        raise typer.BadParameter(msg)
    look = options.look()
    with open_runtime(options, background=False) as rt:
        user = rt.user(options.user_id, options.world_name)
        if item_id is not None:
            _show_item(user, item_id, as_json=options.json)
        elif entities:
            _show_entities(user.entities(limit=limit), as_json=options.json)
        elif neighbors is not None:
            around = user.neighbors(
                neighbors,
                as_of=options.as_of,
                valid_at=options.valid_at,
                include_retired=options.include_retired,
                limit=limit,
            )
            _show_neighbors(neighbors, around, as_json=options.json)
        else:
            page = user.list(limit=limit, cursor=cursor, **look)
            if not page.total and not options.json:
                hint_nothing(rt, user)
                return
            _show_page(page, as_json=options.json)


def _show_page(page: Page, *, as_json: bool) -> None:
    if as_json:
        output.emit(page)
        return
    output.console().print(_items(page.items))
    shown = f"{len(page.items)} of {page.total}"
    output.note(shown + (f"; go on with --cursor {page.cursor}" if page.cursor else ""))


def _items(items: Sequence[Item]) -> object:
    made = output.table("id", "kind", "text", "when", "until", "status")
    for item in items:
        made.add_row(
            item.id,
            item.kind or item.type,
            output.plain(item.text),
            output.moment(item.at)[:10],
            output.moment(item.valid_to)[:10],
            item.status,
        )
    return made


def _show_item(user: User, item_id: str, *, as_json: bool) -> None:
    item = user.get(item_id)
    history = user.history(item.id) if item.type == "memory" else []
    sources = [user.get(source) for source in item.sources]
    if as_json:
        output.emit({"item": item, "history": history, "sources": sources})
        return
    screen = output.console()
    rows: list[tuple[str, object]] = [
        ("id", item.id),
        ("text", item.text),
        ("kind", item.kind or item.type),
        ("status", f"{item.status} {item.retired_why}".strip()),
        ("when", output.moment(item.at)),
        ("until", output.moment(item.valid_to)),
        ("recorded", output.moment(item.recorded_at)),
        ("session", item.session or ""),
        ("speaker", item.speaker or ""),
        ("importance", "" if item.importance is None else f"{item.importance:.2f}"),
        ("confidence", "" if item.confidence is None else f"{item.confidence:.2f}"),
        ("about", ", ".join(item.entities)),
        ("tags", ", ".join(item.tags)),
    ]
    screen.print(output.pairs((name, value) for name, value in rows if value != ""))
    for title, others in (("Said in", sources), ("History, oldest first", history)):
        if len(others) > (title != "Said in"):  # a history of one is the item itself
            screen.print(output.plain(title, "bold"))
            screen.print(_items(others))


def _show_entities(found: Sequence[EntityView], *, as_json: bool) -> None:
    if as_json:
        output.emit({"entities": found})
        return
    made = output.table("name", "type", ">mentions", "last seen", "also called")
    for entity in found:
        made.add_row(
            output.plain(entity.name),
            entity.type,
            str(entity.mentions),
            output.moment(entity.last_seen)[:10],
            output.plain(", ".join(entity.aliases)),
        )
    output.console().print(made)


def _show_neighbors(name: str, around: Neighborhood, *, as_json: bool) -> None:
    if as_json:
        output.emit(around)
        return
    screen = output.console()
    entity = around.entity
    screen.print(output.plain(f"{entity.name} ({entity.type})" if entity else name, "bold"))
    made = output.table("relation", "since", "until", ">weight")
    for relation in around.relations:
        made.add_row(
            output.plain(f"{relation.head} - {relation.predicate} - {relation.tail}"),
            output.moment(relation.valid_from)[:10],
            output.moment(relation.valid_to or relation.retired_at)[:10],
            f"{relation.weight:.2f}",
        )
    if around.relations:
        screen.print(made)
    if around.related:
        seen = ", ".join(f"{other} ({weight:.2f})" for other, weight in around.related)
        screen.print(output.plain(f"Seen with: {seen}"))
    if around.mentioned_in:
        screen.print(_items(around.mentioned_in))


def register(app: typer.Typer) -> None:
    """Add the command of this file."""
    app.command("show")(with_options(show))

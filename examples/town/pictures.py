"""The pictures of the report, each from what a run has written down."""

from __future__ import annotations

from itertools import pairwise
from statistics import median

import networkx as nx

from reverie.town.charts import BAD, FAINT, GOOD, GRID, INK, PAPER, SERIES, days, drawing, one
from reverie.town.ledger import Happening, Ledger, Telling
from reverie.town.record import Record
from reverie.town.schedule import HOURS
from reverie.town.setting import Setting

_WIDTH = 9.6  # inches
_SHOWN = 60  # rows of a picture at most
_MOVERS = 6  # lines that are named


def spread(setting: Setting, ledger: Ledger, event: str, last: int) -> str:
    """Draw how a rumour spread: a tree over time, from who saw it to who heard of it first."""
    story = ledger.happenings[event]
    first = [telling for telling in ledger.of(event) if telling.is_new][:_SHOWN]
    graph = nx.DiGraph()
    graph.add_nodes_from(story.witnesses)
    graph.add_edges_from((t.speaker, t.listener) for t in first)
    rows: dict[str, int] = {}
    for witness in story.witnesses:
        for name in nx.dfs_preorder_nodes(graph, witness):
            rows.setdefault(name, len(rows))
    told = {telling.listener: telling for telling in first}
    at = {name: told[name].tick if name in told else story.tick for name in rows}
    label = f"How the rumour spread from {len(story.witnesses)} witnesses to {len(rows)} people"
    with drawing("spread", label, _WIDTH, 1.0 + 0.27 * len(rows)) as canvas:
        axes = one(canvas)
        for telling in first:
            x, y = at[telling.speaker], rows[telling.speaker]
            colour = BAD if telling.distortion else GRID
            style = "--" if telling.distortion else "-"
            path = [x, x, telling.tick], [y, rows[telling.listener], rows[telling.listener]]
            axes.plot(*path, color=colour, linestyle=style, linewidth=1.4, zorder=1)
        wrong = _wrong(story, told)
        for name, row in rows.items():
            seen = name in story.witnesses
            colour = GOOD if seen else BAD if name in wrong else SERIES[0]
            axes.scatter(at[name], row, s=46, color=colour, edgecolor=PAPER, zorder=2)
            axes.text(at[name] + last / 110, row, _name(setting, name), va="center", fontsize=10.5)
        days(axes, last)
        axes.set_ylim(len(rows) - 0.3, -0.7)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
    return canvas.svg


def _wrong(story: Happening, told: dict[str, Telling]) -> set[str]:
    return {name for name, telling in told.items() if telling.claim != story.claim}


def _name(setting: Setting, name: str) -> str:
    chinese = setting.people[name].zh
    return f"{chinese} {name}" if chinese else name


def town_map(setting: Setting, ledger: Ledger) -> str:
    """Draw the map, each place as large as what happened there."""
    counts = dict.fromkeys(setting.places, 0)
    for happening in ledger.happenings.values():
        counts[happening.claim.place] += 1
    shown = {name: place for name, place in setting.places.items() if place.x or place.y}
    most = max([1, *(counts[name] for name in shown)])
    with drawing("map", "Map of the town", _WIDTH, 6.2) as canvas:
        axes = one(canvas)
        for name, place in shown.items():
            colour = SERIES[1] if place.language == "zh" else SERIES[0]
            size = 30 + 900 * counts[name] / most
            axes.scatter(place.x, place.y, s=size, color=colour, alpha=0.55, linewidth=0)
            label = f"{place.zh} {place.en}" if place.language == "zh" else place.en
            axes.text(place.x, place.y - 0.33, label, ha="center", va="top", fontsize=10)
            axes.text(place.x, place.y, str(counts[name]), ha="center", va="center", fontsize=9)
        axes.set_xlim(0, 10.4)
        axes.set_ylim(0.5, 9.2)
        axes.set_axis_off()
    return canvas.svg


def weights(setting: Setting, record: Record, last: int) -> str:
    """Draw how the weights of some memories faded, and where reading rekindled them; each against
    its weight when it was new."""
    shown = [trace for trace in record.traces if trace.points and trace.points[0][1] > 0]
    with drawing("weights", "Weights of memories over time", _WIDTH, 5.0) as canvas:
        axes = one(canvas)
        for i, trace in enumerate(shown):
            colour = SERIES[i % len(SERIES)]
            style = "-" if i < len(SERIES) else "--"
            new = trace.points[0][1]
            active = [point for point in trace.points if point[3]]
            ticks = [point[0] for point in active]
            values = [point[1] / new for point in active]
            text = _short(f"{_name(setting, trace.name)}: {trace.text}", 78)
            axes.plot(ticks, values, style, color=colour, linewidth=1.8, label=text)
            pairs = pairwise(active)
            read = [(b[0], b[1] / new) for a, b in pairs if b[2] > a[2]]
            axes.scatter([x for x, _ in read], [y for _, y in read], s=20, color=colour)
            if len(active) < len(trace.points):
                axes.scatter(ticks[-1:], values[-1:], s=60, marker="x", color=colour, linewidth=2)
        axes.axhline(1, color=FAINT, linewidth=0.8)
        days(axes, last)
        axes.set_ylabel("weight (new: 1)")
        if shown:
            canvas.figure.legend(loc="outside lower left", fontsize=10)
    return canvas.svg


def _short(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def trust(setting: Setting, record: Record, other: Record | None) -> str:
    """Draw how much people trusted the player at the end of each day, beside the branch in which
    nobody saw the theft."""
    with drawing("trust", "Trust in the player, day by day", _WIDTH, 4.4) as canvas:
        both = [("as it was", record)] + ([] if other is None else [("nobody saw it", other)])
        panels = canvas.figure.subplots(1, len(both), sharey=True, squeeze=False)[0]
        movers = _movers(record)
        for axes, (title, one_record) in zip(panels, both, strict=True):
            shown_days = [day.day for day in one_record.days]
            for name in sorted({n for day in one_record.days for n in day.trust}):
                values = [day.trust.get(name, 0.0) for day in one_record.days]
                place = movers.index(name) if name in movers else None
                axes.plot(
                    shown_days,
                    values,
                    color=GRID if place is None else SERIES[place % len(SERIES)],
                    linewidth=1.1 if place is None else 2.0,
                    marker="o" if len(shown_days) == 1 or place is not None else "",
                    markersize=4,
                    zorder=1 if place is None else 2,
                    label=_name(setting, name)
                    if place is not None and one_record is record
                    else None,
                )
            axes.axhline(0, color=FAINT, linewidth=0.8)
            axes.set_title(title, loc="left", fontsize=11, color=INK)
            axes.set_xticks(shown_days)
            axes.set_xlabel("day")
        panels[0].set_ylabel("trust")
        if movers:
            canvas.figure.legend(loc="outside lower left", ncols=3, fontsize=10)
    return canvas.svg


def _movers(record: Record) -> list[str]:
    """Return whose trust in the player changed most, the most first."""
    last = record.days[-1].trust if record.days else {}
    return sorted(last, key=lambda name: (-abs(last[name]), name))[:_MOVERS]


def affinities(record: Record) -> str:
    """Draw how the affinity between people changed from the first evening to the last: the larger
    a dot, the more."""
    first = {(a, b): value for a, b, value in record.days[0].affinities}
    change = {(a, b): value - first.get((a, b), 0.0) for a, b, value in record.days[-1].affinities}
    names = sorted({name for pair in change for name in pair})[:_SHOWN]
    row = {name: i for i, name in enumerate(names)}
    label = "Change of affinity between each two people"
    with drawing("affinities", label, _WIDTH, 1.6 + 0.27 * len(names)) as canvas:
        axes = one(canvas)
        for (a, b), value in change.items():
            if a in row and b in row and abs(value) >= 0.005:
                colour = GOOD if value > 0 else BAD
                size = min(190.0, 15 + 520 * abs(value))
                axes.scatter(row[b], row[a], s=size, color=colour, alpha=0.8, linewidth=0)
        axes.set_xticks(range(len(names)), names, rotation=60, ha="right", fontsize=9)
        axes.set_yticks(range(len(names)), names, fontsize=9)
        axes.set_xlim(-0.7, len(names) - 0.3)
        axes.set_ylim(len(names) - 0.3, -0.7)
        axes.grid(linewidth=0.5)
        axes.set_xlabel("towards")
    return canvas.svg


def counts(record: Record) -> str:
    """Draw what all memories together held at the end of each day."""
    shown_days = [day.day for day in record.days]
    rows = {
        "seen": [sum(c.active - c.hearsay for c in day.counts.values()) for day in record.days],
        "heard of": [sum(c.hearsay for c in day.counts.values()) for day in record.days],
        "archived": [sum(c.archived for c in day.counts.values()) for day in record.days],
        "summaries": [sum(c.summaries for c in day.counts.values()) for day in record.days],
    }
    with drawing("counts", "Memories of the town at the end of each day", _WIDTH, 3.6) as canvas:
        axes = one(canvas)
        base = [0] * len(shown_days)
        for (label, values), colour in zip(rows.items(), SERIES, strict=False):
            axes.bar(shown_days, values, 0.62, bottom=base, color=colour, label=label)
            base = [a + b for a, b in zip(base, values, strict=True)]
        for day, total in zip(shown_days, base, strict=True):
            axes.text(day, total, f"{total:,}", ha="center", va="bottom", fontsize=10)
        axes.set_xticks(shown_days, [f"day {day}" for day in shown_days])
        axes.set_ylabel("memories")
        axes.set_ylim(top=max([1, *base]) * 1.1)
        canvas.figure.legend(loc="outside lower left", ncols=4, fontsize=10)
    return canvas.svg


def times(record: Record, last: int) -> str:
    """Draw how long each hour took, with the median of the last day."""
    ticks = [figures.tick for figures in record.ticks]
    spent = [1e3 * figures.seconds for figures in record.ticks]
    smooth = [median(spent[max(0, i - HOURS + 1) : i + 1]) for i in range(len(spent))]
    work = [figures.observed + figures.told for figures in record.ticks]
    with drawing("times", "Time that each hour of the town took", _WIDTH, 4.0) as canvas:
        above, below = canvas.figure.subplots(2, 1, sharex=True, height_ratios=[2, 1])
        above.bar(ticks, spent, 0.9, align="edge", color=SERIES[0], alpha=0.45)
        above.plot([t + 0.5 for t in ticks], smooth, color=SERIES[1], linewidth=2)
        above.set_ylabel("ms")
        below.bar(ticks, work, 0.9, align="edge", color=SERIES[2])
        below.set_ylabel("new memories")
        for axes in (above, below):
            days(axes, last)
    return canvas.svg

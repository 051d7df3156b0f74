"""Pictures as inline SVG: drawn by matplotlib, coloured by the page that they stand in.

Texts stay texts, so that the browser's fonts show every script. Colours are the names of CSS
variables, so that the page decides them, also in dark mode; matplotlib gets a stand-in for each.
"""

from __future__ import annotations

import io
import logging
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

_NAMES = ("ink", "faint", "grid", "paper", "good", "bad", "s1", "s2", "s3", "s4", "s5", "s6")
COLOUR = {name: f"#0100{i:02x}" for i, name in enumerate(_NAMES, 1)}
INK, FAINT, GRID, PAPER = (COLOUR[name] for name in ("ink", "faint", "grid", "paper"))
GOOD, BAD = COLOUR["good"], COLOUR["bad"]
SERIES = tuple(COLOUR[f"s{i}"] for i in range(1, 7))
FONT = "font: {}px system-ui, sans-serif"

_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "font.size": 11,
    "text.color": INK,
    "axes.labelcolor": FAINT,
    "axes.edgecolor": GRID,
    "axes.axisbelow": True,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": GRID,
    "ytick.color": GRID,
    "xtick.labelcolor": FAINT,
    "ytick.labelcolor": FAINT,
    "grid.color": GRID,
    "legend.frameon": False,
    "legend.labelcolor": INK,
}


class Canvas:
    """A figure that is being drawn; `svg` is its text once `drawing` has ended."""

    def __init__(self, figure: Figure) -> None:
        self.figure = figure
        self.svg = ""


@contextmanager
def drawing(name: str, label: str, width: float, height: float) -> Iterator[Canvas]:
    """Draw one picture.

    Args:
        name: unlike those of the other pictures of the page; ids in the SVG begin with it.
        label: what the picture shows, for who cannot see it.
        width: inches; a page shows 96 pixels of each.
        height: likewise.
    """
    # Missing glyphs are the browser's business, which draws the texts.
    fonts = logging.getLogger("matplotlib.font_manager")
    level = fonts.level
    fonts.setLevel(logging.ERROR)
    try:
        with mpl.rc_context(_STYLE | {"svg.hashsalt": name}), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Glyph")
            canvas = Canvas(Figure(figsize=(width, height), layout="constrained"))
            yield canvas
            out = io.StringIO()
            canvas.figure.savefig(out, format="svg", metadata={"Date": None})
    finally:
        fonts.setLevel(level)
    canvas.svg = _inline(out.getvalue(), name, label)


def _inline(svg: str, name: str, label: str) -> str:
    """Return a file of matplotlib's as an element of a page."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    for colour, value in COLOUR.items():
        svg = svg.replace(value, f"var(--{colour})")
    svg = re.sub(r"font: ([\d.]+)px [^;\"]*", lambda m: FONT.format(m[1]), svg)
    # Ids of two pictures must not meet on one page.
    svg = re.sub(r'(\bid="|xlink:href="#|url\(#)', rf"\g<1>{name}-", svg)
    safe = label.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    size = re.search(r'viewBox="0 0 ([\d.]+) ', svg)
    width = float(size[1]) if size else 600.0
    head = f'<svg role="img" aria-label="{safe}" style="min-width: {min(width, 640):.0f}px"'
    return re.sub(r'<svg\b(?: width="[^"]*"| height="[^"]*")*', head, svg, count=1).replace(
        ' width="100%" height="100%"', ""
    )


def one(canvas: Canvas) -> Axes:
    """Return the only axes of a picture."""
    axes: Axes = canvas.figure.subplots()
    return axes


def days(axes: Axes, last: int) -> None:
    """Let the horizontal axis count ticks, with a line at each midnight."""
    axes.set_xlim(0, last)
    axes.set_xticks(range(0, last + 1, 24), [""] * (last // 24 + 1))
    axes.set_xticks([24 * day + 12 for day in range(last // 24)], minor=True)
    axes.set_xticklabels([f"day {day + 1}" for day in range(last // 24)], minor=True)
    axes.tick_params(axis="x", which="minor", length=0)
    axes.grid(axis="x", linewidth=0.8)

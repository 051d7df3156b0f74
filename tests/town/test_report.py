"""The report: one self-contained page, looked at in a real browser."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from town_played import Played

from reverie.town.charts import COLOUR
from reverie.town.report import page

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PICTURES = 7
TIMEOUT_MS = 120_000  # of a busy machine
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


class Outline(HTMLParser):
    """Collects tags, ids and references of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.refs: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(str(value))
            if name in {"href", "src", "xlink:href", "srcset", "data"}:
                self.refs.append(str(value))


def test_the_page_needs_nothing_from_elsewhere(played: Played) -> None:
    outline = Outline()
    outline.feed(played.page)
    assert outline.tags.count("svg") == PICTURES
    assert not {"script", "iframe", "img", "object", "embed", "base"} & set(outline.tags)
    assert len(outline.ids) == len(set(outline.ids))
    for ref in outline.refs:
        assert ref.startswith(("#", "data:,")), ref
    for ref in re.findall(r"url\(([^)]*)\)", played.page):
        assert ref.startswith("#"), ref
        assert ref[1:] in outline.ids
    assert "@import" not in played.page
    assert "@font-face" not in played.page
    assert not [colour for colour in COLOUR.values() if colour in played.page]


def test_the_page_tells_the_story(played: Played) -> None:
    for words in ("Saltmere", "who had it from", "林月", "玩家", "Old Wat", played.outcome.digest):
        assert words in played.page or words == "who had it from"
    assert "text" in played.page
    assert played.page.count("Digest of all memories") == 1


def test_the_page_is_the_same_again(played: Played) -> None:
    assert page(played.outcome, played.truth) == played.page


def test_texts_of_people_are_no_markup(played: Played) -> None:
    from reverie.town.record import Knower

    record = played.outcome.play.record
    days = list(record.days)
    try:
        evil = Knower("Old Wat", "<script>alert(1)</script>", ("<b>", "Lin Yue"))
        record.days[-1] = msgspec.structs.replace(days[-1], knowers=(evil,))
        made = page(played.outcome, played.truth)
    finally:
        record.days[:] = days
    assert "<script" not in made
    assert "&lt;script&gt;" in made


# -- in a browser ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A headless Chromium of the system."""
    from playwright.sync_api import sync_playwright

    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    assert found is not None, "no Chromium is installed; .ci/setup browser installs one"
    with sync_playwright() as driver:
        made = driver.chromium.launch(
            executable_path=found,
            args=["--no-sandbox", "--disable-gpu"],
            timeout=TIMEOUT_MS,
        )
        yield made
        made.close()


def _opened(browser: Browser, path: Path, width: int, scheme: Any, complaints: list[str]) -> Page:
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True
    )
    context.set_default_timeout(TIMEOUT_MS)
    shown = context.new_page()
    shown.on("console", lambda message: complaints.append(message.text))
    shown.on("pageerror", lambda error: complaints.append(str(error)))
    shown.on(
        "request",
        lambda sent: (
            None if sent.url.startswith(("file:", "data:")) else complaints.append(sent.url)
        ),
    )
    shown.goto(path.as_uri())
    return shown


BOXES = """
() => [...document.querySelectorAll('figure svg')].map(svg => {
  const box = svg.getBoundingClientRect();
  const texts = [...svg.querySelectorAll('text')].map(text => {
    const at = text.getBoundingClientRect();
    return [text.textContent.trim(), at.width, at.height, getComputedStyle(text).fill];
  }).filter(([text]) => text);
  return [svg.getAttribute('aria-label'), box.width, box.height, texts];
})
"""


def _light(colour: str) -> float:
    """Return how light a colour of a computed style is, 0 to 255."""
    red, green, blue = map(float, re.findall(r"[\d.]+", colour)[:3])
    return 0.3 * red + 0.6 * green + 0.1 * blue


@pytest.mark.slow
@pytest.mark.parametrize(
    ("width", "scheme"), [(1100, "light"), (1100, "dark"), (390, "light"), (390, "dark")]
)
def test_a_browser_shows_it(
    played: Played, browser: Browser, tmp_path: Path, width: int, scheme: str
) -> None:
    path = tmp_path / "town.html"
    path.write_text(played.page, "utf-8")
    complaints: list[str] = []
    shown = _opened(browser, path, width, scheme, complaints)
    boxes = shown.evaluate(BOXES)
    assert len(boxes) == PICTURES
    ground = _light(shown.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert ground > 200 if scheme == "light" else ground < 60
    for label, wide, high, texts in boxes:
        assert wide >= min(width, 600) * 0.8, label
        assert high >= 60, label
        assert texts, label
        for text, text_wide, text_high, fill in texts:
            assert text_wide > 0, (label, text)
            assert text_high >= 7, (label, text)
            assert abs(_light(fill) - ground) > 80, (label, text, fill)
    assert any("\u4e00" <= char <= "\u9fff" for *_, texts in boxes for t in texts for char in t[0])
    # The page itself never scrolls sideways; wide pictures and tables do so in their frames.
    assert shown.evaluate("document.documentElement.scrollWidth") <= width
    picture = tmp_path / "town.png"
    shown.screenshot(path=picture, full_page=True)
    assert _colours(picture) > 40
    shown.context.close()
    assert complaints == []


def _colours(picture: Path) -> int:
    """Return how many colours a picture has: an empty page has a few."""
    from PIL import Image

    with Image.open(picture) as image:
        found = image.convert("RGB").resize((200, 800)).getcolors(maxcolors=1 << 24)
    return len(found or ())


@pytest.mark.slow
def test_the_browser_has_glyphs_for_chinese(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "glyphs.html"
    path.write_text('<meta charset="utf-8"><b id="a">林</b><b id="b">月</b>', "utf-8")
    shown = _opened(browser, path, 400, "light", [])
    # A missing glyph is drawn as the same box, whatever the character.
    drawn = [shown.locator(f"#{name}").screenshot() for name in "ab"]
    assert drawn[0] != drawn[1], "no font for Chinese; .ci/setup browser installs one"


def test_missing_matplotlib_is_told(played: Played, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from reverie.memory_graph.errors import ConfigError

    monkeypatch.setitem(sys.modules, "reverie.town.pictures", None)
    with pytest.raises(ConfigError, match="reverie\\[report\\]"):
        page(played.outcome, played.truth)

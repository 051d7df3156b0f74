"""WhatsApp chats as text: `_chat.txt` or `WhatsApp Chat with Ana.txt`, alone or in a .zip.

    31/12/2023, 21:15 - Ana: Happy new year          (Android)
    [12/31/23, 9:15:03 PM] Ana: Happy new year       (iOS)
    2023/12/31 下午9:15 - 小明: 新年快乐

A message goes on over the lines that do not begin so. Which of day and month comes first is found
out over the whole file (see `whatsapp_dates.py`), so it is read twice. Times are of the telephone
that exported: they are taken as of `timezone`. Nobody is the owner of the memory by himself: name
one with `speakers={"Ana": "user"}`.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from functools import partial

from reverie.fields import check_text
from reverie.importers.lines import OpenTurn, text_lines
from reverie.importers.records import Entry, Options, bad, digest, usable_id
from reverie.importers.sources import Member
from reverie.importers.whatsapp_dates import Dates, Stamp, found_order
from reverie.memory_graph.drafts import TurnDraft
from reverie.memory_graph.errors import InvalidTextError

NAME = re.compile(r".*\.txt", re.IGNORECASE | re.DOTALL)

_MARKS = "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff"
_MARK = re.compile(f"[{_MARKS}]")
_PERIODS = "凌晨|清晨|早上|上午|中午|下午|傍晚|晚上|午夜|午前|午後"
_HEAD = re.compile(
    rf"""[{_MARKS}]*(?P<open>\[)?
    (?P<a>\d{{1,4}})\s?[./\-年]\s?(?P<b>\d{{1,2}})\s?[./\-月]\s?(?P<c>\d{{1,4}})日?
    [,،]?\s(?:(?:at|um|klo|à|às|星期.|週.|周.)\s)?\s?
    (?P<before>{_PERIODS}|[AaPp][Mm])?\s?
    (?P<hour>\d{{1,2}})[:.](?P<minute>\d{{2}})(?:[:.](?P<second>\d{{2}}))?
    \s?(?P<after>[AaPp]\.?\s?[Mm]\.?)?
    (?P<close>\]|\s-)\s?(?P<rest>.*)""",
    re.VERBOSE | re.DOTALL,
)
_SAID = re.compile(r"(?P<name>[^:\n]{1,120}):(?:\s|$)(?P<text>.*)", re.DOTALL)
_OMIT = "省略|忽略|略过|略過|略去"
_MEDIA_ZH = "|".join(
    "图片 圖片 照片 影片 视频 視訊 音频 音訊 语音 語音 语音消息 語音訊息 贴图 貼圖 文件 文档 文檔 "
    "檔案 联系人 聯絡人 媒体 媒體 多媒体 多媒體 影音 GIF".split()
)
_OMITTED = re.compile(
    rf"""<[^<>]{{0,40}}(?:omitted|{_OMIT})[^<>]{{0,40}}>
    |<(?:attached|附件)[:：][^<>]{{1,300}}>
    |(?:image|video|audio|voice\ message|sticker|GIF|document|Contact\ card|video\ note)\ omitted
    |[^\n]{{1,300}}\.\w{{2,5}}\ ?(?:\(file\ attached\)|[(（]文件附件[)）]|[(（]檔案已附加[)）])
    |(?:{_MEDIA_ZH})(?:已被|已)?(?:{_OMIT})
    |已?(?:{_OMIT})了?(?:动态|動態)?(?:{_MEDIA_ZH})(?:文件|檔案|档)?""",
    re.VERBOSE,
)
_DELETED = re.compile(
    r"(?:This message was deleted|You deleted this message)\.?"
    "|[此这這][条條则則]?(?:消息|訊息|讯息)已被?(?:删除|刪除)。?"
    "|[你您](?:已?(?:删除|刪除)了?)[此这這][条條则則]?(?:消息|訊息|讯息)。?"
)
_ENCRYPTED = re.compile(r"end-to-end encrypted|端到端加密|端對端加密")
_EDITED = re.compile(r"\s*<(?:This message was edited|此消息已编辑|此訊息已編輯|此消息已被编辑)>$")
_CHATS = (  # names of files, with the name of the chat in them
    re.compile(r"WhatsApp Chat (?:with|-) (.+)", re.IGNORECASE),
    re.compile(r"WhatsApp ?(?:聊天|对话|對話)(?:记录|記錄)? ?[-–:：]? ?(.+)", re.IGNORECASE),
    re.compile(r"[与與和] ?(.+?) ?的 ?WhatsApp.*", re.IGNORECASE),
)
_TELLS = 20  # lines from the beginning in which a chat shows that it is one


def is_head(line: str) -> bool:
    """Whether a line begins a message."""
    return _head(line) is not None


def _head(line: str) -> re.Match[str] | None:
    found = _HEAD.match(line[:2048])
    if found is None or (found["open"] is None) != (found["close"] != "]"):
        return None
    return _HEAD.match(line) if len(line) > 2048 else found  # noqa: PLR2004 (as above)


def _stamp(head: re.Match[str]) -> Stamp:
    return Stamp(
        (head["a"], head["b"], head["c"]),
        int(head["hour"]),
        int(head["minute"]),
        int(head["second"] or 0),
        (head["before"] or head["after"] or "").replace(".", "").replace(" ", "").casefold(),
        slash="/" in head[0][: head.start("hour")],
    )


def looks_so(file: io.BufferedReader) -> bool:
    """Whether a text begins like a chat."""
    for number, line in text_lines(file):
        if isinstance(line, str) and is_head(line):
            return True
        if number >= _TELLS:
            return False
    return False


def read(member: Member, file: io.BufferedReader, options: Options) -> Iterator[Entry]:
    """Yield the turns of a chat in order."""
    order = options.date_order
    if order == "auto":
        with member.open() as first:
            heads = (_head(line) for _, line in text_lines(first) if isinstance(line, str))
            order = found_order(_stamp(head) for head in heads if head is not None)
    options.chosen["date order"] = order
    name = _chat_name(member)
    session = f"whatsapp-{digest(name)}"  # ids are not masked, and a chat is called after people
    chat = _Chat(member, session, name, Dates(order, options.timezone), options)
    for number, line in text_lines(file):
        yield from chat.take(number, line)
    yield from chat.end()


def _chat_name(member: Member) -> str:
    stem = _MARK.sub("", member.stem)
    found = next((m for pattern in _CHATS if (m := pattern.fullmatch(stem))), None)
    return stem.strip() or "whatsapp" if found is None else found[1].strip()


class _Chat:
    """A chat that is being read line by line."""

    def __init__(
        self, member: Member, session: str, title: str, dates: Dates, options: Options
    ) -> None:
        self._where = member.name
        self._session = session
        self._title = title
        self._dates = dates
        self._options = options
        self._open: OpenTurn | None = None

    def take(self, number: int, line: str | InvalidTextError) -> Iterator[Entry]:
        """Take the next line; yields the message that it ends."""
        if not isinstance(line, str):
            yield bad(number, f"{self._where}, line {number}", line)
            return
        head = _head(line)
        if head is None:
            if self._open is None and line.strip(f" \t{_MARKS}"):
                self._options.left_out["lines of no message"] += 1
            if self._open is not None:
                self._open.add(line)
            return
        yield from self.end()
        said = _SAID.match(head["rest"])
        if said is None:
            self._options.left_out["system lines"] += 1
            return
        speaker = " ".join(_MARK.sub("", said["name"]).replace("\u202f", " ").split())
        made = partial(self._turn, number, _stamp(head), speaker.removeprefix("~").strip())
        self._open = OpenTurn(number, self._where, said["text"], made)

    def end(self) -> Iterator[Entry]:
        """Yield the message that is open."""
        turn, self._open = self._open, None
        if turn is not None:
            yield from turn.close(self._title, "whatsapp")

    def _turn(self, line: int, stamp: Stamp, speaker: str, raw: str) -> TurnDraft | None:
        text = _EDITED.sub("", _MARK.sub("", raw)).strip()
        if (what := _left_out(raw, text)) is not None:
            self._options.left_out[what] += 1
            return None
        return TurnDraft(
            text=check_text(text),
            session=self._session,
            speaker=usable_id(speaker),
            said_at=self._dates.moment(stamp).timestamp(),
            external_id=f"whatsapp-{line}-{digest(self._session, stamp, speaker, text)}",
        )


def _left_out(raw: str, text: str) -> str | None:
    """Return as what a message is left out, None for one to keep."""
    if not text:
        return "messages without text"
    if _OMITTED.fullmatch(text):
        return "images and files"
    if _DELETED.fullmatch(text):
        return "deleted messages"
    if raw[:1] in _MARKS and _ENCRYPTED.search(text):
        return "system lines"
    return None

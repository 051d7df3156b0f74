"""WhatsApp chats, Markdown logs and JSONL."""

from __future__ import annotations

import random
import re
import zipfile
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from reverie.formats import TurnRecord, read_turns, with_id
from reverie.importers import BadEntry, FormatName, read, sniff
from reverie.importers.records import Options
from reverie.importers.whatsapp_dates import Stamp, found_order
from reverie.memory_graph.errors import (
    InputError,
    InvalidTextError,
    InvalidTimeError,
    InvalidValueError,
)

LRM, NNBSP = "\u200e", "\u202f"
MARKS = re.compile("[\u202a-\u202e\u2066-\u2069\ufeff]")


def at(*parts: int) -> float:
    return datetime(*parts, tzinfo=UTC).timestamp()  # type: ignore[misc,arg-type]


def whole(path: Path, **options: Any) -> tuple[list[tuple[Any, ...]], list[BadEntry]]:
    entries = list(read(path, **options))
    turns = [
        (e.turn.speaker, e.turn.said_at, e.turn.text) for e in entries if isinstance(e, TurnRecord)
    ]
    return turns, [e for e in entries if isinstance(e, BadEntry)]


# -- WhatsApp ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "moment"),
    [
        ("31/12/2023, 21:15 - Ana: Hi", at(2023, 12, 31, 21, 15)),
        ("12/31/23, 9:15 PM - Ana: Hi", at(2023, 12, 31, 21, 15)),
        (f"12/31/23, 9:15{NNBSP}PM - Ana: Hi", at(2023, 12, 31, 21, 15)),
        ("31.12.23, 21:15 - Ana: Hi", at(2023, 12, 31, 21, 15)),
        ("31.12.2023 klo 21.15 - Ana: Hi", at(2023, 12, 31, 21, 15)),
        ("2023-12-31, 9:15 p.m. - Ana: Hi", at(2023, 12, 31, 21, 15)),
        ("31/12/23, 9:15 p. m. - Ana: Hi", at(2023, 12, 31, 21, 15)),
        ("2023/12/31 下午9:15 - Ana: Hi", at(2023, 12, 31, 21, 15)),
        ("2023年12月31日 晚上9:15 - Ana: Hi", at(2023, 12, 31, 21, 15)),
        ("2023/12/31 21:15 - Ana: Hi", at(2023, 12, 31, 21, 15)),
        ("[31/12/2023, 21:15:03] Ana: Hi", at(2023, 12, 31, 21, 15, 3)),
        (f"{LRM}[12/31/23, 9:15:03{NNBSP}PM] ~{NNBSP}Ana: Hi", at(2023, 12, 31, 21, 15, 3)),
        ("[2023/12/31 凌晨12:15:03] Ana: Hi", at(2023, 12, 31, 0, 15, 3)),
        ("[2023/12/31 中午12:15:03] Ana: Hi", at(2023, 12, 31, 12, 15, 3)),
        ("[2023/12/31 中午1:15:03] Ana: Hi", at(2023, 12, 31, 13, 15, 3)),
        ("12/31/23, 12:05 AM - Ana: Hi", at(2023, 12, 31, 0, 5)),
        ("12/31/23, 12:05 PM - Ana: Hi", at(2023, 12, 31, 12, 5)),
        ("[31.12.23, 21:15:03] Ana: Hi", at(2023, 12, 31, 21, 15, 3)),
    ],
)
def test_forms_of_a_line(tmp_path: Path, line: str, moment: float) -> None:
    path = tmp_path / "WhatsApp Chat with Bo.txt"
    path.write_text(f"{line}\n", encoding="utf-8")
    assert sniff(path) == "whatsapp"
    assert whole(path) == ([("Ana", moment, "Hi")], [])
    (entry,) = read(path)
    assert isinstance(entry, TurnRecord)
    assert entry.turn.metadata == {"source": "whatsapp", "title": "Bo"}
    assert "Bo" not in entry.turn.session  # ids are stored as they are, also in masked folders


def test_a_chat_with_all_that_is_in_one(tmp_path: Path) -> None:
    path = tmp_path / "与小明的 WhatsApp 聊天.txt"
    path.write_text(
        "\ufeff2023/12/31 下午9:15 - 消息和通话已进行端到端加密。\n"
        "2023/12/31 下午9:16 - 小明: 新年快乐\n"
        "\n"
        "祝你: 一切都好\n"
        "2023/12/31 下午9:17 - Ana: <Media omitted>\n"
        "2023/12/31 下午9:17 - 小明: <省略多媒体文件>\n"
        f"2023/12/31 下午9:17 - 小明: {LRM}图片已省略\n"
        "2023/12/31 下午9:18 - 小明: 此消息已被删除\n"
        "2023/12/31 下午9:18 - 小明: 你把它删除了吗？\n"
        "2023/12/31 下午9:18 - Ana: IMG-20231231-WA0001.jpg (file attached)\n"
        "2023/12/31 下午9:19 - Ana: Yes, at http://x.y: all <This message was edited>\n"
        "2023/12/31 下午9:19 - Ana created group “Oslo”\n"
        "2023/12/31 下午9:99 - Ana: bad\n"
        "2024/1/1 上午8:00 - Ana:\n",
        encoding="utf-8",
    )
    options = Options()
    turns, bad = whole(path, options=options, speakers={"Ana": "user", "小明": "明"})
    assert turns == [
        ("明", at(2023, 12, 31, 21, 16), "新年快乐\n\n祝你: 一切都好"),
        ("明", at(2023, 12, 31, 21, 18), "你把它删除了吗？"),
        (None, at(2023, 12, 31, 21, 19), "Yes, at http://x.y: all"),
    ]
    assert [(b.number, type(b.error)) for b in bad] == [(13, InvalidTimeError)]
    assert options.left_out == Counter(
        {
            "system lines": 2,
            "images and files": 4,
            "deleted messages": 1,
            "messages without text": 1,
        }
    )


def test_times_are_of_the_zone_that_is_named(tmp_path: Path) -> None:
    path = tmp_path / "_chat.txt"
    path.write_text("[2023/12/31 21:15:03] 李娜: 你好\n", encoding="utf-8")
    (turns, _) = whole(path, timezone="Asia/Shanghai")
    assert turns == [("李娜", at(2023, 12, 31, 13, 15, 3), "你好")]


FORMS = {"dmy": "%d/%m/%y", "mdy": "%m/%d/%y", "ymd": "%y/%m/%d"}


@given(
    st.sampled_from([*FORMS]),
    st.integers(0, 2**32),
    st.integers(20, 60),
    st.sampled_from([0.5, 3, 20]),
)
def test_the_order_of_day_and_month_is_found_over_a_whole_chat(
    order: str, seed: int, count: int, days: float
) -> None:
    rng = random.Random(seed)
    moment = datetime(2019, 1, 1, tzinfo=UTC) + timedelta(days=rng.random() * 2000)
    stamps = []
    first = moment
    for _ in range(count):
        moment += timedelta(days=rng.random() * 2 * days)
        parts = moment.strftime(FORMS[order]).split("/")
        stamps.append(Stamp((parts[0], parts[1], parts[2]), 9, 15, 0, "", slash=True))
    if (moment - first).days > 60:  # enough to tell: some day is over 12, and months go by
        assert found_order(stamps) == order


def test_an_order_that_nothing_tells_is_the_usual_one_of_the_form() -> None:
    def stamps(period: str) -> list[Stamp]:
        return [Stamp(("3", str(day), "23"), 9, 15, 0, period, slash=True) for day in (3, 3, 3)]

    assert found_order(stamps("")) == "dmy"
    assert found_order(stamps("pm")) == "mdy"
    assert found_order([]) == "dmy"


def test_an_order_can_be_given(tmp_path: Path) -> None:
    path = tmp_path / "chat.txt"
    path.write_text("3/4/23, 21:15 - Ana: Hi\n", encoding="utf-8")
    assert whole(path)[0][0][1] == at(2023, 4, 3, 21, 15)
    assert whole(path, date_order="mdy")[0][0][1] == at(2023, 3, 4, 21, 15)
    with pytest.raises(InvalidValueError, match="is no time in ymd"):  # a year of one digit
        whole(path, date_order="ymd")


def test_lines_that_are_no_text_are_told_and_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "chat.txt"
    path.write_bytes(
        b"1/2/2023, 21:15 - Ana: one\n\xff\xfe\n1/2/2023, 21:16 - Bo: two\x00\n"
        b"1/2/2023, 21:17 - Bo: three\n" + b"x" * 1_100_000 + b"\n"
        b"1/2/2023, 21:18 - Bo: four\n"
    )
    turns, bad = whole(path)
    assert [text for _, _, text in turns] == ["one", "four"]
    assert [(b.number, type(b.error)) for b in bad] == [
        (2, InvalidTextError),
        (3, InvalidTextError),
        (4, InvalidValueError),
    ]


def test_a_zip_of_a_chat(tmp_path: Path) -> None:
    path = tmp_path / "WhatsApp Chat - Ana.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("_chat.txt", "[1/2/2023, 21:15:00] Ana: one\n")
        archive.writestr("0001-PHOTO.jpg", b"\xff")
    (entry,) = read(path)
    assert isinstance(entry, TurnRecord)
    assert entry.turn.metadata == {"source": "whatsapp", "title": "Ana"}


@given(st.text(max_size=200))
def test_any_text_gives_entries_or_one_error(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    path = tmp_path_factory.mktemp("any") / "a.txt"
    path.write_text(f"1/2/23, 21:15 - Ana: x\n{text}", encoding="utf-8", errors="replace")
    for name in ("whatsapp", "markdown", "jsonl"):
        with suppress(InvalidValueError):  # nothing in it can be read
            for entry in read(path, format=name):
                assert isinstance(entry, TurnRecord | BadEntry)


lines = (
    st.text(
        st.characters(
            exclude_categories=["Cc", "Cs", "Zl", "Zp"], exclude_characters="\u200e\u200f"
        ),
        min_size=1,
        max_size=30,
    )
    .map(str.strip)
    .filter(lambda text: text.strip() and "omitted" not in text and text[0] not in "<>")
)


@given(st.lists(st.tuples(st.sampled_from(["Ana", "小明", "Bo B."]), st.lists(lines, min_size=1))))
def test_what_is_written_as_a_chat_is_read_again(
    tmp_path_factory: pytest.TempPathFactory, said: list[tuple[str, list[str]]]
) -> None:
    path = tmp_path_factory.mktemp("chat") / "chat.txt"
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for minute, (speaker, texts) in enumerate(said):
            file.write(f"[2023/12/31 {minute // 60:02}:{minute % 60:02}:00] {speaker}: ")
            file.write("\n".join(["$ " + t for t in texts]) + "\n")  # no line is a head by chance
    turns, bad = whole(path, format="whatsapp")
    assert bad == []
    expected = [(s, "\n".join("$ " + t for t in texts)) for s, texts in said]
    assert [(s, t) for s, _, t in turns] == [(s, MARKS.sub("", t)) for s, t in expected]


# -- Markdown ---------------------------------------------------------------------------

LOG = """---
title: not a turn
---
# 2024-05-01 Lunch
Somebody wrote this down.
**Ana:** I have moved to Oslo.
Note: it rains.

- 18:30 **Bo**: Since when?
**Bo** (18:31): ok
```
# 2020-01-01
**Ana:** code
```
---
## May 2nd, 2024 at 09:05
**User:** hi
**助手：** 你好
## Plans
[10:00] **Human:** 再见
### 2024年13月1日
**Ana** [25:00]: late
"""


def test_a_markdown_log(tmp_path: Path) -> None:
    path = tmp_path / "log.md"
    path.write_text(LOG, encoding="utf-8")
    options = Options()
    entries = list(read(path, options=options))
    turns = [e.turn for e in entries if isinstance(e, TurnRecord)]
    assert [(t.speaker, t.role, t.said_at, t.text) for t in turns] == [
        ("Ana", "user", at(2024, 5, 1), "I have moved to Oslo.\nNote: it rains."),
        ("Bo", "user", at(2024, 5, 1, 18, 30), "Since when?"),
        ("Bo", "user", at(2024, 5, 1, 18, 31), "ok\n```\n# 2020-01-01\n**Ana:** code\n```"),
        (None, "user", at(2024, 5, 2, 9, 5), "hi"),
        ("助手", "assistant", at(2024, 5, 2, 9, 5), "你好"),
        (None, "user", at(2024, 5, 2, 10, 0), "再见"),
    ]
    assert [t.session for t in turns] == ["log 2024-05-01"] * 3 + ["log 2024-05-02"] * 3
    assert [(t.metadata or {}).get("title") for t in turns][-2:] == [
        "May 2nd, 2024 at 09:05",
        "Plans",
    ]
    bad = [e for e in entries if isinstance(e, BadEntry)]
    assert [b.number for b in bad] == [21, 22]
    assert options.left_out == Counter({"lines of no speaker": 1})


def test_a_log_without_bold_speakers(tmp_path: Path) -> None:
    path = tmp_path / "log.md"
    path.write_text(
        "## 1 June 2024\n小明：我也搬家了。\nsee http://example.org\nAna: hello\n[09:30] Bo: x\n",
        encoding="utf-8",
    )
    turns, bad = whole(path, timezone="Europe/Berlin")
    assert bad == []
    assert turns == [
        ("小明", at(2024, 5, 31, 22), "我也搬家了。\nsee http://example.org"),
        ("Ana", at(2024, 5, 31, 22), "hello"),
        ("Bo", at(2024, 6, 1, 7, 30), "x"),
    ]


# -- JSONL ------------------------------------------------------------------------------


def test_jsonl_is_read_as_ingest_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"
    path.write_text(
        '{"text": "I live in Oslo.", "speaker": "Ana", "id": "x"}\n'
        "no json\n\n"
        '{"text": "你好", "time": "2024-03-01T10:00:00Z", "mood": "glad"}\n',
        encoding="utf-8",
    )
    skipped: list[int] = []
    ingested = map(
        with_id, read_turns(path, on_error="skip", on_skip=lambda n, _: skipped.append(n))
    )
    expected = list(ingested)
    found = list(read(path))
    assert [e for e in found if isinstance(e, TurnRecord)] == expected
    assert [e.number for e in found if isinstance(e, BadEntry)] == skipped == [2]


def test_a_text_that_is_like_none_of_them(tmp_path: Path) -> None:
    path = tmp_path / "prose.txt"
    path.write_text("Once upon a time.\n" * 3)
    with pytest.raises(InvalidValueError, match="begins like none"):
        sniff(path)
    for name in ("whatsapp", "markdown"):
        with pytest.raises(InvalidValueError, match="no line begins a turn"):
            list(read(path, format=name))


# -- other encodings --------------------------------------------------------------------

SAID = {
    "chatgpt": "[]",
    "whatsapp": "1/2/2023, 21:15 - Ana: Hi 你好\n",
    "markdown": "**Ana:** Hi 你好\n",
    "jsonl": '{"text": "Hi 你好"}\n',
}


@pytest.mark.parametrize(
    "encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be", "gb18030"]
)
@pytest.mark.parametrize("name", SAID)
def test_a_file_that_says_that_it_is_no_utf_8_is_told_so(
    tmp_path: Path, name: FormatName, encoding: str
) -> None:
    named = encoding.upper().removesuffix("-LE").removesuffix("-BE")
    data = f"\ufeff{SAID[name]}".encode(encoding)
    plain, packed = tmp_path / "a.log", tmp_path / "a.zip"
    plain.write_bytes(data)
    member = {"chatgpt": "conversations.json", "jsonl": "a.jsonl", "markdown": "a.md"}
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(member.get(name, "a.txt"), data)
    for path in (plain, packed):
        for form in ("auto", name):
            with pytest.raises(InputError, match=rf"its text is {named}.*UTF-8 is expected") as got:
                list(read(path, format=form))
            assert str(path) in got.value.message
    (tmp_path / "good.log").write_bytes(f"\ufeff{SAID[name]}".encode())
    assert len(list(read(tmp_path / "good.log", format=name))) == (name != "chatgpt")

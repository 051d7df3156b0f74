"""Readers of conversation files: what they accept, what they refuse, and where they say it is."""

from __future__ import annotations

import json
import math
import tracemalloc
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from reverie import formats, locomo
from reverie.formats import (
    count_turns,
    parse_time,
    read_questions,
    read_turns,
    sniff,
)
from reverie.memory_graph.drafts import TurnDraft
from reverie.memory_graph.errors import (
    InputError,
    InvalidIdError,
    InvalidMetadataError,
    InvalidTextError,
    InvalidTimeError,
    InvalidValueError,
)

DATA = Path(__file__).parents[1] / "examples" / "data"
NOON = 1_740_916_800.0  # 2025-03-02T12:00:00Z


@pytest.fixture
def jsonl(tmp_path: Path) -> Any:
    """Return a function that writes lines (bytes, text or objects) to a file."""

    def write(*lines: object, name: str = "talk.jsonl", end: bytes = b"\n") -> Path:
        path = tmp_path / name
        parts = [
            line
            if isinstance(line, bytes)
            else (line if isinstance(line, str) else json.dumps(line)).encode()
            for line in lines
        ]
        path.write_bytes(b"".join(part + end for part in parts))
        return path

    return write


def only_turn(path: Path) -> TurnDraft:
    (record,) = read_turns(path, format="jsonl")
    return record.turn


# -- jsonl -----------------------------------------------------------------------------


def test_all_keys_become_a_turn(jsonl: Any) -> None:
    path = jsonl(
        {
            "session": "s1",
            "speaker": "Ana",
            "role": "user",
            "text": "  你好, Ana ",
            "time": "2025-03-02T13:00:00+01:00",
            "id": "t-1",
            "metadata": {"channel": "mail"},
            "mood": 3,
        }
    )
    (record,) = read_turns(path)
    assert (record.conversation, record.line) == ("talk", 1)
    assert record.turn == TurnDraft(
        text="  你好, Ana ",
        session="s1",
        speaker="Ana",
        role="user",
        said_at=NOON,
        external_id="t-1",
        metadata={"channel": "mail", "mood": 3},
    )


def test_only_text_is_needed_and_null_is_absent(jsonl: Any) -> None:
    keys = ("session", "speaker", "role", "time", "id", "metadata", "other")
    assert only_turn(jsonl({"text": "hi", **dict.fromkeys(keys)})) == TurnDraft(text="hi")


@pytest.mark.parametrize(
    ("given_keys", "speaker", "role"),
    [
        ({}, None, "user"),
        ({"speaker": "user"}, "user", "user"),
        ({"speaker": "assistant"}, "assistant", "assistant"),
        ({"role": "assistant"}, "assistant", "assistant"),  # never the owner's
        ({"role": "assistant", "speaker": "Bot"}, "Bot", "assistant"),
    ],
)
def test_speaker_and_role_fill_each_other_in(
    jsonl: Any, given_keys: dict[str, str], speaker: str | None, role: str
) -> None:
    turn = only_turn(jsonl({"text": "hi", **given_keys}))
    assert (turn.speaker, turn.role) == (speaker, role)


def test_whole_numbers_serve_as_names(jsonl: Any) -> None:
    turn = only_turn(jsonl({"text": "hi", "session": 7, "id": 0, "speaker": "Al"}))
    assert (turn.session, turn.external_id) == ("7", "0")


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_blank_lines_and_a_bom_pass_and_lines_keep_their_numbers(jsonl: Any, end: bytes) -> None:
    lines = (b'\xef\xbb\xbf{"text": "a"}', b"", b" \t", '{"text": "b\u2028c"}', b"")
    path = jsonl(*lines, end=end)
    found = [(r.line, r.turn.text) for r in read_turns(path)]
    assert found == [(1, "a"), (4, "b\u2028c")]
    assert count_turns(path) == 2


def test_the_last_line_needs_no_line_break(jsonl: Any) -> None:
    path = jsonl('{"text": "a"}\n{"text": "b"}', end=b"")
    assert [r.turn.text for r in read_turns(path)] == ["a", "b"]
    assert count_turns(path) == 2


BAD_LINES: list[tuple[bytes, type[InputError], str]] = [
    (b'{"text": "a"', InvalidValueError, "JSON"),
    (b'{"text": "a"} {"text": "b"}', InvalidValueError, "JSON"),
    (b'{"text": ' + b"[" * 100_000, InvalidValueError, "JSON"),
    (b'{"text": "a", "time": NaN}', InvalidValueError, "JSON"),
    (b'["a"]', InvalidValueError, "list"),
    (b'{"text": "caf\xe9"}', InvalidTextError, "UTF-8"),
    ('{"text": "é"}'.encode("utf-16"), InvalidTextError, "UTF-8"),
    (b'{"speaker": "user"}', InvalidTextError, "missing"),
    (b'{"text": null}', InvalidTextError, "missing"),
    (b'{"text": 5}', InvalidTextError, "int"),
    (b'{"text": " \\n\\u3000"}', InvalidTextError, "blank"),
    (b'{"text": "a\\u0000b"}', InvalidTextError, "NUL"),
    (b'{"text": "a", "time": "yesterday"}', InvalidTimeError, "yesterday"),
    (b'{"text": "a", "time": 1740916800000}', InvalidTimeError, "milliseconds"),
    (b'{"text": "a", "time": true}', InvalidTimeError, "True"),
    (b'{"text": "a", "session": ""}', InvalidIdError, "session"),
    (b'{"text": "a", "speaker": ["x"]}', InvalidIdError, "speaker"),
    (b'{"text": "a", "id": true}', InvalidIdError, "id"),
    (b'{"text": "a", "metadata": [1]}', InvalidMetadataError, "metadata"),
    (b'{"text": "a", "x": 1, "metadata": {"x": 2}}', InvalidMetadataError, "x"),
]


@pytest.mark.parametrize(("line", "kind", "word"), BAD_LINES)
def test_a_bad_line_is_named_or_skipped(
    jsonl: Any, line: bytes, kind: type[InputError], word: str
) -> None:
    path = jsonl({"text": "first"}, b"", line, {"text": "last"})

    turns = read_turns(path)
    assert next(turns).turn.text == "first"
    with pytest.raises(kind) as caught:
        next(turns)
    assert caught.value.details["file"] == str(path)
    assert caught.value.details["line"] == 3
    assert f"{path}, line 3" in str(caught.value)
    assert word in str(caught.value)

    skipped: list[tuple[int, type[InputError]]] = []
    kept = list(
        read_turns(path, on_error="skip", on_skip=lambda n, e: skipped.append((n, type(e))))
    )
    assert [(r.line, r.turn.text) for r in kept] == [(1, "first"), (4, "last")]
    assert skipped == [(3, kind)]
    assert count_turns(path) == 3
    assert len(list(read_turns(path, on_error="skip"))) == 2  # a report is not required


@pytest.mark.parametrize("name", ["talk.jsonl", "talk"])
def test_a_file_that_says_that_it_is_no_utf_8_is_told_so(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes('{"text": "a 你好"}\n'.encode("utf-16"))
    for call in (sniff, count_turns, lambda path: list(read_turns(path, on_error="skip"))):
        with pytest.raises(
            InvalidTextError, match=r"its text is UTF-16.*UTF-8 is expected"
        ) as caught:
            call(path)
        assert str(path) in caught.value.message


def test_a_line_over_the_limit_is_refused_at_its_exact_size(
    jsonl: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(formats, "MAX_LINE_BYTES", 20)
    fits, over = b'{"text": "123456789"}'[:-3] + b'"}', b'{"text": "123456789"}'
    assert (len(fits), len(over)) == (20, 21)
    path = jsonl(fits, over, b"x" * 200_000, fits, over)
    skipped: list[int] = []
    kept = read_turns(path, on_error="skip", on_skip=lambda n, _: skipped.append(n))
    assert [r.line for r in kept] == [1, 4]
    assert skipped == [2, 3, 5]
    with pytest.raises(InvalidValueError, match=r"line 2: .*longer than 20 bytes"):
        list(read_turns(path))


def test_memory_stays_bounded_whatever_the_size(jsonl: Any) -> None:
    line = json.dumps({"text": "x" * 1000}).encode() + b"\n"
    path = jsonl(line * 10_000, end=b"")  # 10 MB
    tracemalloc.start()
    try:
        assert sum(1 for _ in read_turns(path)) == count_turns(path) == 10_000
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 1_000_000


def test_a_consumers_own_error_is_not_taken_for_a_bad_line(jsonl: Any) -> None:
    turns = read_turns(jsonl({"text": "a"}, {"text": "b"}), on_error="skip")
    next(turns)
    with pytest.raises(InvalidValueError, match="mine"):
        turns.throw(InvalidValueError("mine"))  # type: ignore[attr-defined]


@given(st.text())
def test_any_text_comes_back_as_it_was_or_is_refused(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.jsonl"
    path.write_text(json.dumps({"text": text}) + "\n")
    kept = [r.turn.text for r in read_turns(path, on_error="skip")]
    assert kept == ([] if not text.strip() or "\0" in text else [text])


MARKS = (b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff", b"\x841\x953")


@given(st.binary(max_size=200))
def test_any_bytes_give_turns_or_typed_errors(
    tmp_path_factory: pytest.TempPathFactory, raw: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.bin"
    path.write_bytes(raw)
    lines: list[int] = []
    try:
        turns = read_turns(
            path, format="jsonl", on_error="skip", on_skip=lambda n, _: lines.append(n)
        )
        kept = list(turns)
    except InvalidTextError:
        assert raw.startswith(MARKS)
        return
    assert len(kept) + len(lines) == count_turns(path, format="jsonl")
    try:
        found = sniff(path)
        list(read_turns(path, format=found, on_error="skip"))
        list(read_questions(path))
    except InputError as error:
        assert error.details["file"] == str(path)  # noqa: PT017 (no error is fine too)


# -- files and arguments ---------------------------------------------------------------


def test_arguments_are_checked_before_the_first_turn(jsonl: Any, tmp_path: Path) -> None:
    path = jsonl({"text": "a"})
    with pytest.raises(InvalidValueError, match="csv"):
        read_turns(path, format="csv")  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="ignore"):
        read_turns(path, on_error="ignore")  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="absent"):
        read_turns(tmp_path / "absent.jsonl")


@pytest.mark.parametrize("name", ["absent.jsonl", "absent.json", ".", "a\0b"])
def test_a_file_that_cannot_be_read_is_a_typed_error(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    for call in (
        sniff,
        count_turns,
        lambda p: list(read_turns(p, format="jsonl", on_error="skip")),
        lambda p: list(read_turns(p, format="locomo", on_error="skip")),
        lambda p: list(read_questions(p)),
    ):
        with pytest.raises(InvalidValueError, match="cannot be read"):
            call(path)


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.jsonl", '[{"text": 1}]', "jsonl"),
        ("a.ndjson", "nonsense", "jsonl"),
        ("a.json", "", "jsonl"),
        ("a.txt", '\n\n{"text": "a"}\n{"text": "b"}', "jsonl"),
        ("a.txt", '\ufeff{"text": "a"}', "jsonl"),
        ("a.json", '{"conversation": "one", "text": "a"}', "jsonl"),
        ("a.json", '\ufeff[{"conversation": {}}]', "locomo"),
        ("a.json", "[\n", "locomo"),
        ("a.json", '{"conversation": {}}', "locomo"),
        ("a.json", '{\n "conversation": {}\n}', "locomo"),
    ],
)
def test_sniff(tmp_path: Path, name: str, content: str, expected: str) -> None:
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    assert sniff(path) == expected


def test_sniff_refuses_what_is_neither(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("\nAna: hello\n")
    with pytest.raises(InvalidValueError, match="line 2"):
        sniff(path)


def test_a_locomo_file_on_one_very_long_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(formats, "MAX_LINE_BYTES", 50)
    path = tmp_path / "long.json"
    path.write_text(json.dumps(SAMPLE))
    assert sniff(path) == "locomo"
    assert count_turns(path) == 4


# -- locomo ----------------------------------------------------------------------------

SAMPLE: dict[str, Any] = {
    "sample_id": "talk-1",
    "conversation": {
        "speaker_a": "Bo",
        "speaker_b": "Cy",
        "session_10_date_time": "12:05 am on 1 March, 2024",
        "session_10": [{"speaker": "Bo", "dia_id": "D10:1", "text": "Ten."}],
        "session_2_date_time": "12:30 pm on 29 February, 2024",
        "session_2": [
            {"speaker": "Bo", "dia_id": "D2:1", "text": "Hi Cy"},
            {
                "speaker": "Cy",
                "dia_id": "D2:2",
                "text": "Look!",
                "blip_caption": "a red kite",
                "img_url": ["https://example.org/kite.jpg"],
            },
            {"speaker": "Cy", "dia_id": "D2:3", "text": "", "blip_caption": ["a cat", "a mat"]},
        ],
        "session_3_date_time": "1:00 pm on 2 March, 2024",
        "session_4": [],
        "session_5": None,
    },
    "qa": [
        {"question": "Kite?", "answer": 7, "category": 4, "evidence": ["D2:2"]},
        {"question": "Odd?", "answer": "x", "category": 1, "evidence": ["D2:1; D10:01", "D"]},
        {"question": "Colon?", "answer": "x", "category": 2, "evidence": ["D:2:3", "D2:3"]},
        {"question": "Gone?", "answer": "x", "category": 3, "evidence": ["D9:9", ""]},
        {"question": "Trap?", "adversarial_answer": "x", "category": 5, "evidence": "D2:1"},
        {"question": "None?", "category": 5},
    ],
}


@pytest.fixture
def sample(tmp_path: Path) -> Any:
    """Return a function that writes a value as a LoCoMo file."""

    def write(value: object, name: str = "file.json") -> Path:
        path = tmp_path / name
        path.write_text(json.dumps(value, ensure_ascii=False, indent=1), encoding="utf-8")
        return path

    return write


def test_sessions_by_number_with_captions_and_dates(sample: Any) -> None:
    path = sample([SAMPLE])
    records = list(read_turns(path))
    assert [(r.line, r.turn.external_id, r.turn.session) for r in records] == [
        (1, "D2:1", "session_2"),
        (2, "D2:2", "session_2"),
        (3, "D2:3", "session_2"),
        (4, "D10:1", "session_10"),
    ]
    assert {r.conversation for r in records} == {"talk-1"}
    assert [r.turn.text for r in records] == [
        "Hi Cy",
        "Look! [shared image: a red kite]",
        "[shared image: a cat; a mat]",
        "Ten.",
    ]
    assert [(r.turn.speaker, r.turn.role) for r in records][:2] == [("Bo", "user"), ("Cy", "user")]
    dates = [datetime.fromtimestamp(r.turn.said_at or 0, UTC) for r in records]
    assert dates[0] == dates[2] == datetime(2024, 2, 29, 12, 30, tzinfo=UTC)
    assert dates[3] == datetime(2024, 3, 1, 0, 5, tzinfo=UTC)
    assert count_turns(path) == 4


def test_several_conversations_keep_apart(sample: Any) -> None:
    unnamed = {"conversation": SAMPLE["conversation"]}
    path = sample([SAMPLE, {**SAMPLE, "sample_id": 2}, unnamed])
    records = list(read_turns(path))
    names = ["talk-1"] * 4 + ["2"] * 4 + ["file-3"] * 4
    assert [(r.conversation, r.line) for r in records] == list(
        zip(names, range(1, 13), strict=True)
    )
    assert {q.conversation for q in read_questions(path)} == {"talk-1", "2"}


def test_one_sample_alone(sample: Any) -> None:
    assert len(list(read_turns(sample(SAMPLE)))) == 4


def test_questions_with_repaired_evidence(sample: Any) -> None:
    questions = list(read_questions(sample([SAMPLE])))
    assert [(q.number, q.category, q.answer, q.evidence) for q in questions] == [
        (0, 4, "7", ("D2:2",)),
        (1, 1, "x", ("D2:1", "D10:1")),
        (2, 2, "x", ("D2:3",)),
        (3, 3, "x", ()),
        (4, 5, None, ("D2:1",)),
        (5, 5, None, ()),
    ]


@pytest.mark.parametrize(
    ("date", "expected"),
    [
        ("1:56 pm on 8 May, 2023", "2023-05-08T13:56"),
        ("12:00 am on 31 December, 2023", "2023-12-31T00:00"),
        ("12:59 PM on 1 january 2023", "2023-01-01T12:59"),
        ("13:00 pm on 8 May, 2023", None),
        ("0:10 am on 8 May, 2023", None),
        ("1:60 pm on 8 May, 2023", None),
        ("1:56 pm on 30 February, 2023", None),
        ("1:56 pm on 8 Mai, 2023", None),
        ("2023-05-08", None),
        (None, None),
    ],
)
def test_session_dates(sample: Any, date: str | None, expected: str | None) -> None:
    turn = {"speaker": "Bo", "dia_id": "D1:1", "text": "a"}
    path = sample({"conversation": {"session_1": [turn, turn], "session_1_date_time": date}})
    if expected:
        assert {r.turn.said_at for r in read_turns(path)} == {parse_time(expected)}
        return
    with pytest.raises(InvalidTimeError, match="line 1: the session's date"):
        list(read_turns(path))
    skipped: list[int] = []
    assert not list(read_turns(path, on_error="skip", on_skip=lambda n, _: skipped.append(n)))
    assert skipped == [1, 2]


@pytest.mark.parametrize(
    ("turn", "kind"),
    [
        ("hello", InvalidValueError),
        ({"speaker": "Bo"}, InvalidTextError),
        ({"speaker": "Bo", "text": 4, "blip_caption": "x"}, InvalidTextError),
        ({"text": "a"}, InvalidIdError),
        ({"speaker": "Bo", "text": "a\ud800"}, InvalidTextError),
    ],
)
def test_a_bad_turn_is_named_or_skipped(
    tmp_path: Path, turn: object, kind: type[InputError]
) -> None:
    good = {"speaker": "Bo", "text": "a"}
    talk = {"session_1": [good, turn, good], "session_1_date_time": "1:00 pm on 8 May, 2023"}
    path = tmp_path / "turns.json"
    path.write_text(json.dumps({"conversation": talk}))
    with pytest.raises(kind) as caught:
        list(read_turns(path))
    assert (caught.value.details["file"], caught.value.details["line"]) == (str(path), 2)
    assert [r.line for r in read_turns(path, on_error="skip")] == [1, 3]


@pytest.mark.parametrize(
    ("raw", "kind", "line"),
    [
        (b'[\n{"conversation": {},}\n]', InvalidValueError, 2),
        (b'[\n\n{"conversation": "\xe9"}]', InvalidTextError, 3),
        (b"[" * 100_000, InvalidValueError, 1),
        (b'{"a": ' + b"9" * 5000 + b"}", InvalidValueError, 1),
        (b"[1]", InvalidValueError, None),
        (b'[{"conversation": []}]', InvalidValueError, None),
        (b'[{"conversation": {"session_1": {}}}]', InvalidValueError, None),
        (b'[{"conversation": {}, "qa": "x"}]', InvalidValueError, None),
        (b'[{"conversation": {}, "sample_id": ""}]', InvalidValueError, None),
    ],
)
def test_a_broken_document_is_raised_even_when_skipping(
    tmp_path: Path, raw: bytes, kind: type[InputError], line: int | None
) -> None:
    path = tmp_path / "broken.json"
    path.write_bytes(raw)
    for call in (
        lambda: list(read_turns(path, format="locomo", on_error="skip")),
        lambda: list(read_questions(path)),
        lambda: count_turns(path, format="locomo"),
    ):
        with pytest.raises(kind) as caught:
            call()
        assert caught.value.details["file"] == str(path)
        assert caught.value.details.get("line") == line


def test_a_document_over_the_limit(sample: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locomo, "MAX_DOCUMENT_BYTES", 100)
    with pytest.raises(InvalidValueError, match="longer than 100 bytes"):
        count_turns(sample([SAMPLE]))


@pytest.mark.parametrize("qa", ["x", {"category": 1}, {"question": "x"}])
def test_a_broken_question(sample: Any, qa: object) -> None:
    with pytest.raises(InvalidValueError, match="question 0 of t"):
        list(read_questions(sample({"sample_id": "t", "conversation": {}, "qa": [qa]})))


# -- times -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("2025-03-02T12:00:00Z", NOON),
        ("2025-03-02T12:00:00", NOON),
        (" 2025-03-02 12:00 ", NOON),
        ("2025-03-02T14:00:00+02:00", NOON),
        ("2025-03-02T12:00:00.25Z", NOON + 0.25),
        ("2025-03-02", NOON - 43_200),
        (datetime(2025, 3, 2, 12), NOON),  # noqa: DTZ001 (naive on purpose)
        (datetime(2025, 3, 2, 4, tzinfo=timezone(timedelta(hours=-8))), NOON),
        (0, 0.0),
        (-1.5, -1.5),
        ("1740916800", NOON),
        ("-1.5", -1.5),
        ("20250302.0", 20_250_302.0),
        ("99999999", 99_999_999.0),
    ],
)
def test_parse_time(value: object, seconds: float) -> None:
    assert parse_time(value) == seconds


@pytest.mark.parametrize(
    "value",
    [
        *("", "noon", "2025-13-01", "2025-02-30", "2025-03-02T25:00", "nan", "inf", "1e5"),
        *(math.nan, math.inf, -math.inf, 1e300, 10**400, "9" * 400, 1_740_916_800_000),
        *(True, None, [], {}, b"2025-03-02", "20250302", "0000-01-01", -1e12),
    ],
)
def test_parse_time_refuses(value: object) -> None:
    with pytest.raises(InvalidTimeError):
        parse_time(value)


@given(
    st.datetimes(min_value=datetime(2, 1, 1), max_value=datetime(9998, 1, 1)),  # noqa: DTZ001
    st.integers(-14 * 60, 14 * 60),
)
def test_parse_time_is_the_moment_whatever_the_zone(moment: datetime, minutes: int) -> None:
    aware = moment.replace(tzinfo=timezone(timedelta(minutes=minutes)))
    assert parse_time(aware.isoformat()) == aware.timestamp()
    assert parse_time(moment.isoformat()) == moment.replace(tzinfo=UTC).timestamp()


# -- the demo data ---------------------------------------------------------------------


@pytest.mark.parametrize("language", ["english", "chinese"])
def test_demo_conversation_and_questions_fit(language: str) -> None:
    part = json.loads((DATA / "questions.json").read_text(encoding="utf-8"))[language]
    path = DATA / part["file"]
    turns = [record.turn for record in read_turns(path)]
    by_id = {turn.external_id: turn for turn in turns}
    assert len(by_id) == len(turns) == count_turns(path) >= 70
    assert len({turn.session for turn in turns}) >= 8
    assert {"user", "assistant"} < {turn.speaker for turn in turns}  # and somebody else
    times = [turn.said_at or 0.0 for turn in turns]
    assert times == sorted(times)
    assert times[-1] - times[0] > 60 * 86_400

    questions = part["questions"]
    assert len(questions) >= 12
    assert {q["kind"] for q in questions} == {
        *("single", "multi-hop", "time", "changed-now", "changed-before", "preference"),
    }
    for question in questions:
        evidence = [by_id[turn_id] for turn_id in question["evidence"]]
        said = " ".join(turn.text for turn in evidence).casefold()
        assert all(word.casefold() in said for word in question["keywords"]), question
        assert not any(word.casefold() in said for word in question.get("outdated", ())), question
        asked_at = parse_time(question["as_of"]) if "as_of" in question else times[-1]
        assert all((turn.said_at or 0.0) <= asked_at for turn in evidence), question
        assert ("as_of" in question) == (question["kind"] == "changed-before")

"""ChatGPT and Claude exports: what becomes a turn, what is left out, and what is reported."""

from __future__ import annotations

import json
import tracemalloc
import zipfile
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from reverie.formats import TurnRecord
from reverie.importers import BadEntry, Entry, read, sniff
from reverie.importers.elements import Splitter, elements
from reverie.importers.records import Options
from reverie.memory_graph.errors import InvalidTextError, InvalidValueError

ZH = "我搬到了奥斯陆。"


def node(
    name: str, parent: str | None, role: str = "user", parts: Any = None, **fields: Any
) -> dict[str, Any]:
    message = {
        "id": name,
        "author": {"role": role},
        "create_time": 1_700_000_000.5,
        "content": {"content_type": "text", "parts": [name] if parts is None else parts},
        "recipient": "all",
        **fields,
    }
    return {"id": name, "message": message, "parent": parent, "children": []}


def talk(*nodes: dict[str, Any], current: str = "", **fields: Any) -> dict[str, Any]:
    root: dict[str, Any] = {"id": "root", "message": None, "parent": None, "children": []}
    mapping = {n["id"]: n for n in [root, *nodes]}
    for n in nodes:
        if n["parent"] in mapping:
            mapping[n["parent"]]["children"].append(n["id"])
    return {
        "title": "On Oslo 关于奥斯陆",
        "create_time": 1_600_000_000,
        "mapping": mapping,
        "current_node": current or (nodes[-1]["id"] if nodes else "root"),
        "conversation_id": "c-1",
        **fields,
    }


def write(tmp_path: Path, document: object, name: str = "conversations.json") -> Path:
    path = tmp_path / name
    if isinstance(document, bytes):
        path.write_bytes(document)
    else:
        path.write_text(json.dumps(document, ensure_ascii=False), encoding="utf-8")
    return path


def split(entries: Any) -> tuple[list[TurnRecord], list[BadEntry]]:
    every: list[Entry] = list(entries)
    return (
        [e for e in every if isinstance(e, TurnRecord)],
        [e for e in every if isinstance(e, BadEntry)],
    )


# -- ChatGPT ----------------------------------------------------------------------------


def test_the_branch_that_is_shown_is_read_and_the_rest_is_counted(tmp_path: Path) -> None:
    hidden = {"is_visually_hidden_from_conversation": True}
    spoken = {"content_type": "audio_transcription", "text": "spoken"}
    image = {"content_type": "image_asset_pointer", "asset_pointer": "x"}
    multi = {"content_type": "multimodal_text", "parts": [image, "look", spoken]}
    document = [
        talk(
            node("sys", "root", "system", [""]),
            node("secret", "sys", metadata=hidden),
            node("q", "secret", parts=["I live in Oslo.", ZH]),
            node("given up", "q", "assistant"),
            node("call", "q", "assistant", recipient="python"),
            node("result", "call", "tool"),
            node("think", "result", "assistant", content={"content_type": "thoughts"}),
            node("a", "think", "assistant", ["Nice \ue200cite\ue202turn0\ue201place."]),
            node("pic", "a", content=multi, create_time=None),
            node("empty", "pic", "assistant", ["  "]),
            current="empty",
        )
    ]
    options = Options()
    turns, bad = split(read(write(tmp_path, document), options=options))
    assert bad == []
    assert [(t.turn.text, t.turn.role, t.turn.speaker) for t in turns] == [
        (f"I live in Oslo.\n{ZH}", "user", None),
        ("Nice place.", "assistant", "assistant"),
        ("look\nspoken", "user", None),
    ]
    assert {t.turn.session for t in turns} == {"c-1"}
    assert {t.conversation for t in turns} == {"c-1"}
    assert [t.turn.external_id for t in turns] == ["c-1/q", "c-1/a", "c-1/pic"]
    assert [t.turn.said_at for t in turns] == [1_700_000_000.5] * 3  # the last: of the one before
    assert turns[0].turn.metadata == {"source": "chatgpt", "title": "On Oslo 关于奥斯陆"}
    assert options.left_out == Counter(
        {
            "system messages": 1,
            "hidden messages": 1,
            "messages of other branches": 1,
            "calls of tools": 1,
            "tool messages": 1,
            "reasoning": 1,
            "images and files": 1,
            "messages without text": 1,
        }
    )


def test_a_tree_that_is_broken_costs_no_more_than_it_must(tmp_path: Path) -> None:
    no_parent = node("b", "root") | {"parent": 7}  # its parent still says that it is its child
    cut = talk(node("a", "root"), no_parent, node("c", "b", "assistant"), current="c")
    cut["mapping"]["a"]["children"] = ["b"]
    cut["mapping"]["gone"] = [1]
    circle = talk(node("x", "y"), node("y", "x"), current="y", conversation_id="c-2")
    lost = talk(node("p", "root"), node("q", "p"), current="gone", conversation_id="c-3")
    strange: list[Any] = [{"title": "no mapping"}, 7, "text", None, {"mapping": []}]
    turns, bad = split(read(write(tmp_path, [cut, circle, lost, *strange]), format="chatgpt"))
    assert [t.turn.text for t in turns] == ["a", "b", "c", "x", "y", "p", "q"]
    assert [b.number for b in bad] == [1, 2, 4, 5, 6, 7, 8]
    assert "message gone" in bad[0].error.message
    assert "circle" in bad[1].error.message
    assert all(isinstance(b.error, InvalidValueError) for b in bad)


@pytest.mark.parametrize(
    ("raw", "numbers", "texts"),
    [
        (b'[GOOD, {"mapping": \xff}, GOOD]', [2], 2),  # no UTF-8
        (b'[GOOD, {"mapping" 1}, GOOD]', [2], 2),
        (b"[GOOD, GOO", [2], 1),  # cut short
        (b"[GOOD, " + b"[" * 100_000 + b"]" * 100_000 + b", GOOD]", [2], 2),
        (b'[GOOD, {"mapping": {"a": ' + b"[" * 9000 + b"]" * 9000 + b"}}, GOOD]", [2], 2),
        (b"[GOOD}, GOOD]", [1], 1),
        (b"\xef\xbb\xbf [GOOD, GOOD] and more", [3], 2),
        (b"GOOD\nGOOD\n", [], 2),  # an object a line
        (b"GOOD", [], 1),
    ],
)
def test_broken_entries_are_told_by_number_and_cost_themselves_alone(
    tmp_path: Path, raw: bytes, numbers: list[int], texts: int
) -> None:
    good = json.dumps(talk(node("hello", "root")), ensure_ascii=False).encode()
    path = write(tmp_path, raw.replace(b"GOOD", good))
    turns, bad = split(read(path, format="chatgpt"))
    assert [b.number for b in bad] == numbers
    assert len(turns) == texts
    for one in bad:
        assert one.error.message.startswith(f"conversations.json, conversation {one.number}: ")


def test_a_message_that_is_no_text_costs_itself_alone(tmp_path: Path) -> None:
    document = json.dumps(
        [
            talk(
                node("a", "root"),
                node("b", "a", parts=["B!"]),
                node("c", "b", parts=["half of a pair: \ud83d"]),
                node("e", "c", parts=["nothing: \0"]),
                node("d", "e"),
                title="\ud83d",
            )
        ]
    )
    raw = document.encode().replace(b'"B!"]', b'"\xff"]')
    turns, bad = split(read(write(tmp_path, raw), format="chatgpt"))
    assert [t.turn.text for t in turns] == ["a", "d"]
    assert [b.where.rpartition("/")[2] for b in bad] == ["b", "c", "e"]
    assert isinstance(bad[2].error, InvalidTextError)
    assert "no UTF-8" in bad[0].error.message


@pytest.mark.parametrize("raw", [b"", b"  ", b"no json", b"[1, 2]", b"{", b"\x00\x01", b"[[]]"])
def test_nothing_readable_is_an_error(tmp_path: Path, raw: bytes) -> None:
    entries = read(write(tmp_path, raw), format="chatgpt")
    with pytest.raises(InvalidValueError, match="nothing in it can be read as chatgpt"):
        list(entries)


def test_an_export_without_conversations_is_none(tmp_path: Path) -> None:
    assert list(read(write(tmp_path, []), format="chatgpt")) == []


def test_an_entry_over_its_bound_is_passed_over_and_never_held() -> None:
    splitter = Splitter(max_bytes=1000)
    tracemalloc.start()
    found = [*splitter.feed(b'["a", "')]
    for _ in range(300):
        found += splitter.feed(b"x" * 10_000)
    found += splitter.feed(b'", "c"]')
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [(e.number, e.data.strip(), bool(e.fault)) for e in found] == [
        (1, b'"a"', False),
        (2, b"", True),
        (3, b'"c"', False),
    ]
    assert peak < 200_000


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6) | st.sampled_from('"\\]},[{'),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


@given(
    st.lists(json_values, max_size=4),
    st.integers(1, 40),
    st.sampled_from([{}, {"ensure_ascii": False}, {"indent": 1}]),
)
def test_any_array_is_split_as_a_parser_reads_it(
    document: list[Any], step: int, form: dict[str, Any]
) -> None:
    text = json.dumps(document, **form)
    raw = text.encode("utf-8", "replace")
    parts = [raw[i : i + step] for i in range(0, len(raw), step)]
    found = list(elements(parts))
    assert [json.loads(e.data) for e in found] == json.loads(raw)
    assert not any(e.fault for e in found)


@given(st.binary(max_size=80), st.integers(1, 9))
def test_any_bytes_are_split_without_a_fault_of_ours(raw: bytes, step: int) -> None:
    found = list(elements(raw[i : i + step] for i in range(0, len(raw), step)))
    assert [e.number for e in found] == sorted(e.number for e in found)
    assert sum(len(e.data) for e in found) <= len(raw)


@given(json_values)
def test_any_document_gives_entries_or_one_error(
    tmp_path_factory: pytest.TempPathFactory, value: Any
) -> None:
    path = tmp_path_factory.mktemp("any") / "conversations.json"
    message = node("a", "root") | {"message": value}
    document = [talk(message), {"chat_messages": [value, {"sender": "human", "text": value}]}]
    path.write_text(json.dumps(document))
    for name in ("chatgpt", "claude"):
        with suppress(InvalidValueError):  # nothing in it can be read
            for entry in read(path, format=name):
                assert isinstance(entry, TurnRecord | BadEntry)


def test_ids_stay_whatever_they_are(tmp_path: Path) -> None:
    long = "x" * 600
    document = [talk(node(long, "root"), conversation_id="\n")]
    first, _ = split(read(write(tmp_path, document), format="chatgpt"))
    again, _ = split(read(write(tmp_path, document), format="chatgpt"))
    assert first == again
    (turn,) = first
    assert turn.turn.session.startswith("id-")
    assert len(turn.turn.external_id or "") < 100


# -- Claude -----------------------------------------------------------------------------


def test_claude(tmp_path: Path) -> None:
    blocks = [
        {"type": "thinking", "thinking": "hm"},
        {"type": "text", "text": "Hello."},
        {"type": "tool_use", "name": "x"},
        {"type": "text", "text": "你好。"},
    ]
    document = [
        {
            "uuid": "k-1",
            "name": "Greeting",
            "created_at": "2024-05-01T10:00:00Z",
            "chat_messages": [
                {"uuid": "1", "sender": "human", "text": "Hi", "content": [],
                 "created_at": "2024-05-01T10:00:01.5Z", "attachments": [{"file_name": "a.txt"}]},
                {"uuid": "2", "sender": "assistant", "text": "old form", "content": blocks,
                 "created_at": "no time"},
                {"uuid": "3", "sender": "robot", "text": "?"},
                {"sender": "human", "text": "Bye"},
            ],
        }
    ]  # fmt: skip
    options = Options()
    path = write(tmp_path, document)
    assert sniff(path) == "claude"
    turns, bad = split(read(path, options=options))
    assert [(t.turn.text, t.turn.role) for t in turns] == [
        ("Hi", "user"),
        ("Hello.\n你好。", "assistant"),
        ("Bye", "user"),
    ]
    assert [t.turn.external_id for t in turns] == ["k-1/1", "k-1/2", "k-1/number 4"]
    assert [t.turn.said_at for t in turns] == [1714557601.5] * 3
    assert [b.where for b in bad] == ["conversations.json, conversation 1, message 3"]
    assert options.left_out == Counter(
        {"reasoning": 1, "calls of tools": 1, "images and files": 1, "times that cannot be read": 1}
    )


def test_claude_reads_the_last_branch_where_it_is_named(tmp_path: Path) -> None:
    messages = [
        {"uuid": name, "sender": "human", "text": name, "parent_message_uuid": parent}
        for name, parent in (("a", "0"), ("b", "a"), ("c", "a"), ("d", "c"))
    ]
    document = [{"uuid": "k", "chat_messages": messages, "current_leaf_message_uuid": "d"}]
    turns, _ = split(read(write(tmp_path, document), format="claude"))
    assert [t.turn.text for t in turns] == ["a", "c", "d"]


# -- zip --------------------------------------------------------------------------------


def zipped(tmp_path: Path, members: dict[str, bytes], name: str = "export.zip") -> Path:
    path = tmp_path / name
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, data in members.items():
            archive.writestr(member, data)
    return path


def test_a_zip_is_read_in_the_order_of_its_parts_and_names_become_no_path(tmp_path: Path) -> None:
    def one(name: str) -> bytes:
        return json.dumps([talk(node(name, "root"), conversation_id=name)]).encode()

    path = zipped(
        tmp_path,
        {
            "../../etc/conversations-001.json": one("second"),
            "/abs/conversations-000.json": one("first"),
            "user.json": b"{}",
            "chat.html": b"<html>",
            "conversations.json/x.txt": b"?",
        },
    )
    assert sniff(path) == "chatgpt"
    done: list[tuple[int, int]] = []
    turns, bad = split(read(path, progress=lambda *at: done.append(at)))
    assert [t.turn.text for t in turns] == ["first", "second"]
    assert bad == []
    assert done[-1][0] == done[-1][1] == len(one("first")) + len(one("second"))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["export.zip"]


def test_a_bomb_is_stopped_and_what_stands_before_it_is_kept(tmp_path: Path) -> None:
    good = json.dumps(talk(node("hello", "root"))).encode()
    path = zipped(tmp_path, {"conversations.json": b"[" + good + b"," + b" " * 60_000_000 + b"1]"})
    assert path.stat().st_size < 100_000
    turns, bad = split(read(path, format="chatgpt"))
    assert [t.turn.text for t in turns] == ["hello"]
    assert "has grown" in bad[-1].error.message


def test_zips_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match=r"no conversations\.json"):
        read(zipped(tmp_path, {"a.txt": b"x"}), format="chatgpt")
    damaged = zipped(tmp_path, {"conversations.json": json.dumps([1] * 9999).encode()})
    raw = bytearray(damaged.read_bytes())
    raw[60:64] = b"\xff\xff\xff\xff"
    damaged.write_bytes(raw)
    with pytest.raises(InvalidValueError, match="cannot be read"):
        list(read(damaged, format="chatgpt"))
    encrypted = zipped(tmp_path, {"conversations.json": b"[]"}, "locked.zip")
    raw = bytearray(encrypted.read_bytes())
    raw[raw.rindex(b"PK\x01\x02") + 8] |= 1
    encrypted.write_bytes(raw)
    with pytest.raises(InvalidValueError, match="encrypted"):
        read(encrypted, format="chatgpt")


def test_files_and_arguments_that_cannot_be(tmp_path: Path) -> None:
    path = write(tmp_path, [])
    for given_, message in (
        ({"format": "xml"}, "format is one of"),
        ({"format": "chatgpt", "timezone": "../../etc/passwd"}, "no time zone"),
        ({"format": "chatgpt", "timezone": "Nowhere/Town"}, "no time zone"),
        ({"format": "chatgpt", "date_order": "ydm"}, "date_order"),
        ({"format": "chatgpt", "speakers": ["x"]}, "mapping"),
        ({"format": "chatgpt", "speakers": {"": "x"}}, "empty"),
    ):
        with pytest.raises(ValueError, match=message):
            read(path, **given_)
    for missing in (tmp_path / "none", tmp_path, Path("a\0b")):
        with pytest.raises(InvalidValueError):
            read(missing, format="chatgpt")
    with pytest.raises(InvalidValueError, match="known export"):
        sniff(path)

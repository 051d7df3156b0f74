"""What a query may say, without the engine."""

from __future__ import annotations

import re

import pytest
from hostile_cypher import refused
from hypothesis import given, settings, strategies as st

from reverie import errors
from reverie.cypher.tokens import _REFUSED, FUNCTIONS, parse

FINE = [
    "MATCH (m:Memory) RETURN m.text",
    "match (n) return n limit 3;",
    "MATCH (a)-[r:RELATION*1..3]->(b) WHERE a.name <> 'x' AND NOT (b.name = \"y\") RETURN a, b",
    "OPTIONAL MATCH (a)<-[:RELATED_TO]-(b) RETURN count(DISTINCT a), collect(b.name)[1..2]",
    "UNWIND [1, 2.5, -3e2] AS x WITH x ORDER BY x DESC SKIP 1 RETURN sum(x) AS total",
    "MATCH (m:Memory) WHERE EXISTS { MATCH (m)-[:IN_TOPIC]->(t) } RETURN COUNT { MATCH (m) }",
    "RETURN CASE WHEN true THEN 'a' ELSE 'b' END UNION ALL RETURN 'c'",
    "MATCH p = (a)-[* SHORTEST 1..4]-(b) RETURN length(p), nodes(p)",
    "CALL show_tables() RETURN *",
    "MATCH (e:Entity {name: $name}) RETURN e.`name` AS `书名`",
    "RETURN 'CREATE (:Topic)', \"; DROP TABLE Memory\", '// x', '/* y */', 'it\\'s', '\\\\'",
    "MATCH (m) WHERE m.text CONTAINS '咖啡' RETURN m",
    "RETURN list_transform([1, 2], x -> x + 1), abs(-1) % 2 ^ 3 / 4",
]


@pytest.mark.parametrize("query", FINE)
def test_reading_passes_and_is_read_the_same_again(query: str) -> None:
    once = parse(query)
    again = parse(once.text())
    assert [(t.kind, t.value or t.text) for t in again.tokens] == [
        (t.kind, t.value or t.text) for t in once.tokens
    ]


def test_hostile_queries_are_refused() -> None:
    cases = list(dict.fromkeys(refused("/tmp/x")))  # noqa: S108 (no file is made)
    assert len(cases) >= 300
    passed = []
    for case in cases:
        try:
            parse(case)
        except errors.QueryError:
            continue
        passed.append(case)
    assert passed == []


@pytest.mark.parametrize("value", [None, 3, b"RETURN 1", ["RETURN 1"], object()])
def test_what_is_no_text_is_refused(value: object) -> None:
    with pytest.raises(errors.QueryError):
        parse(value)


def test_comments_are_left_out_and_strings_are_written_anew() -> None:
    query = "RETURN/* 'x */\"it's \\u4e2d\"// '\n, 'a\\\\'"
    assert parse(query).text() == "RETURN 'it\\'s 中' , 'a\\\\'"
    assert parse("RETURN 'ann'").text(str.upper) == "RETURN 'ANN'"


def test_parameters_are_named() -> None:
    assert parse("RETURN $a, '$b', `$c`, $d_1").parameters == {"a", "d_1"}


_PIECES = st.sampled_from(
    [*(w.upper() for w in sorted(_REFUSED)), *sorted(FUNCTIONS)[:20], "MATCH", "RETURN", "WITH",
     "'", '"', "`", "\\", "//", "/*", "*/", "\n", " ", ";", "(", ")", "[", "]", "{", "}", "$x",
     "a", ".", "1", "..", "-", "->", "<", ":", "|", "中", "\u200b", "\x85"]
)  # fmt: skip
_STRINGS = re.compile(r"'(?:[^'\\]|\\.)*'|`[^`]*`", re.DOTALL)


@settings(max_examples=300, deadline=None)
@given(st.lists(_PIECES, max_size=14).map("".join), st.text(max_size=12))
def test_whatever_passes_says_no_refused_word_outside_of_quotes(soup: str, more: str) -> None:
    for query in (f"RETURN {soup}", f"RETURN {soup} {more}", f"MATCH (n) {more}{soup} RETURN n"):
        try:
            checked = parse(query)
        except errors.QueryError:
            continue
        text = checked.text()
        assert parse(text).text() == text
        bare = _STRINGS.sub(" ", text)
        assert bare.isascii()
        assert ";" not in bare
        assert not {w.lower() for w in re.findall(r"[A-Za-z_]\w*", bare)} & (
            _REFUSED - {p.lower() for p in checked.parameters}
        )

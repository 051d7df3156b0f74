"""GBNF that llama.cpp could not follow is refused; JSON schemas become GBNF that it can."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from reverie.memory_graph.errors import InvalidValueError
from reverie.models.grammar import MAX_CHAIN, MAX_DEPTH, MAX_REPEAT, check_grammar
from reverie.models.grammar_json import json_grammar, literal

BAD = {
    "": "no rule 'root'",
    'r ::= "a"': "no rule 'root'",
    'root = "a"': "not understood",
    'root ::= "a" ;': "not understood",
    "root ::= x_y": "not understood",
    'root ::= "a': "not understood",
    "root ::= [a-": "not understood",
    'root ::= "a"\0': "NUL",
    'root ::= "\ud800"': "half a character",
    'root ::= "\\ud800"': "no character",
    'root ::= "\\U00110000"': "no character",
    'root ::= "\\x00"': "no character",
    'root ::= "\\q"': "unknown escape",
    "root ::= [\\-a]": "unknown escape",
    "root ::= []": "allows no character",
    "root ::= [^]": "allows no character",
    "root ::= [z-a]": "backwards",
    "root ::= [国-中]": "backwards",
    'root ::= "a"\nroot ::= "b"': "given twice",
    'root ::= "a" b ::= "c"': "line of its own",
    'root ::= ("a"': "not closed",
    'root ::= "a")': "out of place",
    'root ::= ("a" | ("b")': "not closed",
    "root ::= *": "nothing before",
    'root ::= ""*': "nothing before",
    'root ::= "a" | +': "nothing before",
    'root ::= "a"{3,2}': "allows nothing",
    'root ::= "a"{0}': "allows nothing",
    f'root ::= "a"{{{MAX_REPEAT + 1}}}': "more than",
    f'root ::= "a"{{0,{MAX_REPEAT + 1}}}': "more than",
    'root ::= "a"{,3}': "not understood",
    'root ::= "a" <think>': "not understood",
    "root ::= b": "no rule is named 'b'",
    'root ::= ("a" (b{2})?)': "no rule is named 'b'",
    'root ::= root "a" | "b"': "comes to itself",
    'root ::= a\na ::= b "x" | "y"\nb ::= a "z"': "comes to itself",
    'root ::= "x"? root "a" | "b"': "comes to itself",
    'root ::= e root "a" | "b"\ne ::= "" | "x"': "comes to itself",
    'root ::= (root | "b") "a" | "c"': "comes to itself",
    'root ::= ("a"?)*': "never ends",
    'root ::= (e e)+\ne ::= "a" | ""': "never ends",
    'root ::= "x" | "y" (("a"* | "b"))*': "never ends",
    'root ::= "a" root': "never be finished",
    'root ::= "a" | b\nb ::= "c" b': "never be finished",
    "root ::= " + "(" * (MAX_DEPTH + 1) + '"a"' + ")" * (MAX_DEPTH + 1): "parentheses",
    'root ::= (("ab"{200}){200})': "expands",
}
GOOD = (
    'root ::= "a"',
    'root ::= ""',
    'root ::=\n  # a comment\n  [a-z]+ | "b"\n',
    'root ::= ("yes" | "no") # " ( [ {\r\n',
    'root ::= (\n  "a"\n  | "b"\n)\n\n\n',
    'root ::= "a" |\n "b"',
    'root ::= item ("," item){0,7}\nitem ::= [^,\\n\\x01-\\x1f]{1,40} | "\\"" "\\u4e2d" "\\\\"',
    'root ::= "(" root ")" | "x"',  # recursion that reads something first
    'root ::= a-b2\na-b2 ::= [中-国\\]\\[-]. "中\n文"',
    'root ::= "a" "b" {2,}',
    'root ::= | "a"',
    "root ::= .{3}",
    'root ::= ("a"?){0,3}',
)


@pytest.mark.parametrize("grammar", BAD)
def test_what_llama_cpp_could_not_follow_is_refused(grammar: str) -> None:
    with pytest.raises(InvalidValueError, match=BAD[grammar]):
        check_grammar(grammar)


@pytest.mark.parametrize("grammar", GOOD)
def test_sound_grammars_are_accepted(grammar: str) -> None:
    check_grammar(grammar)


def test_the_line_is_named() -> None:
    with pytest.raises(InvalidValueError, match="line 3") as caught:
        check_grammar('root ::= "a" |\n  b\nb ::= [z-a]\n')
    assert caught.value.line == 3  # type: ignore[attr-defined]


def test_long_chains_of_beginnings_are_refused() -> None:
    rules = [f"r{i} ::= r{i + 1}" for i in range(MAX_CHAIN)]
    text = "\n".join(["root ::= r0", *rules, f'r{MAX_CHAIN} ::= "a"'])
    with pytest.raises(InvalidValueError, match="begin one another"):
        check_grammar(text)


@given(st.text(st.sampled_from('root:= "abc|()[]^-*+?{}0123,.\\nx#\n中'), max_size=80))
def test_any_text_is_accepted_or_refused(text: str) -> None:
    for grammar in (text, f"root ::= {text}"):
        try:
            check_grammar(grammar)
        except InvalidValueError as error:
            assert error.message.startswith("the grammar cannot be used")  # noqa: PT017


@given(st.text(max_size=30).filter(lambda text: "\0" not in text))
def test_any_text_can_be_a_literal(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        return
    check_grammar(f"root ::= {literal(text)} {literal('x' + text)}?")


# -- JSON ------------------------------------------------------------------------------

FACT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "kind": {"enum": ["fact", "preference", "事件"]},
        "text": {"type": "string", "maxLength": 60, "description": "in the speaker's words"},
        "importance": {"type": "integer", "minimum": -1, "maximum": 10},
        "since": {"type": ["number", "null"]},
    },
    "required": ["kind", "text"],
    "additionalProperties": False,
}
SOUND: tuple[dict[str, Any], ...] = (
    FACT,
    {"type": "array", "items": FACT, "maxItems": 4},
    {"type": "array", "items": {"type": "boolean"}, "minItems": 2, "maxItems": 2},
    {"type": "array", "items": {"const": "x"}, "maxItems": 0},
    {"anyOf": [{"type": "null"}, {"const": {"a": ["b", 1]}}]},
    {"type": "object", "properties": {"only maybe": {"type": "string", "maxLength": 0}}},
    {"type": "object"},
    {"type": "array", "items": {"type": "string", "maxLength": 500}, "maxItems": 64},
)


@pytest.mark.parametrize("schema", SOUND, ids=range(len(SOUND)))
def test_schemas_become_sound_grammars(schema: dict[str, Any]) -> None:
    check_grammar(json_grammar(schema))


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({}, "type None"),
        ({"type": "tuple"}, "not known"),
        ({"type": "string", "pattern": "a*"}, "'pattern' is not known"),
        ({"type": "string", "maxLength": 501}, "maxLength must be 0 to 500"),
        ({"type": "string", "minLength": 9, "maxLength": 3}, "minLength must be 0 to 3"),
        ({"type": "integer", "minimum": 1}, "both"),
        ({"type": "integer", "minimum": 1, "maximum": 5000}, "1000 integers"),
        ({"type": "integer", "minimum": True, "maximum": 3}, "as integers"),
        ({"type": "array"}, "an object was expected"),
        ({"type": "array", "items": {"type": "null"}, "maxItems": 65}, "maxItems"),
        ({"type": "object", "additionalProperties": {"type": "null"}}, "must all be named"),
        ({"type": "object", "required": ["a"]}, "no property"),
        ({"enum": []}, "0 choices"),
        ({"enum": "abc"}, "must be a list"),
        ({"$ref": "#/a"}, "not known"),
        ({"anyOf": [{"type": "null"}], "type": "null"}, "not known here"),
    ],
)
def test_schemas_that_cannot_be_kept_are_refused(schema: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidValueError, match=why):
        json_grammar(schema)


def test_endless_schemas_are_refused() -> None:
    schema: dict[str, Any] = {"type": "array"}
    schema["items"] = schema
    with pytest.raises(InvalidValueError, match="levels"):
        json_grammar(schema)


def accepts(grammar: str, text: str) -> bool:
    """Match by the rules of a grammar that `json_grammar` made, as a regular expression."""
    import re

    rules = dict(line.split(" ::= ", 1) for line in grammar.splitlines())
    token = re.compile(r'"(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\]|[A-Za-z][A-Za-z0-9-]*|\{[\d,]+\}|.')

    def expression(body: str) -> str:
        parts = []
        for part in token.findall(body):
            if part[0] == '"':
                plain = part[1:-1].encode("latin-1", "backslashreplace").decode("unicode_escape")
                parts.append(f"(?:{re.escape(plain)})")
            elif part[0].isalpha():
                parts.append(f"(?:{expression(rules[part])})")
            elif part != " ":
                parts.append(part)
        return "".join(parts)

    return re.fullmatch(expression(rules["root"]), text) is not None


@pytest.mark.parametrize(
    ("value", "fits"),
    [
        ({"kind": "fact", "text": "Ana lives in Oslo."}, True),
        ({"kind": "事件", "text": "她搬到了奥斯陆", "importance": -1}, True),
        ({"kind": "fact", "text": 'say "hi"\n', "since": -12.5}, True),
        ({"kind": "fact", "text": "", "importance": 10, "since": None}, True),
        ({"kind": "fact"}, False),
        ({"text": "a", "kind": "fact"}, False),
        ({"kind": "idea", "text": "a"}, False),
        ({"kind": "fact", "text": "a", "importance": 11}, False),
        ({"kind": "fact", "text": "a" * 61}, False),
        ({"kind": "fact", "text": "a", "more": 1}, False),
    ],
)
def test_a_grammar_holds_to_its_schema(value: object, fits: bool) -> None:  # noqa: FBT001
    text = json.dumps(value, ensure_ascii=False)
    assert accepts(json_grammar(FACT), text) is fits

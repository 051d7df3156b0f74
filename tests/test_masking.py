"""Masking: nothing that was masked is in any file, log or trace; and the way back needs the key."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
import structlog
from hypothesis import HealthCheck, given, settings, strategies as st
from support import START, Factory, Sentences

import reverie
from reverie import Profile, TurnDraft, User, errors
from reverie.masking import Masks
from reverie.memory_graph.drafts import EntityDraft, MemoryDraft
from reverie.memory_graph.ids import Key
from reverie.memory_graph.store import search_files
from reverie.models.masking import KINDS, PLACEHOLDER
from reverie.models.protocol import Extraction, Turn
from reverie.vault import FILE, new_mask_key

KEY = new_mask_key()
ANA = Key("default", "u-1")
BO = Key("default", "u-2")

# Values that no rule, model or index would make by itself.
NAMES = ["Ines Moreau", "Zhang Weimin", "赵敏敏", "Xandra Quill", "Oyelaran"]
NUMBERS = [
    "ines.moreau@example.org",
    "+49 170 1234567",
    "13912345678",
    "4111 1111 1111 1111",
    "11010519491231002X",
    "078-05-1120",
    "DE89 3704 0044 0532 0130 00",
]
SECRETS = [*NAMES, *NUMBERS, "Moreau", "Weimin", "moreau"]


@pytest.fixture
def factory(tmp_path: Path) -> Iterator[Factory]:
    made = Factory(tmp_path, None)
    structlog.reset_defaults()  # or it would go on writing to the stderr of an earlier test
    yield made
    made.finish()
    structlog.reset_defaults()


@pytest.fixture
def masks(tmp_path: Path) -> Masks:
    return Masks(tmp_path, KINDS, KEY)


def left(folder: Path, secrets: Sequence[str] = SECRETS) -> list[str]:
    """Return which secrets are in which files, as they are or in capitals or small letters."""
    needles = {form.encode() for s in secrets for form in (s, s.lower(), s.upper())}
    found = search_files(folder, sorted(needles))
    return [f"{needle!r}: {p.name}" for needle, places in found.items() for p, _ in places]


# -- what is found ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("Mail ana+x@example.co.uk, please.", "Mail [EMAIL_1], please."),
        ("我的邮箱是ana@qq.com，谢谢。", "我的邮箱是[EMAIL_1]，谢谢。"),
        ("ana (at) example (dot) com", "[EMAIL_1]"),
        ("Call +49 170 1234567 or (415) 555-0132.", "Call [PHONE_1] or [PHONE_2]."),
        ("我的手机是13912345678。", "我的手机是[PHONE_1]。"),
        ("手机１３９１２３４５６７８！", "手机[PHONE_1]！"),
        ("139\u200b1234\u200b5678", "[PHONE_1]"),
        ("my number is 5550123", "my number is [PHONE_1]"),
        ("Card 4111-1111-1111-1111, not 4111-1111-1111-1112.",
         "Card [CARD_1], not 4111-1111-1111-1112."),
        ("2024-06-12 4111111111111111", "2024-06-12 [CARD_1]"),
        ("身份证11010519491231002X", "身份证[ID_1]"),
        ("id 110105194912310021", "id 110105194912310021"),  # the check digit is wrong
        ("SSN 078-05-1120, SSN 123456789", "SSN [ID_1], SSN [ID_2]"),
        ("IBAN de89 3704 0044 0532 0130 00.", "IBAN [ID_1]."),
        ("IBAN DE88 3704 0044 0532 0130 00.", "IBAN DE88 3704 0044 0532 0130 00."),
        ("My sister Ines Moreau sings. Moreau is loud.",
         "My sister [PERSON_1] sings. [PERSON_2] is loud."),
        ("Anna和王小明一起去了上海。", "[PERSON_1]和[PERSON_2]一起去了上海。"),
        ("We met at 10:30 on 12/05/2024, room 4711, for 1234567.89.",
         "We met at 10:30 on 12/05/2024, room 4711, for 1234567.89."),
        ("version 3.11.2.4, 192.168.100.200", "version 3.11.2.4, 192.168.100.200"),
        ("Живу в Осло. 東京に住んでいます。", "Живу в Осло. 東京に住んでいます。"),
        ("أعيش في أوسلو", "أعيش في أوسلو"),
        ("Пишите на ivan@example.ru.", "Пишите на [EMAIL_1]."),
    ],
)  # fmt: skip
def test_what_is_masked(masks: Masks, text: str, masked: str) -> None:
    mask = masks.of(ANA)
    assert mask.text(text) == masked
    assert mask.text(masked) == masked
    assert mask.unmask(masked) == text


def test_names_are_found_as_often_as_the_documentation_says() -> None:
    from reverie.models.masking import Known, find

    rows = json.loads((Path(__file__).parent / "data" / "masking_names.json").read_text("utf-8"))
    shown = {
        "english": (34, 37, 0),
        "chinese": (30, 31, 0),
        "english_unseen": (24, 27, 1),
        "chinese_unseen": (21, 24, 0),
    }
    for part, expected in shown.items():
        hit = of = false = 0
        for text, names in rows[part]:
            got = [text[f.start : f.end] for f in find(text, ("person",), Known())]
            hit += sum(any(name in g for g in got) for name in names)
            of += len(names)
            false += sum(not any(g in name or name in g for name in names) for g in got)
        assert (hit, of, false) == expected, part


def test_numbers_in_metadata(masks: Masks) -> None:
    mask = masks.of(ANA)
    given_ = {"at": 1_700_000_000, "n": 3, "x": 0.5, "ok": True, "none": None, "big": 1e300}
    assert mask.value(given_) == given_
    assert mask.value({"tel": 13912345678, "all": [4111111111111111.0]}) == {
        "tel": "[PHONE_1]",
        "all": ["[CARD_1]"],
    }


def test_only_the_kinds_that_were_asked_for(tmp_path: Path) -> None:
    mask = Masks(tmp_path, ["email"], KEY).of(ANA)
    text = "My sister Ines Moreau, +49 170 1234567, i@x.org"
    assert mask.text(text) == "My sister Ines Moreau, +49 170 1234567, [EMAIL_1]"


@pytest.mark.parametrize("filler", ["word ", "王小明说", "1 ", "a", "Ab ", "x@", "'- "])
def test_values_are_found_anywhere_in_a_long_text(tmp_path: Path, filler: str) -> None:
    mask = Masks(tmp_path, ["email", "id"], KEY).of(ANA)
    for at in (0, 2900, 3071, 3072, 3580, 3584, 4090, 4096, 7000):
        filled = (filler * at)[:at]
        text = f"{filled}; ines@example.org; 078-05-1120; {filler * 600}"
        masked = mask.text(text)
        assert "[EMAIL_1]" in masked
        assert "[ID_1]" in masked
        assert mask.unmask(masked) == text


# -- properties ------------------------------------------------------------------------

DISGUISES: list[Callable[[str], str]] = [
    str,
    str.lower,
    str.upper,
    lambda s: "".join(chr(ord(c) + 0xFEE0) if c.isdigit() else c for c in s),  # full width
    lambda s: re.sub(r"(?<=\d)(?=\d)", "\u200b", s),
    lambda s: re.sub(r"(?<=[^\W\d])(?=[^\W\d])", "\u2060", s),
]
values = st.tuples(st.sampled_from([*NAMES, *NUMBERS]), st.sampled_from(DISGUISES)).map(
    lambda pair: pair[1](pair[0])
)
words = st.sampled_from(
    ["I met", "and", "yesterday.", "我认识", "，她的电话是", "lives in Oslo.", "My sister", "说：",
     "\n", "'s mail:", "(", ")", "Dr.", "12", "[x]", "é", "😀", "कमल", "\u200f"]
)  # fmt: skip
texts = st.lists(st.one_of(values, words, st.text(max_size=8)), max_size=8).map(" ".join)
no_placeholder = texts.filter(lambda t: not PLACEHOLDER.search(t))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(no_placeholder)
def test_masking_can_be_undone_and_repeated(masks: Masks, text: str) -> None:
    mask = masks.of(ANA)
    masked = mask.text(text)
    assert mask.unmask(masked) == text
    assert mask.text(masked) == masked
    assert mask.question(masked) == masked


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.sampled_from(NUMBERS), st.sampled_from(DISGUISES), words, words)
def test_numbers_are_found_in_any_disguise(
    masks: Masks, number: str, disguise: Callable[[str], str], before: str, after: str
) -> None:
    mask = masks.of(ANA)
    shown = disguise(number)
    masked = mask.text(f"{before}: {shown} , {after}")
    assert shown not in masked
    (plain,) = PLACEHOLDER.finditer(mask.text(f"x {number} x"))
    same = [m for m in PLACEHOLDER.finditer(masked) if m["kind"] == plain["kind"]]
    assert [m["number"] for m in same] == [plain["number"]]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.text(max_size=60))
def test_any_text_survives(masks: Masks, text: str) -> None:
    mask = masks.of(ANA)
    assert mask.text(mask.text(text)) == mask.text(text)


def test_one_value_has_one_number_in_its_world(tmp_path: Path) -> None:
    masks = Masks(tmp_path, KINDS, KEY)
    ana, bo, elsewhere = masks.of(ANA), masks.of(BO), masks.of(Key("moon", "u-1"))
    assert ana.text("a@x.org b@x.org A@X.org") == "[EMAIL_1] [EMAIL_2] [EMAIL_1.2]"
    assert bo.text("b@x.org, +49 170 1234567") == "[EMAIL_2], [PHONE_1]"
    assert bo.text("+49 (170) 123-4567") == "[PHONE_1.2]"
    assert elsewhere.text("b@x.org") == "[EMAIL_1]"
    again = Masks(tmp_path, (), KEY)  # which kinds: the folder knows
    assert again.kinds == tuple(sorted(KINDS))
    assert again.of(ANA).text("c@x.org b@x.org a@x.org") == "[EMAIL_3] [EMAIL_2] [EMAIL_1]"
    assert again.of(ANA).unmask("[EMAIL_1] [EMAIL_1.2]") == "a@x.org A@X.org"


def test_a_question_gives_no_number_and_needs_no_key(tmp_path: Path) -> None:
    masks = Masks(tmp_path, KINDS, KEY)
    masks.of(ANA).text("My sister Ines Moreau")
    size = (tmp_path / FILE).stat().st_size
    asked = "Where does Ines Moreau live, and who is a@x.org?"
    assert masks.of(ANA).question(asked) == "Where does [PERSON_1] live, and who is [EMAIL]?"
    keyless = Masks(tmp_path, (), None).of(ANA)
    assert "Moreau" not in keyless.question("Does my sister Ines Moreau call +49 170 1234567?")
    assert keyless.unmask("[PERSON_1]") == "[PERSON_1]"
    with pytest.raises(errors.MaskKeyMissingError):
        keyless.text("a@x.org")
    assert (tmp_path / FILE).stat().st_size == size


def test_a_placeholder_that_somebody_types_opens_nothing(masks: Masks) -> None:
    ana, bo = masks.of(ANA), masks.of(BO)
    masked = ana.text("My card is 4111 1111 1111 1111.")
    assert masked == "My card is [CARD_1]."
    assert bo.text(masked) == masked
    assert bo.unmask(masked) == masked
    assert bo.unmask("[CARD_1.2] [CARD_9] [CARD]") == "[CARD_1.2] [CARD_9] [CARD]"
    assert ana.unmask(masked) == "My card is 4111 1111 1111 1111."


# -- the whole: every way in, and every file --------------------------------------------

TALK = [
    "My sister Ines Moreau lives in Porto. Her mail is ines.moreau@example.org.",
    "Zhang Weimin said call +49 170 1234567 or 13912345678.",
    "我妹妹赵敏敏住在成都，身份证11010519491231002X。",
    "Remember that my card is 4111 1111 1111 1111 and my SSN is 078-05-1120.",
    "Ines Moreau likes tea. IBAN DE89 3704 0044 0532 0130 00.",
]
SOME = "Ines Moreau, ines.moreau@example.org, 13912345678"


def _remember(user: User) -> str:
    return user.remember("Zhang Weimin owes me money.", tags=["Zhang Weimin"]).memory_id


# Every public method of `User`, with secrets in each argument that can hold words.
WAYS: dict[str, Callable[[User], object]] = {
    "add": lambda u: u.add(
        [
            {"text": TALK[0], "speaker": "Xandra Quill", "metadata": {"who": SOME, SOME: [SOME]}},
            TurnDraft(TALK[1], speaker="Oyelaran", metadata={"phone": 13912345678}),
            *TALK[2:],
        ],
        wait=True,
    ),
    "remember": lambda u: u.remember(
        TALK[1],
        tags=[SOME],
        topics=["Ines Moreau"],
        metadata={"a": {"b": SOME}},
        entities=[("Xandra Quill", "person"), EntityDraft("x", aliases=("13912345678",))],
    ),
    "observe": lambda u: u.observe(
        "Oyelaran sold a horse",
        participants=["Oyelaran", "Ines Moreau"],
        place="13912345678",
        told_by="Xandra Quill",
    ),
    "relate": lambda u: u.relate(
        "Xandra Quill", "knows", "ines.moreau@example.org", head_type="person"
    ),
    "update": lambda u: u.update(
        _remember(u), "Ask Ines Moreau", tags=["13912345678"], metadata={"m": SOME}
    ),
    "delete": lambda u: u.delete(_remember(u), reason=SOME),
    "archive": lambda u: u.archive(_remember(u), reason=SOME),
    "restore": lambda u: u.delete(i := _remember(u)) and u.restore(i, reason=SOME),
    "search": lambda u: u.search(SOME, filters={"text": {"contains": "Ines Moreau"}}),
    "why": lambda u: u.why(SOME, "m1", filters={"metadata.who": SOME}),
    "context": lambda u: u.context(TALK[1]),
    "nearest": lambda u: u.nearest(SOME, filters={"text": {"contains": "Ines Moreau"}}),
    "query": lambda u: u.query("MATCH (e:Entity {name: 'Ines Moreau'}) RETURN $x", {"x": SOME}),
    "export_graph": lambda u: u.export_graph("graphml"),
    "list": lambda u: u.list(filters={"NOT": {"tags": SOME}}),
    "get": lambda u: [u.get(i.id) for i in u.list().items],
    "history": lambda u: u.history(_remember(u)),
    "entities": lambda u: u.entities("Ines Moreau"),
    "neighbors": lambda u: (
        u.relate("Ines Moreau", "knows", "tea", head_type="person") and u.neighbors("Ines Moreau")
    ),
    "stats": lambda u: u.stats(),
    "digest": lambda u: u.digest(),
    "check": lambda u: u.check(),
    "mask": lambda u: u.mask(SOME),
    "unmask": lambda u: u.unmask(u.mask(SOME)),
    "summarise": lambda u: u.summarise(),
    "reflect": lambda u: u.reflect(force=True),
    "get_conversation_summary": lambda u: u.get_conversation_summary("Ines Moreau"),
    "set_profile": lambda u: u.set_profile(Profile(name=SOME, memories=0, rest={SOME: 0.5})),
    "profile": lambda u: u.set_profile(Profile(name=SOME)) and u.profile(),
    "audit": lambda u: u.archive(_remember(u), reason=SOME) and u.audit(),
    "export": lambda u: _remember(u) and u.export(u._rt.path.parent / "made"),
    "forget": lambda u: u.forget(),
}
INTERNAL = {"turns_command", "search_command"}  # called by the methods above


def test_every_method_has_a_way_here() -> None:
    public = {n for n in dir(User) if not n.startswith("_") and callable(getattr(User, n))}
    assert public - INTERNAL == set(WAYS)


@pytest.mark.parametrize("way", WAYS)
def test_no_secret_is_in_any_file_or_log(
    factory: Factory, way: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rt = factory(mask=KINDS, mask_key=KEY, trace=True, background=False)
    user = rt.user("u-1")
    user.add("Nothing to hide: I live in Oslo.", wait=True)
    WAYS[way](user)
    rt.flush()
    assert left(factory.folder) == []
    rt.close()
    assert left(factory.folder) == []
    out, err = capsys.readouterr()
    assert not any(secret in out + err for secret in SECRETS)


def test_the_search_for_secrets_would_find_them(factory: Factory) -> None:
    rt = factory(trace=True, background=False)
    WAYS["add"](rt.user("u-1"))
    rt.close()
    found = left(factory.folder / "data")
    for secret in [*NAMES, *NUMBERS]:
        assert any(secret.encode().decode() in line for line in found) or not secret.isascii()
    assert len(found) > len(SECRETS)


def test_ways_of_the_runtime(factory: Factory) -> None:
    rt = factory(mask=KINDS, mask_key=KEY, trace=True, background=False)
    rt.add_many({"u-1": TALK, "u-2": [TALK[0]]}, wait=True)
    rt.remember_many({"u-1": [TALK[1], MemoryDraft("x", tags=("Oyelaran@x.org",))]})
    rt.search_many([("u-1", TALK[0]), ("u-2", TALK[3])])
    rt.checkpoint("one")
    rt.fork("one", "moon")
    rt.rewind("one")
    moon = rt.user("u-1", "moon")
    (item,) = moon.list(filters={"text": {"contains": "Porto"}}).items[:1]
    assert "Ines Moreau" in moon.unmask(item.text)
    assert moon.mask("my new sister Xandra Quill") == "my new sister [PERSON_4]"
    rt.close()
    assert left(factory.folder / "data", [*SECRETS, "Oyelaran@x.org"]) == []
    rt = factory(mask_key=KEY)
    assert "Ines Moreau" in rt.user("u-1", "moon").unmask(item.text)


def test_a_masked_store_is_searched_by_masked_words(factory: Factory) -> None:
    rt = factory(mask=KINDS, mask_key=KEY, background=False)
    ana = rt.user("u-1")
    ana.add([*TALK, "I bought bread.", "The bridge is closed."], wait=True)
    for question, place in (
        ("Where does Ines Moreau live?", "Porto"),
        ("赵敏敏住在哪里？", "成都"),
        ("Who is ines.moreau@example.org?", "mail"),
    ):
        hits = ana.search(question, limit=2)
        assert any(place in ana.unmask(hit.text) for hit in hits), question
    around = ana.neighbors("ines moreau")
    assert ("lives_in", "Porto") in {(r.predicate, r.tail) for r in around.relations}
    (one,) = ana.entities("Ines Moreau")
    assert ana.unmask(one.name) == "Ines Moreau"
    block = ana.context("Tell me about Ines Moreau").text
    assert "Moreau" not in block
    assert "Ines Moreau" in ana.unmask(block)


def test_conflicts_are_decided_on_masked_text(factory: Factory) -> None:
    rt = factory(mask=KINDS, mask_key=KEY, background=False)
    ana = rt.user("u-1")
    ana.add("My sister Ines Moreau lives in Porto.", wait=True)
    ana.add("My sister Ines Moreau moved to Lyon.", wait=True)
    texts = [
        ana.unmask(i.text) for i in ana.list().items if "sister" not in i.text or "L" in i.text
    ]
    assert any("Lyon" in text for text in texts)
    places = {r.tail for r in ana.neighbors("Ines Moreau").relations}
    assert "Lyon" in places
    assert "Porto" not in places


class _Chatty:
    """A model that puts what it reads into its error."""

    def extract(self, turns: Sequence[Turn], history: Sequence[Turn]) -> list[Extraction]:
        msg = "cannot read " + " ".join(t.text for t in turns)
        raise RuntimeError(msg)


def test_errors_of_models_hold_no_secret(
    factory: Factory, capsys: pytest.CaptureFixture[str]
) -> None:
    rt = factory(mask=KINDS, mask_key=KEY, extractor=_Chatty(), background=False)
    rt.user("u-1").add(TALK, wait=True)
    (away,) = rt.quarantined()
    assert "PERSON" in "".join(away.errors) or "Qoza" in "".join(away.errors)
    rt.close()
    assert left(factory.folder / "data") == []
    assert not any(secret in capsys.readouterr().err for secret in SECRETS)


def test_without_the_key_one_reads_and_extracts_but_stores_nothing_new(factory: Factory) -> None:
    rt = factory(mask=KINDS, mask_key=KEY, background=False)
    ana = rt.user("u-1")
    ana.add(TALK[0], wait=True)
    ana.add("I live in Oslo.")  # waits for extraction
    rt.close()
    rt = factory(background=False)
    ana = rt.user("u-1")
    rt.drain()
    assert any("Oslo" in i.text for i in ana.list().items)
    assert "[PERSON_1]" in ana.unmask(ana.search("Who lives in Porto?")[0].text)
    before = ana.digest()
    writes = ("add", "remember", "observe", "relate", "mask", "unmask")
    for way in writes:
        with pytest.raises(errors.MaskKeyMissingError):
            WAYS[way](ana)
    for call in (
        lambda: rt.add_many({"u-1": "I like tea."}),
        lambda: rt.remember_many({"u-1": ["I like tea."]}),
        lambda: ana.update("m1", "I like tea."),
    ):
        with pytest.raises(errors.MaskKeyMissingError):
            call()
    assert ana.digest() == before


def test_an_erased_user_leaves_the_mapping(factory: Factory) -> None:
    rt = factory(mask=KINDS, mask_key=KEY, background=False)
    ana, bo = rt.user("u-1"), rt.user("u-2")
    ana.add("My sister Ines Moreau has the mail a@x.org.", wait=True)
    bo.add("My boss Ines Moreau is nice.", wait=True)
    assert ana.forget().clean
    vault = Masks(factory.folder / "data", (), KEY)
    forms = {f for w in vault._worlds.values() for v in w.values.values() for f in v.forms}
    assert forms == {"Ines Moreau"}
    assert bo.unmask("[PERSON_1]") == "Ines Moreau"
    assert ana.unmask("[PERSON_1] [EMAIL_1]") == "[PERSON_1] [EMAIL_1]"
    assert ana.mask("a@x.org") == "[EMAIL_2]"  # a number is never given twice
    rt.close()
    rt = factory(background=False)  # without the key it is noted, and done when the key is back
    rt.user("u-2").forget()
    rt.close()
    rt = factory(mask_key=KEY, background=False)
    assert rt.user("u-2").unmask("[PERSON_1]") == "[PERSON_1]"
    assert b"forget" not in (factory.folder / "data" / FILE).read_bytes()


# -- the key and the file --------------------------------------------------------------


def test_the_key_is_needed_right_and_nowhere(factory: Factory) -> None:
    with pytest.raises(errors.ConfigError, match="new_mask_key"):
        factory(mask=KINDS)
    with pytest.raises(errors.ConfigError, match="nothing is masked"):
        factory("other", mask_key=KEY)
    for bad in ("short", b"x" * 44, 7):
        with pytest.raises(errors.ConfigError, match="no key") as caught:
            factory("bad", mask=KINDS, mask_key=bad)
        assert str(bad) not in caught.value.message or bad == 7
    with pytest.raises(errors.ConfigError, match="unknown kinds"):
        factory("bad", mask=("email", "iris"), mask_key=KEY)
    with pytest.raises(errors.ConfigError, match="sequence"):
        factory("bad", mask="email", mask_key=KEY)
    rt = factory(mask=KINDS, mask_key=KEY)
    rt.user("u-1").mask("a@x.org")
    rt.close()
    with pytest.raises(errors.ConfigError, match="not the key"):
        factory(mask_key=new_mask_key())
    assert left(factory.folder / "data", [KEY, "a@x.org"]) == []
    assert KEY not in repr(rt.config)


def test_more_kinds_may_be_masked_later_but_none_less(tmp_path: Path) -> None:
    assert Masks(tmp_path, ["email"], KEY).of(ANA).text("a@x.org") == "[EMAIL_1]"
    with pytest.raises(errors.ConfigError, match="mask_key"):
        Masks(tmp_path, ["phone"], None)
    more = Masks(tmp_path, ["phone"], KEY)
    assert more.kinds == ("email", "phone")
    assert more.of(ANA).text("b@x.org a@x.org") == "[EMAIL_2] [EMAIL_1]"


def test_a_line_that_was_cut_short_was_never_used(tmp_path: Path) -> None:
    Masks(tmp_path, KINDS, KEY).of(ANA).text("a@x.org")
    whole = (tmp_path / FILE).read_bytes()
    Masks(tmp_path, KINDS, KEY).of(ANA).text("b@x.org")
    torn = (tmp_path / FILE).read_bytes()[: len(whole) + 20]
    (tmp_path / FILE).write_bytes(torn)
    mask = Masks(tmp_path, KINDS, KEY).of(ANA)
    assert (tmp_path / FILE).read_bytes() == whole
    assert mask.text("c@x.org a@x.org") == "[EMAIL_2] [EMAIL_1]"


@pytest.mark.parametrize("line", [0, 1])
def test_damage_is_told(tmp_path: Path, line: int) -> None:
    Masks(tmp_path, KINDS, KEY).of(ANA).text("a@x.org")
    lines = (tmp_path / FILE).read_bytes().splitlines(keepends=True)
    lines[line] = lines[line][:30] + b"!" + lines[line][31:]
    (tmp_path / FILE).write_bytes(b"".join(lines))
    with pytest.raises((errors.DataFolderError, errors.ConfigError)):
        Masks(tmp_path, KINDS, KEY)


def test_a_failed_sync_is_not_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, masks: Masks
) -> None:
    mask = masks.of(ANA)
    assert mask.text("a@x.org") == "[EMAIL_1]"

    def fail(_: int) -> None:
        raise OSError(5, "input/output error")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", fail)
        with pytest.raises(errors.StorageFailedError):
            mask.text("b@x.org")
    with pytest.raises(errors.StorageFailedError):
        mask.text("b@x.org")
    assert mask.text("a@x.org") == "[EMAIL_1]"


@pytest.mark.parametrize(
    ("module", "kinds"), [("cryptography.fernet", ["id"]), ("phonenumbers", ["phone"])]
)
def test_a_missing_library_is_told_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, kinds: list[str]
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(errors.ConfigError, match=r"reverie\[mask\]"):
        Masks(tmp_path, kinds, KEY)


def test_nothing_changes_without_masking(factory: Factory) -> None:
    rt = factory(extractor=Sentences(), background=False)
    user = rt.user("u-1")
    user.add(TALK[0], wait=True)
    assert user.list().items[0].text == TALK[0]
    assert user.mask(TALK[0]) == user.unmask(TALK[0]) == TALK[0]
    assert not (factory.folder / "data" / FILE).exists()
    assert rt.now() == START


def test_the_public_key_maker_makes_keys_that_open(tmp_path: Path) -> None:
    key = reverie.new_mask_key()
    assert key != reverie.new_mask_key()
    with reverie.open(tmp_path / "d", mask=("id",), mask_key=key, embedder="standin") as rt:
        assert rt.user("u").mask("SSN 078-05-1120") == "SSN [ID_1]"

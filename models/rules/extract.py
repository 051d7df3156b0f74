"""From turns to memories: sentences, clauses, claims, drafts.

What makes nothing: questions, requests, greetings, hypotheticals, what others are quoted as saying,
and turns of an assistant, a tool or the system. A named character's turn is about that character.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from reverie.memory_graph.drafts import OWNER, EntityDraft, MemoryDraft, RelationDraft
from reverie.models.protocol import ENTITY_TYPES, Extraction, Turn
from reverie.models.rules import chinese, english_build
from reverie.models.rules.chinese_rules import KIN
from reverie.models.rules.chinese_things import chinese_things, named as chinese_named
from reverie.models.rules.claims import USER_LABELS, Claim
from reverie.models.rules.clauses import Statement, statements
from reverie.models.rules.dates import find_date
from reverie.models.rules.importance import EXPLICIT, importance_of, sentiment_of
from reverie.models.rules.names import english_names, is_name, merged, titles
from reverie.models.rules.own_words import own_words
from reverie.models.rules.phrases import PERSON
from reverie.models.rules.standing import is_over
from reverie.models.rules.text import clean, fold, is_chinese, sentences
from reverie.models.rules.thing_words import NO_THINGS
from reverie.models.rules.things import type_of
from reverie.models.rules.vocab import COMMON

MAX_MEMORIES = 30  # of one turn

MACHINES = frozenset(
    {"assistant", "system", "tool", "ai", "bot", "model", "function", "助手", "系统"}
)
NARRATORS = frozenset({"event", "narrator", "world", "game", "旁白", "事件", "gm", "dm"})
_NO_PERSON = NARRATORS | {"player", "玩家", "npc"}
_TAKEN = re.compile(
    r"(?:stole|took|brought|carried|delivered|received|forged|built|made|planted|destroyed|hid|buried|crafted|traded|borrowed|won"
    r"|cooked|baked|painted|repaired|returned) (?P<o>[^,;.]{2,60})",
)
# Who does something though nobody is named: the player, a relative of the user.
_HEAD_ZH = re.compile(f"玩家|用户的(?:{'|'.join(KIN)})")
_UNTYPED = frozenset({"event", "plans", "state", "does"})  # say nothing of what is in them
_OWNING = frozenset({"has", "gave", "found", "needs"})
_TAUGHT = frozenset({"learning", "speaks"})  # "Welsh on an app": a language is a thing to learn
_NAMED_OBJECT = frozenset({"kin", "partner", "manager", "met", "name"})


class RulesExtractor:
    """Finds first-person facts, preferences, events and changes in English and Chinese turns.

    A pure function of its arguments: times come from `said_at`. Scans at most 4,000 characters of
    a turn. Needs no model and about half a millisecond a turn.

    A dated statement is valid from the start of the day, week, month or year it names ("last
    week" is Monday). A statement that begins with being said ("moved to", "adopted") and names
    no date is valid from `said_at`. Any other is open (None): "lives in Oslo" does not say since
    when. `valid_to` is set only where a state is said to be over or bounded ("used to", "until"),
    or told in the past ("lived in Oslo in 2019": to the end of that year).
    """

    def extract(
        self,
        turns: Sequence[Turn],
        history: Sequence[Turn],  # noqa: ARG002 - the protocol has it
    ) -> list[Extraction]:
        """Return one `Extraction` per turn, in order.

        Args:
            turns: the new turns, oldest first.
            history: not used: every rule works within one turn.
        """
        return [self._one(turn) for turn in turns]

    def _one(self, turn: Turn) -> Extraction:
        speaker = turn.speaker.strip()
        low = speaker.casefold()
        text = own_words(clean(turn.text))
        if is_machine(turn) or not text.strip():
            return Extraction(turn.id)
        han = is_chinese(text)
        owner = low == "user"
        label = USER_LABELS[han] if owner else clean(speaker)[:80]
        if not label:
            return Extraction(turn.id)
        drafts: list[MemoryDraft] = []
        objects: list[EntityDraft] = []
        seen: set[str] = set()
        for statement in statements(text, label, owner=owner, narrator=low in NARRATORS):
            for draft in _drafts(statement, turn, label):
                key = fold(draft.text)
                if key in seen or len(drafts) >= MAX_MEMORIES:
                    continue
                seen.add(key)
                drafts.append(draft)
                objects.extend(draft.entities)
        source = turn.text if owner else f"{turn.text}\n{speaker}"
        named = list(titles(text))
        if han:
            named += chinese_named(text)
        else:
            for sentence in sentences(text):
                named += english_names(sentence)
        return Extraction(turn.id, tuple(drafts), merged(objects + named, source))


def _drafts(statement: Statement, turn: Turn, label: str) -> list[MemoryDraft]:
    if statement.explicit:
        main = statement.claims[0] if statement.claims else None
        return [_draft(main, statement, turn, label)]
    return [_draft(claim, statement, turn, label) for claim in statement.claims]


def is_unnamed(subject: str) -> bool:
    """Return whether a speaker or subject is a role that names nobody: the player, a narrator."""
    return subject.removeprefix("the ").removeprefix("The ").casefold() in _NO_PERSON


def draft_of(claim: Claim, turn: Turn, label: str) -> MemoryDraft:
    """Return the memory that a claim makes, whoever found it: slot, times, entities, relations.

    Args:
        claim: with `text` in the third person.
        turn: where it was said; its names are looked up there, its dates counted from there.
        label: how its speaker is called in the third person.
    """
    return _draft(claim, Statement(claim.text, (claim,)), turn, label)


def is_machine(turn: Turn) -> bool:
    """Return whether a turn is of an assistant, a tool or the system: nobody's memory."""
    return turn.speaker.strip().casefold() in MACHINES or turn.role == "system"


def _draft(claim: Claim | None, statement: Statement, turn: Turn, label: str) -> MemoryDraft:
    source = f"{turn.text}\n{turn.speaker}"
    if claim is None:
        return MemoryDraft(
            text=statement.text,
            importance=EXPLICIT,
            pinned=True,
            tags=("explicit",),
            sources=(turn.id,),
        )
    text = statement.text if statement.explicit else tidy(claim.text, label)
    entities = _entities(claim, label, source)
    valid_from, valid_to = _valid(claim, turn.said_at)
    explicit = statement.explicit
    return MemoryDraft(
        text=text,
        kind=claim.about.kind if claim.predicate != "state" or not claim.past else "event",
        confidence=0.9 if claim.explicit else 0.6,
        importance=EXPLICIT if explicit else importance_of(claim, names=len(entities)),
        slot=claim.slot,
        polarity=-1 if claim.polarity < 0 or claim.ended else 1,
        valid_from=valid_from,
        valid_to=valid_to,
        sentiment=sentiment_of(claim),
        pinned=explicit,
        tags=("explicit",) if explicit else (),
        sources=(turn.id,),
        entities=entities,
        relations=_relations(claim, entities, valid_from, valid_to),
    )


def tidy(text: str, label: str) -> str:
    """Return a statement with one name for its subject: "User quit their job"."""
    text = " ".join(text.split()).strip(' ,;:-"')
    if is_chinese(text):
        return text
    head, rest = text[: len(label)], text[len(label) :]
    if head != label:
        return text
    rest = re.sub(rf"\b{re.escape(label)}'s(?= )", "their", rest)
    return head + rest


def _valid(claim: Claim, said_at: float) -> tuple[float | None, float | None]:
    han = is_chinese(claim.text)
    past = claim.past and not claim.future
    date = find_date(claim.text, said_at, past=past, chinese=han)
    if claim.predicate in {"birthday", "age", "goal", "does", "training_for"}:
        return (said_at if claim.predicate == "age" and claim.changed else None), None
    if claim.ended and claim.predicate != "event":
        return None, date.start if date else said_at
    over = is_over(claim)
    if date is None:
        return (said_at if claim.changed else None), (said_at if over else None)
    if re.search(
        rf"\b(?:until|till)(?: the)? {re.escape(date.words)}|直到{re.escape(date.words)}",
        claim.text,
    ) or date.words.lower().startswith(("until", "till")):
        return None, date.end
    return date.start, (date.end if over else None)


def _entities(claim: Claim, label: str, source: str) -> tuple[EntityDraft, ...]:  # noqa: C901 - one branch per shape of object
    """The named and the plain objects of a claim, and a named speaker or subject."""
    found: list[EntityDraft] = []
    han = is_chinese(claim.text)
    subject = claim.subject.removeprefix("the ").removeprefix("The ")
    whose = re.match(r"(.+?)'s ", subject)
    subject = whose[1] if whose else subject.split("的")[0] if han else subject
    proper = (
        subject == label
        or han
        or (
            re.fullmatch(PERSON, subject)
            and subject.split()[0].lower() not in COMMON
            and (" " in subject or is_name(subject.lower()))
        )
    )
    nobody = subject in USER_LABELS or is_unnamed(subject)
    if proper and not nobody:
        found.append(EntityDraft(subject, "person"))
    kind = claim.tail_type or claim.about.tail_type
    if claim.predicate == "event" and not han:
        thing = _TAKEN.match(claim.object)
        found += [
            EntityDraft(head, "thing")
            for head in english_build.entity_heads(thing["o"] if thing else "")
            if head.split()[-1].lower() not in NO_THINGS
        ]
    if claim.predicate == "has_condition" and re.search(
        r"\b(?:broke|sprained|hurt|injured|fractured|burned)\b", claim.text
    ):
        return merged(found, source)
    if han and claim.predicate in _UNTYPED:
        found += chinese_things(claim.text)
    if claim.predicate == "has_pet":
        if not (han and claim.extra and len(claim.object) == 1):  # its name says more than 猫
            found.append(EntityDraft(claim.object, "animal"))
    elif kind in ENTITY_TYPES and not (han and claim.predicate in _UNTYPED):
        named = [] if han else english_names(claim.object, first=False)
        if claim.predicate in _NAMED_OBJECT and (named or han):
            parts = re.split("和|、" if han else r", | and |, and | & ", claim.object)
            found += [
                EntityDraft(part.strip(), "person")
                for part in parts
                if part.strip()[:1].isupper() or han
            ]
        elif named and kind in {"place", "organization"}:
            found += (
                [EntityDraft(_leading_name(claim.object), kind)]
                if len(named) == 1
                else [EntityDraft(n.name, kind) for n in named]
            )
        elif named and claim.predicate != "works_as":
            found += [
                n if n.type != "thing" or kind in {"food", "concept"} else EntityDraft(n.name, kind)
                for n in named
            ]
        else:
            heads = (
                chinese.entity_heads(claim.object)
                if han
                else english_build.entity_heads(claim.object)
            )
            if claim.predicate == "works_as" and han:
                heads = []
            if kind in {"place", "organization"} and not han:
                heads = [head for head in heads if type_of(head.split()[-1]) == "place"]
            if claim.predicate in _OWNING and not han:
                heads = [head for head in heads if head.split()[-1].lower() not in NO_THINGS]
            found += [EntityDraft(head, kind) for head in heads]
        if claim.predicate in _TAUGHT and not han:
            found += [EntityDraft(head, kind) for head in english_build.entity_heads(claim.object)]
    for name in re.split("和|、|, | and ", claim.extra):
        if name[:1].isupper() or (han and name and claim.predicate in {"has_pet", "gave", "found"}):
            kind = {"has_pet": "animal", "found": "place", "works_as": "organization"}.get(
                claim.predicate, "person"
            )
            found.append(EntityDraft(name, kind))
        elif claim.predicate == "prefers" and name:
            heads = chinese.entity_heads(name) if han else english_build.entity_heads(name)
            found += [EntityDraft(head, "concept") for head in heads]
    if claim.former and claim.predicate == "lives_in":
        found.append(EntityDraft(claim.former, "place"))
    return merged(found, source)


def _leading_name(text: str) -> str:
    return re.sub(r"^(?:the|The|an?|my|their) (?=[A-Z])", "", text)


def _relations(
    claim: Claim,
    entities: tuple[EntityDraft, ...],
    valid_from: float | None,
    valid_to: float | None,
) -> tuple[RelationDraft, ...]:
    """The triples of a claim. A denied statement gives none, except that it ends what it denies."""
    head = OWNER if claim.subject in USER_LABELS else claim.subject
    names = [e.name for e in entities]
    if head != OWNER and head not in names and not _HEAD_ZH.fullmatch(head):
        return ()
    tails = [n for n in names if n not in (head, claim.former)]
    if claim.predicate == "prefers":
        tails = [n for n in tails if n not in claim.extra]
    coming = claim.predicate == "plans" and claim.tail_type is not None
    if (claim.predicate in {*_UNTYPED, "age"} or claim.tail_type == "none") and not coming:
        tails = []
    if claim.predicate in {"works_as", "works_at"} and is_chinese(claim.text) and not tails:
        # A trade or a hospital is related to, though it is no name.
        tails = [claim.object] if claim.tail_type != "none" else []
    predicate = claim.relation
    if claim.polarity < 0 and claim.predicate == "likes":
        predicate, negative = "dislikes", False
    elif claim.polarity < 0 and claim.predicate in {"eats", "drinks"} and not claim.ended:
        predicate, negative = "avoids", False
    else:
        negative = claim.polarity < 0
    made = [
        RelationDraft(
            head,
            predicate,
            tail,
            valid_from=valid_from,
            valid_to=valid_to,
            functional=claim.functional and not claim.future and not is_over(claim),
            confidence=0.9 if claim.explicit else 0.6,
            ended=claim.ended or negative,
        )
        for tail in tails
    ]
    if claim.predicate == "has_pet" and claim.extra in tails:
        made = [r for r in made if r.tail == claim.extra]
    if claim.former and claim.former in names and claim.predicate == "lives_in":
        made.append(RelationDraft(head, predicate, claim.former, valid_to=valid_from, ended=True))
    return tuple(made)

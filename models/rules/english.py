"""English claims: an ordered table of patterns over the core of a third-person clause."""

from __future__ import annotations

import re
from collections.abc import Iterator

from reverie.models.rules.claims import Claim
from reverie.models.rules.english_build import claims_from, cut_value, with_article
from reverie.models.rules.english_rules import CONDITION, ORG, RULES
from reverie.models.rules.phrases import NAME, NAMES, PERSON, Frame, frame_of
from reverie.models.rules.text import MAX_CLAUSE_CHARS
from reverie.models.rules.vocab import (
    ATTRIBUTE_NOUNS,
    ATTRIBUTES,
    DIETS,
    KIN,
    NATIONALITIES,
    PASTS,
    PETS,
    TALK_VERBS,
    THIRDS,
    TRAITS,
)

# Claims that stand inside a clause about something else ("moved for a new job at Acme").
_INNER_JOB = re.compile(
    rf"\b(?:new |first |dream |\w+ )?(?:job|position|role|internship) (?:at|with) {ORG}"
)
_HABIT = re.compile(
    r"\b(?:every (?:single )?(?:day|morning|evening|night|week|weekend|month|year|summer|winter"
    r"|spring"
    r"|autumn|monday|tuesday|wednesday|thursday|friday|saturday|sunday|other day)|daily|weekly"
    r"|once an? \w+|twice an? \w+|three times an? \w+|on (?:mondays|tuesdays|wednesdays|thursdays"
    r"|fridays|saturdays|sundays|weekends|weekdays)|in the (?:mornings|evenings|afternoons)"
    r"|at (?:the )?weekends?|before (?:bed|work|breakfast)|after work|at night)\b"
    r"|^(?:\w+ )?(?:wakes up|gets up|goes to bed|starts work) at",
    re.IGNORECASE,
)
_OFTEN = re.compile(r"\b(?:always|usually|often|regularly|never|normally|rarely|typically)\b")
_CAUSE = re.compile(
    rf"(?P<cause>[\w' -]{{2,60}}?) (?:gives?|gave|causes?|triggers?) (?:User|{NAME}"
    rf"|them) (?P<o>{CONDITION})\b"
)
_ALLERGY = re.compile(
    rf"(?P<who>User|{PERSON}) (?:can't|cannot|can not|mustn't|must not) "
    r"(?:eat|have|take|drink|use|touch|be near) (?P<o>[\w' -]{2,40}?)"
    r" (?:because of|due to|on account of) (?:an? |the |their )?(?:\w+ )?allerg(?:y|ies)"
)
# "Ana and Bo got married": a pair's doings as the first one's.
_COUPLE = re.compile(
    rf"(?P<who>User|{PERSON}) and (?P<o>{PERSON}) (?:have |are |just |finally |recently )*"
    r"(?:(?:got |getting |been )?(?P<how>married|engaged|divorced|dating)"
    r"|(?P<over>(?:broke|broken|split) up|separated"
    r"|no longer (?:together|a couple|dating)|not together)"
    r"|(?P<began>(?:got|are) together|(?:became|are) a couple|started (?:going out|dating)))\b"
)
_FAVOURITE = re.compile(r"(?:all[- ]time )?favou?rite (?P<what>[\w ]{1,40})")
_CALL_ME = re.compile(
    rf"(?:please |just |you can |people |everyone |friends |my friends )*calls? (?P<me>User"
    rf"|{PERSON}|me) (?P<o>{PERSON})",
    re.IGNORECASE,
)
_ONLY = re.compile(
    r"(?P<o>[a-z][\w -]{2,40}) only(?:,? please)?$|only (?P<o2>[a-z][\w -]{2,40}),? please$",
    re.IGNORECASE,
)
_TAKE = re.compile(
    rf"(?:(?:[Hh]ere|[Aa]h|[Ww]ell"
    rf"|[Pp]lease)[,!]? )*(?:(?P<to>{PERSON})[,!] )?(?:here[,!] )?(?:[Tt]ake|[Hh]ave|[Aa]ccept"
    rf"|[Kk]eep) (?:this|these|my|the) (?P<o>[\w' -]{{2,50}}?)(?: as .*)?$"
)
_TOLD = frozenset(
    """say says said tell tells told ask asks asked think thinks thought know knows knew thank
    thanks mean means""".split(),
)
_NO_JOB = re.compile(
    r"\b(?:quit|left|lost|applied|interview|apply|declined|rejected|turned down|candidate|applicant"
    r"|shortlisted|looking|hop(?:es|ing)|wants?|seeks?|waiting)\b"
)
_PET_WORDS = "|".join(sorted(PETS, key=len, reverse=True))
_KIN_WORDS = "|".join(sorted(KIN, key=len, reverse=True))


def parse(clause: str, label: str, *, loose: bool = False) -> list[Claim]:
    """Return the claims of one third-person English clause, the main one first.

    Args:
        clause: for example "User moved from Rome to Oslo last week".
        label: the speaker's name in it; other names and "the ..." may be subjects as well.
        loose: whether an unknown verb with a name, number or date still makes a claim.
    """
    clause = clause.strip(" ,.!;:-")[:MAX_CLAUSE_CHARS]
    special = list(_special(clause, label))
    if special:
        return special
    frame = frame_of(clause, label)
    if frame is None or (not frame.core and not frame.name):
        return []
    claims = list(_noun_claims(frame, clause))
    settled = any(c.text == clause for c in claims)
    if frame.core and not settled:
        claims += _core_claims(frame, clause, label, loose=loose)
    return [
        c
        for c in claims
        if c.object != label  # "love me" is about somebody else
        and c.object not in {"", "to", "it", "so", "that", "this", "you", "them"}
    ]


def _special(clause: str, label: str) -> Iterator[Claim]:
    """Requests and gifts, which have no subject of the ordinary kind."""
    if m := re.match(
        rf"(?:It's|It is|it's|This is|this is) (?P<o>{PERSON})(?: again| here| speaking"
        rf"|$)(?! from)",
        clause,
    ):
        yield Claim(label, "name", m["o"], f"{label}'s name is {m['o']}")
    elif (m := _CALL_ME.match(clause)) and (m["o"][0].isupper()):
        who = label if m["me"].casefold() in {"me", label.casefold()} else m["me"]
        yield Claim(
            who,
            "attribute",
            m["o"],
            f"{who} goes by {m['o']}",
            detail="nickname",
            tail_type="person",
        )
    elif m := _ONLY.fullmatch(clause):
        thing = m["o"] or m["o2"]
        thing = thing if thing[:2].isupper() else thing[:1].lower() + thing[1:]
        yield Claim(label, "wants", thing, f"{label} wants {thing} only", tail_type="concept")
    elif m := _TAKE.fullmatch(clause):
        to = m["to"] or ""
        text = (
            f"{label} gave {to} {with_article(m['o'])}"
            if to
            else f"{label} gave away {with_article(m['o'])}"
        )
        yield Claim(label, "gave", m["o"], text, extra=to, past=True, changed=True)
    elif m := _ALLERGY.match(clause):
        yield Claim(m["who"], "allergic_to", m["o"], clause)
    elif m := _COUPLE.match(clause):
        over = bool(m["over"]) or m["how"] == "divorced"
        how = m["how"] or ("" if over else "dating")
        who, other = (m["o"], m["who"]) if m["o"] == label else (m["who"], m["o"])
        yield Claim(who, "partner", other, clause, extra=how, ended=over, past=over, changed=True)
    elif m := _CAUSE.fullmatch(clause):
        yield Claim(label, "has_condition", m["o"], clause)


def is_couple(text: str) -> bool:
    """Return whether a statement has two people for its one subject ("Ana and Bo got married")."""
    return bool(_COUPLE.match(text))


def _noun_claims(f: Frame, clause: str) -> Iterator[Claim]:
    """Claims in the subject: "Ana's sister Bea ...", "Ana's favourite food is rice"."""
    if not f.noun:
        return
    whom, _, noun = f.noun.rpartition("'s ")
    if whom and noun != "name":  # "User's cousin's dog" is not the user's
        f = f._replace(owner=f"{f.owner}'s {whom}", noun=noun)
    head = f.noun.split()[-1].removesuffix("'s")
    value = re.match(
        r"(?:is|was|are|=|:|'s|(?:went|gone) (?:up|down) to|rose to|fell to|dropped to|increased to"
        r"|was (?:raised|lowered|cut|changed) to|changed to)"
        r"(?: (?:called|named|now|actually|currently|on))* (?P<o>.+)",
        f.core,
    )
    named = re.match(
        rf"(?:is|was|are|got) (?:(?:called|named) )?(?P<o>{NAMES})"
        r"(?=$|[,.;!]| and | who | but | now\b)",
        f.core,
    )
    whose = re.match(r"(?P<noun>.+)'s name$", f.noun)
    if whose:
        head = whose["noun"].split()[-1]
    if head in KIN:
        predicate, detail = KIN[head]
        name = f.name or (named["o"] if named and not f.negated and not f.ended else "")
        if name:
            many = " and " in name or "," in name
            verb = ("are" if many else "is") + (" named" if predicate == "kin" else "")
            text = f"{f.owner}'s {head} {verb} {name}"
            main = bool(named) and not f.name
            yield Claim(
                f.owner,
                predicate,
                name,
                clause if main else text,
                detail=detail,
                tail_type="person",
            )
        return
    if head in PETS:
        name = f.name or (named["o"] if named else "")
        gone = bool(re.match(r"(?:died|passed away|ran away|is dead|was put down|is gone)", f.core))
        if name or gone:
            text = (
                clause
                if (named and not f.name) or gone
                else f"{f.owner} has {with_article(head)} named {name}"
            )
            yield Claim(
                f.owner, "has_pet", head, text, extra=name, ended=gone, past=gone, changed=gone
            )
        return
    if value is None:
        return
    thing = cut_value(value["o"])
    if m := _FAVOURITE.fullmatch(f.noun):
        detail = _spell(m["what"])
        yield Claim(
            f.owner,
            "favourite",
            thing,
            clause,
            detail=detail,
            polarity=-1 if f.negated else 1,
            ended=f.ended,
        )
        return
    if f.noun == "home" and (place := re.match(r"(?:in|near) (?P<o>.+)", thing)):
        yield Claim(f.owner, "lives_in", place["o"], clause, ended=f.ended)
        return
    yield from _attribute_claims(f, clause, thing)


def _attribute_claims(f: Frame, clause: str, thing: str) -> Iterator[Claim]:
    """Claims of what has one value: "Ana's phone number is ..."."""
    attribute = ATTRIBUTES.get(f.noun) or ATTRIBUTES.get(
        re.sub(r"^(?:new|current|real|main|first|old|work|next) ", "", f.noun)
    )
    made = re.match(r"\w+(?:ed|en) (?:with|by|in|for|on)\b", thing)  # no value of "X's code"
    if attribute is None and f.noun.split()[-1] in ATTRIBUTE_NOUNS and not made:
        attribute = ("attribute", f.noun)
    if attribute:
        predicate, detail = attribute
        if f.noun.startswith("old "):
            return
        yield Claim(
            f.owner,
            predicate,
            thing,
            clause,
            detail=detail,
            polarity=-1 if f.negated else 1,
            ended=f.ended,
        )


def _spell(words: str) -> str:
    return " ".join(
        {"color": "colour", "movie": "film", "colors": "colour", "movies": "film"}.get(w, w)
        for w in words.lower().split()
    )


def _core_claims(f: Frame, clause: str, label: str, *, loose: bool) -> list[Claim]:
    head = f.noun.split()[-1] if f.noun else ""
    subject = (
        f.name if f.name and " and " not in f.name and (head in KIN or head in PETS) else f.subject
    )
    habit = bool(_HABIT.search(clause) or _OFTEN.search(clause))
    for rule in RULES:
        match = rule.pattern.match(f.core)
        if match is None:
            continue
        claims = claims_from(rule, match, f, clause, subject)
        if claims:
            return _with_inner(claims, f, subject, label)
    claims = []
    if (f.owner != label or f.noun) and (
        m := re.match(r"(?:is|was|are) (?:an? |the )?(?P<o>[\w' -]{2,80})", f.core)
    ):
        # the state of a person, place or thing other than the speaker
        claims.append(
            Claim(
                subject,
                "state",
                m["o"],
                clause,
                polarity=-1 if f.negated else 1,
                ended=f.ended,
                explicit=f.owner[0].isupper(),
                changed=f.now,
            )
        )
    elif m := re.match(rf"(?:is|was|am) (?:an? )?(?P<o>{TRAITS}|{NATIONALITIES})\b", f.core):
        claims.append(
            Claim(subject, "state", m["o"], clause, polarity=-1 if f.negated else 1, ended=f.ended)
        )
    elif (
        f.owner == label
        and (m := re.match(rf"is (?P<o>{PERSON})(?=$|[,.!]| and | from | by )", f.core))
        and not f.negated
        and _is_name(m["o"])
    ):
        claims.append(Claim(subject, "name", m["o"], f"{subject}'s name is {m['o']}"))
    elif (
        habit
        and _first(f.core) not in TALK_VERBS
        and not f.core.startswith(("is ", "was "))
        and len(f.core.split()) > 1
    ):
        claims.append(
            Claim(
                subject,
                "does",
                cut_value(f.core),
                clause,
                polarity=-1 if f.negated else 1,
                ended=f.ended,
            )
        )
    elif claim := _event(f, clause, subject, label, loose=loose):
        claims.append(claim)
    return _with_inner(claims, f, subject, label)


def _is_name(text: str) -> bool:
    return not re.fullmatch(
        rf"(?:{NATIONALITIES}|{DIETS}|AI|OK|Ok|Okay|Sorry|Not|So|Just|In|At)", text
    )


def _first(core: str) -> str:
    return core.split(" ", 1)[0].lower()


def _event(f: Frame, clause: str, subject: str, label: str, *, loose: bool) -> Claim | None:
    """Something that happened or is planned, with a verb that no rule knows better."""
    first = _first(f.core)
    if (
        first in (TALK_VERBS if f.owner == subject == label else _TOLD)
        or (first in {"is", "was", "are", "were", "be"} and not f.future)
    ) and not re.match(
        r"(?:was|were|is|are|got) (?:\w+ly )?(?:\w+ed|hurt|stolen|broken|lost|born|made"
        r"|given|found|built)\b",
        f.core,
    ):
        return None
    if first in {"has", "have", "had"} and not f.past:
        return None
    words = f.core.split()
    past = f.past or first in PASTS or first.endswith("ed")
    known = past or first.endswith("ing") or first in THIRDS or f.future
    if (not known and not loose) or (len(words) < 2 and not (past and f.owner != "User")):  # noqa: PLR2004 - a few words
        return None
    if f.negated and not past:
        return None
    if (
        len(words) < 3  # noqa: PLR2004 - a few words
        and not re.search(r"[A-Z\d]", f.core)
        and words[-1] in {"it", "that", "this", "you", "so", "there"}
    ):
        return None
    predicate = "plans" if f.future else "event"
    return Claim(
        subject,
        predicate,
        cut_value(f.core),
        clause,
        polarity=-1 if f.negated else 1,
        ended=f.ended,
        past=past and not f.future,
        future=f.future,
        explicit=False,
    )


def _with_inner(claims: list[Claim], f: Frame, subject: str, label: str) -> list[Claim]:
    """Add a job named inside a clause whose main claim is another."""
    relative = re.search(
        rf"(?:{re.escape(label)}'s|[Tt]heir) (?:\w+ )?(?P<kin>{_KIN_WORDS}) (?P<o>{PERSON})", f.core
    )
    if relative:
        predicate, detail = KIN[relative["kin"]]
        verb = "is named" if predicate == "kin" else "is"
        text = f"{label}'s {relative['kin']} {verb} {relative['o']}"
        claims.append(
            Claim(label, predicate, relative["o"], text, detail=detail, tail_type="person")
        )
    pet = re.search(
        rf"(?:{re.escape(label)}'s|[Tt]heir) (?:\w+ )?(?P<pet>{_PET_WORDS}) (?P<o>{PERSON})", f.core
    )
    if pet:
        text = f"{label} has {with_article(pet['pet'])} named {pet['o']}"
        claims.append(Claim(label, "has_pet", pet["pet"], text, extra=pet["o"]))
    inner = _INNER_JOB.search(f.core)
    known = f.future or any(c.predicate == "works_at" for c in claims)
    if inner and not known and not _NO_JOB.search(f.core):
        text = f"{subject} works at {inner['o']}"
        claims.append(Claim(subject, "works_at", inner["o"], text, changed=True))
    return claims

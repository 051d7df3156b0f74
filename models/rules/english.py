"""English claims: an ordered table of patterns over the core of a third-person clause."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from reverie.models.rules.claims import Claim
from reverie.models.rules.english_rules import CONDITION, ORG, RULES, Rule
from reverie.models.rules.phrases import DET, NAME, NAMES, PERSON, Frame, frame_of
from reverie.models.rules.text import MAX_CLAUSE_CHARS, is_chinese
from reverie.models.rules.vocab import (
    ATTRIBUTES,
    DIETS,
    GERUNDS,
    KIN,
    NATIONALITIES,
    PASTS,
    PETS,
    TALK_VERBS,
    THIRDS,
    TRAITS,
)

# Claims that stand inside a clause about something else ("moved for a new job at Acme").
_INNER_JOB = re.compile(rf"\b(?:new |first |dream |\w+ )?(?:job|position|role|internship) (?:at|with) {ORG}")
_HABIT = re.compile(
    r"\b(?:every (?:single )?(?:day|morning|evening|night|week|weekend|month|year|summer|winter|spring"
    r"|autumn|monday|tuesday|wednesday|thursday|friday|saturday|sunday|other day)|daily|weekly"
    r"|once an? \w+|twice an? \w+|three times an? \w+|on (?:mondays|tuesdays|wednesdays|thursdays"
    r"|fridays|saturdays|sundays|weekends|weekdays)|in the (?:mornings|evenings|afternoons)"
    r"|at (?:the )?weekends?|before (?:bed|work|breakfast)|after work|at night|at \d{1,2}(?::\d\d)?"
    r" ?(?:am|pm))\b",
    re.IGNORECASE,
)
_OFTEN = re.compile(r"\b(?:always|usually|often|regularly|never|normally|rarely|typically)\b")
_CAUSE = re.compile(rf"(?P<cause>[\w' -]{{2,60}}?) (?:gives?|gave|causes?|triggers?) (?:User|{NAME}|them) (?P<o>{CONDITION})\b")
_FAVOURITE = re.compile(r"(?:all[- ]time )?favou?rite (?P<what>[\w ]{1,40})")
_CALL_ME = re.compile(rf"(?:please |just |you can |people |everyone |friends |my friends )*calls? (?P<me>User|{PERSON}|me) (?P<o>{PERSON})", re.IGNORECASE)
_ONLY = re.compile(r"(?P<o>[a-z][\w -]{2,40}) only(?:,? please)?$|only (?P<o2>[a-z][\w -]{2,40}),? please$", re.IGNORECASE)
_TAKE = re.compile(rf"(?:(?:[Hh]ere|[Aa]h|[Ww]ell|[Pp]lease)[,!]? )*(?:(?P<to>{PERSON})[,!] )?(?:here[,!] )?(?:[Tt]ake|[Hh]ave|[Aa]ccept|[Kk]eep) (?:this|these|my|the) (?P<o>[\w' -]{{2,50}}?)(?: as .*)?$")
_TOLD = frozenset("say says said tell tells told ask asks asked think thinks thought know knows knew thank thanks mean means".split())
_LIST = re.compile(r",? and |, | or | as well as | & ")
_LEAD = re.compile(rf"^(?:{DET}|any|all|every|most|both|no|eating|drinking|such|being|new|of|to) ", re.IGNORECASE)
_FIRST_DROP = re.compile(r"^(?:an?|the|some|any|all|my|their|his|her|this|that|these|those) ", re.IGNORECASE)


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
    if frame is None or not frame.core and not frame.name:
        return []
    claims = list(_noun_claims(frame, clause))
    settled = any(c.text == clause for c in claims)
    if frame.core and not settled:
        claims += _core_claims(frame, clause, label, loose=loose)
    return [c for c in claims if c.object]


def _special(clause: str, label: str) -> Iterator[Claim]:
    """Requests and gifts, which have no subject of the ordinary kind."""
    if (m := _CALL_ME.match(clause)) and (m["o"][0].isupper()):
        yield Claim(label, "attribute", m["o"], f"{label} goes by {m['o']}", detail="nickname", tail_type="person")
    elif m := _ONLY.fullmatch(clause):
        thing = m["o"] or m["o2"]
        yield Claim(label, "wants", thing, f"{label} wants {thing} only", tail_type="concept")
    elif m := _TAKE.fullmatch(clause):
        to = m["to"] or ""
        text = f"{label} gave {to} {_a(m['o'])}" if to else f"{label} gave away {_a(m['o'])}"
        yield Claim(label, "gave", m["o"], text, extra=to, past=True, changed=True)
    elif m := _CAUSE.fullmatch(clause):
        yield Claim(label, "has_condition", m["o"], clause)


def _a(noun: str) -> str:
    return noun if noun.endswith("s") else f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def _noun_claims(f: Frame, clause: str) -> Iterator[Claim]:
    """Claims in the subject: "Ana's sister Bea ...", "Ana's favourite food is rice"."""
    if not f.noun:
        return
    head = f.noun.split()[-1].removesuffix("'s")
    value = re.match(rf"(?:is|was|are|=|:|'s)(?: (?:called|named|now|actually|currently|on))* (?P<o>.+)", f.core)
    named = re.match(rf"(?:is|was|are|got) (?:(?:called|named) )?(?P<o>{NAMES})(?=$|[,.;!]| and | who | but )", f.core)
    whose = re.match(rf"(?P<noun>.+)'s name$", f.noun)
    if whose:
        head = whose["noun"].split()[-1]
    if head in KIN:
        predicate, detail = KIN[head]
        name = f.name or (named["o"] if named and not f.negated and not f.ended else "")
        if name:
            many = " and " in name or "," in name
            text = f"{f.owner}'s {head} {'are' if many else 'is'} {'named ' if predicate == 'kin' else ''}{name}"
            main = bool(named) and not f.name
            yield Claim(f.owner, predicate, name, clause if main else text, detail=detail, tail_type="person")
        elif f.core.startswith(("died", "passed away", "is dead")):
            yield Claim(f.owner, predicate, head, clause, detail=detail, past=True, changed=True, ended=True)
        return
    if head in PETS:
        name = f.name or (named["o"] if named else "")
        gone = bool(re.match(r"(?:died|passed away|ran away|is dead|was put down|is gone)", f.core))
        if name or gone:
            text = clause if named and not f.name or gone else f"{f.owner} has {_a(head)} named {name}"
            yield Claim(f.owner, "has_pet", head, text, extra=name, ended=gone, past=gone, changed=gone)
        return
    if value is None:
        return
    thing = _cut(value["o"])
    if m := _FAVOURITE.fullmatch(f.noun):
        detail = _spell(m["what"])
        yield Claim(f.owner, "favourite", thing, clause, detail=detail, polarity=-1 if f.negated else 1)
        return
    attribute = ATTRIBUTES.get(f.noun) or ATTRIBUTES.get(re.sub(r"^(?:new|current|real|main|first|old|work|next) ", "", f.noun))
    if attribute:
        predicate, detail = attribute
        if f.noun.startswith("old "):
            return
        yield Claim(f.owner, predicate, thing, clause, detail=detail, polarity=-1 if f.negated else 1,
                    ended=f.ended)  # fmt: skip


def _spell(words: str) -> str:
    return " ".join({"color": "colour", "movie": "film", "colors": "colour", "movies": "film"}.get(w, w) for w in words.lower().split())


def _cut(text: str) -> str:
    """Drop what follows a value: "green now, by the way" is "green"."""
    return re.split(r"[,;!?()]\s|\.\s|\s(?:because|but|since|so|now|and (?:I|my|User)|anymore|which|who)\b", text, maxsplit=1)[0].strip(" ,.;!")


def _core_claims(f: Frame, clause: str, label: str, *, loose: bool) -> list[Claim]:
    head = f.noun.split()[-1] if f.noun else ""
    subject = f.name if f.name and " and " not in f.name and (head in KIN or head in PETS) else f.subject
    habit = bool(_HABIT.search(clause) or _OFTEN.search(clause))
    for rule in RULES:
        match = rule.pattern.match(f.core)
        if match is None:
            continue
        claims = _from_rule(rule, match, f, clause, subject)
        if claims:
            return _with_inner(claims, f, subject, label)
    claims = []
    if (f.owner != label or f.noun) and (m := re.match(rf"(?:is|was|are) (?:an? |the )?(?P<o>[\w' -]{{2,80}})", f.core)):
        # the state of a person, place or thing other than the speaker
        claims.append(Claim(subject, "state", m["o"], clause, polarity=-1 if f.negated else 1,
                            ended=f.ended, explicit=f.owner[0].isupper(), changed=f.now))  # fmt: skip
    elif m := re.match(rf"(?:is|was|am) (?:an? )?(?P<o>{TRAITS}|{NATIONALITIES})\b", f.core):
        claims.append(Claim(subject, "state", m["o"], clause, polarity=-1 if f.negated else 1, ended=f.ended))
    elif f.owner == label and (m := re.match(rf"is (?P<o>{PERSON})(?=$|[,.!]| and | from | by )", f.core)) and not f.negated and _is_name(m["o"]):
        claims.append(Claim(subject, "name", m["o"], f"{subject}'s name is {m['o']}"))
    elif habit and _first(f.core) not in TALK_VERBS and not f.core.startswith(("is ", "was ")) and len(f.core.split()) > 1:
        claims.append(Claim(subject, "does", _cut(f.core), clause, polarity=-1 if f.negated else 1, ended=f.ended))
    elif claim := _event(f, clause, subject, loose=loose):
        claims.append(claim)
    return _with_inner(claims, f, subject, label)


def _is_name(text: str) -> bool:
    return not re.fullmatch(rf"(?:{NATIONALITIES}|{DIETS}|AI|OK|Ok|Okay|Sorry|Not|So|Just|In|At)", text)


def _first(core: str) -> str:
    return core.split(" ", 1)[0].lower()


def _event(f: Frame, clause: str, subject: str, *, loose: bool) -> Claim | None:
    """Something that happened or is planned, with a verb that no rule knows better."""
    first = _first(f.core)
    if first in (TALK_VERBS if f.owner == subject == "User" else _TOLD) or first in {"is", "was", "are", "were", "be"} and not f.future:
        if not re.match(r"(?:was|were|is|are|got) (?:\w+ly )?(?:\w+ed|hurt|stolen|broken|lost|born|made|given|found|built)\b", f.core):
            return None
    if first in {"has", "have", "had"} and not f.past:
        return None
    words = f.core.split()
    known = first in PASTS or first in THIRDS or first in GERUNDS or f.future or first.endswith("ed")
    if not known and not loose or len(words) < 2 and not (f.past and f.owner != "User"):
        return None
    if f.negated and not f.past:
        return None
    if len(words) < 3 and not re.search(r"[A-Z\d]", f.core) and words[-1] in {"it", "that", "this", "you", "so", "there"}:
        return None
    predicate = "plans" if f.future else "event"
    return Claim(subject, predicate, _cut(f.core), clause, polarity=-1 if f.negated else 1,
                 ended=f.ended, past=f.past and not f.future, future=f.future, explicit=False)  # fmt: skip


def _with_inner(claims: list[Claim], f: Frame, subject: str, label: str) -> list[Claim]:
    """Add a job named inside a clause whose main claim is another."""
    inner = _INNER_JOB.search(f.core)
    if inner and not any(c.predicate == "works_at" for c in claims) and not f.future:
        if not re.search(r"\b(?:quit|left|lost|applied|interview|apply|declined|rejected|turned down)\b", f.core):
            claims.append(Claim(subject, "works_at", inner["o"], f"{subject} works at {inner['o']}", changed=True))
    return claims


def _from_rule(rule: Rule, m: re.Match[str], f: Frame, clause: str, subject: str) -> list[Claim]:  # noqa: C901, PLR0911, PLR0912 - one branch per special predicate
    g = m.groupdict()
    o = (g.get("o") or g.get("o2") or "").strip()
    fields = rule.fields
    negative = f.negated
    predicate = rule.predicate
    if fields.get("neg_only") and not negative or fields.get("positive") and negative:
        return []
    if fields.get("only_ended") and not f.ended:
        return []
    polarity = fields.get("polarity", 1)
    if fields.get("neg_only"):
        polarity = -1
    elif negative:
        polarity = -polarity
    ended = f.ended or bool(fields.get("ended"))
    base: dict[str, Any] = {
        "polarity": polarity, "ended": ended, "past": f.past, "future": f.future,
        "changed": bool(fields.get("changed")) or f.now, "former": g.get("former") or g.get("former2") or "",
    }  # fmt: skip
    if f.future and predicate not in {"training_for", "event", "partner", "likes"}:
        return [Claim(subject, "plans", _cut(f.core), clause, polarity=polarity, future=True, ended=ended)]

    def claim(obj: str, text: str = clause, **more: Any) -> Claim:
        return Claim(subject, predicate, obj, text, **(base | more))

    if fields.get("detail"):
        return [claim(o, detail=fields["detail"], tail_type="person")]
    if predicate == "kin":
        kin_predicate, detail = KIN[g["kin"]]
        return [Claim(subject, kin_predicate, o or g["kin"], clause, **(base | {"detail": detail, "tail_type": "person" if o else "none"}))]
    if predicate == "has_pet":
        return [claim(g["pet"], extra=o, changed=bool(re.match(r"(?:adopt|rescue|bought|got|welcomed)", f.core)))]
    if predicate == "partner":
        detail = (g.get("detail") or "").lower()
        if o and o[0].isupper():
            over = detail in {"divorced", "separated", "divorcing"}
            return [claim(o, extra=detail, ended=ended or over, changed="got" in f.core[:4] or f.past)]
        return [claim(o, tail_type="none", changed=f.core.startswith(("got", "became")))]
    if predicate == "works_at":
        found = [claim(o or "job", tail_type=None if o else "none")]
        if g.get("as") and not ended:
            found.append(Claim(subject, "works_as", g["as"], f"{subject} works as {_a(g['as'])}", **base))
        return found
    if predicate == "works_as":
        if fields.get("plain"):
            o = _FIRST_DROP.sub("", o)
        found = [claim(o)]
        if g.get("at") and not ended:
            found.append(Claim(subject, "works_at", g["at"], f"{subject} works at {g['at']}", **base))
        return found
    if predicate == "teaches" and g.get("in"):
        return [claim(o), Claim(subject, "works_in", g["in"], f"{subject} works in {g['in']}", **base)]
    if predicate == "studied" and g.get("at"):
        return [claim(o, extra=g["at"]), Claim(subject, "studied_at", g["at"], f"{subject} studied at {g['at']}", **base)]
    if predicate == "studied_at" and (degree := g.get("deg") or g.get("deg2")):
        return [claim(o), Claim(subject, "studied", degree, f"{subject} has a {degree} degree from {o}", **(base | {"extra": o}))]
    if predicate == "studies_at":
        if not re.match(r"(?:stud|enrol|got|was|is a)", f.core) and not re.search(r"Univers|College|School|Academy|Institute|[A-Z]{3}", o):
            return []
        if f.past and f.core.startswith("stud"):
            return [Claim(subject, "studied_at", o, clause, **base)]
        return [claim(o, changed=f.core.startswith(("got", "was", "enrolled")))]
    if predicate == "born_in" and o.split()[0] in {"The", "A", "It"}:
        return []
    if predicate in {"likes", "eats", "drinks", "allergic_to", "speaks", "learning", "plays", "has_condition"}:
        base["former"] = base["former"] or _switched_from(f, clause)
        return _listed(claim, o, subject, predicate, f, clause)
    if predicate == "found" and g.get("where"):
        return [claim(o, extra=re.sub(r"^\w+ (?:the |an? )?", "", g["where"]))]
    if predicate == "gave":
        return [claim(o, extra=g["to"])]
    if predicate == "prefers":
        return [claim(o, extra=g.get("other") or "")]
    if predicate == "training_for":
        return [claim(o, future=not ended, past=False)]
    if predicate == "event":
        return [claim(o + (g.get("tail") or ""), future=not f.past)]
    return [claim(o, extra=g.get("extra") or "")]


def _switched_from(f: Frame, clause: str) -> str:
    m = re.search(r"\bswitched (?:from ([\w ]{1,30}) )?to ([\w ]{1,30})", clause)
    return (m[1] or "") if m else ""


def _listed(claim: Callable[..., Claim], o: str, subject: str, predicate: str, f: Frame, clause: str) -> list[Claim]:
    """One claim per item of a short list: "hiking, jazz and tea" are three likes."""
    items = [item.strip() for item in _LIST.split(o) if item.strip()]
    short = len(items) > 1 and all(len(item.split()) <= 4 for item in items)
    if not short or f.ended or " but " in o:
        return [claim(o)]
    start = clause.find(o)
    lead = clause[:start] if start >= 0 else f"{subject} "
    return [claim(item, f"{lead}{item}") for item in items]


def entity_heads(text: str) -> list[str]:
    """Return the object's noun without determiners: "any horror movies" gives "horror movies".

    A long or odd object gives nothing: better no entity than a clause as a name.
    """
    bare = text.strip(" ,.;!")
    for _ in range(3):
        bare = _LEAD.sub("", bare)
    bare = re.split(r" (?:in|on|at|with|for|by|from|to|of|over|because|when|during|near|that|which)\b", bare, maxsplit=1)[0]
    words = bare.split()
    if not words or len(words) > 3 or is_chinese(bare):
        return []
    if words[0].lower() in {"it", "that", "this", "them", "him", "her", "you", "anything", "everything", "something", "nothing", "one", "there", "here"}:
        return []
    return [" ".join(words)]

"""From a matched English pattern to its claims: lists, second facts, what is denied or over."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from reverie.models.rules.claims import Claim
from reverie.models.rules.english_rules import Rule
from reverie.models.rules.phrases import DET, Frame
from reverie.models.rules.text import is_chinese
from reverie.models.rules.vocab import KIN, PETS

_SOON = re.compile(
    r"\b(?:next|tomorrow|soon|in [A-Z]\w+|on [A-Z]\w+|in \w+ (?:days|weeks|months))\b"
)
_COMPANY = re.compile(
    r" (?:together |along )?with (?P<who>(?:their|his|her|User's|\w+'s|an?|two|three|four|five|\d+)"
    r" [^,;.!?]{2,60}?)"
    r"(?=$|[,;.!?]| (?:last|next|this|in|since|for|at|because|until)\b)"
)
_LIST = re.compile(r",? and |, | or | as well as | & ")
_LEAD = re.compile(
    rf"^(?:{DET}|any|all|every|most|both|no|eating|drinking|such|being|new|of|to) ", re.IGNORECASE
)
_FIRST_DROP = re.compile(
    r"^(?:an?|the|some|any|all|my|their|his|her|this|that|these|those) ", re.IGNORECASE
)


def with_article(noun: str) -> str:
    """Return `noun` with "a" or "an"; a plural stays bare."""
    return noun if noun.endswith("s") else f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def cut_value(text: str) -> str:
    """Drop what follows a value: "green now, by the way" is "green"."""
    return re.split(
        r"[,;!?()]\s|\.\s|\s(?:because|but|since|so|now|and (?:I|my|User)|anymore|which|who)\b",
        text,
        maxsplit=1,
    )[0].strip(" ,.;!")


def claims_from(rule: Rule, m: re.Match[str], f: Frame, clause: str, subject: str) -> list[Claim]:  # noqa: C901, PLR0912, PLR0915 - one branch per special predicate
    """Return the claims of a matched rule, or none where its fields forbid the match.

    Args:
        rule: the rule that matched.
        m: its match on the core of `f`.
        f: the clause taken apart.
        clause: the clause, which is the text to keep.
        subject: whom the claims are about.
    """
    g = m.groupdict()
    o = (g.get("o") or g.get("o2") or "").strip()
    fields = rule.fields
    negative = f.negated
    predicate = rule.predicate
    if f.core.startswith("care") and f.ended and predicate == "likes":
        fields = {}  # "does not care for it any more": what is over is caring for it
        negative = False
    elif fields.get("neg_only") and f.ended and not negative and predicate == "likes":
        # "can't stand it anymore": what is over is standing it.
        negative, f = True, f._replace(ended=False)
    if (fields.get("neg_only") and not negative) or (fields.get("positive") and negative):
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
        "polarity": polarity,
        "ended": ended,
        "past": f.past,
        "future": f.future,
        "changed": bool(fields.get("changed")) or f.now,
        "former": g.get("former") or g.get("former2") or "",
    }
    if f.future and predicate not in {"training_for", "event", "partner", "likes"}:
        return [
            Claim(
                subject,
                "plans",
                cut_value(f.core),
                clause,
                polarity=polarity,
                future=True,
                ended=ended,
            )
        ]

    def claim(obj: str, text: str = clause, **more: Any) -> Claim:
        return Claim(subject, predicate, obj, text, **(base | more))

    if fields.get("detail"):
        return [
            claim(o, detail=fields["detail"], tail_type=None if fields.get("plain") else "person")
        ]
    if predicate == "plans":
        return [claim(o, future=True, past=False)]
    if predicate == "lives_in" and f.core.startswith("moving"):
        return [
            Claim(
                subject,
                "plans",
                cut_value(f.core),
                clause,
                polarity=polarity,
                future=True,
                ended=ended,
            )
        ]
    if predicate == "lives_in" and not ended and (company := _COMPANY.search(clause)):
        # who lives there too is a statement of its own: a move ends the home, not the company
        home = clause[: company.start()] + clause[company.end() :]
        who = company["who"]
        text = f"{subject} lives with {who}"
        more: dict[str, Any] = {"past": f.past, "detail": "household", "tail_type": "none"}
        return [claim(o, home), Claim(subject, "attribute", f"with {who}", text, **more)]
    if predicate == "kin":
        kin_predicate, detail = KIN[g["kin"]]
        return [
            Claim(
                subject,
                kin_predicate,
                o or g["kin"],
                clause,
                **(base | {"detail": detail, "tail_type": "person" if o else "none"}),
            )
        ]
    if predicate == "has_pet":
        return [
            claim(
                g["pet"],
                extra=o,
                changed=bool(re.match(r"(?:adopt|rescue|bought|got|welcomed)", f.core)),
            )
        ]
    if predicate == "partner":
        detail = (g.get("detail") or "").lower()
        if o and o[0].isupper():
            over = detail in {"divorced", "separated", "divorcing"}
            return [
                claim(o, extra=detail, ended=ended or over, changed="got" in f.core[:4] or f.past)
            ]
        return [claim(o, tail_type="none", changed=f.core.startswith(("got", "became")))]
    if predicate == "works_at":
        if f.core.startswith(("starting", "joining")) and _SOON.search(clause):
            base["future"] = True
        found = [claim(o or "job", tail_type=None if o else "none")]
        if g.get("as") and not ended:
            found.append(
                Claim(
                    subject,
                    "works_as",
                    g["as"],
                    f"{subject} works as {with_article(g['as'])}",
                    **base,
                )
            )
        return found
    if predicate == "works_as":
        if fields.get("plain"):
            o = _FIRST_DROP.sub("", o)
        found = [claim(o)]
        if g.get("at") and not ended:
            found.append(
                Claim(subject, "works_at", g["at"], f"{subject} works at {g['at']}", **base)
            )
        return found
    if predicate == "teaches" and g.get("in"):
        return [
            claim(o),
            Claim(subject, "works_in", g["in"], f"{subject} works in {g['in']}", **base),
        ]
    if predicate == "studied" and g.get("at"):
        return [
            claim(o, extra=g["at"]),
            Claim(subject, "studied_at", g["at"], f"{subject} studied at {g['at']}", **base),
        ]
    if predicate == "studied_at" and (degree := g.get("deg") or g.get("deg2")):
        return [
            claim(o),
            Claim(
                subject,
                "studied",
                degree,
                f"{subject} has a {degree} degree from {o}",
                **(base | {"extra": o}),
            ),
        ]
    if predicate == "studies_at":
        if not re.match(r"(?:stud|enrol|got|was|is a|transfer)", f.core) and not re.search(
            r"Univers|College|School|Academy|Institute|[A-Z]{3}", o
        ):
            return []
        if f.past and f.core.startswith("stud"):
            return [Claim(subject, "studied_at", o, clause, **base)]
        found = [claim(o, changed=f.core.startswith(("got", "was", "enrolled")))]
        if g.get("subject"):
            text = f"{subject} studies {g['subject']}"
            found.append(Claim(subject, "studies", g["subject"], text, **base))
        return found
    if predicate == "born_in" and o.split()[0] in {"The", "A", "It"}:
        return []
    if predicate in {
        "likes",
        "eats",
        "drinks",
        "allergic_to",
        "speaks",
        "learning",
        "plays",
        "has_condition",
    }:
        base["former"] = base["former"] or _switched_from(clause)
        return _listed(claim, o, subject, f, clause)
    if predicate == "has" and ended and o.split()[0] in PETS:
        pet, _, name = o.partition(" ")
        return [Claim(subject, "has_pet", pet, clause, **(base | {"extra": name}))]
    if predicate == "found" and g.get("where"):
        return [claim(o, extra=re.sub(r"^\w+ (?:the |an? )?", "", g["where"]))]
    if predicate == "gave":
        return [claim(o, extra=g["to"])]
    if predicate == "prefers":
        return [claim(o, extra=g.get("other") or "")]
    if predicate == "training_for":
        role = "concept" if fields.get("role") else None
        return [claim(o, future=not ended, past=False, tail_type=role)]
    if predicate == "event":
        return [claim(o + (g.get("tail") or ""), future=not f.past)]
    return [claim(o, extra=g.get("extra") or "")]


def _switched_from(clause: str) -> str:
    m = re.search(r"\bswitched (?:from ([\w ]{1,30}) )?to ([\w ]{1,30})", clause)
    return (m[1] or "") if m else ""


def _listed(
    claim: Callable[..., Claim], o: str, subject: str, f: Frame, clause: str
) -> list[Claim]:
    """One claim per item of a short list: "hiking, jazz and tea" are three likes."""
    items = [item.strip() for item in _LIST.split(o) if item.strip()]
    short = len(items) > 1 and all(len(item.split()) <= 4 for item in items)  # noqa: PLR2004 - a few words
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
    bare = re.sub(
        r"^(?:to )?(?:play|playing|speak|cook|cooking|ride|riding|watch|watching|read|reading"
        r"|drive) (?=\w)",
        "",
        bare,
    )
    for _ in range(3):
        bare = _LEAD.sub("", bare)
    bare = re.split(
        r" (?:in|on|at|with|for|by|from|to|of|over|because|when|during|near|that|which)\b",
        bare,
        maxsplit=1,
    )[0]
    bare = re.sub(r"(?<=\w) (?:out|back|off|up|in|away|down|btw|lol|tho|though|too)$", "", bare)
    words = bare.split()
    if not words or len(words) > 3 or is_chinese(bare):  # noqa: PLR2004 - a few words
        return []
    if words[0].lower() in {
        "had",
        "been",
        "it",
        "that",
        "this",
        "them",
        "him",
        "her",
        "you",
        "anything",
        "everything",
        "something",
        "nothing",
        "one",
        "there",
        "here",
    }:
        return []
    return [" ".join(words)]

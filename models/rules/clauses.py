"""From a turn's text to statements: what is dropped, how sentences split, who is meant."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from reverie.models.rules import chinese, chinese_deeds, chinese_frame, cues, english
from reverie.models.rules.chinese_rules import KIN
from reverie.models.rules.claims import USER_LABELS, Claim
from reverie.models.rules.dates import MONTHS, WEEKDAYS, leading_date
from reverie.models.rules.person import to_third
from reverie.models.rules.text import MAX_CLAUSE_CHARS, MAX_CLAUSES, is_chinese, sentences
from reverie.models.rules.vocab import GERUNDS, PASTS, TALK_VERBS

_FRONTED_TIME = re.compile(r",? (?=(?:I|[Ww]e|[Mm]y|[Oo]ur|[Hh]e|[Ss]he|[Tt]hey|[A-Z][\w-]+)\b)")
_BARE_AGE = re.compile(
    "[\\d一二三四五六七八九十]{1,3}岁"
)  # an answer; whose age, the question tells
_LOOSE_ZH = frozenset({"event", "plans", "state"})  # a deed with a known object says more


class Statement(msgspec.Struct, frozen=True):
    """A clause in the third person with its claims. `explicit`: the speaker asked to keep it."""

    text: str
    claims: tuple[Claim, ...] = ()
    explicit: bool = False


def statements(text: str, label: str, *, owner: bool, narrator: bool) -> Iterator[Statement]:
    """Yield the statements of one turn.

    Args:
        text: cleaned text.
        label: how the speaker is called in the third person.
        owner: whether the speaker is the owner of the graph.
        narrator: whether the turn tells what others do; it has no first person.
    """
    context = _Context(label)
    count = 0
    for sentence in sentences(text):
        if count >= MAX_CLAUSES:
            return
        if is_chinese(sentence):
            found = _chinese(sentence, USER_LABELS[1] if owner else label, context)
        else:
            found = _english(
                sentence, "User" if owner else label, context, owner=owner, narrator=narrator
            )
        for statement in found:
            count += 1
            yield statement


class _Context:
    """Who "she" and "it" are: the last person or animal and the last thing of this turn."""

    def __init__(self, label: str) -> None:
        self.label = label
        self.person = ""
        self.thing = ""

    def learn(self, claims: list[Claim]) -> None:
        """Take in what a clause was about."""
        for claim in claims:
            if claim.predicate == "has_pet":
                whose = "的" if is_chinese(claim.text) else "'s "
                self.person = self.thing = claim.extra or f"{claim.subject}{whose}{claim.object}"
            elif is_chinese(claim.text):
                self._learn_chinese(claim)
            elif claim.predicate in {"kin", "partner", "manager", "met"}:
                self.person = (
                    claim.object
                    if claim.object[:1].isupper()
                    else f"{claim.subject}'s {claim.object}"
                )
            elif claim.predicate == "has" and claim.subject == self.label:
                self.thing = f"{claim.subject}'s {claim.object}"
            elif claim.predicate in {
                "gave",
                "needs",
                "found",
                "has",
                "likes",
                "visited",
                "works_as",
                "training_for",
            }:
                self.thing = claim.object
            elif (
                claim.subject != self.label
                and claim.subject[:1].isupper()
                and " and " not in claim.subject
            ):
                self.person = claim.subject

    def _learn_chinese(self, claim: Claim) -> None:
        if claim.predicate in {"kin", "partner", "manager"}:
            unnamed = claim.tail_type == "none" or claim.object in KIN
            self.person = f"{claim.subject}的{claim.object}" if unnamed else claim.object
        elif claim.predicate == "met":
            self.person = claim.object
        elif claim.subject != self.label:
            self.person = claim.subject


def _english(
    sentence: str, label: str, context: _Context, *, owner: bool, narrator: bool
) -> list[Statement]:
    body = sentence.strip()
    if body.endswith(("?", "?!")) or "?" in body[-3:]:
        return []
    bare = _strip_lead(cues.PAREN.sub(" ", body))
    if m := cues.EXPLICIT.match(bare):
        kept = m["s"].strip(" \"'")
        third = to_third(kept, label).strip(" .!")
        third = third[:1].upper() + third[1:]
        claims = [
            c
            for clause in split_clauses(kept)
            for c in english.parse(_capital(to_third(clause, label)), label)
        ]
        return [Statement(third, tuple(claims[:1]), explicit=True)]
    if m := cues.RETRACT.match(bare):
        topic, rest = cues.taken_back(m["s"])
        taken = _retraction(topic, label, chinese_text=False)
        if rest:
            taken += _english(rest, label, context, owner=owner, narrator=narrator)
        return taken
    bare = cues.TRUSTED.sub("", cues.QUOTED.sub(" ", bare))
    if cues.QUESTION.match(bare) or cues.UNREAL.search(bare) or cues.REPORTED.search(bare):
        return []
    found: list[Statement] = []
    for piece in split_clauses(_strip_lead(bare[: MAX_CLAUSE_CHARS * 4])):
        clause = _strip_lead(piece)[:MAX_CLAUSE_CHARS]
        if (
            not clause
            or cues.QUESTION.match(clause)
            or (
                re.match(r"(?:please|don't|let's|let me|thank)\b", clause, re.IGNORECASE)
                and not re.search(r" only\b|^(?:please )?(?:just )?call me", clause, re.IGNORECASE)
            )
        ):
            continue
        told = _third(clause, label, context, narrator=narrator)
        if told is None or cues.WOULD.search(told[:80]):
            continue
        third = cues.IT.sub(
            lambda m: m[1] + " " + (_the(context.thing) if context.thing else "it"), told, count=1
        )
        claims = english.parse(third, label, loose=not owner or narrator)
        claims = [c for c in claims if _worth(c, label, owner=owner, narrator=narrator)]
        context.learn(claims)
        if claims:
            found.append(Statement(third, tuple(claims)))
    return found


def _worth(claim: Claim, label: str, *, owner: bool, narrator: bool) -> bool:
    """Loose matches of the owner's talk need something to hold on to."""
    if narrator:
        return True
    if claim.subject != label and claim.predicate in {"state", "event"}:
        if cues.OPINION.match(claim.object) or cues.MODAL.match(claim.object):
            return False
        # one capitalised word at the start of a sentence may be any noun: "Balance is key"
        if (
            claim.predicate == "state"
            and " " not in claim.subject
            and not cues.IDENTITY.match(claim.object + " ")
        ):
            return claim.object[:1].isupper()
    if claim.explicit:
        return not (
            claim.subject.lower().startswith(("the ", "a "))
            and claim.predicate == "state"
            and owner
        )
    if claim.subject == label:
        return (
            bool(
                re.search(
                    r"\b[A-Z][a-z]+|\d|\b(?:yesterday|last|next|tomorrow|week|month|year|ago|my|their|User's|night|new|first|today|tonight)\b",
                    claim.text[len(label) :],
                )
            )
            or len(claim.object.split()) >= 3  # noqa: PLR2004 - a few words
        )
    if claim.subject.startswith(f"{label}'s "):
        return True
    if claim.subject.lower().startswith(("the ", "a ", "all ")):
        return not owner and claim.predicate != "state"
    return claim.subject[:1].isupper()


def _the(thing: str) -> str:
    return thing if "'s " in thing or thing[:4] in {"the ", "their"} else f"the {thing}"


def _strip_lead(text: str) -> str:
    text = text.strip(" ,-\"'*#>")
    for _ in range(4):
        shorter = cues.VOCATIVE.sub("", cues.without_lead(text)).strip(" ,-")
        if shorter == text or not shorter:
            break
        text = shorter
    return text


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _uncapital(when: str) -> str:
    first = when.split(" ", 1)[0].casefold()
    return when if first in MONTHS or first in WEEKDAYS else when[:1].lower() + when[1:]


def split_clauses(sentence: str) -> list[str]:
    """Split a sentence into clauses; a clause that shares its subject gets it back. A time in front
    ("Last week, I moved") goes behind the first clause, where every rule looks for it."""
    clauses: list[str] = []
    when = leading_date(sentence)
    behind = _FRONTED_TIME.match(sentence, len(when)) if when else None
    sentence = sentence[behind.end() :] if behind else sentence
    subject = ""
    at = 0
    shared = False
    cuts = sorted(
        [*cues.SPLIT.finditer(sentence), *cues.AND_NAME.finditer(sentence)], key=lambda m: m.start()
    )
    for cut in [*cuts, None]:
        end = cut.start() if cut else len(sentence)
        if end < at:
            continue
        clause = sentence[at:end].strip(" ,")
        if (
            cut
            and not clauses
            and cues.COUPLE.fullmatch(clause)
            and cues.PARTED.match(sentence, cut.end())
        ):
            continue  # "Zoe and I broke up" has one subject
        if behind and not clauses:
            clause = f"{clause.rstrip(' .!')} {_uncapital(when)}"
        if shared and subject:
            clause = f"{subject} {clause}"
        clauses.append(clause)
        if m := re.match(
            r"(?:I|[Ww]e|[Mm]y (?:\w+ ){1,2}?[A-Z]\w+|[A-Z]\w+|[Hh]e|[Ss]he)(?='m|'ve|'ll|\s)",
            _strip_lead(clause),
        ):
            subject = m.group()
        if cut:
            at = cut.end()
            shared = bool(cut.re is cues.SPLIT and cut["same"])
    return [c for c in clauses if c]


def _third(clause: str, label: str, context: _Context, *, narrator: bool) -> str | None:
    """Put a clause into the third person, or return None where nobody known is its subject."""
    clause = cues.HAS_DONE.sub(" has ", cues.IS_DOING.sub(" is ", clause, count=1), count=1)
    if narrator:
        return _capital(clause)
    if m := cues.PERSON_START.match(clause):
        word = m["p"].lower()
        who = context.thing if word in {"it", "its"} else context.person
        if not who:
            return None
        rest = clause[m.end() :]
        if word in {"his", "her", "their", "its"}:
            named = re.match(r"name(?:'s| is| are) (?P<n>[A-Z].*)", rest)
            if named:
                return f"{to_third(who, label)} is named {named['n']}"
            return _capital(to_third(f"{who}'s {rest}", label))
        suffix = {"'s": " is", "'ll": " will", "'ve": " has", "'re": " are", None: ""}[m["rest"]]
        return _capital(to_third(f"{who}{suffix} {rest}", label))
    # "now I'm based in Rome": the adverb goes behind its subject, where every rule looks for it
    if moved := cues.FRONTED.match(clause):
        adverb = moved["adverb"].lower()
        adverb = "now" if adverb in {"nowadays", "these days"} else adverb
        clause = f"{moved['subject']} {adverb} {clause[moved.end() :]}"
    first = cues.ELIDED.match(clause)
    if first:
        verb = first["v"].lower()
        past = verb in PASTS and PASTS[verb] != verb and verb not in TALK_VERBS | {"was", "were"}
        going = verb in {"gonna", "been"} or (
            verb in GERUNDS
            and verb
            in {
                "going",
                "moving",
                "working",
                "training",
                "learning",
                "planning",
                "getting",
                "starting",
                "studying",
                "heading",
            }
        )
        if past or going:
            clause = (
                f"I {clause[0].lower()}{clause[1:]}"
                if past
                else f"I'm {'going to' if verb == 'gonna' else verb}{clause[first.end() :]}"
            )
    return _capital(to_third(clause, label))


def _retraction(topic: str, label: str, *, chinese_text: bool) -> list[Statement]:
    """A taken-back statement: the claim it takes back, as ended."""
    topic = topic.strip(" .!。！\"'，,")
    if len(topic) < 2 or len(topic) > MAX_CLAUSE_CHARS or cues.NOT_A_TOPIC.search(topic):  # noqa: PLR2004 - a few words
        return []
    if chinese_text:
        third = chinese_frame.to_third(topic, label)
        claims = chinese.parse(third if third.startswith(label) else label + third, label)
        text = f"{label}收回：{third}"
    else:
        third = _capital(to_third(topic, label))
        claims = english.parse(third, label)
        text = f"{label} took back: {third}"
    if claims:
        made = [msgspec.structs.replace(c, text=text, ended=True) for c in claims[:1]]
    else:
        made = [Claim(label, "retracted", topic, text, ended=True)]
    return [Statement(text, tuple(made))]


def _chinese_explicit(kept: str, sentence: str, label: str) -> list[Statement]:
    """What the speaker asks to remember, whole; nothing of a question."""
    if cues.ZH_QUESTION.search(sentence):
        return []
    third = chinese_frame.to_third(kept.strip(" 。！，,"), label)
    return [Statement(third, tuple(chinese.parse(third, label)[:1]), explicit=True)]


def _lacks_subject(clause: str) -> bool:
    if clause.startswith("你") or _BARE_AGE.match(clause):
        return False
    return chinese_frame.begins_without_subject(clause) or chinese_deeds.begins(clause)


def _chinese_third(clause: str, label: str, subject: str, person: str) -> str | None:
    """Put a clause into the third person, its subject in front where it is left out; None where
    nobody known is meant."""
    third = chinese_frame.to_third(clause, label)
    if re.match("[他她它](?!们|俩)", third):
        return person + third[1:] if person else None
    if subject and label not in third[:12] and _lacks_subject(third):
        return subject + third
    return third


def _chinese_claims(third: str, label: str, others: Sequence[str]) -> list[Claim]:
    """Read a clause about the speaker or, by name, about one of `others`."""
    named = [who for who in others if who and not who.startswith(label) and third.startswith(who)]
    about = named[0] if named else label
    claims = chinese.parse(third, about)
    if any(c.explicit and c.predicate not in _LOOSE_ZH for c in claims):
        return claims
    return chinese_deeds.deeds(third, about) or claims


def _chinese(sentence: str, label: str, context: _Context) -> list[Statement]:
    body = chinese_frame.strip_lead(cues.PAREN.sub("", sentence).strip("，,。！!；; "))
    if m := cues.EXPLICIT_ZH.match(body):
        return _chinese_explicit(m["s"], sentence, label)
    if m := cues.RETRACT_ZH.match(body):
        return _retraction(m["s"] or m["s2"], label, chinese_text=True)
    body = cues.QUOTED.sub("", body)
    if cues.ZH_COMMAND.search(sentence):
        return []
    if cues.ZH_QUESTION.search(sentence.strip()) or cues.ZH_SUPPOSED.search(body):
        return []
    merged = re.sub("[，,](?=(?:名字)?(?:叫|名叫)|而不是|更喜欢|这把|这个|这本)", "\x00", body)
    found: list[Statement] = []
    subject = ""
    for i, piece in enumerate(cues.ZH_SPLIT.split(merged)):
        clause = chinese_frame.strip_lead(piece.replace("\x00", "，").strip())
        if (
            not clause
            or len(clause) > MAX_CLAUSE_CHARS
            or re.match("请|别|不要|麻烦|帮|让我们?|谢谢", clause)
        ):
            continue
        if cues.ZH_UNREAL.search(clause):
            break  # what follows is said by the same hearsay
        third = _chinese_third(clause, label, subject or ("" if i else label), context.person)
        if third is None:
            continue
        claims = _chinese_claims(third, label, (subject, context.person))
        context.learn(claims)
        if claims:
            main = claims[0]
            introduced = main.object if third.startswith(main.object) else ""  # 周婷是我表妹
            subject = introduced or chinese_frame.carried_on(third, label) or main.subject
            found.append(Statement(third, tuple(claims)))
        elif third.startswith(label):
            subject = label
    return found

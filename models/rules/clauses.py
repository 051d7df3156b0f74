"""From a turn's text to statements: what is dropped, how sentences split, who is meant."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from reverie.models.rules import chinese, english
from reverie.models.rules.claims import Claim
from reverie.models.rules.person import to_third
from reverie.models.rules.text import MAX_CLAUSE_CHARS, MAX_CLAUSES, is_chinese, sentences
from reverie.models.rules.vocab import ADVERBS, GERUNDS, PASTS, TALK_VERBS, THIRDS


class Statement(msgspec.Struct, frozen=True):
    """A clause in the third person with its claims. `explicit`: the speaker asked to keep it."""

    text: str
    claims: tuple[Claim, ...] = ()
    explicit: bool = False


_INTERJECTION = re.compile(
    r"(?:hey|hi|hello|oh|wow|well|so|ok|okay|yeah|yes|yep|yup|no|nope|haha\w*|lol|hmm+|um+|uh|ah|honestly|actually"
    r"|btw|by the way|also|to be honest|tbh|you know|anyway|fyi|guess what|good news|bad news|sure|thanks"
    r"|thank you|cool|great|nice|anyways|right|sorry|alright|good morning|hello there|hey there|hi there|listen|look|and|but|plus"
    r"|unfortunately|sadly|luckily|fortunately|apparently|in fact|of course|as you know|frankly|please note|welcome)"
    r"(?:[,!.:;-]+\s*|\s+-\s+)|(?:and|but|so|plus|oh|well|yeah|also|hey|hi|because|ok|okay)\s+(?=[\w'])",
    re.IGNORECASE,
)
_VOCATIVE = re.compile(r"^(?:hey|hi|hello|thanks|congrats),? [A-Z]\w+[,!.]\s*", re.IGNORECASE)
_QUESTION = re.compile(
    r"^(?:(?:do|does|did|is|are|can|could|would|will|should|have|has|was|were|may|shall)(?:n't)? (?:you|i|we|it|he|she|they|the|this"
    r"|that|there|my|your|anyone|someone|me)|what|why|how|when|where|who|whose|which|what's|how's|where's|who's|any idea)\b",
    re.IGNORECASE,
)
_UNREAL = re.compile(
    r"\b(?:if|wish|wishes|imagine|suppose|supposing|pretend|what if|maybe|perhaps|hypothetically|as if|unless|might|let's say"
    r"|would have|could have|should have|would've|could've|roleplay|role-play|were to|in another life|in a parallel|for example|e\.g)\b",
    re.IGNORECASE,
)
_REPORTED = re.compile(
    r"\b(?:says?|said|told|tells|claims|claimed|asked|asks|according to|quote|quoted|heard|the (?:book|article|song|character|movie|film|poem|story|essay|text|paragraph|sentence|email) (?:is|says|about|where)|translate|rewrite|summarize|proofread|reads:|writes:|wrote:)\b",
    re.IGNORECASE,
)
_TRUSTED = re.compile(r"^(?:my|our) (?:doctor|dentist|boss|manager|therapist|vet|wife|husband)s? (?:just )?(?:said|says|told me)(?: that)? (?=I\b)", re.IGNORECASE)
_EXPLICIT = re.compile(
    r"^(?:please |can you |could you |also |and |just |so )*(?:remember|don't forget|do not forget|never forget|keep in mind|bear in mind"
    r"|note|take note|make a note|for the record|note to self)(?: down)?(?:,? please)?(?: this)?(?:\s*[:,-]\s*| that (?!time|day|one|thing)| (?=my |our |I |I'm |the ))(?P<s>.{6,})",
    re.IGNORECASE | re.DOTALL,
)
_EXPLICIT_ZH = re.compile("^(?:请|麻烦|帮我|你要|一定要|务必|千万|你)*(?:记住|记一下|记下来?|记得|别忘了|不要忘了?|牢记)(?:了|哦|啊|一下)?[：:，, ]*(?P<s>.{4,})", re.DOTALL)
_RETRACT = re.compile(
    r"^(?:please |can you |you can |just |actually,? )*(?:(?:forget|ignore|scratch|disregard|delete|erase)(?: (?:that|what I said about|what I told you about|about|the fact that|the part about|it,))+|I was wrong (?:about|that|when I said(?: that)?)"
    r"|it(?:'s| is) not true that|it(?:'s| is) no longer true that|I lied (?:about|when I said(?: that)?)|I was mistaken about|I misspoke about) (?P<s>.{3,})",
    re.IGNORECASE | re.DOTALL,
)
_RETRACT_ZH = re.compile("^(?:请|麻烦)?(?:忘掉|忘了|忘记|删掉|别记)(?:我说的?|我之前说的?|关于)?(?P<s>.{2,})|^(?:我)?(?:之前|刚才)?(?:说错了|记错了)[，,]?(?P<s2>.{2,})")
_NOT_A_TOPIC = re.compile(r"\b(?:instructions?|everything|all|memor(?:y|ies)|rules?|prompts?|above|previous|system|it|anything)\b|指令|所有|全部|一切|记忆|规则|提示", re.IGNORECASE)
_PRONOUN_START = r"(?:I|I'm|I've|I'd|I'll|we|we're|we've|my|our|he|she|it|it's|he's|she's|they|his|her|their|the)\b"
_VERBS = "|".join(sorted((set(THIRDS) | set(THIRDS.values()) | set(PASTS)) - {"be", "name", "date", "call", "head", "present", "work", "help", "love", "hike", "jog", "cook", "bake", "dance", "walk", "run", "swim", "climb", "cycle", "sail", "hunt", "fish", "garden", "code", "program", "travel", "drink", "eat", "book", "design", "trade", "stream", "record", "cure", "plant", "fear", "hope", "dream", "drive", "plays", "burn", "crash", "sleep", "study", "major", "train", "switch", "trust", "promise", "guard", "coach", "fight", "ski", "surf", "knit", "sew", "paint", "draw", "sing", "read", "write", "teach", "fly", "ride", "play", "watch", "visits", "fall", "change", "lead"} | {"is", "am", "have", "has", "live", "like", "hate", "love", "loves"}, key=len, reverse=True))
_SPLIT = re.compile(
    r"\s*;\s*|(?<=please),\s*|\s+[-\u2013\u2014]+\s+|\s*\u2014\s*"
    rf"|,?\s+(?:but|so|because|although|though|and|while|whereas|plus|yet|cause|or else|since)\s+(?=(?:(?:now|then|also|recently|currently|sometimes|please|he|she|honestly|so)\s+)?{_PRONOUN_START}|(?:so )?please\b|now I\b|don't\b)"
    rf"|,\s*(?=(?:I|I'm|I've|I'll|I'd|we|we're|we've|it|it's|she|she's|he|he's|my|our)\b(?! (?:think|guess|mean|believe|know|hope)))"
    rf"|,?\s+(?P<same>and|but|then|and then)\s+(?=(?:(?:{ADVERBS}|not|never|don't|can't|no longer) )*(?:{_VERBS}|don't|can't|work at|work as|work for|work in|play the|study at|speak|teach|drive a|train for)\b(?! (?:and|or|,)))",
    re.IGNORECASE,
)
_AND_NAME = re.compile(r",?\s+(?:and|but)\s+(?=[A-Z][\w'-]+(?: [A-Z][\w'-]+)? (?:is|was|has|just|got|lives|works|loves|likes|hates|plays|will|turned|moved|started|wants|studies)\b)")
_ELIDED = re.compile(rf"^(?P<adv>(?:(?:{ADVERBS}) )*)(?P<v>[A-Za-z]+)\b", re.IGNORECASE)
_PERSON_START = re.compile(r"^(?P<p>He|She|They|His|Her|Their|Its|It)(?P<rest>'s|'ll|'ve)?\s+", re.IGNORECASE)
_IT = re.compile(r"\b(found|bought|got|made|stole|lost|sold|kept|broke|fixed|painted|built|wrote) it\b")
_QUOTED = re.compile(r"\"[^\"]{0,400}\"|「[^」]{0,400}」|“[^”]{0,400}”")
_PAREN = re.compile(r"\([^()]{0,200}\)|（[^（）]{0,200}）")  # noqa: RUF001 - full-width
_ZH_QUESTION = re.compile("[吗么呢][？?。！]?$|[？?]|^(?:什么|怎么|为什么|如何|哪|谁|多少|能不能|可不可以|你能|可以帮|请问|帮我|麻烦你)|是不是|有没有什么")
_ZH_UNREAL = re.compile("如果|要是|假如|假设|假装|万一|也许|可能|或许|说不定|要不要|好像|仿佛|但愿|早知道|比如|据说|听说|告诉|说[：:，]|(?<![小会能听])说(?:他|她|我|过|自己)")
_ZH_SPLIT = re.compile("[，,；;]|(?<=[^不])但是?(?=[用我也不])|不过(?=[用我])|而且(?=[用我])|所以(?=[用我])")


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
            found = _chinese(sentence, USER_ZH if owner else label, context)
        else:
            found = _english(sentence, "User" if owner else label, context, owner=owner, narrator=narrator)
        for statement in found:
            count += 1
            yield statement


USER_ZH = "用户"


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
                self.person = self.thing = claim.extra or f"{claim.subject}'s {claim.object}"
            elif claim.predicate in {"kin", "partner", "manager", "met"}:
                self.person = claim.object if claim.object[:1].isupper() else f"{claim.subject}'s {claim.object}"
            elif claim.predicate == "has" and claim.subject == self.label:
                self.thing = f"{claim.subject}'s {claim.object}"
            elif claim.predicate in {"gave", "needs", "found", "has", "likes", "visited", "works_as", "training_for"}:
                self.thing = claim.object
            elif claim.subject != self.label and claim.subject[:1].isupper() and " and " not in claim.subject:
                self.person = claim.subject


def _english(sentence: str, label: str, context: _Context, *, owner: bool, narrator: bool) -> list[Statement]:
    body = sentence.strip()
    if body.endswith(("?", "?!")) or "?" in body[-3:]:
        return []
    bare = _strip_lead(_PAREN.sub(" ", body))
    if m := _EXPLICIT.match(bare):
        kept = m["s"].strip(" \"'")
        third = to_third(kept, label).strip(" .!")
        third = third[:1].upper() + third[1:]
        claims = [c for clause in split_clauses(kept) for c in english.parse(_capital(to_third(clause, label)), label)]
        return [Statement(third, tuple(claims[:1]), explicit=True)]
    if m := _RETRACT.match(bare):
        return _retraction(m["s"], label, chinese_text=False)
    bare = _TRUSTED.sub("", _QUOTED.sub(" ", bare))
    if _QUESTION.match(bare) or _UNREAL.search(bare) or _REPORTED.search(bare):
        return []
    found: list[Statement] = []
    for clause in split_clauses(bare[: MAX_CLAUSE_CHARS * 4]):
        clause = _strip_lead(clause)[:MAX_CLAUSE_CHARS]
        if not clause or _QUESTION.match(clause) or re.match(r"(?:please|don't|let's|let me|thank)\b", clause, re.IGNORECASE) and " only" not in clause:
            continue
        third = _third(clause, label, context, narrator=narrator)
        if third is None or re.search(r"\b(?:would|could|should)\b(?! (?:love|like|rather|prefer|always want))", third[:80]):
            continue
        third = _IT.sub(lambda m: m[1] + " " + (_the(context.thing) if context.thing else "it"), third, count=1)
        claims = english.parse(third, label, loose=not owner or narrator)
        claims = [c for c in claims if _worth(c, label, owner=owner)]
        context.learn(claims)
        if claims:
            found.append(Statement(third, tuple(claims)))
    return found


def _worth(claim: Claim, label: str, *, owner: bool) -> bool:
    """Loose matches of the owner's talk need something to hold on to."""
    if claim.explicit or not owner:
        return not (claim.subject.lower().startswith(("the ", "a ")) and claim.predicate == "state" and owner)
    if claim.subject == label:
        return bool(re.search(r"\b[A-Z][a-z]+|\d|\b(?:yesterday|last|next|tomorrow|week|month|year|ago|my|their|User's|night|new|first|today|tonight)\b", claim.text[len(label) :])) or len(claim.object.split()) >= 3
    if claim.subject.startswith(f"{label}'s "):
        return True
    return claim.subject[:1].isupper() and not claim.subject.lower().startswith(("the ", "it", "that", "this"))


def _the(thing: str) -> str:
    return thing if "'s " in thing or thing[:4] in {"the ", "their"} else f"the {thing}"


def _strip_lead(text: str) -> str:
    text = text.strip(" ,-\"'*#>")
    for _ in range(4):
        shorter = _INTERJECTION.sub("", text, count=1) if _INTERJECTION.match(text) else text
        shorter = _VOCATIVE.sub("", shorter).strip(" ,-")
        if shorter == text or not shorter:
            break
        text = shorter
    return text


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def split_clauses(sentence: str) -> list[str]:
    """Split a sentence into clauses; a clause that shares its subject gets it back."""
    clauses: list[str] = []
    subject = ""
    at = 0
    shared = False
    cuts = sorted([*_SPLIT.finditer(sentence), *_AND_NAME.finditer(sentence)], key=lambda m: m.start())
    for cut in [*cuts, None]:
        end = cut.start() if cut else len(sentence)
        if end < at:
            continue
        clause = sentence[at:end].strip(" ,")
        if shared and subject:
            clause = f"{subject} {clause}"
        clauses.append(clause)
        if m := re.match(r"(?:I|[Ww]e|[Mm]y (?:\w+ ){1,2}?[A-Z]\w+|[A-Z]\w+|[Hh]e|[Ss]he)(?='m|'ve|'ll|\s)", _strip_lead(clause)):
            subject = m.group()
        if cut:
            at = cut.end()
            shared = bool(cut.re is _SPLIT and cut["same"])
    return [c for c in clauses if c]


def _third(clause: str, label: str, context: _Context, *, narrator: bool) -> str | None:
    """Put a clause into the third person, or return None where nobody known is its subject."""
    if narrator:
        return _capital(clause)
    if m := _PERSON_START.match(clause):
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
        suffix = {"'s": " is", "'ll": " will", "'ve": " has", None: ""}[m["rest"]]
        return _capital(to_third(f"{who}{suffix} {rest}", label))
    first = _ELIDED.match(clause)
    if first:
        verb = first["v"].lower()
        past = verb in PASTS and PASTS[verb] != verb and verb not in TALK_VERBS | {"was", "were"}
        going = verb in {"gonna", "been"} or verb in GERUNDS and verb in {"going", "moving", "working", "training", "learning", "planning", "getting", "starting", "studying", "heading"}
        if past or going:
            clause = f"I {clause[0].lower()}{clause[1:]}" if past else f"I'm {'going to' if verb == 'gonna' else verb}{clause[first.end():]}"
    return _capital(to_third(clause, label))


def _retraction(topic: str, label: str, *, chinese_text: bool) -> list[Statement]:
    """A taken-back statement: the claim it takes back, as ended."""
    topic = topic.strip(" .!。！\"'，,")  # noqa: RUF001 - full-width
    if len(topic) < 2 or len(topic) > MAX_CLAUSE_CHARS or _NOT_A_TOPIC.search(topic):
        return []
    if chinese_text:
        third = chinese.to_third(topic, label)
        claims = chinese.parse(third if third.startswith(label) else label + third, label)
        text = f"{label}收回：{third}"
    else:
        third = _capital(to_third(topic, label))
        claims = english.parse(third, label)
        text = f"{label} took back: {third}"
    if claims:
        made = [msgspec.structs.replace(c, text=text, ended=True) for c in claims[:1]]
    else:
        made = [Claim(label, "state", topic, text, ended=True)]
    return [Statement(text, tuple(made))]


def _chinese(sentence: str, label: str, context: _Context) -> list[Statement]:
    body = chinese.strip_lead(_PAREN.sub("", sentence).strip("，,。！!；; "))  # noqa: RUF001
    if m := _EXPLICIT_ZH.match(body):
        kept = m["s"].strip(" 。！，,")  # noqa: RUF001
        if _ZH_QUESTION.search(sentence):
            return []
        third = chinese.to_third(kept, label)
        claims = chinese.parse(third, label)
        return [Statement(third, tuple(claims[:1]), explicit=True)]
    if m := _RETRACT_ZH.match(body):
        return _retraction(m["s"] or m["s2"], label, chinese_text=True)
    body = _QUOTED.sub("", body)
    if _ZH_QUESTION.search(sentence.strip()) or _ZH_UNREAL.search(body):
        return []
    merged = re.sub("[，,](?=(?:名字)?(?:叫|名叫)|而不是|更喜欢|这把|这个|这本)", "\x00", body)
    found: list[Statement] = []
    subject = ""
    for i, piece in enumerate(_ZH_SPLIT.split(merged)):
        clause = chinese.strip_lead(piece.replace("\x00", "，").strip())  # noqa: RUF001
        if not clause or len(clause) > MAX_CLAUSE_CHARS or re.match("请|别|不要|麻烦|帮|让我们?|谢谢", clause):
            continue
        third = chinese.to_third(clause, label)
        if re.match("(?:他|她|它)", third):
            if not context.person:
                continue
            third = context.person + third[1:]
        elif label not in third[:12] and (subject or i == 0) and chinese.begins_without_subject(third) and not re.match("你", third):
            third = (subject or label) + third
        claims = chinese.parse(third, label)
        context.learn(claims)
        if claims:
            subject = claims[0].subject
            found.append(Statement(third, tuple(claims)))
        elif third.startswith(label):
            subject = label
    return found

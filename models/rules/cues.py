"""What a sentence gives away by its form: questions, quotes, requests, and where it splits."""

# ruff: noqa: E501 - a pattern reads better whole than broken
from __future__ import annotations

import re

from reverie.models.rules.vocab import ADVERBS, PASTS, THIRDS

INTERJECTION = re.compile(
    r"(?:hey|hi|hello|oh|wow|well|so|ok|okay|yeah|yes|yep|yup|no|nope|haha\w*|lol|hmm+|um+|uh|ah|honestly|actually"
    r"|btw|by the way|also|to be honest|tbh|you know|anyway|fyi|guess what|good news|bad news|sure|thanks"
    r"|thank you|cool|great|nice|anyways|right|sorry|alright|good morning|hello there|hey there|hi there|listen|look|and|but|plus"
    r"|unfortunately|sadly|luckily|fortunately|apparently|in fact|of course|as you know|frankly|please note|welcome)"
    r"(?:[,!.:;-]+\s*|\s+-\s+)|(?:and|but|so|plus|oh|well|yeah|also|hey|hi|because|ok|okay"
    r"|hmm+|omg|ugh|argh|lol|actually|honestly|frankly|unfortunately|sadly|luckily|fortunately|apparently)\s+(?=[\w'])"
    r"|(?:in fact|no wait|wait|no|to be honest|tbh|btw|by the way|you know|turns out|well actually|so yeah|sorry|(?:just )?so you know|for context|for reference|heads up)\s+(?=(?:I|I'm|I've|we|my|our)\b)",
    re.IGNORECASE,
)
VOCATIVE = re.compile(r"^(?:hey|hi|hello|thanks|congrats),? [A-Z]\w+[,!.]\s*", re.IGNORECASE)
QUESTION = re.compile(
    r"^(?:(?:do|does|did|is|are|can|could|would|will|should|have|has|was|were|may|shall)(?:n't)? (?:you|i|we|it|he|she|they|the|this"
    r"|that|there|my|your|anyone|someone|me)|what|why|how|when|where|who|whose|which|what's|how's|where's|who's|any idea)\b",
    re.IGNORECASE,
)
UNREAL = re.compile(
    r"\b(?:if|wish|wishes|imagine|suppose|supposing|pretend|what if|maybe|perhaps|hypothetically|as if|unless|might|let's say"
    r"|would have|could have|should have|would've|could've|roleplay|role-play|were to|in another life|in a parallel|for example|e\.g)\b",
    re.IGNORECASE,
)
REPORTED = re.compile(
    r"\b(?:says?|said(?! (?:yes|no)\b)|told|tells|claims|claimed|asked|asks|according to|quote|quoted|heard|the (?:book|article|song|character|movie|film|poem|story|essay|text|paragraph|sentence|email) (?:is|says|about|where)|translate|rewrite|summarize|proofread|reads:|writes:|wrote:)\b",
    re.IGNORECASE,
)
TRUSTED = re.compile(
    r"^(?:my|our) (?:doctor|dentist|boss|manager|therapist|vet|wife|husband)s? (?:just )?(?:said|says|told me)(?: that)? (?=I\b)",
    re.IGNORECASE,
)
EXPLICIT = re.compile(
    r"^(?:please |can you |could you |also |and |just |so )*(?:remember|don't forget|do not forget|never forget|keep in mind|bear in mind"
    r"|note|take note|make a note|for the record|note to self)(?: down)?(?:,? please)?(?: this)?(?:\s*[:,-]\s*| that (?!time|day|one|thing)| (?=my |our |I |I'm |the ))(?P<s>.{6,})",
    re.IGNORECASE | re.DOTALL,
)
EXPLICIT_ZH = re.compile(
    "^(?:请|麻烦|帮我|你要|一定要|务必|千万|你)*(?:记住|记一下|记下来?|记得|别忘了|不要忘了?|牢记)(?:了|哦|啊|一下)?[：:，, ]*(?P<s>.{4,})",
    re.DOTALL,
)
RETRACT = re.compile(
    r"^(?:please |can you |you can |just |actually,? )*(?:(?:forget|ignore|scratch|disregard|delete|erase)(?: (?:that|what I said about|what I told you about|about|the fact that|the part about|it,))+|I was wrong (?:about|that|when I said(?: that)?)"
    r"|it(?:'s| is) not true that|it(?:'s| is) no longer true that|I lied (?:about|when I said(?: that)?)|I was mistaken about|I misspoke about) (?P<s>.{3,})",
    re.IGNORECASE | re.DOTALL,
)
# Where a statement that is taken back ends and what is true instead begins: "..., I sold it".
_INSTEAD = re.compile(
    r"(?:[,;:.]\s+|\s+[-\u2013\u2014]+\s+|,?\s+(?:because|since|as|cause|and|but)\s+)(?=(?:I|I've|I'm|I'd|we|we've|we're|my|our|it|it's|he|she|they)\b)",
    re.IGNORECASE,
)
_TAKEN_IT = re.compile(r"\b(?P<before>[a-z]{3,} )(?:it|them)\b(?!')")
RETRACT_ZH = re.compile(
    "^(?:请|麻烦)?(?:忘掉|忘了|忘记|删掉|别记)(?:我说的?|我之前说的?|关于)?(?P<s>.{2,})|^(?:我)?(?:之前|刚才)?(?:说错了|记错了)[，,]?(?P<s2>.{2,})"
)
NOT_A_TOPIC = re.compile(
    r"\b(?:instructions?|everything|all|memor(?:y|ies)|rules?|prompts?|above|previous|system|it|anything)\b|指令|所有|全部|一切|记忆|规则|提示",
    re.IGNORECASE,
)
PRONOUN_START = r"(?:I|I'm|I've|I'd|I'll|we|we're|we've|my|our|he|she|it|it's|he's|she's|they|his|her|their|the)\b"
VERBS = "|".join(
    sorted(
        (set(THIRDS) | set(THIRDS.values()) | set(PASTS))
        - {
            "be",
            "name",
            "date",
            "call",
            "head",
            "present",
            "work",
            "help",
            "love",
            "hike",
            "jog",
            "cook",
            "bake",
            "dance",
            "walk",
            "run",
            "swim",
            "climb",
            "cycle",
            "sail",
            "hunt",
            "fish",
            "garden",
            "code",
            "program",
            "travel",
            "drink",
            "eat",
            "book",
            "design",
            "trade",
            "stream",
            "record",
            "cure",
            "plant",
            "fear",
            "hope",
            "dream",
            "drive",
            "plays",
            "burn",
            "crash",
            "sleep",
            "study",
            "major",
            "train",
            "switch",
            "trust",
            "promise",
            "guard",
            "coach",
            "fight",
            "ski",
            "surf",
            "knit",
            "sew",
            "paint",
            "draw",
            "sing",
            "read",
            "write",
            "teach",
            "fly",
            "ride",
            "play",
            "watch",
            "visits",
            "fall",
            "change",
            "lead",
        }
        | {"is", "am", "have", "has", "live", "like", "hate", "love", "loves"},
        key=len,
        reverse=True,
    )
)
SPLIT = re.compile(
    r"\s*;\s*|(?<=please),\s*|\s+[-\u2013\u2014]+\s+|\s*\u2014\s*"
    rf"|,?\s+(?:but|so|because|although|though|and|while|whereas|plus|yet|cause|or else|since)\s+(?=(?:(?:now|then|also|recently|currently|sometimes|please|he|she|honestly|so)\s+)?{PRONOUN_START}|(?:so )?please\b|no\b|now I\b|don't\b)"
    rf"|,\s*(?=(?:I|I'm|I've|I'll|I'd|we|we're|we've|it|it's|she|she's|he|he's|my|our)\b(?! (?:think|guess|mean|believe|know|hope)))"
    rf"|,?\s+(?P<same>and|but|then|and then)\s+(?=(?:(?:{ADVERBS}|not|never|don't|can't|no longer) )*(?:{VERBS}|don't|can't|work at|work as|work for|work in|play the|study at|speak|teach|drive a|train for)\b(?! (?:and|or|,)))",
    re.IGNORECASE,
)
AND_NAME = re.compile(
    r",?\s+(?:and|but)\s+(?=[A-Z][\w'-]+(?: [A-Z][\w'-]+)? (?:is|was|has|just|got|lives|works|loves|likes|hates|plays|will|turned|moved|started|wants|studies)\b)"
)
FRONTED = re.compile(
    r"(?P<adverb>now|currently|nowadays|these days|lately|recently|still),? (?P<subject>I'm|I've|I|we're|we've|we|my [a-z]+ is) ",
    re.IGNORECASE,
)
ELIDED = re.compile(rf"^(?P<adv>(?:(?:{ADVERBS}) )*)(?P<v>[A-Za-z]+)\b", re.IGNORECASE)
# "Oli's moving out" says what Oli does; "Oli's painting" may be a picture.
IS_DOING = re.compile(
    r"(?<=[a-z])'s (?=(?:just |now |finally |also |still |currently )*"
    r"(?!(?:painting|drawing|building|wedding|meeting|training|writing|recording|cooking|singing|reading|evening|morning|thing|king)\b)"
    r"[a-z]{2,}ing\b)"
)
COUPLE = re.compile(r"[A-Z][\w'-]+(?: [A-Z][\w'-]+)?")
PARTED = re.compile(
    r"I (?:(?:have|are|am|just|finally|recently|only) )*(?:(?:broke|split|broken) up|separated"
    r"|(?:got|get|getting|are) (?:married|engaged|divorced|together|back together))\b"
)
# "Alfie's got an allergy" says what Alfie has.
HAS_DONE = re.compile(
    r"(?<=[a-z])'s (?=(?:just |now |finally |also |already )*(?:got|been|gone|had|started|moved|bought|finished|quit)\b)"
)
PERSON_START = re.compile(
    r"^(?P<p>He|She|They|His|Her|Their|Its|It)(?P<rest>'s|'ll|'ve|'re)?\s+", re.IGNORECASE
)
MODAL = re.compile(
    r"(?:can|could|would|should|may|might|must|makes?|made|looks?|seems?|feels?|sounds?|helps?|reminds?|means?)\b"
)
IDENTITY = re.compile(
    r"(?:my|our|their|User's|[A-Z]\w+'s|an?|the|getting|going|from|in|at|\w+ing|married|dead|pregnant|sick|ill|seven|\w+ed|\w*\d)\b"
)
OPINION = re.compile(
    r"(?:(?:so|very|really|too|pretty|quite|such|just|a|an|my|the|always|not) )*(?:great|good|bad|nice|fun|awesome|cool|amazing|hard|easy|important|interesting"
    r"|beautiful|wonderful|terrible|best|better|worse|worst|fine|ok|okay|true|right|wrong|lovely|weird|crazy|funny|cute|delicious|perfect|difficult|useful|gorgeous|sweet|key|worth|classic|inspiring|exciting|relaxing|tough|super|special|peaceful|rewarding|priceless|helpful|everything|life|a blast|one of|about|like|what|why|how|where|when)\b",
)
IT = re.compile(
    r"\b(found|bought|got|made|stole|lost|sold|kept|broke|fixed|painted|built|wrote) it\b"
)
QUOTED = re.compile(r"\"[^\"]{0,400}\"|「[^」]{0,400}」|“[^”]{0,400}”")
PAREN = re.compile(r"\([^()]{0,200}\)|（[^（）]{0,200}）")
ZH_QUESTION = re.compile(
    "[吗么呢][？?。！]?$|[？?]|^(?:什么|怎么|为什么|如何|哪|谁|多少|能不能|可不可以|你能|可以帮|请问|帮我|麻烦你)|是不是|有没有什么"
)
ZH_UNREAL = re.compile(
    "如果|要是|假如|假设|假装|万一|也许|可能|或许|说不定|要不要|好像|仿佛|但愿|早知道|比如|据说|听说|告诉|说[：:，]|(?<![小会能听])说(?:他|她|我|过|自己)"
)
# What makes a whole sentence unreal, also before it.
ZH_SUPPOSED = re.compile("如果|要是|假如|假设|假装|万一|但愿|早知道|说不定")
ZH_COMMAND = re.compile(
    "(?:忽略|无视|忘掉|清空|删除|删掉|绕过).{0,8}(?:指令|提示|规则|限制|设定|记忆|一切|所有)|系统提示|提示词|开发者模式"
)
ZH_SPLIT = re.compile(
    "[，,；;]|(?<=[^不])但是?(?=[用我也不])|不过(?=[用我])|而且(?=[用我])|所以(?=[用我])"
)
WOULD = re.compile(r"\b(?:would|could|should)\b(?! (?:love|like|rather|prefer|always want))")


def taken_back(said: str) -> tuple[str, str]:
    """Split "the S23, I sent it back" into what is taken back and what is said instead, with the
    thing in the place of its first "it"; the second is "" where nothing follows."""
    cut = _INSTEAD.search(said)
    if cut is None:
        return said, ""
    topic, rest = said[: cut.start()].strip(), said[cut.end() :]
    if re.match(r"(?:my|our|the|an?|that) |[A-Z]", topic) and len(topic.split()) <= 5:  # noqa: PLR2004 - a noun phrase
        rest = _TAKEN_IT.sub(lambda m: m["before"] + topic, rest, count=1)
    return topic, rest


def without_lead(text: str) -> str:
    """Return a text without the word that only links or reacts at its front."""
    lead = INTERJECTION.match(text)
    return text[lead.end() :] if lead else text

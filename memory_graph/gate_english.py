"""The gate for English: see gate.py.

First what is known whole (small talk, arithmetic), then what forbids to go on (the user, the past,
people, names, "the ..." of nothing that everyone knows), then the forms of questions and requests
that need no memory. A question that has none of these forms needs memory.
"""

from __future__ import annotations

import re


def _phrases(text: str) -> frozenset[str]:
    return frozenset(phrase.strip() for phrase in text.replace("\n", "|").split("|"))


# -- small talk --------------------------------------------------------------------------

_SMALL = _phrases(
    """hi|hey|hello|hello there|hi there|hey there|howdy|hiya|yo|greetings|sup|welcome|hello world
    good morning|good afternoon|good evening|good night|good day|morning|evening|goodnight
    what's up|whats up|how are you|how are you doing|how are you today|how are you doing today
    how's it going|how is it going|hows it going|how do you do|how have you been|how are things
    nice to meet you|nice to see you|nice to meet you too|pleased to meet you|long time no see
    thanks|thank you|thx|ty|cheers|many thanks|thanks a lot|thanks so much|thank you so much
    thank you very much|thanks a million|thanks again|thank you again|much appreciated
    appreciate it|i appreciate it|thanks for your help|thank you for your help|thanks for the help
    thanks for helping|thanks again for your help|everyone|everybody|folks|guys|my friend
    friend|buddy|that's very kind|that's kind of you|that helps|that helps a lot|this helps
    bye|goodbye|bye bye|see you|see ya|see you later|see you soon|see you tomorrow|see you around
    later|take care|have a nice day|have a good day|have a great day|have a good one
    have a good evening|have a nice evening|have a nice weekend|have a great weekend|sleep well
    talk to you later|talk to you soon|talk later|farewell|cya|ttyl|gotta go|i have to go
    yes|yeah|yep|yup|no|nope|nah|ok|okay|k|sure|fine|alright|all right|right|exactly|of course
    great|good|cool|nice|awesome|perfect|wonderful|amazing|excellent|lovely|fantastic|brilliant
    sounds good|sounds great|got it|i see|understood|makes sense|that makes sense|no problem
    no worries|never mind|nevermind|you're welcome|youre welcome|my pleasure|not at all|sorry
    i'm sorry|im sorry|excuse me|pardon|pardon me|congratulations|congrats|happy birthday
    merry christmas|happy new year|happy holidays|good luck|well done|good job|nice work|bravo
    haha|hahaha|hehe|lol|lmao|hm|hmm|wow|oh|ah|aha|oops|ouch|ugh|oh no|oh well|oh ok|oh okay
    i'm fine|i'm good|i'm ok|i'm okay|i'm great|i'm well|i'm doing well|i'm doing great
    doing well|not bad|not much|and you|are you there|test|testing
    what time is it|tell me a joke|please|yes please|no thanks|no thank you|so|well|anyway|indeed"""
)
_MAX_SMALL = 100  # characters
_TO_WHOM = re.compile(
    r" (?:there|everyone|everybody|all|folks|guys|friend|buddy|mate|dear|bot|computer|assistant"
    r"|then|again|too|so much|very much|a lot)$"
)
_CLAUSE = re.compile(r"\s*[,.!?;:~…\-()]+\s*|\s{2,}|[^\w\s'+]+")

# -- arithmetic --------------------------------------------------------------------------

_NUMBER = re.compile(r"[-+]?[\d.,]*\d%?\.?")
_NUMBERS = frozenset(
    """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen
    fifteen sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty
    ninety hundred thousand million billion dozen half third quarter a an pi""".split()
)
_OPERATORS = frozenset(
    """+ - * / ^ x × ÷ ** % plus minus times divided multiplied percent squared cubed root sqrt
    power factorial modulo mod sum product square log""".split()
)
_FILLERS = frozenset(
    """what is what's whats how much calculate compute solve evaluate please the of by to and equal
    equals result = ( ) number raised give me tell""".split()
)
_UNITS = frozenset(
    """km kilometer kilometers kilometre kilometres mile miles m meter meters metre metres cm
    centimeter centimeters centimetre centimetres mm inch inches foot feet yard yards kg kilogram
    kilograms g gram grams pound pounds lb lbs ounce ounces oz liter liters litre litres gallon
    gallons cup cups ml celsius fahrenheit kelvin degrees second seconds minute minutes hour hours
    day days week weeks month months year years decade century leap byte bytes kilobyte kilobytes
    megabyte megabytes gigabyte gigabytes mb gb kb tb bit bits""".split()
)
_SUM = _OPERATORS | _FILLERS
_CONVERSION = _UNITS | _FILLERS | frozenset("convert many are there in into from as".split())
_PIECE = re.compile(r"[\d.,]*\d%?|[a-z']+|\*\*|\S")
_DATE = re.compile(r"\d{4}[-/.]\d|\d[-/.]\d{1,2}[-/.]\d|\d{3}-\d{3}")  # or a telephone number

# -- what forbids ------------------------------------------------------------------------

_CUES = frozenset(
    """i i'm i've i'd i'll me my mine myself we we're we've we'll we'd us our ours ourselves let's
    you your yours you're you've you'd you'll yourself he she him her his hers they them their
    theirs he's she's they're someone somebody anyone anybody everyone everybody it its it's this
    that these those here there that's there's yesterday today tonight tomorrow ago last earlier
    before previous previously again still already anymore recent recently lately latest now
    currently current next later soon since yet upcoming monday tuesday wednesday thursday friday
    saturday sunday weekend remember recall remind reminder forget forgot forgotten mention
    mentioned said told talked discuss discussed promised agreed decided planned plan plans usual
    usually favorite favourite same other another else recommend suggest should best good better
    nice advice mom mum mother dad father parent parents wife husband spouse son sons daughter
    daughters kid kids brother brothers sister sisters sibling siblings friend friends boss
    colleague colleagues coworker coworkers roommate roommates partner boyfriend girlfriend fiance
    fiancee grandma grandpa grandmother grandfather grandparents granny aunt uncle cousin cousins
    nephew niece neighbor neighbour neighbors neighbours family landlord client customer customers
    meeting appointment birthday anniversary trip vacation holiday party wedding interview password
    office house home apartment flat""".split()
)
_WORD = re.compile(r"[^\W_]+(?:'[a-z]+)?")
_IS = frozenset({"what's", "who's", "how's", "where's", "when's", "why's"})
_COMMON = (  # what "the" may stand before: everyone knows which one is meant
    """sun moon sky sea ocean earth universe world rain wind solar human brain heart body internet
    atmosphere weather speed meaning definition difference differences capital population currency
    area size boiling melting freezing chemical atomic square cube value formula theory law laws
    plural opposite past synonym english french spanish german italian chinese japanese russian
    latin word name distance height length radius diameter mass age color colour number water
    industrial american civil roman berlin great pacific atlantic indian arctic amazon nile eiffel
    telephone light airplane wheel printing steam first following purpose function role history
    origin invention discovery structure equation symbol official national periodic milky northern
    southern big greenhouse stock immune nervous sentence text quadratic pythagorean fibonacci
    derivative integral volume circumference temperature tallest highest longest largest biggest
    smallest deepest fastest heaviest hottest coldest shortest richest oldest brightest"""
).split()
_DEFINITE = re.compile(rf"\bthe (?!(?:{'|'.join(_COMMON)})\b)")

# -- names that everyone knows -----------------------------------------------------------

_WORLD = frozenset(
    """africa asia europe america antarctica australia oceania north south east west united states
    kingdom usa uk us eu un england scotland wales ireland britain france germany spain italy
    portugal netherlands holland belgium switzerland austria poland greece turkey sweden norway
    denmark finland iceland russia ukraine hungary romania czech republic china japan korea india
    pakistan indonesia malaysia singapore thailand vietnam philippines mongolia nepal iran iraq
    israel egypt morocco nigeria kenya ethiopia ghana canada mexico brazil argentina chile peru
    colombia cuba venezuela zealand saudi arabia london paris berlin madrid rome vienna moscow
    beijing shanghai tokyo seoul delhi cairo sydney york california texas alaska mount everest
    himalayas alps andes amazon nile mississippi yangtze sahara pacific atlantic indian arctic
    ocean sea mediterranean lake river desert earth moon sun mercury venus mars jupiter saturn
    uranus neptune pluto milky way english french spanish german italian portuguese dutch swedish
    norwegian danish finnish russian polish greek turkish arabic hebrew hindi chinese mandarin
    cantonese japanese korean thai vietnamese latin british american european asian african python
    java javascript typescript rust go ruby kotlin swift perl php c sql html css bash linux windows
    excel git docker json regex pythagoras pythagorean world war i ii wwi wwii revolution
    renaissance roman empire cold wall berlin great einstein newton darwin shakespeare mozart
    beethoven bach picasso galileo curie tesla edison columbus napoleon plato aristotle socrates
    hamlet macbeth romeo juliet mona lisa odyssey iliad bible quixote starry night celsius
    fahrenheit kelvin big bang dna rna eiffel tower fibonacci caesar homer leonardo""".split()
)
_INVENTED = _WORLD | frozenset(
    """the a and of telephone light bulb wheel airplane printing press steam engine internet radio
    television penicillin gravity paper gunpowder compass electricity theory relativity evolution
    declaration independence x-rays radium oxygen dynamite wide web first computer""".split()
)
_MAKER = re.compile(
    r"who (?:wrote|painted|invented|discovered|composed|built|founded|sculpted) ([\w\- ]+)[?.! ]*$"
)
_CAPITAL = re.compile(r"[A-Z][\w']*")

# -- forms -------------------------------------------------------------------------------

_POLITE = re.compile(
    r"^(?:(?:hey|hi|hello|ok|okay|please|so|well|and|now|quick question)[,:.!]? +)*"
    r"(?:(?:can|could|would|will) you (?:please |kindly )?|i(?:'d like| want| need) you to )?"
    r"(?:please )?"
)
_FOR_ME = re.compile(r"^(tell|give|show|write|make|draw|teach|sing|list|name|compose) me\b")
_HOW_TO = re.compile(r"^how (?:do|does|would|can) (?:you|one|people|i) (?=\w+ .*)")
_QUOTED = re.compile(r"\"[^\"]*\"|“[^”]*”|(?<!\w)'[^']*'(?!\w)|`[^`]*`")
_QUOTES = frozenset("\"“'`")
_PAYLOAD = re.compile(  # what a request brings with it is no part of the request
    r"^(.{0,40}?\b(?:translate|proofread|correct|rephrase|paraphrase|rewrite|spell.?check"
    r"|summari[sz]e"
    r"|fix|sort|count|reverse|convert)\b[^:]{0,60}):.*$",
    re.DOTALL | re.IGNORECASE,
)
_TASK_OBJECT = (
    r"(?:poem|haiku|limerick|sonnet|rhyme|story|stories|tale|song|lyrics|joke|jokes|riddle|riddles"
    r"|essay|paragraph|sentence|slogan|tongue.?twister|function|program|script|class|query|regex"
    r"|regular expression|loop|unit test|algorithm|fun facts?|facts?|palindrome|pun|puns|proverb)"
)
_LANGUAGES = (
    r"(?:english|french|spanish|german|italian|portuguese|dutch|swedish|russian|polish|greek"
    r"|turkish|arabic|hindi|chinese|mandarin|japanese|korean|latin)"
)
_CODE = (
    r"(?:python|java|javascript|typescript|rust|go|ruby|sql|c|c\+\+|bash|html|css|excel|linux|git)"
)
_MAKING = (
    r"(?:make|cook|boil|bake|fry|spell|pronounce|say|solve|calculate|compute|tie|install"
    r"|convert|write"
    r"|clean|remove|grow|fold|reverse|sort|use|build|sharpen|cut|peel|count|parse|read|create"
    r"|merge)"
)
_ABSTRACT = (
    r"\w*(?:sis|ism|logy|ity|tion|sion|ics|phy|ence|istry|omy|gebra|lculus|graphy|metry|ware|ying)"
)
_HOW_I = re.compile(r"how (?:do|can|would) i ")
_IN_CODE = re.compile(rf" in {_CODE}[?.! ]*$")
_GIVEN = re.compile(
    r"\b(?:this|these|the following) (?=(?:\w+ )?(?:sentence|text|paragraph|word|code|number)s?\b)"
)
_SAYING = re.compile(rf"^(how to (?:say|spell|pronounce|write)) .* (in {_LANGUAGES})\b")
_WHICH = re.compile(
    r"\b(function|program|script|query|regex|class|loop|poem|words?) (?:that|which)\b"
)
_WORDS = r"[a-z][\w-]*(?: [\w-]+){0,3}"
_FORMS = [
    re.compile(form + r"\s*[?.!]*$")
    for form in (
        # requests
        (
            rf"(?:tell|write|compose|create|generate|make up|make|draw|give|sing|read) (?:a|an"
            rf"|another|some|one|two|three|four|five|ten)\b.*\b{_TASK_OBJECT}\b.*"
        ),
        rf"(?:sing|tell) (?:a|an) .*{_TASK_OBJECT}",
        r"(?:draw|paint|sketch) (?:a|an) [\w -]+",
        r"(?:translate|proofread|correct|rephrase|paraphrase|spell.?check)\b.*",
        (
            r"(?:summari[sz]e|fix|rewrite|sort|count|reverse|convert)\b.*\b(?:text|sentence"
            r"|paragraph|numbers?|words?|letters?|list|grammar|code)\b.*"
        ),
        (
            r"(?:give|name|list|find) (?:an?|some|a few|two|three|four|five|six|seven|ten"
            r"|\d+)\b.*\b(?:examples? of"
            r"|synonyms?|antonyms?|rhymes?|words?|countries|cities|animals|fruits|vegetables"
            r"|colors|colours"
            r"|planets|elements|rivers|mountains|languages|primes|prime numbers|capitals|inventors"
            r"|birds|mammals|instruments|scientists|continents|oceans)\b.*"
        ),
        (
            r"(?:roll|flip|toss|pick|choose|generate) (?:a|an|the|two) (?:\w+ )?(?:dice|die|coin"
            r"|card|number)\b.*"
        ),
        r"count (?:to|from|down|backwards)\b.*",
        # words and languages
        r"define [\w -]+",
        r"(?:say|spell|pronounce|how to (?:say|spell|pronounce))\b.*",
        (
            rf"what(?:'s| is| are) (?:the |an? )?(?:meaning|definition|plural|opposite|past tense"
            rf"|synonym|antonym|etymology|{_LANGUAGES}(?: word| name)?)s? (?:of|for) .*"
        ),
        rf"what does [^?]* mean(?: in {_LANGUAGES})?",
        # what things are
        rf"(?:what(?:'s| is)|explain|describe)(?: what)? (?:a|an) (?!.* at ){_WORDS}(?: is)?",
        rf"(?:what(?:'s| is)|explain|describe) (?:[\w-]+ ){{0,2}}{_ABSTRACT}",
        (
            r"what(?:'s| is) (?:gravity|love|time|light|energy|inflation|money|matter|art|java"
            r"|python|rust"
            r"|sql|html|css|json|linux|git|docker|regex|dna|rna|ai|machine learning|deep learning"
            r"|blockchain|bitcoin|water|air|fire|electricity|magnetism|glass|plastic|silk|oxygen"
            r"|quantum (?:mechanics|physics|computing))"
        ),
        r"what are (?!new\b|all\b|some\b)[\w-]+(?: [\w-]+)?s",
        rf"explain how {_WORDS}.* works?",
        (
            r"(?:explain|describe) the (?:theory|law|laws|difference|concept|process|water"
            r"|greenhouse|big)\b.*"
        ),
        r"(?:what(?:'s| is)|explain|tell) (?:the )?differences? between .* and .*",
        # the world
        (
            r"what(?:'s| is| was) the (?:capital|population|currency|area|official language"
            r"|language|flag|national (?:anthem|animal|flower)) of [\w ]+"
        ),
        (
            r"what(?:'s| is) the (?:speed|boiling point|melting point|freezing point"
            r"|chemical (?:formula|symbol)"
            r"|atomic (?:number|mass|weight)|square root|cube root|value|formula|distance|height"
            r"|length|diameter|radius|mass|area|circumference|volume|temperature|symbol|derivative|"
            "integral"
            r"|pythagorean theorem|quadratic formula|theory) (?:of|for|from|between) .*"
        ),
        (
            r"what(?:'s| is) the (?:pythagorean theorem|quadratic formula|greenhouse effect"
            r"|stock market"
            r"|internet|milky way|solar system|immune system|nervous system|periodic table"
            r"|meaning of life)"
        ),
        (
            r"(?:what(?:'s| is)|which is|name) the (?:most \w+|\w+est) (?:\w+ )?(?:mountain|river"
            r"|lake|ocean"
            r"|desert|animal|bird|mammal|fish|country|planet|star|continent|island|building|city"
            r"|waterfall|volcano|bone|organ|word|prime number|snake|tree)\b.*"
        ),
        (
            r"which (?:planet|country|ocean|continent|river|animal|element|gas|metal"
            r"|language) (?:is|has|are) (?:the|known|called|closest|most|farthest)\b.*"
        ),
        r"who (?:was|is) the first (?:person|man|woman|president|human|astronaut|emperor)\b.*",
        (
            r"when (?:did|was|were) (?:the )?(?:world war|french|american|russian|industrial"
            r"|cold war|roman|berlin wall|moon|internet|telephone|renaissance|great depression)\b.*"
        ),
        (
            r"how (?:far|big|hot|old|large|heavy|deep|high|tall|long|fast|cold) (?:is|are|does|do"
            r"|was)"
            r" (?:the (?:moon|sun|earth|universe|milky way|nile|amazon|pacific|eiffel|great|speed"
            r"|world)|mount everest|mars|jupiter|venus|saturn|light|sound)\b.*"
        ),
        (
            r"how many (?:planets|continents|countries|oceans|bones|states|legs|teeth|chromosomes"
            r"|elements"
            r"|sides|letters|strings|keys|players|hearts|moons|colors|colours|degrees|zeros|cards)"
            r" (?:are (?:there )?in|does an?|do (?:most )?\w+s|are on an?|in an?|in the|make)\b.*"
        ),
        rf"how to {_MAKING}\b.*",
        rf"how to \w+.* in {_CODE}",
        (
            r"how (?:do|does|is|are) [\w -]+ (?:work|works|made|formed|form|fly|swim|breathe"
            r"|sleep|grow"
            r"|produced|calculated|communicate|measured|happen|digest \w+|see|hear|navigate"
            r"|reproduce)(?: in [\w ]+)?"
        ),
        (
            r"why (?:is|are|does|do) (?:the (?:sky|sea|ocean|moon|sun|earth|heart)|ice|leaves|grass"
            r"|blood|snow|cats|dogs|birds|bees|fish|planets|stars|volcanoes|earthquakes|onions"
            r"|metals?|salt|plants|clouds|tides|rainbows|magnets|bears)\b.*"
        ),
    )
]


def needs_memory(plain: str, folded: str) -> bool:
    """Return whether an English text may need memory; `plain` has its capitals, `folded` not."""
    if _is_small_talk(folded) or _is_arithmetic(folded):
        return False
    request = _request(folded)
    words = _WORD.findall(request)
    if not _CUES.isdisjoint(words) or any(w.endswith("'s") and w not in _IS for w in words):
        return True
    if _DEFINITE.search(request) or _has_name(_without_payload(plain)):
        return True
    if (maker := _MAKER.match(request)) is not None:
        return not _INVENTED.issuperset(maker[1].split())
    return not any(form.match(request) for form in _FORMS)


def _has_name(text: str) -> bool:
    """Return whether a word within a sentence has a capital letter that not everyone gives it."""
    return any(
        match[0].lower() not in _WORLD
        and (before := text[: match.start()].rstrip())
        and before[-1] not in ".!?:"
        for match in _CAPITAL.finditer(text)
    )


def _is_small_talk(text: str) -> bool:
    if len(text) > _MAX_SMALL:
        return False
    clauses = [clause.strip() for clause in _CLAUSE.split(text)]
    return all(c in _SMALL or _TO_WHOM.sub("", c) in _SMALL for c in clauses if c)


def _is_arithmetic(text: str) -> bool:
    """Return whether a text is numbers and operators, or a conversion between units."""
    if _DATE.search(text):
        return False
    pieces = _PIECE.findall(text.rstrip("?.! ="))
    is_number = [p in _NUMBERS or _NUMBER.fullmatch(p) is not None for p in pieces]
    if not any(is_number):
        return False
    rest = {p for p, known in zip(pieces, is_number, strict=True) if not known}
    if any(p in _OPERATORS or p.endswith("%") for p in pieces) and rest <= _SUM:
        return True
    return sum(p in _UNITS for p in pieces) > 1 and rest <= _CONVERSION


def _without_payload(text: str) -> str:
    """Return a text without what it quotes, and without what a request brings with it."""
    bare = _QUOTED.sub('""', text) if not _QUOTES.isdisjoint(text) else text
    return _PAYLOAD.sub(r"\1", bare) if ":" in bare else bare


def _request(text: str) -> str:
    """Return what is asked for, without "could you please", and "how to" for "how do you"."""
    bare = _FOR_ME.sub(r"\1", _without_payload(_POLITE.sub("", text, count=1)))
    if not _HOW_I.match(bare) or _IN_CODE.search(bare):
        bare = _HOW_TO.sub("how to ", bare)
    bare = _SAYING.sub(r'\1 "" \2', bare)
    return _GIVEN.sub("the following ", _WHICH.sub(r"\1", bare))

"""English and Chinese word lists for the rules: relatives, pets, work, conditions, verbs."""

# ruff: noqa: E501 - lists
from __future__ import annotations

from stop_words import get_stop_words

# word -> (predicate, detail): what "X's <word> is Y" says
KIN: dict[str, tuple[str, str]] = {
    **dict.fromkeys(
        "wife husband partner girlfriend boyfriend fiance fiancee fiancé fiancée spouse".split(),
        ("partner", ""),
    ),
    **dict.fromkeys("boss manager supervisor".split(), ("manager", "")),
    **dict.fromkeys("mother mom mum mommy mummy".split(), ("kin", "mother")),
    **dict.fromkeys("father dad daddy".split(), ("kin", "father")),
    **dict.fromkeys("sister sisters".split(), ("kin", "sister")),
    **dict.fromkeys("brother brothers".split(), ("kin", "brother")),
    **dict.fromkeys("daughter daughters".split(), ("kin", "daughter")),
    **dict.fromkeys("son sons".split(), ("kin", "son")),
    **dict.fromkeys("kid kids child children baby newborn twins twin".split(), ("kin", "child")),
    **dict.fromkeys("grandma grandmother grandpa grandfather granny".split(), ("kin", "grandparent")),
    **dict.fromkeys("grandson granddaughter grandchild grandchildren".split(), ("kin", "grandchild")),
    **dict.fromkeys("friend friends mate buddy".split(), ("kin", "friend")),
    **dict.fromkeys("roommate flatmate housemate roommates".split(), ("kin", "roommate")),
    **dict.fromkeys(
        "colleague coworker co-worker colleagues teammate apprentice assistant master".split(),
        ("kin", "colleague"),
    ),
    **dict.fromkeys("neighbour neighbor neighbours neighbors".split(), ("kin", "neighbour")),
    **dict.fromkeys("teacher tutor coach mentor professor".split(), ("kin", "teacher")),
    **dict.fromkeys("doctor dentist therapist vet".split(), ("kin", "doctor")),
    **dict.fromkeys("aunt auntie".split(), ("kin", "aunt")),
    **{
        f"{who}-in-law": ("kin", "relative")
        for who in ("mother", "father", "sister", "brother", "son", "daughter")
    },
    "uncle": ("kin", "uncle"), "cousin": ("kin", "cousin"), "cousins": ("kin", "cousin"),
    "niece": ("kin", "niece"), "nephew": ("kin", "nephew"), "sibling": ("kin", "sibling"),
    "siblings": ("kin", "sibling"), "parents": ("kin", "parent"),
}  # fmt: skip
PETS = frozenset(
    """dog dogs puppy puppies cat cats kitten kittens rabbit bunny hamster parrot budgie horse pony
    fish goldfish turtle tortoise snake lizard gecko guinea-pig ferret chicken chickens beagle
    labrador lab poodle corgi husky retriever terrier bulldog dachshund spaniel shepherd collie
    greyhound tabby siamese pet pets goat donkey falcon hawk wolf dragon pug chihuahua rabbits hamsters parrots budgies horses ponies turtles tortoises snakes lizards geckos
    ferrets goats donkeys gerbil gerbils rat rats""".split(),
)
# attribute word -> (predicate, detail)
ATTRIBUTES: dict[str, tuple[str, str]] = {
    "name": ("name", ""), "full name": ("attribute", "full_name"), "age": ("age", ""),
    "birthday": ("birthday", ""), "date of birth": ("birthday", ""), "email": ("email", ""),
    "email address": ("email", ""), "e-mail": ("email", ""), "phone number": ("phone", ""),
    "phone": ("phone", ""), "number": ("phone", ""), "mobile number": ("phone", ""),
    "address": ("address", ""), "home address": ("address", ""), "goal": ("goal", ""),
    "hometown": ("born_in", ""), "home town": ("born_in", ""), "job": ("works_as", ""),
    "occupation": ("works_as", ""), "profession": ("works_as", ""), "diet": ("diet", ""),
    "employer": ("works_at", ""), "nickname": ("attribute", "nickname"),
}  # fmt: skip
ATTRIBUTES |= {
    word.replace("-", " "): ("attribute", word.replace("-", "_"))
    for word in """height weight blood-type shoe-size zodiac-sign star-sign time-zone timezone budget
    salary nationality religion major username user-name native-language mother-tongue
    first-language
    last-name surname middle-name anniversary wedding-anniversary lucky-number team class rank level
    quest pronouns dream dream-job license-plate passport-number deadline ring-size commute bedtime
    hourly-rate rent title job-title hobby maiden-name gate locker room-number flight student-id
    employee-id postcode zip-code wifi-name""".split()
}
# The last word of what has one value at a time, whatever stands before it.
ATTRIBUTE_NOUNS = frozenset(
    """password hint code pin size colour color number id model brand version status role rank grade
    level seat shift schedule currency theme address contact plan tariff carrier provider supervisor
    blood-type deadline curfew bedtime passphrase codeword callsign alias surname""".split()
)
CONDITIONS = frozenset(
    """diabetes asthma adhd autism migraine migraines headache headaches insomnia anxiety
    depression arthritis hypertension cancer epilepsy celiac coeliac eczema anemia anaemia flu
    dyslexia tinnitus sciatica vertigo allergies hives rash nausea heartburn hayfever fever cold
    covid pneumonia scoliosis psoriasis panic reflux ibs""".split(),
)
DIETS = (
    "vegetarian|vegan|pescatarian|pescetarian|flexitarian|lactose[- ]intolerant"
    "|gluten[- ]intolerant"
    "|gluten[- ]free|dairy[- ]free|celiac|coeliac|keto|paleo|halal|kosher|plant[- ]based"
    "|teetotal|carnivore"
)
JOB_WORDS = (
    "engineer|developer|programmer|designer|nurse|doctor|surgeon|physician|dentist|teacher|lawyer"
    "|attorney|chef|cook|baker|barista|waiter|waitress|bartender|writer|author|editor|journalist"
    "|reporter|photographer|architect|accountant|analyst|consultant|manager|director|professor"
    "|lecturer|researcher|scientist|biologist|chemist|physicist|mathematician|psychologist"
    "|therapist"
    "|counselor|counsellor|pharmacist|paramedic|firefighter|policeman|officer|detective|pilot"
    "|sailor"
    "|captain|driver|mechanic|electrician|plumber|carpenter|builder|welder|farmer|gardener|florist"
    "|librarian|translator|interpreter|musician|singer|actor|actress|dancer|artist|painter|sculptor"
    "|blacksmith|merchant|innkeeper|guard|hunter|healer|alchemist|knight|soldier|veteran|priest"
    "|monk"
    "|student|intern|freelancer|entrepreneur|founder|ceo|cto|banker|trader|broker|realtor|salesman"
    "|salesperson|cashier|clerk|secretary|receptionist|recruiter|tutor|coach|trainer|judge"
    "|veterinarian|vet|optician|hairdresser|barber|tailor|butcher|fisherman|miner|technician"
    "|administrator|planner|producer|animator|illustrator|nanny|midwife|economist|geologist"
    "|historian"
    "|philosopher|astronomer|data scientist|product manager|social worker|elder|mayor|smith"
    "|apprentice|wizard|mage|thief|tester|plumber|postman|courier|sommelier|potter|jeweler|jeweller"
)
NATIONALITIES = (
    r"(?:American|British|English|Scottish|Irish|Welsh|French|German|Spanish|Italian|Portuguese"
    r"|Dutch"
    r"|Belgian|Swiss|Austrian|Polish|Czech|Slovak|Hungarian|Romanian|Bulgarian|Greek|Turkish"
    r"|Russian"
    r"|Ukrainian|Swedish|Norwegian|Danish|Finnish|Icelandic|Canadian|Mexican|Brazilian|Argentinian"
    r"|Chilean|Colombian|Peruvian|Cuban|Indian|Pakistani|Bangladeshi|Chinese|Japanese|Korean"
    r"|Vietnamese|Thai|Filipino|Indonesian|Malaysian|Singaporean|Australian|Egyptian|Moroccan"
    r"|Nigerian|Kenyan|Ethiopian|Ghanaian|Israeli|Iranian|Iraqi|Lebanese|Syrian|Saudi|European"
    r"|Asian"
    r"|African|Catholic|Christian|Muslim|Jewish|Buddhist|Hindu|Sikh|Mormon|Protestant)"
)
TRAITS = (
    "left[- ]handed|right[- ]handed|colou?r[- ]?blind|blind|deaf|pregnant|bilingual|retired"
    "|unemployed|self[- ]employed|religious|atheist|agnostic|introverted|extroverted|an introvert"
    "|an extrovert|adopted|homeless|dyslexic|autistic|diabetic|asthmatic|epileptic|anemic|anaemic"
    "|gay|lesbian|bisexual|transgender|nonbinary|non-binary|an only child|a morning person"
    "|a night owl|an early bird|near[- ]?sighted|short[- ]sighted|tall|short|a twin|an orphan"
    "|afraid of .{2,40}|scared of .{2,40}|terrified of .{2,40}|a (?:single )?(?:mother|father"
    "|mom|dad)"
)

# Verbs: base, or base/past/participle where irregular.
_VERBS = """live move work study love like hate dislike enjoy adore prefer detest want need own play
learn teach speak/spoke/spoken train plan adopt start join attend graduate visit travel cook bake
paint write/wrote/written read/read/read run/ran/run swim/swam/swum hike climb cycle ride/rode/ridden
drive/drove/driven fly/flew/flown walk jog ski surf dance sing/sang/sung draw/drew/drawn knit sew
garden fish hunt sail collect volunteer meditate eat/ate/eaten drink/drank/drunk smoke vape
go/went/gone come/came/come get/got/gotten have/had/had make/made/made take/took/taken
give/gave/given buy/bought/bought sell/sold/sold lose/lost/lost find/found/found win/won/won
break/broke/broken meet/met/met marry divorce leave/left/left quit/quit/quit stop begin/began/begun
finish complete pass fail launch publish sign open close build/built/built create design see/saw/seen
watch hear/heard/heard stay spend/spent/spent celebrate organize organise host book cancel postpone
reschedule move return receive accept apply interview hire fire retire relocate settle switch change
grow/grew/grown raise sleep/slept/slept wake/woke/woken turn hurt/hurt/hurt injure suffer die kill
save rescue steal/stole/stolen attack defend guard protect help heal cure forge craft trade betray
trust distrust fear owe promise swear/swore/sworn discover explore escape arrive depart use drop call
name manage lead/led/led freelance commute major specialize specialise tutor coach mentor avoid
practice practise train compete perform record stream code program invest donate swap replace repair
fix renovate plant harvest fight/fought/fought defeat destroy hide/hid/hidden bring/brought/brought
send/sent/sent lend/lent/lent borrow carry wear/wore/worn wish hope dream catch/caught/caught fall/fell/fallen
feed/fed/fed keep/kept/kept choose/chose/chosen hold/held/held teach/taught/taught
think/thought/thought enroll enrol upgrade downgrade sprain fracture burn crash wreck date engage
propose head attend submit present stand/stood/stood guide rule worship serve follow threaten warn
miss deliver""".split()


def _regular_third(base: str) -> str:
    if base in {"have", "do", "go"}:
        return {"have": "has", "do": "does", "go": "goes"}[base]
    if base.endswith(("s", "x", "z", "ch", "sh")):
        return base + "es"
    if base.endswith("y") and base[-2] not in "aeiou":
        return base[:-1] + "ies"
    return base + "s"


def _doubled(base: str) -> str:
    short = len(base) <= 4 and base[-1] not in "aeiouwxy" and base[-2] in "aeiou"  # noqa: PLR2004 - a few words
    return base + base[-1] if short and base[-3] not in "aeiou" else base


def _ed(base: str) -> str:
    if base.endswith("e"):
        return base + "d"
    if base.endswith("y") and base[-2] not in "aeiou":
        return base[:-1] + "ied"
    return _doubled(base) + "ed"


def _ing(base: str) -> str:
    if base.endswith("ie"):
        return base[:-2] + "ying"
    if base.endswith("e") and not base.endswith(("ee", "oe", "ye")):
        return base[:-1] + "ing"
    return _doubled(base) + "ing"


third_person = _regular_third
BASES: set[str] = set()
THIRDS: dict[str, str] = {}
PASTS: dict[str, str] = {}
PARTICIPLES: dict[str, str] = {}
GERUNDS: dict[str, str] = {}
for _entry in _VERBS:
    _base, _, _rest = _entry.partition("/")
    _past, _, _part = _rest.partition("/")
    BASES.add(_base)
    THIRDS[_regular_third(_base)] = _base
    PASTS.setdefault(_past or _ed(_base), _base)
    PARTICIPLES.setdefault(_part or _past or _ed(_base), _base)
    GERUNDS[_ing(_base)] = _base
for _base in (
    "travel",
    "cancel",
    "quit",
    "stop",
    "drop",
    "swap",
    "run",
    "swim",
    "begin",
    "win",
    "get",
):
    GERUNDS[_base + _base[-1] + "ing"] = _base
PASTS |= {"travelled": "travel", "cancelled": "cancel", "canceled": "cancel", "stopped": "stop",
          "dropped": "drop", "swapped": "swap", "was": "be", "were": "be", "did": "do",
          "became": "become", "knew": "know", "felt": "feel", "said": "say", "told": "tell",
          "put": "put", "cut": "cut", "lay": "lie", "let": "let", "paid": "pay"}  # fmt: skip
PARTICIPLES |= {"travelled": "travel", "cancelled": "cancel", "stopped": "stop", "been": "be",
                "dropped": "drop", "got": "get", "become": "become", "done": "do"}  # fmt: skip
# Past forms that no entry of _VERBS gives; a first-person verb that is one of them stays as it is.
IRREGULAR_PASTS = frozenset(
    """set shot hit bet lit bit beat dug fed froze forgave hung knelt laid lent meant rode sank
    shook shone slid spun stuck struck swung tore threw understood woke wept upset spread
    split shut burst blew clung crept dealt fled flung forbade forgot overcame rang rose
    sought shed shrank slept sped spilt spoilt sprang stank stole strove swept swelled
    undertook withdrew wound wrung bore bent bound bred drew dwelt grew held lay leapt
    learnt burnt misunderstood overheard rebuilt redid reread saw sat stood swam wore won
    wrote became ate drank drove fell flew gave hid kept knew led lost paid ran rode said
    sang sent sold spent spoke taught told thought took went cannot""".split()
)
ANY_VERB = frozenset(BASES) | frozenset(THIRDS) | frozenset(PASTS) | frozenset(PARTICIPLES)
MODALS = frozenset(
    """will would can could should shall may might must is was has had does did used cannot can't
    won't wouldn't couldn't shouldn't isn't wasn't hasn't hadn't doesn't didn't ought""".split(),
)
# First words that tell something about the talk, not about the speaker's life.
TALK_VERBS = frozenset(
    """think thinks thought guess guesses guessed mean means meant know knows knew see sees hope hopes
    hoped wish wishes wished understand understands understood agree agrees agreed ask asks asked
    wonder wonders wondering wondered suppose supposes believe believes believed appreciate
    appreciates say says said tell tells told thank thanks doubt doubts assume assumes assumed
    bet bets imagine imagines forget forgets forgot remember remembers figure notice noticed
    realize realized realise realised expect expects look looks looking feel feels felt try tries
    trying tried let lets need needs want wants shall may might could should would can cannot can't
    couldn't shouldn't wouldn't seem seems do does did ought must get gets copied pasted typed
    swear swears promise promises beg begs refuse recommend suggest suggests""".split(),
)
ADVERBS = (
    "also|really|just|now|currently|still|recently|finally|actually|always|usually|often|absolutely"
    "|totally|honestly|completely|truly|mostly|mainly|sometimes|already|even|kinda|sorta|basically"
    "|especially|definitely|certainly|probably|simply|only|officially|previously|formerly"
    "|originally"
    "|particularly|genuinely|secretly|personally|generally|normally|typically|quite|so|very|pretty"
    "|literally|lately|newly|happily|eventually|regularly|strongly|deeply|severely|deathly"
    "|extremely"
    "|terribly|once|long|much|super|both|then|rarely|hardly|seldom|obviously|soon|proudly|fully|"
    "seriously|highly|mildly|slightly|half|primarily"
)
# Words that are no name though a sentence begins with them.
_OTHER_WORDS = """hey hi hello oh wow well so ok okay yeah yes yep no nope haha lol hmm um btw thanks thank
please congrats congratulations sure great nice cool good morning evening night sorry welcome dear
maybe perhaps honestly today yesterday tomorrow tonight here there everyone everybody someone
something anything nothing everything everyone people guys guess wait stop also another many most
few several both each every last next since because although though while unless until despite
during after before imagine suppose fyi tbh gonna gotta dinner lunch breakfast work school
i i'm i'd i've i'll im ive mom dad mum mam grandad granddad grandpa grandma gran nan nana granny papa mama daddy mummy god jesus christ alright move take go come let lets
remember forget never always just nothing talk speak""".split()
COMMON = (
    frozenset(get_stop_words("en")) | frozenset(_OTHER_WORDS) | frozenset(ADVERBS.split("|")) | frozenset(BASES)
    | frozenset(THIRDS) | frozenset(PASTS) | frozenset(GERUNDS)
)  # fmt: skip

"""The English patterns, in order: the first that matches the core of a clause is its claim."""

# ruff: noqa: E501 - a pattern reads better whole than broken
from __future__ import annotations

import re
from typing import Any, NamedTuple

from reverie.models.rules.phrases import DET, LONG, NAME, NAMES, PERSON, POSS, SHORT, forms
from reverie.models.rules.vocab import CONDITIONS, DIETS, JOB_WORDS, KIN, PETS

_KIN = r"(?P<kin>" + "|".join(sorted(KIN, key=len, reverse=True)) + r")"
_PET = r"(?P<pet>" + "|".join(sorted(PETS, key=len, reverse=True)) + r")"
CONDITION = r"(?:\w+ )?(?:" + "|".join(sorted(CONDITIONS)) + r")"
_JOB = rf"(?:(?!the |not |very |good |bad |big |huge )[\w/-]+ ){{0,4}}?(?:{JOB_WORDS})(?![\w-])"
_AGO = r"\s+(?:an?|\d+|one|two|three|four|five|six|seven|eight|nine|ten|a few|a couple of|several) (?:day|week|month|year)s? ago\b"
_PLACE = rf"(?P<o>(?:the )?{NAME}(?:, {NAME})?|[a-z][\w' -]{{1,50}}?)(?=[,;.!?()]|$|{_AGO}|\s+(?:for|with|since|because|when|where|which|as|last|next|this|back|again|now|right|these|at|on|in|by|from|to|and|but|so|until|after|before|during|near|yesterday|today|tomorrow|anymore|too|just|over|about|every|ago)\b)"
ORG = rf"(?P<o>(?:the )?(?:{NAME}|\d\w+)|(?:an?|the|{POSS}|some) [\w' -]{{2,50}}?)(?=[,;.!?()]|$|{_AGO}|\s+(?:for|with|since|because|when|where|which|as|last|next|this|now|right|these|at|on|in|by|from|to|and|but|so|until|after|before|during|yesterday|today|tomorrow|anymore|too|just|over|every|that|who|who's|full|part)\b)"


class Rule(NamedTuple):
    """One pattern; `o` is its object. `fields` override those of the claim."""

    predicate: str
    pattern: re.Pattern[str]
    fields: dict[str, Any]


def _rule(predicate: str, pattern: str, **fields: Any) -> Rule:
    return Rule(predicate, re.compile(pattern), fields)


RULES: tuple[Rule, ...] = (
    # names, ages, places
    _rule("name", rf"(?:is|was|got) (?:called|named|known as) (?P<o>{PERSON})"),
    _rule("attribute", rf"goes by (?P<o>{PERSON})", detail="nickname"),
    _rule("age", r"(?:is|was|turned|turning|turns|are) (?:turning )?(?P<o>\d{1,3}|(?:twen|thir|for|fif|six|seven|eigh|nine)ty(?:-\w+)?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen)(?: years? old| now| today| yesterday| soon| next| last| this| on| in|,|\.|!|$)"),
    _rule("lives_in", rf"(?:moved|moving|move|moves|relocated|relocating) (?:back |over |out |down |up |here )?(?:from (?P<former>(?:the )?{NAME}) )?to (?!(?:[\w-]+ ){{0,2}}(?:grade|class|level|rank|league|division|shifts?|position|role|team|department|tier)\b){_PLACE}(?: from (?P<former2>(?:the )?{NAME}))?", changed=True),
    _rule("attribute", r"(?:lives|living|live) (?P<o>alone|by (?:themselves|himself|herself)|on (?:their|his|her) own|with (?![^,;.!?]* in [A-Z])[^,;.!?]{2,60}?)(?=[,;.!?]|$| (?:now|again|since|these days|because|and)\b)", detail="household", plain=True),
    _rule("attribute", r"(?:wears|takes|needs) (?:an? |shoes in )?(?:shoe )?size (?P<o>\d+(?:\.5)?)(?: shoes)?$", detail="shoe size", plain=True),
    _rule("attribute", r"pays (?P<o>[$€£]?\d[\d,.]*k? ?\w*(?: (?:a|per) month)?) (?:in|for|of) (?:the )?rent", detail="rent", plain=True),
    _rule("attribute", r"(?:earns|makes) (?P<o>[$€£]?\d[\d,.]*k?(?: \w+)?(?: (?:a|per) (?:year|month|week|hour))?)$", detail="salary", plain=True),
    _rule("manager", rf"(?:reports|answers) to (?P<o>{PERSON})", changed=True),
    _rule("lives_in", rf"(?:moved|moving|moves|relocated) (?:in|back )?to (?:an?|the|{POSS}) [\w' -]{{2,30}}? (?:in|near|outside) (?P<o>{NAME})", changed=True),
    _rule("lives_in", rf"{forms('live', 'reside')} in (?:an?|the|{POSS}) [\w' -]{{2,40}}? (?:in|near|outside) (?P<o>{NAME})"),
    _rule("birthday", r"(?:is|was) born on (?:the )?(?P<o>\d{1,2}(?:st|nd|rd|th)?(?: of)? [A-Z]\w+(?:,? \d{4})?|[A-Z]\w+ \d{1,2}(?:st|nd|rd|th)?(?:,? \d{4})?)", plain=True),
    _rule("lives_in", rf"(?:is|was) (?:based|living|located|settled|staying) (?:in|at|near|on|out of) {_PLACE}"),
    _rule("lives_in", rf"{forms('live', 'reside', 'settle')} (?:\w+ )?(?:in|at|near|on|outside) {_PLACE}"),
    _rule("lives_in", rf"(?:moved out of|moved away from|left) (?P<former>(?:the )?{NAME}) for (?P<o>(?:the )?{NAME})", changed=True),
    _rule("lives_in", rf"(?:moved out of|moved away from) {_PLACE}", ended=True),
    _rule("birthday", r"(?:is|was) born (?:on|in) (?P<o>(?:the )?\d[\w ,-]*|\w+ \d[\w ,]*)"),
    _rule("born_in", rf"(?:is|was) (?:born(?: and raised)?|raised) in (?P<o>{NAME})"),
    _rule("born_in", rf"(?:is|was|comes|hails|are) (?:originally )?from (?P<o>(?:the )?{NAME})(?! (?:is|was|to)\b)"),
    _rule("born_in", rf"grew up in {_PLACE}"),
    # partners and marriage
    _rule("partner", rf"(?:is |was |got |gets |getting |has gotten |are )?(?:back )?(?P<detail>married|engaged|marrying|marry|dating|proposed|marries|divorced|divorcing|separated) (?:to |from )?(?P<o>{PERSON})"),
    _rule("partner", r"(?P<o>broke up|split up|separated|got divorced|got separated)(?! with| from| to)", ended=True),
    _rule("partner", r"(?:is|was|got|became|are) (?P<detail>(?P<o>single|married|engaged|divorced|widowed|separated|a widow|a widower))\b"),
    _rule("partner", rf"(?:broke up|split up|split) with (?P<o>{PERSON}|{POSS} \w+)", ended=True),
    _rule("partner", rf"divorced {POSS} (?P<o>\w+)", ended=True),
    # family, friends, pets
    _rule("kin", rf"{forms('have')} (?:{DET}|one|two|three|four|five|six|\d+)? ?(?P<adj>(?:(?!no )[\w-]+ ){{0,3}}?){_KIN}(?=$|[,.;!:]| (?:named|called|who|whose|and|in|from|at|with|that|living|now|but|[A-Z]))(?:,? (?:named|called|whose names? (?:is|are)|and (?:her|his) name is))?(?:,|:)? ?(?P<o>{NAMES})?"),
    _rule("kin", rf"(?:called|named|calling|naming|christened) (?:the|{POSS}) (?:new |little |newborn )?(?P<kin>baby|son|daughter|twins|kid|child|newborn)(?: boy| girl)? (?P<o>{NAMES})"),
    _rule("has_pet", rf"(?:called|named|calling|naming) (?:the|{POSS}) (?:new )?{_PET} (?P<o>{NAMES})"),
    _rule("has_pet", rf"(?:{forms('have', 'own', 'adopt', 'rescue', 'buy', 'get', 'raise', 'keep')}|welcomed) (?:just |{DET} |(?:one|two|three|four|five|\d+) )*(?P<adj>(?:(?!no |to )[\w-]+ ){{0,4}}?){_PET}\b(?! (?:allerg|food|person|people|lover|sitter|show|video|toy))(?: (?:puppy|dog|cat|kitten))?(?:,? (?:named|called|whose name is|and named (?:her|him|it))|,)? ?(?P<o>{NAMES})?"),
    # health and food
    _rule("allergic_to", rf"(?:is|was|are) (?:\w+ly |badly |very )*allergic to {LONG}"),
    _rule("allergic_to", rf"{forms('have')} (?:an? |the |bad |severe |serious )*(?P<o>(?!(?:an?|the|no|bad|severe|serious|outgrown)\b)[\w -]{{2,30}}?) allergy(?! to\b)"),
    _rule("allergic_to", rf"(?:has |have )?(?:outgrown|outgrew|overcome|overcame|lost|got over|gotten over) (?:an? |the |their |User's )?allergy to {LONG}", ended=True),
    _rule("allergic_to", rf"{forms('have')} (?:an? |bad |severe )*allergy to {LONG}"),
    _rule("diet", rf"(?:is|was|became|went|turned|goes|been|eats|follows|are|stays|is on|does|started|being) (?:an? |the |strictly |fully |\w+ly )*(?P<o>{DIETS})\b"),
    _rule("has_condition", rf"(?:is|was|been|got) diagnosed with {SHORT}", changed=True),
    _rule("has_condition", rf"(?:{forms('suffer')} from|{forms('have', 'get', 'develop')}) (?:an? |bad |chronic |severe |mild |frequent |terrible )*(?P<o>{CONDITION})\b"),
    _rule("has_condition", rf"{forms('break', 'sprain', 'hurt', 'injure', 'fracture', 'burn')} (?:{POSS}|the) (?P<o>(?:left |right )?(?:ankle|leg|arm|wrist|foot|hand|finger|thumb|toe|knee|hip|back|neck|nose|rib|ribs|shoulder|elbow|collarbone|jaw|head|heel|hamstring))\b", kind="event", changed=True),
    _rule("has_condition", r"(?:takes|is on|took) (?P<o>(?:\w+ )?(?:medication|antibiotics|insulin|antidepressants)[\w ]{0,30})"),
    # work and study
    _rule("studies_at", r"(?:goes to|going to|went to|attends|switched to|changed to|moved to|transferred to|starts at|started at|is at|is enrolled (?:at|in)) (?P<o>(?:[A-Z][\w'-]+ ){1,4}(?:Elementary|High|Primary|Secondary|Middle|Academy|School|College|Kindergarten|Preschool)(?: School)?)", study=True),
    _rule("works_at", rf"(?:quit|quitting|left|leaving|leaves|resigned from|lost|resigned|quits) (?:{POSS} )?(?:\w+ )?(?:job|position|role|post|work)(?: as (?:an? )?(?P<as>{_JOB}))?(?: (?:at|with|from) {ORG})?", ended=True),
    _rule("works_at", rf"(?:was|is|got|been) (?:laid off|fired|let go|made redundant)(?: (?:from|by|at) {ORG})?", ended=True),
    _rule("works_at", rf"(?:resigned|retired|quit) (?:from )?(?P<o>{NAME})", ended=True),
    _rule("works_at", rf"(?:works|work|working|worked|interning|interns|employed|is employed|was employed|freelances|consults) (?:full[- ]time |part[- ]time |remotely |as (?:an? )?(?P<as>[\w/ -]{{2,40}}?) )?(?:at|for|by) (?!(?:home|night|the moment|least|once|all)\b){ORG}"),
    _rule("works_at", rf"(?:works|work|working|worked) (?!(?:on|with|in|out|from|hard)\b)[\w' -]{{2,30}}? at {ORG}"),
    _rule("works_at", rf"(?:got|landed|accepted|took|found|has|have|starts|starting|started|start|gets|is in|offered) (?:an? |the )?(?:new |dream |\w+ )?(?:job|position|role|internship|offer|post)(?: as (?:an? )?(?P<as>[\w/ -]{{2,40}}?))? (?:at|with|from) {ORG}", changed=True),
    _rule("works_at", rf"(?:starting|started|start|starts|joined|joining|join|joins|transferred to|moved on to)(?! [^,.]*(?:Universit|College|School|Academy)) (?:work(?:ing)? )?(?:at |for )?(?:an? [\w ]{{2,30}}? (?:called|named) )?(?P<o>{NAME})(?! (?:club|gym|team|band|class)\b)", changed=True),
    _rule("works_as", rf"(?:works|work|working|worked|freelances|freelancing|freelanced|employed|freelance|serves|served|job is|(?:got |was |is |been )?(?:hired|promoted|retrained)|started|starting|starts) (?:as|(?<=promoted )to) (?:an? |the )?(?P<o>[\w/-]+(?: [\w/-]+){{0,3}}?)(?=[,.;!?]|$| (?:at|for|in|now|with|since|on|and|from|last|next|anymore|of|but)\b)(?: (?:at|for|with) (?P<at>{NAME}))?"),
    _rule("works_as", rf"(?:is|was|became|become|becomes|becoming|are|been) (?:now |still )?(?:an?|the) (?P<o>{_JOB})(?: (?:at|for|with) (?P<at>{NAME}))?(?P<of> of (?:the )?{NAME})?", job=True),
    _rule("works_as", r"(?:is|was) (?P<o>(?:retired|unemployed|self[- ]employed|between jobs))\b"),
    _rule("works_as", rf"{forms('run', 'own', 'open', 'manage')} (?P<o>(?:an? |the |{POSS} )(?:\w+ ){{0,3}}?(?:bakery|cafe|café|shop|restaurant|business|company|startup|farm|studio|store|bar|inn|tavern|forge|agency|salon|clinic|bookshop|bookstore|gallery|hotel|brewery|nursery))(?: (?:called|named) (?P<extra>{NAME}))?", plain=True),
    _rule("teaches", rf"{forms('teach')} {SHORT}(?: (?:in|at) (?P<in>{NAME}))?"),
    _rule("studied", rf"(?:studied|majored in|got (?:an? |{POSS} )?(?:\w+ )?degree in) (?P<o>[\w ]{{2,50}}?)(?: (?:at|from) (?P<at>{NAME}))(?=[,.;!?]|$|\s)"),
    _rule("studies_at", rf"(?:{forms('study')} (?:(?P<subject>[\w ]{{2,40}}?) )?at|attends|attending|is a student at|goes to|going to|enrolled (?:at|in)|got (?:accepted|admitted) (?:to|into|at|by)|was (?:accepted|admitted) (?:to|into|at|by)|got into|transferred to|starting at|starts at|moved on to) (?P<o>(?:the )?(?:{NAME}))(?= |$|[,.!])(?<!Monday)", study=True),
    _rule("studied", rf"{forms('have', 'hold', 'get', 'earn', 'finish', 'complete')} (?:an? |{POSS} )?(?:(?:bachelor's|master's|doctoral|phd|PhD|MSc|BSc|BA|MA|MBA) ?)?(?:degree |PhD |phd |doctorate |diploma )in (?P<o>[\w ]{{2,40}}?)(?: (?:at|from) (?P<at>{NAME}))?(?=[,.;!?]|$| (?:in|back|last)\b)"),
    _rule("studied", rf"{forms('have', 'hold', 'get', 'earn')} (?:an? |{POSS} )?(?P<o>\w+(?: \w+)?) (?:degree|PhD|phd|doctorate|diploma)(?: (?:at|from) (?P<at>{NAME}))?"),
    _rule("studied_at", rf"{forms('graduate')}(?: from)? (?P<o>(?:the )?{NAME}|college|university|high school|medical school|law school)(?: with (?:an? )?(?:degree in (?P<deg>[\w ]{{2,30}}?)|(?P<deg2>[\w ]{{2,30}}?) degree))?(?=[,.;!?]|$| (?:in|back|last|on|this|with|two|three)\b)"),
    _rule("studied_at", rf"dropped out of (?P<o>(?:the )?{NAME}|(?:\w+ )?(?:college|university|school|uni|academy|kindergarten))(?=[,;.!?]|$|\s)"),
    _rule("studies", rf"(?:{forms('study')}|is majoring in|majoring in|majors in|minoring in) (?!(?:abroad|hard|for|at|in)\b){SHORT}"),
    _rule("learning", rf"(?:{forms('learn')}|is taking (?:up|lessons in)|took up|taking up|takes (?:lessons in|up)) (?:how )?(?:to )?(?!(?:that|about|a lot|from|something)\b){LONG}"),
    _rule("speaks", rf"(?:{forms('speak')}|is fluent in|knows|is bilingual in) (?:fluent |some |a little |basic |only )?(?P<o>(?:[A-Z]\w+)(?:(?:, | and |, and )[A-Z]\w+){{0,4}})(?! to\b)"),
    _rule("skilled_in", rf"(?:is|was) (?:good|great|skilled|talented|amazing|terrible|bad|an expert) (?:at|in|with) {LONG}"),
    _rule("skilled_in", r"(?:knows how to|can) (?P<o>(?:play|speak|cook|swim|drive|ride|dance|sing|draw|paint|code|program|juggle|bake|knit|sew|ski|surf|weld|read|forge|brew|cast|pick|track)\b(?: [\w' -]{1,40})?)"),
    # likes and dislikes
    _rule("likes", rf"(?:stand|bear|tolerate) (?!(?:up|by|for|in|on|it\b|in)\b){LONG}", neg_only=True, strong=True),
    _rule("likes", rf"(?:love|loves|loved|adore|adores|adored|loving) (?!(?:it|that|this|to hear|you|how|what|the idea|your)\b)(?:to )?{LONG}", strong=True),
    _rule("likes", rf"(?:like|likes|liked|enjoy|enjoys|enjoyed|enjoying|fancies|loves|appreciates) (?!(?:it|that|this|to hear|you|how|what|when|your|to know)\b)(?:to )?{LONG}"),
    _rule("likes", rf"(?:hates|hate|hated|detests|loathes|despises|detest|loathe|despise|hating) (?!(?:it|that|this|to say|you|when|how|to)\b)(?:to )?{LONG}", polarity=-1, strong=True),
    _rule("likes", rf"(?:dislikes|dislike|disliked|avoids|avoid|is not fond of|abhors) (?!(?:it|that|this)\b){LONG}", polarity=-1),
    _rule("likes", rf"(?:cares|care) (?:much )?for {LONG}", neg_only=True),
    _rule("likes", rf"(?:is|was|are|became) (?:\w+ly |really |so |not )*(?:(?:an? )?(?:big|huge|massive|avid|lifelong|keen)? ?(?:fan|lover) of|fond of|keen on|into|crazy about|obsessed with|passionate about|addicted to|nuts about|mad about|partial to|hooked on) (?!(?:it|that|this|you)\b){LONG}"),
    _rule("likes", rf"(?:can't get enough of|gets enough of|fell in love with|fallen in love with|taken a liking to|come around to|warmed to|grown to (?:like|love)|learned to (?:like|love)|grew to love|came to love|has a (?:passion|thing|soft spot|weakness) for|get enough of) {LONG}", positive=True),
    _rule("likes", rf"(?:is|was) (?:tired of|sick of|fed up with|not into|bored of|over(?! (?:the|here|there|\d|at|in)\b)) {LONG}", polarity=-1),
    _rule("prefers", r"(?:prefer|prefers|preferred|favors|favours|would rather have|would rather) (?P<o>(?:[^,;.!?]){1,60}?) (?:over|to|rather than|instead of|than) (?P<other>[^,;.!?]{1,60}?)(?=[,;.!?]|$| (?:because|when|since|but|in the|for)\b)"),
    _rule("prefers", rf"(?:prefer|prefers|preferred|would rather) {LONG}"),
    _rule("eats", rf"{forms('eat')} (?!(?:it|that|this|out|in|at|too|there|here|something|less|more|healthy)\b){SHORT}"),
    _rule("drinks", rf"(?:{forms('switch', 'change')}) (?:from (?P<former>[\w ]{{1,30}}?) )?to (?P<o>(?:\w+ )?(?:tea|coffee|decaf|matcha|water|juice|milk|oat milk|beer|wine))\b", changed=True),
    _rule("drinks", rf"{forms('drink')} (?!(?:it|that|this|too|more)\b){SHORT}"),
    _rule("smokes", r"(?P<o>(?:smokes|smoke|smoking|vapes|vaping|vape)\b[\w ]{0,20})"),
    _rule("drinks", r"(?:quit|gave up|stopped|has quit|cut out|gave up on) (?P<o>(?:\w+ )?(?:coffee|alcohol|caffeine|sugar|soda|beer|wine|drinking|meat|dairy|gluten|energy drinks))\b", ended=True),
    _rule("smokes", r"(?:quit|gave up|stopped) (?P<o>smoking|cigarettes|vaping|tobacco)", ended=True),
    # plans, goals, events
    _rule("training_for", r"(?:training|retraining|trains|trained|studying|qualifying) (?:as|to be|to become) (?:an? |the )?(?P<o>[\w' -]{3,40}?)(?=[,;.!?]|$| (?:in|on|at|next|this|now|because|with|and|but|for)\b)", role=True),
    _rule("training_for", rf"(?:{forms('train')}|preparing|prepares|studying|practicing|practising|signed up|registered|has entered|entered|is signed up) (?:for )?(?P<o>(?:an? |the |{POSS} )?[\w' -]{{2,60}}?)(?=[,;.!?]|$| (?:in|on|next|this|because|with|and|later|at)\b)", future=True),
    _rule("training_for", rf"{forms('cancel')} (?:{POSS} |the |all )?(?:plans? |trip |registration |booking |entry )?(?:to (?:run|do|attend|visit|join|go to|see) |for )?(?P<o>(?:{DET} )?[\w' -]{{2,60}}?)(?=[,;.!?]|$| (?:on|because|with|and|at)\b)", ended=True),
    _rule("training_for", rf"(?:called off|pulled out of|dropped out of|withdrew from|backed out of|is skipping|skipped) (?:{POSS} |the )?(?P<o>[\w' -]{{2,60}}?)(?=[,;.!?]|$| (?:on|because|and|at)\b)", ended=True),
    _rule("plans", r"(?P<o>(?:planning|organising|organizing|arranging|booked|booking|expecting) (?:an? |the |their |twins|two |to )[^,;.!?]{0,80}|expecting)", future=True),
    _rule("plans", r"(?:needs|has|have) to (?P<o>(?!(?:say|admit|ask|go|know|be honest)\b)[^,;.!?]{3,80}? (?:by|on|before|until|tomorrow|tonight|next|this) ?[^,;.!?]{0,30})", future=True),
    _rule("attribute", r"weighs (?P<o>\d+(?:\.\d+)? ?(?:kg|kilos?|lbs?|pounds|stone))", detail="weight", plain=True),
    _rule("attribute", r"is (?P<o>\d'\d{0,2}\"?|\d\.\d+ ?m\b|\d{3} ?cm)(?: tall)?", detail="height", plain=True),
    _rule("event", rf"{forms('have')} (?:an? |{POSS} |the )?(?P<o>(?:[\w-]+ ){{0,3}}?(?:meeting|appointment|interview|exam|standup|flight|deadline|presentation|concert|wedding|surgery|checkup|test|call|date|trip|reservation|party|class|lesson|recital|audition|match|game|race|session|conference|workshop|training)s?)\b(?P<tail>[^,;.!?]*)", timed=True),
    _rule("wants", rf"(?:aims to|is aiming (?:to|for)|is saving (?:up )?(?:for|to)|saving (?:up )?(?:for|to)|dreams of|dreaming of|hopes to become) {LONG}"),
    _rule("wants", r"(?:wants to|would love to|would like to|has always wanted to|wanted to|want to|dreams of|can't wait to) (?P<o>(?:learn|visit|travel|become|buy|move|start|write|study|run|lose|see|own|build|open|go to|climb|adopt|publish|retire|try|get married|have kids|have children|join|master|avenge|find)\b[^,;.!?]{0,80})"),
    _rule("needs", rf"{forms('need')} (?P<o>(?!(?:help|you|it|this|that|to|your|some help|advice|an? (?:list|summary|minute|second|moment|hand|bit|few|little|way|new)|more|assistance|ideas)\b)[^,;.!?]{{2,60}}?) (?P<tail>(?:to|for) [^,;.!?]{{2,60}})"),
    # things had, and things done with them
    _rule("has", rf"(?:gave|gives|threw|traded|handed) (?:{POSS} |the |an? )?(?P<o>(?!(?:it|that|this|up)\b)[\w' -]{{2,50}}?) (?:away|out|in)(?=[,;.!?]|$| (?:to|for|last|on|because|and|yesterday)\b)", ended=True),
    _rule("has", rf"(?:sold|lost|gave away|got rid of|donated|returned|threw away|traded in|no longer owns|wrecked|totaled|totalled|crashed|scrapped|destroyed) (?:{POSS} |the |an? )?(?P<o>(?!(?:weight|interest|hope|it|that|this|track|count|sleep|time|my|job|\d)\b)[\w' -]{{2,60}}?)(?=[,;.!?]|$| (?:last|on|in|to|for|at|yesterday|because|and|from)\b)", ended=True),
    _rule("uses", rf"(?:uses|using) (?P<o>(?:an? |the )?{NAME}(?: and {NAME})?)"),
    _rule("has", rf"{forms('drive', 'ride', 'own')} (?:an? |the |{POSS} |two |three |\d )?(?!(?:to|it|me|home|from|around|past)\b){SHORT}"),
    _rule("has", rf"(?:bought|buys|got|purchased|ordered|picked up|received|inherited|has got|built|upgraded to|switched to) (?:{POSS} |an? |the |some )(?:new |brand new |used |second-hand )?(?P<o>(?!(?:job|lot|bit|chance|idea|feeling|cold|haircut|message|email|call|question|error|problem|sense|point|raise|promotion|offer|text|ticket|degree)\b)[\w' -]{{2,60}}?)(?=[,;.!?]|$| (?:last|on|in|for|at|yesterday|because|and|from|today|this|that|which|called|named|to)\b)(?: (?:called|named) (?P<extra>{NAME}))?", changed=True),
    _rule("has", rf"(?:has|have|had) (?:an? |{POSS} |two |three |four |five |six |seven |eight |nine |ten |\d+ )(?P<o>(?!(?:question|problem|idea|lot|bit|few|good|great|nice|lovely|bad|tough|long|busy|rough|hard|chance|feeling|point|look|thing|couple|minute|second|moment|hunch|doubt|request|suggestion|favor|favour|blast|degree|job|plan)\b)[\w' -]{{2,60}}?)(?=[,;.!?]|$| (?:in|on|for|at|because|and|from|that|which|who|called|named|with|since|any ?more|any longer|now|again|either|yet)\b)(?: (?:called|named) (?P<extra>{NAME}))?"),
    _rule("has", r"has (?:no|any) (?P<o>(?!(?:idea|clue|problem|time|question|doubt|choice|way|issue|plan)\b)[\w' -]{2,40}?)(?=[,;.!?]|$| (?:anymore|any more|in|at|and)\b)", polarity=-1, only_ended=True),
    _rule("plays", rf"{forms('play')} (?!(?:around|along|it|with|that|this|as)\b)(?:the )?{SHORT}"),
    _rule("gave", rf"{forms('give')} (?P<to>{NAME}|the \w+) (?:an? |the |{POSS} |this |some )?(?P<o>[\w' -]{{2,60}}?)(?=[,;.!?]|$| (?:to|for|in|at|on|from|as)\b)"),
    _rule("gave", rf"{forms('give', 'lend', 'sell')} (?:an? |the |{POSS} |this |some )?(?P<o>[\w' -]{{2,50}}?) to (?P<to>{NAME}|the \w+)"),
    _rule("found", rf"(?:found|discovered) (?:an? |the |{POSS} |this |some )?(?!(?:it (?:hard|difficult|easy|interesting)|out|that)\b)(?P<o>[\w' -]{{1,60}}?)(?: (?P<where>(?:in|at|near|under|inside|on|by) (?:the |an? )?[\w' -]{{2,50}}))?(?=[,;.!?]|$)"),
    _rule("met", rf"(?:met|ran into|bumped into|met up with|had (?:lunch|dinner|coffee|breakfast|drinks) with|caught up with) (?P<o>{NAMES}|{POSS} [\w' -]{{2,40}}?)(?=[,;.!?]|$|\s)"),
    _rule("visited", rf"(?:visited|visiting|visit|visits|went to|go to|going to|travelled to|traveled to|traveling to|travelling to|travel to|flew to|flying to|fly to|took a trip to|went on a trip to|got back from|returned from|drove to|heading to|head to|goes to|been to|is off to|headed to) (?!(?:bed|sleep|work)\b){_PLACE}"),
)  # fmt: skip

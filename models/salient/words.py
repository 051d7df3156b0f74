"""Word lists of the salient sentence: what carries no content, and what opens mere chit-chat."""

# ruff: noqa: E501 - lists
from __future__ import annotations

import re

from stop_words import get_stop_words

from reverie.memory_graph.text import terms

# Feeling, praise and filler: a clause of these alone tells nothing that a question could ask for.
LIGHT = frozenset(
    terms(
        """amazing awesome great good nice cool wonderful fantastic lovely beautiful gorgeous sweet
        cute fun exciting excited happy glad inspiring inspired special incredible super totally
        definitely absolutely really thing things stuff lot lots way time times day days life feel
        feeling feels felt make makes made making think thought know see look looks looking looked
        sound sounds love loved like liked enjoy enjoyed hope wish keep going go get got getting
        give take come want need thanks thank hey hi hello wow yeah yep yes oh sure right agree
        always never ever still even much many well best better words mean means meant moment
        moments true believe luck congrats kind bit kinda sorta gonna wanna gotta wait okay ok
        cheers appreciate worth matter matters forget remember truly everything anything something
        nothing everyone someone anyone literally seriously honestly actually honest blast pretty
        quite say said tell told talk chat haha lol hahaha yup nope ah um hmm though tho cuz cause
        rock rocks stuff indeed exactly certainly course soon later around back let keeps
        perfect brilliant stunning terrific awful terrible bad sad sorry hard tough easy rewarding
        since while until during far back
        woo hah heh yum yummy bet anytime bummer phew yay
        refreshing relaxing peaceful powerful able just now then once again already yet""",
    )
)
# An opening that answers, greets or links; it is cut off wherever a sentence begins with it.
OPENERS = (
    "hey|hi|hello|here|hiya|yo|oh|ooh|ah|aw+|wow|whoa|woah|well|so|ok|okay|yeah|yes|yep|yup|yea|no|nope|nah"
    "|haha\\w*|lol|hmm+|um+|uh|honestly|actually|btw|by the way|also|to be honest|tbh|you know|anyway"
    "|anyways|fyi|guess what|good news|bad news|sure|sure thing|thanks(?: a lot| so much| again| a bunch| a ton)?"
    "|thank you(?: so much| very much)?|thx|(?:yes|no|sure|ok|okay|yeah) (?:please|thanks|thank you)|cool|great|nice|awesome|amazing|right|sorry|alright"
    "|good (?:morning|afternoon|evening|night)|listen|look|and|but|plus|unfortunately|sadly|luckily"
    "|fortunately|apparently|in fact|of course|as you know|frankly|please note|welcome|absolutely"
    "|definitely|totally|exactly|indeed|for sure|true|congrats|congratulations|man|dude|omg|gosh|aye|argh|urgh|phew|mm+|lmao"
    "|farewell|well met|greetings|my goodness|same here|me too|i know|i agree|totally agree|bye|see you|cheers|dear"
    "|i have to say|i must say|i mean|lovely|wonderful|fantastic|perfect|yay|hooray|ha|yikes|ugh|oops"
)
# A first verb without a subject that speaks of the speaker: "Love hiking", "Need a new bike".
ELIDED_STATES = frozenset("love hate need want miss enjoy prefer like adore".split())
# "Don't feel like going out" leaves its "I" out; "Don't worry" is said to another.
ELIDED_NOT = re.compile(
    r"(?:don't (?:really |even |quite )?(?:feel|think|have|want|need|like|know|own)"
    r"|(?:didn't|haven't|couldn't) (?:really |even |quite )?\w+)\b(?! (?:bad|free|sorry|that|it|you|your|a word)\b)",
    re.IGNORECASE,
)
# Fellow talk, whoever it is addressed to: such a sentence says nothing about a life.
_ABOUT_TALK = (
    r"(?:that|this|it|they|those|these|you|he|she)(?:'s|'re| is| are| was| were| must be| must have been)? (?:sounds?|looks?|seems?) (?:(?:like )?(?:so|really|very|such|super|pretty|a|an|just|like)? ?)*\w+"
    r"|(?:sounds?|looks?|seems?) (?:like )?.*"
    r"|(?:i(?:'m| am) |we(?:'re| are) )?(?:so |really |very |super |truly )*(?:glad|happy|proud|excited|sorry|thrilled|pleased|delighted|grateful|thankful) (?:to hear|to see|that you|you|of you|for you|for your|about your|your|with you|it helped|we).*"
    r"|(?:it(?:'s| is| was) )?(?:so |really |very |always )?(?:good|great|nice|lovely|awesome|wonderful|amazing|cool|inspiring) (?:to (?:hear|see|know|have you|meet you|talk|chat|catch)|hearing|seeing|talking|chatting|catching|that you|you|job|work|idea|point|question|choice|one).*"
    r"|(?:i )?(?:can't|cannot|can not|couldn't) wait to (?:hear|see what|see how|see your|see it|see the|talk).*"
    r"|(?:i )?(?:hope|wish|bet|trust) (?:you|your|to hear|it|that|this|we|all|everything).*"
    r"|(?:i'll |i will )?(?:talk|see|catch|speak) (?:to |with )?(?:you|ya|u|y'all|up) ?(?:soon|later|then|around|again|tomorrow)?.*"
    r"|(?:i(?:'m| am| will be|'ll be) )?(?:always )?(?:here|there) (?:for|to (?:support|help)) you.*"
    r"|(?:i )?(?:really |totally |completely |do |truly |so )*(?:agree|understand|appreciate|hear you|get (?:it|that|you)|see what you mean|know what you mean|feel you|love (?:it|that|this|how|your|the))(?: .*)?"
    r"|(?:your|you) (?:kind words|support|encouragement|words|friendship|advice).{0,60}"
    r"|(?:i'll|i will|will|let me|i'd) (?:let you know|keep you (?:posted|updated)|think about it|do (?:that|it)|check (?:it|that|them) out|try that|give it a (?:try|go|shot)).*"
    r"|(?:way to go|well done|good for you|good on you|no worries|no problem|you're welcome|my pleasure|anytime|same to you|take care|have (?:a |fun|an? ).*|long time no.*|not much|nothing much|what a .*|how .*)"
    r"|(?:i(?:'m| am| was) )?(?:just |only )?(?:kidding|joking|wondering|curious|asking|saying|checking)(?: .{0,20})?"
    r"|(?:welcome (?:to|back|home).*|safe travels|hold on|hang on|one (?:second|moment)|well met|who goes there|stay (?:back|safe|strong|positive)).{0,12}"
    # the weather, the day, and being asked to wait
    r"|(?:it(?:'s| is| was)|it's been)?(?: so| really| very| too| absolutely| bloody)*(?: ?(?:freezing|raining|pouring|snowing|boiling|hot|cold|sunny|windy|chilly|rainy|warm|cloudy|foggy|miserable|humid|drizzling|roasting))(?: (?:out|outside|here|in here|there|out there|today|again|tonight|this morning|this evening|as usual|already|down|of course))*(?:,? roll on \w+)?"
    r"|roll on \w+|typical(?: \w+)?|happy \w+day|(?:a )?(?:fine|lovely|nice|good|beautiful|grand|fair|cold|dark) (?:morning|day|evening|night|weather|afternoon)(?: (?:for it|to you|out|indeed|isn't it|today))*"
    r"|(?:i'm )?not (?:really )?sure(?: yet| really| tbh)?|no idea|dunno|idk|(?:just )?(?:give|gimme|bear with)(?: me)?(?: (?:a|one|two|just a))* ?(?:sec|secs|second|seconds|minute|minutes|min|mins|mo|moment|tick|bit)?"
    r"|(?:one|just a|two) (?:sec|secs|second|min|minute|mo|moment|tick)s?|be right back|brb.*|(?:let me|lemme|i'll|i need to|gotta) (?:think|check|see|have a (?:look|think)|sleep on it|get back to you).*|(?:someone|somebody)'s at the door"
    r"|(?:on|off) (?:it|to (?:bed|sleep|work|lunch|dinner))|(?:night|nighty|good night|sleep well|sweet dreams)(?: .{0,20})?|(?:nothing|not much|nothing else) (?:to add|else|really|for now)(?: .{0,12})?|(?:that's )?(?:hilarious|so funny|too funny|wild|crazy|insane|mad|nuts)"
    r"|(?:i'm|we're|im) (?:so |absolutely |literally |just |all )*(?:melting|freezing|boiling|sweating|roasting|dying|starving|knackered|shattered|exhausted|bored|sleepy|speechless|crying|screaming|confused|stuck|back|here|listening|ready|ears|sorry|impressed|curious)(?: (?:here|now|today|lol|too|again|yet))*"
    r"|safe (?:roads|travels|journey|trip)(?: home)?|(?:friend|stranger|travell?er|mate|pal|love|buddy|bud|bro|dude|folks|everyone|guys|my (?:friend|lord|lady|dear)|sir|madam|ma'am|lad|lass)"
    r"|\d+ (?:mins?|secs?|minutes?|seconds?)|(?:just )?(?:grabbing|making|getting|finishing|having) (?:an? |some |my )?(?:coffee|tea|lunch|drink|dinner|brew|cuppa|snack|breakfast)"
    r"|not really|maybe|perhaps|possibly|probably|i guess(?: so)?|(?:it )?depends|kinda|sorta|(?:i'm |we're )?(?:running )?(?:a bit |so )?late|(?:that |it |all )?(?:makes sense|all good|all clear|so far so good)(?: (?:now|to me|thanks|so far))*|(?:bloody )?(?:mon|tues|wednes|thurs|fri|satur|sun)days?(?: (?:again|am i right|huh))?|secs?|(?:my |the )?(?:phone|doorbell|door)(?:'s| is) (?:ringing|going)"
    r"|(?:you|we)(?:'ve| have)? got this.*|we can do (?:this|it).*|(?:that|this) (?:makes sense|helps|works|is it|is all|will do|would be .*)(?: a lot| for me)?"
)  # fmt: skip
ABOUT_TALK = rf"(?:{_ABOUT_TALK})[.!\s]*"
_FOREIGN_LISTS = ("french", "spanish", "german", "italian", "portuguese", "dutch")
ENGLISH_FUNCTION = frozenset(get_stop_words("english"))
FOREIGN_FUNCTION = (
    frozenset(word for language in _FOREIGN_LISTS for word in get_stop_words(language))
    - ENGLISH_FUNCTION
    - frozenset("die den dies hat war made fast base place note quest".split())
)

"""Which Chinese sentences say something, and how they read in the third person."""

from __future__ import annotations

import re

from reverie.models.rules import chinese_frame, cues
from reverie.models.rules.chinese_rules import CITIES, KIN, SURNAMES

MIN_OWN = 3  # characters with content, of a sentence about the speaker or somebody named
MIN_OTHER = 8  # of any other
MIN_ANSWER = 4  # of any other, after a question of a person

_OPENER = re.compile(
    "(?:(?:哈|呵|嘿)+|嗯+|哦+|噢+|哇+|啊+|唉|哎呀?|喂|嗨|你好呀?|您好|大家好|早上好|晚上好|早安|晚安|好的?|好啊|行|可以|没错|不对|对啊?|是啊|是的|不是|没有"
    "|谢谢(?:你|您|啦|了)?|多谢|感谢|不客气|没关系|没事|当然|其实|说实话|老实说|真的|太好了|太棒了|恭喜(?:你|啊)?|对了|话说|顺便说一下|那个|总之|所以|但是|不过|而且|然后|可是|因为)"
    "(?:[啊呀哦呢吧嘛啦]*)[，,！!、~～。 ]+"
)
_ANNOUNCED = re.compile(
    "^(?:我)?(?:想|要|得)?(?:跟|和|告诉)(?:你|您|大家|你们)(?:说|讲|分享)?"
    "(?:个|一个|一下|件|一件)?(?:好消息|坏消息|事儿?|秘密)?[，,：: 、]+(?=[我俺咱])"
)
_QUESTION = re.compile(
    "[？?]\\s*$|[吗么呢]$|^(?:什么|怎么|为什么|为啥|如何|哪|谁|多少|能不能|可不可以|请问|是不是|有没有)"
)
# What is over with the moment: wishes, leaving, the weather, a remark on what was just said.
_MOMENT = re.compile(
    "[^我，]{0,4}(?:愉快|快乐|顺利|大吉|如意)|(?:那|我|咱们?|就|得|该)*先(?:去)?[^，]{1,5}(?:了|啦|吧|哈)|(?:我)?(?:一会儿?|待会儿?|回头|改天|下次|明天|晚点|等下)再?(?:聊|说|见)(?:了|吧|哈|啊|哦|呀)?"
    "|(?:我)?(?:还是)?(?:看|听|搞|弄|想)不(?:太)?(?:懂|明白|通)(?:[你这那它].{0,6})?|(?:我)?不(?:太|大)?(?:同意|认同|赞成)[^，]{0,4}|(?:你|他|她|您|这话)?说(?:的|得)(?:都|也|很|挺)*(?:有道理|对|没错|是|好)"
    "|(?:我)?(?:这里|这儿)?有(?:个|一个|几个|些|点)?(?:问题|事儿?|事情|疑问|疑惑)[^，]{0,8}|(?:外面|今天|现在|这会儿)?(?:又|开始|正在|正|好像)*(?:下|刮|打|停)(?:着|起|了)?(?:大|小|暴)?(?:雨|雪|风|雷)(?:了|啦|呢)?"
    "|(?:刚才|刚刚|今天|昨天)?(?:的|这|那|你|他)(?:个|种|首|些|段|道|句|张|次|儿|里|边)?(?:的)?(?:[^我他她它《，]{0,6})(?:太|真|好|挺|超|超级|有点)(?!的|在)[^我《，]{1,4}(?:了|啊|呀|哈|呢)?"
    "|(?:大家|各位|你们?)?(?:小心|当心|注意|快(?:跑|走|逃|投降|来|去|点|看)|住手|投降|动手|冲啊|上啊)[^我，]{0,6}|记得(?!我)[^，]{1,8}"
)
# A question without its mark: "这个公式怎么推出来的，没看懂".
_ASKS_HOW = re.compile(
    "(?:这|那|它|[^我，]{0,8}?)(?:到底|究竟|是)?(?:怎么(?!样都|都|也)|为什么|为啥|什么意思)[^我，]{0,12}$"
)
_REQUEST = re.compile(
    "请|麻烦|帮|再(?:试|来|说|讲|写|做|详细)|给(?:我|用户)(?:讲|说|写|看|推荐|介绍|解释|列|来|翻译|总结)|告诉我|教我|让我们?(?!的?(?:很|非常|觉得|感到))|别|不要(?!葱|姜|蒜|辣|香菜|糖|冰|盐|醋|酒)|继续|快点|来吧|走吧|等等|看看|听着"
    "|[把将给](?:下面|以下|这|上面)(?!你)|(?:写|翻译|总结|解释|介绍|推荐|列出|生成|计算|修改|润色)(?:一下|一[个篇首段份]|这|下面|以下|几|给|：|:)|你(?:能|可以|会|帮|觉得|说|看|先|应该|得|来|把)|我想(?:问|请|知道|让你)|想请你|我不(?:知道|懂|明白|太懂)"
)
# Orders that steer the talk itself, also where advice was asked for.
_TALK_ORDER = re.compile(
    "请|麻烦(?:你|您|帮)|帮我|给我|告诉我|教我|继续|快点|来吧|走吧|等等|看看(?:这|我)|听着|别(?:担心|着急|急|客气|闹|说了|这么说)|我想(?:问|请|知道|让你)|我不(?:知道|懂|明白|太懂)"
)
_UNREAL = re.compile(
    "(?:如果|要是|假如|假设|假装|想象|设想)(?:我|你|有一天|能|是)|假设|想象一下|比如说?[，：:]|从现在起你|你现在是"
)
_TALK = re.compile(
    "(?:我|咱们)?(?:也)?(?:觉得(?:也)?(?:是|对|行|不错|可以|很好)|同意|明白了?|知道了?|懂了?|了解了?|理解|相信你|支持你|为你(?:高兴|骄傲|开心)|祝你?|希望你|加油|爱你|想你|等你"
    "|(?:很|真|太|好)(?:好|棒|酷|对|有意思|有趣|厉害|开心|高兴)).{0,8}|(?:这|那|听起来|看起来|听上去|看上去)(?:个|样|也|就|都|真|太|很|好|可|是|不)*(?:好|棒|酷|对|行|可以|不错|有意思|有趣|厉害|有道理|没问题).{0,6}"
    "|(?:你|您)(?:真|太|好|很|也|都|可|们).{0,12}|.{0,6}里面请|欢迎.*|(?:那就)?(?:这样|不着急|不说了|算了|听你的|站住|一路顺风|一路平安|生日快乐|有道理)(?:吧|啦|了)?|(?:那|我|咱们?|就|先|得|该|要)*(?:去忙|忙|走|撤|睡|下线|下|挂|溜|闪|退)(?:去|觉)?(?:了|啦|咯|吧)|.{1,4}而已|(?:还是)?没(?:看|听|搞|弄|太)?(?:懂|明白)|(?:今天|今晚|外面|这)?(?:的)?天气.{1,6}|(?:早上|晚上|中午|下午)好|(?:再见|拜拜|回头见|明天见|回头聊|下次聊|好久不见|辛苦了?|慢走|保重).{0,6}"
)
_LIGHT = re.compile(
    "[\\s，,。！!？?、；;：:~～…“”\"']|哈|嗯|啊|呀|哦|呢|吧|嘛|啦|的|了|是|很|真|太|好|非常|特别|挺|也|都|就|还|又|再|觉得|感觉|这个?|那个?|有点|一下|不错|开心|高兴|棒|可以|知道|谢谢|不|没|我们?|你们?|您|他们?|她们?|它们?"
)
_OWN = re.compile("我|咱|俺|本人")
# Before a question: what makes it tell of a life, and what only leads up to the question.
_OWN_LIFE = re.compile(
    "(?:我|咱)(?!想|要问|问|觉得|有个问题|有一?个?事|不|没|该|能|可以|应该|怎么)|打算|准备|计划"
)
_WONDERS = re.compile(
    "[？?吗么呢]|怎么|什么|为什么|哪|谁|多少|几点|是不是|能不能|如果|要是|假如|比如|你(?!好)|您"
)
_TOGETHER = re.compile(
    "(?:我们|咱们)(?:俩|两|三|几|都|一起|大家|互相|彼此)|(?:我们|咱们).{0,8}一起"
)
_HELD = re.compile(
    f"(?:送|赠|献|还)(?:给|予|与)?你|\\d|[一二两三四五六七八九十]+(?:个|只|条|岁|年|月|天|点|次|块|万|位|本|家|号)|{chinese_frame.TIME}|{CITIES}"
    f"|(?:{SURNAMES})(?:伯|叔|婶|姨|哥|姐|总|老师|医生|先生|女士|师傅)|《|[A-Z][A-Za-z]+|"
    + "|".join(sorted(KIN, key=len, reverse=True))
)
_TIME_AND_OTHERS = re.compile(f"(?:{chinese_frame.TIME})+(?:有[人个只]|[他她它]|大家|别人)")
_TIME_FIRST = re.compile(chinese_frame.TIME)


def worth_keeping(sentence: str, *, is_answer: bool = False, is_advice: bool = False) -> str:
    """Return what is worth keeping of a Chinese sentence, in its own person, or "".

    Args:
        sentence: one sentence with its closing mark.
        is_answer: whether another person asked something before: less content is enough.
        is_advice: whether they asked for advice: what reads as an order is it.
    """
    body = cues.PAREN.sub("", sentence).strip()
    if _QUESTION.search(body.rstrip("。！!~ ")) or "？" in body or "?" in body:
        body = _told_before(body)
        if not body:
            return ""
    text = _ANNOUNCED.sub("", body.strip("，,。！!；;~～… 、"))
    for _ in range(5):
        cut = _OPENER.match(text)
        if cut is None or cut.end() >= len(text):
            break
        text = text[cut.end() :].strip("，,。！!；;~～… 、")
    clauses = [c.strip() for c in re.split("[，,；;]", text) if c.strip()]
    request = _TALK_ORDER if is_advice else _REQUEST
    if not clauses or _UNREAL.match(text) or request.match(text):
        return ""
    clauses = [c for c in clauses if not (_ASKS_HOW.match(c) or _MOMENT.fullmatch(c))]
    kept = [c for c in clauses if not (_TALK.fullmatch(c) or request.match(c) or _bare(c) < 2)]  # noqa: PLR2004 - one character says nothing
    if not kept:
        return ""
    text = "，".join(kept)
    least = MIN_ANSWER if is_answer else MIN_OTHER
    held = _OWN.search(text) or _HELD.search(text)
    if _bare(text) < (MIN_OWN if held else least) or _OPENER.fullmatch(f"{text}，"):
        return ""
    return text


def _told_before(question: str) -> str:
    """Return what a question tells about the speaker before it asks: "我感冒了，能喝牛奶吗？"."""
    *told, _ = re.split("[，,]", question)
    if not told or any(_WONDERS.search(c) for c in told) or _UNREAL.match(question):
        return ""
    text = "，".join(told)
    return text if _OWN_LIFE.search(text) and _bare(text) > MIN_OWN else ""


def is_answer(question: str, fragment: str) -> bool:
    """Return whether a short answer tells something, and the question says about what."""
    text = fragment.strip("，,。！!；;~… ")
    clauses = [c for c in re.split("[，,；;]", text) if c]
    told = [c for c in clauses if not (_TALK.fullmatch(c) or _REQUEST.match(c) or _bare(c) < 1)]
    return bool(told) and _bare(question) > 1


def _bare(text: str) -> int:
    """Return how many characters with content a text has."""
    return len(_LIGHT.sub("", text))


def in_third(text: str, name: str) -> str:
    """Return a Chinese sentence as told about its speaker.

    Args:
        text: what `worth_keeping` gave.
        name: how the speaker is called.
    """
    if _TOGETHER.search(text):
        return f"{name}：{text}"
    if _OWN.search(text):
        told = chinese_frame.to_third(text, name)
        if told.startswith(name):
            told = re.sub(f"(?<=，){re.escape(name)}(?=[^的家])", "", told)
        return told if name in told[:24] else f"{name}：{told}"
    if _TIME_AND_OTHERS.match(text):
        return f"{name}：{text}"
    if _TIME_FIRST.match(text) or chinese_frame.begins_without_subject(text):
        return f"{name}{text}"
    return f"{name}：{text}"

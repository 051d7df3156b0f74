"""Chinese claims: an ordered table of patterns over a clause whose subject was taken off."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from reverie.models.rules.chinese_rules import ATTRIBUTES, CITIES, KIN, PETS, RULES, SURNAMES, Rule
from reverie.models.rules.claims import Claim
from reverie.models.rules.text import MAX_CLAUSE_CHARS

TIME = (
    "(?:(?:19|20)\\d\\d年(?:\\d\\d?月)?(?:\\d\\d?[日号])?|\\d\\d?月(?:\\d\\d?[日号]|份)?|大?前年|去年|今年|明年|后年"
    "|(?:上上|上|这|本|下下|下)个?(?:月|周末|周[一二三四五六日天]?|星期[一二三四五六日天]?|礼拜[一二三四五六日天]?)(?:\\d\\d?[日号])?"
    "|大?前天|昨天|昨晚|今天|今晚|今早|明天|明晚|大?后天|周末|周[一二三四五六日天]|星期[一二三四五六日天]"
    "|[\\d一二两三四五六七八九十几半]{1,3}个?(?:天|周|星期|月|年)(?:以前|之前|前|以后|之后|后)"
    "|最近|现在|目前|如今|刚才|早上|上午|中午|下午|晚上|凌晨|从小|小时候|平时|一直|从来|后来|当时|[\\d一二两三四五六七八九十]{1,3}点半?|的时候)"
)
_PAST_WORDS = "以前|曾经|过去|之前|原来|本来|原先"
_ADVERB = re.compile(
    f"(?:{TIME}|{_PAST_WORDS}|已经|刚刚|刚|也|还|都|其实|特别|非常|真的|真是|真|很|超级|超|挺|比较|平常|通常|有点"
    "|确实|当然|终于|总算|又|就|才|只|尤其|并|并且|仍然|仍|依然|突然|正式|因此|一起|常常|经常|总是|每天|每周|每年|每个月|每晚|每早|习惯|偶尔|有时候?|并不是|因为工作|(?:早上|晚上))"
)
_LEAD = re.compile(
    "(?:但是|不过|而且|所以|然后|可是|因为|但|并且|另外|还有|其实|说实话|老实说|对了|嗯+|哦+|啊+|哈+|好的?|是的|对|那个|那|于是|结果|同时|另外|顺便说一下|没错|不是)[，,、 ]?"
)
_FUTURE = re.compile("(?:要|会|打算|准备|计划|将要?|即将|快要|想要?|希望|决定)(?!不|过敏|说|讲|弹|游泳|做饭|做|开车|唱|拉|画)")
_NOT = re.compile("不再|再也不|已经不|不太|不怎么|从不|从来不|不|没有|没|并不|不是很")
_NAME = re.compile(f"(?:{SURNAMES})[\u4e00-\u9fff]{{1,2}}?(?=说|是|住|在|喜欢|讨厌|有|要|会|去|来|想|的|和|也|最|今年|养|爱|对|从|把|被|不|没|结婚|卖|丢|搬|买|叫|决定|打算|送)|(?:小|阿|老)[\u4e00-\u9fff](?=是|住|在|喜欢|讨厌|有|要|会|去|来|的|最|今年|养|爱|对|从|把|被|不|没|结婚|搬|叫)")
_KIN_FIRST = re.compile("(?P<noun>" + "|".join(sorted(KIN, key=len, reverse=True)) + ")")
_NAME_CHARS = re.compile("[\u4e00-\u9fff·]{1,4}?(?=今年|下|上|明|去年|昨|前天|今天|已经|刚|就|要|是|住|在|喜欢|讨厌|有|会|去|来|结婚|生|的|也|很|最近|都|对|从|不|考|开|得|正|马上|终于|最|搬|想|爱|养|学|毕业|病|$|，)")


class _Frame(NamedTuple):
    subject: str
    owner: str
    noun: str
    name: str
    core: str
    negated: bool
    ended: bool
    past: bool
    future: bool
    habit: bool
    superlative: bool


def to_third(clause: str, label: str) -> str:
    """Return `clause` with 我 replaced by `label` ("用户", a name)."""
    return re.sub("我们家|我们|咱们|本人|俺|我", label, clause)


def strip_lead(clause: str) -> str:
    """Drop connectives and interjections that start a clause."""
    for _ in range(3):
        match = _LEAD.match(clause)
        if match is None or match.end() == len(clause):
            break
        clause = clause[match.end() :]
    return clause.strip("，,、 ")


def begins_without_subject(clause: str) -> bool:
    """Return whether a clause leaves its subject out, as the second of two often does."""
    bare = clause
    for _ in range(6):
        match = _ADVERB.match(bare) or _FUTURE.match(bare) or _NOT.match(bare)
        if match is None:
            break
        bare = bare[match.end() :]
    return any(rule.pattern.match(bare) for rule in RULES) or bare.startswith(("是", "有", "在", "去", "参加"))


def _frame(clause: str, label: str) -> _Frame | None:
    lead = ""
    for _ in range(4):
        match = _ADVERB.match(clause)
        if match is None or clause.startswith(label):
            break
        lead += match.group()
        clause = clause[match.end() :].lstrip("，, ")
    noun = name = ""
    if clause.startswith(label):
        owner = label
        rest = clause[len(label) :]
        bare = rest.removeprefix("的").removeprefix("家的").removeprefix("家")
        kin = _KIN_FIRST.match(bare)
        if kin:
            noun = kin["noun"]
            rest = bare[kin.end() :]
            if (m := _NAME_CHARS.match(rest)) and not re.match("叫|名|是|在|有|今年|也|都|喜欢|住|不|要|会|很|的|，|从|对|最|昨|明|上|下|去|来|结|生病|刚|已", rest):
                name = m.group()
                rest = rest[m.end() :]
        elif m := re.match(f"(?:的|家的?)(?P<pet>{PETS})(?=叫|名|是|死|走|去世|不见|丢)", rest):
            noun = m["pet"]
            rest = rest[m.end() :]
        elif rest.startswith("的") and (m := re.match("的(?P<a>[\u4e00-\u9fff]{1,6}?)(?=是|为|叫|改成|变成|在|：|:)", rest)):
            noun = m["a"]
            rest = rest[m.end() :]
    elif m := _NAME.match(clause):
        owner = m.group()
        rest = clause[m.end() :]
    elif m := re.match("(?P<s>[\u4e00-\u9fff]{2,8}?)(?=已经|又|再次|是|变|被|很|干净|不再|关)", clause):
        owner = m["s"]
        rest = clause[m.end() :]
    else:
        return None
    subject = owner + (("的" if noun else "") + noun) + name
    core = rest
    habit = negated = ended = past = future = superlative = False
    past = bool(re.search(_PAST_WORDS, lead))
    for _ in range(8):
        if m := re.match("不再|再也不|已经不|早就不|没有再", core):
            ended = True
            core = core[m.end() :]
        elif m := _ADVERB.match(core):
            word = m.group()
            past = past or bool(re.fullmatch(_PAST_WORDS, word))
            habit = habit or word.startswith(("每", "经常", "总是", "习惯", "常常", "平时", "通常"))
            core = core[m.end() :]
        elif (m := _NOT.match(core)) and not core.startswith(("不是在", "不能", "没想到", "没关系", "没问题", "不好意思", "不错", "不客气")):
            negated = True
            core = core[m.end() :]
            if m.group() in {"没有", "没"} and re.match(f"(?:{PETS})|[\u4e00-\u9fff]*(?:狗|猫|车|孩子|女儿|儿子|男朋友|女朋友)", core):
                core = "有" + core
        elif (m := _FUTURE.match(core)) and not core.startswith(("想念", "会员", "要求", "想法")):
            future = True
            core = core[m.end() :]
        elif m := re.match("能吃|可以吃", core):
            core = core[m.end() - 1 :]
        else:
            break
        core = core.lstrip("，, ")
    if core.startswith("不能吃"):
        negated, core = True, core[2:]
    if negated and core.rstrip("。！ ").endswith("了"):
        ended, negated = True, False
    if past and not habit and re.match("住|在|是|喜欢|爱|养|有|抽烟|喝|吃", core) and "以前" in (lead + rest) or "曾经" in (lead + rest):
        ended = True
    superlative = core.startswith("最")
    return _Frame(subject, owner, noun, name, core, negated, ended, past, future, habit, superlative)


def parse(clause: str, label: str, *, loose: bool = False) -> list[Claim]:
    """Return the claims of one third-person Chinese clause, the main one first.

    Args:
        clause: for example "用户上个月从北京搬到了深圳".
        label: the speaker's name in it; a name with a common surname may be subject as well.
        loose: whether an unknown verb with 了 still makes a claim.
    """
    clause = strip_lead(clause.strip("，,。！!；; 、")[:MAX_CLAUSE_CHARS])
    clause = re.sub("(?:，|,)(?=(?:名字)?(?:叫|名叫)|而不是|更喜欢)", "", clause)
    if m := re.match("(?:(?P<to>[^，,]{2,6})[，,])?(?:这|那)(?:[把个本件块颗张支瓶束枚])?(?P<o>[\u4e00-\u9fff]{1,8}?)(?:就)?送(?:给)?你", clause):
        to = m["to"] or ""
        text = f"{label}把{m['o']}送给{to}" if to else f"{label}把{m['o']}送人"
        return [Claim(label, "gave", m["o"], text, extra=_bare_name(to), past=True, changed=True)]
    if m := re.match(f"(?:请|以后|可以|大家都?)*叫{label}(?P<o>[\u4e00-\u9fffA-Za-z]{{1,8}}?)(?:吧|就好|就行|就可以|$)", clause):
        return [Claim(label, "attribute", m["o"], f"{label}的昵称是{m['o']}", detail="nickname", tail_type="person")]
    frame = _frame(clause, label)
    if frame is None:
        return []
    claims = _noun_claims(frame, clause)
    if claims and claims[0].text == clause:
        return claims
    subject = frame.name or frame.subject
    for rule in RULES:
        match = rule.pattern.match(frame.core)
        if match and (found := _from_rule(rule, match, frame, clause, subject)):
            return claims + found
    if event := _event(frame, clause, subject, loose=loose):
        claims.append(event)
    return claims


def _bare_name(text: str) -> str:
    return re.sub("^(?:铁匠|村长|队长|老板|店主|商人|守卫|医生)", "", text)


def _noun_claims(f: _Frame, clause: str) -> list[Claim]:
    if not f.noun:
        return []
    called = re.match("(?:的?名字)?(?:叫做|叫|名叫|是)(?P<o>[\u4e00-\u9fff·]{1,5}|[A-Za-z][\\w ]{0,20})(?=$|[，。！；,、])", f.core)
    if f.noun in KIN:
        predicate, detail = KIN[f.noun]
        name = f.name or (called["o"] if called and not f.negated else "")
        if name and not re.search("(?:师|员|人|生)$", name):
            text = f"{f.owner}的{f.noun}叫{name}" if f.name else clause
            return [Claim(f.owner, predicate, name, text, detail=detail, tail_type="person")]
        return []
    if re.fullmatch(PETS, f.noun):
        gone = bool(re.match("死|走|去世|不见|丢", f.core))
        if called or gone:
            return [Claim(f.owner, "has_pet", f.noun, clause, extra="" if gone else called["o"] if called else "",
                          ended=gone, past=gone)]  # fmt: skip
        return []
    value = re.match("(?:现在|已经)?(?:是|为|叫|改成|变成|在|：|:)(?:了)?(?P<o>[^，。！；,]{1,40})", f.core)
    if value is None:
        return []
    thing = value["o"].rstrip("了吧呢啊呀")
    if m := re.fullmatch("最(?:喜欢|爱)(?:吃|喝|看|听|读|去|玩)?的(?P<w>.+)", f.noun):
        return [Claim(f.owner, "favourite", thing, clause, detail=m["w"])]
    if f.noun in ATTRIBUTES:
        predicate, detail = ATTRIBUTES[f.noun]
        return [Claim(f.owner, predicate, thing, clause, detail=detail, ended=f.ended,
                      polarity=-1 if f.negated else 1)]  # fmt: skip
    return []


def _event(f: _Frame, clause: str, subject: str, *, loose: bool) -> Claim | None:
    core = f.core.strip()
    if len(core) < 2 or re.match("觉得|知道|明白|懂|想|说|问|认为|以为|希望|谢|感谢|同意|理解|看看|试试|需要你|相信|忘", core):
        return None
    if f.owner not in {subject} or not f.owner.startswith("用户"):
        if m := re.match("(?:是|变|变得|又|被)?(?P<o>.{2,20})", core):
            done = "了" in clause or f.future
            return Claim(subject, "event" if done else "state", m["o"].rstrip("了"), clause, explicit=False,
                         polarity=-1 if f.negated else 1, past="了" in clause, future=f.future, ended=f.ended)  # fmt: skip
    verb = re.search("了|过(?!敏)|参加|结婚|毕业|考|出差|旅行|旅游|手术|面试|约|开会|生日", core)
    if f.habit:
        return Claim(subject, "does", core, clause, polarity=-1 if f.negated else 1, ended=f.ended)
    if f.future and len(core) > 1 and (re.match("去|参加|结婚|考|买|学|搬|换|毕业|出差|成为|当|做|生|回|见|开|办|跑|飞|写", core)):
        return Claim(subject, "plans", core, clause, future=True, polarity=-1 if f.negated else 1, explicit=False)
    if verb and (loose or re.search(TIME, clause)) and not f.negated and not core.endswith(("好了", "知道了", "行了", "对了", "算了", "谢了")):
        return Claim(subject, "event", core, clause, past="了" in core, future=f.future, explicit=False)
    return None


def _from_rule(rule: Rule, m: re.Match[str], f: _Frame, clause: str, subject: str) -> list[Claim]:  # noqa: C901, PLR0911, PLR0912 - one branch per special predicate
    g = m.groupdict()
    predicate, fields = rule.predicate, rule.fields
    o = (g.get("o") or "").strip().rstrip("了吧呢啊呀哦嘛的")
    polarity = -fields.get("polarity", 1) if f.negated else fields.get("polarity", 1)
    if fields.get("interest") and g.get("neg"):
        polarity = -1
    ended = f.ended or bool(fields.get("ended"))
    base: dict[str, Any] = {
        "polarity": polarity, "ended": ended, "past": f.past or "了" in m.group(), "future": f.future,
        "changed": bool(fields.get("changed")), "former": g.get("former") or "",
    }  # fmt: skip

    def claim(obj: str, text: str = clause, **more: Any) -> Claim:
        return Claim(subject, predicate, obj, text, **(base | more))

    if f.future and predicate not in {"likes", "prefers", "allergic_to", "age", "learning", "speaks", "skilled_in"}:
        return [Claim(subject, "plans", f.core.rstrip("了。！"), clause, polarity=polarity, future=True, ended=ended)]
    if fields.get("habit") and not (f.negated or f.habit or ended):
        return []
    if fields.get("skill") and (not f.core.startswith(("擅长", "精通", "善于")) and not re.match("会(?:做|写|画|唱|跳|游|骑|开|弹|拉|打|修|编|滑|烤|包|说)", f.core)):
        return []
    if predicate == "kin":
        kin_predicate, detail = KIN[g["kin"]]
        return [Claim(subject, kin_predicate, o or g["kin"], clause, **(base | {"detail": detail, "tail_type": "person" if o else "none"}))]
    if predicate == "has_pet":
        return [claim(g["pet"], extra=o)]
    if predicate == "favourite":
        return [claim(o, detail=g["what"])]
    if predicate == "partner":
        alone = o in {"单身", "结婚", "已婚", "离婚", "订婚", "未婚", "离异", "丧偶", "分手"}
        return [claim(o, extra=g.get("how") or "", tail_type="none" if alone else None)]
    if predicate == "works_at":
        if not o and not ended:
            return []
        found = [claim(o or "工作", tail_type=None if o else "none")]
        if g.get("job"):
            found = [
                claim(o, f"{subject}在{o}工作"),
                Claim(subject, "works_as", g["job"], f"{subject}是{g['job']}", **base),
            ]
        if g.get("place"):
            found.append(Claim(subject, "works_in", g["place"], f"{subject}在{g['place']}工作", **base))
        return found
    if predicate == "born_in" and m.group().startswith("是") and not re.search(f"{CITIES}|[省市县州国]$", o):
        return []
    if predicate == "gave":
        return [claim(o, extra=g["to"])]
    if predicate == "found":
        return [claim(o, extra=g["where"])]
    if predicate == "prefers":
        return [claim(o, extra=g.get("other") or "")]
    if predicate == "name" and (not o or len(o) > 8):
        return []
    if predicate in {"likes", "eats", "drinks"}:
        items = re.split("、|和|以及", o)
        if 1 < len(items) <= 6 and all(1 < len(i) <= 6 for i in items) and not ended:
            start = clause.find(o)
            return [claim(i, clause[:start] + i) for i in items]
    return [claim(o)] if o else []


def entity_heads(text: str) -> list[str]:
    """Return the object's noun: "吃香菜" gives "香菜", a long clause gives nothing."""
    bare = re.sub("^(?:吃|喝|看|听|读|玩|去|养|打|弹|拉|学|做|买|用|写|画|一个人)(?=[\u4e00-\u9fff]{1,})", "", text.strip())
    bare = re.sub("^(?:所有的?|各种|任何|这个|那个|一些|自己的|太)", "", bare)
    return [bare] if 1 <= len(bare) <= 6 and not re.search("[的了我你他她它]", bare) else []

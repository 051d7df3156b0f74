"""Chinese claims: an ordered table of patterns over a clause whose subject was taken off."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from reverie.models.rules.chinese_frame import TIME, Frame, frame_of, strip_lead
from reverie.models.rules.chinese_rules import (
    ATTRIBUTES,
    CITIES,
    GENERIC_PLACES,
    KIN,
    PETS,
    RULES,
    SURNAMES,
    Rule,
)
from reverie.models.rules.claims import Claim
from reverie.models.rules.text import MAX_CLAUSE_CHARS

# A time to come: "下个月搬去上海" is a plan, the old home is kept until then.
_COMING = (
    "下个?(?:月|周|星期|礼拜|学期|季度)|明天|后天|明年|后年|(?:几|两|三|[二四五六七八九十\\d]+)(?:天|周|个月|年)(?:之|以)?后"
    "|月底|年底|过(?:几天|阵子|段时间)|马上|即将|很快|不久"
)
_AGED = re.compile(
    "今年(?:才|刚|正好|刚好|刚满|已经|都|快|就|整)*(?P<o>\\d{1,3}|[一二三四五六七八九]?十[一二三四五六七八九]?|[一二三四五六七八九])(?:周?岁|了|整)*$"
)
MAX_HEAD_CHARS = 6  # of an object's noun
_IS_RELATIVE = re.compile(
    f"(?P<o>(?:{SURNAMES}|[小老阿])[\u4e00-\u9fff]{{1,2}})(?:现在|以前|就|也|才)*是[\u4e00-\u9fff]{{1,6}}?(?:家|们)?的?"
    f"(?P<kin>{'|'.join(sorted(KIN, key=len, reverse=True))})(?=$|[，,。！])"
)
_IN_CITY = re.compile(f"(?P<place>{CITIES})(?:的|市)?(?:一[家所个])?(?P<o>[\u4e00-\u9fff]{{2,}})")
_NO_OBJECT = re.compile(
    "这个?|那个?|它|这种|那种|这些|那些|这样|那样|这儿|那儿|这里|那里|什么|[\\d一二两三四五六七八九十几百半]+(?:个?(?:年|天|月|周|小时|星期|礼拜)|分钟|次|遍|回|块|元)[^，]{0,4}|(?:个|一个|几个)?(?:问题|疑问|想法|建议|事情?)[^，]{0,8}"
)


def parse(clause: str, label: str, *, loose: bool = False) -> list[Claim]:
    """Return the claims of one third-person Chinese clause, the main one first.

    Args:
        clause: for example "用户上个月从北京搬到了深圳".
        label: the speaker's name in it; a name with a common surname may be subject as well.
        loose: whether an unknown verb with 了 still makes a claim.
    """
    clause = strip_lead(clause.strip("，,。！!；; 、")[:MAX_CLAUSE_CHARS])
    clause = re.sub("(?:，|,)(?=(?:名字)?(?:叫|名叫)|而不是|更喜欢)", "", clause)
    if m := re.match(
        "(?:(?P<to>[^，,]{2,6})[，,])?(?:这"
        "|那)(?:[把个本件块颗张支瓶束枚])?(?P<o>[\u4e00-\u9fff]{1,8}?)(?:就)?(?:送|赠|献)(?:给|予|与)?你",
        clause,
    ):
        to = m["to"] or ""
        text = f"{label}把{m['o']}送给{to}" if to else f"{label}把{m['o']}送人"
        return [Claim(label, "gave", m["o"], text, extra=_bare_name(to), past=True, changed=True)]
    if m := re.match(
        f"(?:请|以后|可以|大家都?)*叫{re.escape(label)}(?P<o>[\u4e00-\u9fffA-Za-z]{{1,8}}?)(?:吧|就好|就行|就可以|$)",
        clause,
    ):
        return [
            Claim(
                label,
                "attribute",
                m["o"],
                f"{label}的昵称是{m['o']}",
                detail="nickname",
                tail_type="person",
            )
        ]
    if who := _relative(clause, label):
        return [who]
    frame = frame_of(clause, label, loose=loose)
    if frame is None:
        return []
    claims = _noun_claims(frame, clause)
    if claims and claims[0].text == clause:
        return claims
    subject = frame.name or frame.subject
    if (aged := _AGED.search(clause)) and not frame.negated:
        claims.append(Claim(subject, "age", aged["o"], clause))
        return claims
    for rule in RULES:
        match = rule.pattern.match(frame.core)
        if match and (found := _from_rule(rule, match, frame, clause, subject)):
            return claims + found
    if event := _event(frame, clause, subject, loose=loose):
        claims.append(event)
    return claims


def _relative(clause: str, label: str) -> Claim | None:
    """Somebody named is a relative of the speaker: "周婷是用户表妹"."""
    found = _IS_RELATIVE.match(clause)
    if found is None or not clause[found.end("o") :].lstrip("现在以前就也才").startswith(
        f"是{label}"
    ):
        return None
    noun = found["kin"]
    predicate, detail = KIN[noun]
    return Claim(label, predicate, found["o"], clause, detail=detail, tail_type="person")


def _bare_name(text: str) -> str:
    return re.sub("^(?:铁匠|村长|队长|老板|店主|商人|守卫|医生)", "", text)


def _noun_claims(f: Frame, clause: str) -> list[Claim]:
    if not f.noun:
        return []
    called = re.match(
        "(?:的?名字)?(?:叫做|叫|名叫|是|换成了?|变成了?|改成了?)"
        "(?P<o>[\u4e00-\u9fff·]{1,5}|[A-Za-z][\\w ]{0,20})(?=$|[，。！；,、])",
        f.core,
    )
    if f.noun in KIN:
        predicate, detail = KIN[f.noun]
        name = f.name or (called["o"].rstrip("了") if called and not f.negated else "")
        if name and not re.search("(?:师|员|人|生)$", name):
            text = f"{f.owner}的{f.noun}叫{name}" if f.name else clause
            return [Claim(f.owner, predicate, name, text, detail=detail, tail_type="person")]
        return []
    if re.fullmatch(PETS, f.noun):
        gone = bool(re.match("死|走|去世|不见|丢", f.core))
        if called or gone:
            return [
                Claim(
                    f.owner,
                    "has_pet",
                    f.noun,
                    clause,
                    extra=f.name or (called["o"] if called else ""),
                    ended=gone,
                    past=gone,
                )
            ]
        return []
    value = re.match(
        "(?:现在|已经)?(?:是|为|叫|改成|变成|换成|[涨降升减增]到|提高到|在|：|:)(?:了)?"
        "(?P<o>[^，。！；,]{1,40})",
        f.core,
    ) or re.match("(?P<o>[\\d零一二三四五六七八九十百千万两][^，。！；,]{0,20})", f.core)
    if value is None:
        return []
    thing = value["o"].rstrip("了吧呢啊呀")
    if m := re.fullmatch("最(?:喜欢|爱)(?:吃|喝|看|听|读|去|玩)?的(?P<w>.+)", f.noun):
        return [Claim(f.owner, "favourite", thing, clause, detail=m["w"])]
    if f.noun in ATTRIBUTES:
        predicate, detail = ATTRIBUTES[f.noun]
        if predicate == "age":
            thing = thing.removesuffix("岁").removesuffix("周")
        return [
            Claim(
                f.owner,
                predicate,
                thing,
                clause,
                detail=detail,
                ended=f.ended,
                polarity=-1 if f.negated else 1,
            )
        ]
    return []


def _event(f: Frame, clause: str, subject: str, *, loose: bool) -> Claim | None:
    core = f.core.strip()
    if len(core) < 2 or re.match(  # noqa: PLR2004 - a few words
        "觉得|知道|明白|懂|想|说|问|认为|以为|希望|谢|感谢|同意|理解|看看|试试|需要你|相信|忘", core
    ):
        return None
    other = f.owner != subject or not f.owner.startswith("用户")
    if other and (m := re.match("(?:是|变|变得|又|被)?(?P<o>.{2,20})", core)):
        done = "了" in clause
        return Claim(
            subject,
            "event" if done or f.future else "state",
            m["o"].rstrip("了"),
            clause,
            explicit=False,
            polarity=-1 if f.negated else 1,
            past=done,
            future=f.future,
            ended=f.ended,
        )
    verb = re.search("了|过(?!敏)|参加|结婚|毕业|考|出差|旅行|旅游|手术|面试|约|开会|生日", core)
    if f.habit:
        return Claim(subject, "does", core, clause, polarity=-1 if f.negated else 1, ended=f.ended)
    if (
        f.future
        and len(core) > 1
        and (
            re.match(
                "去|参加|结婚|考|买|学|搬|换|毕业|出差|成为|当|做|生|回|见|开|办|跑|飞|写", core
            )
        )
    ):
        return Claim(
            subject,
            "plans",
            core,
            clause,
            future=True,
            polarity=-1 if f.negated else 1,
            explicit=False,
        )
    if (
        verb
        and (loose or re.search(TIME, clause))
        and not f.negated
        and not core.endswith(("好了", "知道了", "行了", "对了", "算了", "谢了"))
    ):
        return Claim(
            subject, "event", core, clause, past="了" in core, future=f.future, explicit=False
        )
    return None


def _from_rule(  # noqa: C901, PLR0912 - one branch per special predicate
    rule: Rule, m: re.Match[str], f: Frame, clause: str, subject: str
) -> list[Claim]:
    g = m.groupdict()
    predicate, fields = rule.predicate, rule.fields
    o = (g.get("o") or g.get("o2") or "").strip().rstrip("了吧呢啊呀哦嘛的")
    polarity = -fields.get("polarity", 1) if f.negated else fields.get("polarity", 1)
    if (
        (fields.get("interest") or predicate == "allergic_to")
        and g.get("neg")
        and not g.get("over")
    ):
        polarity = -1
    ended = f.ended or bool(fields.get("ended")) or bool(g.get("over"))
    if _NO_OBJECT.fullmatch(o) or (fields.get("gone") and not ended):
        return []
    if fields.get("gone") and re.fullmatch(CITIES, o):
        predicate = "lives_in"
    if fields.get("interest") and g.get("neg") and clause.rstrip("。！").endswith("了"):
        polarity, ended = 1, True  # what is over is the interest
    base: dict[str, Any] = {
        "polarity": polarity,
        "ended": ended,
        "past": f.past or "了" in m.group(),
        "future": f.future,
        "changed": bool(fields.get("changed")),
        "former": g.get("former") or "",
    }

    def claim(obj: str, text: str = clause, **more: Any) -> Claim:
        return Claim(subject, predicate, obj, text, **(base | more))

    coming = fields.get("changed") and re.search(_COMING, clause) and "了" not in clause
    if (f.future or coming) and predicate not in {
        "likes",
        "prefers",
        "allergic_to",
        "age",
        "learning",
        "speaks",
        "skilled_in",
    }:
        return [
            Claim(
                subject,
                "plans",
                f.core.rstrip("了。！"),
                clause,
                polarity=polarity,
                future=True,
                ended=ended,
            )
        ]
    if fields.get("habit") and not (f.negated or f.habit or ended):
        return []
    if fields.get("skill") and (
        not f.core.startswith(("擅长", "精通", "善于"))
        and not re.match("会(?:做|写|画|唱|跳|游|骑|开|弹|拉|打|修|编|滑|烤|包|说)", f.core)
    ):
        return []
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
    if predicate == "attribute" and fields.get("detail"):
        return [claim(o, detail=fields["detail"])]
    if predicate == "has_pet":
        return [claim(g["pet"], extra=o)]
    if predicate == "favourite":
        return [claim(o, detail=g["what"])]
    if predicate == "partner":
        alone = o in KIN or o in {
            "单身",
            "结婚",
            "已婚",
            "离婚",
            "订婚",
            "未婚",
            "离异",
            "丧偶",
            "分手",
        }
        return [claim(o, extra=g.get("how") or "", tail_type="none" if alone else None)]
    if predicate == "works_at":
        if not o and not ended:
            return []
        if inner := _IN_CITY.match(o):  # 深圳一家游戏公司
            o, g = inner["o"], {**g, "place": inner["place"]}
        found = [claim(o or "工作", tail_type=None if o else "none")]
        if re.fullmatch(CITIES, o):
            place = msgspec.structs.replace(found[0], predicate="works_in")
            found = [place]
            if g.get("job"):
                found.append(Claim(subject, "works_as", g["job"], f"{subject}是{g['job']}", **base))
            return found
        if g.get("job"):
            found = [
                claim(o, f"{subject}在{o}工作"),
                Claim(subject, "works_as", g["job"], f"{subject}是{g['job']}", **base),
            ]
        if g.get("place"):
            found.append(
                Claim(subject, "works_in", g["place"], f"{subject}在{g['place']}工作", **base)
            )
        return found
    if (
        predicate == "born_in"
        and m.group().startswith("是")
        and not re.search(f"{CITIES}|[省市县州国]$", o)
    ):
        return []
    if predicate == "gave":
        return [claim(o, extra=g["to"])]
    if predicate == "found":
        return [claim(o, extra=g["where"])]
    if fields.get("school") and not re.search("大|院|学|中|校", o):
        return []
    if predicate == "prefers":
        return [claim(o, extra=g.get("other") or "")]
    if fields.get("person") and re.search("[生师员人家者的]$", o):
        return []
    if predicate == "name" and (not o or len(o) > 8):  # noqa: PLR2004 - a few words
        return []
    if predicate in {"likes", "eats", "drinks"}:
        items = re.split("、|和|以及", o)
        if 1 < len(items) <= 6 and all(1 < len(i) <= 6 for i in items) and not ended:  # noqa: PLR2004 - a few words
            start = clause.find(o)
            return [claim(i, clause[:start] + i) for i in items]
    return [claim(o)] if o else []


def entity_heads(text: str) -> list[str]:
    """Return the object's noun: "吃香菜" gives "香菜", a long clause gives nothing."""
    bare = re.sub(
        "^(?:下(?=.?.?棋)|跳(?=.*舞)|踢|滑(?=雪板)|吃|喝|看|听|读|玩|去|养|打|弹|拉|学|做|买|用|写|画|一个人)(?=[\u4e00-\u9fff]{1,})",
        "",
        text.strip(),
    )
    bare = re.sub("^[^，]*的(?=.)", "", bare)
    bare = re.sub("^(?:所有的?|各种|任何|这个|那个|一些|自己的|太)", "", bare)
    if not 1 <= len(bare) <= MAX_HEAD_CHARS or re.search("[的了我你他她它]", bare):
        return []
    return [] if re.fullmatch(GENERIC_PLACES, bare) else [bare]

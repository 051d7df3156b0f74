"""How words feel: 1 mildly, 2 clearly, 3 strongly; English stems are made of them when loaded.

Lists of our own, for what people tell an assistant or a companion: joy and grief, tastes, health,
work, money, luck. Words that feel one way only in some trades ("positive" of a test, "cold",
"sick beat") are left out.
"""

# ruff: noqa: E501 - Chinese characters count as two columns, and lists read better filled
from __future__ import annotations

_ENGLISH_GOOD = {
    3: "love adore ecstatic thrilled overjoyed amazing fantastic wonderful awesome delightful "
    "delighted perfect brilliant excellent incredible magnificent superb euphoric bliss blissful "
    "elated heavenly passionate marvelous marvellous outstanding gorgeous cherish dreamy",
    2: "happy happiness glad joy joyful excited exciting great beautiful lovely proud grateful "
    "thankful enjoy enjoyable fun delicious tasty won win winner victory success successful "
    "succeed celebrate celebration celebrating congratulations cheerful laugh laughter smile "
    "married engaged wedding graduated graduation promoted promotion recovered healed healthy "
    "hero heroic generous loyal inspiring inspired triumph treasure blessed beloved fond favourite "
    "favorite best admire impressive relieved cozy cosy charming hopeful optimistic peaceful "
    "yay hooray hurray welcome reunited sweet cure cured praise praised fascinating",
    1: "good nice like okay fine pleasant calm relaxed relaxing comfortable comfy kind friendly "
    "helpful gentle warm safe better improve improved improving easy lucky luck hope interested "
    "interesting useful thank thanks satisfied content trust trusted gift adopted passed accepted "
    "achieve achieved achievement cute funny pretty fair bright fresh strong brave clever smart "
    "refreshing progress appreciate support supportive reward rewarding agree solved fixed "
    "saved free miracle eager cheer hug prefer fluent looking-forward",
}
_ENGLISH_BAD = {
    3: "hate loathe detest despise terrible horrible awful devastated devastating heartbroken "
    "heartbreaking miserable misery furious terrified terrifying traumatic trauma nightmare "
    "disgusting disgusted agony died dead death dying killed murdered murder suicide funeral "
    "grief grieving mourning tragedy tragic abuse abused hopeless worthless unbearable betrayed "
    "betrayal hell worst dreadful hideous cancer horrified catastrophe abysmal",
    2: "sad sadness unhappy angry anger upset depressed depressing depression cry cried crying "
    "weep wept afraid fear scared frightened anxious anxiety panic worried worry lonely "
    "loneliness hurt pain painful suffer suffering sick ill illness injured injury wounded fired "
    "laid-off unemployed bankrupt divorced divorce broke-up cheated stole stolen robbed lost lose "
    "loser failure failed fail fear ashamed shame guilty embarrassed embarrassing humiliated "
    "disappointed disappointing disappointment frustrated frustrating frustration exhausted "
    "jealous rude cruel nasty ruin ruined crash crashed destroyed destroy attacked attack "
    "danger dangerous threat threatened enemy evil bad stress stressed stressful burnout "
    "overwhelmed regret rejected rejection lied liar lonely gross stupid dumb useless pathetic "
    "annoyed annoying bully bullied broken hospitalized hospitalised fever allergic gloomy "
    "resent resentful insulted insult ugly",
    1: "tired bored boring dislike nervous unsure confused confusing difficult hard trouble "
    "problem issue mistake wrong worse worst-off missed unfortunately unlucky sorry late delayed "
    "cancelled canceled broke noisy dirty messy slow expensive debt ache headache sore uneasy "
    "awkward tense doubt doubtful suspicious complain complained complaint argue argued argument "
    "fight fought struggle struggling weak poor homesick rain-check bland bitter dull grumpy weird "
    "skeptical hesitant stuck refuse refused reluctant miss leak leaked flunked quarrel",
}
# Whose stem is that of a word above, and which feel nothing.
ENGLISH_PLAIN = frozenset(
    "likely unlikely goods goodbye meaning freely fairly nicely interest".split()
)
ENGLISH_NEGATIONS = frozenset(
    "not no never none nothing nobody neither nor cannot cant dont doesnt didnt isnt arent wasnt "
    "werent wont wouldnt couldnt shouldnt hasnt havent hadnt aint without hardly barely rarely "
    "seldom lack lacks lacking stopped quit".split()
)
ENGLISH_DEGREES = {
    **dict.fromkeys(
        "very really so extremely incredibly absolutely totally completely deeply truly utterly "
        "super too terribly awfully insanely especially such way genuinely".split(),
        1.4,
    ),
    **dict.fromkeys(
        "slightly somewhat bit little fairly kinda sorta mildly quite rather almost".split(), 0.6
    ),
}

_CHINESE_GOOD = {
    3: "热爱 深爱 狂喜 太棒 完美 精彩 幸福 超爱 超喜欢 最爱 美好 了不起 激动人心 欣喜若狂 无比幸运",
    2: "爱 喜欢 开心 高兴 快乐 愉快 兴奋 激动 骄傲 自豪 感激 感恩 感动 享受 好吃 美味 赢了 获胜 胜利 "
    "成功 庆祝 恭喜 结婚 订婚 毕业 升职 加薪 考上 康复 痊愈 治好 漂亮 美丽 可爱 有趣 好玩 惊喜 满意 "
    "棒 优秀 出色 期待 温暖 浪漫 甜蜜 善良 慷慨 勇敢 英雄 团聚 如愿 中奖 喜悦 欢喜 欣慰 宝贝 热情 "
    "迷人 羡慕 佩服 敬佩 舒畅 痛快 夺冠 好听 好看 欢乐",
    1: "好 不错 舒服 轻松 放松 安心 放心 平静 友好 温柔 帮助 感谢 谢谢 顺利 方便 幸运 希望 有用 满足 "
    "信任 信赖 支持 进步 改善 鼓励 欢迎 安全 健康 聪明 清新 礼物 通过了 解决了 修好 想念 贴心 和睦 踏实 "
    "省心 好多了 过瘾 喜爱 偏爱 爽",
}
_CHINESE_BAD = {
    3: "恨 憎恨 痛恨 绝望 崩溃 心碎 恐怖 恶心 噩梦 悲痛 去世 死了 死掉 病逝 过世 牺牲 自杀 谋杀 惨 葬礼 "
    "癌症 痛不欲生 受不了 背叛 糟透 惨不忍睹 可怕",
    2: "讨厌 难过 伤心 悲伤 生气 愤怒 害怕 恐惧 焦虑 担心 担忧 孤独 寂寞 沮丧 失望 抑郁 郁闷 哭 痛苦 疼 "
    "受伤 生病 病了 住院 失业 被裁 裁员 破产 离婚 分手 失败 输了 丢了 被偷 被骗 欺骗 羞愧 丢脸 尴尬 后悔 "
    "内疚 委屈 嫉妒 残忍 糟糕 毁了 摧毁 攻击 危险 威胁 敌人 邪恶 烦躁 烦人 压力 崩坏 吓人 倒霉 难吃 难受 "
    "坏 差劲 无聊透 气死 痛心 不幸 过敏 欺负 霸凌 侮辱 拒绝了 吵架 摔断 骨折 发烧 惊慌 厌恶 反感 难听 "
    "难看 烂",
    1: "累 疲惫 无聊 紧张 困难 麻烦 问题 错误 错了 遗憾 可惜 抱歉 对不起 迟到 取消 吵 脏 乱 贵 欠债 头疼 "
    "头痛 不安 不满 不适 怀疑 抱怨 争吵 争论 挣扎 虚弱 想家 犹豫 烦 郁郁 堵车 差 弄丢 弄坏 堵 勉强 失眠 "
    "挂科 漏水 困惑",
}
# Longer words that hold one of the above without feeling so.
CHINESE_PLAIN = frozenset(
    "爱好 爱人 爱尔兰 可爱多 好几 好多 好像 好久 好不容易 只好 刚好 正好 最好 你好 您好 好的 好友 "
    "喜好 偏好 恨不得 哭笑 问题不大 没问题 贵州 贵阳 宝贵 贵姓 珍贵 尊贵 差不多 出差 差点 时差 邮差 "
    "差距 差别 好了 积累 累计 累积 烂漫 棒球 棒棒糖 欢乐谷 吵着要 健康证 "
    "安全带 温暖期 通过".split()
)
CHINESE_NEGATIONS = (
    "从来没有", "从来不", "并没有", "一点都不", "一点也不", "算不上", "谈不上", "没有", "不再", "不太",
    "不怎么", "不是", "不会", "不能", "并不", "从不", "绝不", "毫不", "不曾", "未曾", "不够", "不算",
    "没", "不", "别", "未", "无",
)  # fmt: skip
CHINESE_DEGREES = {
    **dict.fromkeys(
        "非常 特别 十分 极其 极为 超级 超 太 真 很 好 挺 最 尤其 格外 无比 深深 真的 实在".split(),
        1.3,
    ),
    **dict.fromkeys("有点 有点儿 有些 稍微 略微 还算 不太 比较 多少".split(), 0.6),
}


def _valued(good: dict[int, str], bad: dict[int, str]) -> dict[str, float]:
    found = {word: float(value) for value, words in good.items() for word in words.split()}
    found |= {word: -float(value) for value, words in bad.items() for word in words.split()}
    return found


ENGLISH = _valued(_ENGLISH_GOOD, _ENGLISH_BAD)
CHINESE = _valued(_CHINESE_GOOD, _CHINESE_BAD)

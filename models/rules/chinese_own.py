"""Where a Chinese turn hands over a text to work on: "翻译一下：我住在上海", "润色这句“…”"."""

from __future__ import annotations

import re

from reverie.models.rules.text import sentences

_WORK = re.compile(
    "翻译|译成|总结|润色|改写|修改|批改|解释|校对|分析|概括|缩写|扩写|续写|仿写|改成|改得|纠正|修正|检查|排版|朗读|抄写|标题|断句|标点|点评|评价|评语|打分|仿照"
)
_ORDER = re.compile(
    "用[^，。]{1,6}(?:话|字)|帮|请|把|将|麻烦|给我|能不能|能否|可以|一下|(?:这|下面|以下|下列)(?:段|句|篇|些|首|封)|^(?:翻译|总结|润色|改写|解释|校对|分析|概括|缩写|扩写|续写)"
)
# A colon alone shows no order: "总结：今天很累".
_TEXT = re.compile('[:："“「『](?=.)', re.DOTALL)
_HANDED = re.compile("(?:段|句|篇|首|封)?(?:话|文字|文章|邮件|作文|诗|歌词|英文|中文|内容|对话|信)")


def before_material(text: str) -> str:
    """Return a turn's text up to a text that it only hands over.

    Args:
        text: cleaned.
    """
    at = 0
    for sentence in sentences(text):
        begins = text.find(sentence, at)
        at = begins + len(sentence)
        mark = _TEXT.search(sentence)
        if mark is None:
            if _hands_over(sentence) and at < len(text) and sentence != text.strip():
                return text[:at]  # what is handed over stands in the sentences after
            continue
        head = sentence[: mark.start()]
        if _WORK.search(head) and _ORDER.search(head):
            return text[: begins + mark.start()]
    return text


def _hands_over(sentence: str) -> bool:
    """Whether a sentence orders work on a text that is not in it."""
    return bool(
        _WORK.search(sentence)
        and re.match("(?:请|麻烦|帮|把|将|翻译|润色|总结|改写|校对|缩写|扩写)", sentence)
        and _HANDED.search(sentence)
        and re.search("(?:这|下面|以下|下列)", sentence)
    )

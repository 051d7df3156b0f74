"""The gate holds back what surely needs no memory, and lets everything else through."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

import reverie
from reverie.memory_graph import gate_chinese, gate_english
from reverie.memory_graph.gate import MAX_CHARS, needs_memory

DATA = Path(__file__).parent / "data"


def lines(table: str) -> list[str]:
    return [line.strip() for line in table.strip().splitlines()]


NEEDS_NONE = lines(
    """
    Hi
    Hello there!
    hey, how are you doing today?
    Good morning, everyone.
    What's up?
    Nice to meet you!
    Thanks!
    Thank you so much, that helps a lot.
    Thanks again for your help
    OK, got it. Thanks!
    Bye, see you tomorrow
    Good night, sleep well.
    You're welcome!
    I'm fine, thank you. And you?
    Haha, wow
    Yes, please.
    No worries
    Congratulations!
    !!! ???
    👍🎉
    What is 12 * 7?
    17% of 340
    2+2
    How much is 15 plus 27?
    What's the square root of 144?
    (3 + 4) * 5 =
    calculate 3.5 times 8
    What is five plus six?
    Convert 5 miles to km
    How many minutes are there in two hours?
    How many days are in a leap year?
    What is the capital of France?
    What's the population of Japan?
    What is the boiling point of water?
    What is the speed of light?
    What is photosynthesis?
    What is a black hole?
    What is gravity?
    Explain recursion
    Explain relativity
    What are prime numbers?
    What is the difference between a virus and a bacterium?
    How does photosynthesis work?
    How do vaccines work?
    How is glass made?
    Why is the sky blue?
    Why do cats purr?
    How far is the moon from the earth?
    How tall is Mount Everest?
    What is the tallest mountain in the world?
    Which planet is the largest?
    How many planets are in the solar system?
    How many legs does a spider have?
    Who wrote Hamlet?
    Who invented the telephone?
    When did World War II end?
    Who was the first person on the moon?
    Define entropy.
    What does "ubiquitous" mean?
    How do you say thank you in Spanish?
    How do you spell necessary?
    What is the plural of mouse?
    What's the French word for cheese?
    Translate "I miss my sister" into German.
    Translate to French: Where did you leave my keys?
    Could you please translate this sentence into Japanese?
    Write a haiku about autumn.
    Can you write me a short poem about the sea?
    Tell me a joke.
    Write a Python function that reverses a string.
    Write a SQL query that counts rows
    How do I reverse a list in Python?
    How do you boil an egg?
    How to tie a tie
    Give me three synonyms for happy
    Name five countries in Africa.
    Proofread the following text: Me and him was late.
    Sort these numbers: 5, 3, 9
    Flip a coin
    Count to ten
    Draw a cat
    Summarize this text: We met at noon and left at two.
    """
)

NEEDS_SOME = lines(
    """
    What is my sister's name?
    Where do I live?
    Who am I?
    What did I tell you about the trip?
    Do you remember my birthday?
    What did we talk about last time?
    What did you say yesterday?
    What's our plan for the weekend?
    When is my next appointment?
    What is the code for the gate?
    What's the password?
    Where did Caroline move from?
    What does Melanie paint?
    Which country is Caroline from?
    Who is Tom?
    How old is Ana?
    Write a poem about Caroline
    Write a birthday card for grandma
    Tell me a story about Bo and the mill
    Explain Melanie's job
    What happened to the mill?
    What happened last summer?
    What about the second one?
    Is it still open?
    Did she like it?
    Why did he leave?
    Where are they now?
    What was that again?
    Tell me more.
    Tell me more about it
    Go on.
    And then?
    Continue
    What should I cook tonight?
    Recommend a book
    Suggest a restaurant for dinner
    Which one is better for me?
    Hi, what's my name?
    Thanks! And where does she work?
    Good morning! Any news from Oslo?
    Hello Melanie
    What is her favourite colour?
    What are the kids doing?
    Who painted the fence?
    Who built the shed?
    Who wrote the letter?
    What is the name of the dog?
    How many children does Melanie have?
    How many letters did she send?
    How often does Joe go running?
    When was the party?
    When did Tom get married?
    How long has Ana lived in Oslo?
    What is new?
    What's happening?
    What's for dinner?
    Translate my last message into French
    Summarize our conversation
    Write an email to the landlord
    Fix the bug from before
    What time is the meeting?
    How was the interview?
    Who is coming to dinner?
    Where is the key?
    4711
    2024-05-07
    555-0199
    What about you?
    How many cards are left?
    How many keys are in the chest?
    When was the great fire?
    Why are people angry?
    Describe a day at work
    Who discovered the body?
    What is the height of the tower?
    Give me an example
    Which river did we cross?
    What did the smith say about the miller?
    What are the rules of the guild?
    Who stole the crown?
    Is the gate open?
    Plan a trip to Japan
    Help me with the report
    Wo wohne ich?
    ¿Dónde vive Ana?
    Где я живу?
    どこに住んでいますか
    나는 어디에 살아?
    أين أسكن؟
    How do I get home from work?
    what does caroline do for work
    """
)

NEEDS_NONE_ZH = lines(
    """
    你好
    您好！
    嗨,你好呀
    大家早上好
    早上好!
    晚上好
    晚安,好梦
    你好吗？
    最近怎么样？
    好久不见！
    很高兴认识你。
    谢谢
    谢谢你!
    非常感谢,辛苦了
    好的,知道了,谢谢
    再见
    拜拜,明天见
    不客气
    没关系
    对不起
    哈哈哈
    太好了！
    嗯嗯
    新年快乐！
    恭喜恭喜
    我很好,你呢?
    ？？？
    12+30等于多少？
    三加五等于几
    计算 15*8
    100的百分之二十是多少
    9的平方根是多少？
    2的10次方
    一公里等于多少米？
    一小时有多少分钟
    把5英里换算成公里
    什么是黑洞？
    什么是光合作用
    请解释一下量子力学
    何谓通货膨胀?
    法国的首都是哪里？
    日本的人口是多少
    世界上最高的山是什么？
    世界最长的河是哪条？
    光速是多少？
    水的沸点是多少
    为什么天空是蓝色的？
    月亮为什么会发光？
    为什么猫会打呼噜
    彩虹是怎么形成的？
    飞机是怎么飞起来的？
    地球到月球有多远？
    太阳系有几颗行星？
    蜘蛛有几条腿
    谁发明了电话？
    《红楼梦》的作者是谁？
    第二次世界大战是什么时候结束的?
    病毒和细菌有什么区别？
    “画蛇添足”是什么意思？
    苹果用英语怎么说？
    高兴的反义词是什么
    请写一首关于春天的诗
    帮我写一首关于大海的诗
    给我讲个笑话
    讲一个童话故事吧
    用Python写一个冒泡排序
    用“因为”造句
    把“我想念我的姐姐”翻译成英文
    请翻译成日语：你昨天去哪里了？
    你能帮我把下面的句子翻译成法语吗
    列出三种水果
    怎么煮鸡蛋？
    红烧肉怎么做？
    掷一个骰子
    从一数到十
    画一只猫
    """
)

NEEDS_SOME_ZH = lines(
    """
    我住在哪里？
    我姐姐叫什么名字？
    你还记得我的生日吗？
    我上次跟你说了什么？
    我们昨天聊了什么？
    你刚才说什么？
    小红喜欢什么？
    小明在哪里工作?
    王老师教什么？
    老张的儿子多大了？
    阿明去哪儿了
    李华是谁？
    张伟什么时候结婚的？
    写一首关于小红的诗
    写一首关于王芳的诗
    讲一个关于老李的故事
    密码是什么？
    门的密码是多少
    会议几点开始？
    磨坊后来怎么样了？
    铁匠说了什么？
    谁偷了王冠？
    那家茶馆叫什么？
    她最喜欢的颜色是什么？
    他为什么走了？
    他们现在在哪里
    它还开着吗？
    上周发生了什么？
    去年夏天我们去了哪里？
    后来呢？
    然后呢
    接着说
    继续
    再说一遍
    多说一点
    还有呢？
    第二个是什么?
    今晚吃什么好？
    推荐一本书
    推荐一家餐厅
    哪个更适合我？
    你好,我叫什么名字?
    谢谢！她在哪里上班？
    孩子们在做什么？
    妈妈什么时候回来？
    爸爸的电话是多少
    我对什么过敏？
    我的狗叫什么
    钥匙在哪里？
    帮我写一封邮件给房东
    总结一下我们的对话
    把我上一条消息翻译成英文
    安娜住在哪里？
    Caroline从哪里来？
    用一句话介绍Melanie
    婚礼是哪天？
    面试怎么样了
    谁写的那封信？
    谁要来吃晚饭？
    村长答应了什么？
    大门开了吗？
    有什么新消息？
    帮我计划去日本的旅行
    这是什么意思？
    他这么说是什么意思
    奶奶的红烧肉怎么做？
    桥是什么时候修的
    国王和公主是什么关系？
    王国和帝国有什么关系
    狗为什么叫
    猫为什么不吃饭？
    飞机为什么晚点了
    手机为什么坏了
    狗多大？
    一天有多少人来？
    解释一下任务
    解释一下原因
    暗号是什么意思？
    铁匠的名字怎么读
    列出三个任务
    谁发现了尸体？
    城堡有多高？
    """
)


@pytest.mark.parametrize("question", [*NEEDS_NONE, *NEEDS_NONE_ZH])
def test_needs_none(question: str) -> None:
    assert not needs_memory(question)


@pytest.mark.parametrize("question", [*NEEDS_SOME, *NEEDS_SOME_ZH])
def test_needs_some(question: str) -> None:
    assert needs_memory(question)


def test_the_tables_are_long_enough() -> None:
    for table in (NEEDS_NONE, NEEDS_SOME, NEEDS_NONE_ZH, NEEDS_SOME_ZH):
        assert len(set(table)) == len(table) >= 60


def test_no_question_about_a_conversation_is_held_back() -> None:
    talk = json.loads((DATA / "zh_talk.json").read_text(encoding="utf-8"))
    asked = [qa["question"] for qa in talk["qa"]]
    assert len(asked) >= 100
    assert [question for question in asked if not needs_memory(question)] == []


def test_names_that_are_known_need_memory() -> None:
    assert not needs_memory("Write a poem about autumn.")
    assert needs_memory("Write a poem about autumn.", names=["Autumn"])
    assert not needs_memory("写一首关于春天的诗")
    assert needs_memory("写一首关于春天的诗", names=["春天"])
    assert not needs_memory("Write a poem about autumn.", names=["", "Bo"])


def test_what_a_request_brings_with_it_is_no_part_of_it() -> None:
    assert not needs_memory("Translate 'My mother lives in Oslo' into French")
    assert not needs_memory("Proofread: my sister Ana live in Oslo")
    assert needs_memory("Tell me what Ana said: the truth")


def test_a_long_text_is_let_through() -> None:
    assert not needs_memory("Thanks! " * 3)
    assert needs_memory("Define entropy. " + "x" * MAX_CHARS)


def test_no_list_has_a_word_that_nothing_can_match() -> None:
    for module in (gate_english, gate_chinese):
        for name, value in vars(module).items():
            if isinstance(value, frozenset) and name != "_QUOTES":
                strays = {w for w in value if re.search(r"[\"|\n]|^\s|\s$", w)}
                assert not strays, (module.__name__, name)


def test_it_is_part_of_the_package() -> None:
    assert reverie.needs_memory is needs_memory


@given(st.text(max_size=400))
def test_any_text_is_judged(text: str) -> None:
    assert needs_memory(text) in {True, False}
    assert needs_memory(text) == needs_memory(text)


@given(st.sampled_from([q for q in (*NEEDS_NONE, *NEEDS_NONE_ZH) if not {":", "："} & {*q}]))
def test_a_question_about_the_user_in_the_same_breath_needs_memory(question: str) -> None:
    assert needs_memory(f"{question} Where do I live?")
    assert needs_memory(f"{question} 我住在哪里?")

"""The Chinese patterns and word lists, in order: the first that matches a clause is its claim."""

# ruff: noqa: E501 - a pattern reads better whole than broken
from __future__ import annotations

import re
from typing import Any, NamedTuple

KIN: dict[str, tuple[str, str]] = {
    **dict.fromkeys("老婆 妻子 太太 老公 丈夫 先生 爱人 男朋友 女朋友 男友 女友 未婚夫 未婚妻 对象 伴侣".split(), ("partner", "")),
    **dict.fromkeys("老板 上司 经理 领导 主管".split(), ("manager", "")),
    **dict.fromkeys("妈妈 母亲 妈 老妈".split(), ("kin", "mother")),
    **dict.fromkeys("爸爸 父亲 爸 老爸".split(), ("kin", "father")),
    **dict.fromkeys("姐姐 妹妹 姐 妹".split(), ("kin", "sister")),
    **dict.fromkeys("哥哥 弟弟 哥 弟".split(), ("kin", "brother")),
    **dict.fromkeys("女儿 闺女".split(), ("kin", "daughter")),
    **dict.fromkeys("儿子".split(), ("kin", "son")),
    **dict.fromkeys("孩子 宝宝 小孩 双胞胎".split(), ("kin", "child")),
    **dict.fromkeys("爷爷 奶奶 外公 外婆 姥姥 姥爷".split(), ("kin", "grandparent")),
    **dict.fromkeys("孙子 孙女 外孙".split(), ("kin", "grandchild")),
    **dict.fromkeys("好朋友 朋友 闺蜜 好友 哥们".split(), ("kin", "friend")),
    **dict.fromkeys("室友 舍友".split(), ("kin", "roommate")),
    **dict.fromkeys("同事 徒弟 师父 搭档 助手".split(), ("kin", "colleague")),
    **dict.fromkeys("邻居".split(), ("kin", "neighbour")),
    **dict.fromkeys("老师 导师 教练".split(), ("kin", "teacher")),
    **dict.fromkeys("叔叔 舅舅 伯伯".split(), ("kin", "uncle")),
    **dict.fromkeys("阿姨 姑姑 姨妈 舅妈".split(), ("kin", "aunt")),
    **dict.fromkeys("表哥 表姐 表弟 表妹 堂哥 堂姐 堂弟 堂妹".split(), ("kin", "cousin")),
    **dict.fromkeys("侄子 外甥".split(), ("kin", "nephew")),
    **dict.fromkeys("侄女 外甥女".split(), ("kin", "niece")),
    **dict.fromkeys("父母 爸妈".split(), ("kin", "parent")),
}  # fmt: skip
ATTRIBUTES: dict[str, tuple[str, str]] = {
    "名字": ("name", ""), "姓名": ("name", ""), "年龄": ("age", ""), "生日": ("birthday", ""),
    "邮箱": ("email", ""), "电子邮箱": ("email", ""), "电话": ("phone", ""), "手机号": ("phone", ""),
    "手机号码": ("phone", ""), "电话号码": ("phone", ""), "手机": ("phone", ""), "地址": ("address", ""),
    "住址": ("address", ""), "老家": ("born_in", ""), "家乡": ("born_in", ""), "职业": ("works_as", ""),
    "工作": ("works_as", ""), "目标": ("goal", ""), "身高": ("attribute", "height"),
    "体重": ("attribute", "weight"), "血型": ("attribute", "blood_type"), "星座": ("attribute", "star_sign"),
    "专业": ("attribute", "major"), "爱好": ("likes", ""), "昵称": ("attribute", "nickname"),
    "房租": ("attribute", "rent"), "工资": ("attribute", "salary"), "月薪": ("attribute", "salary"),
    "年薪": ("attribute", "salary"), "班级": ("attribute", "class"), "职位": ("works_as", ""),
    "母语": ("attribute", "native_language"), "梦想": ("attribute", "dream"),
    "鞋码": ("attribute", "shoe_size"), "预算": ("attribute", "budget"), "微信号": ("attribute", "wechat"),
    "车牌号": ("attribute", "license_plate"), "纪念日": ("attribute", "anniversary"),
}  # fmt: skip
PETS = "小猫|小狗|猫咪|狗狗|金毛|柯基|柴犬|泰迪|哈士奇|橘猫|布偶猫|英短|边牧|兔子|仓鼠|鹦鹉|乌龟|金鱼|马|猫|狗|犬|鸟|龟|蛇|鹰|狼"
SURNAMES = (
    "欧阳|上官|司马|诸葛|慕容|皇甫|令狐|东方"
    "|[王李张刘陈杨黄赵周吴徐孙朱马胡郭林何高梁郑罗宋谢唐韩曹许邓萧冯曾程蔡彭潘袁于董余苏叶吕魏蒋田"
    "杜丁沈姜范江傅钟卢汪戴崔任陆廖姚方金邱夏谭韦贾邹石熊孟秦阎薛侯雷白龙段郝孔邵史毛常万顾赖武康贺"
    "严尹钱施牛洪龚]"
)
JOBS = (
    "[\u4e00-\u9fffA-Za-z]{0,6}(?:工程师|设计师|程序员|架构师|会计师|律师|厨师|教师|老师|医师|药师|摄影师"
    "|分析师|咨询师|造型师|理发师|建筑师|医生|护士|司机|教授|作家|记者|编辑|翻译|学生|研究生|博士生"
    "|大学生|高中生|警察|军人|士兵|店主|店长|老板|铁匠|村长|演员|歌手|画家|工人|农民|商人|会计|公务员"
    "|顾问|猎人|飞行员|消防员|运动员|服务员|快递员|售货员|研究员|管理员|教练|导游|主播|产品经理|项目经理"
    "|经理|总监|主管|自由职业者|科学家|音乐家|钢琴家|裁缝|木匠|船长|队长|守卫|骑士|法师|药剂师|创业者)"
)
CONDITIONS = (
    "糖尿病|高血压|哮喘|偏头痛|头疼|头痛|失眠|抑郁症|焦虑症|胃病|胃炎|近视|关节炎|贫血|心脏病|鼻炎"
    "|癌症|感冒|多动症|自闭症|湿疹|乳糖不耐受?|颈椎病|腰疼|腰痛"
)
CITIES = (
    "北京|上海|广州|深圳|杭州|南京|成都|重庆|武汉|西安|苏州|天津|长沙|青岛|大连|厦门|昆明|郑州|沈阳|哈尔滨"
    "|济南|福州|合肥|宁波|无锡|珠海|三亚|拉萨|丽江|大理|桂林|洛阳|香港|澳门|台北|高雄|东京|大阪|京都|首尔|纽约"
    "|伦敦|巴黎|柏林|悉尼|墨尔本|新加坡|曼谷|旧金山|洛杉矶|波士顿|西雅图|多伦多|温哥华|罗马|米兰|马德里"
    "|巴塞罗那|莫斯科|日本|韩国|美国|英国|法国|德国|加拿大|澳大利亚|泰国|意大利|西班牙|云南|四川|广东|浙江"
    "|江苏|山东|湖南|湖北|河南|河北|福建|新疆|西藏|海南|贵州|黄山|泰山|华山|西湖|长城"
)
CL = "(?:[一两二三四五六七八九十几\\d]{0,3}(?:个|只|条|匹|头|辆|台|把|部|件|本|位|名|套|栋|间|家|架|艘|块|张|支|瓶|颗|双|对|点|些|次))"
_END = "(?=[了吧呢啊呀哦嘛的。，！；、\\s]*$|[，。！；,]|因为|所以|但是|不过|而且|的时候|了[，。]?$|时)"
OBJECT = f"(?P<o>[^，。！；,、\\s][^，。！；,]{{0,40}}?){_END}"
PLACE = "(?P<o>[\u4e00-\u9fffA-Za-z·]{2,12}?)"
NAME = "(?P<o>[\u4e00-\u9fff·]{1,6}?|[A-Za-z][\\w ]{0,20}?)"
_AFTER = "(?=[，。！；,、\\s]|$|了|的|工作|上班|住|生活|和|读书|今年|，)"


class Rule(NamedTuple):
    """One pattern; `o` is its object. `fields` override those of the claim."""

    predicate: str
    pattern: re.Pattern[str]
    fields: dict[str, Any]


def _rule(predicate: str, pattern: str, **fields: Any) -> Rule:
    return Rule(predicate, re.compile(pattern), fields)


_KIN = "(?P<kin>" + "|".join(sorted(KIN, key=len, reverse=True)) + ")"
_CALLED = f"(?:名字)?(?:叫做|叫|名叫|是){NAME}(?=[，。！；,、\\s]|$|了|今年|，)"
RULES: tuple[Rule, ...] = (
    _rule("favourite", f"(?:最喜欢|最爱)(?:吃|喝|看|听|读|去|玩|用)?的(?P<what>[\u4e00-\u9fff]{{1,6}}?)(?:是|叫){OBJECT}"),
    _rule("name", f"(?:的?名字)?(?:叫做|叫|名叫|名字是|全名是|大名)(?!我|你|他|她|外卖){NAME}(?=[，。！；,、\\s]|$)"),
    _rule("name", f"(?:改名(?:叫|为|成)?|更名(?:为|叫)|改叫|现在叫)了?(?!我|你|他|她){NAME}(?=[，。！；,、了\\s]|$)", changed=True),
    _rule("name", f"是(?P<o>(?:{SURNAMES})[\u4e00-\u9fff]{{1,2}})(?=[，。！；,\\s]|$)", person=True),
    _rule("age", "(?:今年|刚|已经|快|马上|就)*(?:满|要)?(?P<o>\\d{1,3}|[一二三四五六七八九十]{1,3})岁"),
    _rule("birthday", "(?:出生于|生于|出生在)(?P<o>[\\d年月日号]{3,12})"),
    _rule("attribute", "(?P<o>(?:现在|已经)?(?:自己|独自)?一个人住|独居|独自居住|(?:和|跟|与)[^，。！；,在]{1,10}?(?:一起住|住在一起|同住|合租))(?=[，。！；,了\\s]|$)", detail="household", plain=True),
    _rule("lives_in", f"(?:从(?P<former>[\u4e00-\u9fff]{{2,8}}?))?(?:搬家?到|搬家?去|搬来|搬回|搬进|移居到?|迁到|迁居到?)了?{PLACE}{_AFTER}", changed=True),
    _rule("lives_in", f"(?:现在)?(?:改住在?|换到(?=(?:{CITIES})|[\u4e00-\u9fff]{{1,6}}[省市县区镇村州国城])|改居|移住到?|搬家到|搬家去)了?{PLACE}{_AFTER}", changed=True),
    _rule("lives_in", "(?:从)(?P<o>[\u4e00-\u9fff]{2,8}?)(?:搬走|搬出)", ended=True),
    _rule("lives_in", f"(?:居住在|住在|定居在?|住){PLACE}{_AFTER}"),
    _rule("lives_in", f"家(?:就|现在)?(?:住)?在{PLACE}{_AFTER}"),
    _rule("lives_in", "在(?P<o>(?:(?!有)[\u4e00-\u9fffA-Za-z·]){2,12}?)(?:居住|定居|生活|住)"),
    _rule("born_in", f"(?:来自|出生在|生在|老家在|老家是|家乡在){PLACE}{_AFTER}"),
    _rule("born_in", f"(?:是在|在){PLACE}(?:出生|长大)"),
    _rule("born_in", f"是{PLACE}人(?=[，。！；,\\s]|$)"),
    _rule("works_at", "(?:从)(?P<o>[\u4e00-\u9fffA-Za-z]{2,12}?)(?:离职|辞职|跳槽|退休)", ended=True),
    _rule("works_at", "(?:辞去|辞掉|辞了|离开)了?(?:在)?(?P<o>[\u4e00-\u9fffA-Za-z]{2,12}?)的(?:工作|职务|职位|岗位)", ended=True),
    _rule("works_at", "(?P<o>)(?:辞职|离职|辞掉了?工作|辞了工作|被裁员?|失业|退休)了?", ended=True, job=True),
    _rule("works_at", "(?:离开了)(?P<o>[\u4e00-\u9fffA-Za-z]{2,10}(?:公司|集团|银行|医院))", ended=True),
    _rule("works_at", f"在(?:(?P<place>[\u4e00-\u9fff]{{2,6}}?)的)?(?!家){PLACE}(?:公司)?(?:工作|上班|任职|就职|实习|打工)"),
    _rule("works_at", f"在(?:(?P<place>[\u4e00-\u9fff]{{2,6}}?)的)?{PLACE}(?:做|当|担任|任)(?P<job>{JOBS})"),
    _rule("works_at", "去了?(?P<o>[\u4e00-\u9fffA-Za-z]{2,10}?)(?:公司)?(?:工作|上班|任职|实习)", changed=True),
    _rule("works_at", "(?:入职|加入|跳槽到|跳槽去|进入|就职于|任职于|供职于)了?(?P<o>[\u4e00-\u9fffA-Za-z]{2,10}?)(?:公司)?(?:了|工作|上班|任职|实习)(?!队|俱乐部)", changed=True),
    _rule("works_at", "(?:就职于|任职于|供职于|入职了?|跳槽到了?)(?P<o>[\u4e00-\u9fffA-Za-z]{2,10}?)(?=[，。！；,\\s]|$)", changed=True),
    _rule("works_as", f"(?:是|做|当|担任|成为|当上|改行做|转行做|改做)了?(?:一?(?:名|个|位))?(?P<o>{JOBS})"),
    _rule("studies_at", "(?:在)(?P<o>[\u4e00-\u9fff]{2,10}(?:大学|学院|中学|小学|高中))(?:读|上学|学习|念|上)"),
    _rule("studies_at", "(?:考上|考入|被|录取到|就读于)了?(?P<o>[\u4e00-\u9fff]{2,10}(?:大学|学院|中学|高中))(?:录取)?", changed=True),
    _rule("studied_at", "(?:毕业于)(?P<o>[\u4e00-\u9fff]{2,12}?)(?=[，。！；,的\\s]|$)"),
    _rule("studied_at", "从(?P<o>[\u4e00-\u9fff]{2,12}?)毕业"),
    _rule("studies", "(?:学的是|主修|读的是|攻读|学)(?P<o>[\u4e00-\u9fff]{2,8}?)专业|(?:学的是|主修|读的是|攻读)(?P<o2>[\u4e00-\u9fff]{2,8})"),
    # people and animals
    _rule("partner", "(?:和|跟|与)(?P<o>[\u4e00-\u9fff]{2,4}?)(?:已经|现在|早就)*(?P<how>离婚|分手|不在一起|离了|分开了|散了|吹了)", ended=True),
    _rule("partner", "(?:和|跟|与)(?P<o>[\u4e00-\u9fff]{2,4}?)(?:刚|正|在|已经|上|去年|今年|谈)*(?P<how>结婚|订婚|恋爱|交往|在一起)", changed=True),
    _rule("partner", "(?:嫁给|娶)了?(?P<o>[\u4e00-\u9fff]{2,4}?)(?=[，。！；,了\\s]|$)", changed=True),
    _rule("partner", "(?:已经|刚刚?)?(?:是|还)?(?P<how>(?P<o>单身|结婚|已婚|离婚|订婚|未婚|离异|丧偶|分手))了?(?=[，。！；,的\\s]|$)"),
    _rule("kin", f"有{CL}?(?P<adj>[\u4e00-\u9fff\\d]{{0,6}}?){_KIN}(?:，|,)?(?:{_CALLED})?"),
    _rule("has_pet", f"(?:家里?)?(?:养|有|领养|收养|买|捡)了?(?:过)?{CL}?(?P<adj>[\u4e00-\u9fff]{{0,4}}?)(?P<pet>{PETS})(?:，|,)?(?:{_CALLED})?"),
    # health and food
    _rule("allergic_to", "对(?P<o>[^，。！；,]{1,12}?)(?P<neg>不)?(?P<over>再)?(?:严重|重度|有点|很|会)*过敏"),
    _rule("allergic_to", "(?:吃|喝|碰|闻)到?(?P<o>[^，。！；,]{1,10}?)(?:就|会|容易|严重)+过敏"),
    _rule("allergic_to", "有(?!点|些|时|人)(?P<o>[^，。！；,对]{1,6}?)过敏(?:症)?(?=[，。！；,的\\s]|$)"),
    _rule("allergic_to", "有?(?P<o>花生|海鲜|牛奶|鸡蛋|花粉|坚果|青霉素|芒果|猫毛|尘螨|大豆|小麦)过敏"),
    _rule("diet", "(?:是|开始|一直|改)*(?:一?(?:个|名|位))?(?P<o>吃素|素食主义者|素食者|素食|纯素|清真|生酮饮食)"),
    _rule("has_condition", f"(?:有|得了|得过|患有|患了|患上|被诊断出?|被诊断为|查出|经常|老是|容易|总是|确诊)+(?P<o>(?:轻度|严重的?|慢性|II型|二型)?(?:{CONDITIONS}))"),
    _rule("has_condition", "(?:容易|常)?(?P<o>失眠|近视|远视|散光|色盲|耳鸣|头疼|头痛|偏头痛|腰疼|腰痛|胃疼|胃痛)"),
    _rule("has_condition", f"(?:对)?(?P<cause>[\u4e00-\u9fff]{{2,8}})(?:会)?(?:让|使)(?:用户|我)(?P<o>{CONDITIONS})"),
    # likes and dislikes
    _rule("prefers", f"(?:更|比较)(?:喜欢|爱|偏爱)(?P<o>[^，。！；,]{{1,20}}?)(?:，|,)?(?:而不是|不是|胜过|多过)(?P<other>[^，。！；,]{{1,20}}?){_END}"),
    _rule("prefers", f"(?:比起|和|跟|与)(?P<other>[^，。！；,]{{1,15}}?)(?:比|相比|来说)?(?:，|,)?(?:用户|我)?(?:还是|会)?更(?:喜欢|爱|偏爱|愿意){OBJECT}"),
    _rule("prefers", f"(?:宁愿|宁可|偏爱|更喜欢|更爱|更愿意){OBJECT}"),
    _rule("likes", f"(?:讨厌|厌恶|痛恨|受不了|反感|恨|害怕|怕|嫌弃)(?!你|这个问题){OBJECT}", polarity=-1, strong=True),
    _rule("likes", f"(?:热爱|超爱|最爱|酷爱|迷上|爱上|最喜欢|痴迷|热衷于?)了?(?!你){OBJECT}", strong=True),
    _rule("likes", f"(?:喜欢|喜爱|爱好|钟爱|爱)上?了?(?!你|这个问题|人){OBJECT}"),
    _rule("likes", f"对{PLACE}(?:很|非常|特别)?(?P<neg>不|没)?(?:有|感)?兴趣", interest=True),
    _rule("drinks", "(?:改喝|换成喝?|改成喝?)了?(?P<o>[^，。！；,]{1,8}茶|茶|咖啡|牛奶|豆浆|白开水|水|果汁)", changed=True),
    _rule("smokes", "(?P<o>抽烟|吸烟|烟)(?=[，。！；,了的\\s]|$)"),
    _rule("drinks", "戒(?:掉)?了?(?P<o>咖啡|酒|奶茶|可乐|糖|碳酸饮料|咖啡因)", ended=True),
    _rule("smokes", "戒(?:掉)?了?(?P<o>烟)", ended=True),
    _rule("likes", f"戒(?:掉)?了?(?P<o>[\u4e00-\u9fff]{{1,6}}?){_END}", ended=True),
    _rule("drinks", f"喝{OBJECT}", habit=True),
    _rule("eats", f"吃{OBJECT}", habit=True),
    # skills
    _rule("speaks", "(?:会说|会讲|能说|精通|懂)(?P<o>[\u4e00-\u9fff]{1,4}(?:语|文|话))"),
    _rule("learning", f"(?:在学习?|正在学习?|开始学习?|想学|学习|学){OBJECT}"),
    _rule("plays", f"(?:会|能)?(?P<o>(?:弹|拉|吹|打)[\u4e00-\u9fff]{{1,6}}?){_END}"),
    _rule("skilled_in", f"(?:擅长|会|精通|善于)(?P<o>(?:做|写|画|唱|跳|游|骑|开|弹|拉|打|修|编|滑|烤|包|说)?[\u4e00-\u9fff]{{1,10}}?){_END}", skill=True),
    # things
    _rule("gave", "把(?:这|那)?(?:[把个本件块颗张支瓶束])?(?P<o>[\u4e00-\u9fff]{1,8}?)(?:送给|交给|给|卖给|还给|借给)了?(?P<to>[\u4e00-\u9fff]{1,4}?)(?=[，。！；,了\\s]|$)"),
    _rule("gave", f"(?:送给|送|给)了(?P<to>[\u4e00-\u9fff]{{2,4}}?){CL}(?P<o>[\u4e00-\u9fff]{{1,10}}?){_END}"),
    _rule("has", "把(?P<o>[^，。！；,]{1,12}?)换成了?(?P<extra>[^，。！；,]{1,12}?)(?=[了。！，\\s]*$)", ended=True, changed=True),
    _rule("has", "把(?P<o>[^，。！；,]{1,12}?)(?:卖|丢|弄丢|扔|捐|送人|弄坏|摔坏|退掉|退|注销|处理掉|转让|换掉)了?", ended=True),
    _rule("has", f"(?:卖掉|卖|弄丢|丢失|丢|扔掉|失去|捐掉)了(?P<mine>自己的|他的|她的|用户的)?(?P<o>[^，。！；,]{{1,12}}?){_END}", ended=True),
    _rule("found", f"在(?P<where>[\u4e00-\u9fff]{{2,10}}?)(?:里|中|上|下)?(?:找到|发现|捡到)了?{CL}?{OBJECT}"),
    _rule("has", f"(?:买|办|订阅|开通|拥有|收到|得到|入手|购买|换)了{CL}?{OBJECT}", changed=True),
    _rule("has", f"(?:有|开|骑)(?:着)?{CL}(?P<o>[^，。！；,]{{1,12}}?){_END}"),
    _rule("needs", "需要(?P<o>[\u4e00-\u9fffA-Za-z]{1,10}?)(?P<tail>(?:来|去|才能|救|治)[^，。！；,]{1,20})"),
    _rule("visited", f"(?:(?:和|跟|与|同)(?P<who>[\u4e00-\u9fff]{{1,8}}?))?(?:一起)?(?:去了|去过|到过|参观了|游览了|飞往了?){PLACE}(?=[，。！；,旅玩出参看\\s]|$)"),
    _rule("met", "(?:在[\u4e00-\u9fff]{1,8}?)?(?:遇见|遇到|认识|见到|碰到)了(?P<o>[\u4e00-\u9fff]{2,6}?)(?=[，。！；,\\s]|$)"),
    _rule("training_for", f"(?:取消)了?(?:了)?(?P<o>[^，。！；,]{{2,20}}?){_END}", ended=True),
)  # fmt: skip

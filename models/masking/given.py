"""Given names that are known as such without context, and ordinary words that begin like names.

A list of our own, of names common in many countries; those that are everyday words too (Will,
Mark, Rose, May) are left to context.
"""

# ruff: noqa: E501 - lists read better filled
from __future__ import annotations

GIVEN = frozenset(
    """aaron abdul abdullah abigail adam adele adrian adriana agnes ahmed aisha akira alan albert
    alejandro alessandro alex alexander alexandra alexei alfred ali alice alicia alina alison allison
    alma amanda amelia amina amir amy ana anastasia anders andre andrea andreas andrew andrey andy
    angela angelica angelina anita anja anke ann anna annabel anne annette annie anthony antoine antonia
    antonio anya arjun arthur arturo asha ashley astrid audrey aurora axel ayesha barbara bartosz beatrice
    beatriz ben benjamin bernard beth betty bianca birgit bjorn boris brad bradley brandon brenda brian
    bridget britta bruce bruno caleb camila camille carl carla carlos carmen carolina caroline carolyn
    caspar catherine cathy cecilia cedric celine cesar charles charlie charlotte chen chiara chloe chris
    christina christine christoph christopher cindy claire clara claudia clemens colin connor constance
    cornelia craig cristina cynthia daisuke dalia damian dan daniel daniela danielle danny daria dave david
    deborah deepak delphine denis denise dennis derek diana diane diego dieter dimitri dinesh dmitri dominic
    dominik donald donna dora doris dorothy douglas dylan eddie edgar edith eduardo edward eileen elaine
    elena eleanor eli elias elif elijah elin elisa elizabeth ella ellen ellie elliot elsa emil emilia emily
    emma emmanuel enrique eric erica erik erika erin ernest esther ethan eugene eva evelyn ezra fabian
    farah fatima felicia felipe felix fernando fiona florence florian frances francesca francis francisco
    francois franz fred freddie frederick frieda fritz gabriel gabriela gareth gary gavin genevieve geoffrey
    george georgia gerald gerard gerda gianna gilbert gina giorgio giovanni giulia gloria gordon graham greg
    greta gretel guillermo gunther gustav hana hanna hannah hans harold harriet harry harvey hassan heather
    heidi heinrich helen helena helga henrik henry herbert hilda hiroshi holger howard hubert hugh hugo
    hussein ian ibrahim ida ignacio igor ilse imran ines ingrid irene irina isaac isabel isabella isabelle
    ivan ivana jacek jackie jackson jacob jacqueline jake jakub james jamie jan jana jane janet janina
    jason javier jean jeanne jeff jeffrey jennifer jenny jens jeremy jerome jerry jesse jessica jesus jill
    jim jimmy joachim joan joanna joao joel joerg johan johanna johannes john johnny jon jonas jonathan
    jordi jorge jose josef joseph josephine joshua juan juanita judith judy julia julian juliana julie
    juliet julio julius jurgen justin kai karen karim karin karl karla karolina kate katharina katherine
    kathleen kathryn kathy katie katja katrin kavita kayla keiko keith kelly ken kenji kenneth kevin khalid
    kieran kim kirsten klaus krishna kristen kristin kristina kurt kyle lakshmi lara larry lars laura lauren
    laurent lea leah leila lena leo leon leonard leonardo leonie leopold leroy leslie li liam lidia lily
    linda lindsay lisa liv livia lorena lorenzo louis louisa louise luca lucas lucia lucy luis luisa lukas
    luke luna lydia mabel madeleine magda magdalena magnus mahmoud malcolm malik mandy manuel manuela marc
    marcel marcela marco marcos marcus margaret margarita maria mariam marian marianne marie marina mario
    marisa marius marjorie markus marlene marta martha martin martina mary mateo mathilde matilda matteo
    matthew matthias maureen maurice max maximilian maya mehmet mei melanie melissa mia michael michaela
    michal micheal michel michelle miguel mikael mike mikhail mila milan milena ming miranda miriam mirjam
    mohamed mohammad mohammed moira mona monica monika morgan moritz muhammad mustafa nadia nadine naomi
    natalia natalie natasha nathan neha neil nelson niall nicholas nicola nicolas nicole niels nigel nikhil
    nikita niklas nikolai nina noah noel noemi nora norbert norman oksana olaf oleg olga oliver olivia omar
    oscar oskar otto owen pablo pamela paola patricia patrick paul paula pauline pavel pedro peggy penelope
    peter petra philip philipp phoebe phyllis pierre pilar piotr priya rachel rafael raj rajesh ralph ramon
    randy raquel rashid raul ravi raymond rebecca regina reinhard renata renate rene rhys ricardo richard
    rita robert roberta roberto robin rodrigo roger roland rolf roman ronald rosa rosalind rosie ross roxana
    ruben rudolf rupert russell ruth ryan sabine sabrina sachiko said sakura salim sally salma sam samantha
    samir samuel sandra sanjay sara sarah sasha scott sean sebastian selma serena serge sergei sergio shane
    shannon sharon shaun sheila shirley siddharth sigrid silke silvia simon simone sofia sofie sonia sonja
    sophia sophie stacy stefan stefanie stella stephan stephanie stephen steve steven stuart sunita susan
    susanna susanne suzanne svein svenja svetlana sylvia takeshi tamara tania tanja tara tariq tatiana ted
    teresa terry thea theo theodore theresa thomas tim timo timothy tina tobias todd tom tomas tommy tony
    tracy trevor tristan uma ursula uwe valentina valeria valerie vanessa vera veronica vicky victoria
    vijay viktor vincent viola virginia vivian vladimir walter wanda wei wendy werner wilhelm william wolfgang
    xavier xiao yan yasmin yifan yolanda yosef yuki yuri yusuf yvette yvonne abby adaeze ade aoife amara becky chidi debbie declan femi gabe
    jess josh kofi kwame liz maeve maggie matt meg mick molly nate ngozi niamh obi pete sammy saoirse siobhan
    sinead tess zach zainab zara zoe zoltan""".split()
)
PARTICLES = frozenset(
    "de da del della di dos du van von der den la le bin ibn al el ter ten".split()
)
# Lower case, these are words; a known name among them is masked only with its capital.
ORDINARY = frozenset(
    """amber angel april art august autumn bill bob brook brown carol cherry christian cliff crystal
    dawn dean drew eve faith fox frank gene ginger glen grace grant gray green grey guy harmony heath
    hill holly honey hope hunter iris ivy jack jade jasmine jay jewel john joy june king lance lane
    lily long luna mark may melody mercy miles nick olive page park pat pearl penny piper poppy price
    ray reed rich river rob robin rose rosemary ruby sandy scarlet sky smith star stone sue summer
    sunny terry victor viola violet wade white will wolf wood woods young li max mike wei chen said
    major roman ken ming kim ross sam tom harry jean mia mona rita""".split()
)
# Places, makes and works that act in sentences as people do ("Google said").
FAMILIAR = frozenset(
    """amsterdam athens barcelona beijing berlin birmingham boston brussels budapest cairo chicago
    copenhagen delhi dubai dublin edinburgh frankfurt geneva glasgow hamburg helsinki hongkong houston
    istanbul kyiv kyoto leeds lisbon liverpool london lyon madrid manchester melbourne miami milan
    montreal moscow mumbai munich naples nairobi osaka oslo paris porto prague rome rotterdam seattle
    seoul shanghai shenzhen singapore stockholm sydney tokyo toronto utrecht vancouver venice vienna
    warsaw zurich africa america asia australia austria belgium brazil britain canada china denmark
    egypt england europe finland france germany greece hungary india indonesia ireland israel italy
    japan kenya korea mexico norway poland portugal russia scotland spain sweden switzerland turkey
    ukraine wales adobe amazon apple audi bmw boeing cisco disney ebay facebook fedex ford google
    honda huawei ibm ikea intel lego lufthansa mercedes meta microsoft netflix nike nintendo nokia
    nvidia oracle paypal pfizer samsung siemens slack sony spotify starbucks tesla toyota twitter uber
    volkswagen walmart whatsapp wikipedia youtube zoom minecraft python linux windows android excel
    god heaven earth mars venus jupiter christmas easter internet bluetooth covid""".split()
)
# Chinese words that begin with a character which is a surname too.
PLAIN_HAN = frozenset(
    """高兴 高中 高级 高铁 高考 高度 高速 高大 高原 高端 高手 黄色 黄金 黄昏 黄瓜 黄油 白天 白色 白酒 白菜
    白云 马上 马路 马车 马匹 何时 何必 何况 何人 何处 方便 方法 方向 方面 方案 方式 常常 常见 常识 石头 石油
    石榴 牛奶 牛肉 牛排 牛仔 雷雨 雷电 江水 江湖 江边 江南 许多 许久 许可 周末 周一 周二 周三 周四 周五 周六 周日
    周年 周围 周边 钟头 钟表 陆地 陆续 陆军 万一 万分 王国 王子 王后 王朝 王者 金钱 金属 金色 金融 金币 钱包
    钱财 张开 张贴 李子 杨树 杨梅 林子 林间 余下 余地 余额 叶子 胡子 胡乱 胡椒 胡说 胡同 胡萝 程度 程序 夏天
    夏季 夏日 夏夜 秦朝 唐朝 宋朝 汉朝 汪汪 于是 于此 顾客 顾虑 康复 贺卡 严重 严格 严肃 严厉 尹始 施工 施展
    施肥 毛病 毛衣 毛巾 毛笔 孔雀 孔子 史上 史诗 邵阳 龙虾 龙舟 段子 段落 范围 范例 傅立 卢比 戴上 戴着 姜汤
    沈阳 丁香 杜绝 田野 田地 田里 曾经 曾是 彭湃 蔡锷 邓丽 冯虚 萧条 曹操 韩国 韩剧 谢谢 谢意 罗马 罗列 郑重
    郑州 梁山 郭外 孙子 孙女 徐徐 徐州 吴越 赵州 陈旧 陈列 陈述 刘海 武器 武术 武士 武汉 洪水 龚自 郝然 侯爵
    薛定 阎王 孟加 熊猫 邹城 贾岛 谭木 邱比 姚明 廖廖 崔嵬 卢森 钟声 苏打 苏州 苏醒 吕宋 魏晋 董事 袁大 潘多
    赖床 赖皮 尚未 东方 司马 方才 方圆 高峰 高温 高价 高层 高跟 万里 万物 万岁 时候 成都 白领 白费 石板 金子
    马虎 马桶 马力 马拉 马来 马尔 朱红 任务 任何 任意 任性 任由 任命 任教""".split()
)

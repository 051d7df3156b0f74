"""Plain nouns that a fact can be about: what people eat, own, keep, take, practise and look for.

Singular forms, by the type of the entity; `things.py` says where in a sentence they count. People,
parts of a body, times and words for talk are no things here: a memory about them names somebody.
"""

from __future__ import annotations

_FOOD = """alcohol almond americano anchovy apple apricot artichoke asparagus aubergine avocado
    bacon bagel banana basil bean beef beer beetroot berry biscuit blackberry blueberry bread
    broccoli broth brownie burger butter cabbage caffeine cake candy cappuccino caramel cardamom
    carrot cashew cauliflower celery cereal cheese cheesecake cherry chestnut chicken chickpea
    chili chilli chips chocolate chutney cider cilantro cinnamon clam cocktail coconut cod
    coffee cookie coriander corn cortado courgette couscous crab cranberry cream crisp croissant
    cucumber cumin curry custard dairy decaf dessert dill donut doughnut dumpling egg eggplant
    espresso falafel fennel fig fries garlic gelato gin ginger gluten gnocchi grape grapefruit
    gravy ham hazelnut herring honey hummus ice-cream jam jelly juice kale kebab ketchup kimchi
    kiwi kombucha lager lamb lasagna lasagne latte leek lemon lemonade lentil lettuce licorice
    lime liquorice liver lobster lychee macaroni mackerel mango margarine marmalade marmite
    matcha mayo mayonnaise mead meat melon milk mint miso mocha molasses muesli muffin mushroom
    mussel mustard mutton noodle nut nutmeg oat oatmeal octopus olive omelette onion orange
    oregano oyster paella pancake papaya parmesan parsley parsnip pasta pastry pea peach peanut
    pear pecan pepper pesto pho pickle pie pineapple pistachio pizza plum pomegranate popcorn
    pork porridge potato prawn pretzel prosecco prune pudding pumpkin quiche quinoa radish
    raisin ramen raspberry rhubarb rice risotto rosemary rum rye saffron salad salami salmon
    salsa sandwich sardine sashimi satay sauce sausage scallop scone seafood seaweed sesame
    shellfish sherry shrimp smoothie soda sorbet soup sourdough soy soya spaghetti spinach
    sprout squash squid steak stew stout strawberry stroopwafel sugar sushi sweetcorn syrup taco
    tahini tangerine tart tea tequila toast tofu tomato truffle tuna turkey turmeric turnip
    vanilla veal vinegar vodka waffle walnut wasabi watermelon wheat whiskey whisky wine yam
    yeast yoghurt yogurt zucchini""".split()
_FOOD += ["flat white", "oat milk", "soy milk", "almond milk", "ice cream", "red meat", "fast food"]
_ANIMALS = """alpaca ant badger basilisk bat beagle bear bee beetle bird boar budgie bull bunny
    butterfly camel canary cat chick chinchilla cobra cockapoo cockatiel cockatoo cockerel
    collie corgi cow crow dachshund dalmatian deer direwolf dog dolphin donkey dove dragon duck
    eagle eel elk falcon ferret finch fish fox frog gecko gerbil giraffe goat goldfish goose
    gorilla greyhound griffin guinea-pig hamster hare hawk hedgehog hen heron horse hound husky
    iguana jackdaw kitten koala labradoodle labrador leopard lion lizard llama lurcher macaw
    magpie mare mole mongoose monkey moose mouse mule newt otter owl ox panda parakeet parrot
    peacock pig pigeon pony poodle pug puma puppy python quail rabbit raccoon rat raven
    retriever robin rooster salamander scorpion seal sheep sheepdog snake spaniel sparrow spider
    spiderling squirrel stallion stoat swan tabby tarantula terrier tiger toad tortoise trout
    turtle unicorn viper vulture wasp whale whippet wolf wyvern""".split()
_ANIMALS += ["guinea pig", "border collie", "golden retriever"]
_THINGS = """accordion album allotment altar amulet anchor antibiotic antidote anvil apron armchair
    armor armour arrow aspirin axe backpack bag bagpipe ball balloon bandage banjo banner barrel
    basket bassoon bat bathtub battery beacon bell bench bicycle bike binder binoculars blade
    blanket blender boat boiler bonnet book bookcase boot bottle bow bowl box bracelet brooch
    broom bucket bus cabinet camcorder camera campervan candle cane cannon canoe canvas car
    caravan card cardigan carpet cart cello chain chainmail chair chalice chandelier charm chest
    chisel clarinet cloak clock coat compass computer console contract cooker cot couch cradle
    crate crossbow crown crystal cup curtain cushion dagger deed desk diamond diary dinghy doll
    dress dresser drill drone drum dryer duvet e-bike earbud earring elixir emerald engine
    envelope espresso-machine fiddle flag flask flint flute folder freezer fridge furnace
    gauntlet gem generator glass glasses glider globe glove goblet gown greenhouse grimoire
    guitar gun hairdryer hammer hammock handbag harmonica harp harpoon harpsichord hat
    headphones headset heater heirloom helm helmet herb hide hoodie hook horn ibuprofen inhaler
    insulin ipad iphone jacket jar javelin jeans jersey jewel jigsaw jug jumper kayak kettle key
    keyboard kite knife ladder lamp lance lantern laptop latex lawnmower ledger lens letter
    locket lockpick lorry lute lyre macbook mace machete machine mandolin map mask mat mattress
    medal medallion melody metformin microphone microwave mirror mixer monitor moonstone moped
    motorbike motorcycle mower mug nail necklace needle net notebook nylon oar oboe organ oud
    outfit oven overcoat package paddle padlock painting pan paracetamol parcel passport pelt
    pen pendant penicillin perfume phone piano pickaxe picture pillow pipe pistol plough pollen
    poncho porcelain portrait poster pot potion printer projector puzzle quill quilt quiver
    racket radio raft rake rapier razor recorder relic reliquary ribbon rifle ring robe robot
    rocket rope rowboat rucksack rug rune runestone saddle sapphire satchel saw saxophone
    scabbard scanner scarf sceptre scissors scooter scroll sculpture scythe shawl shed shield
    ship shirt shoe shotgun shovel sickle silk skateboard ski skirt sled sleigh snare snowboard
    sofa spade speaker spear spellbook spoon staff statin statue stereo stove suit suitcase
    surfboard sweater sweatshirt sword table tablet tambourine tandem tapestry teapot telephone
    telescope television tent thermos tiara ticket tie timber tinderbox toaster tome toolbox
    torch toy tractor trailer trampoline trident trombone trophy trousers truck trumpet trunk
    tuba turntable typewriter ukulele umbrella uniform vaccine van vase vehicle vest vial vinyl
    viola violin wagon walkman wallet wand wardrobe warfarin watch wheelbarrow wheelchair whip
    whistle wool yacht yoyo zither""".split()
_THINGS += ["vitamin"]
_CONCEPTS = """acne adhd alchemy allergy alzheimer's anaemia anemia angina anorexia anxiety
    appendicitis archery arthritis asthma asthmatic astigmatism astronomy athletics autism
    autistic badminton ballet baseball basketball birdwatching bouldering boxing bronchitis
    cancer cataract celiac chemotherapy chess chickenpox coeliac colorblind colour-blind
    colourblind concussion covid cricket crochet cycling deaf dementia depression dermatitis
    diabetes diabetic diarrhoea dyslexia dyslexic dyspraxia eczema endometriosis epilepsy
    epileptic fencing fever fibromyalgia fishing flu flying football gardening glaucoma golf
    gout gymnastics handball hangover hayfever heartburn heights hepatitis hiccups hiking hives
    hockey hypertension ibs insomnia jogging judo karate kayaking kickboxing knitting lacrosse
    laryngitis left-handed lefty leukemia lumbago lupus malaria marathon measles meditation
    menopause migraine mumps origami parkinson's photography pickleball pilates plague pneumonia
    pottery psoriasis reflux right-handed rounders rowing rugby sailing salsa sciatica scoliosis
    scurvy sewing shingles sinusitis skateboarding skating skiing smallpox snooker snorkeling
    snorkelling snowboarding softball squash stammer surfing swimming taekwondo tennis tinnitus
    tonsillitis triathlon tuberculosis tumor tumour vegan vegetarian vertigo volleyball
    woodworking wrestling yoga""".split()
_CONCEPTS += [
    "half marathon",
    "high blood pressure",
    "lactose intolerant",
    "chicken pox",
    "left handed",
    "colour blind",
]
_PLACES = """abbey archive bakery barn barracks bookshop brewery bridge castle catacomb cathedral
    cave cavern cellar cemetery chapel church cliff convent cottage crypt dock dungeon farm
    ferry forge fort fortress fountain garrison glade gorge granary graveyard harbor harbour
    hideout inn lair library lighthouse manor market marsh mill mine monastery moor mosque
    museum observatory orchard palace pier quarry quay ravine ruin sawmill shrine smithy stable
    swamp tannery tavern temple tomb tower vineyard watchtower waterfall well windmill
    workshop""".split()
_PLACES += ["post office", "food bank"]

TYPES: dict[str, str] = {
    **dict.fromkeys(_CONCEPTS, "concept"),
    **dict.fromkeys(_PLACES, "place"),
    **dict.fromkeys(_THINGS, "thing"),
    **dict.fromkeys(_ANIMALS, "animal"),
    **dict.fromkeys(_FOOD, "food"),
}
# A word that is as often no noun, or no thing, as it is one: it counts with a determiner only.
UNSURE = frozenset(
    """ant ball bat bear bench bit book boot bow box bull butter cane card chain charm chest
    chips clock coat corn cream crisp crown curry date deed dove drill drone drum duck engine
    fish flag flask fly fries gift glass globe ham hide hook horn jam keep key kite lamb lens
    letter lime machine map mask mat mine mint mole mouse nail net nut orange oven package pan
    parcel pen pickle picture pipe poster pot pug ring rope sage saw seal shed ship squash
    stable staff stew stove suit swan tablet tart ticket tie toast torch toy train trunk turkey
    watch well whip whistle""".split()
)
# Nouns that name no thing though they are owned, lost or made: people, bodies, times, talk.
NO_THINGS = frozenset(
    """ability accident account ache act action advantage advice affair afternoon age agreement
    aim air alarm amount anger ankle answer apology appetite appointment area argument arm
    assignment attack attempt attention baby back balance bandit bank bathroom bed bedroom
    benefit best bill birth birthday bit blast body boss bottom boy boyfriend brain brat break
    breakfast breath brother business call care career case cause cent center centre chance
    change chat child childhood children choice city class client coin cold colleague color
    colour comment company compliment concern confidence conversation copper corner count
    country county couple course cousin cramp crowd crown cry dad damage date daughter day
    deadline deal death debt decision degree delay detail difference dinner direction doctor
    dollar door dream drive ear edge effort elbow email employee end energy enough error essay
    euro evening event everything exam example excuse experience eye face fact faith family fare
    father favor favour fear fee feedback feeling ferryman few fight finger fit flight floor
    focus following fool foot fortune friend front fun fuss future game garden girl girlfriend
    goal goblin gold good grade grandfather grandma grandmother grandpa granny grudge guard
    guess guest guy habit hair half hand hang head headache health heart heck heel hell help
    hint hip holiday home homework honeymoon hope hour house husband idea illness impression
    income influence injury interest interview issue jaw job joke journey judgement kick kid
    kind kitchen knee knowledge lack lad lady laugh lead leg less lesson letter level lie life
    line list load loan lockdown look loss lot love luck lunch lunchtime maid man manager
    marriage mate matter meal meaning meeting member memory men mention merchant mess message
    meter middle mile mind minute mistake mom moment money month mood moon morning most mother
    mouth mum name nap neck need news night nonsense nose note nothing notice number nursery
    oath offer office one opinion option order others pace page pain pair parent parents part
    partner party past patience pause pay penny people period permission person place plan
    pleasure plenty point position post pound power practice praise pregnancy present
    presentation pressure price problem process profit progress project promise promotion proof
    purpose question quid quote race rain raise rate reason reminder rent report request rest
    result return rib right risk road role roof room route row rule run salary scene school
    score seat second secret sense sentence service shape share shift shot shoulder sibling side
    sight sign silence silver sister situation size skill sky slaver sleep smile snow soldier
    solution some something son sort sound source space speech speed spine spot stage start
    state stay step stock stomach stone kilo stop storm story street strength stress stuff style
    success
    summer sun surface surgery surprise talk task taste tax teacher team teeth temper term test
    text thank thanks thief thing thought throat thumb time tip title today toe tomorrow tone
    tonight tooth top total touch town track traffic treat trip trouble trust truth try turn
    twin type use value version vet view village villager voice vow wait walk wall warning way
    weather wedding week weekend weight while whole wife will win wind window wish woman women
    word work world worry wrist writing wrong yard year yesterday youth""".split()
)

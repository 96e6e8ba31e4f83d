"""Word lists and templates of the corpus ``mini``, in the syntax of :mod:`.mini_text`.

A template that ends in ``?`` is a question, one that begins with ``*`` a statement, any other a
command.
"""

from __future__ import annotations


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _phrases(text: str) -> tuple[str, ...]:
    return tuple(" ".join(phrase.split()) for phrase in text.split(","))


WORDS: dict[str, tuple[str, ...]] = {
    "room": _phrases("""kitchen, bathroom, bedroom, living room, hall, garage, garden, office, cellar, attic, dining room,
        nursery, guest room, laundry, balcony, workshop, library"""),
    "lamps": _phrases(
        """lights, lamps, ceiling lights, reading lamps, spotlights, lanterns, candles"""
    ),
    "machine": _phrases("""radio, television, heater, dishwasher, oven, kettle, fan, printer, washing machine, coffee machine,
        vacuum cleaner, sprinkler, dryer, toaster, projector, humidifier, alarm, camera"""),
    "opening": _phrases("window, door, gate, curtain, shutter, skylight, garage door, blind"),
    "hour": _words("one two three four five six seven eight nine ten eleven twelve"),
    "tens": _words("twenty thirty forty fifty sixty seventy eighty ninety"),
    "digit": _words("two three four five six seven eight nine"),
    "count": _phrases(
        """two, three, four, five, six, seven, eight, ten, twelve, fifteen, {tens}, {tens} {digit}"""
    ),
    "minutes": _phrases(
        "five, ten, fifteen, twenty, twenty five, thirty, forty, forty five, ninety, {tens} {digit}"
    ),
    "clock": _phrases("""{hour}, {hour} thirty, half past {hour}, a quarter to {hour}, a quarter past {hour},
        {hour} o'clock, {hour} fifteen, {hour} forty five, noon, midnight, ten past {hour}, twenty to {hour}"""),
    "weekday": _words("Monday Tuesday Wednesday Thursday Friday Saturday Sunday"),
    "month": _words(
        "January February March April May June July August September October November December"
    ),
    "ordinal": _phrases("""first, second, third, fourth, fifth, sixth, seventh, eighth, ninth, tenth, eleventh, twelfth,
        fifteenth, twentieth, twenty first, twenty second, thirtieth"""),
    "day": _phrases("""today, tomorrow, on {weekday}, next {weekday}, this {weekday}, the day after tomorrow, this weekend,
        on the {ordinal} of {month}, next week"""),
    "past": _phrases(
        "yesterday, last week, this morning, last {weekday}, last night, the day before yesterday"
    ),
    "part": _phrases(
        "in the morning, at noon, in the afternoon, in the evening, after lunch, before breakfast, tonight"
    ),
    "food": _words("""bread milk butter cheese eggs rice pasta tomatoes potatoes onions garlic carrots lettuce spinach apples
        oranges bananas grapes cherries strawberries lemons honey sugar flour salt pepper yogurt cream chicken salmon tuna
        sausages beans lentils mushrooms peppers cucumbers oats almonds walnuts raisins chocolate biscuits coffee tea juice
        vinegar mustard noodles tofu plums peaches pears ginger parsley basil cinnamon"""),
    "household": _phrases("""soap, batteries, paper towels, candles, matches, light bulbs, toothpaste, shampoo, stamps,
        envelopes, a notebook, a birthday card, wrapping paper, dish soap, a screwdriver, cat food, dog biscuits, sunscreen,
        a phone charger, a rose, garden gloves, a lamp, bin bags, washing powder"""),
    "item": _phrases("""{food}, {food}, {food}, {household}"""),
    "dish": _phrases("""soup, curry, lasagna, pancakes, salad, stew, pizza, roast chicken, fish pie, dumplings, omelette,
        risotto, apple pie, chili, gingerbread, meatballs, paella, banana bread"""),
    "errand": _phrases("""water the plants, feed the cat, walk the dog, pay the bill, take out the rubbish, renew the passport,
        charge the car, clean the fridge, sign the contract, print the tickets, return the library books, mow the lawn,
        fix the bicycle, pick up the parcel, iron the shirts, take the medicine, change the filter, wash the windows,
        back up the photos, measure the curtains, defrost the freezer, book the dentist"""),
    "activity": _phrases("""swimming, cycling, running, painting, climbing, dancing, gardening, reading, sailing, fishing,
        chess, tennis, yoga, football, pottery, hiking, skating, rowing, badminton, knitting"""),
    "meeting": _phrases("""budget meeting, dentist appointment, piano lesson, job interview, birthday party, team lunch,
        parents evening, yoga class, house viewing, driving lesson, dinner, planning call, rehearsal, eye test, haircut,
        book club, vet appointment, workshop, wedding, staff briefing"""),
    "relation": _phrases("""sister, brother, mother, father, cousin, neighbour, aunt, uncle, boss, teacher, doctor,
        landlord, colleague, lawyer, plumber, grandmother, nephew, niece"""),
    "news": _phrases("""the train is late, dinner is ready, the meeting is over, I have found the keys, we need more time,
        the roof is leaking, the results are in, I am stuck in traffic, the flight was cancelled, the baby is asleep,
        the car has broken down, the tickets are sold out, the doctor has called, I forgot my umbrella, the shop is closed,
        we have run out of milk, the exam went well, the power is out"""),
    "subject": _phrases("""the invoice, the holiday, the rent, the wedding, the new contract, the school trip, the kitchen,
        the broken boiler, the party, the interview, the insurance, the photographs, the garden fence, the lost keys,
        the delivery, the concert tickets, the tax return, the repair"""),
    "genre": _phrases("""jazz, rock, folk music, classical music, opera, hip hop, country music, blues, dance music, techno,
        piano music, guitar music, film music, reggae"""),
    "mood": _words("quiet cheerful slow relaxing loud energetic sad romantic gentle soft"),
    "topic": _phrases("""politics, business, science, sports, technology, traffic, health, weather, music, farming,
        education, the economy, space, history, travel"""),
    "animal": _words(
        "whale elephant tiger giraffe penguin falcon crocodile dolphin kangaroo camel"
    ),
    "language": _words(
        "Italian French German Spanish Japanese Polish Turkish Greek Danish Swahili"
    ),
    "wordtosay": _phrases("""good morning, thank you, where is the station, the bill please, excuse me, good night, how much is it,
        see you tomorrow, I am lost, happy birthday, two coffees please, I am sorry"""),
    "vehicle": _words("train bus ferry tram flight taxi coach"),
    "place": _phrases("""pharmacy, bakery, supermarket, petrol station, library, post office, hospital, car park, bank,
        cinema, swimming pool, hotel, bookshop, florist, police station, playground"""),
    "weather": _phrases(
        "rain, snow, be windy, be sunny, be foggy, freeze, be cloudy, be stormy, be warm, hail"
    ),
    "cuisine": _words(
        "Italian Indian Thai Mexican Greek French Chinese Turkish Lebanese vegetarian"
    ),
    "reason": _phrases("""I am expecting guests, the children are asleep, I am working from home, the sun is going down,
        we are going on holiday, it has been a long day, my parents are visiting, the cat has escaped"""),
}

PREFIXES = {
    "command": ("", "", "computer, ", "hey assistant, ", "please ", "could you ", "can you please ", "okay house, ",
                "I want you to ", "go ahead and "),
    "question": ("", "", "", "computer, ", "hey assistant, ", "okay house, "),
}  # fmt: skip
COURTESIES = ("", "", "", "", " please", " right now", " for me", ", thank you")

# The first kinds of request hold every kind of name: a small corpus takes only those.
INTENTS: dict[str, tuple[str, ...]] = {
    "call": (
        "call {PER} in {LOC} [at {clock}|right away|{part}|on the mobile]",
        "call my {relation} {PER} and ask [g:her|him] about {subject}",
        "call {ORG} in {LOC} and ask for {PER}",
        "*when {PER} from {ORG} calls {part}, put [g:her|him] through to the {room}",
        "did {PER} call {past}, and what did [g:she|he] want?",
        "dial the number of {PER} [1:at home|at work] and [1:let it ring|leave a message] if [g:she|he] is busy",
    ),
    "music": (
        "play {MISC} in the {room}",
        "play some {mood} {genre} in the {room} until {clock}",
        "[1:play|skip|repeat] {MISC} from the [1:beginning|next song on|first song]",
        "turn the [1:music|songs] in the {room} down, [1:it is|they are] too loud for {PER}",
        "who [1:wrote|sang|directed] {MISC}, and did [1:the author|the singer|the director] come from {LOC}?",
        "stop {MISC} and put on {genre} instead",
    ),
    "lights": (
        "[1:turn|switch|turn|dim] the {lamps} in the {room} and in the {room} [1:on|off|off|a little]",
        "*it is too [1:dark|bright|dark|bright] in the {room}, so turn the {lamps} over there [1:on|off|up|down]",
        "*I am [1:leaving|coming home] {part}, so turn the {lamps} in the {room} [1:off|back on]",
        "[1:is|are] the [1:{machine}|{lamps}] in the {room} still [on|off|working]?",
        "leave the {lamps} in the {room} on because {reason}",
    ),
    "weather": (
        "will it {weather} in {LOC} {day}?",
        "what is the weather like in {LOC} {day}?",
        "[1:how warm|how windy|how wet] will it be in {LOC} {day}, in [1:degrees|miles an hour|inches]?",
        "should I take [1:an umbrella|sunglasses|a coat] to {LOC} {day}, or will it be too [1:windy|dark|warm] for [1:it|them|that]?",
        "is it going to {weather} when I visit {PER} in {LOC}?",
    ),
    "reminder": (
        "remind me to {errand} [{day}|{part}|at {clock}]",
        "remind me to call {PER} [1:before I leave for|when I am back from|as soon as I reach] {LOC} {day}",
        "remind {PER} that [g:she|he] must {errand} before {clock}",
        "wake me [up|gently] at {clock} {day} because I have to {errand}",
        "do not let me forget to {errand} when I am in {LOC} {day}",
        "set a timer for {minutes} minutes for the {dish}",
        "*I hope that I will remember to {errand}, but remind me {day} at {clock}",
    ),
    "message": (
        "tell {PER} that {news}",
        "send {PER} from {ORG} a message that {news} and that I will call [g:her|him] {day}",
        "write to {PER} about {subject} and ask whether [g:she|he] can come to {LOC} {day}",
        "[1:text|email|answer] {PER} at {ORG} and say that {news}",
        "read me the [1:message|messages] about {subject} that {PER} from {LOC} sent and tell me when [1:it|they] came",
        "[1:how many emails|how much money] did {PER} from {ORG} [1:send me|ask me for] {past}?",
    ),
    "climate": (
        "*it is too [1:cold|hot] in the {room}, turn the heating [1:up|down] by {digit} degrees",
        "set the [1:thermostat|volume|timer|oven] in the {room} to {tens} [1:degrees|percent|minutes|degrees]",
        "[1:open|close] the {opening} in the {room} because it is so [1:warm|noisy] [outside|in here|today]",
        "make the {room} [1:warmer|cooler|brighter|darker] before {clock}, it is far too [1:cold|warm|dark|bright]",
        "how [1:warm|humid] is it in the {room} and in the {room}, in [1:degrees|percent]?",
    ),
    "machines": (
        "start the {machine} in the {room} at {clock} and stop it at {clock}",
        "[1:turn|switch|shut] the {machine} that {PER} left in the {room} [1:back on|off|down]",
        "[1:how long has|since when has|how often has] the {machine} in the {room} been [1:running|on|used]?",
        "*neither the {machine} nor the {machine} in the {room} should run {part}",
        "*either the {machine} in the {room} or the {machine} [is making noise|is too loud|has stopped working]",
    ),
    "calendar": (
        "put the {meeting} with {PER} from {ORG} in my calendar for {day} at {clock}",
        "[1:move|cancel|delay] the {meeting} with {PER} {day} [1:to {clock}|altogether|by an hour]",
        "when is the {meeting} with {PER}, and how do I get to [g:her|him]?",
        "what [1:is|are] my [1:first appointment|appointments] {day}, and who [1:is it|are they] with?",
        "may I meet {PER} in {LOC} {day} at {clock}, or is that the time of the {meeting}?",
        "invite {PER} and {PER} to the {meeting} at {ORG}",
    ),
    "shopping": (
        "add {item}, {item} and {item} to the shopping list",
        "order {count} [packs of|bags of|boxes of] {food} from {ORG} for {day}",
        "*[1:both|neither] {food} [1:and|nor] {food} should be on the list",
        "take {item} off the list, {PER} has already bought it in {LOC}",
        "[1:how many|how much|how many] [1:boxes|money|bags] of {food} did we [1:order|spend|buy] at {ORG} {past}?",
        "*the {item} that I ordered from {ORG} [has|have] not arrived, write to them",
    ),
    "television": (
        "record {MISC} on {weekday} at {clock} and tell {PER} that [g:she|he] can watch it",
        "what time is {MISC} on {weekday}, and how long does it last?",
        "[1:pause|resume] {MISC} on the television in the {room} [1:until I am back|where I stopped]",
        "buy {count} tickets for {MISC} in {LOC} {day}",
        "is {MISC} still on at the cinema in {LOC}?",
    ),
    "travel": (
        "how [1:far|long|late] is [1:it|the drive|the last {vehicle}] from {LOC} to {LOC}, [1:in miles|in minutes|if any]?",
        "book a {vehicle} from {LOC} to {LOC} {day} at {clock}",
        "when does the next {vehicle} to {LOC} leave?",
        "find a {place} near {LOC} that is open {part}",
        "*I have to be in {LOC} at {clock}, so when should I leave {LOC}?",
        "show me the way from {LOC} to {ORG} [1:on foot|by car|by bike], but not [1:through the park|on the motorway|uphill]",
        "take me to {LOC} and avoid the traffic around {LOC}",
    ),
    "restaurant": (
        "book a table for {count} people at {ORG} in {LOC} {day} at {clock}",
        "find a {cuisine} restaurant near {LOC} that is open {part}",
        "reserve a [1:table|room|seat] at {ORG} {day} with [1:high chairs|two beds|extra leg room]",
        "order {dish} and {dish} from {ORG} and have it brought to {LOC}",
        "when does {ORG} in {LOC} [open|close] {day}?",
    ),
    "cooking": (
        "how do I make {dish} with {food} and {food}?",
        "how [1:many grams|much time|many spoons] of {food} [1:go into|must I spend on|go into] the {dish}?",
        "read me the recipe for {dish} that {PER} sent me from {LOC}",
        "what can I cook for {PER}, who eats neither {food} nor {food}?",
        "convert {count} [1:cups|ounces|pints] of {food} [1:to|into|to] [1:millilitres|grams|litres]",
    ),
    "news": (
        "what is the latest news about {topic} in {LOC}?",
        "read me the headlines about {topic} and {topic}",
        "what happened at {ORG} in {LOC} {past}?",
        "who talked about {MISC} in {LOC}?",
        "tell me [more|something new] about {MISC} and about {topic}",
    ),
    "knowledge": (
        "how [1:big|old|fast|heavy] is a {animal}, in [1:feet|years|miles an hour|pounds]?",
        "how do you say {wordtosay} in {language}?",
        "what is {count} [1:plus|minus|times] {count}?",
        "who is the head of {ORG}, and how old is [the company|the firm]?",
        "is {LOC} [1:bigger|older|colder] than {LOC}, and by how [1:many people|many years|many degrees]?",
    ),
    "money": (
        "[1:send|lend|pay back] {PER} {count} pounds [1:for|until|that I owe for] {subject}",
        "how much did I [1:pay|owe|send] {PER} for {subject}, and did [g:she|he] [1:thank me|remind me|get it]?",
        "pay the bill from {ORG} {day} and mark it as done",
        "what [1:is|are] the share [1:price|prices] of {ORG} {day}, and [1:is it|are they] going up?",
    ),
    "leisure": (
        "sign me up for {activity} with {PER} in {LOC} {day}",
        "where can I go {activity} near {LOC} {part}?",
        "ask {PER} whether [g:she|he] would like to go {activity} {day}",
        "*I would rather go {activity} than {activity}, so tell {PER} that I will not meet [g:her|him]",
        "add {MISC} to my [reading|watching] list and tell me what {PER} thought of it",
    ),
    "parcel": (
        "*the [1:parcel|parcels] that {PER} sent from {LOC} [1:has|have] not come, where [1:is it|are they]?",
        "track the [1:order|orders] from {ORG} and tell me when [1:it arrives|they arrive]",
        "[1:bring|send] the books that I bought from {ORG} [1:to the {room}|back to {LOC}]",
        "let {PER} from {ORG} in at the {opening} when [g:she|he] comes at {clock}",
    ),
    "notes": (
        "write down that {news}",
        "take a note that {PER} likes {food} but not {food}",
        "read my [1:note|notes] about {subject} aloud and then delete [1:it|them]",
        "save the address of {ORG} in {LOC} under {PER}",
        "note that the {meeting} with {PER} [1:was moved|was cancelled|went well] and that [g:she|he] was [1:sorry|angry|pleased]",
    ),
}  # fmt: skip

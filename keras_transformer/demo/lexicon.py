"""The words of the embedded corpus: English-German nouns, verbs, adjectives, names, time phrases.

Compact tables with one word per line list only the forms that no rule of `inflection` predicts.
The rules that build sentences from the words are in `simple` and `compound`.
"""

from __future__ import annotations

from collections import defaultdict

from keras_transformer.demo.inflection import (
    Adjective,
    Modal,
    Noun,
    Verb,
    conjugate_present,
    conjugate_preterite,
    english_third_person,
    second_person,
)


def rows(table: str) -> list[list[str]]:
    """Split a table into lines, and each line into its `|` columns."""
    return [[cell.strip() for cell in line.split("|")] for line in table.strip().splitlines()]


def words(line: str) -> list[str]:
    """Split a line into words."""
    return line.split()


WOMEN = words("Anna Maria Julia Lena Clara Emma Sophie Laura Nina Eva")
MEN = words("Peter Paul Martin David Simon Robert Karl Daniel Stefan Leon")  # no final s, x, z


# English singular plural | German article singular plural | kind | roles: which verbs take it
THINGS = """
book books | das Buch Bücher | text | read lay small goods give borrow
letter letters | der Brief Briefe | text | read write lay small open
newspaper newspapers | die Zeitung Zeitungen | text | read lay goods trash borrow
novel novels | der Roman Romane | text | read write lay goods give borrow topic
poem poems | das Gedicht Gedichte | text | read write topic
story stories | die Geschichte Geschichten | text | read write tell topic
magazine magazines | die Zeitschrift Zeitschriften | text | read lay goods trash borrow
film films | der Film Filme | text | topic begin joy
song songs | das Lied Lieder | text | sing hear
apple apples | der Apfel Äpfel | food | food goods give lay count
pear pears | die Birne Birnen | food | food goods give lay count
tomato tomatoes | die Tomate Tomaten | food | food goods lay count
orange oranges | die Orange Orangen | food | food goods give lay count
potato potatoes | die Kartoffel Kartoffeln | food | food goods cook lay count
egg eggs | das Ei Eier | food | food goods cook lay count
cake cakes | der Kuchen Kuchen | food | food bake give
soup soups | die Suppe Suppen | food | food cook
pizza pizzas | die Pizza Pizzas | food | food bake
cheese - | der Käse - | food | food goods
bread - | das Brot - | food | food goods bake
fish - | der Fisch - | food | food goods cook
coffee - | der Kaffee - | hot | drink goods
tea - | der Tee - | hot | drink goods
milk - | die Milch - | hot | drink goods
water - | das Wasser - | cool | drink
juice - | der Saft - | cool | drink goods
wine - | der Wein - | cool | drink goods
beer - | das Bier - | cool | drink goods
coat coats | der Mantel Mäntel | wear | wear goods wash forget small
dress dresses | das Kleid Kleider | wear | wear goods wash
shirt shirts | das Hemd Hemden | wear | wear goods wash lay
hat hats | der Hut Hüte | wear | wear goods small lay forget
jacket jackets | die Jacke Jacken | wear | wear goods wash small forget
skirt skirts | der Rock Röcke | wear | wear goods wash
scarf scarves | der Schal Schals | wear | wear goods small lay wash forget
blouse blouses | die Bluse Blusen | wear | wear goods wash
sweater sweaters | der Pullover Pullover | wear | wear goods wash lay
key keys | der Schlüssel Schlüssel | object | small lay forget
pencil pencils | der Bleistift Bleistifte | object | small lay goods count
ticket tickets | die Fahrkarte Fahrkarten | object | small lay forget count
umbrella umbrellas | der Regenschirm Regenschirme | object | small lay goods forget borrow
knife knives | das Messer Messer | object | small lay goods
spoon spoons | der Löffel Löffel | object | lay goods count
fork forks | die Gabel Gabeln | object | lay goods count
ring rings | der Ring Ringe | object | small lay goods give
ball balls | der Ball Bälle | object | small lay goods give toy
photo photos | das Foto Fotos | object | small lay look
map maps | die Landkarte Landkarten | object | small lay goods look forget
gift gifts | das Geschenk Geschenke | object | small lay open unpack
blanket blankets | die Decke Decken | object | lay goods wash
camera cameras | die Kamera Kameras | machine | small goods lay forget repair borrow
phone phones | das Telefon Telefone | machine | small goods stand repair
lamp lamps | die Lampe Lampen | machine | goods stand repair power
computer computers | der Computer Computer | machine | goods stand repair power
radio radios | das Radio Radios | machine | goods stand repair power
television televisions | der Fernseher Fernseher | machine | goods stand repair power
printer printers | der Drucker Drucker | machine | goods stand repair power
bicycle bicycles | das Fahrrad Fahrräder | machine | goods repair wash give own loan
car cars | das Auto Autos | machine | goods repair wash own loan
clock clocks | die Uhr Uhren | machine | goods repair hang
bottle bottles | die Flasche Flaschen | vessel | goods stand open close count trash
glass glasses | das Glas Gläser | vessel | stand count
cup cups | die Tasse Tassen | vessel | goods stand count
plate plates | der Teller Teller | object | goods stand count
vase vases | die Vase Vasen | vessel | goods stand give
candle candles | die Kerze Kerzen | object | goods stand count
suitcase suitcases | der Koffer Koffer | vessel | stand unpack small
bag bags | die Tasche Taschen | vessel | stand unpack small forget
basket baskets | der Korb Körbe | vessel | stand goods
box boxes | die Kiste Kisten | vessel | open close
picture pictures | das Bild Bilder | object | goods hang look give
mirror mirrors | der Spiegel Spiegel | object | goods hang clean
calendar calendars | der Kalender Kalender | object | goods hang
table tables | der Tisch Tische | object | goods clean
chair chairs | der Stuhl Stühle | object | goods count
sofa sofas | das Sofa Sofas | object | goods clean
bed beds | das Bett Betten | object | goods
shelf shelves | das Regal Regale | object | goods clean
cupboard cupboards | der Schrank Schränke | object | goods open close clean
drawer drawers | die Schublade Schubladen | part | open close
window windows | das Fenster Fenster | part | open close clean
door doors | die Tür Türen | part | open close clean
wall walls | die Wand Wände | part | clean
flower flowers | die Blume Blumen | color | goods give count
tree trees | der Baum Bäume | plant | draw look
house houses | das Haus Häuser | place | goods look own draw
problem problems | das Problem Probleme | matter | topic
question questions | die Frage Fragen | matter | topic
plan plans | der Plan Pläne | matter | topic
journey journeys | die Reise Reisen | event | topic joy
exam exams | die Prüfung Prüfungen | matter | topic
wedding weddings | die Hochzeit Hochzeiten | event | topic joy
concert concerts | das Konzert Konzerte | event | topic joy begin attend
course courses | der Kurs Kurse | event | begin attend
race races | das Rennen Rennen | event | begin attend
train trains | der Zug Züge | ride | ride wait leave
bus buses | der Bus Busse | ride | ride wait leave
ship ships | das Schiff Schiffe | ride | ride draw
tram trams | die Straßenbahn Straßenbahnen | ride | ride wait
dog dogs | der Hund Hunde | animal | pet own draw
cat cats | die Katze Katzen | animal | pet own draw
horse horses | das Pferd Pferde | animal | own draw beast
rabbit rabbits | das Kaninchen Kaninchen | animal | pet own draw
bird birds | der Vogel Vögel | animal | draw hear beast
cow cows | die Kuh Kühe | animal | own draw beast
bear bears | der Bär Bären | animal | draw beast weak
elephant elephants | der Elefant Elefanten | animal | draw beast weak
lion lions | der Löwe Löwen | animal | draw beast weak
"""

PEOPLE = """
man men | der Mann Männer | he | person
woman women | die Frau Frauen | she | person
girl girls | das Mädchen Mädchen | she | person
boy boys | der Junge Jungen | he | person weak
child children | das Kind Kinder | it | person
teacher teachers | der Lehrer Lehrer | he | person
doctor doctors | der Arzt Ärzte | he | person
neighbour neighbours | der Nachbar Nachbarn | he | person weak
baker bakers | der Bäcker Bäcker | he | person
gardener gardeners | der Gärtner Gärtner | he | person
student students | der Student Studenten | he | person weak
farmer farmers | der Bauer Bauern | he | person weak
painter painters | der Maler Maler | he | person
tourist tourists | der Tourist Touristen | he | person weak
waiter waiters | der Kellner Kellner | he | person
waitress waitresses | die Kellnerin Kellnerinnen | she | person
actress actresses | die Schauspielerin Schauspielerinnen | she | person
queen queens | die Königin Königinnen | she | person
colleague colleagues | der Kollege Kollegen | he | kin weak
friend friends | der Freund Freunde | he | kin
brother brothers | der Bruder Brüder | he | kin
sister sisters | die Schwester Schwestern | she | kin
son sons | der Sohn Söhne | he | kin
daughter daughters | die Tochter Töchter | she | kin
uncle uncles | der Onkel Onkel | he | kin
aunt aunts | die Tante Tanten | she | kin
father - | der Vater - | he | kin
mother - | die Mutter - | she | kin
grandfather - | der Großvater - | he | kin
grandmother - | die Großmutter - | she | kin
- parents | die - Eltern | they | folks
- grandparents | die - Großeltern | they | folks
"""

# English | German | English and German preposition of place, German one of direction | roles
PLACES = """
kitchen kitchens | die Küche Küchen | in in in | room cooking
living+room living+rooms | das Wohnzimmer Wohnzimmer | in in in | room
bedroom bedrooms | das Schlafzimmer Schlafzimmer | in in in | room
garden gardens | der Garten Gärten | in in in | room nature
cellar cellars | der Keller Keller | in in in | room
garage garages | die Garage Garagen | in in in | room
office offices | das Büro Büros | in in in | room work
park parks | der Park Parks | in in in | town play sight
café cafés | das Café Cafés | in in in | town eat visit
restaurant restaurants | das Restaurant Restaurants | in in in | town eat visit sight
museum museums | das Museum Museen | in in in | town hours visit sight
library libraries | die Bibliothek Bibliotheken | in in in | town hours study visit sight
cinema cinemas | das Kino Kinos | in in in | town visit sight
theatre theatres | das Theater Theater | in in in | town visit sight
school schools | die Schule Schulen | in in in | town study work visit sight
church churches | die Kirche Kirchen | in in in | town visit sight
hospital hospitals | das Krankenhaus Krankenhäuser | in in in | work visit sight
hotel hotels | das Hotel Hotels | in in zu | town work visit eat sight
castle castles | das Schloss Schlösser | in in zu | town hours visit sight
bank banks | die Bank Banken | in in zu | hours work visit sight
bakery bakeries | die Bäckerei Bäckereien | in in zu | hours work shop visit sight
station stations | der Bahnhof Bahnhöfe | at an zu | town waiting
airport airports | der Flughafen Flughäfen | at an zu | town waiting work
market markets | der Markt Märkte | at auf auf | town shop
lake lakes | der See Seen | at an an | town play nature
beach beaches | der Strand Strände | on an an | town play nature
forest forests | der Wald Wälder | in in in | play nature
island islands | die Insel Inseln | on auf auf | town live nature
village villages | das Dorf Dörfer | in in in | town live
"""

# English | German place | German direction; Switzerland and Turkey have an article in German only
TOWNS = rows("""
Berlin | in Berlin | nach Berlin
Hamburg | in Hamburg | nach Hamburg
Munich | in München | nach München
Vienna | in Wien | nach Wien
Cologne | in Köln | nach Köln
Zurich | in Zürich | nach Zürich
Rome | in Rom | nach Rom
Paris | in Paris | nach Paris
Prague | in Prag | nach Prag
London | in London | nach London
Italy | in Italien | nach Italien
France | in Frankreich | nach Frankreich
Spain | in Spanien | nach Spanien
Austria | in Österreich | nach Österreich
Switzerland | in der Schweiz | in die Schweiz
Turkey | in der Türkei | in die Türkei
""")

# Where things lie and stand: English preposition | German preposition | noun
SPOTS = rows("""
on | auf | table
under | unter | table
on | auf | chair
under | unter | bed
on | auf | bed
next to | neben | bed
on | auf | sofa
behind | hinter | sofa
on | auf | shelf
in | in | cupboard
next to | neben | cupboard
in front of | vor | cupboard
in front of | vor | door
behind | hinter | door
in front of | vor | window
next to | neben | lamp
next to | neben | computer
""")

# English, comparative | German, comparative | the kinds of noun it suits
ADJECTIVES = """
old older | alt älter | part text wear object machine person animal place plant ride
new newer | neu neuer | part text wear object machine matter place ride vessel
big bigger | groß größer | nature part object animal place plant vessel
small smaller | klein kleiner | nature part object animal place plant vessel color
beautiful more+beautiful | schön schöner | nature text wear object place plant event color
expensive more+expensive | teuer teurer | wear object machine cool food vessel color
cheap cheaper | billig billiger | wear object machine cool food vessel
red - | rot - | wear object color vessel ride
blue - | blau - | wear object color vessel ride
green - | grün - | part wear object vessel ride
yellow - | gelb - | wear object color ride
black - | schwarz - | wear object animal
white - | weiß - | part wear object animal color
brown - | braun - | part wear object animal
heavy heavier | schwer schwerer | vessel
empty - | leer - | vessel
full - | voll - | vessel
warm warmer | warm wärmer | wear hot
hot - | heiß - | hot
cold - | kalt - | hot cool
fresh - | frisch - | food cool
good - | gut - | food cool hot
interesting more+interesting | interessant interessanter | text matter event
boring - | langweilig - | text event
exciting more+exciting | spannend spannender | text event
long longer | lang länger | text event
short shorter | kurz kürzer | text event
funny - | lustig - | text person
sad - | traurig - | text person
important - | wichtig - | matter
difficult - | schwierig - | matter
young younger | jung jünger | person animal
friendly friendlier | freundlich freundlicher | person
famous - | berühmt - | person
polite - | höflich - | person
clever - | klug - | person animal
strong stronger | stark stärker | person animal
rich richer | reich reicher | person
poor - | arm - | person
lonely - | einsam - | person
curious - | neugierig - | person animal
lazy - | faul - | person animal
modern - | modern - | machine place
quiet quieter | ruhig ruhiger | nature place
broken - | kaputt - | machine
fast faster | schnell schneller | ride
slow slower | langsam langsamer | ride
"""
# Adjectives that are a reason to want a thing or not (colours are neither); verbs of wanting it
CHARMS = words("beautiful cheap new interesting exciting warm fresh good modern funny fast")
FLAWS = words("old expensive heavy boring broken cold small slow")
WANTING = words("buy borrow take bring try read eat drink wear draw cook")

STATES = rows("""
tired | müde
ill | krank
nervous | nervös
alone | allein
happy | glücklich
angry | wütend
hungry | hungrig
thirsty | durstig
satisfied | zufrieden
""")
# "My sister is a doctor": German drops the article and has a feminine form
PROFESSIONS = rows("""
doctor | Arzt | Ärztin
teacher | Lehrer | Lehrerin
baker | Bäcker | Bäckerin
gardener | Gärtner | Gärtnerin
student | Student | Studentin
painter | Maler | Malerin
singer | Sänger | Sängerin
cook | Koch | Köchin
lawyer | Anwalt | Anwältin
engineer | Ingenieur | Ingenieurin
""")


# English base past participle (= the past) -ing: "turn+on" a particle, "look_for" a preposition
# | German infinitive, er-form if irregular, participle: "an+rufen" separable, "s" perfect with sein
# | case or preposition it governs: roles of the object
# | uses: h habit, p progressive, g "likes to", H only a lasting state, e at a clock time,
#   D once a day, F as far away as last year, d duty, q purpose of going somewhere,
#   U involuntary | roles of places
VERBS = """
read read = reading | lesen liest gelesen | acc: read | hp | room town
write wrote written writing | schreiben - geschrieben | acc: write | pF | room study
eat ate eaten eating | essen isst gegessen | acc: food | hpg | room eat
drink drank drunk drinking | trinken - getrunken | acc: drink | hpg | room eat
buy bought = buying | kaufen - gekauft | acc: goods | F | shop TOWN
sell sold = selling | verkaufen - verkauft | acc: goods | F | shop TOWN
look_for looked = looking | suchen - gesucht | acc: small pet PERSON | p | room town
find found = finding | finden - gefunden | acc: small pet | FU | room town
lose lost = losing | verlieren - verloren | acc: small | FU | town TOWN
forget forgot forgotten forgetting | vergessen vergisst vergessen | acc: forget | U | town
hide hid hidden hiding | verstecken - versteckt | acc: small | - | room
wear wore worn wearing | tragen trägt getragen | acc: wear | hp | town
see saw seen seeing | sehen sieht gesehen | acc: PERSON beast | eF | town TOWN
meet met = meeting | treffen trifft getroffen | acc: PERSON | eqF | town TOWN
visit visited = visiting | besuchen - besucht | acc: PERSON | hpgqFd | TOWN
love loved = - | lieben - geliebt | acc: PERSON pet | H | -
know knew known - | kennen - gekannt | acc: PERSON | H | -
repair repaired = repairing | reparieren - repariert | acc: repair | pF | room
clean cleaned = cleaning | putzen - geputzt | acc: clean room | hp | -
wash washed = washing | waschen wäscht gewaschen | acc: wash | hp | -
open opened = opening | öffnen - geöffnet | acc: open | e | -
close closed = closing | schließen - geschlossen | acc: close | e | -
draw drew drawn drawing | zeichnen - gezeichnet | acc: draw | pgF | room town
hear heard = hearing | hören - gehört | acc: hear | eU | town
sing sang sung singing | singen - gesungen | acc: sing | pg | town
cook cooked = cooking | kochen - gekocht | acc: cook | hpg | cooking
bake baked = baking | backen - gebacken | acc: bake | hpg | cooking
borrow borrowed = borrowing | aus+leihen - ausgeliehen | acc: borrow | F | -
call called = calling | an+rufen - angerufen | acc: PERSON | hpe | -
pick+up picked = picking | ab+holen - abgeholt | acc: PERSON | hqed | waiting
invite invited = inviting | ein+laden lädt eingeladen | acc: PERSON | hF | -
take+along took taken taking | mit+nehmen nimmt mitgenommen | acc: forget pet | h | -
bring+along brought = bringing | mit+bringen - mitgebracht | acc: food give | - | -
turn+on turned = turning | ein+schalten - eingeschaltet | acc: power | he | -
turn+off turned = turning | aus+schalten - ausgeschaltet | acc: power | he | -
unpack unpacked = unpacking | aus+packen - ausgepackt | acc: unpack | p | room
tidy+up tidied = tidying | auf+räumen - aufgeräumt | acc: room | hp | -
try+on tried = trying | an+probieren - anprobiert | acc: wear | p | -
look_at looked = looking | an+sehen sieht angesehen | acc: look | p | town
throw+away threw thrown throwing | weg+werfen wirft weggeworfen | acc: trash | - | -
help helped = helping | helfen hilft geholfen | dat: PERSON | hpgqd | room work
thank thanked = thanking | danken - gedankt | dat: PERSON | q |
answer answered = answering | antworten - geantwortet | dat: PERSON | - | -
follow followed = following | folgen - gefolgt s | dat: PERSON | p | -
congratulate congratulated = congratulating | gratulieren - gratuliert | dat: PERSON | q |
listen_to listened = listening | zu+hören - zugehört | dat: PERSON | hp | town
give gave given giving | geben gibt gegeben | dat acc: give | F | -
show showed shown showing | zeigen - gezeigt | dat acc: look give | p | town
send sent = sending | schicken - geschickt | dat acc: give write | F | -
bring brought = bringing | bringen - gebracht | dat acc: food give | - | -
lend lent = lending | leihen - geliehen | dat acc: borrow loan | F | -
tell told = telling | erzählen - erzählt | dat acc: tell | p | room town
wait_for waited = waiting | warten - gewartet | auf acc: PERSON wait | hp | waiting
think_of thought = thinking | denken - gedacht | an acc: PERSON joy | hU | -
talk_about talked = talking | sprechen spricht gesprochen | über acc: topic | hp | room town
laugh_at laughed = laughing | lachen - gelacht | über acc: PERSON | p | -
dream_of dreamt = dreaming | träumen - geträumt | von dat: PERSON beast | hU | -
look_after looked = looking | auf+passen - aufgepasst | auf acc: PERSON pet | hpgd | -
play_with played = playing | spielen - gespielt | mit dat: pet toy PERSON | hpg | room play
dance_with danced = dancing | tanzen - getanzt | mit dat: PERSON | hpg | town
talk_to talked = talking | reden - geredet | mit dat: PERSON | hpgq | room town
take_part_in took taken taking | teil+nehmen nimmt teilgenommen | an dat: attend | F | -
look_forward_to looked = looking | freuen - gefreut r | auf acc: joy | U | -
remember remembered = - | erinnern - erinnert r | an acc: PERSON joy | U | -
complain_about complained = complaining | beschweren - beschwert r | über acc: PERSON | h | -
sleep slept = sleeping | schlafen schläft geschlafen | : | hp | room
work worked = working | arbeiten - gearbeitet | : | hpgd | work room
dance danced = dancing | tanzen - getanzt | : | hpg | room town
swim swam swum swimming | schwimmen - geschwommen s | : | hpg | -
study studied = studying | lernen - gelernt | : | hpgd | study room
get+up got = getting | auf+stehen - aufgestanden s | : | heD | -
wake+up woke woken waking | auf+wachen - aufgewacht s | : | heDU | -
fall+asleep fell fallen falling | ein+schlafen schläft eingeschlafen s | : | heDU | room
come+back came come coming | zurück+kommen - zurückgekommen s | : | heD | -
rest rested = resting | aus+ruhen - ausgeruht r | : | hpd | room
hurry hurried = hurrying | beeilen - beeilt r | : | pd | -
live lived = - | wohnen - gewohnt | in: live TOWN | H | -
stay stayed = staying | bleiben - geblieben s | in: visit TOWN | F | -
go went gone going | gehen - gegangen s | to: visit town room | hpge | -
travel travelled = travelling | fahren fährt gefahren s | to: TOWN live | hpgeF | -
fly flew flown flying | fliegen - geflogen s | to: TOWN | heF | -
run ran run running | rennen - gerannt s | to: town | p | -
"""

# Verbs that rules refer to by name: posture, motion of animals, timetables, opinion
SPECIAL_VERBS = """
put put = putting | legen - gelegt | acc | |
put put = putting | stellen - gestellt | acc | |
hang hung = hanging | hängen - gehängt | acc | |
be was been being | liegen - gelegen p:lag | in | |
be was been being | stehen - gestanden p:stand | in | |
be was been being | hängen - gehangen p:hing | in | |
be was been being | sein ist gewesen s p:war | in | |
have had = having | haben hat gehabt p:hatte | acc | |
jump jumped = jumping | springen - gesprungen s | to | |
sleep slept = sleeping | schlafen schläft geschlafen | in | |
work worked = working | funktionieren - funktioniert | | |
leave left = leaving | ab+fahren fährt abgefahren s | | |
arrive arrived = arriving | an+kommen - angekommen s | | |
begin began begun beginning | an+fangen fängt angefangen | | |
cost cost = - | kosten - gekostet | acc | |
belong_to belonged = - | gehören - gehört | dat | |
rain rained = raining | regnen - geregnet | | |
snow snowed = snowing | schneien - geschneit | | |
play played = playing | spielen - gespielt | acc | |
like liked = - | mögen mag gemocht | acc | |
say said = saying | sagen - gesagt | | |
think thought = thinking | glauben - geglaubt | | |
hope hoped = hoping | hoffen - gehofft | | |
know knew known - | wissen weiß gewusst | | |
ask asked = asking | fragen - gefragt | | |
hear heard = hearing | hören - gehört | | |
try tried = trying | versuchen - versucht | | |
forget forgot forgotten forgetting | vergessen vergisst vergessen | | |
promise promised = promising | versprechen verspricht versprochen | | |
decide decided = deciding | beschließen - beschlossen | | |
plan planned = planning | planen - geplant | | |
open opened = opening | öffnen - geöffnet | | |
close closed = closing | schließen - geschlossen | | |
know knew known - | kennen - gekannt | acc | |
see saw seen seeing | sehen sieht gesehen | acc | |
buy bought = buying | kaufen - gekauft | acc | |
find found = finding | finden - gefunden | acc | |
give gave given giving | geben gibt gegeben | acc | |
send sent = sending | schicken - geschickt | acc | |
show showed shown showing | zeigen - gezeigt | acc | |
"""

# English base, past, further words, kind (aux, do, be) | German present ich, wir; past ich
MODALS = """
can could - aux | kann können konnte
want wanted to do | will wollen wollte
have had to do | muss müssen musste
be was allowed+to be | darf dürfen durfte
should - - aux | sollte sollten -
would - like+to aux | möchte möchten -
"""

# Played things: German without article, English with one (instruments only)
PLAYED = rows("""
the piano | Klavier
the guitar | Gitarre
the violin | Geige
the flute | Flöte
chess | Schach
football | Fußball
tennis | Tennis
cards | Karten
""")

PAST_TIMES = rows("""
yesterday | gestern
yesterday morning | gestern Morgen
yesterday evening | gestern Abend
this morning | heute Morgen
""")
FAR_PAST_TIMES = rows("""
last week | letzte Woche
last month | letzten Monat
last year | letztes Jahr
last summer | letzten Sommer
""")
FUTURE_TIMES = rows("""
tomorrow | morgen
tomorrow morning | morgen früh
tomorrow evening | morgen Abend
this evening | heute Abend
""")
FAR_FUTURE_TIMES = rows("""
next week | nächste Woche
next month | nächsten Monat
next year | nächstes Jahr
next summer | nächsten Sommer
""")
HABIT_TIMES = rows("""
every day | jeden Tag
every morning | jeden Morgen
every evening | jeden Abend
every week | jede Woche
every year | jedes Jahr
in summer | im Sommer
in winter | im Winter
in the evening | am Abend
at the weekend | am Wochenende
""")
DAILY_TIMES = rows("""
every evening | jeden Abend
every day | jeden Tag
every morning | jeden Morgen
""")
FREQUENCIES = rows("""
often | oft
always | immer
never | nie
rarely | selten
sometimes | manchmal
""")
WEEKDAYS = rows("""
Monday | Montag
Tuesday | Dienstag
Wednesday | Mittwoch
Thursday | Donnerstag
Friday | Freitag
Saturday | Samstag
Sunday | Sonntag
""")
MONTHS = rows("""
January | Januar
February | Februar
March | März
April | April
May | Mai
June | Juni
July | Juli
August | August
September | September
October | Oktober
November | November
December | Dezember
""")
# Units of time after "ago" and "in": German dative plural
SPANS = rows("""
days | Tagen
weeks | Wochen
months | Monaten
years | Jahren
""")


def _spaced(cell: str) -> list[str]:
    return ["" if word == "-" else word.replace("+", " ") for word in cell.split()]


def _nouns() -> tuple[dict[str, Noun], dict[str, list[Noun]]]:
    """Return all nouns by their English name, and the nouns of each role."""
    names, roles = {}, defaultdict(list)
    table = [[*row[:3], row[3], "it", ""] for row in rows(THINGS)]
    table += [[*row[:2], "person", row[3], row[2], ""] for row in rows(PEOPLE)]
    for english, german, prepositions, tags in rows(PLACES):
        kind = "nature" if "nature" in tags else "place"
        table.append([english, german, kind, tags, "it", prepositions])
    for english, german, kind, tags, sex, prepositions in table:
        english, english_plural = _spaced(english)
        article, german, german_plural = _spaced(german)
        gender = {"der": "m", "die": "f", "das": "n"}[article]
        weak = "weak" in tags.split()
        at = tuple(prepositions.split())
        noun = Noun(english, english_plural, german, german_plural, gender, kind, sex, weak, at)
        names[english or english_plural] = noun
        for role in tags.replace("weak", "").split():
            roles[role].append(noun)
    return names, dict(roles)


def _adjectives() -> dict[str, list[Adjective]]:
    """Return the adjectives that suit each kind of noun."""
    kinds = defaultdict(list)
    for english, german, suited in rows(ADJECTIVES):
        (english, english_more), (german, german_more) = _spaced(english), _spaced(german)
        for kind in suited.split():
            kinds[kind].append(Adjective(english, german, english_more, german_more))
    return dict(kinds)


def _verb(english: str, german: str, frame: str, uses: str, places: str) -> Verb:
    base, past, english_participle, ing = _spaced(english.replace("+", "@"))
    base, _, particle = base.partition("@")
    base, _, preposition = base.partition("_")
    infinitive, irregular, participle, *marks = german.split()
    prefix, _, infinitive = infinitive.rpartition("+")
    preterite = next((mark[2:] for mark in marks if mark.startswith("p:")), "")
    governs, _, roles = frame.partition(":")
    return Verb(
        (base, english_third_person(base), past, english_participle.replace("=", past), ing),
        particle,
        preposition.replace("_", " "),
        infinitive,
        prefix,
        conjugate_present(infinitive, irregular),
        conjugate_preterite(preterite),
        participle,
        "s" in marks,
        "r" in marks,
        tuple(governs.split()),
        tuple(roles.split()),
        uses,
        tuple(places.strip("-").split()),
    )


def _modal(english: str, german: str) -> Modal:
    present, plural, past = german.split()
    finite = (present, second_person(present), present, plural, plural)
    return Modal(*_spaced(english), finite, conjugate_preterite(past.strip("-")))


NOUNS, NOUNS_BY_ROLE = _nouns()
ADJECTIVES_BY_KIND = _adjectives()
VERB_LIST = [_verb(*row) for row in rows(VERBS)]
NAMED_VERBS = {
    f"{verb.english[0]} {verb.prefix}{verb.infinitive}": verb
    for verb in (_verb(*row[:3], "", "") for row in rows(SPECIAL_VERBS))
}
MODAL_LIST = [_modal(*row) for row in rows(MODALS)]
FUTURE = Modal("will", "", "", "aux", ("werde", "wirst", "wird", "werden", "werden"), ())

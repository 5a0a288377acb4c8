"""Ordinary vocabulary that turns a statement around: negators, opposites, quantifiers, modals."""

from __future__ import annotations

import re

STOPWORDS = frozenset(
    # English
    "a an the this that these those it its he she his her him they their them we "
    "our us you your i my me who whom whose "
    "which what there here and or but if then than as of in on at to from by for with into onto over about between "
    "through during under again is are was were be been being am do does did done doing have has had having will would "
    "shall should can could may might must so such too very just also both each every "
    "all any some no not nor never only "
    "own same other when where why how while because until since although though however s t d ll re ve per via up out "
    "off down now one ones even still already yet both either neither according please "
    "exactly precisely about around roughly approximately nearly almost circa least most more less above below within "
    "exceeding maximum minimum once twice time times "
    # Italian, German, French, Spanish
    "il lo la i gli le un uno una di del dello della dei degli delle da dal "
    "dalla dalle al allo alla alle ai con su sul "
    "sulla per tra fra e ed o ma che chi non è sono era ha hanno si ci ne anche più nel nella nei "
    "der die das den dem des ein eine einen einem einer eines und oder aber "
    "ist sind war waren wird wurde werden worden "
    "im am zum zur mit von für auf bei aus nach zu an als auch nicht kein keine keinen keiner es er sie sich hat haben "
    "les du au aux et ou mais est sont était dans sur pour par avec sans ne pas qui que se sa son ses ce cette il elle "
    "el los las y en del al es por para con no se su sus lo está".split()
)
# Verbs that bind a value to its subject without saying anything themselves.
LIGHT_VERBS = frozenset(
    "cost costs costing weigh weighs weighed last lasts lasted hold holds held contain contains contained cover covers "
    "covered measure measures measured have has had get gets take takes took "
    "make makes made amount amounts total totals "
    "equal equals run runs stand stands stood reach reaches reached include includes number numbers come comes came "
    "say says said pay pays paid charge charges charged use uses used give gives gave given "
    "conta pesa costa dura contiene kostet wiegt dauert fasst beträgt coûte pèse dure cuesta pesa dura".split()
)
IRREGULAR = {
    word: stem
    for stem, words in {
        "run": "ran running",
        "win": "won winning",
        "hold": "held",
        "make": "made",
        "build": "built",
        "buy": "bought",
        "sell": "sold",
        "begin": "began begun",
        "leave": "left",
        "lead": "led",
        "write": "wrote written",
        "give": "gave given",
        "take": "took taken",
        "find": "found",
        "fall": "fell fallen",
        "rise": "rose risen",
        "grow": "grew grown",
        "lose": "lost losing",
        "beat": "beaten",
        "teach": "taught",
        "catch": "caught",
        "defeat": "defeated",
        "keep": "kept",
        "pay": "paid",
        "lend": "lent",
        "send": "sent",
        "know": "knew known",
        "break": "broke broken",
        "choose": "chose chosen",
        "speak": "spoke spoken",
        "person": "people persons",
        "child": "children",
        "mouse": "mice",
        "foot": "feet",
        "resident": "inhabitant inhabitants",
        "city": "cities",
    }.items()
    for word in words.split()
}

NEGATORS = frozenset(
    "not never cannot without neither nor hardly none nobody nothing nowhere lack lacks "
    "lacked lacking unable avoid avoids avoided "
    "refrain dont doesnt didnt isnt arent wasnt werent cant couldnt wouldnt shouldnt hasnt havent hadnt "
    "non mai senza nessuno nicht nie niemals ohne pas jamais sans nunca sin لا ليس ليست لم لن غير بدون".split()
)
# Stems of verbs whose "from" denies what follows it: "prevents it from hanging".
PREVENTING = frozenset("prevent stop keep hinder discourag".split())
# Negators that stand before the noun they deny.
NO_DETERMINERS = frozenset(
    "no nessun nessuna kein keine keinen keiner keinem keines aucun aucune ningún ninguna".split()
)
# "no" and "not" that deny nothing: bounds, emphasis, fixed phrases.
NOT_A_NEGATION = re.compile(
    r"\b(?:no|not) (?:more|less|fewer|later|earlier|longer|sooner|greater|higher|lower|exceed\w*) than\b"
    r"|\bnot only\b|\bnot just\b|\bnot necessarily\b|\bwhether or not\b|\bno (?:doubt|other|wonder|sooner|matter)\b"
    r"|\bnot to mention\b|\bwith(?: or|/) ?without\b|\bcon o (?:senza|sin)\b|\bmit (?:oder|und) ohne\b|\bavec ou sans\b"
    r"|\bnon solo\b|\bnicht nur\b|\bnon seulement\b|\bno\.? ?(?=\d)|\bwhy not\b|\bif not\b"
    r"|不仅|不但|不过|不同|不断|非常|无论|无线|没收|未来|不少|不久"
)
NOT_A_NEGATION_PARTS = ("no", "without", "ohne", " o s", "ou sans", "nicht nur")
"""Every one of these phrases in Latin letters has one of the parts: most sentences need not be searched for them."""
CJK_NEGATORS = ("没有", "没", "不", "未", "无")

# Each line: words of one side | words of the other. Opposites that exclude each other when said of the same thing.
_OPPOSITES = """
enable activate turn-on switch-on switched-on | disable deactivate turn-off switch-off
open reopen | close closed shut
allow permit authorise authorize | forbid prohibit ban disallow
accept approve | reject refuse decline deny
increase rise grow raise | decrease fall decline drop reduce lower shrink
include | exclude omit
before | after
above | below beneath
first | last
start begin commence | end finish stop cease
hot | cold
warm | cool
positive | negative
safe harmless | unsafe dangerous hazardous
present | absent
mandatory compulsory obligatory required | optional voluntary
maximum | minimum
highest | lowest
largest biggest | smallest
longest | shortest
oldest | newest youngest
fastest | slowest
best | worst
most | least
higher greater larger bigger | lower smaller
longer | shorter
older | newer younger
faster | slower
heavier | lighter
cheaper | dearer costlier
earlier sooner | later
more | less fewer
early | late
north northern | south southern
east eastern | west western
left-hand | right-hand
import | export
buy purchase | sell
win | lose
pass | fail
succeed | fail
success | failure
profit gain | loss
public | private
internal | external
inside indoors indoor | outside outdoors outdoor
upper top | bottom
ascending | descending
inhale | exhale
arrive arrival | depart departure
legal lawful | illegal unlawful
valid | invalid expired
true | false
full | empty
wet | dry
locked | unlocked
online | offline
permanent | temporary
strong | weak
male | female
day | night
summer | winter
benign | malignant
acute | chronic
hyperthyroidism | hypothyroidism
hypertension | hypotension
supported | unsupported
free | chargeable paid
odd | even-numbered
even-numbered | odd
aperto aperta aperti aperte | chiuso chiusa chiusi chiuse
attivo attiva attivato attivata abilitato | disattivato disattivata disabilitato
prima | dopo
aumento aumentato | diminuzione diminuito calo
obbligatorio obbligatoria | facoltativo facoltativa
vietato vietata | permesso permessa consentito consentita
geöffnet offen | geschlossen
erlaubt gestattet | verboten untersagt
aktiviert eingeschaltet | deaktiviert ausgeschaltet
vor | nach
ouvert ouverte ouverts ouvertes | fermé fermée fermés fermées
autorisé autorisée permis | interdit interdite
obligatoire | facultatif facultative
abierto abierta | cerrado cerrada
"""
# Opposites that often stand for another sense, or hold of different parts: only with everything else equal.
LOOSE_OPPOSITES = frozenset(
    "day night summer winter free top bottom end start first last with without most least more less fewer present fail "
    "best vor nach prima day even full pass left open cool warm strong male female raise drop north south east west "
    "earlier later after before early late".split()
)

# Words of one set exclude each other when said of the same thing.
COLOURS = frozenset(
    "black white grey gray red green blue yellow orange purple violet pink brown beige turquoise "
    "nero nera bianco bianca rosso rossa verde blu giallo gialla schwarz weiß rot grün blau gelb "
    "noir noire blanc blanche rouge vert verte bleu bleue jaune negro blanco rojo azul amarillo".split()
)

PARTICLE_VERBS = re.compile(
    r"\b(turn|turns|turned|turning|switch|switches|switched|switching)[ ](on|off)\b"
    r"|\b(rule|rules|ruled|ruling)[ ](out)\b|\b(shut|shuts|shutting)[ ](down)\b",
)

QUANTIFIERS: dict[str, str] = {
    word: kind
    for kind, words in {
        "all": "all every each both everyone everybody everything always entirely tutti tutte ogni jeder jede jedes "
        "tous toutes chaque todos todas",
        "none": "no none nobody neither nessun nessuna nessuno kein keine aucun aucune ningún ninguna",
        "some": "some several many various sometimes certain alcuni alcune einige "
        "manche certains quelques algunos algunas",
        "most": "most mostly usually majority",
        "few": "few rarely seldom hardly minority pochi poche wenige peu pocos pocas",
        "half": "half",
    }.items()
    for word in words.split()
}
# (claim, evidence) -> whether the evidence says otherwise (True) or merely says less (False).
QUANTIFIER_CLASHES: dict[tuple[str, str], bool] = {
    ("all", "part"): True,
    ("all", "few"): True,
    ("all", "half"): True,
    ("all", "none"): True,
    ("all", "most"): True,
    ("all", "some"): False,
    ("none", "part"): True,
    ("none", "some"): True,
    ("none", "most"): True,
    ("none", "few"): True,
    ("none", "half"): True,
    ("none", "all"): True,
    ("most", "few"): True,
    ("most", "none"): True,
    ("some", "none"): True,
    ("few", "most"): True,
    ("few", "all"): True,
    ("half", "all"): True,
    ("half", "none"): True,
}

MODALS: dict[str, str] = {
    "must": "must",
    "shall": "must",
    "may": "may",
    "can": "able",
    "might": "able",
    "could": "able",
    "should": "should",
    "deve": "must",
    "devono": "must",
    "muss": "must",
    "müssen": "must",
    "doit": "must",
    "doivent": "must",
    "debe": "must",
    "può": "may",
    "possono": "may",
    "kann": "may",
    "können": "may",
    "darf": "may",
    "dürfen": "may",
    "peut": "may",
    "peuvent": "may",
    "puede": "may",
    "sollte": "should",
    "sollten": "should",
    "dovrebbe": "should",
}
MODAL_PHRASES = re.compile(
    r"\b(?:(?P<must>(?:is|are|was|were|be) (?:required|obliged|obligated) to|(?:has|have|had|need|needs) to)"
    r"|(?P<may>(?:is|are|was|were|be) (?:allowed|permitted|free|entitled|able) to)"
    r"|(?P<should>(?:is|are) (?:advised|recommended|encouraged) to|ought to))\b"
)
HEDGES = frozenset("may might could possibly perhaps probably likely reportedly allegedly potentially".split())
HEDGE_VERBS = frozenset(
    "suggest suggests suggested appear appears appeared seem seems seemed believe believed suspect suspected "
    "hypothesise hypothesised estimate estimated according think thought".split()
)
# Swapping the two sides of these changes nothing.
SYMMETRIC = frozenset(
    "marry meet border differ equal agree resemble join merge neighbour neighbor "
    "overlap correspond and or with between "
    "share connect link match tie compare partner cooperate collaborate adjoin intersect".split()
)


def opposites() -> tuple[dict[str, tuple[str, int]], ...]:
    """The opposites as a map from word to (pair, side).

    Returns:
        One map per pair that a word belongs to; a word of several pairs stands in several maps.
    """
    tables: list[dict[str, tuple[str, int]]] = []
    for line in _OPPOSITES.strip().splitlines():
        left, _, right = line.partition("|")
        name = left.split()[0]
        tables.append({word: (name, 1) for word in left.split()} | {word: (name, -1) for word in right.split()})
    return tuple(tables)

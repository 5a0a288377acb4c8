"""Abbreviations of English, Italian, German, French and Spanish, by what may follow their full stop.

Entries are case-folded, without the last stop and without inner spaces (``z.b``, ``ad es`` keeps its word space).
"""

from __future__ import annotations

from enum import Enum, auto


class StopRole(Enum):
    """What a full stop after a word can mean."""

    ORDINARY = auto()  # ends the sentence
    NEVER = auto()  # belongs to the abbreviation, whatever follows
    NUMBERED = auto()  # belongs to it before a number ("art. 5"), else ends the sentence
    SOMETIMES = auto()  # ends the sentence only before a word that typically begins one
    INITIAL = auto()  # the same, with surname particles ("G. Di Maio") never beginning one
    CLOCK = auto()  # "9 a.m.": ends the sentence unless a day, month or time zone follows
    FINAL = auto()  # "etc.": ends the sentence before a capital


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NEVER = _words(
    # English
    "mr mrs ms mx dr drs prof rev hon capt cpt lt col sgt cmdr adm rep gov pres messrs mt ft "
    "e.g i.e eg cf viz vs v v.s approx esp resp ca c.ca circa incl excl w.r.t a.k.a "
    # Italian
    "dott dottssa dr.ssa dott.ssa prof.ssa sig sigg sig.ra sig.na avv geom mons p.es c.d spett egr cfr "
    # German
    "hr hrn fr dipl z.b z.t d.h u.a u.u o.g s.o s.u i.d.r i.a m.e v.a u.ä o.ä bzw bspw sog ggf evtl vgl insb inkl exkl "
    "zzgl abzgl geb med "
    # French and Spanish
    "mme mlle p.ex c.-à-d env ud uds vd vds sra srta dña p.ej aprox núm "
    # Russian, Hindi
    "т.е ул им др руб проф डॉ श्री"
)
_PHRASES = frozenset({"ad es", "per es", "par ex", "por ej"})
_NUMBERED = _words(
    "no nos nr nrn n nn num art artt arts p pp pag pagg pg fig figs tab tabb eq eqs sec secs sect ch chap cap capp vol "
    "voll ver vv par parr para paras abs s z rz rn rdn abb kap bd bde ziff lit lett cl app ref refs ep seg op cit cod "
    "reg dir d.lgs d.l d.p.r d.m l tel ext bldg rm apt ste aufl jh jan feb mar apr jun jul aug sep sept oct okt "
    "nov dec "
    "dez gen mag giu lug ago set ott dic"
)
_SOMETIMES = _words(
    "inc ltd co corp llc plc bros jr sr st esq al ave blvd rd hwy dept univ assn intl govt natl ed eds misc min "
    "max avg "
    "std ing rag segg ss sgg mio mrd mia tsd stk gmbh cie ltda ph.d n.chr v.chr bundesg av тыс млн млрд т.д т.п"
)
_CLOCK = _words("a.m p.m am pm")
_FINAL = _words("etc ecc usw etcetera u.s.w")

# "S. Rossi" is a name, "s. 5" a page.
_CAPITAL_INITIALS = frozenset("NPSLZ")

# Words that look like an abbreviation (no vowel) but are units or plain words, after which sentences do end.
_UNITS = _words(
    "km kg mg ml cl dl cm mm nm gb mb kb tb kw kwh mwh hz khz mhz ghz ms ns hrs lb lbs ft yd pt qt kj kcal mmhg "
    "bps kbps "
    "mbps db px m g l h s w v k b c f t tv pc cd dvd rpm mph kmh psi ppm nth rd nd th shh hmm pst grr"
)

_VOWELS = frozenset("aeiouyàáâäãåæèéêëìíîïòóôöõøœùúûüýÿ")

OPENERS = _words(
    # English
    "the a an it its he she they we you i his her hers their our my your this that these those there here in on at by "
    "for from with after before when while if as but and or so however although though because since during both all "
    "some many most each no not who what where why how then also to once until under over according please yes yet "
    "still nobody everyone everything nothing several another such "
    # Italian
    "il lo la gli le l un uno una questo questa questi queste quello quella egli lei lui loro essa noi voi io nel "
    "nella nei nelle con per da dal dalla di del della al alla ai su sul se quando dopo prima durante ma e anche non è "
    "sono ha hanno tuttavia inoltre "
    # German
    "der die das den dem des ein eine einen einem einer er sie es wir ihr ich dieser diese dieses im am an auf mit "
    "nach vor bei für von vom zum zur wenn als aber und auch nicht sein seine ihre man hier dort danach dann jedoch "
    "beide alle viele "
    # French
    "les une il elle ils elles nous vous je ce cet cette ces dans en au aux avec pour par sur si quand après "
    "avant mais "
    "et son sa ses leur leurs "
    # Spanish
    "el los las unos unas ellos ella ellas nosotros este esta estos estas con para cuando después antes pero y sus su"
)
# Words that also begin surnames or stand for an initial.
_PARTICLES = _words("de del della dello di da dal dalla la le lo el al van von der den des du a e y i an den san st")
_NAME_OPENERS = OPENERS - _PARTICLES | {"i"}

_CALENDAR = _words(
    "monday tuesday wednesday thursday friday saturday sunday mon tue tues wed thu thur thurs fri sat sun "
    "january february march april may june july august september october november december "
    "jan feb mar apr jun jul aug sep sept oct nov dec et est edt ct cst cdt mt mst mdt pt pst pdt gmt utc cet cest bst "
    "ist jst eastern central mountain pacific"
)

GERMAN_MONTHS = _words(
    "januar jänner februar märz april mai juni juli august september oktober november dezember jan feb mär apr jun jul "
    "aug sep sept okt nov dez"
)
# Words before a German ordinal ("am 3. Juni", "der 2. Weltkrieg"); none of them precedes a number in the other
# languages, except "am", which the caller tells from "I am".
ORDINAL_LEADS = _words(
    "am vom zum zur im der die das dem den des beim bis ab seit jeder jede jedes jeden ihr ihre sein"
)


def role_of(word: str, phrase: str, *, after_number: bool) -> StopRole:
    """Say what a full stop after a word means.

    Args:
        word: The word before the stop, with inner stops and without spaces (``"U.S"``, ``"z.B"``, ``"Dr"``).
        phrase: The last two words, for abbreviations such as ``"ad es"``.
        after_number: Whether a number stands before the word: ``5 m.`` is a unit, ``m.`` may be an initial.

    Returns:
        The role.

    Example:
        >>> role_of("Dr", "by Dr", after_number=False), role_of("ferry", "the ferry", after_number=False)
        (<StopRole.NEVER: 2>, <StopRole.ORDINARY: 1>)
    """
    folded = word.lower()
    if folded in _CLOCK and (after_number or "." in folded):
        return StopRole.CLOCK
    if after_number and folded in _UNITS:
        return StopRole.ORDINARY
    if folded in _FINAL:
        return StopRole.FINAL
    # Written in capitals it is an acronym or a shouted word, not the abbreviation.
    if len(word) > 1 and word.isupper() and "." not in word:
        return StopRole.SOMETIMES if len(word) == 2 and word[0] == word[1] else StopRole.ORDINARY  # "EE. UU."
    if (folded in _NEVER and word != "V") or phrase.lower() in _PHRASES:
        return StopRole.NEVER
    if (folded in _NUMBERED and word not in _CAPITAL_INITIALS) or folded.endswith("str"):
        return StopRole.NUMBERED
    if folded in _SOMETIMES:
        return StopRole.SOMETIMES
    if len(word) == 1:
        return StopRole.ORDINARY if after_number else StopRole.INITIAL
    if "." in word:
        return StopRole.SOMETIMES if max(map(len, word.split("."))) <= 3 else StopRole.ORDINARY
    return StopRole.SOMETIMES if _has_no_vowel(word, folded) else StopRole.ORDINARY


def _has_no_vowel(word: str, folded: str) -> bool:
    """Whether an unknown short word such as ``Blvd`` or ``hrsg`` must be an abbreviation."""
    return (
        2 <= len(word) <= 5
        and word.isalpha()
        and folded not in _UNITS
        and folded[0] < "\u0250"
        and _VOWELS.isdisjoint(folded)
    )


def begins_sentence(next_word: str, role: StopRole) -> bool:
    """Whether a capitalised word after an abbreviation of this role typically begins a new sentence."""
    folded = next_word.lower()
    if role is StopRole.INITIAL:
        return folded in _NAME_OPENERS
    if role is StopRole.CLOCK:
        return folded not in _CALENDAR
    return folded in OPENERS

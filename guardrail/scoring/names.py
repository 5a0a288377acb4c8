"""Proper names in a sentence, by their capitals: what a claim should not mention if no passage does."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from guardrail.text.dates import MONTHS, WEEKDAYS

_WORD = re.compile(r"[^\W\d_]+(?:[-&.’'][^\W\d_]+)*")
_NO_NAME = re.compile(r"\[[^\]]*\]|`[^`]*`|https?://\S+|\S+@\S+")  # templates, code and addresses
_NO_NAME_SIGN = re.compile(r"[\[`@]|://")  # in every one of them, and in few sentences
_OPENING = ".:!?\"“”„«‘'(-–—*•/;|"
_POSSESSIVE = re.compile(r"(?:['’]s|(?<=s)['’])$")
_JOINING = frozenset("of the for in de la le du von van der den di del da dos das &".split())
_COMMON = frozenset(
    # capitalised as the first word of a sentence, as a form of address, or as a label of sources
    "the a an in on at by for from to with when while after before since although however also additionally "
    "furthermore moreover therefore both all most many some several each every another other if as of and but or nor "
    "so yet dear based according it this that these those there here he she they we you i his her their its our your "
    "my "
    "what which who whose whom how why where is are was were be do does did has have had can could will would shall "
    "should may might must not no yes please note overall finally first second third one two three four five six seven "
    "eight nine ten mr mrs ms dr prof sir madam lord lady saint president minister king queen prince princess "
    "passage passages source sources document documents article step steps section chapter table figure example "
    "question answer option celsius fahrenheit kelvin".split()
)
_NOT_TELLING = _JOINING | _COMMON
# Places that records and news write in short: a word of the name, and what may stand for it.
_SHORT_FORMS = dict(
    pair.split("=")
    for pair in (
        "alabama=al alaska=ak arizona=az arkansas=ar california=ca colorado=co connecticut=ct delaware=de florida=fl "
        "georgia=ga hawaii=hi idaho=id illinois=il indiana=in iowa=ia kansas=ks kentucky=ky louisiana=la maine=me "
        "maryland=md massachusetts=ma michigan=mi minnesota=mn mississippi=ms missouri=mo montana=mt nebraska=ne "
        "nevada=nv hampshire=nh jersey=nj mexico=nm york=ny carolina=nc dakota=nd ohio=oh oklahoma=ok oregon=or "
        "pennsylvania=pa rhode=ri tennessee=tn texas=tx utah=ut vermont=vt virginia=va washington=wa wisconsin=wi "
        "wyoming=wy ontario=on quebec=qc alberta=ab manitoba=mb columbia=bc brunswick=nb scotia=ns newfoundland=nl "
        "saskatchewan=sk edward=pe suite=ste states=us america=us american=us americans=us "
        "kingdom=uk britain=uk british=uk european=eu emirates=uae soviet=ussr"
    ).split()
)
_SHORT = 3  # words; a short answer may be nothing but a name
_TITLE = 0.1  # share of ordinary words in small letters that a title has at most
_ACRONYM = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Name:
    """A proper name.

    Attributes:
        text: As it stands in the sentence.
        words: Its telling words, without possessive endings, titles and joining words.
    """

    text: str = field(repr=False)
    words: tuple[str, ...] = field(repr=False)


def names_in(text: str) -> list[Name]:
    """Find the proper names of a sentence.

    A single capitalised word at the beginning of a clause may be any word, so it is none; nor are months, weekdays,
    acronyms (whose long forms may stand elsewhere) and words in ``-ing``. A text without ordinary words in small
    letters is a title and has none. In languages that capitalise every noun this finds too much.

    Args:
        text: One sentence, without markup.

    Example:
        >>> [name.text for name in names_in("In March, Anna Berg of the Orrin Trust sold Dr. Holm's boat to NATO.")]
        ['Anna Berg of the Orrin Trust', "Holm's"]
    """
    visible = _NO_NAME.sub(lambda gone: " " * len(gone[0]), text) if _NO_NAME_SIGN.search(text) else text
    words = list(_WORD.finditer(visible))
    plain = sum(word[0].islower() and word[0] not in _NOT_TELLING for word in words)
    if len(words) > _SHORT and plain <= _TITLE * len(words):
        return []
    found: list[Name] = []
    run: list[re.Match[str]] = []
    for word in [*words, None]:
        if word is not None and run and _continues(visible, run[-1], word):
            run.append(word)
            continue
        if run:
            found += _name(visible, run)
        run = [word] if word is not None and word[0][0].isupper() else []
    return found


def strangers(text: str, knows: Callable[[str], bool]) -> list[Name]:
    """The names of a sentence of which no word is known: "Penn" is enough for "Sean Penn", and "CA" for "California".

    Args:
        text: One sentence, without markup.
        knows: Whether a word stands in any passage.
    """
    return [name for name in names_in(text) if not any(_is_known(word, knows) for word in name.words)]


def _is_known(word: str, knows: Callable[[str], bool]) -> bool:
    short = _SHORT_FORMS.get(word.lower())
    return knows(word) or (short is not None and knows(short))


def _continues(text: str, last: re.Match[str], word: re.Match[str]) -> bool:
    gap = text[last.end() : word.start()]
    capital = word[0][0].isupper()
    title = gap == ". " and len(last[0]) <= 2 and capital  # "J. Holm", "St. Gall"
    return (gap in (" ", " & ") and (capital or word[0] in _JOINING)) or title


def _name(text: str, run: list[re.Match[str]]) -> list[Name]:
    before = text[: run[0].start()].rstrip()
    opens = not before or before[-1] in _OPENING
    while run and (run[0][0].lower() in _COMMON or not run[0][0][0].isupper()):
        run, opens = run[1:], False
    while run and not run[-1][0][0].isupper():
        run = run[:-1]
    capitals = [word for word in run if word[0][0].isupper()]
    if not capitals or (opens and len(capitals) == 1):
        return []
    telling = tuple(stem for word in capitals if _tells(stem := _POSSESSIVE.sub("", word[0])))
    return [Name(text=text[run[0].start() : run[-1].end()], words=telling)] if telling else []


def _tells(word: str) -> bool:
    low = word.lower()
    if len(word) < 3 or low in _COMMON or low in MONTHS or low in WEEKDAYS:
        return False
    acronym = len(word) <= _ACRONYM and word.rstrip("s").isupper()
    return not acronym and not (len(word) > 5 and low.endswith("ing"))

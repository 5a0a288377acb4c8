"""Whether a short phrase states something: the test that separates a label from a claim that looks like one."""

from __future__ import annotations

import re


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_VERBS = _words(
    "is are was were am isn't aren't wasn't weren't has have had hasn't haven't does doesn't did didn't don't "
    "can can't "
    "cannot could will won't would shall should must might it's that's there's they're he's she's you're we're "
    "è sono ha hanno può possono deve devono sarà fu costa costano apre chiude dura "
    "ist sind war waren hat haben hatte wird werden wurde wurden kann können muss müssen darf kostet öffnet schließt "
    "est sont était peut doit sera coûte ouvre ferme son está están tiene tienen puede debe cuesta abre cierra fue "
    "began went came became won lost died wrote rose grew fell became knows knew "
    "opens closes reopens lasts contains includes requires provides allows weighs prevents increases reduces improves "
    "belongs consists depends remains becomes gives makes takes gets says states shows supports covers kills says "
    "не нет является был была было"
)
_ASSERTIONS = _words(
    "yes no not never always only none nothing true false correct wrong closed free daily avoid founded "
    "established built "
    "born stop do prohibited forbidden allowed permitted safe unsafe unlimited mandatory "
    "sì no non mai sempre solo gratis chiuso chiusa aperto vero falso ja nein nicht nie immer nur kein keine "
    "geschlossen "
    "kostenlos richtig falsch oui jamais toujours gratuit fermé vrai faux sí nunca siempre gratis cerrado verdadero"
)
# Plural nouns as well: no verbs beside a joint such as "costs and fees", "causes of pain", "the costs".
_NOUN_VERBS = _words(
    "costs charges starts begins ends offers needs measures seats works runs causes means treats claims plans uses"
)
_AFTER_NOUN = _words("and or of for in per by to & with")
_BEFORE_NOUN = _words("and or of the your our its their other for & with")
_AFTER_PARTICIPLE = _words("in on at by from for since until to with under of after before again")
_QUESTION_WORDS = _words(
    "how what when where who which whom whose come quando dove chi wie was wann wo wer comment où quand qui"
)

_NUMBERED = re.compile(
    r"\b(?:step|section|chapter|part|figure|table|day|week|phase|option|question|appendix|level|passage|source|"
    r"document|method|article|example|"
    r"case|no|"
    r"version|passo|parte|capitolo|sezione|fase|esempio|articolo|art|schritt|teil|kapitel|abschnitt|tabelle|étape|"
    r"partie|"
    r"chapitre|paso|capítulo|sección)\b\.? (?:\d+(?:\.\d+)*|[ivx]+\b)[.:]?"
)
_ENUMERATOR = re.compile(r"^\d+(?:\.\d+)*[.)]?\s+(?=[^\W\d_])")
_YEAR = re.compile(r"\(?\b(?:1[89]|20)\d\d\b(?:[-–/]\d{2,4}\b)?\)?")
_VALUE = re.compile(r"[€$£¥%‰°=<>≥≤]")
_WORD = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*|\d+")
_WIDE_STATEMENT = re.compile(r"[是有为不没无免可能会在了]|は|です|ます|입니다")


def states_something(phrase: str) -> bool:
    """Whether a phrase holds a verb, a value or another sign of a statement.

    Args:
        phrase: Case-folded text without markup, some words long.

    Returns:
        ``True`` in every case of doubt that one of the signs raises.

    Example:
        >>> states_something("opening hours"), states_something("the hall reopened in 1999")
        (False, True)
    """
    phrase = _ENUMERATOR.sub("", _NUMBERED.sub("", phrase, count=1).strip(), count=1)
    words = _WORD.findall(phrase)
    if not words:
        return False
    if _VALUE.search(phrase) or _WIDE_STATEMENT.search(phrase):
        return True
    if len(words) <= 4:
        phrase = _YEAR.sub("", phrase, count=1)
    if any(map(str.isdigit, phrase)):
        return True
    if words[0] in _QUESTION_WORDS:
        return False
    return any(_is_sign(words, at) for at in range(len(words)))


def _is_sign(words: list[str], at: int) -> bool:
    word = words[at]
    if word in _VERBS or word in _ASSERTIONS:
        return True
    after = words[at + 1] if at + 1 < len(words) else ""
    if word == "open":
        return not after or after in _AFTER_PARTICIPLE
    if at == 0:
        return False
    if word in _NOUN_VERBS:
        return bool(after) and after not in _AFTER_NOUN and words[at - 1] not in _BEFORE_NOUN
    return len(word) > 4 and word.endswith("ed") and (not after or after.isdigit() or after in _AFTER_PARTICIPLE)

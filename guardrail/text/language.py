"""Which language a text is in, by script and by function words; undecided rather than guessed.

A checker that was trained on one language must know that it was given another. Telling a dozen languages apart needs no
statistics over characters: a sentence is full of articles and prepositions. What has few of them (names, code, numbers,
a fragment) has no language here.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from functools import lru_cache

from guardrail.text.lazy import LazyPattern
from guardrail.text.tokens import FOLDED_QUOTES

MIN_WORDS = 6
_MIN_FOUND = 2.0
_MIN_SHARE = 0.2  # of the words that are function words; names and titles have fewer
_MIN_LEAD = 1.0  # over the second language, in words
_ENGLISH_LEAD = 1.5  # over English, or of English: its table is generous, so that it is not taken for another language
_ENGLISH_RATIO = 1.5
_HINT = 0.5
_PARTICLE = 0.25
_CHAIN = 3  # particles in a row in a name, the next word included
_MAX_CHARS = 1_500
_MIN_SIGNS = 4  # of a script that is written without spaces
_MIN_LETTERS = 8
_CODE_SHARE = 6

_FUNCTION_WORDS = {
    # Besides function words, English has verbs and nouns that look like those of another language ("come", "son").
    "en": "the of and to in is was are were be been being that which who whom whose this these those it i its it' he "
    "she they them their theirs his her him we you your our us my me not no nor or but if then than so as at by for "
    "from with without within on into onto over under about after before between through during against among per an "
    "a all any each every both some such more most other others another only also very can could may might must "
    "shall should will would do does did done has have had having there here where when while because until since "
    "although though what how why one two three four five six ten first second new used use uses using including "
    "however therefore according same well up out off down many much few less least don' doesn' didn' isn' aren' "
    "wasn' weren' can' won' that' let' come non son pour sole sale plus era par die war hat man am dose dare tale "
    "pace mare case open opens closed closes patients patient takes take made makes given give gives shows show "
    "found based known called became become says said days hours years year percent never always often usually once "
    "either neither unless whether toward towards across along above below near around despite upon via",
    "it": "il lo la i gli le un uno una un' di a da in con su per tra fra e ed o è sono era erano sia stato stata "
    "stati ha hanno aveva avevano del dello della dei degli delle dell' al allo alla ai agli alle all' dal dallo "
    "dalla dai dagli dalle dall' nel nello nella nei negli nelle nell' sul sullo sulla sui sugli sulle sull' che chi "
    "cui si non più come anche se ma però quando mentre perché quindi questo questa questi queste quest' quello "
    "quella quelli quelle quell' suo sua suoi loro essere viene vengono può possono deve devono prima dopo ogni "
    "tutti tutte tutto tutta molto senza presso entro secondo fino c' l' d' già solo ancora lui lei noi fu furono "
    "sarà saranno circa oltre contro durante verso dove ne ci due tre quattro cinque dieci",
    "de": "der die das den dem des ein eine einen einem einer eines und oder aber nicht kein keine keinen keiner ist "
    "sind war waren wird werden wurde wurden worden hat haben hatte hatten sein kann können konnte muss müssen "
    "musste soll sollen sollte darf dürfen mit von vom zu zum zur im in am an auf aus bei beim nach für über unter "
    "durch gegen ohne um bis seit vor zwischen während wenn weil dass daß ob als wie auch nur noch schon sehr mehr "
    "man es er sie wir ihr ihre ihren ihrer ihrem seine seiner seinen seinem sich diese dieser dieses diesem diesen "
    "jede jeder jedes jeden alle allen sowie bzw wer wo was so ins ans deren dessen denn doch jedoch etwa rund pro "
    "laut wegen zwei drei vier fünf sechs zehn",
    "fr": "le la les l' un une des du de d' au aux et ou où mais donc car que qu' qui quoi dont ce cet cette ces c' "
    "il elle ils elles on nous vous je j' se s' ne n' pas plus en dans sur sous par pour avec sans chez vers entre "
    "depuis pendant avant après comme si est sont était étaient été être a ont avait avaient avoir fait peut peuvent "
    "doit doivent sera seront fut furent son sa ses leur leurs notre votre même aussi très tout tous toute toutes "
    "selon lors ainsi afin jusqu' lorsqu' puisqu' puis y à ni chaque plusieurs environ contre deux trois quatre cinq "
    "six dix",
    "es": "el la los las lo un una unos unas de del al y e o u pero que qué quien quienes cual cuyo cuya no ni si sí "
    "se su sus le les es son era eran fue fueron ser sido está están estaba ha han había haber hay tiene tienen "
    "puede pueden debe deben en con sin por para sobre entre desde hasta hacia según durante tras ante contra como "
    "cuando donde porque más menos muy también ya solo sólo este esta estos estas ese esa esos aquel cada todo todos "
    "toda todas otro otra otros otras mismo misma después antes aunque dos tres cuatro cinco seis diez",
    "pt": "o a os as um uma uns umas de do da dos das no na nos nas ao à aos às pelo pela pelos pelas em num numa "
    "com sem por para sobre entre desde até e ou mas que quem qual se não é são era eram foi foram ser sido está "
    "estão tem têm tinha há pode podem deve devem seu sua seus suas este esta estes estas esse essa isso isto ele "
    "ela eles elas mais menos muito também já só como quando onde porque depois antes durante cada todo todos toda "
    "todas outro outra outros outras mesmo mesma segundo lhe após embora dois duas três quatro cinco dez",
    "nl": "de het een en of maar niet geen is zijn was waren wordt worden werd werden heeft hebben had hadden kan "
    "kunnen moet moeten mag mogen zal zullen met van voor door bij naar uit op aan in om over onder tussen tegen "
    "tijdens na tot te ten ter als dan dat die deze dit er ook nog al wel meer zeer veel hij zij ze we wij u uw hun "
    "haar zich wie wat waar wanneer omdat hoewel terwijl sinds per elke alle andere volgens zonder binnen twee drie "
    "vier vijf zes tien",
    "ca": "el la els les l' un una uns unes de del dels d' al als i o però que què qui no és són era eren ha han hi "
    "en amb per sense sobre entre des fins com quan on perquè més menys molt també ja aquest aquesta aquests "
    "aquestes seu seva seus pot poden ser estat",
    "ro": "și în este sunt era erau au a fost cu de la pe din pentru care că să se nu un o unei unui ale al ai mai "
    "prin după până între fără sau dar ca cum când poate trebuie lui lor acest această aceste fi",
    "pl": "i w we na z ze do nie się jest są był była było być to że o od po dla przez przy jak ale lub oraz który "
    "która które jego jej ich tylko może można został została przed pod nad za u a",
    "sv": "och att det som en ett är var på av för med den de inte till om har hade från vid eller men när kan ska "
    "skall måste efter under mellan utan även så där här man sin sina alla",
    "da": "og at det som en et er var på af for med den de ikke til om har havde fra ved eller men når kan skal må "
    "efter under mellem uden også så der her man sin sine alle blev bliver",
}
_HINTS = {
    "it": r"zion[ei]$|mente$|ità$|[^aeiou]ò$",
    "de": r"ß|[äöü]|(?:ung|ungen|keit|heit|lich|liche|lichen|schaft)$",
    "fr": r"œ|[êçèëîûù]|(?:eux|euse|aient|ées?)$",
    "es": r"ñ|(?:ción|ciones|dad|mente)$",
    "pt": r"[ãõ]|(?:ção|ções|dade|mente)$",
    "nl": r"ij|aa[a-z]|uu[a-z]|heid$|lijk$",
    "ro": r"[șțăţş]",
    "pl": r"[ąęłńśźżć]",
    "sv": r"[åäö]",
    "da": r"[æøå]",
}
_HINT_PATTERNS = {language: LazyPattern(pattern) for language, pattern in _HINTS.items()}
_ANY_HINT = LazyPattern(*_HINTS.values())
# Function words that are also parts of names: between two capitals ("Luis de la Cruz") they hardly count, and neither
# does what is capitalised inside a sentence, as in a title.
_PARTICLES = frozenset(
    "de la le les los las el del della di da do dos das du des y e van von der den ten ter zu zur al i op in en et "
    "d' l' au aux à".split()
)
_WORD = LazyPattern(r"[^\W\d_]+(?:-[^\W\d_]+)*'?")
_ASCII_WORD = LazyPattern(r"[A-Za-z]+(?:-[A-Za-z]+)*'?")  # the same, where it is enough: twice as fast
# Code, addresses, paths: a word that holds one of their signs.
_NOT_PROSE = LazyPattern(r"`[^`]*`", r"(?<!\S)\S*(?:[@\\_]|:/|\w[/.]\w)\S*")
_NOT_PROSE_SIGN = LazyPattern(r"[`@\\_/.](?:(?<=[`@\\_])|(?<=:/)|(?<=\w[/.])(?=\w))")  # in every one of them
_CODE_SIGN = LazyPattern(r"[{}=;<>\[\]\\|~^$(](?:(?<!\()|(?<=\w\()|(?=\)))")  # of brackets "f(" and "()"
_APOSTROPHES = str.maketrans(dict.fromkeys(FOLDED_QUOTES, "'"))

_LATIN = LazyPattern("[A-Za-z\u00c0-\u024f\u1e00-\u1eff]+")
_OTHER_SCRIPT = LazyPattern("[\u0370-\u03ff\u0400-\u052f\u0590-\u06ff\u0900-\u097f\u0e00-\u0e7f\u3040-\ufaff]")
# (code, letters, whether written without spaces)
_SCRIPTS = (
    ("cyrillic", LazyPattern("[\u0400-\u052f]+"), False),
    ("el", LazyPattern("[\u0370-\u03ff\u1f00-\u1fff]+"), False),
    ("he", LazyPattern("[\u05d0-\u05ea]+"), False),
    ("arabic", LazyPattern("[\u0620-\u064a\u066e-\u06d3]+"), False),
    ("hi", LazyPattern("[\u0900-\u097f]+"), False),
    ("th", LazyPattern("[\u0e01-\u0e4e]+"), True),
    ("ko", LazyPattern("[\uac00-\ud7a3]+"), False),
    ("kana", LazyPattern("[\u3041-\u30ff]+"), True),
    ("han", LazyPattern("[\u3400-\u4dbf\u4e00-\u9fff]+"), True),
)
_MIN_KANA = 0.1  # of the signs: a Chinese sentence may hold a Japanese name
# A letter of a language that shares its script with a larger one.
_OWN_LETTERS = {
    "cyrillic": (("uk", LazyPattern("[іїєґІЇЄҐ]")), ("sr", LazyPattern("[ђјљњћџЂЈЉЊЋЏ]"))),
    "arabic": (("ur", LazyPattern("[ٹڈڑںے]")), ("fa", LazyPattern("[پچژگ]"))),
}
_LARGEST = {"cyrillic": "ru", "arabic": "ar"}


def language_of(text: str) -> str | None:
    """The language of a text, if its words or its script leave no doubt.

    Args:
        text: A sentence or a few; only the first 1,500 characters count.

    Returns:
        An ISO 639-1 code (``en it de fr es pt nl ca ro pl sv da``, by script ``ru uk sr el he ar fa ur hi th ko ja
        zh``), or ``None`` for a text of fewer than six words, of names, numbers or code, of two languages at once, or
        of another language. A script that several languages share gives the code of the largest of them, and Danish
        stands for Norwegian too.

    Example:
        >>> language_of("The museum is open on Mondays from ten to five.")
        'en'
        >>> language_of("Il museo è aperto il lunedì dalle dieci alle cinque.")
        'it'
        >>> language_of("Museo Nacional") is None
        True
    """
    text = text[:_MAX_CHARS]
    if not text.isascii():
        text = unicodedata.normalize("NFC", text.translate(_APOSTROPHES))
        if _OTHER_SCRIPT.search(text):
            found = _by_script(text)
            if found != "latin":
                return found
    return _by_words(text)


def _by_script(text: str) -> str | None:
    """The language behind the script that most of a text is in; ``"latin"`` if that script cannot tell."""
    signs = {code: "".join(letters.findall(text)) for code, letters, _ in _SCRIPTS}
    latin = sum(map(len, _LATIN.findall(text)))
    # A sign of a script without spaces stands for about two letters.
    weights = {code: len(signs[code]) * (2 if unspaced else 1) for code, _, unspaced in _SCRIPTS}
    weights["han"] += weights["kana"]
    weights["kana"] = 0
    code = max(weights, key=lambda name: weights[name])
    total = latin + sum(weights.values())
    if latin * 2 > total:
        return "latin"
    if weights[code] * 2 < total:
        return None
    if code == "han":
        count, kana = len(signs["han"]) + len(signs["kana"]), len(signs["kana"])
        return None if count < _MIN_SIGNS else "ja" if kana > _MIN_KANA * count else "zh"
    if weights[code] < _MIN_LETTERS:
        return None
    for language, own in _OWN_LETTERS.get(code, ()):
        if own.search(signs[code]):
            return language
    return _LARGEST.get(code, code)


def _by_words(text: str) -> str | None:
    prose = _NOT_PROSE.sub(" ", text) if _NOT_PROSE_SIGN.search(text) else text
    words = (_ASCII_WORD if prose.isascii() else _WORD).findall(prose)
    count = len(words)
    if count < MIN_WORDS or len(_CODE_SIGN.findall(prose)) * _CODE_SHARE > count:
        return None
    points = _points(words)
    language = max(points, key=lambda name: points[name])
    found = points.pop(language)
    second = max(points.values())
    # The rival that matters most: English, or for English every other language.
    rival = second if language == "en" else points["en"]
    if found < max(_MIN_FOUND, _MIN_SHARE * count, second + _MIN_LEAD):
        return None
    return language if found >= max(rival + _ENGLISH_LEAD, rival * _ENGLISH_RATIO) else None


def _points(words: list[str]) -> dict[str, float]:
    points = dict.fromkeys(_FUNCTION_WORDS, 0.0)
    for (weight, languages), count in Counter(map(_weighed, map(str.lower, words))).items():
        for language in languages:
            points[language] += weight * count
    # What stands in a name or a title has been counted in full.
    table = _languages_by_word()
    last = len(words) - 1
    shouted = sum(map(str.isupper, words)) * 2 > len(words)
    for position, word in enumerate(words):
        if position == 0 or (word.islower() and word not in _PARTICLES):
            continue
        lowered = word.lower()
        inside_name = lowered in _PARTICLES and position < last and _is_name(words, position)
        in_title = word[0].isupper() and not shouted
        if inside_name or in_title:
            for language in table.get(lowered, ()):
                if inside_name or language != "en":
                    points[language] -= 1.0 - _PARTICLE
    return points


def _is_name(words: list[str], position: int) -> bool:
    """Whether a particle, or a chain of them, stands between two capitals."""
    before = next((w for w in reversed(words[max(0, position - _CHAIN) : position]) if w not in _PARTICLES), "")
    after = next((w for w in words[position + 1 : position + 1 + _CHAIN] if w not in _PARTICLES), "")
    return words[position].islower() and before[:1].isupper() and after[:1].isupper()


@lru_cache(maxsize=4096)
def _weighed(word: str) -> tuple[float, tuple[str, ...]]:
    """What a word counts, and for which languages."""
    languages = _languages_by_word().get(word)
    if languages is not None:
        return 1.0, languages
    if not _ANY_HINT.search(word):
        return _HINT, ()
    return _HINT, tuple(language for language, pattern in _HINT_PATTERNS.items() if pattern.search(word))


@lru_cache(maxsize=1)
def _languages_by_word() -> dict[str, tuple[str, ...]]:
    table: dict[str, list[str]] = {}
    for language, words in _FUNCTION_WORDS.items():
        for word in dict.fromkeys(words.split()):
            table.setdefault(word, []).append(language)
    return {word: tuple(languages) for word, languages in table.items()}

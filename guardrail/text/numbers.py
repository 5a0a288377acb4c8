"""Numbers in digits and in words: how a literal can be read, and what number words mean."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple


class NumberReading(NamedTuple):
    """One way to read a numeral.

    Attributes:
        amount: The number.
        step: Place value of its last written digit (0.01 for 3.14); rounding is judged against it.
        digits: Count of significant digits as written.
    """

    amount: Decimal
    step: Decimal
    digits: int


# One literal: ".5", or digits grouped by spaces or apostrophes, or digits joined by points and commas.
LITERAL = r"(?<![\w.,])\.\d+|\d{1,3}(?:[ ']\d{3}){1,8}(?![\d'])(?:[.,]\d+)?|\d+(?:[.,]\d+)*"

_ONE = Decimal(1)
_MAX_DIGITS = 40  # longer digit runs are keys, not quantities


def literal_readings(literal: str, language: str) -> tuple[NumberReading, ...]:
    """Read a numeral, likeliest reading first.

    A single point or comma before exactly three digits is ambiguous: it groups thousands in one notation and
    starts the decimals in the other. Both readings are kept unless the language of the text decides.

    Args:
        literal: Digits with separators, as matched by :data:`LITERAL`.
        language: ISO 639-1 code of the surrounding text, or ``""`` if unknown.

    Returns:
        The readings; empty for something that is no number, such as ``1.2.3``.

    Example:
        >>> [str(r.amount) for r in literal_readings("23.940", "it")]
        ['23940']
        >>> [str(r.amount) for r in literal_readings("23.940", "")]
        ['23.940', '23940']
    """
    if len(literal) > _MAX_DIGITS:
        return ()
    if " " in literal or "'" in literal:
        head, mark, tail = _split_decimals(literal)
        return (_reading(re.sub("[ ']", "", head), tail if mark else ""),)
    commas, points = literal.count(","), literal.count(".")
    if not commas and not points:
        return (_reading(literal, ""),)
    if commas and points:
        return _mixed(literal)
    mark = "," if commas else "."
    groups = literal.split(mark)
    if commas + points > 1:
        return (_reading("".join(groups), ""),) if _is_grouped(groups, mark) else ()
    return _single(groups, mark, language)


def _split_decimals(literal: str) -> tuple[str, str, str]:
    for mark in ".,":
        if mark in literal:
            return literal.partition(mark)
    return literal, "", ""


def _mixed(literal: str) -> tuple[NumberReading, ...]:
    decimal_mark = max(",.", key=literal.rindex)
    group_mark = "." if decimal_mark == "," else ","
    head, _, tail = literal.rpartition(decimal_mark)
    groups = head.split(group_mark)
    if decimal_mark in head or not _is_grouped(groups, group_mark):
        return ()
    return (_reading("".join(groups), tail),)


def _is_grouped(groups: Sequence[str], mark: str) -> bool:
    if not 1 <= len(groups[0]) <= 3 or len(groups[-1]) != 3:
        return False
    middle = {len(group) for group in groups[1:-1]}
    return middle <= {3} or (mark == "," and middle == {2})  # 12,34,567 is the Indian grouping


def _single(groups: Sequence[str], mark: str, language: str) -> tuple[NumberReading, ...]:
    head, tail = groups
    decimal = _reading(head, tail)
    if len(tail) != 3 or not head or len(head) > 3 or head.startswith("0"):
        return (decimal,)
    grouped = _reading(head + tail, "")
    english = language == "en"
    if mark == ",":
        return (grouped,) if english or not language else (decimal, grouped)
    if not language or english:
        return decimal, grouped
    return (grouped,)


def _reading(whole: str, decimals: str) -> NumberReading:
    amount = Decimal(f"{whole or '0'}.{decimals}" if decimals else whole or "0")
    step = _ONE.scaleb(-len(decimals))
    digits = (whole + decimals).lstrip("0")
    if not decimals:
        kept = digits.rstrip("0")
        step = _ONE.scaleb(len(digits) - len(kept)) if kept else _ONE
        digits = kept
    return NumberReading(amount, step, max(len(digits), 1))


# ------------------------------------------------------------------ words

_EN_UNITS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
).split()
_EN_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_EN_ORDINALS = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth "
    "fifteenth sixteenth seventeenth eighteenth nineteenth twentieth"
).split()

ENGLISH: dict[str, int] = {
    **{word: number for number, word in enumerate(_EN_UNITS)},
    **{word: 10 * number for number, word in enumerate(_EN_TENS, start=2)},
}
ORDINALS: dict[str, int] = {
    **{word: number for number, word in enumerate(_EN_ORDINALS, start=1)},
    **{f"{word[:-1]}ieth": 10 * number for number, word in enumerate(_EN_TENS, start=2)},
}
COLLECTIVES: dict[str, int] = {"dozen": 12, "dozens": 12, "score": 20}
MULTIPLICATIVES: dict[str, int] = {"once": 1, "twice": 2, "thrice": 3}

MAGNITUDES: dict[str, Decimal] = {
    word: Decimal(10) ** exponent
    for exponent, words in {
        2: "hundred hundreds centinaia",
        3: "thousand thousands mille mila migliaia tausend mil 千 ألف آلاف الف",
        5: "lakh lakhs",
        6: "million millions mn mln mio millionen milione milioni millón millones مليون ملايين 百万",
        7: "crore crores",
        9: "billion billions bn bln mrd milliarde milliarden miliardo miliardi milliard milliards مليار مليارات",
        12: "trillion trillions tn trn",
        4: "万 萬",
        8: "亿 億",
    }.items()
    for word in words.split()
}
# Single letters count as magnitudes only glued to a numeral or after a currency.
LETTER_MAGNITUDES: dict[str, Decimal] = {
    letter: Decimal(10) ** exponent for letter, exponent in {"k": 3, "K": 3, "M": 6, "B": 9, "T": 12}.items()
}


def _german() -> dict[str, int]:
    units = "null ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf".split()
    numbers = {word: number for number, word in enumerate(units)} | {"eins": 1}
    del numbers["ein"]  # the article
    stems = {3: "drei", 4: "vier", 5: "fünf", 6: "sech", 7: "sieb", 8: "acht", 9: "neun"}
    numbers |= {f"{stem}zehn": number + 10 for number, stem in stems.items()}
    tens = {20: "zwanzig", 30: "dreißig"} | {10 * n: f"{s}zig" for n, s in stems.items() if n > 3}
    for ten, word in tens.items():
        numbers[word] = ten
        numbers |= {f"{units[one]}und{word}": ten + one for one in range(1, 10)}
    numbers |= {"hundert": 100, "einhundert": 100, "tausend": 1000, "eintausend": 1000}
    numbers |= {f"{units[n]}hundert": 100 * n for n in range(2, 10)}
    return numbers | {f"{units[n]}tausend": 1000 * n for n in range(2, 13)}


def _italian() -> dict[str, int]:
    units = "zero uno due tre quattro cinque sei sette otto nove dieci undici dodici tredici quattordici quindici"
    units += " sedici diciassette diciotto diciannove"
    numbers = {word: number for number, word in enumerate(units.split())}
    names = list(numbers)
    del numbers["uno"]  # the article
    for ten, word in enumerate("venti trenta quaranta cinquanta sessanta settanta ottanta novanta".split(), start=2):
        numbers[word] = 10 * ten
        for one in range(1, 10):
            stem = word[:-1] if one in (1, 8) else word
            numbers[stem + ("tré" if one == 3 else names[one])] = 10 * ten + one
    numbers |= {"cento": 100, "mille": 1000}
    numbers |= {f"{names[n]}cento": 100 * n for n in range(2, 10)}
    return numbers | {f"{names[n]}mila": 1000 * n for n in range(2, 20)}


def _listed(words: str) -> dict[str, int]:
    return {word: int(number) for word, _, number in (pair.partition("=") for pair in words.split())}


# Words of other languages; some are everyday English words, so they count only in a text of their language.
FOREIGN: dict[str, dict[str, int]] = {
    "de": _german(),
    "it": _italian(),
    "fr": _listed(
        "zéro=0 deux=2 trois=3 quatre=4 cinq=5 six=6 sept=7 huit=8 neuf=9 dix=10 onze=11 douze=12 treize=13 "
        "quatorze=14 quinze=15 seize=16 vingt=20 trente=30 quarante=40 cinquante=50 soixante=60 cent=100 mille=1000"
    ),
    "es": _listed(
        "cero=0 dos=2 tres=3 cuatro=4 cinco=5 seis=6 siete=7 ocho=8 nueve=9 diez=10 once=11 doce=12 trece=13 "
        "catorce=14 quince=15 veinte=20 treinta=30 cuarenta=40 cincuenta=50 sesenta=60 setenta=70 ochenta=80 "
        "noventa=90 cien=100 ciento=100 mil=1000"
    ),
    "ar": _listed(
        "اثنان=2 اثنين=2 ثلاثة=3 ثلاث=3 أربعة=4 أربع=4 خمسة=5 خمس=5 ستة=6 ست=6 سبعة=7 سبع=7 ثمانية=8 تسعة=9 "
        "عشرة=10 عشر=10"
    ),
}
FOREIGN_WORDS = frozenset(word for table in FOREIGN.values() for word in table)
FRACTIONS: dict[str, Decimal] = {
    "half": Decimal("0.5"),
    "halves": Decimal("0.5"),
    "quarter": Decimal("0.25"),
    "quarters": Decimal("0.25"),
    "third": _ONE / 3,
    "thirds": _ONE / 3,
    "fifth": Decimal("0.2"),
    "fifths": Decimal("0.2"),
    "tenth": Decimal("0.1"),
    "tenths": Decimal("0.1"),
}
VULGAR: dict[str, Decimal] = {
    "½": Decimal("0.5"),
    "⅓": _ONE / 3,
    "⅔": Decimal(2) / 3,
    "¼": Decimal("0.25"),
    "¾": Decimal("0.75"),
    "⅕": Decimal("0.2"),
    "⅛": Decimal("0.125"),
    "⅜": Decimal("0.375"),
}

_CJK_DIGITS = {c: n for n, c in enumerate("〇一二三四五六七八九")} | {"零": 0, "两": 2, "兩": 2}
_CJK_PLACES = {"十": 10, "百": 100, "千": 1000, "万": 10_000, "萬": 10_000, "亿": 10**8, "億": 10**8}
CJK_NUMERAL = "[〇零一二三四五六七八九两兩十百千万萬亿億]"


def cjk_number(text: str) -> int:
    """Read a Chinese numeral.

    Example:
        >>> cjk_number("三十五"), cjk_number("两千"), cjk_number("一九二五")
        (35, 2000, 1925)
    """
    if len(text) > 1 and all(char in _CJK_DIGITS for char in text):
        return int("".join(str(_CJK_DIGITS[char]) for char in text[:_MAX_DIGITS]))
    total = section = digit = 0
    for char in text[:_MAX_DIGITS]:
        if char in _CJK_DIGITS:
            digit = _CJK_DIGITS[char]
        elif (place := _CJK_PLACES[char]) >= 10_000:
            total = (total + section + digit or 1) * place
            section = digit = 0
        else:
            section += (digit or 1) * place
            digit = 0
    return total + section + digit


def english_number(words: Sequence[str], at: int) -> tuple[int, int]:
    """Read an English number in words.

    Args:
        words: Lower-case words of a text; ``""`` breaks a number.
        at: Index of the word to start with.

    Returns:
        The number and the count of words it takes; a count of 0 if no number starts there.

    Example:
        >>> english_number("two hundred and five thousand visitors".split(), 0)
        (205000, 5)
    """
    total = current = 0
    taken = at
    floor = 1000  # the next part of a group must be smaller than the last: "twenty five", never "five twenty"
    while taken < len(words):
        word = words[taken]
        number = ENGLISH.get(word)
        if number is not None and (number < floor and (number > 0 or taken == at)):
            current += number
            floor = 10 if number >= 20 else 1
        elif word == "hundred" and 0 < current < 100 and taken > at:
            current *= 100
            floor = 100
        elif word in _EN_SCALES and current > 0:
            total += current * _EN_SCALES[word]
            current, floor = 0, 1000
        elif (
            word == "and"
            and floor >= 100
            and taken > at
            and words[taken + 1 : taken + 2]
            and (0 < ENGLISH.get(words[taken + 1], 0) < 100)
        ):
            pass
        else:
            break
        taken += 1
    return total + current, taken - at


_EN_SCALES = {"thousand": 1000, "million": 10**6, "billion": 10**9, "trillion": 10**12}

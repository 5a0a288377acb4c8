"""Units of measure and currencies: spellings, dimensions, factors to a common base."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import NamedTuple


class Unit(NamedTuple):
    """One meaning of a unit's spelling.

    Attributes:
        symbol: Canonical symbol.
        dimension: What it measures; amounts of one dimension are comparable.
        factor: Multiplier to the dimension's base unit.
        offset: Added after multiplying (temperatures only).
    """

    symbol: str
    dimension: str
    factor: Decimal
    offset: Decimal = Decimal(0)

    def to_base(self, amount: Decimal) -> Decimal:
        """Convert an amount in this unit to the base unit of its dimension."""
        return amount * self.factor + self.offset


# dimension -> "symbol factor spelling|spelling ..." (spellings in lower case; "_" stands for a space)
_TABLE: dict[str, str] = {
    "length": """
        mm 0.001 mm|millimetre|millimeter|millimetri|millimètre
        cm 0.01 cm|centimetre|centimeter|zentimeter|centimetri|centimètre|厘米|سم
        dm 0.1 dm|decimetre|decimeter
        m 1 m|metre|meter|metern|metri|metro|mètre|metros|米|متر|مترا
        km 1000 km|kilometre|kilometer|kilometern|chilometri|chilometro|kilomètre|kilómetros|公里|千米|كيلومتر|كم
        in 0.0254 inch|inche|zoll|pollici|pouce
        ft 0.3048 ft|foot|feet|piedi|pied|fuß
        yd 0.9144 yd|yard
        mi 1609.344 mi|mile|meile|meilen|miglia|miglio|millas|英里|ميل
        nmi 1852 nmi|nautical_mile
        µm 0.000001 µm|um|micrometre|micrometer|micron
        nm 0.000000001 nm|nanometre|nanometer
        ly 9460730472580800 light_year""",
    "mass": """
        ng 0.000000001 ng|nanogram
        µg 0.000001 µg|mcg|ug|microgram|mikrogramm|microgrammi
        mg 0.001 mg|milligram|milligramm|milligrammi|milligramme|毫克
        g 1 g|gram|gr|gramm|grammi|gramme|克
        kg 1000 kg|kilo|kilogram|kilogramm|chilo|chili|chilogrammi|kilogramme|公斤|千克|كيلوغرام|كجم
        t 1000000 t|tonne|tonn|tonnellate|tonnen|metric_ton|ton|吨
        ton 907184.74 ton
        lb 453.59237 lb|pound
        oz 28.349523125 oz|ounce
        st 6350.29318 stone""",
    "volume": """
        µl 0.000001 µl|ul|microlitre|microliter
        ml 0.001 ml|millilitre|milliliter|millilitri|毫升
        cl 0.01 cl|centilitre|centiliter
        dl 0.1 dl|decilitre|deciliter
        l 1 l|litre|liter|litern|litri|litro|升|لتر
        hl 100 hl|hectolitre|hectoliter
        m³ 1000 m³|m3|cubic_metre|cubic_meter|kubikmeter|metri_cubi|立方米
        gal 3.785411784 gal|gallon
        pt 0.473176473 pint
        bbl 158.987294928 barrel|bbl""",
    "area": """
        cm² 0.0001 cm²|cm2|square_centimetre|square_centimeter
        m² 1 m²|m2|sqm|sq_m|square_metre|square_meter|quadratmeter|metri_quadrati|mètres_carrés|平方米
        km² 1000000 km²|km2|sq_km|square_kilometre|square_kilometer|quadratkilometer|chilometri_quadrati|平方公里
        ha 10000 ha|hectare|hektar|ettari|公顷
        acre 4046.8564224 acre|acri
        ft² 0.09290304 ft²|sq_ft|sqft|square_foot|square_feet
        mi² 2589988.110336 mi²|sq_mi|square_mile""",
    "duration": """
        µs 0.000001 µs|microsecond
        ms 0.001 ms|millisecond|millisekunden
        s 1 s|sec|second|sekunde|sekunden|secondi|seconde|segundo|秒|ثانية
        min 60 min|minute|minuten|minuti|minuto|分钟|分鐘|دقيقة|دقائق
        h 3600 h|hr|hour|stunde|stunden|ore|ora|heure|hora|小时|小時|ساعة|ساعات
        day 86400 day|d|tag|tage|tagen|giorni|giorno|jour|días|天|يوم|أيام|يوما
        week 604800 week|wk|woche|wochen|settimane|settimana|semaine|semana|周|星期|أسبوع|أسابيع""",
    "months": """
        month 1 month|monat|monate|monaten|mesi|mese|mois|meses|个月|شهر|أشهر
        year 12 year|yr|jahr|jahre|jahren|anni|anno|année|años|年|سنة|سنوات|عام|عاما
        year 12 year-old|year_old
        decade 120 decade
        century 1200 century|centurie""",
    "workdays": "workday 1 working_day|business_day|workday|werktage|arbeitstage",
    "data": """
        bit 0.125 bit
        B 1 byte
        KB 1000 kb|kilobyte
        MB 1000000 mb|megabyte
        GB 1000000000 gb|gigabyte
        TB 1000000000000 tb|terabyte
        PB 1000000000000000 pb|petabyte
        KiB 1024 kib
        MiB 1048576 mib
        GiB 1073741824 gib
        TiB 1099511627776 tib""",
    "data rate": """
        kbit/s 1000 kbps|kbit/s
        Mbit/s 1000000 mbps|mbit/s|megabits_per_second
        Gbit/s 1000000000 gbps|gbit/s|gigabits_per_second""",
    "speed": """
        km/h 0.277777777777777777777777778 km/h|kmh|kph|kilometres_per_hour|kilometers_per_hour|stundenkilometer
        mph 0.44704 mph|miles_per_hour|mi/h
        m/s 1 m/s|metres_per_second|meters_per_second
        kn 0.514444444444444444444444444 knot|kn""",
    "power": """
        mW 0.001 milliwatt
        W 1 w|watt
        kW 1000 kw|kilowatt
        MW 1000000 mw|megawatt
        GW 1000000000 gw|gigawatt
        hp 745.69987158227022 hp|horsepower""",
    "energy": """
        J 1 joule|j
        kJ 1000 kj|kilojoule
        cal 4.184 calorie
        kcal 4184 kcal|kilocalorie
        Wh 3600 wh|watt-hour|watt_hour
        kWh 3600000 kwh|kilowatt-hour|kilowatt_hour
        MWh 3600000000 mwh|megawatt-hour|megawatt_hour
        GWh 3600000000000 gwh|gigawatt-hour|gigawatt_hour
        TWh 3600000000000000 twh|terawatt-hour|terawatt_hour""",
    "voltage": "V 1 v|volt\nkV 1000 kv|kilovolt\nmV 0.001 millivolt",
    "current": "A 1 amp|ampere\nmA 0.001 ma|milliamp",
    "charge": "mAh 1 mah\nAh 1000 ah",
    "frequency": "Hz 1 hz|hertz\nkHz 1000 khz\nMHz 1000000 mhz\nGHz 1000000000 ghz|gigahertz",
    "pressure": """
        Pa 1 pa|pascal
        hPa 100 hpa
        kPa 1000 kpa
        MPa 1000000 mpa
        bar 100000 bar
        mbar 100 mbar
        psi 6894.757293168 psi
        mmHg 133.322387415 mmhg""",
    "dose units": "IU 1 iu|ui|i.u.|international_unit",
    "substance": "mmol 0.001 mmol|millimole\nmol 1 mole|mol\nµmol 0.000001 µmol",
    "loudness": "dB 1 db|decibel",
    "ratio": """
        % 0.01 %|percent|per_cent|percento|per_cento|prozent|pour_cent|por_ciento|pct|بالمئة|بالمائة|في_المئة
        ‰ 0.001 ‰|per_mille|per_mil""",
    "points": """
        pp 1 percentage_point|pp|percent_point|percentage-point|prozentpunkte|punti_percentuali
        bp 0.01 bp|bps|basis_point|basispunkte""",
    "times": "times 1 time|mal|volte|fois|veces|次|مرات",
    "fold": "fold 1 fold",
    "angle": "° 1 °|degree|grad|gradi",
}
_TEMPERATURES = {
    "°C": (
        "1",
        "273.15",
        "°c|celsius|degree_celsius|degrees_celsius|degree_c|degrees_c|grad_celsius|gradi_celsius|℃|摄氏度",
    ),
    "°F": (
        "0.5555555555555555555555555556",
        "255.3722222222222222222222222",
        "°f|fahrenheit|degree_fahrenheit|degrees_fahrenheit|degree_f|degrees_f|℉",
    ),
    "K": ("1", "0", "kelvin"),
}
_CURRENCIES = {
    "USD": "$ us$ usd dollar dollari دولار 美元",
    "EUR": "€ eur euro euros يورو 欧元",
    "GBP": "£ gbp pound sterling quid sterline",
    "JPY": "¥ jpy yen 日元",
    "INR": "₹ inr rupee",
    "CHF": "chf franken",
    "FRF": "franc franchi",
    "CAD": "c$ ca$ cad",
    "AUD": "a$ au$ aud",
    "CNY": "cny rmb yuan renminbi 元 人民币",
    "SEK": "sek",
    "NOK": "nok",
    "DKK": "dkk",
    "crown": "crown krone kroner kronor kr",
    "PLN": "pln zł zloty",
    "RUB": "₽ rub rouble ruble",
    "KRW": "₩ krw",
    "BRL": "r$ brl reais",
    "TRY": "₺ try_lira lira lire",
    "ILS": "₪ ils shekel",
    "MXN": "mxn peso",
}
# Written in upper case these mean something else than in lower case.
_CASED: dict[str, tuple[Unit, ...]] = {
    "K": (Unit("K", "temperature", Decimal(1)),),
    "C": (Unit("°C", "temperature", Decimal(1), Decimal("273.15")),),
    "F": (
        Unit("°F", "temperature", Decimal("0.5555555555555555555555555556"), Decimal("255.3722222222222222222222222")),
    ),
    "Mb": (Unit("Mbit", "data", Decimal(125000)),),
    "Gb": (Unit("Gbit", "data", Decimal(125000000)),),
    "mW": (Unit("mW", "power", Decimal("0.001")),),
    "mV": (Unit("mV", "voltage", Decimal("0.001")),),
    "A": (Unit("A", "current", Decimal(1)),),
    **dict.fromkeys(("M", "D", "G", "S", "H", "B", "T"), ()),
}
# An invented precision is dangerous here: no rounding unless the text says "about".
DOSE_SYMBOLS = frozenset({"ng", "µg", "mg", "IU", "ml", "µl", "mmol", "mol", "µmol"})


def _build() -> dict[str, tuple[Unit, ...]]:
    units: dict[str, tuple[Unit, ...]] = {}

    def add(spelling: str, unit: Unit) -> None:
        word = spelling.replace("_", " ")
        units[word] = (*units.get(word, ()), unit)

    for dimension, lines in _TABLE.items():
        for line in lines.strip().splitlines():
            symbol, factor, spellings = line.split(maxsplit=2)
            for spelling in spellings.split("|"):
                add(spelling, Unit(symbol, dimension, Decimal(factor)))
    for symbol, (factor, offset, spellings) in _TEMPERATURES.items():
        for spelling in spellings.split("|"):
            add(spelling, Unit(symbol, "temperature", Decimal(factor), Decimal(offset)))
    for bare in ("degree", "°"):
        for symbol in ("°C", "°F"):
            factor, offset, _ = _TEMPERATURES[symbol]
            units[bare] = (*units[bare], Unit(symbol, "temperature", Decimal(factor), Decimal(offset)))
    for code, spellings in _CURRENCIES.items():
        for spelling in spellings.split():
            add(spelling, Unit(code, f"money:{code}", Decimal(1)))
    for cents, code in (("cent", "USD"), ("cent", "EUR"), ("¢", "USD"), ("pence", "GBP")):
        add(cents, Unit(f"0.01 {code}", f"money:{code}", Decimal("0.01")))
    return units


UNITS = _build()
_MONEY_PREFIX = re.compile(r"(?:(?:us|au|ca|[acr])?\$|[€£¥₹₽₩₺₪]|[a-z]{3})$")

_WORD = r"(?:[^\W\d_]{1,40}|[%‰¢€£¥₹₽₩₺₪$℃℉])[23²³]?"
_LETTERS = r"[^\W\d_]{1,40}"
_CANDIDATE = re.compile(
    rf"[ \t]{{0,5}}-?[ ]?([°º][ ]?(?:[CcFf](?!\w))?|{_WORD})"
    rf"(?:(/{_LETTERS}[23²³]?)|[ -]({_LETTERS})(?:[ -]({_LETTERS}))?)?"
)


def currency_before(text: str) -> tuple[Unit, ...]:
    """The currency that a sign or code directly before a numeral names.

    Args:
        text: Lower-case text that ends with the sign or code.

    Returns:
        Its meaning; empty if it is none.
    """
    match = _MONEY_PREFIX.search(text)
    units = UNITS.get(match.group(), ()) if match else ()
    return units if units and units[0].dimension.startswith("money") else ()


def _lookup(word: str) -> tuple[Unit, ...]:
    found = UNITS.get(word)
    if found is None and len(word) > 2 and word.endswith("s"):
        found = UNITS.get(word[:-1])
    return found or ()


def _compound(word: str, below: str) -> tuple[Unit, ...]:
    over, under = _lookup(word), _lookup(below)
    if not over or not under or not under[0].factor:
        return ()
    unit, per = over[0], under[0]
    if per.dimension == "months" or per.offset or unit.offset:
        return ()
    return (Unit(f"{unit.symbol}/{per.symbol}", f"{unit.dimension}/{per.dimension}", unit.factor / per.factor),)


def unit_at(text: str, low: str, at: int) -> tuple[tuple[Unit, ...], int]:
    """Read a unit that follows a numeral.

    Args:
        text: The text, letter case kept.
        low: The same text in lower case, of the same length.
        at: Offset directly after the numeral.

    Returns:
        The meanings of the unit, likeliest first, and the offset after it; ``((), at)`` if there is none.

    Example:
        >>> units, end = unit_at("10 km long", "10 km long", 2)
        >>> units[0].symbol, end
        ('km', 5)
    """
    match = _CANDIDATE.match(low, at)
    if match is None:
        return (), at
    first, slash, second, third = match.groups()
    if "\u4e00" <= first[0] <= "\u9fff":  # no spaces: the unit is a prefix of what follows
        for length in (3, 2, 1):
            if len(first) >= length and (units := UNITS.get(first[:length])):
                return units, match.start(1) + length
        return (), at
    first = first.replace("º", "°").replace(" ", "")
    if slash:
        whole = _lookup(first + slash) or _compound(first, slash[1:])
        if whole:
            return whole, match.end(2)
    if third and (units := _lookup(f"{first} {second} {third}")):
        return units, match.end(4)
    if second:
        hyphenated = low[match.end(1)] == "-"
        units = _lookup(f"{first} {second}") or (_lookup(f"{first}-{second}") if hyphenated else ())
        if units:
            return units, match.end(3)
    cased = _CASED.get(text[match.start(1) : match.end(1)])
    units = cased if cased is not None else _lookup(first)
    return (units, match.end(1)) if units else ((), at)

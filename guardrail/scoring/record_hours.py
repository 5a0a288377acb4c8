"""Opening hours of a claim against those of a record, day by day."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from guardrail.scoring.record_facts import Fact, FactKind, clock
from guardrail.scoring.timetables import WEEK
from guardrail.text.dates import WEEKDAYS
from guardrail.text.identifiers import same_length_fold, same_length_lower
from guardrail.types import Clash, ClashKind

_DAY_MINUTES = 1440
_ALL = frozenset(range(7))
_GROUPS = {
    "weekday": frozenset(range(5)), "weekdays": frozenset(range(5)), "weekend": frozenset((5, 6)),
    "weekends": frozenset((5, 6)), "daily": _ALL, "every day": _ALL, "each day": _ALL, "seven days a week": _ALL,
    "7 days a week": _ALL, "all week": _ALL, "every day of the week": _ALL, "everyday": _ALL,
}  # fmt: skip
_ENGLISH = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_DAY = "|".join(name for name in WEEKDAYS if name.startswith(_ENGLISH) and name.isascii())
_TIME = r"(?P<{0}h>\d{{1,2}})(?:[:.](?P<{0}m>\d{{2}}))?[ ]?(?P<{0}a>[ap]\.?[ ]?m\b\.?)?|(?P<{0}w>noon|midday|midnight)"
_RANGE_DAYS = r"(?:\s*(?:-|–|—|to|through|thru|till|until)\s*)"
_EVENT = re.compile(
    rf"(?P<days>\b(?:every day of the week|every day|each day|(?:seven|7) days a week|all week|everyday|daily"
    rf"|weekdays?|weekends?|(?:{_DAY})(?:{_RANGE_DAYS}(?:{_DAY}))?)\b)"
    r"|(?P<always>\b(?:24 hours|24/7|around the clock|24 h)\b)"
    r"|(?P<closed>\b(?:is |are |stays? |remains? )?(?:closed|not open)\b)"
    rf"|(?P<except>\b(?:except|excluding|but not|but(?= (?:on )?(?:{_DAY})\b)|apart from|other than|besides)\b)"
    rf"|(?P<range>\b(?:{_TIME.format('x')})\s*(?:-|–|—|to|until|till|through|and)\s*(?:{_TIME.format('y')})(?!\w))"
    rf"|(?P<until>\b(?:until|till|til|closes? at|closing at)\s+(?:{_TIME.format('u')})(?!\w))"
    rf"|(?P<since>\b(?:opens?|opening|open|starting|starts)\s+(?:at|from)\s+(?:{_TIME.format('s')})(?!\w)"
    r"(?!\s*(?:[-–—:.]\s?\w|[ap]\.?[ ]?m\b|to\b|through\b)))"
)
_SPEAKS_OF_HOURS = re.compile(
    r"\b(?:opens?|opening|closes?|closed|closing|(?<!\d )(?<!\d-)hours|operates?|operating)\b"
)
_REPORTED = re.compile(
    r"\b(?:said|says?|told|mention\w*|claim\w*|complain\w*|review\w*|customers?|reports?|reported|unlike|was|were|"
    r"not specified|not given|not provided|not listed|no information|unclear)\b|\?"
)
_OTHER = re.compile(
    r"\b(?:happy hour|breakfast|brunch|lunch|dinner|kitchen|check-?in|check-?out|reception|front desk|delivery|pool|"
    r"gym|bar|spa|may|might|could|would|should|if|unless|sometimes|usually|vary|varies|varying|about|around|approximately|"
    r"roughly|early|late|earlier|later|earliest|latest|before|after|most|some|holidays?|than|differ\w*|different|"
    r"rang\w+|extra|otherwise|others?|rest|respectively|first|last|normally|midweek|longer|extended|nothing|doors|"
    r"during the week|and until|(?:clos|end)\w+(?: times?)? between)\b"
    r"|\bexcept\b[^.;]*\bwhen\b"
    rf"|\bor\b[^.;]*\b(?:{_DAY})\b"
)
_OPEN_FROM = re.compile(r"\b(?:opens?|hours|operates?)\b[^.,;]{0,40}$")
_LENGTH = re.compile(r"[\s-]*(?:hours?|hrs?|h|minutes?|min|days?|weeks?|months?|years?|%|percent)\b")
_HOURS_KEYS = frozenset(("hour", "hours", "opening", "schedule", "time", "times", "openinghours", "open"))
_PADDING = re.compile(r"[\s,:]*(?:on|the|every|each|and|is|are|all|day|only)?[\s,]*")


class _Event(NamedTuple):
    kind: str  # days, always, closed, except, range, until, since
    start: int
    end: int
    days: frozenset[int] = frozenset()
    opens: frozenset[int] = frozenset()
    closes: frozenset[int] = frozenset()


class Hours:
    """The opening hours of one record.

    Args:
        facts: Its facts; those that are not opening hours are ignored.

    Example:
        >>> from guardrail.scoring.record_facts import record_facts
        >>> hours = Hours(record_facts('{"hours": {"Monday": "9:0-17:0", "Tuesday": "9:0-18:0"}}'))
        >>> [c.claim_text for c in hours.clashes("It is open on Tuesdays from 9 AM to 5 PM.")]
        ['9 am to 5 pm']
        >>> hours.clashes("It is open on Mondays from 9 AM to 5 PM.")
        []
    """

    def __init__(self, facts: Sequence[Fact]) -> None:
        self._days: dict[int, Fact] = {}
        self._doubtful: set[int] = set()  # "0:0-0:0" is always open, or not known
        for fact in facts:
            days = _key_days(fact.path[-1])
            of_hours = fact.kind in (FactKind.HOURS, FactKind.UNKNOWN, FactKind.TEXT)
            if not days or not of_hours or (len(fact.path) > 1 and not _HOURS_KEYS & set(fact.path[-2])):
                continue
            for day in days:
                if day in self._days or fact.kind is not FactKind.HOURS or any(a & b for a, b in fact.spans):
                    self._doubtful.add(day)
                self._days.setdefault(day, fact)
        if not any(fact.kind is FactKind.HOURS for fact in self._days.values()):
            self._days = {}

    def clashes(self, claim: str) -> list[Clash]:
        """What a claim says about opening hours that the record does not say.

        Args:
            claim: One sentence.

        Returns:
            At most one clash per stated time; contradictions first. Nothing if the sentence may speak of other hours.
        """
        if not self._days:
            return []
        low = same_length_lower(same_length_fold(claim))
        spoken = _SPEAKS_OF_HOURS.search(low)
        if _REPORTED.search(low) or not (spoken or _is_line(low)):
            return []
        events = list(_events(low))
        if not events or _OTHER.search(low, _clause_start(low, events[0].start, spoken)):
            return []
        found: list[Clash] = []
        for event, days in _bound(events, low):
            clash = self._compare(event, days, low[event.start : event.end].strip(" ."))
            if clash is not None:
                found.append(clash)
        return sorted(found, key=lambda clash: not clash.contradicts)

    def _compare(self, event: _Event, days: frozenset[int] | None, said: str) -> Clash | None:
        if days is None:  # no day is named: wrong only if it is true of no day
            if event.kind in ("closed", "days"):
                return None
            known = [self._against(event, day) for day in sorted(self._days.keys() - self._doubtful)]
            return _clash(said, known[0]) if known and all(known) else None
        for day in sorted(days & self._days.keys()):
            evidence = self._against(event, day)
            if evidence:
                return _clash(said, evidence)
        if event.kind != "closed" and not days <= self._days.keys():
            return Clash(kind=ClashKind.DATE, claim_text=said, evidence_text="", contradicts=False)
        return None

    def _against(self, event: _Event, day: int) -> str:
        """What the record says of a day, if it is not what the claim says."""
        fact = self._days[day]
        spans = fact.spans
        if day in self._doubtful:
            return ""
        evidence = f"{WEEK[day]}: {fact.value}"
        if event.kind == "closed":
            return evidence if spans else ""
        if not spans:
            return evidence
        if event.kind == "always":
            whole = any(min(a) == 0 and max(b) >= _DAY_MINUTES - 1 for a, b in spans)
            return "" if whole else evidence
        if event.kind == "days":
            return ""
        opens = not event.opens or any(event.opens & a for a, _ in spans)
        closes = not event.closes or any(event.closes & b for _, b in spans)
        return "" if opens and closes else evidence


def _clause_start(low: str, event: int, spoken: re.Match[str] | None) -> int:
    """Where the clause begins that speaks of hours; what stands before may speak of anything."""
    first = min(event, spoken.start()) if spoken else event
    return max(low.rfind(mark, 0, first) for mark in (",", ";", " but ", " and ")) + 1


def _is_line(low: str) -> bool:
    """Whether a claim is a line of a timetable: nothing but days and times."""
    return not any(map(str.isalnum, _EVENT.sub("", low)))


def _clash(said: str, evidence: str) -> Clash:
    return Clash(kind=ClashKind.DATE, claim_text=said, evidence_text=evidence)


def _key_days(words: tuple[str, ...]) -> frozenset[int]:
    text = " ".join(words)
    if text in _GROUPS:
        return _GROUPS[text]
    named = [WEEKDAYS.get(word) for word in words]
    if not named or any(day is None for day in named):
        return frozenset()
    days = [day for day in named if day is not None]
    return _between(days[0], days[-1]) if len(days) == 2 else frozenset(days)


def _between(first: int, last: int) -> frozenset[int]:
    return frozenset((first + step) % 7 for step in range((last - first) % 7 + 1))


def _events(low: str) -> Iterator[_Event]:
    for match in _EVENT.finditer(low):
        kind = next(k for k in ("days", "always", "closed", "except", "range", "until", "since") if match[k])
        start, end = match.span()
        if kind == "days":
            yield _Event(kind, start, end, days=_days(match[0]))
        elif kind == "range":
            opens, closes = _time(match, "x"), _time(match, "y")
            if match["xa"] is None and match["ya"] and match["xw"] is None and opens and closes:
                opens = frozenset(t for t in opens if t < max(closes)) or opens  # "11 to 9 PM"
            bare = not (match["xa"] or match["ya"] or match["xm"] or match["ym"] or match["xw"] or match["yw"])
            if opens and closes and not (bare and (_LENGTH.match(low, end) or not _OPEN_FROM.search(low, 0, start))):
                yield _Event(kind, start, end, opens=opens, closes=closes)
        elif kind == "until":
            yield _Event(kind, start, end, closes=_time(match, "u"))
        elif kind == "since":
            yield _Event(kind, start, end, opens=_time(match, "s"))
        else:
            yield _Event(kind, start, end)


def _time(match: re.Match[str], prefix: str) -> frozenset[int]:
    half = match[prefix + "a"]
    return (
        clock(match[prefix + "h"], match[prefix + "m"], half[0] if half else None, match[prefix + "w"]) or frozenset()
    )


def _days(text: str) -> frozenset[int]:
    if text in _GROUPS:
        return _GROUPS[text]
    if "every" in text:
        return _ALL
    named = [WEEKDAYS[word] for word in re.findall(r"[a-z]+", text) if word in WEEKDAYS]
    return _between(named[0], named[-1])


def _bound(events: list[_Event], low: str) -> list[tuple[_Event, frozenset[int] | None]]:
    """Each time with the days that it is said of; nothing if the order of days and times leaves that open."""
    merged = _merged(events, low)
    if merged is None:
        return []
    found: list[tuple[_Event, frozenset[int] | None]] = []
    rest: list[_Event] = []
    at = 0
    while at < len(merged):
        event = merged[at]
        following = merged[at + 1] if at + 1 < len(merged) else None
        if event.kind == "closed":
            if following and following.kind == "days" and _PADDING.fullmatch(low, event.end, following.start):
                found.append((event, following.days))
                at += 2
                continue
            if rest and rest[-1].kind == "days":
                found.append((event, rest.pop().days))
        else:
            rest.append(event)
        at += 1
    times = [event for event in rest if event.kind != "days"]
    days = [event for event in rest if event.kind == "days"]
    if not times:
        spoken = re.search(r"\bopen\b", low) and not found
        return [*found, *((event, event.days) for event in days if spoken and not re.search(r"\bnot\b|n't\b", low))]
    if not days:
        return [*found, *((event, None) for event in times)] if len(times) == 1 and not found else found
    pairs = list(zip(rest[::2], rest[1::2], strict=False))
    if len(rest) % 2 or any((a.kind == "days") == (b.kind == "days") for a, b in pairs):
        return found
    return [*found, *((b, a.days) if a.kind == "days" else (a, b.days) for a, b in pairs)]


def _merged(events: list[_Event], low: str) -> list[_Event] | None:
    """Neighbouring days as one set, opening and closing times as one span, exceptions taken out."""
    merged: list[_Event] = []
    excluding = False
    for event in events:
        last = merged[-1] if merged else None
        if event.kind == "except":
            excluding = True
            continue
        if excluding:
            base = next((i for i in range(len(merged) - 1, -1, -1) if merged[i].kind == "days"), None)
            if event.kind != "days" or base is None:
                return None
            merged[base] = merged[base]._replace(days=merged[base].days - event.days)
            excluding = False
            continue
        between = low[last.end : event.start] if last else ""
        joined = re.fullmatch(r"[\s,]*(?:and|&|or)?[\s,]*(?:on )?", between)
        if joined and last and re.match(r"\s*,\s*and\b", between) and "," not in low[last.start : last.end]:
            joined = None  # "on Monday and Tuesday, and on Sunday it …"
        if last and last.kind == event.kind == "days" and joined:
            merged[-1] = last._replace(end=event.end, days=last.days | event.days)
        elif last and last.kind == "since" and event.kind == "until":
            merged[-1] = _Event("range", last.start, event.end, opens=last.opens, closes=event.closes)
        elif last and last.kind == "always" and event.kind == "days" and event.days == _ALL:
            merged.append(event)
        else:
            merged.append(event)
    return None if excluding else merged

"""Other words for the same thing, and small words that turn or stretch a statement."""

from __future__ import annotations

import random
import re

from guardrail.training.perturb.bank import OPENINGS
from guardrail.training.perturb.draft import Draft, lowered, outside
from guardrail.training.perturb.rephrase import is_order
from guardrail.training.perturb.words import TIMELESS, antonyms, synonyms, third, verbs

_SYNONYMS = synonyms()
_ANTONYMS = antonyms()
_VERBS = verbs()
_WORD = re.compile(r"(?<![\w'’-])[A-Za-z][a-z]+(?![\w'’-])")
_BEFORE_BASE = re.compile(r"\b(?:to|can|could|will|would|may|might|must|should|not|also) $")
_FITS = {
    "before": r"before (?!\w+ing\b)(?=the|his|her|a|they|he|she|you|it|\d|[A-Z])",
    "after": r"after (?=the|his|her|a|they|he|she|you|it|\d|[A-Z])",
    "over": r"(?<!all )over (?=\d|\$|one|two|half)",
    "under": r"under (?=\d|\$|one|two)",
    "above": r"above (?=\d|the|\$)",
    "below": r"below (?=\d|the|\$)",
    "first": r"first (?=[a-z]+)(?!aid|name|half|of all|lady)",
    "last": r"(?<=the )last (?=[a-z]+)(?!name)",
    "more": r"more than|more (?=[a-z]+ than)",
    "most": r"(?<=the )most (?=[a-z]+)",
    "winter": r"winter",
    "summer": r"summer",
    "early": r"(?<!as )early (?=in|on|\d|stage|child)",
    "late": r"late (?=in|on|\d)",
    "best": r"best (?=[a-z]+)",
    "new": r"(?<=[aA] )new (?=[a-z])",
    "old": r"(?<=[a-z] )old (?=[a-z])",
    "high": r"high (?=[a-z]+)(?!school|court)",
    "hard": r"(?:is|are|was|were) hard",
    "long": r"[aA] long (?=[a-z])",
    "fast": r"(?:is|are|was|were|too) fast",
    "full": r"(?:is|are|was|were) full",
    "many": r"[mM]any (?=[a-z])",
    "day": r"during the day|(?<=[aA] )day$",
    "night": r"at night",
    "start": r"start of|(?<=the )start ",
    "deep": r"(?:is|are|very) deep",
    "few": r"(?<![aA] )[fF]ew (?=[a-z])",
    "win": r"(?:to|will|can|could|would|not) win",
    "lose": r"(?:to|will|can|could|would|not) lose",
    "help": r"(?:to|will|can|could|would|may) help",
    "buy": r"(?:to|will|can|could|would) buy",
    "sell": r"(?:to|will|can|could|would) sell",
    "support": r"(?:to|will|can|could|would) support",
    "lead": r"(?:to|will|can|could|would) lead",
}
_FIT = {word: re.compile(pattern) for word, pattern in _FITS.items()}
_IDIOM = re.compile(
    r"(?:at|in|for|the|no|as) (?:least|best|most|last|first|present|least)$|\b(?:United|New|South|North"
    r"|West|East|Prime|High|General|White|Supreme|Hall|well|get|gets|getting|got|so|too|no longer|as)$"
)
_AUX = re.compile(
    r"\b(?:is|are|was|were|can|could|will|would|should|must|does|do|did)\b(?! ?n't| not\b|n’t| (?:also"
    r"|only|never|no)\b)"
    r"|\b(?:has|have|had) (?=(?:been|become|\w{3,}ed)\b)"
)
_SUBORDINATE = re.compile(
    r"\b(?:who|which|whichever|that|if|when|what|where|whether|unless|because|some|several|many|most|few|although"
    r"|while|not|never|no)\b|n't|\bnone\b",
    re.IGNORECASE,
)
_NOT = re.compile(
    r"\b(?:(is|are|was|were|can|could|will|would|should|must|has|have|had|does|do|did)(?:n['’]t| not)"
    r"|(can)not)\b(?! (?:only|just|necessarily|all|every|always|even)\b)"
)
_PAST = re.compile(r"(?<=[a-z] )(\w{3,})(?= (?:the|a|an|his|her|their|to|in|on|at|for|from|with|by|[A-Z\d]))")
_STRETCH = (
    (r"\b[Ss]ome of (?=the|these|those|his|her|their)", "all of "),
    (r"\b[Ss]ome (?=(?!one|how)[a-z]+s\b)", "all "),
    (r"\b[Mm]any of the ", "all of the "),
    (r"\b[Mm]any (?!years|times|days|months|weeks|hours|minutes|decades|centuries)(?=[a-z]+s\b)", "all "),
    (r"\b[Mm]ost of the ", "all of the "),
    (r"(?<!the )\b[Mm]ost (?=[a-z]+s\b)", "all "),
    (r"\b[Ss]everal (?=[a-z]+s\b)", "all "),
    (r"\b[Oo]ften\b", "always"),
    (r"\b[Uu]sually\b", "always"),
    (r"\b[Ss]ometimes\b", "always"),
    (r"\b[Gg]enerally\b", "always"),
    (r"\b[Tt]ypically\b", "always"),
    (r"\b[Ff]requently\b", "constantly"),
    (r"\bmay(?= [a-z])(?! (?:not|be able))", "will"),
    (r"\bmay(?= [a-z])(?! not)", "must"),
    (r"\bmight(?= [a-z])(?! not)", "will"),
    (r"\bcould(?= [a-z])(?! not)", "will"),
    (r"\bcan(?= [a-z])(?! not)", "will always"),
    (r"\bcan(?= [a-z])(?! not)", "must"),
    (r"\bshould(?= [a-z])(?! not)", "must"),
    (r"\b[Oo]ccasionally\b", "constantly"),
    (r"\b[Rr]arely\b", "never"),
    (r"\b[Ff]ew (?=[a-z]+s\b)", "no "),
    (r"\bsuggests?(?= that)", "proves"),
    (r"\b(?:is|are) likely to\b", "will"),
    (r"\bis expected to\b", "will"),
    (r"\bare expected to\b", "will"),
    (r"\btends? to\b", "always"),
    (r"\bplans? to\b", "has begun to"),
    (r"\bhopes? to\b", "is going to"),
    (r"\bin some cases\b", "in all cases"),
    (r"\bin most cases\b", "in every case"),
    (r"\bpart of the\b", "the entire"),
    (r"\bone of the most\b", "by far the most"),
    (r"\ballegedly\b", "demonstrably"),
    (r"\breportedly\b", "officially"),
    (r"\bwas accused of\b", "was convicted of"),
    (r"\bwere accused of\b", "were convicted of"),
    (r"\bcharged with\b", "convicted of"),
    (r"\bis considered\b", "is"),
    (r"\bare considered\b", "are"),
    (r"\bmay have been\b", "was"),
    (r"\bmay have\b", "certainly"),
    (r"\bsuspected\b", "proven"),
    (r"\bassociated with\b", "caused by"),
    (r"\blinked to\b", "caused by"),
    (r"\bpropos(?:ed|es) to\b", "decided to"),
    (r"\battempted to\b", "managed to"),
    (r"\btried to\b", "managed to"),
    (r"\balmost\b(?= [a-z])", "completely"),
    (r"\bnearly\b(?= [a-z])", "completely"),
    (r"\bpartly\b", "solely"),
    (r"\bhelps? (?:to )?prevent\b", "prevents"),
)
_STRETCHES = tuple((re.compile(pattern), new) for pattern, new in _STRETCH)
_HEDGE = re.compile(
    r"(?:\b(?:reportedly|allegedly|apparently|possibly|perhaps|probably|likely|presumably|supposedly"
    r"|alleged|suspected|potentially) )(?=([a-z]+))"
)
_LIMIT = re.compile(
    r"\b(up to|at least|at most|more than|less than|fewer than|no more than|about|approximately|around"
    r"|roughly|nearly|almost|over|an estimated) (?!\d+(?:st|nd|rd|th)\b)(?=([$€£]?\d[\d,.]*\d|\d|(?:two"
    r"|three|four|five|six|ten"
    r"|twelve|half)\b))"
)
_CONDITION = re.compile(r"^(?:If|Unless|As long as|Provided that|Depending on) [^,;]{5,90}, (?=\w)")
_CONDITION_LAST = re.compile(r",? (?:if|unless|as long as|provided that|only when) [^,;:()]{6,90}(?=\.$)")


def use_synonyms(draft: Draft, rng: random.Random, most: int = 4) -> int:
    """Replace some words by others of the same meaning; returns how many.

    Example:
        >>> draft = Draft("The doctor said children need an additional test."); use_synonyms(draft, random.Random(1), 9)
        4
        >>> draft.text
        'The physician stated kids need a further test.'
    """
    found = [m for m in _WORD.finditer(draft.text) if _has_synonym(draft.text, m)]
    rng.shuffle(found)
    chosen = sorted(found[: rng.randint(1, most) if most < 9 else most], key=lambda m: -m.start())
    for match in chosen:
        draft.word(*match.span(), _SYNONYMS[match[0].lower()])
    return len(chosen)


def _has_synonym(text: str, match: re.Match[str]) -> bool:
    word = match[0]
    if word.lower() not in _SYNONYMS or (match.start() and word[0].isupper()):
        return False
    before, after = text[max(0, match.start() - 14) : match.start()], text[match.end() : match.end() + 10]
    if after[:2].lstrip()[:1].isupper() and word not in ("said", "says"):
        return False
    if re.match(r" (?:up|out|off|down|back|over|away)\b", after) or (
        word in _VERBS and re.match(r" (?:on|into)\b", after)
    ):
        return False
    if word in ("about", "around"):
        return bool(re.match(r" [\d$]", after))
    if (
        word in ("also", "however", "although", "because")
        or after.startswith((" that", "-"))
        or before.endswith("imply ")
    ):
        return False
    if word in ("said", "says", "stated", "claimed", "argued", "noted") and re.match(r" (?:to|by)\b", after):
        return False
    if word.lower() in ("while", "whereas", "though") or before.endswith((" by ", "-", "such ", "as ", "so ")):
        return False
    if word.lower() in _VERBS and _VERBS[word.lower()][0] == word.lower():
        return bool(_BEFORE_BASE.search(before))
    return not (word.endswith("ly") and re.search(r"\b(?:very|so|more|most|not|too) $", before))


def open_with(draft: Draft, rng: random.Random, text: str) -> None:
    """Begin the way answers do: "According to the passage, ..."."""
    draft.replace(0, len(draft.text), rng.choice(OPENINGS) + lowered(draft.text, text))


def wrong_opposite(draft: Draft, rng: random.Random) -> bool:
    """Exchange a word for its opposite.

    Example:
        >>> draft = Draft("Prices increased in the northern part."); wrong_opposite(draft, random.Random(1))
        True
        >>> draft.text, draft.spans
        ('Prices decreased in the northern part.', [(7, 16)])
    """
    found = []
    for match in outside(draft, _WORD):
        word = match[0].lower()
        if word not in _ANTONYMS or (match.start() and match[0][0].isupper()):
            continue
        before = draft.text[max(0, match.start() - 12) : match.start()].rstrip()
        after = draft.text[match.end() : match.end() + 3].strip()
        if _IDIOM.search(before) or (after[:1].isupper() and word not in ("before", "after", "attacked", "praised")):
            continue
        if _ANTONYMS[word].startswith(("stop", "end")) and draft.text.startswith(" to ", match.end()):
            continue
        if word in TIMELESS and not (
            word in _FIT and any(m.start() <= match.start() < m.end() for m in _FIT[word].finditer(draft.text))
        ):
            continue
        found.append((match, _ANTONYMS[word]))
    if not found:
        return False
    match, new = rng.choice(found)
    if match[0].lower() == "more":
        new = "fewer" if re.match(r" than [\d$]", draft.text[match.end() :]) else "less"
    return draft.word(*match.span(), new, wrong=True)


def negated(draft: Draft, rng: random.Random) -> bool:
    """Deny what is said, or say what is denied.

    Example:
        >>> draft = Draft("The mill was sold in 1932."); negated(draft, random.Random(1)), draft.text, draft.spans
        (True, 'The mill was not sold in 1932.', [(9, 16)])
    """
    denied = list(outside(draft, _NOT))
    if denied:
        match = rng.choice(denied)
        aux = match[1] or match[2]
        following = re.match(r" ([a-z]+)", draft.text[match.end() :])
        if aux in ("does", "did", "do") and following and following[1] in _VERBS:
            base, simple_past, _ = _VERBS[following[1]]
            new = {"does": third(base), "did": simple_past, "do": base}[aux]
            return draft.replace(match.start(), match.end() + following.end(), new, wrong=True)
        if aux in ("does", "did", "do"):
            return False
        return draft.word(*match.span(), aux, wrong=True)
    for match in outside(draft, _AUX):
        if _SUBORDINATE.search(draft.text, 0, match.start()) or match.start() == 0:
            break
        aux = match[0].rstrip()
        return draft.replace(
            match.start(), match.start() + len(aux), "cannot" if aux == "can" else f"{aux} not", wrong=True
        )
    for match in outside(draft, _PAST):
        verb = _VERBS.get(match[1])
        if not verb or verb[1] != match[1] or verb[0] == match[1] or _SUBORDINATE.search(draft.text, 0, match.start()):
            continue
        if (
            re.search(
                r"\b(?:was|were|is|are|had|has|have|been|be|the|a|an|of|by|and|to|newly|recently) $",
                draft.text[: match.start()],
            )
            or "," in draft.text[: match.start()]
        ):
            continue
        return draft.replace(*match.span(1), f"did not {verb[0]}", wrong=True)
    return False


def stretched(draft: Draft, rng: random.Random) -> bool:
    """Say more than is known: all for some, always for often, will for may.

    Example:
        >>> draft = Draft("Some goats may bite."); stretched(draft, random.Random(2)), len(draft.spans)
        (True, 1)
    """
    options = [(m.start(), m.end(), new) for pattern, new in _STRETCHES for m in outside(draft, pattern)]
    if not options:
        return False
    start, end, new = rng.choice(options)
    old = draft.text[start:end]
    new = new.rstrip()
    return draft.word(start, start + len(old.rstrip()), new, wrong=True)


def unhedged(draft: Draft, rng: random.Random) -> bool:
    """Leave out a condition, a hedge or a bound, so that the claim is stronger.

    Example:
        >>> draft = Draft("It costs up to 40 euros."); unhedged(draft, random.Random(1)), draft.text, draft.spans
        (True, 'It costs 40 euros.', [(9, 11)])
    """
    if draft.spans or "(" in draft.text or "you want" in draft.text or "necessary" in draft.text:
        return False
    told = is_order(draft.text) or draft.text.startswith(("You should", "You need", "It is ", "The instructions"))
    if not told and (found := _CONDITION.match(draft.text)):
        rest = draft.text[found.end() :]
        draft.text = rest[0].upper() + rest[1:]
        return _mark_predicate(draft)
    options = [*_HEDGE.finditer(draft.text), *_LIMIT.finditer(draft.text)]
    if options:
        match = rng.choice(options)
        limit = match[1] if match.re is _LIMIT else ""
        target = match[2] if limit else match[1]
        if limit in (
            "about",
            "approximately",
            "around",
            "roughly",
            "nearly",
            "almost",
            "over",
            "more than",
        ) and not draft.replace(match.start(), match.end(), "exactly "):
            return False
        if limit in ("about", "approximately", "around", "roughly", "nearly", "almost", "over", "more than"):
            return draft.mark(match.start(), match.start() + 8 + len(target))
        return draft.replace(*match.span(), "") and draft.mark(match.start(), match.start() + len(target))
    if not told and (last := _CONDITION_LAST.search(draft.text)):
        if last.start() < 25 or re.search(r"\b(?:was|were|had)\b", draft.text):
            return False
        draft.text = draft.text[: last.start()] + draft.text[last.end() :]
        return _mark_predicate(draft)
    return False


def _mark_predicate(draft: Draft) -> bool:
    found = re.search(
        r"\b(?:is|are|was|were|can|could|will|would|should|must|may|has|have|had)\b(?: not)?(?: [a-z]+){1,4}",
        draft.text,
    )
    if (
        len(draft.text.split()) < 6
        or is_order(draft.text)
        or (not found and draft.text.startswith(("According", "Based", "As ", "The ")))
    ):
        return False
    return draft.mark(*(found.span() if found else (0, len(draft.text) - 1)))

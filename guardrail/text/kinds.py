"""What a segment is: a claim, or one of the few things that need no check.

The rules exempt only what is recognised as a whole. A sentence that holds a greeting, a question or a refusal *and*
something else is a claim, and so is everything that no rule knows: an exemption is a way around the checker.
"""

from __future__ import annotations

import re
import unicodedata

from guardrail.text import blocks
from guardrail.text.lazy import LazyPattern
from guardrail.text.marks import is_only_marks
from guardrail.text.phrases import (
    GREETING,
    LOADED_QUESTION,
    OPENER,
    QUESTION_START,
    RESTATED,
    SOFTENER,
    TAG,
)
from guardrail.text.refusals import HARMLESS, IN_SOURCE, REFUSAL_PASSIVE, REFUSAL_START, REFUSAL_WHOLE
from guardrail.text.statements import states_something
from guardrail.types import SegmentKind

_FENCE = re.compile(r"(?:`{3,}[^`\n]*|~{3,}[^\n]*)(?:\n|$)")
_CITATION_ONLY = LazyPattern(
    r"(?:(?:\((?:[Pp]assage|[Ss]ource|[Dd]ocument|[Cc]ontext)s? \d[\d ,:–-]*\)"
    r"|\[\^?[A-Za-z]?\d{1,3}(?:\s?[,;–-]\s?\d{1,3})*\])\s*)+"
)
_HEADING_MARK = re.compile(r"#{1,6}\s+")
_EMPHASIS = re.compile(r"\*+|(?<!\w)_+|_+(?!\w)|~~")
_APOSTROPHES = str.maketrans({"’": "'", "ʼ": "'", "‘": "'", "＇": "'"})
_TRAILING = " \t\n.!…。！\"'”’»)*_"
_QUESTION_MARKS = ("?", "？", "؟")
_INNER_END = LazyPattern(r"[.!?;:…。！？；：](?=\s|[^\W\d_]{2}(?<=[\u3040-\u9fff]{2}))|\s[—–-]\s|—|\(")
_CLAUSES = re.compile(r"[,;!.…，。！、،]+|\s[–—-]\s|\s(?:and|und|e|et|y)\s")
_NAMED_GREETING = LazyPattern(r"(?:hi|hello|hey|dear|ciao|hallo|hola|bonjour|salut) [^\W\d_]{2,20}")
_CONTENT = LazyPattern(
    r"\b(?:but|however|although|though|yet|except|while|whereas|because|since|therefore|thus|instead|only|apart|"
    r"other than|"
    r"besides|beyond|aside from|as well as|unless|despite|even|still|given that|now that|considering|"
    r"ma|però|tuttavia|benché|tranne|poiché|dato che|visto che|anche se|siccome|"
    r"aber|jedoch|sondern|obwohl|weil|außer|nur|denn|"
    r"mais|cependant|sauf|car|parce que|puisque|pourtant|bien que|"
    r"pero|sin embargo|aunque|salvo|porque|ya que|sino)\b|但|不过|然而|因为|虽然|所以|لكن|إلا|لأن|رغم|بينما"
)
_WH_CLAUSE = LazyPattern(
    r"(?:(?:any )?(?:information |details |anything )?(?:about |on |regarding |as to |of )?)?"
    r"(?:who|whom|whose|what|which|when|where|whether|how|if)\b|(?:chi|quando|dove|quale|come|se|wer|wann|wo|was|"
    r"wie|ob|"
    r"qui|quand|où|si|quién|cuándo|dónde|cómo|qué)\b"
)
_RELATIVE = re.compile(r"\b(?:that|which|who|whom|whose)\b")
_LOADED_TOPIC = LazyPattern(r"\bas\b(?! to\b)|\b(?:why|warum|wieso|weshalb|perché|pourquoi)\b|por qué")
_LIST = re.compile(r",(?: (?:or|and|o|e|oder|und|ou|et)\b)?|\b(?:and|und)\b")
_NEW_CLAUSE = re.compile(r"\w+ing\b|(?:it|they|he|she|we|i|you|the)\b")
_CLARIFYING = LazyPattern(
    r"(?:do|did) you mean\b|are you (?:asking|referring|looking|talking)\b|which\b|intend[ie]\b|(?:si |"
    r"ti )?riferisc[ei]\b|"
    r"mein(?:en sie|st du)\b|parlez-vous\b|(?:se|te) refieres?\b|您是指|你是指"
)
_NAMED_NUMBER = LazyPattern(
    r"\b(?:1[0-9]|20)\d\d\b(?! ?(?:[€$£%°]|eur|euros?|dollars?|usd|people|years?|kg|km|mg|units?|pounds?))|"
    r"\b(?:version|edition|step|option|article|section|chapter|page|model|room|line|question|part) \d+(?:\.\d+)*\b"
)
_ENUMERATOR = re.compile(r"^\d+(?:\.\d+)*[.)]?\s+")
# What follows such a word in a question is stated, not asked, if it is a statement.
_EMBEDDED = LazyPattern(
    r"(?:,\s*(?:which|who|whose|where|that|che|qui|que)|\b(?:that|say|agree|think|believe|know))\b(.*)"
)
_MAY_FOLLOW_THAT = re.compile(r"\s*(?:(?:i|we|you) |(?:who|what|which|when|where|how|if|whether)\b)")
_LEAD_IN = LazyPattern(
    r"(?:(?:here(?:'s| is| are)|below (?:is|are)|these are|ecco|hier (?:ist|sind)|voici|aquí (?:está|están|tiene))\b"
    r"(?P<rest>.*)|(?P<topic>.*?) (?:is|are) (?:as follows|listed below|the following))"
)
_FOUND = LazyPattern(
    r"\b(?:what|that|which)? ?(?:i found|you (?:need|asked for|requested|want)|i know)\b|\bas follows\b"
)
_MAX_LABEL_WORDS = {"#": 12, "**": 8, ":": 8}
_WIDE = re.compile(r"[\u3040-\u9fff\uac00-\ud7a3]")


def classify(text: str) -> SegmentKind:
    """Say what a segment is, from its text alone.

    Args:
        text: One segment, with or without surrounding whitespace.

    Returns:
        The kind; :attr:`~guardrail.types.SegmentKind.CLAIM` in every case of doubt.

    Example:
        >>> classify("Hello! ").value, classify("Yes, 5 mg.").value, classify("I don't know the price.").value
        ('greeting', 'claim', 'refusal')
    """
    body = text.strip()
    if _FENCE.match(body):
        return SegmentKind.CODE
    if not any(map(str.isalnum, body)):
        return SegmentKind.BLANK
    if _CITATION_ONLY.fullmatch(body) or is_only_marks(body):
        return SegmentKind.HEADING
    head, newline, below = body.rpartition("\n")
    if newline and blocks.is_table_rule(below.strip(), complete=True):
        cells = [_plain(cell) for cell in head.split("|")]
        return SegmentKind.CLAIM if any(map(states_something, cells)) else SegmentKind.HEADING
    if body[0] == "|":
        return SegmentKind.CLAIM
    return _kind_of_sentence(body)


def _kind_of_sentence(body: str) -> SegmentKind:
    mark, label = _label_of(body)
    plain = _plain(label)
    if mark and _is_label(plain, mark):
        return SegmentKind.HEADING
    if _is_refusal(plain):
        return SegmentKind.REFUSAL
    if _is_question(plain) or _restates_question(plain):
        return SegmentKind.QUESTION
    return SegmentKind.GREETING if _is_greeting(plain) else SegmentKind.CLAIM


def _label_of(body: str) -> tuple[str, str]:
    """The sign that makes a line a heading (``#``, ``**``, ``:`` or nothing), and the line without list markers."""
    line = body[blocks.marker_end(body, blocks.quote_prefix_end(body, 0)) :] or body
    heading = _HEADING_MARK.match(line)
    if heading:
        return "#", line[heading.end() :]
    if line.rstrip("*_ ").endswith((":", "：")):
        return ":", line
    return ("**", line) if blocks.is_bold_line(line) else ("", line)


def _plain(text: str) -> str:
    """Fold case, drop emphasis and pictures, and put one space between words."""
    text = _EMPHASIS.sub("", text.translate(_APOSTROPHES).lower())
    if not text.isascii():
        kept = [c for c in text if c.isascii() or unicodedata.category(c) not in ("So", "Sk", "Cf", "Mn", "Co", "Cn")]
        text = "".join(kept)
    return " ".join(text.split())


def _is_label(plain: str, mark: str) -> bool:
    label = _ENUMERATOR.sub("", plain.rstrip(" :："))
    if mark == "**" and label[-1:] in (".", "!"):
        return False
    if len(label.split()) > _MAX_LABEL_WORDS[mark] or len(_WIDE.findall(label)) > 8 or label.endswith(_QUESTION_MARKS):
        return False
    match = _LEAD_IN.fullmatch(label)
    if match:
        label = _FOUND.sub("", match["rest"] if match["rest"] is not None else match["topic"])
    return not _INNER_END.search(label) and not states_something(label)


def _without_softeners(plain: str) -> str:
    while (match := SOFTENER.match(plain)) and match.end() < len(plain):
        plain = plain[match.end() :].lstrip()
    return plain


def _is_greeting(plain: str) -> bool:
    exclaims = "!" in plain or "！" in plain
    clauses = [c.strip(" '\"()?:¡") for c in _CLAUSES.split(plain)]
    clauses = [c for c in clauses if c]
    if not clauses or "?" in plain:
        return False
    whole = len(clauses) == 1
    for clause in clauses:
        opener = OPENER.fullmatch(clause) and (exclaims or not whole)
        if not (opener or GREETING.fullmatch(clause) or _NAMED_GREETING.fullmatch(clause)):
            return False
        if "[" in clause and states_something(clause.partition("[")[2]):
            return False  # "Dear [refunds are free]," is no blank to fill in
    # "Sure, certainly." is assent, not a greeting.
    return exclaims or not all(OPENER.fullmatch(clause) for clause in clauses)


def is_assent(text: str) -> bool:
    """Whether a segment is nothing but assent ("Of course!"), which answers a yes-no question and greets otherwise."""
    clauses = [c.strip(" '\"()?:¡!") for c in _CLAUSES.split(_plain(text))]
    return any(clauses) and all(OPENER.fullmatch(clause) for clause in clauses if clause)


def _is_question(plain: str) -> bool:
    core = plain.rstrip(" \"'”’»)")
    if not core.endswith(_QUESTION_MARKS):
        return False
    core = _without_softeners(core.rstrip("?!？！؟ ").lstrip("¿¡\"'“«("))
    if not QUESTION_START.match(core) or LOADED_QUESTION.search(core) or _INNER_END.search(core):
        return False
    if any(map(str.isdigit, core)):
        rest = _NAMED_NUMBER.sub("", core) if _CLARIFYING.match(core) else core
        if any(map(str.isdigit, rest)):
            return False
    embedded = _EMBEDDED.search(core)
    if _CONTENT.search(core) or (
        embedded
        and states_something(embedded[1])
        and not (embedded[0][0] != "," and _MAY_FOLLOW_THAT.match(embedded[1]))
    ):
        return False
    first, *more = (part.strip() for part in re.split("[,，،]", core))
    return not any(TAG.fullmatch(part) or states_something(part) for part in more) and bool(first)


def _restates_question(plain: str) -> bool:
    match = RESTATED.match(plain)
    if match is None:
        return False
    rest = plain[match.end() :].rstrip(_TRAILING)
    return not (
        any(map(str.isdigit, rest))
        or "," in rest
        or _INNER_END.search(rest)
        or _CONTENT.search(rest)
        or re.search(r"\b(?:that|which|and|why|che|e|und|dass|que|et|y)\b", rest)
    )


def _is_refusal(plain: str) -> bool:
    core = _without_softeners(plain.rstrip(_TRAILING))
    core = IN_SOURCE.sub("", core, count=1).lstrip(" ,") if IN_SOURCE.match(core) else core
    core = _without_softeners(core)
    if any(map(str.isdigit, core)) or _CONTENT.search(core) or _INNER_END.search(core):
        return False
    if REFUSAL_WHOLE.fullmatch(core):
        return True
    passive = REFUSAL_PASSIVE.match(core)
    if passive is not None and not states_something(passive["topic"]) and _adds_nothing(passive["topic"]):
        return True
    match = REFUSAL_START.match(core)
    return match is not None and _adds_nothing(core[match.end() :])


def _adds_nothing(rest: str) -> bool:
    """Whether the words around a refusal only name its topic."""
    rest = HARMLESS.sub("", IN_SOURCE.sub("", rest).strip(" ,")).strip(" ,")
    asks = _WH_CLAUSE.match(rest) is not None
    if len(rest.split()) > 20 or _LOADED_TOPIC.search(rest) or (_RELATIVE.search(rest) and not asks):
        return False
    first, *more = (part.strip() for part in _LIST.split(rest))
    if any(len(part.split()) > 5 or _NEW_CLAUSE.match(part) or states_something(part) for part in more):
        return False
    return asks or not states_something(first)


__all__ = ["classify", "is_assent"]

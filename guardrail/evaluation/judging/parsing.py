"""Replies of models, read strictly: a reply is wholly what was asked for, or it is unreadable."""

from __future__ import annotations

import json
import re
from typing import Any

from guardrail.evaluation.judging.verdicts import JudgeVerdict

# ASCII: without it, "yeſ" with a long s would be a yes.
_WORD = r"yes|no|partial"
_VERDICT = re.compile(rf"(\*{{1,3}}|_{{1,3}})?({_WORD})(?:\.(?(1)\1)|(?(1)\1)\.?)", re.IGNORECASE | re.ASCII)
_JSON_VERDICT = re.compile(rf"(?:{_WORD})", re.IGNORECASE | re.ASCII)
_FENCE = re.compile(r"```(?:json)?[ \t]*\n(.*)\n[ \t]*```", re.DOTALL | re.IGNORECASE)


def parse_verdict(reply: str) -> JudgeVerdict | None:
    r"""Read a verdict.

    The whole reply has to be ``YES``, ``NO`` or ``PARTIAL`` in any letter case, with white space around it, one pair of
    markdown emphasis marks and one full stop at most; or a JSON object with nothing in it but ``"verdict"`` and one of
    the three words, in a code fence or without.

    Args:
        reply: What the model wrote.

    Returns:
        The verdict; ``None`` for everything else, also if it contains, begins or ends with one.

    Example:
        >>> parse_verdict("**Yes.**\n").value, parse_verdict('{"verdict": "PARTIAL"}').value
        ('yes', 'partial')
        >>> parse_verdict("Yes, but…"), parse_verdict("The answer is yes"), parse_verdict("VERDICT: YES")
        (None, None, None)
    """
    text = reply.strip()
    match = _VERDICT.fullmatch(text)
    if match:
        return JudgeVerdict(match[2].lower())
    value = _json(text)
    if isinstance(value, dict) and list(value) == ["verdict"]:
        word = value["verdict"]
        if isinstance(word, str) and _JSON_VERDICT.fullmatch(word):
            return JudgeVerdict(word.lower())
    return None


def parse_claims(reply: str) -> tuple[str, ...] | None:
    """Read a list of claims.

    The whole reply has to be a JSON array of texts, in a code fence or without. Lists in any other form are not read:
    whether "2. 5 mg a day" begins with a number or with a list mark would be a guess.

    Args:
        reply: What the model wrote.

    Returns:
        The claims without surrounding white space, each once, in order; empty for an empty array. ``None`` if the reply
        is anything else, or if one of the claims has no letter or digit.

    Example:
        >>> parse_claims('["The desk opens at ten.", "Entry is free."]')
        ('The desk opens at ten.', 'Entry is free.')
        >>> parse_claims("1. The desk opens at ten.")
    """
    value = _json(reply.strip())
    if not isinstance(value, list):
        return None
    if not all(isinstance(claim, str) and any(map(str.isalnum, claim)) for claim in value):
        return None
    return tuple(dict.fromkeys(claim.strip() for claim in value))


def _json(text: str) -> Any:
    fenced = _FENCE.fullmatch(text)
    try:
        return json.loads(fenced[1] if fenced else text, object_pairs_hook=_unambiguous)
    except (ValueError, RecursionError):
        return None


def _unambiguous(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose names are all different: of two verdicts under one name, either would be a guess."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name occurs twice")
    return found

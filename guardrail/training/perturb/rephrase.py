"""Phrases that can stand for each other, contractions, and the ways to give an instruction."""

from __future__ import annotations

import random
import re

from guardrail.training.perturb.draft import Draft
from guardrail.training.perturb.words import ORDERS

# Each line: pattern | what stands for it.
_PHRASES = r"""
\bis not\b | isn't
\bare not\b | aren't
\bwas not\b | wasn't
\bwere not\b | weren't
\bdo not\b | don't
\bdoes not\b | doesn't
\bdid not\b | didn't
\bcannot\b | can't
\bwill not\b | won't
\bisn['’]t\b | is not
\baren['’]t\b | are not
\bwasn['’]t\b | was not
\bdon['’]t\b | do not
\bdoesn['’]t\b | does not
\bdidn['’]t\b | did not
\bcan['’]t\b | cannot
\bwon['’]t\b | will not
\b([Yy])ou['’]re\b | \1ou are
\b([Ii])t['’]s (?=a |an |the |not |important |best ) | \1t is 
\b([Tt])hey['’]re\b | \1hey are
\b([Yy])ou['’]ll\b | \1ou will
\bin order to\b | to
\bsuch as\b | like
\ba number of\b | several
\bas well as\b | and also
\bmore than (?=[\d$]) | over 
\bover (?=\$?\d) | more than 
\bprior to\b | before
\bin addition to\b | besides
\bdue to\b | because of
\bbecause of\b | due to
\b(was|were) able to\b | managed to
\b(is|are|was|were) located (?=in|on|at|near) | \1 situated 
\b(is|are) able to\b | can
\b(was|were|is|are) called\b | \1 known as
\b(was|were|is|are) known as\b | \1 called
\beach year\b | every year
\bevery year\b | each year
\bthe majority of\b | most
\bin the United States\b | in the US
\b(?:in|across) the U\.S\.(?= [a-z]) | in the United States
\bthe United Kingdom\b | the UK
\bmake sure (?:that )?(?=you|the|your|it) | ensure that 
\btook place\b | occurred
\b(has|needs) to (?=[a-z]) | must 
\byou should (?!not|also|be\b) | it is advisable to 
\byou should not (?=[a-z]) | you had better not 
\bYou can (?=[a-z]) | It is possible to 
\byou can (?=[a-z]) | it is possible to 
\bis a type of\b | is a kind of
\bis a kind of\b | is a type of
\bat the same time\b | simultaneously
\bfor example\b | for instance
\bas soon as\b | once
\btake care of\b | look after
\bpassed away\b | died
\bset up\b | established
\bcarried out\b | conducted
\bconsists? of\b | comprises
\bconsisted of\b | comprised
\bis made up of\b | consists of
\bat the end of\b | at the close of
\bthe same as\b | identical to
\bsimilar to\b | comparable to
\bbegan to\b | started to
\bstarted to\b | began to
\bdecided to\b | chose to
\bagreed to\b | consented to
\bbelieved to be\b | thought to be
\bthought to be\b | believed to be
\bbased in\b | headquartered in
\blarge number of\b | great many
\blots of\b | many
\ba lot of (?=[a-z]+s\b) | many 
\bwhether or not\b | whether
\ball of the\b | all the
\bup until\b | until
\bapart from\b | except for
\bexcept for\b | apart from
\btherefore\b | thus
\btouchdown\b | TD
\bTD\b | touchdown
\bquarterback\b | QB
\bQB\b | quarterback
\bin the first quarter\b | during the first quarter
\bin the (second|third|fourth) quarter\b | during the \1 quarter
\bthe ([a-z]{4,}) of ((?:Mr\. )?[A-Z][a-z]+[a-rt-z])(?=[.,]| (?:is|was|has|had|in|and|to|from)\b) | \2's \1
"""
_TABLE = tuple(
    (re.compile(pattern.strip()), new.lstrip(" ").rstrip("\n"))
    for line in _PHRASES.strip("\n").split("\n")
    for pattern, _, new in [line.partition(" | ")]
)
_ORDER = re.compile(rf"^(?:{'|'.join(ORDERS)}|Don[’']t|Do not|Never)\b")


def reword_phrases(draft: Draft, rng: random.Random, most: int = 2) -> int:
    """Replace some phrases by others that say the same; returns how many.

    Example:
        >>> draft = Draft("It did not rain prior to May."); reword_phrases(draft, random.Random(1))
        2
        >>> draft.text
        "It didn't rain before May."
    """
    done = 0
    for pattern, new in rng.sample(_TABLE, len(_TABLE)):
        if done < most and (found := pattern.search(draft.text)):
            said = found.expand(new)
            if found.start() == 0 and said[0].islower():
                said = said[0].upper() + said[1:]
            draft.replace(*found.span(), said)
            done += 1
    return done


def is_order(text: str) -> bool:
    """Whether a sentence is an instruction."""
    return bool(_ORDER.match(text))


def reported_order(draft: Draft, rng: random.Random) -> bool:
    """Turn an instruction into a statement about what to do.

    Example:
        >>> draft = Draft("Cut the beets."); reported_order(draft, random.Random(2)), draft.text
        (True, 'You should cut the beets.')
    """
    if not is_order(draft.text):
        return False
    text = draft.text
    for old in ("Don't ", "Don’t ", "Do not ", "Never "):
        if text.startswith(old):
            draft.text = f"You should {'never' if old == 'Never ' else 'not'} {text[len(old) :]}"
            return True
    start = rng.choice(
        ("You should ", "You should ", "It is recommended to ", "You need to ", "The instructions say to ")
    )
    draft.text = start + text[0].lower() + text[1:]
    return True

"""Citation marks in words."""

from __future__ import annotations

import pytest

from guardrail.scoring.clashes import find_clashes
from guardrail.scoring.evidence import EvidenceIndex
from guardrail.scoring.markup import plain
from guardrail.text.mentions import without_mentions
from guardrail.types import Passage


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("It leaks (Passage 2).", "It leaks."),
        ("It leaks. (Passage 2)", "It leaks."),
        ("It leaks (passages 1 and 3) and creaks [Doc 2].", "It leaks and creaks."),
        ("It leaks (see source 1, source 4).", "It leaks."),
        ("(Source 1) It leaks.", " It leaks."),
        # content, a passage that is not there, and what is not in brackets
        ("It leaks (Passage 2, step 4).", None),
        ("It leaks (Passage 7).", None),
        ("It leaks (passage 2 m wide).", None),
        ("It leaks (source 3% salt).", None),
        ("It leaks (document 2.1).", None),
        ("As passage 2 says, it leaks.", None),
        ("It leaks (2).", None),
        ("It leaks (Passage 2].", None),
        # a name in code
        ("Call `parse(doc1)` first.", None),
        ("Call `parse( doc 1 )` first.", None),
        ("Call parse(doc1) first.", None),
        ("It is rows[ref2].", None),
        ("```python\nrows = [ref1, ref2]\n```", None),
        ("It is $f(ref 1)$.", None),
        ("Es leckt(Quelle 1).", "Es leckt."),
    ],
)
def test_brackets_that_only_name_passages_are_left_out(text, rest):
    assert without_mentions(text, passages=4) == (text if rest is None else rest)


def test_what_is_checked_has_no_marks_in_words():
    assert plain("- The **dam** is high (Passage 1).", passages=2) == "The dam is high."
    assert plain("The dam is high (Passage 3).", passages=2) == "The dam is high (Passage 3)."


def test_what_names_no_passage_stays_in_passages_too():
    passages = [Passage(id="a", text="The plan is annexed (Document 7). It is signed (Document 1).")]
    said = [sentence.said for sentence in EvidenceIndex(passages).sentences]
    assert said == ["The plan is annexed (Document 7).", "It is signed."]
    assert find_clashes(plain("The plan is annexed (Document 7).", passages=1), said) == ()

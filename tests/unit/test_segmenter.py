"""The segmenter on sentences that are hard to split."""

from __future__ import annotations

import pytest

from guardrail.errors import ConfigurationError
from guardrail.text import Segmenter, segment
from guardrail.types import SegmentKind


def bodies(text: str, **sizes: int) -> list[str]:
    return [s.body for s in segment(text, **sizes)]


# A bar marks a boundary.
SENTENCES = [
    # English: law
    "The court cited Smith v. Jones, 410 U.S. 113 (1973).| It reversed the ruling.",
    "Under Sec. 4.2(a) of the Act, the tenant must pay.| See also Art. 12 para. 3.",
    "Acme Corp. v. Beta Ltd. was decided in 1998.| The appeal failed.",
    "He earned a Ph.D. in 1999.| He teaches law.",
    "The company, i.e. Acme Inc., was sold.| Nobody objected.",
    "She lives in Washington, D.C. with her son.| He is 5.",
    "I like A. Huxley and G. B. Shaw.| You too?",
    "The U.K. and the U.S. signed it.| Others did not.",
    "He is No. 1 in the world.| No. 2 is Ann.",
    # English: medicine
    "Give 0.5 mg/kg i.v. every 6 hrs. until pain stops.| Do not exceed 4 g per day.",
    "She was seen by Dr. J. A. Smith Jr. on Jan. 5, 2021.| BP was 120/80.",
    "Take it at 8 a.m. and 8 p.m. with food.| Avoid alcohol.",
    "Come at 9 a.m. Monday.| Fast before.",
    "We open at 9 a.m.| The doors close early.",
    "The dose is 5 mg.| It may be doubled.",
    "Temperature: 37 °C.| Pulse: 80.",
    "It was vitamin C.| The test showed it.",
    "The value rose by 3.5%.| In 2020 it fell.",
    # English: everything else
    "It works (see Fig. 3).| The rest fails.",
    "It works (see p. 5 of the manual.)| The rest fails.",
    '"Stop. Go home," he said.| We left.',
    '"I will go," she said.| "You stay."',
    'He asked, "Why?"| Nobody answered.',
    '"Why?" he asked.| Nobody answered.',
    "Use node.js or Vue.js.| Both work.",
    "The file is report.final.pdf.| Open it.",
    "Write to j.doe@mail.example.com.| Thanks.",
    "In the year 2000.| 500 people came.",
    "Steps: 1. Open the lid.| 2. Pour the water.| 3. Wait.",
    "Hmm… maybe.| Yes.",
    "What?!| No way!!!| OK.",
    "It opened in Rome.|It closed in Milan.",
    "Why not?|Because it rains.",
    "Call `foo.Bar()` or `a. B`.| Then stop.",
    "it opened in 1990.| it closed in 2001.",
    # Citation marks
    "The hall opened in 1990.[1]| It seats 800.[2][3]",
    "The hall opened in 1990.[1](https://example.org/a.b) |It seats 800.",
    "The hall opened in 1990 [1].| It seats 800 [2].",
    'He said "It opened in 1990." [2]| It seats 800.',
    "It is low. (Passage 1)| It is high.| (See below.)",
    "It is low.【4:0†source】| It is high.",
    "It is low.¹ |It is high.",
    # Italian
    "Il Prof. Bianchi e la dott.ssa Verdi sono arrivati alle 10.15.| Hanno parlato.",
    "Ai sensi dell'art. 5, comma 2, del D.Lgs. 196/2003, il titolare risponde.| Si veda l'art. 7.",
    "L'Univ. di Pisa fu fondata nel 1343.| È pubblica.",
    "Il sig. Rossi disse «Sì.»| Poi uscì.",
    "«Sì.», disse Anna.| Poi uscì.",
    "Si applicano gli artt. 2 e segg. del codice civile.| La norma è chiara.",
    "La S.p.A. Rossi ha chiuso il 3 gen. 2020.| I soci hanno votato.",
    "Portare documenti, chiavi, ecc. all'ingresso.| Grazie.",
    "Costa 1.250,50 euro.| È caro?",
    # German
    "Das gilt z. B. für Kinder unter 6 Jahren.| Erwachsene zahlen 5 Euro.",
    "Die 2. Auflage erschien am 1. März 2019.| Sie kostet ca. 30 Euro.",
    "Dr. med. Müller arbeitet in der Hauptstr. 5.| Sie ist Ärztin.",
    "Er rief: „Komm her!“| Niemand kam.",
    "Das Ergebnis war 5.| Das war gut.",
    # French, Spanish
    "M. Dupont habite à Paris.| Il travaille chez Renault.",
    "Il a dit « Oui. »| Puis il est parti.",
    "Vraiment ?| Je ne sais pas !",
    "El Sr. García llegó a las 9.30.| ¿Qué hora es?| Son las 10.",
    "EE. UU. ganó.| Fin.",
    # Other scripts
    "今天下雨。|明天晴吗？|是的！",
    "यह एक वाक्य है।| यह दूसरा है।",
    "هذا كتاب.| أين القلم؟| هنا.",
]


@pytest.mark.parametrize("marked", SENTENCES)
def test_sentences(marked: str) -> None:
    assert bodies(marked.replace("|", "")) == [part.strip() for part in marked.split("|")]


@pytest.mark.parametrize(
    "text",
    [
        "He likes J. S. Bach and W. A. Mozart.",
        "The p.m. shift of Acme Inc. Germany is full.",
        "Smith et al. Found this, 2004.",
        "Am 3. Oktober ist Feiertag.",
        "Version 3.x of v1.2.3 needs 10.0.0.1 to run.",
    ],
)
def test_what_cannot_be_decided_stays_together(text: str) -> None:
    assert bodies(text) == [text]


BLOCKS = {
    "list": (
        "Intro:\n1. **First**: do it. Now.\n2. Second\n   - sub a\n   - sub b\n",
        ["Intro:", "1. **First**: do it.", "Now.", "2. Second", "- sub a", "- sub b"],
    ),
    "letters": (
        "Options:\nA. Open the lid\nB. Close it\na) or\n(c) not",
        ["Options:", "A. Open the lid", "B. Close it", "a) or", "(c) not"],
    ),
    "task list": ("- [ ] one. \n- [x] two\n\t* three", ["- [ ] one.", "- [x] two", "* three"]),
    "continued item": (
        "* item two goes\n  on here\n* three\nafter",
        ["* item two goes\n  on here", "* three", "after"],
    ),
    "soft wrap": ("A wrapped\nline. And\nmore.", ["A wrapped\nline.", "And\nmore."]),
    "blank line": ("no end mark\n\nNext", ["no end mark", "Next"]),
    "heading": ("# Dr. Title. Two\nText.", ["# Dr. Title. Two", "Text."]),
    "underlined heading": ("Title\n===\nText.", ["Title", "===", "Text."]),
    "bold line": ("**Opening hours**\nMon 9-17", ["**Opening hours**", "Mon 9-17"]),
    "bold sentence": ("It is **closed.** It reopens.", ["It is **closed.**", "It reopens."]),
    "rule": ("One\n\n---\n\nTwo", ["One", "---", "Two"]),
    "quotation": (
        "> A quote that\n> goes on. It ends.\n>\n> New.\nOut",
        ["> A quote that\n> goes on.", "It ends.", ">\n> New.", "Out"],
    ),
    "table": (
        "Rows\n| A. x | B |\n|---|:-:|\n| C. D. e | F |\n| G | H |\n\nAfter.",
        ["Rows", "| A. x | B |\n|---|:-:|", "| C. D. e | F |", "| G | H |", "After."],
    ),
    "table without a rule": ("| A | B |\n| C | D |\nafter. More.", ["| A | B |", "| C | D |", "after.", "More."]),
    "table without outer bars": (
        "N | P\n--- | ---\nA | 59\nB | 84\n\nEnd.",
        ["N | P\n--- | ---", "A | 59", "B | 84", "End."],
    ),
    "fence": ("Use:\n~~~\na. B\n```\n~~~ \nOK.", ["Use:", "~~~\na. B\n```\n~~~", "OK."]),
    "fence in an item": ("- a\n  ```\n  x. Y\n  ```\n- b", ["- a", "```\n  x. Y\n  ```", "- b"]),
    "unclosed fence": ("A.\n```py\nx = 1. Y", ["A.", "```py\nx = 1. Y"]),
    "no fence": ("```foo``` is a name. Yes.", ["```foo``` is a name.", "Yes."]),
    "CRLF": ("One.\r\n\r\nTwo\r\n- a\r\n- b\r\n", ["One.", "Two", "- a", "- b"]),
    "references": ("[1] Smith, 2004.\n[2] Jones.", ["[1] Smith, 2004.", "[2] Jones."]),
    "negative number": ("The low is\n-5 degrees.", ["The low is\n-5 degrees."]),
}


@pytest.mark.parametrize("name", BLOCKS)
def test_markdown_blocks(name: str) -> None:
    text, expected = BLOCKS[name]
    assert bodies(text) == expected


def test_kinds_of_blocks() -> None:
    text = "## Fees\n| Model | Price |\n|---|---|\n| A1 | 59 EUR |\n\n```\nx\n```\nHi! It is free.\n\n…"
    assert [s.kind.value for s in segment(text)] == [
        "heading",
        "heading",
        "claim",
        "code",
        "greeting",
        "claim",
        "blank",
    ]


@pytest.mark.parametrize(
    ("fed", "expected"),
    [
        ("One is done. T", ["One is done. "]),
        ("One is done. ", []),
        ("It costs $3.", []),
        ("今天下雨。明", ["今天下雨。"]),
        ("- item\n- n", ["- item\n"]),
        ("| a |\n|--", []),
        ("| a |\nx", ["| a |\n"]),
        ("Really?!", []),
        ("A.\n\nB", ["A.\n\n"]),
        ("```\nx\n```\n", []),
        ("```\nx\n```\nD", ["```\nx\n```\n"]),
    ],
)
def test_a_boundary_is_reported_with_the_character_that_decides_it(fed: str, expected: list[str]) -> None:
    segmenter = Segmenter()
    done = [s.text for char in fed for s in segmenter.feed(char)]
    assert done == expected
    assert "".join(done) + segmenter.pending == fed


def test_long_prose_is_cut_after_a_clause_and_stays_a_claim() -> None:
    text = "the fee is due, " * 10
    pieces = segment(text, max_chars=60)
    assert all(len(p.text) <= 60 and p.text.endswith(", ") for p in pieces[:-1])
    assert {p.kind for p in pieces} == {SegmentKind.CLAIM}


def test_half_of_a_question_is_a_claim() -> None:
    text = "Would you like to know more about the opening hours, or about the fees, or about anything else?"
    assert {p.kind for p in segment(text, max_chars=50)} == {SegmentKind.CLAIM}
    assert segment(text)[0].kind is SegmentKind.QUESTION


def test_long_words_are_not_cut_inside_a_number_or_a_combined_character() -> None:
    assert [p.text for p in segment("x" * 17 + "12345", max_chars=20)] == ["x" * 17, "12345"]
    assert next(p.text for p in segment("x" * 19 + "e\u0301" + "y" * 9, max_chars=20)) == "x" * 19


def test_long_code_is_cut_at_a_line_end_and_stays_code() -> None:
    text = "```\n" + "value = 1\n" * 30 + "```\nDone."
    pieces = segment(text, max_chars=50, max_block_chars=100)
    assert [p.kind for p in pieces[:-1]] == [SegmentKind.CODE] * (len(pieces) - 1)
    assert all(p.text.endswith("\n") for p in pieces[:-1])
    assert pieces[-1].text == "Done."


def test_leading_whitespace_belongs_to_the_first_segment() -> None:
    assert [s.text for s in segment("  \n One. Two.")] == ["  \n One. ", "Two."]


@pytest.mark.parametrize("text", ["", " \n", "?", "...", "—", "\ud83c", "|", "```", "-", "1.", "#", "**", "("])
def test_degenerate_texts(text: str) -> None:
    assert "".join(s.text for s in segment(text)) == text.replace("\ud83c", "\ufffd")


@pytest.mark.parametrize("sizes", [{"max_chars": 7}, {"max_chars": 100, "max_block_chars": 99}])
def test_limits_are_checked(sizes: dict[str, int]) -> None:
    with pytest.raises(ConfigurationError, match="must be at least"):
        Segmenter(**sizes)

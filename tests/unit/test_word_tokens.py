"""Tokens that are put together from those of words are the tokens of the text."""

from __future__ import annotations

import pytest

from guardrail.scoring.entailment import embedded_model_dir
from guardrail.scoring.entailment.word_tokens import WordTokeniser
from guardrail.text.bodies import bodies
from guardrail.text.segmenter import segment

tokenizers = pytest.importorskip("tokenizers")

TEXTS = (
    "",
    " ",
    "The dam is 212 m high.",
    "  Two  spaces,\ta tab\nand a line.\u00a0No-break, \u3000wide \u200bnothing ",
    "Straße, İstanbul, o\u0308ffnen \u0301e, ﬁn; 水 と漢字 한글 👩\u200d🔬",
    "[SEP] in[MASK]side [CLS]. [ SEP ]",
    "x" * 150 + " " + "漢字" * 40,
)


def words_of_the_embedded_model():
    tokenizer = tokenizers.Tokenizer.from_file(str(embedded_model_dir() / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer, WordTokeniser(tokenizer)


@pytest.mark.parametrize("text", TEXTS)
def test_the_embedded_model_gets_the_tokens_of_the_whole_text(text):
    tokenizer, words = words_of_the_embedded_model()
    whole = tokenizer.encode(text, add_special_tokens=False)
    for _ in range(2):  # the second time every word is known
        found = words.tokens(text)
        assert found.ids == whole.ids
        assert [found[at] for at in range(len(found))] == whole.offsets


def test_a_tokeniser_that_puts_spaces_into_tokens_reads_the_whole_text():
    alphabet = {char: at for at, char in enumerate("Ġabc")}
    tokenizer = tokenizers.Tokenizer(
        tokenizers.models.BPE(vocab=alphabet | {"Ġa": 4, "bc": 5}, merges=[("Ġ", "a"), ("b", "c")])
    )
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=True)
    assert WordTokeniser(tokenizer).tokens("bc a").ids == [0, 5, 4]


def test_a_special_token_with_a_space_in_it_is_seen():
    tokenizer, _ = words_of_the_embedded_model()
    tokenizer.add_special_tokens(["by the way"])
    whole = tokenizer.encode("so by the way yes", add_special_tokens=False).ids
    assert len(whole) == 3
    assert WordTokeniser(tokenizer).tokens("so by the way yes").ids == whole


@pytest.mark.parametrize(
    "text", ["", "- One.\n- Two?\n\n| a | b |\n|---|---|\n| 1 | 2 |\n", " It costs $3.50.  Fair? ", *TEXTS]
)
def test_bodies_are_those_of_the_segments(text):
    assert bodies(text) == [(piece.body_start, piece.body_end, piece.body) for piece in segment(text)]

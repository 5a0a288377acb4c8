"""Texts are tokenised once: what the model is given equals what its tokeniser makes of the pair as a whole."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from guardrail.errors import ModelLoadError
from guardrail.protocols import Pair
from guardrail.scoring.entailment import OnnxEntailment, ScoringWorker, onnx
from guardrail.scoring.entailment.forward import ModelLimits, Window, plan
from guardrail.scoring.entailment.labels import LabelMap
from tests.tiny_models import MAX_TOKENS, copy_of, tiny_models

# torch warns about itself
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
SPECIAL = [("[CLS]", 2), ("[SEP]", 3)]
COLUMNS = {"input_ids": "ids", "attention_mask": "attention_mask", "token_type_ids": "type_ids"}
TEXTS = [
    "the door opens at nine",
    "",
    "   ",
    "a",
    "The plan: 10 euros, 3.5 a month!",
    "naïve café Ωμέγα 東京 🚪 \u200b e\u0301",
    "[SEP] in a text [CLS]",
    " spaces \n and\tlines ",
    "unknownlongword " * 9,
]


def processors() -> dict[str, Any]:
    """What tokenisers of several families put around a pair."""
    from tokenizers import processors as p

    def template(pair: str) -> Any:
        return p.TemplateProcessing(single="[CLS] $A [SEP]", pair=pair, special_tokens=SPECIAL)

    bert = template("[CLS] $A [SEP] $B:1 [SEP]:1")
    return {
        "bert-template": bert,
        "bert": p.BertProcessing(("[SEP]", 3), ("[CLS]", 2)),
        "roberta": p.RobertaProcessing(("[SEP]", 3), ("[CLS]", 2)),
        "roberta-template": template("[CLS] $A [SEP] [SEP] $B [SEP]"),
        "t5": template("$A [SEP] $B [SEP]"),
        "claim-first": template("[CLS] $B:1 [SEP] $A [SEP]:1"),
        "sequence": p.Sequence([p.ByteLevel(), bert]),
        "byte-level": p.ByteLevel(),
        "none": None,
    }


def tokenizer_of(path: Path, processor: Any) -> Any:
    """The tiny models' tokeniser with another post-processor."""
    from tokenizers import Tokenizer, pre_tokenizers

    tokenizer = Tokenizer.from_file(str(path))
    if processor is not None:
        tokenizer.post_processor = processor
        return tokenizer
    bare = Tokenizer(tokenizer.model)
    bare.normalizer, bare.pre_tokenizer = tokenizer.normalizer, pre_tokenizers.BertPreTokenizer()
    return bare


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model's directory."""
    return tiny_models(tmp_path_factory).onnx_dir


def loaded(directory: Path) -> Any:
    """The loaded model behind the slot."""
    model, _ = OnnxEntailment(directory).loaded()
    return model


@pytest.mark.parametrize("family", list(processors()))
def test_two_texts_are_joined_as_the_tokeniser_does(tiny: Path, family: str):
    tokenizer = tokenizer_of(tiny / "tokenizer.json", processors()[family])
    template = onnx._Template.of(tokenizer, tiny / "tokenizer.json")
    for premise in TEXTS:
        for claim in TEXTS:
            whole = tokenizer.encode(premise, claim)
            apart = [tokenizer.encode(text, add_special_tokens=False).ids for text in (premise, claim)]
            row = template.join(*apart)
            assert (row.ids, row.types) == (whole.ids, whole.type_ids)
            assert list(row.claim) == [at for at, number in enumerate(whole.sequence_ids) if number == 1]
            assert [row.ids[at] for at in row.claim] == apart[1]


def test_a_template_that_repeats_a_text_is_refused(tiny: Path, tmp_path: Path):
    from tokenizers import processors as p

    repeated = p.TemplateProcessing(single="[CLS] $A", pair="[CLS] $A $A [SEP] $B", special_tokens=SPECIAL)
    directory = copy_of(tiny, tmp_path / "m")
    tokenizer_of(directory / "tokenizer.json", repeated).save(str(directory / "tokenizer.json"))
    with pytest.raises(ModelLoadError, match=r"tokenizer\.json does not join premise and claim"):
        OnnxEntailment(directory).load()


def test_the_inputs_of_planned_windows_are_those_of_the_texts(tiny: Path):
    from tokenizers import Tokenizer

    model = loaded(tiny)
    long = " ".join(f"the plan {i} costs {i} euros, naïve 東京 archive{i}" for i in range(60))
    pairs = [Pair(premise, claim) for premise in [*TEXTS, long] for claim in TEXTS[:6]]
    limits = ModelLimits(
        labels=LabelMap(contradiction=0, entailment=1, neutral=2),
        max_tokens=MAX_TOKENS,
        special_tokens=3,
        batch_size=8,
        batch_tokens=4 * MAX_TOKENS,
    )
    made = plan(model, limits, pairs, scorer="m")
    assert len(made.windows[Pair(long, TEXTS[0])]) > 5
    tokenizer = Tokenizer.from_file(str(tiny / "tokenizer.json"))
    widths = set()
    for batch in made.batches:
        assert all(isinstance(window, Window) for window in batch)
        feed, claims = model.feed(batch)
        plain, own = model.feed([Pair(*window) for window in batch])  # without the tokens of the plan
        assert claims == own
        encodings = [tokenizer.encode(*window) for window in batch]
        width = max(len(encoding) for encoding in encodings)
        widths |= {len(encoding) - width for encoding in encodings}
        assert width <= MAX_TOKENS
        for encoding in encodings:
            encoding.pad(width)
        for name, column in (
            ("input_ids", "ids"),
            ("attention_mask", "attention_mask"),
            ("token_type_ids", "type_ids"),
        ):
            expected = np.array([getattr(encoding, column) for encoding in encodings])
            assert np.array_equal(feed[name], expected)
            assert np.array_equal(plain[name], expected)
            assert feed[name].dtype == np.int64
    assert min(widths) < 0  # some rows were padded


def test_an_empty_claim_has_no_tokens(tiny: Path):
    feed, claims = loaded(tiny).feed([Pair("the door", ""), Pair("the door", "opens")])
    assert [len(claim) for claim in claims] == [0, 1]
    assert feed["attention_mask"].sum(axis=1).tolist() == [5, 6]


async def test_each_text_is_tokenised_once_and_its_tokens_are_forgotten(tiny: Path, monkeypatch: pytest.MonkeyPatch):
    worker = ScoringWorker()
    model = OnnxEntailment(tiny, worker=worker)
    inner: Any = model.loaded()[0]
    read: dict[str, weakref.ref[Any]] = {}
    original = inner.offsets

    def offsets(text: str) -> Any:
        assert text not in read
        tokens = original(text)
        read[text] = weakref.ref(tokens)
        return tokens

    monkeypatch.setattr(inner, "offsets", offsets)
    long = " ".join(f"the plan {i} costs {i} euros" for i in range(40))
    scores = await model.score([Pair(premise, claim) for premise in ("the door", long) for claim in ("nine", "ten")])
    assert len(scores) == 4
    assert {"the door", long, "nine", "ten"} < set(read)
    await worker.run(int)  # its thread has left the last turn of the call
    gc.collect()
    assert [text for text, tokens in read.items() if tokens() is not None] == []

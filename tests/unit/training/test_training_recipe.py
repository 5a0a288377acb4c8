"""The recipe of the embedded model."""

from __future__ import annotations

from pathlib import Path

import pytest

from guardrail.errors import InputError
from guardrail.training.differences import changed_words
from guardrail.training.pairs import TrainingPair, read_pairs
from guardrail.training.sources import ANSWER_SOURCES, PAIR_SOURCES
from tests.unit.training.toy import smooth_base, tiny

DATA = Path(__file__).parents[4] / "shared" / "data" / "train"
PREMISE = "Anna Rossi came in May. The mill was sold to the town in 1932. It burned down."


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        ("The mill was sold to the town in 1950.", ["1950"]),
        ("The mill was never sold to the town in 1932.", ["never"]),
        ("The mill was sold to a bank in 1932.", ["a bank"]),
        ("The mill and the farm were sold to the town in 1932.", ["and the farm were"]),
        ("the MILL was sold to the town in 1932", None),
        ("The mill was sold in 1932.", None),
        ("Nobody knows who this could be.", None),
        ("", None),
    ],
)
def test_words_that_an_edit_changed(claim, words):
    found = changed_words(PREMISE, claim)
    assert (found and [claim[start:end] for start, end in found]) == words


@pytest.fixture(scope="module")
def recipe(tmp_path_factory):
    tiny(tmp_path_factory)
    from guardrail.training import recipe

    return recipe


def test_a_long_premise_becomes_evidence_and_edits_get_word_labels(recipe):
    filler = " ".join(f"In year {n} nothing of note was written down by anybody." for n in range(30))
    pair = TrainingPair(
        premise=f"{filler} The mill was sold to the town in 1932. {filler}",
        hypothesis="The mill was sold to the town in 1950.",
        label="contradiction",
        source="syn_fm2ev_dateswap",
    )
    found = recipe.as_checked(pair)
    assert len(found.premise.split()) <= 130
    assert "The mill was sold to the town in 1932." in found.premise
    assert [pair.hypothesis[start:end] for start, end in found.unsupported] == ["1950"]


@pytest.mark.parametrize(
    ("label", "source", "words"),
    [("entailment", "snli", ()), ("neutral", "snli", None), ("neutral", "syn_fm2ev_paraphrase", None)],
)
def test_words_are_labelled_only_where_it_is_known(recipe, label, source, words):
    pair = TrainingPair(premise="The mill is old.", hypothesis="The mill is new.", label=label, source=source)
    assert recipe.as_checked(pair) == TrainingPair(
        premise=pair.premise, hypothesis=pair.hypothesis, label=label, source=source, unsupported=words
    )


def test_every_source_has_a_licence(recipe):
    assert all(source.licence and source.pairs > 0 for source in (*PAIR_SOURCES, *ANSWER_SOURCES))
    assert len({source.name for source in PAIR_SOURCES}) == 24
    assert recipe.licences().keys() >= {source.name for source in PAIR_SOURCES}


def test_the_schedules_are_those_of_the_shipped_model(recipe):
    first, second = recipe.FIRST_STAGE, recipe.SECOND_STAGE
    assert (first.epochs, first.rate(1187, 2763), recipe.FIRST_STAGE_STEPS) == (1, 1e-4, 1188)
    assert (second.decay_share, second.word_weight) == (0.5, 1.0)
    assert second.rate(1000, 4000) == 1e-4 > second.rate(3000, 4000) > 0
    assert (recipe.THIRD_STAGE.learning_rate, recipe.THIRD_STAGE.decay_share) == (7e-5, 0.8)
    assert (recipe.FOURTH_STAGE.learning_rate, recipe.FOURTH_STAGE.decay_share) == (1e-4, 0.75)


def test_missing_data_is_named(recipe, tmp_path):
    with pytest.raises(InputError, match=r"has no mnli_dev_matched\.jsonl\.gz"):
        recipe.build_stages(tmp_path, tmp_path / "out")


@pytest.fixture(scope="module")
def small(recipe, tmp_path_factory):
    """All stages in a hundredth of their size."""
    if not DATA.is_dir():
        pytest.skip("the shared data are not here")
    return recipe.build_stages(DATA, tmp_path_factory.mktemp("stages"), scale=0.01)


@pytest.mark.shared_data
def test_the_stages_hold_what_the_recipe_says(small):
    paths = (small.first, small.second, small.third, small.fourth, small.held_out)
    first, second, third, fourth, held = (list(read_pairs(path)) for path in paths)
    counts = {file.name: file.pairs for file in small.files}
    assert counts["mnli_dev_matched"] == 98
    assert counts["synthetic_longctx"] == 170
    assert counts["records (invented)"] == 140
    assert counts["prose (made from documents)"] <= 160
    marked = [p for p in first if p.source == "ragtruth"]
    assert len(marked) + len(held) == counts["ragtruth (answers)"]
    assert sum(p.source == "ragtruth" for p in second) == 2 * len(marked)
    trained = {(p.premise, p.hypothesis) for p in first + second + third + fourth}
    assert trained.isdisjoint((p.premise, p.hypothesis) for p in held)
    assert not [p for p in second if p.source in ("help", "drop_nli")]
    assert [p for p in first if p.source in ("help", "drop_nli")]
    assert all(p.unsupported == () for p in first if p.label == "entailment")
    assert {p.unsupported for p in third if p.source == "mnli"} <= {None}
    assert sum(len(p.premise.split()) <= 45 for p in third) >= 170
    assert sum(p.source == "ragtruth" for p in fourth) == 3 * len(marked)
    assert sum(p.source.startswith("edited_") for p in fourth) == counts["edited (made from answers)"] > 50
    assert sum(p.source.startswith("records_") for p in fourth) == 100


@pytest.mark.shared_data
def test_the_recipe_runs_from_data_to_model(small, tmp_path, tmp_path_factory, monkeypatch):
    from guardrail.training import embedded

    monkeypatch.setattr(embedded, "build_stages", lambda *_, **__: small)
    base = smooth_base(tmp_path_factory)
    lines: list[str] = []
    report = embedded.train_embedded(DATA, tmp_path / "out", base=base, log=lines.append, scale=0.01)
    stages = [line for line in lines if line.startswith("stage")]
    assert stages == ["stage first", "stage second", "stage third", "stage fourth"]
    assert report.before.n == report.after.n > 0
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert "| scone | pairs | 5980 | 25 | 0 | CC0 1.0 |" in card
    assert "unknown" not in card
    assert {p.name for p in (tmp_path / "out").iterdir()} >= {"onnx", "torch", "README.md", "checkpoint-second"}

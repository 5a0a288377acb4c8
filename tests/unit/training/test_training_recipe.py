"""The recipe of the embedded model."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from guardrail.errors import InputError, ModelLoadError
from guardrail.evaluation.labelled import read_answers
from guardrail.training.differences import changed_words
from guardrail.training.pairs import TrainingPair, read_pairs
from guardrail.training.sources import ANSWER_SOURCES, PAIR_SOURCES, WRITTEN, WRITTEN_SOURCES
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
    assert all(source.licence and source.pairs > 0 for source in (*PAIR_SOURCES, *ANSWER_SOURCES, *WRITTEN_SOURCES))
    assert len({source.name for source in PAIR_SOURCES}) == 24
    assert recipe.licences().keys() >= {source.name for source in (*PAIR_SOURCES, *WRITTEN_SOURCES)}


def test_the_schedule_is_that_of_the_shipped_model(recipe):
    assert ([each.after for each in recipe.ROUNDS], recipe.LAYERS) == ([(), (1,), (1, 2)], 10)
    for each in recipe.ROUNDS[:2]:
        schedule = each.schedule
        assert (schedule.epochs, schedule.word_weight, schedule.mean_decay) == (1, 1.0, 0.998)
        assert schedule.rate(100, 1000) == 8e-5 == schedule.rate(400, 1000) > schedule.rate(700, 1000) > 0
        assert (each.broad.marked, each.near.marked) == (False, True)
    last = recipe.ROUNDS[2]
    assert (last.schedule.learning_rate, last.schedule.mean_decay) == (6e-5, 0.998)
    assert min(last.broad.written, last.near.written) > 20_000


def test_what_was_written_to_train_on_is_marked_and_partly_held_out(recipe):
    rows = [row for source in WRITTEN_SOURCES for row in read_answers(WRITTEN / f"{source.name}.jsonl.gz")]
    assert len({(row.context, row.answer) for row in rows}) == len(rows) > 8_000
    held = [row for row in rows if recipe.is_held_out(row)]
    assert 0.09 < len(held) / len(rows) < 0.16
    for row in rows:
        spans = row.detail["spans"]
        assert row.grounded is not bool(spans)
        assert all(0 <= span["start"] < span["end"] <= len(row.answer) for span in spans)
        assert {span["type"] for span in spans} <= {"conflict", "baseless"}
        assert not {"[[", "]]", "|b", "|c"} & set(row.answer.split())


def test_missing_data_is_named(recipe, tmp_path):
    with pytest.raises(InputError, match=r"has no mnli_dev_matched\.jsonl\.gz"):
        recipe.build_parts(tmp_path, tmp_path / "out")


@pytest.fixture(scope="module")
def small(recipe, tmp_path_factory):
    """All parts in a hundredth of their size."""
    if not DATA.is_dir():
        pytest.skip("the shared data are not here")
    return recipe.build_parts(DATA, tmp_path_factory.mktemp("parts"), scale=0.01)


@pytest.mark.shared_data
def test_the_parts_hold_what_the_recipe_says(recipe, small):
    held = list(read_pairs(small.held_out))
    counts = {file.name: file.pairs for file in small.files}
    assert counts["mnli_dev_matched"] == 98
    assert counts["synthetic_longctx"] == 170
    assert counts["records (invented)"] == 180
    assert 0 < counts["prose (made from documents)"] <= 190
    assert 0 < counts["edited (made from answers)"] <= 155
    held_marked = sum(p.source == "ragtruth" for p in held)
    assert {p.source for p in held} <= {"ragtruth", *(source.name for source in WRITTEN_SOURCES)}
    made = ("ragtruth", "records_", "prose_", "edited_", "written_")
    for each, paths in zip(recipe.ROUNDS, small.rounds, strict=True):
        for part, path in zip((each.broad, each.near), paths, strict=True):
            pairs = list(read_pairs(path))
            marked = counts["ragtruth (answers)"] - held_marked if part.marked else 0
            assert sum(p.source == "ragtruth" for p in pairs) == (part.answers + part.own) // 100 + marked
            assert sum(p.source.startswith("records_") for p in pairs) == part.records // 100
            assert sum(p.source.startswith("prose_") for p in pairs) == part.prose // 100
            assert sum(p.source.startswith("edited_") for p in pairs) == part.edited // 100
            assert sum(p.source.startswith("written_") for p in pairs) == part.written // 100
            lengths = [len(p.premise.split()) for p in pairs if not p.source.startswith(made)]
            assert sum(length <= 45 for length in lengths) == part.short // 100
            assert sum(length > 45 for length in lengths) == part.long // 100
            assert {p.unsupported for p in pairs if not p.source.startswith((*made, "syn_"))} == {None}
            claims = {p.hypothesis for p in pairs if p.source == "ragtruth"}
            assert claims.isdisjoint(p.hypothesis for p in held if len(p.hypothesis.split()) > 12)


def test_a_kind_that_is_used_up_begins_again_in_another_order(recipe):
    pairs = [TrainingPair(premise=str(n), hypothesis="h", label="entailment") for n in range(50)]
    supply = recipe._Supply(pairs, random.Random(1))
    taken = [int(pair.premise) for pair in supply.take(30) + supply.take(70)]
    assert sorted(taken[:50]) == sorted(taken[50:]) == list(range(50))
    assert taken[:50] != taken[50:] != list(range(50))
    assert recipe._Supply([], random.Random(1)).take(3) == []


def test_a_base_with_too_few_positions_is_refused(tmp_path, tmp_path_factory):
    short = tiny(tmp_path_factory).torch_dir
    from guardrail.training.embedded import train_embedded

    with pytest.raises(ModelLoadError, match="has 64 positions and the pairs up to 224 tokens: take another base"):
        train_embedded(tmp_path, tmp_path / "out", base=short)
    assert not (tmp_path / "out").exists()


@pytest.mark.shared_data
def test_the_recipe_runs_from_data_to_model(small, tmp_path, tmp_path_factory, monkeypatch):
    from guardrail.training import embedded

    monkeypatch.setattr(embedded, "build_parts", lambda *_, **__: small)
    base = smooth_base(tmp_path_factory)
    lines: list[str] = []
    report = embedded.train_embedded(DATA, tmp_path / "out", base=base, log=lines.append, scale=0.01)
    assert lines[0] == "writing the pairs of all rounds"
    assert report.before.n == report.after.n > 0
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert "| scone | pairs | 5980 | 25 | 0 | CC0 1.0 |" in card
    assert "unknown" not in card
    assert {p.name for p in (tmp_path / "out").iterdir()} >= {
        "onnx",
        "torch",
        "README.md",
        "checkpoint-1",
        "checkpoint-2",
    }

"""`guardrail train`, from files to a model that the guard uses."""

from __future__ import annotations

import json
import sys

import pytest

from guardrail import Guardrail, Verifier
from guardrail.cli import main
from guardrail.scoring.entailment.onnx import OnnxEntailment
from tests.tiny_models import copy_of, edit_config
from tests.unit.training.toy import smooth_base, toy_pairs, write_rows

SETTINGS = ["--epochs", "60", "--learning-rate", "3e-3", "--hold-out", "0.25", "--no-color"]


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return smooth_base(tmp_path_factory)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    rows = [pair.to_json() for pair in toy_pairs(96)]
    return write_rows(tmp_path_factory.mktemp("toy") / "toy.jsonl", rows)


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    hours = ["nine", "ten"] * 4
    rows = [
        {
            "context": f"The door opens at {hour}. The archive holds maps of {number}.",
            "answer": "The door opens at nine. The archive holds maps.",
            "label": int(hour == "nine"),
            "detail": {} if hour == "nine" else {"spans": [{"start": 18, "end": 22}]},
        }
        for number, hour in enumerate(hours)
    ]
    rows.append({"context": "The plan costs ten euros.", "answer": "It costs nine. It is a plan of ten.", "label": 0})
    return write_rows(tmp_path_factory.mktemp("marked") / "marked.jsonl", rows)


@pytest.fixture(scope="module")
def trained(base, pairs, answers, tmp_path_factory):
    """The folder of a training, made once."""
    out = tmp_path_factory.mktemp("trained") / "out"
    words = ["train", str(pairs), str(answers), "--out", str(out), "--base", str(base), "--languages", "en,it"]
    assert main([*words, *SETTINGS]) == 0
    return out


async def test_the_guard_uses_what_was_trained(trained):
    model = OnnxEntailment(trained / "onnx")
    model.load()
    assert model.languages == ["en", "it"]
    found = await Verifier(entailment=model).verify("The door opens at nine.", ["The door opens at nine."])
    assert found.scorer == "onnx:onnx"
    assert Guardrail(entailment=model) is not None


def test_the_card_says_how_it_was_made(trained, base, pairs):
    card = (trained / "README.md").read_text(encoding="utf-8")
    assert "| toy.jsonl | pairs | 96 | 96 |" in card
    assert "| marked.jsonl | answers | 9 | 16 |" in card
    assert f"* Base: {base.name}" in card
    assert "* Languages: en, it" in card
    assert "* Seed: 7" in card
    assert f"guardrail train {pairs}" in card
    assert "--epochs 60 --learning-rate 0.003 --max-tokens 256 --seed 7 --hold-out 0.25 --languages en,it" in card
    assert "| before |" in card
    assert "| after |" in card
    assert "unknown" not in card


def test_a_finished_training_is_not_repeated_and_reports_again(trained, base, pairs, answers, capsys):
    before = (trained / "onnx" / "model.onnx").read_bytes()
    words = ["train", str(pairs), str(answers), "--out", str(trained), "--base", str(base), "--languages", "en,it"]
    assert main([*words, *SETTINGS, "--json"]) == 0
    shown = capsys.readouterr()
    found = json.loads(shown.out)
    assert "from step" in shown.err
    assert (trained / "onnx" / "model.onnx").read_bytes() == before
    assert [f["kind"] for f in found["files"]] == ["pairs", "answers"]
    assert found["files"][1]["silent"] == 1
    assert found["after"]["n"] == sum(f["held_out"] for f in found["files"]) >= 25
    assert found["after"]["auroc"] > 0.9 > found["before"]["auroc"]
    assert found["onnx"] == str(trained / "onnx")


def test_an_exported_model_can_be_the_base_of_the_next(trained, pairs, tmp_path, capsys):
    start = copy_of(trained / "onnx", tmp_path / "start")
    calibration = {"bias": 0.1, "entailment": 0.9}
    edit_config(start, guardrail_calibration=calibration)
    (start / "checksums.json").unlink()
    words = ["train", str(pairs), "--out", str(tmp_path), "--base", str(start), "--epochs", "1"]
    assert main([*words, "--learning-rate", "1e-6", "--no-color"]) == 0
    shown = capsys.readouterr().out
    assert "before" in shown
    assert "after" in shown
    assert f"for the guard: {tmp_path / 'onnx'}" in shown
    assert OnnxEntailment(tmp_path / "onnx").model_id == "onnx:onnx"
    described = json.loads((tmp_path / "onnx" / "config.json").read_text())
    assert described["guardrail_languages"] == ["en", "it"]  # those of its base
    assert described["guardrail_calibration"] == calibration
    assert json.loads((tmp_path / "torch" / "config.json").read_text())["guardrail_calibration"] == calibration


def test_a_checkpoint_of_other_data_is_refused(trained, base, pairs, capsys):
    assert main(["train", str(pairs), "--out", str(trained), "--base", str(base), *SETTINGS]) == 2
    assert "is the checkpoint of another training" in capsys.readouterr().err


def test_help(capsys):
    assert main(["train", "--help"]) == 0
    shown = capsys.readouterr().out
    for word in ("PAIRS", "--out", "--base", "--epochs", "--learning-rate", "--hold-out", "--recipe", "detail.spans"):
        assert word in shown


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "name at least one file"),
        (["{pairs}", "--data", "x"], "--data is for a recipe"),
        (["{pairs}", "--recipe", "embedded"], "leave out the PAIRS"),
        (["--recipe", "embedded", "--epochs", "2"], "leave out --epochs"),
        (["--recipe", "embedded"], "--data DIR --base DIR"),
        (["--recipe", "embedded", "--data", "{out}", "--base", "{out}/none"], "is not a directory"),
        (["--recipe", "embedded", "--data", "{out}", "--base", "{base}"], "has no mnli_dev_matched.jsonl.gz"),
        (["{out}/none.jsonl", "--base", "{base}"], "cannot read"),
        (["{pairs}", "--base", "{out}/none"], "is not a directory"),
        (["{pairs}", "--base", "{base}", "--max-tokens", "512"], "max_tokens must be from 32 to 256"),
        (["{pairs}", "--base", "{base}", "--hold-out", "1"], "from 0 to below 1"),
        (["{pairs}", "--base", "{base}", "--learning-rate", "nan"], "learning_rate must be between 0 and 1"),
        (["{pairs}", "--base", "{base}", "--languages", "English"], "languages must be ISO codes"),
        (["{pairs}", "--epochs", "0"], "must be a whole number of at least 1"),
        (["{pairs}", "--device", "tpu"], "invalid choice"),
    ],
)
def test_wrong_usage_says_what_to_change(base, pairs, tmp_path, capsys, words, said):
    filled = [word.format(pairs=pairs, base=base, out=tmp_path) for word in words]
    assert main(["train", *filled, "--out", str(tmp_path / "out")]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_folder_without_a_model_is_no_base(base, pairs, tmp_path, capsys):
    (tmp_path / "tokenizer.json").write_bytes((base / "tokenizer.json").read_bytes())
    assert main(["train", str(pairs), "--out", str(tmp_path / "out"), "--base", str(tmp_path)]) == 2
    assert "has neither model.safetensors nor model.onnx" in capsys.readouterr().err


def test_without_an_embedded_model_a_base_has_to_be_named(base, pairs, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("guardrail.cli.train.embedded_model_dir", lambda: None)
    assert main(["train", str(pairs), "--out", str(tmp_path / "out")]) == 2
    assert "--base DIR" in capsys.readouterr().err


def test_a_device_that_is_not_there(base, pairs, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    words = ["train", str(pairs), "--out", str(tmp_path / "out"), "--base", str(base), "--device", "cuda"]
    assert main(words) == 2
    assert "torch finds no CUDA device" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["torch", "onnx", "transformers", "tokenizers"])
def test_a_missing_library_names_the_extra(base, pairs, tmp_path, capsys, monkeypatch, name):
    monkeypatch.setitem(sys.modules, name, None)
    assert main(["train", str(pairs), "--out", str(tmp_path / "out")]) == 2
    assert "pip install 'guardrail-stream[train]'" in capsys.readouterr().err

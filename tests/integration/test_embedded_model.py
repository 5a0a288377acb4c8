"""The entailment model that ships: that it is whole, small, offline, and tells plain cases apart."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from guardrail import Verifier
from guardrail.protocols import Pair
from guardrail.scoring.entailment import default_entailment
from guardrail.scoring.entailment.onnx import OnnxEntailment, embedded_model_dir

DESK = "The desk opens at ten. Entry is free on Mondays. Dogs have to stay outside."
PLAIN = [
    (DESK, "On Mondays entry is free.", "Entry is free on Fridays only."),
    (DESK, "The desk is open from ten o'clock.", "The desk was designed by a famous architect."),
    ("The drug may cause nausea and headache in adults.", "Nausea is a possible side effect.", "It cures headaches."),
    ("A man is playing a guitar on a stage.", "Someone is making music.", "A man is sleeping at home."),
    ("The tenant must give notice thirty days before leaving.", "Notice is required.", "No notice is needed."),
]


@pytest.fixture(scope="module")
def directory():
    found = embedded_model_dir()
    assert found is not None
    return found


def test_it_is_small_and_has_a_card(directory):
    assert sum(path.stat().st_size for path in directory.iterdir()) <= 25_000_000
    card = (directory / "README.md").read_text(encoding="utf-8")
    assert all(word in card for word in ("Licence", "RAGTruth", "Apache-2.0", "Limits"))


def test_it_is_the_default_and_declares_what_it_was_fitted_for(directory):
    model = OnnxEntailment(directory)
    assert default_entailment().model_id == model.model_id == "onnx:embedded"
    model.load()
    assert model.languages == ["en"]
    assert 0 < model.detection_delta < 1
    assert model.missing_log_odds > 0
    assert Verifier(entailment=model).lexical_weight == model.lexical_weight


def test_what_its_policies_need_is_in_its_configuration(directory):
    config = json.loads((directory / "config.json").read_text(encoding="utf-8"))
    assert config["id2label"] == {"0": "contradiction", "1": "entailment", "2": "neutral"}
    assert config["guardrail_calibration"].keys() == {
        "bias", "entailment", "unsupported", "missing_value", "lexical_weight",
    }  # fmt: skip


@pytest.mark.parametrize(("premise", "supported", "unsupported"), PLAIN)
async def test_plain_cases_are_told_apart(directory, premise, supported, unsupported):
    right, wrong = await OnnxEntailment(directory).score([Pair(premise, supported), Pair(premise, unsupported)])
    assert right.entailment > wrong.entailment


def test_checking_needs_neither_torch_nor_the_network(directory):
    code = (
        "import socket, sys\n"
        "def refuse(*args, **kwargs): raise AssertionError('network')\n"
        "socket.socket.connect = refuse\n"
        "from guardrail import Verifier\n"
        f"found = Verifier().verify_sync('The desk opens at ten.', [{DESK!r}])\n"
        "assert found.scorer == 'onnx:embedded' and found.accepted, found\n"
        "assert not {'torch', 'transformers', 'sentence_transformers', 'onnx'} & sys.modules.keys()\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=100)

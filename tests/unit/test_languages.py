"""A claim in a language that the scorer was not trained for: marked, and refused where the policy says so."""

from __future__ import annotations

from typing import Any

import pytest

from guardrail import Guardrail, OutcomeStatus, Policy, Verifier
from guardrail.cli import main
from guardrail.errors import ScoringError
from guardrail.policy import BALANCED, STRICT
from guardrail.scoring.entailment import LexicalEntailment, as_entailment
from guardrail.scoring.languages import trained_languages, untrained_language
from guardrail.testing import FakeEntailment, ScriptedGenerator

IT_CONTEXT = "La biblioteca è aperta dal lunedì al venerdì. L'ingresso è libero per tutti. Apre alle dieci."
IT_ANSWER = "La biblioteca è aperta dal lunedì al venerdì."
IT_SHORT = "Apre alle dieci."
EN_CONTEXT = "The library is open from Monday to Friday. Entry is free for all. It opens at ten."
EN_ANSWER = "The library is open from Monday to Friday."
FAILS = BALANCED.override(name="careful", on_unknown_language="fail")


class Trained(FakeEntailment):
    """A scorer that finds everything entailed and declares its languages."""

    def __init__(self, languages: Any) -> None:
        super().__init__(1.0)
        self.languages = languages


ENGLISH = Trained(frozenset({"en"}))


@pytest.mark.parametrize(
    ("model", "answer", "context", "language"),
    [
        (ENGLISH, IT_ANSWER, IT_CONTEXT, "it"),
        (ENGLISH, IT_SHORT, IT_CONTEXT, "it"),  # claim and evidence are too short to tell: the passage does
        (ENGLISH, "Chiuso.", IT_CONTEXT, "it"),
        (ENGLISH, IT_SHORT, "Apre alle dieci.", None),
        (ENGLISH, EN_ANSWER, IT_CONTEXT, "it"),  # the model cannot read the evidence
        (ENGLISH, IT_ANSWER, EN_CONTEXT, "it"),
        (ENGLISH, EN_ANSWER, EN_CONTEXT, None),
        (ENGLISH, "It opens at ten.", EN_CONTEXT, None),
        (ENGLISH, "**La biblioteca** è aperta dal _lunedì_ al venerdì.", IT_CONTEXT, "it"),
        (Trained(["en", "it"]), IT_ANSWER, IT_CONTEXT, None),
        (Trained({"it"}), EN_ANSWER, EN_CONTEXT, "en"),
        (Trained(None), IT_ANSWER, IT_CONTEXT, None),
        (LexicalEntailment(), IT_ANSWER, IT_CONTEXT, None),
    ],
)
def test_what_the_verdict_is_marked_with(model: Any, answer: str, context: str, language: str | None):
    found = Verifier(entailment=model).verify_sync(answer, [context])
    assert [claim.language for claim in found.claims] == [language]


@pytest.mark.parametrize(
    ("policy", "accepted", "reason"),
    [(BALANCED, True, "passed"), (FAILS, False, "unsupported_language"), (STRICT, False, "unsupported_language")],
)
def test_the_policy_decides_about_an_italian_answer(policy: Policy, accepted: bool, reason: str):
    found = Verifier(policy=policy, entailment=ENGLISH).verify_sync(IT_ANSWER, [IT_CONTEXT])
    assert (found.accepted, found.reason, found.claims[0].language) == (accepted, reason, "it")
    assert found.claims[0].entailment == 1.0


@pytest.mark.parametrize("policy", [BALANCED, FAILS, STRICT], ids=lambda policy: policy.name)
def test_an_english_answer_is_none_the_worse(policy: Policy):
    found = Verifier(policy=policy, entailment=ENGLISH).verify_sync(EN_ANSWER, [EN_CONTEXT])
    assert (found.accepted, found.reason) == (True, "passed")


def test_one_failed_claim_in_a_known_language_is_the_better_reason():
    model = Trained({"en"})
    model._score = lambda premise, hypothesis: float("library" not in hypothesis)
    found = Verifier(policy=STRICT, entailment=model).verify_sync(
        f"The library is closed on Mondays for repairs. {IT_ANSWER}", [f"{EN_CONTEXT} {IT_CONTEXT}"]
    )
    assert (found.accepted, found.reason) == (False, "claims_failed")


@pytest.mark.parametrize(
    ("policy", "accepted", "reason"),
    [("mark", True, "passed"), ("fail", False, "unsupported_language")],
)
def test_the_reference_formula_marks_and_refuses_too(policy: Any, accepted: bool, reason: str):
    rules = Policy(formula="reference", delta=1.0, release="answer", on_unknown_language=policy)
    found = Verifier(policy=rules, entailment=ENGLISH).verify_sync(IT_ANSWER, [IT_CONTEXT])
    assert (found.accepted, found.reason, found.claims[0].language) == (accepted, reason, "it")


async def test_strict_never_streams_an_italian_answer():
    guard = Guardrail(policy=STRICT, entailment=ENGLISH)
    outcome = await guard.run(ScriptedGenerator([IT_ANSWER] * 3), question="Quando apre?", context=[IT_CONTEXT])
    assert outcome.status is OutcomeStatus.REFUSED
    assert IT_ANSWER not in outcome.text
    assert {v.language for attempt in outcome.attempts for v in attempt.verdicts} == {"it"}


async def test_balanced_streams_it_marked():
    guard = Guardrail(policy=BALANCED, entailment=ENGLISH)
    outcome = await guard.run(ScriptedGenerator([IT_ANSWER]), question="Quando apre?", context=[IT_CONTEXT])
    assert (outcome.accepted, outcome.text) == (True, IT_ANSWER)
    assert [verdict.language for verdict in outcome.verdicts] == ["it"]


def test_what_a_model_declares():
    assert trained_languages(ENGLISH) == frozenset({"en"})
    assert trained_languages(Trained(["de", "en"])) == frozenset({"de", "en"})
    assert trained_languages(Trained(None)) is None
    assert trained_languages(as_entailment(lambda pairs: [1.0 for _ in pairs])) is None


@pytest.mark.parametrize("languages", ["en", 1, [1], {"en", None}, frozenset()])
def test_a_declaration_that_is_no_set_of_codes_is_an_error(languages: Any):
    with pytest.raises(ScoringError, match="languages of Trained must be a set of ISO codes"):
        untrained_language(Trained(languages), EN_ANSWER, EN_CONTEXT)


def test_a_wrong_declaration_is_never_accepted():
    found = Verifier(entailment=Trained("en")).verify_sync(EN_ANSWER, [EN_CONTEXT])
    assert (found.accepted, found.reason) == (False, "scoring_error")


@pytest.mark.parametrize(("strict", "status"), [([], 0), (["--strict"], 1)])
def test_the_command_says_so(monkeypatch, tmp_path, capsys, strict: list[str], status: int):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("guardrail.scoring.verifier.default_entailment", lambda: ENGLISH)
    (tmp_path / "answer.txt").write_text(IT_ANSWER, encoding="utf-8")
    (tmp_path / "context.txt").write_text(IT_CONTEXT, encoding="utf-8")
    arguments = ["check", "--answer", str(tmp_path / "answer.txt"), "--context", str(tmp_path / "context.txt")]
    assert main([*arguments, *strict]) == status
    lines = capsys.readouterr().out.splitlines()
    assert "language: it (the checker is trained for en)" in lines
    assert ("the checker was not trained for its language" in lines[-1]) is bool(strict)

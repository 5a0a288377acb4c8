"""Published figures for the labelled files that are used here, each with where it was seen.

Only figures on the same answers, or nearly so, are listed. Not listed: claim-level re-cuts of the same corpora (the
RAGTruth and WiCE columns of LLM-AggreFact), and benchmarks whose data is not at hand. Differences that remain are in
the notes. Of ``ragtruth_test`` 140 of the 2,700 official rows are missing, 134 of them grounded, which flatters
precision a little.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """What somebody reports of one system on one set.

    Attributes:
        system: The system.
        figures: Shares in [0, 1] by name; ``f1``, ``precision``, ``recall``, ``balanced_accuracy`` and ``auroc`` are
            those of :class:`~guardrail.evaluation.benchmarks.quality.QualityRow`, for hallucinated answers; other
            names say what they are.
        task: The part of the set that they are for; empty for the whole.
        f1_by_task: F1 per part of the set.
        source: Paper or repository.
        note: What is different from the figures here; empty if nothing is known to be.
    """

    system: str
    figures: Mapping[str, float]
    task: str = ""
    f1_by_task: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    source: str
    note: str = ""


def published(name: str) -> tuple[Published, ...]:
    """The published figures for a set.

    Args:
        name: Name of its file, without the ending.

    Returns:
        In the order in which they are shown; empty if none were seen.

    Example:
        >>> best = published("ragtruth_test")[-1]
        >>> best.system, best.figures["f1"]
        ('RAG-HAT (Llama-3-8B)', 0.839)
        >>> published("rte3_it_de_fr")
        ()
    """
    return _SETS.get(name, ())


_LETTUCE = "LettuceDetect, arXiv 2502.17125 (KRLabsOrg/LettuceDetect, example level)"
_SECOND_HAND = "model pages of HHEM-2.1-Open, second-hand"
_SUMMEDITS = "salesforce/factualNLG, README"
_FAITHBENCH = "detector scores in vectara/FaithBench, arXiv 2410.13210"
_WICE = "ryokamoi/wice, evaluation files"
_CONTRACTNLI = "model card Agreemind/contractnli-distilbert-nda, self-reported"


def _ragtruth() -> tuple[Published, ...]:
    rows = (  # overall precision, recall, F1; F1 of QA, Data2txt, Summary
        ("GPT-3.5-turbo, prompt", 37.1, 92.3, 52.9, 30.8, 77.4, 37.1),
        ("GPT-4-turbo, prompt", 46.9, 97.9, 63.4, 45.6, 78.3, 47.6),
        ("SelfCheckGPT (GPT-3.5)", 49.7, 71.9, 58.8, 43.7, 74.8, 40.1),
        ("LMvLM (GPT-4)", 36.2, 77.8, 49.4, 30.1, 72.1, 36.2),
        ("ChainPoll (GPT-3.5)", 54.8, 40.6, 46.7, 40.5, 49.6, 46.9),
        ("RAGAS faithfulness", 62.0, 44.8, 52.0, 35.7, 61.9, 40.8),
        ("TruLens groundedness", 46.5, 85.8, 60.4, 36.6, 79.0, 44.5),
        ("Luna (encoder)", 52.7, 86.1, 65.4, 51.3, 75.9, 52.5),
        ("lettucedetect-base", 76.64, 75.50, 76.07, 65.52, 87.89, 50.52),
        ("lettucedetect-large", 80.44, 78.05, 79.22, 70.18, 88.54, 59.69),
        ("Llama-2-13B fine-tuned", 76.9, 80.7, 78.7, 68.2, 88.1, 59.1),
        ("RAG-HAT (Llama-3-8B)", 87.3, 80.8, 83.9, 74.8, 91.6, 67.6),
    )
    tiny = (("TinyLettuce 17M", 68.52), ("TinyLettuce 32M", 72.15), ("TinyLettuce 68M", 74.97))
    hhem = (("Summary", 64.42), ("QA", 74.28))
    return (
        *(
            Published(system="HHEM-2.1-Open", figures=_shares(balanced_accuracy=value), task=task, source=_SECOND_HAND)
            for task, value in hhem
        ),
        *(
            Published(system=system, figures=_shares(f1=f1), source="KRLabsOrg/LettuceDetect, docs/TINYLETTUCE.md")
            for system, f1 in tiny
        ),
        *(
            Published(
                system=system,
                figures=_shares(precision=precision, recall=recall, f1=f1),
                f1_by_task=_shares(QA=qa, Data2txt=data, Summary=summary),
                source=_LETTUCE,
            )
            for system, precision, recall, f1, qa, data, summary in rows
        ),
    )


def _summedits() -> tuple[Published, ...]:
    rows = (
        ("SummaC-Conv", 57.1),
        ("QAFactEval", 67.4),
        ("ChatGPT", 72.5),
        ("Claude 2.1", 75.6),
        ("Gemini-pro", 77.9),
        ("GPT-4", 83.2),
        ("people", 90.6),
    )
    note = "mean over the eight domains, each with the same weight"
    return tuple(
        Published(system=system, figures=_shares(balanced_accuracy=value), source=_SUMMEDITS, note=note)
        for system, value in rows
    )


def _faithbench() -> tuple[Published, ...]:
    rows: tuple[tuple[str, float, float | None], ...] = (
        ("GPT-3.5", 45.4, None),
        ("TRUE-NLI", 50.9, None),
        ("HHEM-1", 51.4, 56.6),
        ("TrueTeacher", 53.2, None),
        ("HHEM-2.1-english", 53.6, 62.1),
        ("HHEM-2.1", 54.2, 58.8),
        ("GPT-4o", 54.7, None),
        ("GPT-4-turbo", 55.2, None),
    )
    return tuple(
        Published(
            system=system,
            figures=_shares(balanced_accuracy=accuracy, **({} if area is None else {"auroc": area})),
            source=_FAITHBENCH,
            note="computed from those scores, threshold 0.5",
        )
        for system, accuracy, area in rows
    )


def _wice() -> tuple[Published, ...]:
    rows = (
        ("GPT-3.5", 56.9, 39.3, 32.0),
        ("GPT-4-0613", 80.2, 61.0, 77.0),
        ("T5-3B ANLI", 91.3, 61.8, 74.0),
        ("T5-3B ANLI+WiCE", 94.7, 77.8, 88.0),
    )
    note = "first 100 test claims, with chunks that contain the gold evidence; thresholds look tuned"
    return tuple(
        Published(
            system=system,
            figures=_shares(auroc=area, f1_of_supported=f1, accuracy=accuracy),
            source=_WICE,
            note=note,
        )
        for system, area, f1, accuracy in rows
    )


def _contractnli() -> tuple[Published, ...]:
    rows = (("rules", 20.9, 16.0), ("DistilBERT", 86.0, 76.2), ("BERT-base", 86.9, 76.7), ("LegalBERT", 87.3, 79.3))
    return tuple(
        Published(
            system=system,
            figures=_shares(micro_f1=micro, macro_f1=macro),
            source=_CONTRACTNLI,
            note="three classes, fine-tuned on the set's own training part",
        )
        for system, micro, macro in rows
    )


def _shares(**percent: float) -> Mapping[str, float]:
    return MappingProxyType({name: round(value / 100, 6) for name, value in percent.items()})


_SETS: Mapping[str, tuple[Published, ...]] = MappingProxyType(
    {
        "ragtruth_test": _ragtruth(),
        "summedits_8domains": _summedits(),
        "faithbench_noncommercial": _faithbench(),
        "wice_claim_test": _wice(),
        "contractnli_test": _contractnli(),
        "med_monotonicity": (
            Published(
                system="NLI models of 2019",
                figures=MappingProxyType({}),
                source="arXiv 1906.06448, abstract",
                note="accuracy under 0.55",
            ),
        ),
    }
)

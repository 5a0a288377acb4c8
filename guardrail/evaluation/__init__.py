"""Measuring answers and the guard itself: data sets, judges, citations, calibration, live traffic.

Everything here works offline with the embedded model; a judge is any callable or LangChain chat model. The names below
are what users need; each is loaded when it is first named.
"""

import importlib
import typing

if typing.TYPE_CHECKING:
    from guardrail.evaluation.alarms import Alarm, AlarmLevel, alarm
    from guardrail.evaluation.calibration.calibrating import acalibrate, calibrate
    from guardrail.evaluation.calibration.drift import DriftAlarm, drift_alarm
    from guardrail.evaluation.calibration.profile import Profile
    from guardrail.evaluation.cascade.budget import JudgeBudget
    from guardrail.evaluation.cascade.cascading import Cascade
    from guardrail.evaluation.citations import CitationQuality, CitedClaim, citation_quality, cited_claims
    from guardrail.evaluation.contradiction import ClaimLevel, Contradiction, PassageVerdict, levels
    from guardrail.evaluation.datasets.evaluating import aevaluate, evaluate
    from guardrail.evaluation.datasets.items.item import Item
    from guardrail.evaluation.datasets.measurement import ItemInProgress, Measurement
    from guardrail.evaluation.datasets.metrics import Metric, metric
    from guardrail.evaluation.datasets.results import Evaluation, read_evaluation
    from guardrail.evaluation.history.observer import SamplingObserver
    from guardrail.evaluation.history.store import History, Record
    from guardrail.evaluation.judging.decompose import JudgedAnswer, judge_answer
    from guardrail.evaluation.judging.decomposers import Decomposer, LLMDecomposer, SegmentDecomposer
    from guardrail.evaluation.judging.judge import LLMJudge
    from guardrail.evaluation.judging.usage import Usage
    from guardrail.evaluation.judging.verdicts import Judge, Judgement, JudgeVerdict
    from guardrail.evaluation.summary import Summary, summarise

_MODULES = {
    "alarms": ("Alarm", "AlarmLevel", "alarm"),
    "calibration.calibrating": ("acalibrate", "calibrate"),
    "calibration.drift": ("DriftAlarm", "drift_alarm"),
    "calibration.profile": ("Profile",),
    "cascade.budget": ("JudgeBudget",),
    "cascade.cascading": ("Cascade",),
    "citations": ("CitationQuality", "CitedClaim", "citation_quality", "cited_claims"),
    "contradiction": ("ClaimLevel", "Contradiction", "PassageVerdict", "levels"),
    "datasets.evaluating": ("aevaluate", "evaluate"),
    "datasets.items.item": ("Item",),
    "datasets.measurement": ("ItemInProgress", "Measurement"),
    "datasets.metrics": ("Metric", "metric"),
    "datasets.results": ("Evaluation", "read_evaluation"),
    "history.observer": ("SamplingObserver",),
    "history.store": ("History", "Record"),
    "judging.decompose": ("JudgedAnswer", "judge_answer"),
    "judging.decomposers": ("Decomposer", "LLMDecomposer", "SegmentDecomposer"),
    "judging.judge": ("LLMJudge",),
    "judging.usage": ("Usage",),
    "judging.verdicts": ("Judge", "JudgeVerdict", "Judgement"),
    "summary": ("Summary", "summarise"),
}
_LATE = {name: f"guardrail.evaluation.{module}" for module, names in _MODULES.items() for name in names}

__all__ = [
    "Alarm",
    "AlarmLevel",
    "Cascade",
    "CitationQuality",
    "CitedClaim",
    "ClaimLevel",
    "Contradiction",
    "Decomposer",
    "DriftAlarm",
    "Evaluation",
    "History",
    "Item",
    "ItemInProgress",
    "Judge",
    "JudgeBudget",
    "JudgeVerdict",
    "JudgedAnswer",
    "Judgement",
    "LLMDecomposer",
    "LLMJudge",
    "Measurement",
    "Metric",
    "PassageVerdict",
    "Profile",
    "Record",
    "SamplingObserver",
    "SegmentDecomposer",
    "Summary",
    "Usage",
    "acalibrate",
    "aevaluate",
    "alarm",
    "calibrate",
    "citation_quality",
    "cited_claims",
    "drift_alarm",
    "evaluate",
    "judge_answer",
    "levels",
    "metric",
    "read_evaluation",
    "summarise",
]


def __getattr__(name: str) -> typing.Any:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_LATE[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATE})

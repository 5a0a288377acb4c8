"""Generative judges: an answer as claims, and whether the context supports each of them (S4)."""

from guardrail.evaluation.judging.decompose import EvidenceShown, JudgedAnswer, JudgedClaim, judge_answer
from guardrail.evaluation.judging.decomposers import Decomposer, LLMDecomposer, SegmentDecomposer
from guardrail.evaluation.judging.judge import Judge, Judgement, JudgeVerdict, LLMJudge
from guardrail.evaluation.judging.parsing import parse_claims, parse_verdict
from guardrail.evaluation.judging.usage import Usage

__all__ = [
    "Decomposer",
    "EvidenceShown",
    "Judge",
    "JudgeVerdict",
    "JudgedAnswer",
    "JudgedClaim",
    "Judgement",
    "LLMDecomposer",
    "LLMJudge",
    "SegmentDecomposer",
    "Usage",
    "judge_answer",
    "parse_claims",
    "parse_verdict",
]

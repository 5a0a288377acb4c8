"""Every name that appears in telemetry.

The OpenTelemetry conventions for generative AI have no attempts, no claims and no verdicts (v0.1.0, 2026), so these
names live in a namespace of their own; ``gen_ai.*`` names are used where the conventions have the thing.
"""

from __future__ import annotations

SCOPE = "guardrail"
SCHEMA_URL = None  # the conventions for generative AI have not published one

SPAN_RUN = "guardrail.run"
SPAN_ATTEMPT = "guardrail.attempt"
STEP_SPANS = {
    "generate": "guardrail.generate",
    "score": "guardrail.score",
    "rerank": "guardrail.rerank",
    "budget": "guardrail.regeneration_budget",
    "limit": "guardrail.limiter_wait",
}

RUN_ID = "guardrail.run.id"
POLICY = "guardrail.policy"
RELEASE = "guardrail.release"
SCORER = "guardrail.scorer"
PASSAGES = "guardrail.passages"
MAX_ATTEMPTS = "guardrail.max_attempts"
ATTEMPTS = "guardrail.attempts"
ATTEMPT = "guardrail.attempt.number"
OUTCOME = "guardrail.outcome"
REASON = "guardrail.reason"
REPAIR = "guardrail.repair"
CONTEXT_STATE = "guardrail.context.state"
WOULD_HAVE = "guardrail.would_have"
CANCELLED = "guardrail.cancelled"
ACCEPTED = "guardrail.accepted"
COMPLETE = "guardrail.complete"
PASSAGE_IDS = "guardrail.passage.ids"
RELEASED_CHARS = "guardrail.released_chars"
UNCHECKED_CHARS = "guardrail.unchecked_chars"
DELTA_R = "guardrail.delta_r"
WORST_DELTA_R = "guardrail.delta_r.worst"
ROUGE_L = "guardrail.rouge_l"
ENTAILMENT = "guardrail.entailment"
CLAIMS = "guardrail.claims"
LANGUAGE = "guardrail.claim.language"  # codes, only of claims that the scorer was not trained for
VERDICTS = "guardrail.verdicts."  # + label
CITATIONS = "guardrail.citations."  # + status, only of answers that cite
FIRST_RELEASE_MS = "guardrail.first_release_ms"
ADDED_MS = "guardrail.added_ms"
SCORING_MS = "guardrail.scoring_ms"
DEGRADED = "guardrail.degraded"  # reasons for which limits were not applied as configured
LIMITER_MS = "guardrail.limiter_ms"
LINK_TYPE = "guardrail.link"
LINK_RETRY = "previous_attempt"

INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
ERROR_TYPE = "error.type"

# Only with OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY or SPAN_AND_EVENT.
QUESTION = "guardrail.content.question"
ANSWER = "guardrail.content.answer"
CONTEXT = "guardrail.content.passages"
FAILED_CLAIMS = "guardrail.content.failed_claims"

CAPTURE_SWITCH = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
LENGTH_LIMIT = "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT"

"""Events → spans: one per run and attempt, and one per generator call, scoring call, reranking, limit and budget."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from statistics import fmean
from typing import Any

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode, Tracer, TracerProvider

from guardrail._version import __version__
from guardrail.events import AttemptEnded, AttemptStarted, Event, RunEnded, RunStarted, StepEnded, StepStarted
from guardrail.protocols import RunObserver
from guardrail.telemetry import names
from guardrail.types import Attempt, CitationStatus, ClaimVerdict, Outcome, OutcomeStatus, ReceiptStatus

_DEFAULT_LENGTH_LIMIT = 8_192
_MAX_ITEMS = 64


class SpanObserver:
    """Creates spans for every run.

    The parent of a run's span is the span that is current when the stream is *created*, so a stream that is read in
    another task, or after the request's own span has ended, still belongs to its request.

    Args:
        tracer_provider: By default the global one, whenever it is set.
        capture_content: Whether questions, passages and answers become attributes; by default the standard switch
            ``OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT`` decides (``SPAN_ONLY``, ``SPAN_AND_EVENT``).
    """

    def __init__(self, *, tracer_provider: TracerProvider | None = None, capture_content: bool | None = None) -> None:
        self._tracer = trace.get_tracer(names.SCOPE, __version__, tracer_provider)
        self._capture = capture_content

    def open_run(self, run_id: str) -> RunObserver:
        """See :class:`guardrail.protocols.Observer`."""
        return _RunSpans(self._tracer, otel_context.get_current(), run_id, _captures(self._capture))


def _captures(setting: bool | None) -> bool:
    if setting is not None:
        return setting
    return os.environ.get(names.CAPTURE_SWITCH, "").strip().upper() in ("SPAN_ONLY", "SPAN_AND_EVENT")


class _RunSpans:
    def __init__(self, tracer: Tracer, parent: Context, run_id: str, capture: bool) -> None:
        self._tracer = tracer
        self._parent = parent
        self._run_id = run_id
        self._capture = capture
        self._run: Span | None = None
        self._attempts: dict[int, Span] = {}
        self._steps: dict[int, Span] = {}

    def on_event(self, event: Event) -> None:
        if isinstance(event, StepStarted):
            self._start_step(event)
        elif isinstance(event, StepEnded):
            self._end_step(event)
        elif isinstance(event, AttemptStarted):
            self._start_attempt(event)
        elif isinstance(event, AttemptEnded):
            self._end_attempt(event.attempt)
        elif isinstance(event, RunStarted):
            self._start_run(event)
        elif isinstance(event, RunEnded):
            self._end_run(event)

    def activate(self, step_id: int) -> AbstractContextManager[None]:
        return _current(trace.set_span_in_context(self._steps[step_id], self._parent))

    def _start_run(self, event: RunStarted) -> None:
        self._run = self._tracer.start_span(
            names.SPAN_RUN,
            context=self._parent,
            kind=SpanKind.INTERNAL,
            attributes={
                names.RUN_ID: self._run_id,
                names.POLICY: event.policy,
                names.RELEASE: event.release,
                names.SCORER: event.scorer,
                names.PASSAGES: event.passages,
                names.MAX_ATTEMPTS: event.max_attempts,
            },
        )

    def _under(self, span: Span | None) -> Context:
        return self._parent if span is None else trace.set_span_in_context(span, self._parent)

    def _start_attempt(self, event: AttemptStarted) -> None:
        previous = self._attempts.get(event.attempt - 1)
        links = []
        if previous is not None:
            links.append(Link(previous.get_span_context(), {names.LINK_TYPE: names.LINK_RETRY}))
        self._attempts[event.attempt] = self._tracer.start_span(
            names.SPAN_ATTEMPT,
            context=self._under(self._run),
            links=links,
            attributes={
                names.ATTEMPT: event.attempt,
                names.PASSAGE_IDS: list(event.passage_ids[:_MAX_ITEMS]),
                names.RELEASED_CHARS: event.released_chars,
            },
        )

    def _start_step(self, event: StepStarted) -> None:
        attempt = self._attempts.get(event.attempt)
        if event.name in ("budget", "limit", "rerank"):  # between attempts: they belong to the run
            attempt = None
        self._steps[event.step_id] = self._tracer.start_span(
            names.STEP_SPANS[event.name],
            context=self._under(attempt or self._run),
            attributes={names.ATTEMPT: event.attempt, **_clean(event.attributes, prefix="guardrail.")},
        )

    def _end_step(self, event: StepEnded) -> None:
        span = self._steps.pop(event.step_id)
        if span.is_recording():
            found = dict(event.attributes)
            verdicts = found.pop("verdicts", ())
            _set(span, _signals(verdicts))
            _set(span, {names.INPUT_TOKENS: found.pop("input_tokens", None)})
            _set(span, {names.OUTPUT_TOKENS: found.pop("output_tokens", None)})
            _set(span, _clean(found, prefix="guardrail."))
            self._mark(span, event.error, event.cancelled)
        span.end()

    def _end_attempt(self, attempt: Attempt) -> None:
        span = self._attempts[attempt.number]
        if span.is_recording():
            _set(
                span,
                {
                    names.ACCEPTED: attempt.accepted,
                    names.COMPLETE: attempt.complete,
                    names.REASON: attempt.reason or None,
                    names.DELTA_R: attempt.delta_r,
                    names.WORST_DELTA_R: attempt.worst_delta_r,
                    **_signals(attempt.verdicts),
                },
            )
            if self._capture:
                _set(span, {names.ANSWER: _cut(attempt.text)})
            self._mark(span, attempt.error, attempt.reason == "cancelled")
        span.end()

    def _end_run(self, event: RunEnded) -> None:
        span = self._run
        if span is None:
            return
        if span.is_recording():
            outcome = event.outcome
            _set(span, _outcome_attributes(outcome))
            if self._capture:
                _set(span, _content(event))
            failed = outcome.status is OutcomeStatus.ERROR
            self._mark(span, outcome.error if failed else None, outcome.status is OutcomeStatus.CANCELLED)
            if outcome.error is not None:
                _set(span, {names.ERROR_TYPE: type(outcome.error).__qualname__})
        span.end()

    def _mark(self, span: Span, error: BaseException | None, cancelled: bool) -> None:
        """Record how something ended; messages of exceptions may hold content, so only their type is recorded."""
        if cancelled:
            span.set_attribute(names.CANCELLED, True)
        elif error is not None:
            span.set_attribute(names.ERROR_TYPE, type(error).__qualname__)
            span.set_status(Status(StatusCode.ERROR, type(error).__qualname__))
            if self._capture:
                span.record_exception(error)


@contextmanager
def _current(context: Context) -> Iterator[None]:
    token = otel_context.attach(context)
    try:
        yield
    finally:
        otel_context.detach(token)


def _outcome_attributes(outcome: Outcome) -> dict[str, Any]:
    unchecked = sum(r.end - r.start for r in outcome.receipt if r.status is ReceiptStatus.NOT_CHECKED)
    delivered = next((a for a in outcome.attempts if a.number == outcome.delivered_attempt), None)
    return {
        names.OUTCOME: outcome.status.value,
        names.REASON: outcome.reason,
        names.REPAIR: outcome.repair or None,
        names.WOULD_HAVE: outcome.would_have or None,
        names.DEGRADED: list(outcome.degraded),
        names.CONTEXT_STATE: outcome.context_state.value,
        names.ATTEMPTS: len(outcome.attempts),
        names.RELEASED_CHARS: len(outcome.text),
        names.UNCHECKED_CHARS: unchecked,
        names.DELTA_R: None if delivered is None else delivered.delta_r,
        names.WORST_DELTA_R: None if delivered is None else delivered.worst_delta_r,
        names.FIRST_RELEASE_MS: outcome.timings.first_release_ms,
        names.ADDED_MS: outcome.timings.added_ms,
        names.SCORING_MS: outcome.timings.scoring_ms,
        names.LIMITER_MS: outcome.timings.limiter_ms,
        **_signals(outcome.verdicts),
    }


def _content(event: RunEnded) -> dict[str, Any]:
    failed = [
        v.segment.body for a in event.outcome.attempts for v in a.verdicts if v.delta_r is not None and not a.accepted
    ]
    return {
        names.QUESTION: _cut(event.question),
        names.ANSWER: _cut(event.outcome.text),
        names.CONTEXT: [_cut(p.text) for p in event.passages[:_MAX_ITEMS]],
        names.FAILED_CLAIMS: [_cut(text) for text in failed[:_MAX_ITEMS]],
    }


def _signals(verdicts: Sequence[ClaimVerdict]) -> dict[str, Any]:
    scored = [v for v in verdicts if v.checked]
    if not scored:
        return {}
    counts = Counter(v.verdict.value for v in scored if v.verdict is not None)
    cited = Counter(c.status for v in verdicts for c in v.citations)
    if set(cited) == {CitationStatus.MISSING}:  # nothing is cited, so nothing is missing
        cited.clear()
    return {
        names.CLAIMS: len(scored),
        names.LANGUAGE: sorted({v.language for v in scored if v.language is not None}),
        names.ROUGE_L: fmean(v.rouge_l for v in scored if v.rouge_l is not None),
        names.ENTAILMENT: fmean(v.entailment for v in scored if v.entailment is not None),
        names.WORST_DELTA_R: max(v.delta_r for v in scored if v.delta_r is not None),
        **{names.VERDICTS + label: count for label, count in counts.items()},
        **{names.CITATIONS + status.value: count for status, count in cited.items()},
    }


def _clean(attributes: Mapping[str, Any], *, prefix: str) -> dict[str, Any]:
    return {prefix + name: value for name, value in attributes.items()}


def _set(span: Span, attributes: Mapping[str, Any]) -> None:
    for name, value in attributes.items():
        if value is None or (isinstance(value, float) and not math.isfinite(value)):
            continue
        if isinstance(value, (bool, int, float, str)) or (isinstance(value, list) and value):
            span.set_attribute(name, value)


def _cut(text: str) -> str:
    raw = os.environ.get(names.LENGTH_LIMIT, "").strip()
    limit = int(raw) if raw.isdecimal() else _DEFAULT_LENGTH_LIMIT
    return text[:limit]

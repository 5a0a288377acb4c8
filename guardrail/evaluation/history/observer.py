"""Scores a share of live traffic, off the path of the answers, into a history."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from types import MappingProxyType, TracebackType
from typing import Self

from guardrail.errors import ConfigurationError, GuardrailError
from guardrail.evaluation.benchmarks.quality import answer_score, vetoed
from guardrail.evaluation.datasets.items import Item
from guardrail.evaluation.datasets.measurement import ItemInProgress
from guardrail.evaluation.datasets.metrics import Metric, metric
from guardrail.evaluation.history.background import Background
from guardrail.evaluation.history.store import History, Record, row_of
from guardrail.events import Event, RunEnded
from guardrail.protocols import Clock, RunObserver
from guardrail.scope import run_scope
from guardrail.scoring.verifier import Verifier
from guardrail.types import Attempt, Outcome, OutcomeStatus

_log = logging.getLogger("guardrail")
ANSWER_SCORE = "answer_score"
OWN_METRICS = (ANSWER_SCORE, "accepted", "refused", "attempts")
DEFAULT_SHARE = 0.05
DEFAULT_MAX_WAITING = 64
_DECIDED = (OutcomeStatus.ACCEPTED, OutcomeStatus.BEST_ATTEMPT, OutcomeStatus.REFUSED)
_STOPPED = "claims_failed"
_UNKNOWN = ("scoring_error", "no_context")
_HASH_BYTES = 8
_MOST_TOLD = 100
_FAILED = "failed: "


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingStats:
    """What became of the runs so far, in this process.

    Attributes:
        sampled: Runs that were chosen and have ended.
        dropped: How many of them were dropped because too many were waiting, or the observer was closed.
        recorded: How many of them are in the history.
        unwritten: How many of them could not be written.
        unscored: First attempts without an ``answer_score``: the checker failed, had nothing to check against, or
            the attempt broke off.
        failed: Measurements that failed, by the name of the metric.
    """

    sampled: int = 0
    dropped: int = 0
    recorded: int = 0
    unwritten: int = 0
    unscored: int = 0
    failed: Mapping[str, int] = field(default_factory=dict)


class SamplingObserver:
    """An :class:`~guardrail.protocols.Observer` that records a share of all runs.

    A run is chosen by a hash of its id, so all processes and services that see a run choose alike. Of a chosen run it
    records, from what the guard found out anyway:

    * ``answer_score``: how near the first attempt was to being stopped, see
      :func:`guardrail.evaluation.benchmarks.quality.answer_score`; low is good;
    * ``accepted`` and ``refused``: 0 or 1, unless the run ended in an error or its reader left;
    * ``attempts``: how many there were.

    ``metrics`` are measured on the delivered text in one background thread with an event loop of its own, at most one
    answer at a time. Nothing of this can delay, change or fail a run: when too many runs wait they are dropped and
    counted. A model that the metrics share with the guard is asked in turns, as by one more stream, so keep the share
    small where processors are few. Numbers go into the history, never text.

    Args:
        history: Where the scores go; it stays open when the observer is closed.
        share: Which share of the runs, in [0, 1].
        metrics: What to measure: names, see :data:`guardrail.evaluation.datasets.metrics.METRICS`, or metrics.
        verifier: Checks answers for ``metrics``; best one with the policy and model of the guard. By default one with
            the policy "balanced".
        max_waiting: How many runs may wait for the thread.
        metric_timeout_s: How long one metric may take for one answer.
        tags: What every record is labelled with, such as ``{"release": "7"}``.
        clock: Seconds since the epoch; for tests.

    Raises:
        ConfigurationError: If a setting is out of range, there is no such metric, one is named twice or like what is
            recorded anyway, or a tag cannot be recorded.

    Call :meth:`close` when the application ends. What is still waiting when the interpreter exits gets two seconds.

    Example:
        >>> from guardrail import Guardrail
        >>> from guardrail.telemetry import default_observers
        >>> with History(":memory:") as history, SamplingObserver(history, share=1.0) as sampling:
        ...     guard = Guardrail(observers=[*default_observers(), sampling])
        ...     outcome = guard.run_sync(lambda: "Entry is free.", question="Fee?", context=["Entry is free."])
        ...     sampling.flush(10.0), history.scores("accepted"), history.scores("attempts")
        (True, [1.0], [1.0])
    """

    def __init__(
        self,
        history: History,
        *,
        share: float = DEFAULT_SHARE,
        metrics: Sequence[Metric | str] = (),
        verifier: Verifier | None = None,
        max_waiting: int = DEFAULT_MAX_WAITING,
        metric_timeout_s: float = 120.0,
        tags: Mapping[str, str] = MappingProxyType({}),
        clock: Clock = time.time,
    ) -> None:
        if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0.0 <= share <= 1.0:
            raise ConfigurationError(f"share must be a number in [0, 1], got {share!r}")
        if isinstance(metric_timeout_s, bool) or not metric_timeout_s > 0.0:
            raise ConfigurationError(f"metric_timeout_s must be a number above 0, got {metric_timeout_s!r}")
        if isinstance(metrics, str):
            raise ConfigurationError("metrics must be a list of names or metrics, not one text")
        self._history = history
        self._share = share
        self._verifier = verifier or (Verifier() if metrics else None)
        self._metrics = () if self._verifier is None else tuple(_as_metric(own, self._verifier) for own in metrics)
        self._timeout_s = metric_timeout_s
        self._tags = dict(tags)
        _check_names(self._metrics, self._tags)
        self._clock = clock
        self._told: set[tuple[str, str]] = set()
        self._background = Background(self._work, name="guardrail-sampling", max_waiting=max_waiting)

    def open_run(self, run_id: str) -> RunObserver:
        """Choose; see :class:`~guardrail.protocols.Observer`."""
        return _SampledRun(self) if is_sampled(run_id, self._share) else _IGNORED

    @property
    def stats(self) -> SamplingStats:
        """What became of the runs so far; those that wait are counted as sampled only."""
        counts = self._background.counts
        return SamplingStats(
            sampled=counts["offered"],
            dropped=counts["dropped"],
            recorded=counts["recorded"],
            unwritten=counts["unwritten"],
            unscored=counts["unscored"],
            failed={
                name.removeprefix(_FAILED): number
                for name, number in sorted(counts.items())
                if name.startswith(_FAILED)
            },
        )

    def flush(self, timeout_s: float | None = None) -> bool:
        """Wait until what has been handed over so far is in the history.

        Args:
            timeout_s: How long to wait; ``None`` for as long as it takes.

        Returns:
            Whether nothing is waiting any more.

        Blocks: in asynchronous code call it in a thread.
        """
        return self._background.flush(timeout_s)

    def close(self, timeout_s: float = 10.0) -> bool:
        """Take no more runs, and finish those that wait. May be called again.

        Args:
            timeout_s: How long to wait; what is not finished by then is lost.

        Returns:
            Whether all of them were finished.

        Blocks: in asynchronous code call it in a thread.
        """
        return self._background.close(timeout_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _offer(self, ended: RunEnded) -> None:
        """Hand a run over; called in the run's own event loop."""
        self._background.offer((self._clock(), ended))

    async def _work(self, handed_over: tuple[float, RunEnded]) -> None:
        """Record one run; runs in the background thread."""
        at, ended = handed_over
        outcome = ended.outcome
        run_scope.set({})
        self._background.count("recorded" if self._write(at, outcome, self._known(outcome)) else "unwritten")
        if self._verifier is None or outcome.delivered_attempt is None or not outcome.text.strip():
            return  # the text of a refusal is the guard's own
        item = Item(id=outcome.run_id, question=ended.question, context=ended.passages, answer=outcome.text)
        progress = ItemInProgress(item, verifier=self._verifier)
        for own in self._metrics:
            score = await self._measured(own, progress)
            if score is not None:
                self._write(at, outcome, {own.name: score})

    async def _measured(self, own: Metric, progress: ItemInProgress) -> float | None:
        try:
            async with asyncio.timeout(self._timeout_s):
                found = await own.measure(progress)
            score, kind = found.score, found.error if found.error.isidentifier() else "an error"
        except Exception as error:
            score, kind = None, type(error).__name__
        if score is None:
            self._background.count(_FAILED + own.name)
            self._tell(f"the metric {own.name}", f"failed with {kind}")
        return score

    def _known(self, outcome: Outcome) -> dict[str, float]:
        """What the run tells without any further work."""
        known = {"attempts": float(len(outcome.attempts))}
        if outcome.status in _DECIDED:
            known["accepted"] = float(outcome.accepted)
            known["refused"] = float(outcome.status is OutcomeStatus.REFUSED)
        score = first_attempt_score(outcome.attempts[0], outcome.delta) if outcome.attempts else None
        if score is not None:
            known[ANSWER_SCORE] = score
        elif outcome.attempts:
            self._background.count("unscored")
        return known

    def _write(self, at: float, outcome: Outcome, scores: Mapping[str, float]) -> bool:
        records = [
            Record(
                at=at,
                run_id=outcome.run_id,
                metric=name,
                score=score,
                scorer=outcome.scorer,
                policy=outcome.policy,
                tags=self._tags,
            )
            for name, score in scores.items()
        ]
        try:
            self._history.record_many(records)
        except (GuardrailError, ValueError) as error:
            self._tell("the history", str(error))
            return False
        return True

    def _tell(self, who: str, what: str) -> None:
        """Log a problem, each kind once; the number of kinds is bounded."""
        if len(self._told) < _MOST_TOLD and (who, what) not in self._told:
            self._told.add((who, what))
            _log.warning("sampling: %s: %s", who, what)


class _SampledRun:
    def __init__(self, owner: SamplingObserver) -> None:
        self._owner = owner

    def on_event(self, event: Event) -> None:
        if isinstance(event, RunEnded):
            self._owner._offer(event)

    def activate(self, step_id: int) -> AbstractContextManager[None]:
        return nullcontext()


class _IgnoredRun:
    def on_event(self, event: Event) -> None:
        pass

    def activate(self, step_id: int) -> AbstractContextManager[None]:
        return nullcontext()


_IGNORED = _IgnoredRun()


def _as_metric(given: Metric | str, verifier: Verifier) -> Metric:
    if isinstance(given, str):
        return metric(given, verifier=verifier)
    if not callable(getattr(given, "measure", None)) or not isinstance(getattr(given, "name", None), str):
        raise ConfigurationError(f"{type(given).__name__} is no metric: it needs a name and measure(item)")
    return given


def _check_names(metrics: Sequence[Metric], tags: Mapping[str, str]) -> None:
    names = [*OWN_METRICS]
    for own in metrics:
        if own.name in names:  # scores of two kinds would be mixed
            raise ConfigurationError(
                f"metrics: {own.name!r} is there twice: name each once, and none of {', '.join(OWN_METRICS)}, which "
                "are recorded of every sampled run"
            )
        names.append(own.name)
    try:
        for name in names:
            row_of(Record(at=0.0, run_id="run", metric=name, score=0.0, tags=tags))
    except ValueError as error:  # else every single record would be refused later, where nobody sees it
        raise ConfigurationError(f"the history takes no such metrics or tags: {error}") from error


def is_sampled(run_id: str, share: float) -> bool:
    """Whether a run is among a share of all runs; the same in every process, and for every larger share.

    Args:
        run_id: The run.
        share: In [0, 1].

    Example:
        >>> sum(is_sampled(f"run {n}", 0.05) for n in range(10_000))
        500
    """
    digest = hashlib.blake2b(run_id.encode("utf-8", "surrogatepass"), digest_size=_HASH_BYTES).digest()
    return bool(int.from_bytes(digest, "big") < share * 2.0 ** (8 * _HASH_BYTES))


def first_attempt_score(attempt: Attempt, delta: float) -> float | None:
    """Where an attempt stands in the order in which answers are stopped.

    Args:
        attempt: The attempt.
        delta: δ of the policy.

    Returns:
        See :func:`guardrail.evaluation.benchmarks.quality.answer_score`; ``None`` if that is not known: something could
        not be checked, or the attempt broke off before anything was wrong with it.
    """
    if not attempt.complete and attempt.reason != _STOPPED:
        return None
    scored = [(verdict, verdict.delta_r) for verdict in attempt.verdicts if verdict.delta_r is not None]
    if not scored and attempt.worst_delta_r is not None:  # the reference formula scores the answer as a whole
        return answer_score([(False, attempt.worst_delta_r)])
    if any(v.reason in _UNKNOWN or (v.segment.kind.checked and not v.checked) for v in attempt.verdicts):
        return None
    return answer_score((vetoed(verdict, delta), score) for verdict, score in scored)

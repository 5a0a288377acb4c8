"""Evaluation of a data set: every item measured, written down at once, and summed up at the end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import fields as fields_of
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from guardrail._version import __version__
from guardrail.errors import ConfigurationError, InputError
from guardrail.evaluation.datasets.items import Items
from guardrail.evaluation.datasets.items.source import Survey
from guardrail.evaluation.datasets.metrics import Metric, metric
from guardrail.evaluation.datasets.results import TEXT_COLUMNS, Evaluation, metric_columns, read_evaluation
from guardrail.evaluation.datasets.results_file import ResultsFile, encode_header, same_file
from guardrail.evaluation.datasets.retrying import open_results
from guardrail.evaluation.datasets.steady import steady
from guardrail.evaluation.datasets.work import Work
from guardrail.policy import Policy
from guardrail.scoring.verifier import Verifier

T = TypeVar("T")
Progress = Callable[[int, int], None]
_WORDING = ("name", "refusal", "refusal_tail")


def evaluate(
    path: str | Path,
    *,
    metrics: Sequence[Metric | str],
    out: str | Path,
    verifier: Verifier | None = None,
    judge: Any = None,
    answers: str | Path | None = None,
    fields: Mapping[str, str] | None = None,
    limit: int | None = None,
    concurrency: int = 4,
    with_text: bool = False,
    restart: bool = False,
    retry_errors: bool = False,
    progress: Progress | None = None,
) -> Evaluation:
    """Measure every item of a data set.

    The results go to ``out``, one JSON line per item in the order of the data set, as soon as they are there. After an
    interrupt, or the death of the process, the same call goes on after the last line, and the file is in the end the
    same, byte for byte, as that of one run without an interrupt, as long as metrics and judge are deterministic; a
    model of this process is given one pair at a time for that (see
    :func:`~guardrail.evaluation.datasets.steady.steady`). Only a few items are in memory at a time.

    An item with an error is done too. ``retry_errors`` measures it again, only with the metrics that have no score, and
    copies everything else; on its way it measures what an interrupt has left undone. It leaves out errors that another
    try cannot change (:data:`~guardrail.evaluation.datasets.retrying.FINAL`); if there are no others, this is the same
    call without it. Results that are retried grow beside ``out``, in a file with ``.retry`` after its name, and take
    its place when they are complete: until then ``out`` is as it was, and after an interrupt the same call goes on.

    Results of another evaluation are refused: of other files, fields, metrics, policy or model. Metrics, judges and
    models of yours are known by their names, and by ``settings`` and ``fingerprint()`` if they have them; use
    ``restart`` after a change of their code.

    Args:
        path: The data set: ``.jsonl``, ``.jsonl.gz``, ``.csv``, ``.csv.gz`` or ``.parquet``. Each row has a context (a
            text, or a list of texts or of objects with ``id`` and ``text``) and an answer, and may have ``id``,
            ``question`` and ``label`` (1 = fully supported, 0 = not).
        metrics: Metrics, or names of those in :data:`guardrail.evaluation.datasets.metrics.METRICS`.
        out: Where the results go.
        verifier: Checks the answers; by default with policy ``balanced`` and the embedded model.
        judge: For the metric ``judge``; see :func:`guardrail.evaluation.datasets.metrics.metric`.
        answers: Name of the field with the answers, or a second file with ``id`` and answer per row.
        fields: Names of other fields, such as ``{"context": "docs"}``; see
            :data:`~guardrail.evaluation.datasets.items.FIELDS`.
        limit: Take only the first items. The same call with a higher limit goes on after them.
        concurrency: How many items are measured at the same time.
        with_text: Whether to write question and answer into the results too.
        restart: Whether to begin again although there are results; a file that holds anything else is kept.
        retry_errors: Whether to measure again what has an error that another try can change; see above.
        progress: Called with (items done, items in all), the first time before the work begins.

    Returns:
        The figures. An item without an answer, without context, or whose measurement failed is counted as an error.

    Raises:
        ConfigurationError: If an argument cannot be used.
        InputError: If a file cannot be used, a row is damaged, or ``out`` has results of another evaluation, or of
            more items than ``limit``.
        MissingExtraError: If a Parquet file is to be read and pyarrow is not installed.
        ModelLoadError: If the entailment model cannot be loaded.
        RuntimeError: Inside a running event loop; use ``await aevaluate(...)`` there.

    Example:
        >>> import json, tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> rows = [{"context": "Entry is free.", "answer": a} for a in ("Entry is free.", "Entry is 5 euro.")]
        >>> _ = (folder / "answers.jsonl").write_text("".join(json.dumps(row) + chr(10) for row in rows))
        >>> found = evaluate(folder / "answers.jsonl", metrics=["accepted"], out=folder / "results.jsonl")
        >>> found.items, found.metrics["accepted"].mean
        (2, 0.5)
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(
            aevaluate(
                path,
                metrics=metrics,
                out=out,
                verifier=verifier,
                judge=judge,
                answers=answers,
                fields=fields,
                limit=limit,
                concurrency=concurrency,
                with_text=with_text,
                restart=restart,
                retry_errors=retry_errors,
                progress=progress,
            )
        )
    raise RuntimeError("this is the synchronous call and an event loop is running: use `await aevaluate(...)`")


async def aevaluate(
    path: str | Path,
    *,
    metrics: Sequence[Metric | str],
    out: str | Path,
    verifier: Verifier | None = None,
    judge: Any = None,
    answers: str | Path | None = None,
    fields: Mapping[str, str] | None = None,
    limit: int | None = None,
    concurrency: int = 4,
    with_text: bool = False,
    restart: bool = False,
    retry_errors: bool = False,
    progress: Progress | None = None,
) -> Evaluation:
    """:func:`evaluate` for asynchronous code.

    Cancellation ends the items under way, keeps the lines of those that are done, and closes all files; the same call
    goes on from there.
    """
    _check_numbers(limit, concurrency)
    if restart and retry_errors:
        raise ConfigurationError("restart begins again, and retry_errors keeps what there is: choose one of them")
    if verifier is not None and not isinstance(verifier, Verifier):
        raise ConfigurationError(f"verifier must be a guardrail.Verifier, not {type(verifier).__name__}")
    checker = steady(Verifier() if verifier is None else verifier)
    chosen = _choose(metrics, checker, judge)
    with Items(Path(path), answers=answers, fields=fields, limit=limit) as items:
        _check_out(Path(out), items.paths)
        survey = await _survey(items)
        header = await _header(survey, chosen, checker, with_text=with_text)
        results = await _to_its_end(
            lambda: open_results(Path(out), header, restart=restart, retry_errors=retry_errors), ResultsFile.close
        )
        try:
            work = Work(chosen, checker, concurrency=concurrency, with_text=with_text)

            def report() -> None:
                if progress is not None:
                    progress(results.done + results.ahead, survey.items)

            report()
            with closing(iter(items)) as rows:
                await work.run(rows, results, report)
            items.check_unchanged()
            await _to_its_end(results.finish, lambda _: None)
        finally:
            results.close()
    return replace(await asyncio.to_thread(read_evaluation, Path(out)), retried=results.retried)


def _choose(metrics: Sequence[Metric | str], verifier: Verifier, judge: Any) -> list[Metric]:
    if isinstance(metrics, str) or not metrics:
        raise ConfigurationError("name at least one metric, in a list")
    chosen = [metric(each, verifier=verifier, judge=judge) if isinstance(each, str) else each for each in metrics]
    for each in chosen:
        _check_metric(each)
    columns = ["id", "label", *TEXT_COLUMNS, *metric_columns([each.name for each in chosen])]
    twice = sorted({name for name in columns if columns.count(name) > 1})
    if twice:
        raise ConfigurationError(
            f"two columns of the results would be called {twice[0]!r}: name each metric once, or rename one"
        )
    if judge is not None and "judge" not in [each.name for each in chosen]:
        raise ConfigurationError("a judge is given, but 'judge' is not among the metrics: nobody would ask it")
    return chosen


def _check_metric(each: Any) -> None:
    if isinstance(each, type):
        raise ConfigurationError(f"{each.__name__} is a class: pass a metric that is made of it")
    missing = [name for name in ("name", "higher_is_better", "measure") if not hasattr(each, name)]
    if missing:
        raise ConfigurationError(f"a metric of type {type(each).__name__} has no {missing[0]!r}")
    if not isinstance(each.name, str) or not each.name:
        raise ConfigurationError(f"the name of a metric must be a text, not {each.name!r}")
    if not isinstance(getattr(each, "settings", {}), Mapping):
        raise ConfigurationError(f"the settings of the metric {each.name!r} must be a mapping")


def _check_numbers(limit: int | None, concurrency: int) -> None:
    for name, value in (("limit", limit), ("concurrency", concurrency)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            raise ConfigurationError(f"{name} must be a whole number of at least 1, not {value!r}")


def _check_out(out: Path, read: Sequence[Path]) -> None:
    for path in read:
        if same_file(out, path):
            raise InputError(f"{out} is the file that is read; write the results to another one")


async def _survey(items: Items) -> Survey:
    """Survey in a thread, which ends when this is cancelled."""
    stop = threading.Event()

    def check() -> None:
        if stop.is_set():
            raise asyncio.CancelledError

    return await _to_its_end(lambda: items.survey(check), lambda _: None, stop)


async def _to_its_end(work: Callable[[], T], dispose: Callable[[T], None], stop: threading.Event | None = None) -> T:
    """Work in a thread; on cancellation its end is awaited, as it uses files that the caller closes."""
    running = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        if stop is not None:
            stop.set()
        while not running.done():
            with suppress(asyncio.CancelledError):  # a second one, while the end is awaited
                await asyncio.wait([running])
        if not running.cancelled() and running.exception() is None:
            dispose(running.result())
        raise


async def _header(survey: Survey, metrics: Sequence[Metric], verifier: Verifier, *, with_text: bool) -> dict[str, Any]:
    entailment = verifier.entailment
    fingerprint = await asyncio.to_thread(verifier.fingerprint)
    header = {
        "version": __version__,
        **survey.identity,
        "items": survey.items,
        "unused_answers": survey.unused_answers,
        "metrics": [
            {
                **getattr(each, "settings", {}),
                "name": each.name,
                "higher_is_better": bool(each.higher_is_better),
                **_origin(each),
            }
            for each in metrics
        ],
        "policy": _settings(verifier.policy),
        "scorer": {"model_id": entailment.model_id, "fingerprint": fingerprint},
        "with_text": with_text,
    }
    try:
        encode_header(header)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"the settings of a metric must be a few values that JSON has ({error})") from error
    return header


def _origin(each: Metric) -> dict[str, str]:
    """What tells a metric of the user's from one of ours, or another one, of the same name."""
    kind = type(each)
    return {} if kind.__module__ == metric.__module__ else {"type": f"{kind.__module__}.{kind.__qualname__}"}


def _settings(policy: Policy) -> dict[str, Any]:
    """The policy's name and δ, and what it changes of the default."""
    default = Policy()
    names = [each.name for each in fields_of(policy) if each.name not in _WORDING]
    changed = {name: getattr(policy, name) for name in names if getattr(policy, name) != getattr(default, name)}
    return {"name": policy.name, "delta": policy.delta, **changed}

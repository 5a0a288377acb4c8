"""The figures of an evaluation, computed from its results file."""

from __future__ import annotations

import csv
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from guardrail.errors import InputError, MissingExtraError
from guardrail.evaluation.datasets.results_file import read_lines
from guardrail.evaluation.figures import Interval, auroc
from guardrail.evaluation.summary import Summary, summarise

RESAMPLES = 1000
TEXT_COLUMNS = ("question", "answer")
_DRAWN_AT_ONCE = 250_000


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSummary(Summary):
    """Figures of one metric over a data set.

    Beside those of :class:`~guardrail.evaluation.summary.Summary`:

    Attributes:
        higher_is_better: Whether a good answer has a high score.
        ci95: Bootstrap confidence interval of the mean; ``None`` for fewer than two scores.
        auroc: P(the score puts a fully supported answer before one that is not), over the items that have a score and
            a label; ``None`` unless there are both kinds.
        labelled: How many items have a score and a label.
        errors: Why items have no score, with their number.
    """

    higher_is_better: bool
    ci95: Interval | None
    auroc: float | None
    labelled: int
    errors: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """The figures of a data set.

    Attributes:
        items: Number of items that are done.
        total: Number of items of the data set; more than ``items`` if the evaluation was interrupted.
        metrics: Per name of the metric, in the order in which they were chosen.
        errors: How many items have an error of each kind, in whichever metric.
        unused_answers: Answers of a second file that belong to no item; ``None`` without such a file or with a limit.
        policy: Name of the policy.
        scorer: ``model_id`` of the entailment model; ``"lexical"`` means that no model judged.
        out: The results file.
        retried: How many items were measured again because they had an error, also before an interrupt; not in
            :meth:`to_json`.
    """

    items: int
    total: int
    metrics: Mapping[str, MetricSummary]
    errors: Mapping[str, int]
    unused_answers: int | None
    policy: str
    scorer: str
    out: Path
    retried: int = field(default=0, compare=False)

    def to_json(self) -> dict[str, Any]:
        """The figures as plain values. They are equal for equal results: nothing in them tells when or how fast."""
        return {
            "items": self.items,
            "total": self.total,
            "policy": self.policy,
            "scorer": self.scorer,
            "unused_answers": self.unused_answers,
            "errors": dict(self.errors),
            "metrics": {
                name: {**asdict(summary), "ci95": None if summary.ci95 is None else list(summary.ci95)}
                for name, summary in self.metrics.items()
            },
        }

    def to_pandas(self) -> Any:
        """The items as a ``pandas.DataFrame``.

        Returns:
            One row per item in order, with ``id``, ``label``, per metric its score under its name and why there is
            none under ``<name>_error``, and ``question`` and ``answer`` if they were kept. What is missing is NaN or
            ``None``.

        Raises:
            MissingExtraError: If pandas is not installed.
            InputError: If the results file is gone.
        """
        try:
            import pandas
        except ImportError as error:
            raise MissingExtraError("Evaluation.to_pandas()", "evaluate") from error
        names, rows = item_table(self.out)
        frame = pandas.DataFrame(rows, columns=list(names))
        for name in self.metrics:
            frame[name] = frame[name].astype("float64")
        return frame

    def to_csv(self, path: Path) -> None:
        """Write the items as CSV, with the columns of :meth:`to_pandas`; needs no pandas.

        Raises:
            InputError: If a file cannot be read or written.
        """
        names, rows = item_table(self.out)
        try:
            with open(path, "w", encoding="utf-8", newline="") as file:
                writer = csv.writer(file)
                writer.writerow(names)
                writer.writerows(rows)
        except OSError as error:
            raise InputError(f"{path}: cannot be written ({error.strerror or error})") from error


def item_table(path: Path) -> tuple[Sequence[str], Iterator[tuple[Any, ...]]]:
    """The items of a results file as a table, read while it is consumed.

    Returns:
        The names of the columns, and the rows.

    Raises:
        InputError: If the file cannot be used.
    """
    lines = read_lines(path)
    header = next(lines)
    metrics = [each["name"] for each in header["metrics"]]
    text = TEXT_COLUMNS if header["with_text"] else ()
    columns = ["id", "label", *metric_columns(metrics), *text]

    def rows() -> Iterator[tuple[Any, ...]]:
        for line in lines:
            scores, errors = line["scores"], line.get("errors", {})
            found = (value for name in metrics for value in (scores.get(name), errors.get(name)))
            yield line["id"], line.get("label"), *found, *(line[name] for name in text)

    return columns, rows()


def metric_columns(names: Sequence[str]) -> list[str]:
    """The columns of some metrics: the score of each, and why there is none."""
    return [column for name in names for column in (name, f"{name}_error")]


def read_evaluation(path: Path) -> Evaluation:
    """The figures of a results file, also of one that is not complete.

    Of an item only its scores and its label are kept in memory.

    Args:
        path: What :func:`guardrail.evaluation.datasets.evaluating.evaluate` has written.

    Raises:
        InputError: If the file cannot be read, or is not the result of an evaluation.
    """
    lines = read_lines(path)
    header = next(lines)
    columns = {each["name"]: _Column(bool(each["higher_is_better"])) for each in header["metrics"]}
    errors: Counter[str] = Counter()
    items = 0
    for line in lines:
        items += 1
        scores, failed, label = line["scores"], line.get("errors", {}), line.get("label")
        for name, column in columns.items():
            column.add(scores.get(name), failed.get(name), label)
        errors.update(set(failed.values()))
    return Evaluation(
        items=items,
        total=header["items"],
        metrics=MappingProxyType({name: column.summary() for name, column in columns.items()}),
        errors=MappingProxyType(dict(sorted(errors.items()))),
        unused_answers=header["unused_answers"],
        policy=header["policy"]["name"],
        scorer=header["scorer"]["model_id"],
        out=path,
    )


class _Column:
    """The scores of one metric."""

    def __init__(self, higher_is_better: bool) -> None:
        self._higher_is_better = higher_is_better
        self._scores = array("d")
        self._labels = array("b")  # 1 and 0, -1 for none
        self._errors: Counter[str] = Counter()

    def add(self, score: float | None, error: str | None, label: bool | None) -> None:
        if score is None:
            self._errors[error or "missing"] += 1
            return
        self._scores.append(score)
        self._labels.append(-1 if label is None else int(label))

    def summary(self) -> MetricSummary:
        scores = np.array(self._scores, dtype=np.float64)
        labels = np.array(self._labels, dtype=np.int8)
        known = labels >= 0
        goodness = scores[known] if self._higher_is_better else -scores[known]
        return MetricSummary(
            **asdict(summarise(scores)),
            higher_is_better=self._higher_is_better,
            ci95=mean_interval(scores),
            auroc=auroc(goodness, labels[known] == 1),  # type: ignore[arg-type]
            labelled=int(known.sum()),
            errors=dict(sorted(self._errors.items())),
        )


def mean_interval(scores: Any, *, resamples: int = RESAMPLES, seed: int = 0) -> Interval | None:
    """95 % confidence interval of a mean by the percentile bootstrap.

    Items are drawn with replacement as if they were independent. Memory does not grow with the number of draws.

    Args:
        scores: Finite numbers.
        resamples: Number of draws.
        seed: Equal seeds give equal intervals.

    Returns:
        The 2.5th and the 97.5th percentile of the means; ``None`` for fewer than two scores, which say nothing about
        how far they spread.

    Example:
        >>> mean_interval([0.5] * 10), mean_interval([0.5])
        ((0.5, 0.5), None)
    """
    values = np.asarray(scores, dtype=np.float64)
    if len(values) < 2:
        return None
    random = np.random.default_rng(seed)
    at_once = max(1, _DRAWN_AT_ONCE // len(values))
    means = np.empty(resamples)
    for first in range(0, resamples, at_once):
        drawn = random.integers(len(values), size=(min(at_once, resamples - first), len(values)))
        means[first : first + len(drawn)] = values[drawn].mean(axis=1)
    means = np.clip(means, values.min(), values.max())  # a mean of equal scores must not leave them by rounding
    low, high = np.percentile(means, (2.5, 97.5))
    return float(low), float(high)

"""From pairs to scores with a model in this process: windows, batches, probabilities, one score per pair."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from guardrail.errors import ModelLoadError, ScoringError
from guardrail.protocols import Pair
from guardrail.scoring.entailment.calibration import Calibration
from guardrail.scoring.entailment.labels import Activation, LabelMap, probabilities
from guardrail.scoring.entailment.windows import Offsets, text_windows
from guardrail.types import EntailmentScore

if TYPE_CHECKING:  # numpy costs 50 ms at import: only for those who have a model
    from numpy.typing import ArrayLike


@dataclass(frozen=True, slots=True, kw_only=True)
class PairOutputs:
    """What a model returns for a batch of pairs.

    Attributes:
        classes: Raw outputs, shape ``(pairs, labels)``.
        unsupported: Per pair the probability that words of the hypothesis are unsupported; ``None`` if the model does
            not judge words, or for a hypothesis without any.
    """

    classes: ArrayLike
    unsupported: Sequence[float | None] | None = None


class Window(Pair):
    """A pair that fits the model, with the tokens that it was measured by. It equals the pair without them.

    Args:
        premise: The evidence, or a slice of it.
        hypothesis: The claim.
        tokens: What :meth:`PairModel.offsets` returned for the one and the other, so that no text is tokenised twice.

    Example:
        >>> Window("a", "b", ([(0, 1)], [(0, 1)])) == Pair("a", "b")
        True
    """

    tokens: tuple[Any, Any]

    def __new__(cls, premise: str, hypothesis: str, tokens: tuple[Any, Any]) -> Window:
        """A pair with its tokens."""
        window = super().__new__(cls, premise, hypothesis)
        window.tokens = tokens
        return window


class PairModel(Protocol):
    """What a concrete model has to offer."""

    def offsets(self, text: str) -> Offsets:
        """Tokens of one text, without special tokens and without truncation."""
        ...

    def forward(self, pairs: Sequence[Pair]) -> PairOutputs:
        """Outputs for one batch of pairs that fit; those that were planned are a :class:`Window`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelLimits:
    """How a model wants to be fed.

    Attributes:
        labels: Its classes.
        max_tokens: Most tokens of premise, hypothesis and special tokens together.
        special_tokens: How many special tokens a pair gets.
        batch_size: Most windows per forward pass.
        batch_tokens: Most tokens per forward pass, padding included; a single window may have ``max_tokens``.
        activation: Activation that the model applies itself; ``None`` if it returns logits.
        calibration: What makes one number of its outputs; ``None`` takes the probability of the class.
    """

    labels: LabelMap
    max_tokens: int
    special_tokens: int
    batch_size: int
    batch_tokens: int
    activation: Activation | None = None
    calibration: Calibration | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How pairs are scored.

    Attributes:
        windows: Per pair its windows; none for a pair with a blank text.
        batches: Every window once, in batches of similar length.
    """

    windows: Mapping[Pair, Sequence[Window]]
    batches: Sequence[Sequence[Window]]


def plan(model: PairModel, limits: ModelLimits, pairs: Sequence[Pair], *, scorer: str) -> Plan:
    """Cut pairs into windows, and the windows into batches.

    Windows of similar length stand together, since all are padded to the longest. A batch is small enough that others
    soon have their turn: on a processor several short windows cost as much as one long one.

    Args:
        model: The model.
        limits: How it wants to be fed.
        pairs: What to score.
        scorer: ``model_id`` for error messages.

    Raises:
        ScoringError: If a claim is too long, or the tokeniser fails.
    """
    known: dict[str, Offsets] = {}

    def tokens(text: str) -> Offsets:
        if text not in known:
            known[text] = model.offsets(text)
        return known[text]

    windows: dict[Pair, Sequence[Window]] = {}
    lengths: dict[Window, int] = {}
    room = limits.max_tokens - limits.special_tokens
    with _failures_named(scorer):
        for premise, hypothesis in pairs:
            own: list[Window] = []
            if premise.strip() and hypothesis.strip():
                claim = tokens(hypothesis)
                fits = len(tokens(premise)) + len(claim) <= room
                texts = [premise] if fits else text_windows(premise, len(claim), tokens, room)
                own = [Window(text, hypothesis, (tokens(text), claim)) for text in texts]
                lengths |= {window: len(tokens(window.premise)) + len(claim) for window in own}
            windows[Pair(premise, hypothesis)] = own
    return Plan(windows=windows, batches=_batches(lengths, limits))


def score_batch(model: PairModel, limits: ModelLimits, batch: Sequence[Pair], *, scorer: str) -> list[EntailmentScore]:
    """Score windows in one forward pass.

    Args:
        model: The model.
        limits: How it wants to be fed.
        batch: Windows that fit.
        scorer: ``model_id`` for error messages.

    Returns:
        One score per window, in order.

    Raises:
        ScoringError: If the model fails or returns something that is no probability.
    """
    labels = limits.labels
    with _failures_named(scorer):
        outputs = model.forward(batch)
        table = probabilities(
            outputs.classes, rows=len(batch), width=labels.size, activation=limits.activation, scorer=scorer
        )
    unsupported = outputs.unsupported or [None] * len(batch)
    entailment = [float(row[labels.entailment]) for row in table]
    if limits.calibration is not None:
        entailment = [limits.calibration.apply(e, u) for e, u in zip(entailment, unsupported, strict=True)]
    return [
        EntailmentScore(
            entailment=supported,
            contradiction=None if labels.contradiction is None else float(row[labels.contradiction]),
            unsupported=words,
        )
        for supported, row, words in zip(entailment, table, unsupported, strict=True)
    ]


def combine(windows: Sequence[EntailmentScore], labels: LabelMap) -> EntailmentScore:
    """The score of a pair from those of its windows.

    The window with the highest entailment speaks for the pair, as evidence in any window supports a claim; among equals
    the one with the fewest unsupported words. Contradiction is the maximum over the windows. A pair without windows has
    a blank text: a blank premise entails nothing and a blank hypothesis asserts nothing.

    Example:
        >>> early = EntailmentScore(entailment=0.2, contradiction=0.7)
        >>> late = EntailmentScore(entailment=0.9, contradiction=0.1)
        >>> combine([early, late], LabelMap(entailment=1, contradiction=0, neutral=2))
        EntailmentScore(entailment=0.9, contradiction=0.7, unsupported=None, screened=None, judged='')
    """
    if not windows:
        return EntailmentScore(entailment=0.0, contradiction=None if labels.contradiction is None else 0.0)
    best = min(windows, key=lambda score: (-score.entailment, score.unsupported or 0.0))
    against = [score.contradiction for score in windows if score.contradiction is not None]
    return EntailmentScore(
        entailment=best.entailment, contradiction=max(against, default=None), unsupported=best.unsupported
    )


def warm_up(model: PairModel, limits: ModelLimits, *, scorer: str) -> None:
    """Score one pair with a model that was just loaded, so that a broken one fails at start-up and not mid-stream.

    Raises:
        ModelLoadError: If it does not give a probability.
    """
    try:
        for batch in plan(model, limits, [Pair("a", "a")], scorer=scorer).batches:
            score_batch(model, limits, batch, scorer=scorer)
    except ScoringError as error:
        raise ModelLoadError(f"{scorer} was loaded but cannot score: {error}", scorer=scorer) from error


def _batches(lengths: Mapping[Window, int], limits: ModelLimits) -> list[list[Window]]:
    batches: list[list[Window]] = []
    shortest = 0
    for window, tokens in sorted(lengths.items(), key=lambda item: item[1]):
        rows = len(batches[-1]) + 1 if batches else 0
        padded = rows * (tokens + limits.special_tokens)  # the longest so far, as they come in order
        if 0 < rows <= limits.batch_size and padded <= limits.batch_tokens and tokens <= 2 * shortest:
            batches[-1].append(window)
        else:
            batches.append([window])
            shortest = tokens
    return batches


@contextmanager
def _failures_named(scorer: str) -> Iterator[None]:
    try:
        yield
    except ScoringError as error:
        error.scorer = error.scorer or scorer
        raise
    except Exception as error:
        # The message of a foreign exception may quote the text: it stays in __cause__.
        raise ScoringError(f"{scorer} failed with {type(error).__name__}", scorer=scorer) from error

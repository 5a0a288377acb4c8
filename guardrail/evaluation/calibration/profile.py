"""A calibration as a value and as a file: what is promised, on what grounds, at what cost."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath
from typing import Any

from guardrail._version import __version__
from guardrail.errors import ConfigurationError, InputError
from guardrail.policy import Policy
from guardrail.scoring.entailment import as_entailment, default_entailment
from guardrail.scoring.entailment.identity import fingerprint_of

FORMAT = 1
_MOST_BYTES = 10_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """What is promised about hallucinated answers.

    Attributes:
        target_miss: A hallucinated answer is accepted with at most this probability.
        confidence: ``None``: on average over calibrations and answers. A number: with this confidence the miss rate of
            this very calibration is at most ``target_miss``.
        hallucinated: n, the hallucinated answers that δ was set on.
        rank: k; δ lies below the k-th smallest critical δ of them.
        bound: What the marginal promise comes to exactly: k / (n + 1).
        accepted: How many of the n are accepted at δ; less than k.
    """

    target_miss: float
    confidence: float | None
    hallucinated: int
    rank: int
    bound: float
    accepted: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What the promise costs grounded answers, measured on some that chose nothing.

    Attributes:
        grounded: How many were measured.
        released: How many of them are accepted at δ.
        share: Their share; ``None`` if there are none.
        interval: Exact 95 % interval of the share for new ones, for independent answers; ``None`` if there are none.
    """

    grounded: int
    released: int
    share: float | None
    interval: tuple[float, float] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    """What the profile was made from, without a word of it.

    Attributes:
        file: Name of the file without its folder; ``None`` if the answers came from elsewhere.
        sha256: Of the bytes of the file, or of the answers as JSON.
        answers: How many labelled answers there are.
        hallucinated: How many of them are hallucinated.
        group: Field of ``detail`` that groups answers; ``None`` if each stands for itself.
        groups: How many groups there are, of each of which one answer was drawn; ``None`` without groups.
        fitting: How many answers chose the lexical weight and nothing else.
        repeated: How many of the answers that were used are, question and context included, word for word like one
            before.
        seed: Of the draw and the split.
    """

    file: str | None
    sha256: str
    answers: int
    hallucinated: int
    group: str | None
    groups: int | None
    fitting: int
    repeated: int
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    """What one δ does to the answers that δ was set on. Nothing is promised for another δ than that of the profile.

    Attributes:
        delta: δ.
        missed: Share of the hallucinated answers that are accepted.
        released: Share of the grounded answers that are accepted; ``None`` if there are none.
    """

    delta: float
    missed: float
    released: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """How the scores of the labelled answers are distributed, for :mod:`~guardrail.evaluation.calibration.drift`.

    Attributes:
        n: Number of answers.
        clip: Scores above this count as one and the same.
        points: Pairs of a score and the share of answers that score at most that, in order.
    """

    n: int
    clip: float
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A calibrated policy with its promise.

    Attributes:
        name: Name of the policy that it gives.
        created: Date in UTC, as ``2026-11-30``.
        library: Version of this package, which the scores depend on.
        scorer: ``model_id`` of the entailment model, without folders if it is the path of a file.
        fingerprint: What its scores depend on, as a hash; ``None`` if the model does not say.
        delta: δ.
        lexical_weight: Exponent on ROUGE-L.
        weight_source: Where that is from: ``fitted``, ``confirmed``, ``model`` or ``policy``; see
            :class:`~guardrail.evaluation.calibration.fitting.Fitted`.
        fields: The other fields of the policy that are not as by default.
        promise: What is promised.
        cost: What it costs.
        data: What it was made from.
        curve: What other δ would do.
        scores: The distribution of scores.
        assumptions: What the promise rests on, in plain words.

    A profile is made by :func:`~guardrail.evaluation.calibration.calibrate` and read by :meth:`load`.
    """

    name: str
    created: str
    library: str
    scorer: str
    fingerprint: str | None
    delta: float
    lexical_weight: float
    weight_source: str
    fields: Mapping[str, Any] = field(hash=False)
    promise: Promise
    cost: Cost
    data: Data
    curve: tuple[CurvePoint, ...]
    scores: Scores
    assumptions: tuple[str, ...]

    def policy(self, entailment: Any = None) -> Policy:
        """The policy that keeps the promise, for the model that it was calibrated with.

        Args:
            entailment: The entailment model that the guard will have, as in ``Guardrail(entailment=…)``; ``None`` is
                the embedded model. It is loaded to see that it is the same. Of a :class:`~guardrail.SharedCache`, which
                changes no scores, pass the model behind it.

        Raises:
            ConfigurationError: If it is another model, or this is another version of the package: scores differ, and
                with them what δ means.
            ModelLoadError: If the model cannot be loaded.
        """
        if self.library != __version__:
            raise ConfigurationError(
                f"profile {self.name!r} was calibrated with guardrail {self.library} and this is {__version__}, whose "
                f"scores may differ: calibrate again, or stay with {self.library} until then"
            )
        scorer, fingerprint = model_identity(entailment)
        if scorer != self.scorer:
            raise ConfigurationError(
                f"profile {self.name!r} was calibrated for the entailment model {self.scorer!r} and this is "
                f"{scorer!r}: use that model, or calibrate again"
            )
        if fingerprint != self.fingerprint:
            silent = "cannot say what its scores depend on (of a cache, pass the model behind it)"
            what = silent if fingerprint is None else "has other weights or settings"
            raise ConfigurationError(
                f"profile {self.name!r} was calibrated for another entailment model of the name {scorer!r}: this one "
                f"{what}. Use the model of the calibration, or calibrate again"
            )
        return Policy(name=self.name, delta=self.delta, lexical_weight=self.lexical_weight, **self.fields)

    def to_json(self) -> dict[str, Any]:
        """The profile as plain values, with its format and a checksum."""
        body = {"format": FORMAT, **asdict(self)}
        body["fields"] = dict(self.fields)
        plain: dict[str, Any] = json.loads(json.dumps(body, allow_nan=False))  # tuples become lists, as in the file
        return {**plain, "checksum": _checksum(plain)}

    def save(self, path: str | Path) -> None:
        """Write the profile to a file, as JSON. A file that is there is replaced, at once or not at all.

        Raises:
            InputError: If it cannot be written.
        """
        text = json.dumps(self.to_json(), ensure_ascii=False, allow_nan=False, indent=1) + "\n"
        try:
            _replace(Path(path), text.encode("utf-8", "backslashreplace"))  # of half a character JSON has the same
        except OSError as error:
            raise InputError(f"cannot write {path}: {type(error).__name__}: {error}") from error

    @classmethod
    def load(cls, path: str | Path) -> Profile:
        """Read a profile and believe nothing of it unchecked.

        The checksum tells whether somebody changed a number; it is no signature. Who can write the file can make a
        profile of their own.

        Raises:
            InputError: If the file cannot be read.
            ConfigurationError: If it is no profile, is of a version that is not known, or was changed by hand.
        """
        from guardrail.evaluation.calibration.reading import profile_from

        try:
            with Path(path).open("rb") as file:
                data = file.read(_MOST_BYTES + 1)
            text = data.decode("utf-8") if len(data) <= _MOST_BYTES else ""
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"cannot read {path}: {type(error).__name__}: {error}") from error
        if len(data) > _MOST_BYTES:
            raise ConfigurationError(f"{Path(path).name}: is not a profile: it has more than {_MOST_BYTES} bytes")
        return profile_from(text, Path(path).name)


def model_identity(entailment: Any = None) -> tuple[str, str | None]:
    """The name of an entailment model, and its fingerprint if it has one; loads it for that.

    Args:
        entailment: As in ``Guardrail(entailment=…)``.

    Raises:
        ConfigurationError: If it is no entailment model.
        ScoringError: If its fingerprint is none.
        ModelLoadError: If it cannot be loaded.

    Example:
        >>> model_identity(lambda pairs: [0.9] * len(pairs))
        ('<lambda>', None)
    """
    model = default_entailment() if entailment is None else as_entailment(entailment)
    return without_folders(model.model_id), fingerprint_of(entailment, model)


def without_folders(model_id: str) -> str:
    """A model that was loaded from a folder may be named by its path, which is nobody's business."""
    paths: tuple[PurePath, ...] = (PurePosixPath(model_id), PureWindowsPath(model_id))
    path = next((path for path in paths if path.is_absolute()), None)
    return model_id if path is None else path.name or model_id


def _replace(path: Path, data: bytes) -> None:
    """Write a file whose readers see the old bytes or the new ones, and never a part."""
    if path.exists() and not path.is_file():  # a device or a pipe takes bytes, and must stay
        path.write_bytes(data)
        return
    target = path.resolve()  # a link stays a link
    partial = target.with_name(f".{target.name}.{secrets.token_hex(4)}.partial")
    try:
        with partial.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, partial)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def _checksum(body: Mapping[str, Any]) -> str:
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"

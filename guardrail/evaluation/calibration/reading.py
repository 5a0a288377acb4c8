"""From the text of a profile to a :class:`~guardrail.evaluation.calibration.profile.Profile`, every value checked."""

from __future__ import annotations

import dataclasses
import datetime
import json
import math
import types
import typing
from collections.abc import Mapping
from typing import Any, NoReturn, TypeVar, get_args

from guardrail.errors import ConfigurationError
from guardrail.evaluation.calibration.conformal import rank
from guardrail.evaluation.calibration.fitting import WeightSource
from guardrail.evaluation.calibration.profile import FORMAT, Profile
from guardrail.policy import Policy

_T = TypeVar("_T")
_OWN_FIELDS = frozenset({"name", "delta", "lexical_weight", "formula"})
_CHANGED = "was changed after it was made, so that its promise no longer holds: calibrate again"


def profile_from(text: str, name: str) -> Profile:
    """Read a profile.

    Args:
        text: JSON.
        name: What errors call it.

    Raises:
        ConfigurationError: If it is no profile, of another format, or was changed.

    Example:
        >>> profile_from('{"format": 9}', "profile.json")
        Traceback (most recent call last):
        ...
        guardrail.errors.ConfigurationError: profile.json: is of format 9 and this version reads 1: calibrate again
    """
    try:
        values = json.loads(text, parse_constant=_no_number, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"{name}: is not a profile: {error}") from error
    try:
        return _profile(values)
    except _Wrong as error:
        raise ConfigurationError(f"{name}: {error}") from error


class _Wrong(Exception):
    pass


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number that JSON has")


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _no_number(text[:20])


def _profile(values: object) -> Profile:
    if not isinstance(values, dict) or "format" not in values:
        raise _Wrong("is not a profile: it has no format")
    if values["format"] != FORMAT or isinstance(values["format"], bool):
        raise _Wrong(f"is of format {values['format']!r} and this version reads {FORMAT}: calibrate again")
    checksum = values.get("checksum")
    body = {name: value for name, value in values.items() if name not in ("format", "checksum")}
    profile = _build(Profile, body, "")
    if checksum != profile.to_json()["checksum"]:
        raise _Wrong(_CHANGED)
    _check_meaning(profile)
    return profile


def _check_meaning(profile: Profile) -> None:
    """What the checksum says nothing about: that the numbers fit together, whoever wrote them."""
    promise, cost, scores = profile.promise, profile.cost, profile.scores
    try:
        datetime.date.fromisoformat(profile.created)
        k = rank(promise.hallucinated, promise.target_miss, promise.confidence)
        known = {field.name for field in dataclasses.fields(Policy)} - _OWN_FIELDS
        if not known >= set(profile.fields):
            raise _Wrong(f"its policy has fields that are not known: {sorted(set(profile.fields) - known)}")
        Policy(name=profile.name, delta=profile.delta, lexical_weight=profile.lexical_weight, **profile.fields)
    except (ConfigurationError, ValueError, TypeError) as error:
        raise _Wrong(f"does not hold together: {error}") from error
    shares = [s for _, s in scores.points]
    sound = {
        "promise.rank": promise.rank == k and k >= 1,
        "promise.bound": promise.bound == promise.rank / (promise.hallucinated + 1),
        "promise.accepted": 0 <= promise.accepted < promise.rank,
        "cost": 0 <= cost.released <= cost.grounded and (cost.share is None) == (cost.grounded == 0),
        "weight_source": profile.weight_source in get_args(WeightSource),
        "data.repeated": 0 <= profile.data.repeated < max(1, profile.data.answers),
        "scores.points": shares == sorted(shares) and all(0 <= s <= 1 for s in shares) and bool(shares),
        "scores.n": scores.n >= 1,
    }
    wrong = [name for name, holds in sound.items() if not holds]
    if wrong:
        raise _Wrong(f"does not hold together: {', '.join(wrong)}")


def _build(kind: type[_T], values: object, where: str) -> _T:
    """A value of a dataclass, with no field missing, none too many and each of its type."""
    if not isinstance(values, dict):
        raise _Wrong(f"{where or 'it'} must be an object")
    hints = typing.get_type_hints(kind)
    missing, unknown = sorted(hints.keys() - values.keys()), sorted(values.keys() - hints.keys())
    if missing or unknown:
        what = [f"{', '.join(missing)} is missing"] * bool(missing) + [f"{', '.join(unknown)} is not known"] * bool(
            unknown
        )
        raise _Wrong(f"is not a profile: {where and f'in {where} '}{' and '.join(what)}")
    return kind(**{name: _value(hints[name], values[name], f"{where}.{name}".lstrip(".")) for name in hints})


def _value(kind: Any, value: object, where: str) -> Any:
    if isinstance(kind, types.UnionType):
        return None if value is None else _value(get_args(kind)[0], value, where)
    if dataclasses.is_dataclass(kind):
        return _build(typing.cast(Any, kind), value, where)
    if typing.get_origin(kind) is tuple:
        return _items(get_args(kind), value, where)
    if typing.get_origin(kind) is Mapping:
        kind = dict
    allowed = (int, float) if kind is float else kind
    if isinstance(value, bool) or not isinstance(value, allowed):
        raise _Wrong(f"{where} must be {kind.__name__}, not {type(value).__name__}")
    if kind is float:
        try:
            value = float(typing.cast(float, value))
        except OverflowError as error:
            raise _Wrong(f"{where} is too large") from error
    return value


def _items(kinds: tuple[Any, ...], value: object, where: str) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise _Wrong(f"{where} must be a list")
    if kinds[-1] is Ellipsis:
        return tuple(_value(kinds[0], item, f"{where}[{at}]") for at, item in enumerate(value))
    if len(kinds) != len(value):
        raise _Wrong(f"{where} must have {len(kinds)} items")
    return tuple(_value(kind, item, f"{where}[{at}]") for at, (kind, item) in enumerate(zip(kinds, value, strict=True)))

"""δ and the lexical weight for a team's own answers, with a promise about hallucinated ones.

==================  =================================================================================================
``calibrating``     labelled answers in, a profile out
``profile``         the promise, its cost and its grounds, as a value and a file; ``reading`` believes no file unchecked
``conformal``       the arithmetic of the promise, with its proof
``acceptance``      at which δ a policy accepts an answer
``fitting``         the weight and δ, chosen on different answers
``assumptions``     what the promise rests on, in words
``drift``           whether live scores are still distributed as those of a profile
==================  =================================================================================================
"""

from __future__ import annotations

from guardrail.evaluation.calibration.calibrating import acalibrate, calibrate
from guardrail.evaluation.calibration.drift import DriftAlarm, drift_alarm
from guardrail.evaluation.calibration.profile import Profile

__all__ = ["DriftAlarm", "Profile", "acalibrate", "calibrate", "drift_alarm"]

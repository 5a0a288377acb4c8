"""Text work that needs no model: the incremental segmenter, the kinds of segments, surrogate repair.

:class:`Segmenter` cuts an answer while it arrives, :func:`segment` cuts one that is complete, and :func:`classify`
says of one segment whether it is a claim.
"""

from __future__ import annotations

from guardrail.text.kinds import classify
from guardrail.text.segmenter import Segmenter, segment
from guardrail.text.surrogates import SurrogateJoiner, repair_surrogates

__all__ = ["Segmenter", "SurrogateJoiner", "classify", "repair_surrogates", "segment"]

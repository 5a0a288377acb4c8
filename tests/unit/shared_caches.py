"""Pairs and models for tests of the shared cache."""

import math
import struct

from guardrail import EntailmentScore
from guardrail.protocols import Pair
from guardrail.scoring.entailment.shared_entries import pack
from guardrail.testing import FakeEntailment

A, B, C = (Pair(f"The {name} desk opens at ten.", "It opens at ten.") for name in ("first", "second", "third"))


SCORES = {A: 0.1, B: 0.25, C: 1.0}


PAIRS = [A, B, C]


def model():
    return FakeEntailment(lambda premise, hypothesis: SCORES[Pair(premise, hypothesis)])


FULL = EntailmentScore(entailment=0.1 + 0.2, contradiction=math.nextafter(0.0, 1.0), unsupported=math.nextafter(1, 0))

DAMAGED = [
    None,
    b"",
    b"\x01",
    pack(FULL)[:-1],
    pack(FULL) + b"\x00",
    b"\x00",
    b"\x02" + struct.pack("<d", 0.5),
    b"\x09" + struct.pack("<dd", 0.5, 0.5),
    b"\x01" + struct.pack("<d", math.nan),
    b"\x01" + struct.pack("<d", math.inf),
    b"\x01" + struct.pack("<d", 1.0000001),
    b"\x03" + struct.pack("<dd", 0.5, -0.1),
    "0.5",
    0,
    [b"\x01"],
]

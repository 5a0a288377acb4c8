"""Entailment models: P(evidence entails claim), by whatever judges it.

=====================  ==========================================================================
``onnx``               the embedded model, or any exported one: onnxruntime and tokenizers only
``cross_encoder``      a sentence-transformers model (extra ``cross-encoder``)
``remote``             a model behind an HTTP endpoint (extra ``remote``); ``remote_apis`` what is sent and answered
``lexical``            word overlap, a declared baseline
``adapt``              user code, checked
``labels``             which output is entailment, and how it becomes a probability
``local``              what ``onnx`` and ``cross_encoder`` share: loading once, cache, turns
``forward``            from pairs to scores: batches, probabilities, one score per pair
``windows``            long premises
``cache``              scores of pairs that were asked before
``shared_cache``       the same in Redis, for all processes (extra ``redis``); ``shared_entries`` what lies there
``in_flight``          callers that ask for the same pair at the same time
``identity``           what tells two models apart
``worker``             threads that keep models off the event loop, in turns
``modelfiles``         damaged and missing model files, named
=====================  ==========================================================================
"""

from __future__ import annotations

from guardrail.scoring.entailment.adapt import as_entailment
from guardrail.scoring.entailment.cross_encoder import CrossEncoderEntailment
from guardrail.scoring.entailment.labels import LabelMap, resolve_labels
from guardrail.scoring.entailment.lexical import LexicalEntailment
from guardrail.scoring.entailment.onnx import OnnxEntailment, default_entailment, embedded_model_dir
from guardrail.scoring.entailment.remote import RemoteEntailment
from guardrail.scoring.entailment.worker import ScoringWorker, shared_worker

__all__ = [
    "CrossEncoderEntailment",
    "LabelMap",
    "LexicalEntailment",
    "OnnxEntailment",
    "RemoteEntailment",
    "ScoringWorker",
    "as_entailment",
    "default_entailment",
    "embedded_model_dir",
    "resolve_labels",
    "shared_worker",
]

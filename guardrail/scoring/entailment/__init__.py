"""Entailment models: P(evidence entails claim), by whatever judges it.

=====================  ==========================================================================
``onnx``               the embedded model, or any exported one: onnxruntime and tokenizers only
``cross_encoder``      a sentence-transformers model (extra ``cross-encoder``)
``lexical``            word overlap, a declared baseline
``adapt``              user code, checked
``labels``             which output is entailment, and how it becomes a probability
``windows``            long premises, batches, aggregation: shared by the models
``modelfiles``         damaged and missing model files, named
``worker``             threads that keep models off the event loop
=====================  ==========================================================================
"""

from __future__ import annotations

from guardrail.scoring.entailment.adapt import as_entailment
from guardrail.scoring.entailment.cross_encoder import CrossEncoderEntailment
from guardrail.scoring.entailment.labels import LabelMap, resolve_labels
from guardrail.scoring.entailment.lexical import LexicalEntailment
from guardrail.scoring.entailment.onnx import OnnxEntailment, default_entailment, embedded_model_dir
from guardrail.scoring.entailment.worker import ScoringWorker, shared_worker

__all__ = [
    "CrossEncoderEntailment",
    "LabelMap",
    "LexicalEntailment",
    "OnnxEntailment",
    "ScoringWorker",
    "as_entailment",
    "default_entailment",
    "embedded_model_dir",
    "resolve_labels",
    "shared_worker",
]

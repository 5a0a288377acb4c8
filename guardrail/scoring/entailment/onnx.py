"""Entailment by an ONNX model, run with onnxruntime and tokenizers alone: the slot of the embedded model."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from guardrail.errors import ConfigurationError, MissingExtraError, ModelLoadError
from guardrail.protocols import Entailment, Pair
from guardrail.scoring.entailment.cache import DEFAULT_ENTRIES
from guardrail.scoring.entailment.calibration import Calibration
from guardrail.scoring.entailment.forward import ModelLimits, PairOutputs, warm_up
from guardrail.scoring.entailment.labels import probability, resolve_labels, unsupported_probability
from guardrail.scoring.entailment.lexical import LexicalEntailment
from guardrail.scoring.entailment.local import LocalEntailment
from guardrail.scoring.entailment.modelfiles import check_file, check_model_directory, read_json
from guardrail.scoring.entailment.windows import Offsets, max_positions
from guardrail.scoring.entailment.worker import ScoringWorker

if TYPE_CHECKING:  # numpy costs 50 ms at import: only for those who have a model
    from numpy.typing import NDArray

_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
_UNSUPPORTED = "unsupported"
_EMBEDDED = Path(__file__).resolve().parents[2] / "models" / "embedded"


class OnnxEntailment(LocalEntailment):
    """Judges pairs with an exported sequence-classification model.

    Args:
        model_dir: Directory in the Hugging Face layout: ``model.onnx`` (inputs ``input_ids``, ``attention_mask`` and,
            if the graph asks for it, ``token_type_ids``; first output: logits; an output ``unsupported`` of shape
            ``(batch, tokens)``, if there is one: logits that a token is unsupported), ``tokenizer.json``,
            ``config.json`` (``id2label``, ``max_position_embeddings``; optionally ``guardrail_calibration``, see
            :class:`~guardrail.scoring.entailment.calibration.Calibration`, ``guardrail_detection_delta`` and
            ``guardrail_languages``), and optionally ``checksums.json`` (file name to SHA-256), which is verified when
            the model is loaded.
        threads: Threads of one forward pass. A ``worker`` with several threads makes several passes at a time instead.
        max_tokens: Most tokens per forward pass, special tokens included; ``None`` takes the model's own limit.
        batch_size: Most windows per forward pass; a pass never has more tokens than one full window.
        cache_entries: Most scores to remember, as digests of the texts; 0 remembers none.
        worker: Where to run; ``None`` shares one thread per process.

    The model is loaded at the first :meth:`score`, or by :meth:`load`; a failed load is tried again at the next use.
    Long premises are cut into overlapping windows by the model's own tokeniser, claims never.
    """

    def __init__(
        self,
        model_dir: str | Path,
        *,
        threads: int = 1,
        max_tokens: int | None = None,
        batch_size: int = 8,
        cache_entries: int = DEFAULT_ENTRIES,
        worker: ScoringWorker | None = None,
    ) -> None:
        if threads < 1 or batch_size < 1:
            raise ConfigurationError(f"threads and batch_size must be at least 1, got {threads!r} and {batch_size!r}")
        super().__init__(worker=worker, cache_entries=cache_entries)
        self._directory = Path(model_dir)
        self._threads = threads
        self._max_tokens = max_tokens
        self._batch_size = batch_size
        self._languages: Sequence[str] | None = None
        self._detection_delta: float | None = None

    @property
    def model_id(self) -> str:
        """Name of the model's directory, after ``onnx:``."""
        return f"onnx:{self._directory.name}"

    @property
    def languages(self) -> Sequence[str] | None:
        """ISO codes of the languages that it was trained for; ``None`` if it does not say, or before it is loaded."""
        return self._languages

    @property
    def detection_delta(self) -> float | None:
        """ΔR above which an answer is best called hallucinated; ``None`` if it does not say, or before it is loaded."""
        return self._detection_delta

    def _open(self) -> tuple[_OnnxModel, ModelLimits]:
        check_model_directory(self._directory, weights=("model.onnx",))
        _verify_checksums(self._directory)
        config = read_json(self._directory / "config.json")
        model = _OnnxModel(self._directory, self._threads, int(config.get("pad_token_id") or 0), self.model_id)
        own = max_positions(config) or 512
        max_tokens = min(own, self._max_tokens or own)
        limits = ModelLimits(
            labels=resolve_labels(config.get("id2label") or {}, model_id=self.model_id),
            max_tokens=max_tokens,
            special_tokens=model.special_tokens,
            batch_size=self._batch_size,
            batch_tokens=max_tokens,
            calibration=Calibration.from_config(config, model_id=self.model_id),
        )
        warm_up(model, limits, scorer=self.model_id)
        self._languages = config.get("guardrail_languages")
        threshold = config.get("guardrail_detection_delta")
        self._detection_delta = None if threshold is None else probability(threshold, what="guardrail_detection_delta")
        return model, limits


def embedded_model_dir() -> Path | None:
    """Directory of the entailment model that is shipped with the package; ``None`` if there is none."""
    return _EMBEDDED if (_EMBEDDED / "model.onnx").is_file() else None


def default_entailment() -> Entailment:
    """The entailment model of a guard that was not given one.

    Returns:
        The embedded model if the package ships one, else :class:`LexicalEntailment`, whose verdicts all name the scorer
        ``"lexical"``. A shipped model that cannot be loaded raises
        :class:`~guardrail.errors.ModelLoadError` when it is used; word overlap never takes its place.
    """
    directory = embedded_model_dir()
    return LexicalEntailment() if directory is None else _shared_model(directory)


@lru_cache(maxsize=1)
def _shared_model(directory: Path) -> OnnxEntailment:
    return OnnxEntailment(directory)


class _OnnxModel:
    """Session and tokeniser as the windows need them."""

    def __init__(self, directory: Path, threads: int, pad_id: int, model_id: str) -> None:
        try:
            import onnxruntime
            from tokenizers import Tokenizer
        except ImportError as error:  # both are dependencies, so only a broken installation gets here
            raise MissingExtraError("OnnxEntailment", "all") from error
        self._tokenizer = _load(directory / "tokenizer.json", lambda path: Tokenizer.from_file(str(path)))
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        # Graph optimisation and the memory arena stay on: without the arena a model of 22 million weights needed twice
        # the peak memory and half as much time again, for windows of changing lengths.
        self._session = _load(
            directory / "model.onnx",
            lambda path: onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"]),
        )
        import numpy as np

        self._dtypes = {
            node.name: np.int32 if node.type == "tensor(int32)" else np.int64 for node in self._session.get_inputs()
        }
        unknown = sorted(set(self._dtypes) - set(_INPUTS))
        if unknown:
            raise ModelLoadError(f"{directory / 'model.onnx'} asks for inputs {unknown}; known are {list(_INPUTS)}")
        outputs = [node.name for node in self._session.get_outputs()]
        self._unsupported = outputs.index(_UNSUPPORTED) if _UNSUPPORTED in outputs else None
        self._pad_id = pad_id
        self._model_id = model_id

    @property
    def special_tokens(self) -> int:
        return int(self._tokenizer.num_special_tokens_to_add(True))

    def offsets(self, text: str) -> Offsets:
        offsets: Offsets = self._tokenizer.encode(text, add_special_tokens=False).offsets
        return offsets

    def forward(self, pairs: Sequence[Pair]) -> PairOutputs:
        # One by one: encode_batch has threads of its own, for a handful of short texts, which do not survive a fork.
        encodings = [self._tokenizer.encode(premise, hypothesis) for premise, hypothesis in pairs]
        columns = {
            "input_ids": (self._pad_id, [e.ids for e in encodings]),
            "attention_mask": (0, [e.attention_mask for e in encodings]),
            "token_type_ids": (0, [e.type_ids for e in encodings]),
        }
        feed = {name: _padded(*columns[name], dtype) for name, dtype in self._dtypes.items()}
        outputs = self._session.run(None, feed)
        if self._unsupported is None:
            return PairOutputs(classes=outputs[0])
        # The second sequence by its number and not by its token type, which some families of models do not have;
        # special tokens have no number.
        claims = [[at for at, number in enumerate(e.sequence_ids) if number == 1] for e in encodings]
        words = unsupported_probability(outputs[self._unsupported], claims, scorer=self._model_id)
        return PairOutputs(classes=outputs[0], unsupported=words)


def _padded(pad: int, rows: Sequence[Sequence[int]], dtype: Any) -> NDArray[Any]:
    import numpy as np

    table = np.full((len(rows), max(map(len, rows))), pad, dtype=dtype)
    for i, row in enumerate(rows):
        table[i, : len(row)] = row
    return table


def _load(path: Path, open_file: Any) -> Any:
    try:
        return open_file(path)
    except Exception as error:
        raise ModelLoadError(
            f"cannot read {path} ({type(error).__name__}): likely a cut download or another format"
        ) from error


def _verify_checksums(directory: Path) -> None:
    path = directory / "checksums.json"
    if not path.exists():
        return
    for name, expected in read_json(path).items():
        check_file(directory / name)
        with (directory / name).open("rb") as file:
            actual = hashlib.file_digest(file, "sha256").hexdigest()
        if actual != expected:
            raise ModelLoadError(f"{directory / name} does not match its checksum: likely damaged or replaced")

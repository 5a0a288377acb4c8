"""Entailment by an ONNX model, run with onnxruntime and tokenizers alone: the slot of the embedded model."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from guardrail.errors import ConfigurationError, MissingExtraError, ModelLoadError
from guardrail.protocols import Entailment, Pair
from guardrail.scoring.entailment.labels import resolve_labels
from guardrail.scoring.entailment.lexical import LexicalEntailment
from guardrail.scoring.entailment.modelfiles import check_file, check_model_directory, read_json
from guardrail.scoring.entailment.windows import ModelLimits, Offsets, max_positions, score_pairs, warm_up
from guardrail.scoring.entailment.worker import ScoringWorker, shared_worker
from guardrail.types import EntailmentScore

if TYPE_CHECKING:  # numpy costs 50 ms at import: only for those who have a model
    from numpy.typing import ArrayLike, NDArray

_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
_EMBEDDED = Path(__file__).resolve().parents[2] / "models" / "embedded"


class OnnxEntailment:
    """Judges pairs with an exported sequence-classification model.

    Args:
        model_dir: Directory in the Hugging Face layout: ``model.onnx`` (inputs ``input_ids``, ``attention_mask`` and,
            if the graph asks for it, ``token_type_ids``; first output: logits), ``tokenizer.json``, ``config.json``
            (``id2label``, ``max_position_embeddings``), and optionally ``checksums.json`` (file name to SHA-256),
            which is verified when the model is loaded.
        threads: Threads of one forward pass.
        max_tokens: Most tokens per forward pass, special tokens included; ``None`` takes the model's own limit.
        batch_size: Windows per forward pass.
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
        worker: ScoringWorker | None = None,
    ) -> None:
        if threads < 1 or batch_size < 1:
            raise ConfigurationError(f"threads and batch_size must be at least 1, got {threads!r} and {batch_size!r}")
        self._directory = Path(model_dir)
        self._threads = threads
        self._max_tokens = max_tokens
        self._batch_size = batch_size
        self._worker = worker
        self._lock = threading.Lock()
        self._loaded: tuple[_OnnxModel, ModelLimits] | None = None

    @property
    def model_id(self) -> str:
        """Name of the model's directory, after ``onnx:``."""
        return f"onnx:{self._directory.name}"

    def load(self) -> None:
        """Load the model now, in the calling thread, and score one pair to see that it works.

        Raises:
            ModelLoadError: If a file is missing, damaged or not what its checksum says, or the labels are unknown.
        """
        self._model()

    async def score(self, pairs: Sequence[Pair]) -> list[EntailmentScore]:
        """Score pairs, in order; see :class:`~guardrail.protocols.Entailment`."""
        if not pairs:
            return []
        return await (self._worker or shared_worker()).run(self._score, list(pairs))

    def _score(self, pairs: list[Pair]) -> list[EntailmentScore]:
        model, limits = self._model()
        return score_pairs(model, limits, pairs, scorer=self.model_id)

    def _model(self) -> tuple[_OnnxModel, ModelLimits]:
        with self._lock:
            if self._loaded is None:
                check_model_directory(self._directory, weights=("model.onnx",))
                _verify_checksums(self._directory)
                config = read_json(self._directory / "config.json")
                model = _OnnxModel(self._directory, self._threads, int(config.get("pad_token_id") or 0))
                own = max_positions(config) or 512
                limits = ModelLimits(
                    labels=resolve_labels(config.get("id2label") or {}, model_id=self.model_id),
                    max_tokens=min(own, self._max_tokens or own),
                    special_tokens=model.special_tokens,
                    batch_size=self._batch_size,
                )
                warm_up(model, limits, scorer=self.model_id)
                self._loaded = model, limits
            return self._loaded


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

    def __init__(self, directory: Path, threads: int, pad_id: int) -> None:
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
        self._pad_id = pad_id

    @property
    def special_tokens(self) -> int:
        return int(self._tokenizer.num_special_tokens_to_add(True))

    def offsets(self, text: str) -> Offsets:
        offsets: Offsets = self._tokenizer.encode(text, add_special_tokens=False).offsets
        return offsets

    def forward(self, pairs: Sequence[Pair]) -> ArrayLike:
        encodings = self._tokenizer.encode_batch([(premise, hypothesis) for premise, hypothesis in pairs])
        columns = {
            "input_ids": (self._pad_id, [e.ids for e in encodings]),
            "attention_mask": (0, [e.attention_mask for e in encodings]),
            "token_type_ids": (0, [e.type_ids for e in encodings]),
        }
        feed = {name: _padded(*columns[name], dtype) for name, dtype in self._dtypes.items()}
        outputs: ArrayLike = self._session.run(None, feed)[0]
        return outputs


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

"""Entailment by an ONNX model, run with onnxruntime and tokenizers alone: the slot of the embedded model."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from guardrail.errors import ConfigurationError, MissingExtraError, ModelLoadError
from guardrail.protocols import Entailment, Pair
from guardrail.scoring.entailment.cache import DEFAULT_ENTRIES
from guardrail.scoring.entailment.calibration import Calibration
from guardrail.scoring.entailment.forward import ModelLimits, PairOutputs, Window, warm_up
from guardrail.scoring.entailment.identity import identity
from guardrail.scoring.entailment.labels import probability, resolve_labels, unsupported_probability
from guardrail.scoring.entailment.lexical import LexicalEntailment
from guardrail.scoring.entailment.local import LocalEntailment
from guardrail.scoring.entailment.modelfiles import check_file, check_model_directory, read_json
from guardrail.scoring.entailment.windows import max_positions
from guardrail.scoring.entailment.word_tokens import Tokens, WordTokeniser
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
        self._files = ""

    @property
    def model_id(self) -> str:
        """Name of the model's directory, after ``onnx:``."""
        return f"onnx:{self._directory.name}"

    @property
    def languages(self) -> Sequence[str] | None:
        """ISO codes of the languages that it was trained for; ``None`` if it does not say, or before it is loaded."""
        return self._languages

    @property
    def missing_log_odds(self) -> float | None:
        """By how much a missing value lowers the log-odds of N; ``None`` without calibration or before loading."""
        return self._calibration.missing_value if self._calibration else None

    @property
    def lexical_weight(self) -> float | None:
        """Exponent on ROUGE-L that its calibration goes with; ``None`` without calibration or before loading."""
        return self._calibration.lexical_weight if self._calibration else None

    @property
    def _calibration(self) -> Calibration | None:
        return self._loaded[1].calibration if self._loaded else None

    @property
    def detection_delta(self) -> float | None:
        """ΔR above which an answer is best called hallucinated; ``None`` if it does not say, or before it is loaded."""
        return self._detection_delta

    def _open(self) -> tuple[_OnnxModel, ModelLimits]:
        check_model_directory(self._directory, weights=("model.onnx",))
        digests = _checksums(self._directory)
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
        self._files = identity(*(part for named in sorted(digests.items()) for part in named))
        return model, limits

    def _weights(self) -> str:
        return self._files


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
        self._words = WordTokeniser(self._tokenizer)
        self._template = _Template.of(self._tokenizer, directory / "tokenizer.json")
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

    def offsets(self, text: str) -> Tokens:
        return self._words.tokens(text)

    def feed(self, pairs: Sequence[Pair]) -> tuple[dict[str, NDArray[Any]], list[range]]:
        """The inputs of the graph for a batch, and where each claim stands in its row."""
        rows = [self._template.join(*self._tokens(pair)) for pair in pairs]
        columns = {
            "input_ids": (self._pad_id, [row.ids for row in rows]),
            "attention_mask": (0, [[1] * len(row.ids) for row in rows]),
            "token_type_ids": (0, [row.types for row in rows]),
        }
        feed = {name: _padded(*columns[name], dtype) for name, dtype in self._dtypes.items()}
        return feed, [row.claim for row in rows]

    def forward(self, pairs: Sequence[Pair]) -> PairOutputs:
        feed, claims = self.feed(pairs)
        outputs = self._session.run(None, feed)
        if self._unsupported is None:
            return PairOutputs(classes=outputs[0])
        words = unsupported_probability(outputs[self._unsupported], claims, scorer=self._model_id)
        return PairOutputs(classes=outputs[0], unsupported=words)

    def _tokens(self, pair: Pair) -> tuple[list[int], list[int]]:
        texts: Iterable[Tokens] = pair.tokens if isinstance(pair, Window) else map(self.offsets, pair)
        premise, hypothesis = texts
        return premise.ids, hypothesis.ids


@dataclass(frozen=True, slots=True)
class _Row:
    """The tokens of a pair, special tokens included, and where the claim stands among them."""

    ids: list[int]
    types: list[int]
    claim: range


@dataclass(frozen=True, slots=True)
class _Template:
    """What a tokeniser puts around two texts, so that texts that are tokens already need not be tokenised again.

    Every post-processor of tokenizers puts the same special tokens before, between and behind the two, and gives all
    tokens of a text the same type: that is read from one pair and seen to hold for another.
    """

    texts: tuple[int, int]  # 0 premise, 1 claim, in their order
    types: tuple[int, int]  # of premise and claim
    special: tuple[tuple[list[int], list[int]], ...]  # before, between, behind: tokens and their types

    @classmethod
    def of(cls, tokenizer: Any, path: Path) -> _Template:
        """Read the template of a tokeniser.

        Raises:
            ModelLoadError: If it is of another kind.
        """
        whole = tokenizer.encode("a", "a a")
        numbers = whole.sequence_ids
        order = tuple(dict.fromkeys(number for number in numbers if number is not None))
        if sorted(order) == [0, 1]:
            starts = [numbers.index(text) for text in order]
            ends = [start + numbers.count(text) for start, text in zip(starts, order, strict=True)]
            between = zip([0, *ends], [*starts, len(numbers)], strict=True)
            template = cls(
                texts=(order[0], order[1]),
                types=(whole.type_ids[numbers.index(0)], whole.type_ids[numbers.index(1)]),
                special=tuple((whole.ids[start:end], whole.type_ids[start:end]) for start, end in between),
            )
            if all(template._agrees(tokenizer, *pair) for pair in (("a", "a a"), ("a b c", "a"))):
                return template
        raise ModelLoadError(f"{path} does not join premise and claim with nothing but special tokens around them")

    def join(self, premise: list[int], claim: list[int]) -> _Row:
        """Put two texts together."""
        texts = (premise, claim)
        ids, types = list(self.special[0][0]), list(self.special[0][1])
        at = range(0)
        for text, (special_ids, special_types) in zip(self.texts, self.special[1:], strict=True):
            if text == 1:
                at = range(len(ids), len(ids) + len(claim))
            ids += texts[text] + special_ids
            types += [self.types[text]] * len(texts[text]) + special_types
        return _Row(ids, types, at)

    def _agrees(self, tokenizer: Any, premise: str, claim: str) -> bool:
        whole = tokenizer.encode(premise, claim)
        row = self.join(*(tokenizer.encode(text, add_special_tokens=False).ids for text in (premise, claim)))
        own = [at for at, number in enumerate(whole.sequence_ids) if number == 1]
        return (row.ids, row.types, list(row.claim)) == (whole.ids, whole.type_ids, own)


def _padded(pad: int, rows: Sequence[list[int]], dtype: Any) -> NDArray[Any]:
    import numpy as np

    width = max(map(len, rows))
    return np.array([row + [pad] * (width - len(row)) for row in rows], dtype=dtype)


def _load(path: Path, open_file: Any) -> Any:
    try:
        return open_file(path)
    except Exception as error:
        raise ModelLoadError(
            f"cannot read {path} ({type(error).__name__}): likely a cut download or another format"
        ) from error


def _checksums(directory: Path) -> dict[str, str]:
    """SHA-256 of each file of the model, after comparison with ``checksums.json`` if there is one.

    Weights of more than two gigabytes stand in files beside ``model.onnx`` that begin with its name.
    """
    path = directory / "checksums.json"
    expected = read_json(path) if path.exists() else {}
    for name in expected:
        check_file(directory / name)
    own = {"config.json", "tokenizer.json", *(file.name for file in directory.glob("model.onnx*") if file.is_file())}
    actual = {}
    for name in sorted(own | set(expected)):
        with (directory / name).open("rb") as file:
            actual[name] = hashlib.file_digest(file, "sha256").hexdigest()
        if actual[name] != expected.get(name, actual[name]):
            raise ModelLoadError(f"{directory / name} does not match its checksum: likely damaged or replaced")
    return actual

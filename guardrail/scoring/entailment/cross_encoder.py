"""Entailment by a sentence-transformers ``CrossEncoder`` (extra ``cross-encoder``)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from guardrail.errors import ConfigurationError, MissingExtraError, ModelLoadError
from guardrail.protocols import Pair
from guardrail.scoring.entailment.cache import DEFAULT_ENTRIES
from guardrail.scoring.entailment.forward import ModelLimits, PairOutputs, warm_up
from guardrail.scoring.entailment.identity import identity
from guardrail.scoring.entailment.labels import Activation, resolve_labels
from guardrail.scoring.entailment.local import LocalEntailment
from guardrail.scoring.entailment.modelfiles import check_model_directory
from guardrail.scoring.entailment.windows import Offsets, max_positions
from guardrail.scoring.entailment.worker import ScoringWorker

_SET_BY_USE = ("truncation", "padding")  # of a tokeniser: what its last call asked for


class CrossEncoderEntailment(LocalEntailment):
    """Judges pairs with a natural-language-inference cross-encoder.

    Args:
        model: Name on the Hugging Face hub, a local directory, or a ``CrossEncoder`` (anything with ``predict``,
            ``tokenizer`` and ``config``).
        device: Torch device (``"cpu"``, ``"cuda:0"``); ``None`` lets sentence-transformers choose.
        max_tokens: Most tokens per forward pass, special tokens included; ``None`` takes the model's own limit.
        batch_size: Most windows per forward pass. On a CPU a pass never has more tokens than one full window, so that
            other callers soon have their turn; an accelerator gets full batches.
        labels: Index to label name, for models whose configuration does not name their labels:
            ``{0: "contradiction", 1: "entailment", 2: "neutral"}``, or ``{0: "entailment"}`` for a single output.
        activation: ``None`` asks ``predict`` for logits, whatever activation the model is configured with. Say
            ``"softmax"`` or ``"sigmoid"`` for an object whose ``predict`` returns probabilities regardless.
        local_files_only: Never ask the network. A local directory never does.
        cache_entries: Most scores to remember, as digests of the texts; 0 remembers none.
        worker: Where to run; ``None`` shares one thread per process.

    The model is loaded at the first :meth:`score`, or by :meth:`load`; a failed load is tried again at the next use.
    Long premises are cut into overlapping windows by the model's own tokeniser, claims never.

    Example::

        model = CrossEncoderEntailment("cross-encoder/nli-deberta-v3-xsmall")
        await model.score([Pair("The door opens at nine.", "The door opens at ten.")])
    """

    def __init__(
        self,
        model: str | Path | Any,
        *,
        device: str | None = None,
        max_tokens: int | None = None,
        batch_size: int = 32,
        labels: Mapping[int, str] | None = None,
        activation: Activation | None = None,
        local_files_only: bool = False,
        cache_entries: int = DEFAULT_ENTRIES,
        worker: ScoringWorker | None = None,
    ) -> None:
        if batch_size < 1:
            raise ConfigurationError(f"batch_size must be at least 1, got {batch_size!r}")
        super().__init__(worker=worker, cache_entries=cache_entries)
        self._source = model
        self._device = device
        self._max_tokens = max_tokens
        self._batch_size = batch_size
        self._labels = labels
        self._activation = activation
        self._local_files_only = local_files_only

    @property
    def model_id(self) -> str:
        """Name or path of the model."""
        if isinstance(self._source, str | Path):
            return str(self._source)
        name = getattr(getattr(self._source, "config", None), "_name_or_path", "")
        return name if isinstance(name, str) and name else type(self._source).__name__

    def _open(self) -> tuple[_CrossEncoderModel, ModelLimits]:
        from_disk = isinstance(self._source, str | Path)
        encoder = self._read() if from_disk else self._source
        model, limits = _CrossEncoderModel(encoder), self._limits(encoder)
        if from_disk:
            warm_up(model, limits, scorer=self.model_id)
        return model, limits

    def _weights(self) -> str:
        model, _ = self.loaded()
        known = model.weights() if isinstance(model, _CrossEncoderModel) else None
        return identity("named", self.model_id) if known is None else known

    def _read(self) -> Any:
        name = str(self._source)
        directory = Path(name).expanduser()
        local = isinstance(self._source, Path) or directory.exists() or name.startswith((".", "/", "~"))
        if local:
            check_model_directory(directory, weights=("model.safetensors", "pytorch_model.bin"))
        try:
            from sentence_transformers import CrossEncoder
        except ImportError as error:
            raise MissingExtraError("CrossEncoderEntailment", "cross-encoder") from error
        try:
            return CrossEncoder(
                str(directory) if local else name, device=self._device, local_files_only=local or self._local_files_only
            )
        except Exception as error:
            cause = "a damaged file" if local else "no such model, or no network to fetch it"
            raise ModelLoadError(
                f"cannot load {name} ({type(error).__name__}): likely {cause}; see the cause", scorer=self.model_id
            ) from error

    def _limits(self, encoder: Any) -> ModelLimits:
        config, tokenizer = getattr(encoder, "config", None), getattr(encoder, "tokenizer", None)
        if config is None or tokenizer is None:
            raise ModelLoadError(
                f"{self.model_id} has no config or no tokenizer: is it a CrossEncoder?", scorer=self.model_id
            )
        if not getattr(tokenizer, "is_fast", True):
            raise ModelLoadError(
                f"the tokenizer of {self.model_id} gives no offsets; a fast one (tokenizer.json) is needed",
                scorer=self.model_id,
            )
        labels = resolve_labels(
            self._labels if self._labels is not None else getattr(config, "id2label", None) or {},
            model_id=self.model_id,
        )
        known = [
            limit
            for limit in (
                self._max_tokens,
                getattr(encoder, "max_seq_length", None),
                getattr(tokenizer, "model_max_length", None),
                max_positions(
                    {k: getattr(config, k, None) for k in ("max_position_embeddings", "model_type", "pad_token_id")}
                ),
            )
            if isinstance(limit, int) and 0 < limit < 1_000_000  # tokenizers say "no limit" with a huge number
        ]
        max_tokens = min(known, default=512)
        on_cpu = getattr(getattr(encoder, "device", None), "type", "cpu") == "cpu"
        return ModelLimits(
            labels=labels,
            max_tokens=max_tokens,
            special_tokens=int(tokenizer.num_special_tokens_to_add(pair=True)),
            batch_size=self._batch_size,
            batch_tokens=max_tokens if on_cpu else max_tokens * self._batch_size,
            activation=self._activation,
        )


class _CrossEncoderModel:
    """A ``CrossEncoder`` as the windows need it."""

    def __init__(self, encoder: Any) -> None:
        self._encoder = encoder

    def offsets(self, text: str) -> Offsets:
        # verbose=False: a text that is longer than the model is expected here and worth no warning
        encoding = self._encoder.tokenizer(
            text, add_special_tokens=False, return_offsets_mapping=True, truncation=False, verbose=False
        )
        offsets: Offsets = encoding["offset_mapping"]
        return offsets

    def forward(self, pairs: Sequence[Pair]) -> PairOutputs:
        outputs = self._encoder.predict(
            [(premise, hypothesis) for premise, hypothesis in pairs],
            batch_size=len(pairs),
            show_progress_bar=False,
            activation_fn=_raw,
            apply_softmax=False,
            convert_to_numpy=True,
        )
        return PairOutputs(classes=outputs)

    def weights(self) -> str | None:
        """A hash of what it computes with, read from memory: it may have been trained further since it was loaded.

        ``None`` for an object that does not show its weights.
        """
        tensors = getattr(self._encoder, "state_dict", None)
        if not callable(tensors):
            return None
        parts: list[str | bytes] = [_described(self._encoder.config), _described(self._encoder.tokenizer)]
        for name, tensor in tensors().items():
            parts += [name, f"{tensor.dtype} {tuple(tensor.shape)}", identity(_bytes(tensor))]
        return identity(*parts)


def _described(part: Any) -> str:
    """Configuration or tokeniser as text: fast tokenisers and configurations of transformers know how."""
    tokenizer = getattr(part, "backend_tokenizer", None)
    if tokenizer is not None:
        settings = json.loads(tokenizer.to_str())
        return json.dumps({name: settings[name] for name in settings if name not in _SET_BY_USE}, sort_keys=True)
    as_json = getattr(part, "to_json_string", None)
    return str(as_json()) if callable(as_json) else ""


def _bytes(tensor: Any) -> bytes:
    tensor = tensor.detach().cpu()
    try:
        array = tensor.numpy()
    except TypeError:  # numpy has no bfloat16; every one of its numbers is a float32 as well
        array = tensor.float().numpy()
    return bytes(array.tobytes())


def _raw(logits: Any) -> Any:
    return logits

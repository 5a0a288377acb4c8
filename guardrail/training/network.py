"""The network: a sequence classifier with a second head that says which words of the claim are unsupported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from guardrail.errors import ModelLoadError
from guardrail.scoring.entailment.labels import resolve_labels
from guardrail.scoring.entailment.modelfiles import read_json
from guardrail.training.pairs import LABELS
from guardrail.training.vocabulary import can_pack, packed

WORDS_FILE = "word_head.pt"
IGNORED = -100
_ATTENTION = "eager"
"""Plain products of matrices: the form that an export fuses, and on a CPU its backward pass takes a quarter as long."""
LEAST_SUPPORTED = 4
"""How many words speak for a claim; the same number as when the guard runs."""


class GroundingNetwork(nn.Module):
    """A three-way cross-encoder in the Hugging Face layout, and a head over the words of the claim.

    The classifier is an ordinary ``BertForSequenceClassification``, so what :meth:`save` writes can be opened
    by anything that reads such models. The head over words is trained with it and saved beside it.

    Args:
        classifier: The classifier.
    """

    def __init__(self, classifier: Any) -> None:
        super().__init__()
        classifier.set_attn_implementation(_ATTENTION)
        self.classifier = classifier
        self.words = nn.Linear(classifier.config.hidden_size, 1)

    @classmethod
    def open(cls, directory: Path, *, dropout: float = 0.1) -> GroundingNetwork:
        """Open a base model or a network that was saved before.

        Args:
            directory: In the Hugging Face layout. The classes of :data:`~guardrail.training.pairs.LABELS` in another
                order are put into this one.
            dropout: Of the hidden layers, while training.

        Raises:
            ModelLoadError: If it cannot be opened.
        """
        from transformers import AutoConfig, AutoModelForSequenceClassification

        _silence()
        try:
            config = AutoConfig.from_pretrained(
                directory,
                local_files_only=True,
                num_labels=len(LABELS),
                id2label=dict(enumerate(LABELS)),
                label2id={label: index for index, label in enumerate(LABELS)},
                hidden_dropout_prob=dropout,
                attention_probs_dropout_prob=0.0,
            )
            if config.model_type != "bert":
                raise ModelLoadError(f"{directory} is a model of type {config.model_type!r}; a base has to be a BERT")
            classifier = AutoModelForSequenceClassification.from_pretrained(
                directory, config=config, local_files_only=True, dtype=torch.float32
            )
            _in_order(classifier.classifier, read_json(directory / "config.json").get("id2label") or {})
            network = cls(classifier)
            if (directory / WORDS_FILE).is_file():
                network.words.load_state_dict(torch.load(directory / WORDS_FILE, weights_only=True))
        except (OSError, ValueError, RuntimeError) as error:
            raise ModelLoadError(f"cannot open {directory} as a model: {type(error).__name__}: {error}") from error
        return network

    @classmethod
    def from_onnx(cls, directory: Path, *, dropout: float = 0.1) -> GroundingNetwork:
        """Open an exported network, so that it can be trained on.

        Args:
            directory: What :func:`~guardrail.training.export.export` wrote; its checksums are verified.
            dropout: Of the hidden layers, while training.

        Returns:
            A network that gives what the ONNX file gives, up to the rounding of activations to 8 bits.

        Raises:
            ModelLoadError: If a file is missing or damaged, or of another kind of model.
        """
        from transformers import BertConfig, BertForSequenceClassification

        from guardrail.scoring.entailment.onnx import OnnxEntailment
        from guardrail.training.from_onnx import read_weights

        OnnxEntailment(directory).load()  # files, checksums, a first pair
        described = read_json(directory / "config.json")
        names = [described.get("id2label", {}).get(str(index)) for index in range(len(LABELS))]
        if names != list(LABELS):
            raise ModelLoadError(f"{directory} has the classes {names}; a network to train has {list(LABELS)}")
        weights = read_weights(directory / "model.onnx")
        config = BertConfig(
            **weights.sizes,
            pad_token_id=described.get("pad_token_id") or 0,
            hidden_dropout_prob=dropout,
            attention_probs_dropout_prob=0.0,
            id2label=dict(enumerate(LABELS)),
            label2id={label: index for index, label in enumerate(LABELS)},
        )
        config.architectures = ["BertForSequenceClassification"]
        network = cls(BertForSequenceClassification(config))
        for part, arrays in ((network.classifier, weights.classifier), (network.words, weights.words)):
            part.load_state_dict({name: torch.from_numpy(array.copy()) for name, array in arrays.items()})
        return network.eval()

    @classmethod
    def from_encoder(cls, directory: Path, *, layers: int | None = None, dropout: float = 0.1) -> GroundingNetwork:
        """Open an encoder that somebody exported to ONNX in 8 bits; its heads are new.

        Args:
            directory: With ``config.json`` and ``model_quantized.onnx``.
            layers: How many of its layers to keep, from below; ``None`` keeps all. The upper ones of an encoder for
                retrieval know most about retrieval.
            dropout: Of the hidden layers, while training.

        Raises:
            ModelLoadError: If a file is missing or damaged, or of another kind of model.
        """
        from transformers import BertConfig, BertForSequenceClassification

        from guardrail.training.from_encoder import FILE, read_encoder

        described = read_json(directory / "config.json")
        if described.get("model_type") != "bert":
            raise ModelLoadError(
                f"{directory} is a model of type {described.get('model_type')!r}; a base has to be a BERT"
            )
        config = BertConfig.from_dict(described)
        config.update({"hidden_dropout_prob": dropout, "attention_probs_dropout_prob": 0.0, "architectures": None})
        config.id2label, config.label2id = dict(enumerate(LABELS)), {label: at for at, label in enumerate(LABELS)}
        config.num_hidden_layers = min(layers or config.num_hidden_layers, config.num_hidden_layers)
        classifier = BertForSequenceClassification(config)
        state = {
            f"bert.{name}": torch.from_numpy(array.copy()) for name, array in read_encoder(directory / FILE).items()
        }
        # The first token speaks for the whole text already: the layer between it and the classes begins as no change.
        state.setdefault("bert.pooler.dense.weight", torch.eye(config.hidden_size))
        state.setdefault("bert.pooler.dense.bias", torch.zeros(config.hidden_size))
        wanted = classifier.bert.state_dict()
        missing = [name for name in wanted if f"bert.{name}" not in state]
        if missing or any(state[f"bert.{name}"].shape != value.shape for name, value in wanted.items()):
            raise ModelLoadError(f"{directory / FILE} does not fit its config.json: {missing[:1] or 'sizes differ'}")
        classifier.load_state_dict({name: state[name] for name in map("bert.{}".format, wanted)}, strict=False)
        return cls(classifier)

    def save(self, directory: Path) -> None:
        """Write the classifier in the Hugging Face layout, and the head over words beside it."""
        _silence()
        self.classifier.save_pretrained(directory)
        torch.save(self.words.state_dict(), directory / WORDS_FILE)

    def freeze_vocabulary(self) -> None:
        """Leave the word embeddings as they are: half of a small model's parameters, and rare words keep meaning.

        They are rounded to what 4 bits hold before, so that the network learns with the table that is exported.
        """
        table = self.classifier.get_input_embeddings().weight.requires_grad_(False)
        if can_pack(table.shape[1]):
            table.copy_(torch.from_numpy(packed(table.float().cpu().numpy()).restored()))

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> tuple[Tensor, Tensor]:
        """Logits of the classes, shape ``(pairs, 3)``, and of each token being unsupported, ``(pairs, tokens)``."""
        body = self.classifier.base_model(
            input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids
        )
        classes = self.classifier.classifier(self.classifier.dropout(body.pooler_output))
        return classes, self.words(body.last_hidden_state).squeeze(-1)


def mean_of(states: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """The mean of several states of one network.

    Rounds of one training lie in one basin, and their mean errs less than any of them (Wortsman et al. 2022, "Model
    soups").

    Args:
        states: State dictionaries, at least one.

    Returns:
        A state dictionary; what is not a floating-point number is that of the last.

    Example:
        >>> mean_of([{"w": torch.tensor([1.0])}, {"w": torch.tensor([3.0])}])
        {'w': tensor([2.])}
    """
    return {
        name: torch.stack([state[name] for state in states]).mean(0) if value.is_floating_point() else value
        for name, value in states[-1].items()
    }


class RunningMean:
    """An exponentially weighted mean of a network's weights over the steps of a training.

    It errs less than the weights of any one step (Polyak and Juditsky 1992; in the form of Tarvainen and Valpola 2017).

    Args:
        network: The network, before its first step.
        decay: Weight of the past per step, in (0, 1); in the first steps it is less, so that the beginning fades.

    Example:
        >>> layer = nn.Linear(1, 1, bias=False)
        >>> _ = layer.weight.data.fill_(1.0)
        >>> mean = RunningMean(layer, 0.5)
        >>> _ = layer.weight.data.fill_(3.0)
        >>> for step in range(40):
        ...     mean.update(layer, step)
        >>> round(mean.state["weight"].item(), 2)
        3.0
    """

    EVERY = 4
    """Steps from one update to the next: a copy of all weights costs more than it gives."""

    def __init__(self, network: nn.Module, decay: float) -> None:
        self._decay = decay
        self.state = {name: value.clone() for name, value in network.state_dict().items() if value.is_floating_point()}

    def update(self, network: nn.Module, step: int) -> None:
        """Take the weights after a step (counted from 0) in."""
        if step % self.EVERY != self.EVERY - 1:
            return
        kept = min(self._decay, (1 + step) / (10 + step)) ** self.EVERY
        now = network.state_dict()
        for name, value in self.state.items():
            value.lerp_(now[name], 1 - kept)


def _in_order(head: nn.Linear, id2label: Mapping[str, Any]) -> None:
    """Put the classes of a head in our order, if their names say which is which."""
    try:
        found = resolve_labels(id2label)
    except ModelLoadError:
        return  # "LABEL_0": a head that was never trained
    places = [getattr(found, label) for label in LABELS]
    if None not in places:
        head.load_state_dict({name: value[places] for name, value in head.state_dict().items()})


def _silence() -> None:
    """The library reports every load and save on standard error, which belongs to whoever called us."""
    from transformers.utils import logging

    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]


def loss_of(
    classes: Tensor,
    words: Tensor,
    *,
    labels: Tensor,
    entailment_only: Tensor,
    word_labels: Tensor,
    claim_mask: Tensor,
    word_weight: float,
) -> Tensor:
    """The loss of a batch.

    Three-way rows have cross-entropy; rows of which it is only known that the premise does not entail the hypothesis
    have −log(1 − p_entailment). Words have binary cross-entropy where they are labelled. Where they are not, the mean
    of the :data:`LEAST_SUPPORTED` highest has it against the label of the row: without that, sources whose errors
    nobody marked would only teach that every word is supported.

    Args:
        classes: Logits, shape ``(pairs, 3)``.
        words: Logits, shape ``(pairs, tokens)``.
        labels: Class per pair, shape ``(pairs,)``.
        entailment_only: Whether only "not entailed" is known, shape ``(pairs,)``.
        word_labels: 1 unsupported, 0 supported, :data:`IGNORED` not labelled, shape ``(pairs, tokens)``.
        claim_mask: Which tokens are those of the claim, shape ``(pairs, tokens)``.
        word_weight: Weight of the second head.
    """
    log_p = torch.log_softmax(classes.float(), dim=-1)
    entailed = LABELS.index("entailment")
    rest = [index for index in range(len(LABELS)) if index != entailed]
    not_entailed = torch.logsumexp(log_p[:, rest], dim=-1)
    chosen = log_p.gather(1, labels.unsqueeze(1)).squeeze(1)
    loss = -torch.where(entailment_only, not_entailed, chosen).mean()
    if not word_weight:
        return loss
    known = word_labels != IGNORED
    if bool(known.any()):
        per_word = nn.functional.binary_cross_entropy_with_logits(words.float()[known], word_labels[known].float())
        loss = loss + word_weight * per_word
    unmarked = ~known.any(dim=1) & claim_mask.any(dim=1)
    if bool(unmarked.any()):
        pooled = _least_supported(words.float()[unmarked], claim_mask[unmarked]).clamp(1e-4, 1 - 1e-4)
        wrong = (entailment_only | (labels != entailed))[unmarked].float()
        share = unmarked.float().mean()
        loss = loss + word_weight * share * nn.functional.binary_cross_entropy(pooled, wrong)
    return loss


def _least_supported(words: Tensor, claim_mask: Tensor) -> Tensor:
    """Mean probability of the most unsupported words per pair, shape ``(pairs,)``."""
    probabilities = torch.sigmoid(words).masked_fill(~claim_mask, 0.0)
    count = min(LEAST_SUPPORTED, words.shape[1])
    highest = probabilities.topk(count, dim=1).values
    return highest.sum(dim=1) / claim_mask.sum(dim=1).clamp(max=count)

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

WORDS_FILE = "word_head.pt"
IGNORED = -100
_ATTENTION = "eager"
"""Plain products of matrices: the form that an export fuses, and on a CPU a step takes a tenth less."""
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

    def save(self, directory: Path) -> None:
        """Write the classifier in the Hugging Face layout, and the head over words beside it."""
        _silence()
        self.classifier.save_pretrained(directory)
        torch.save(self.words.state_dict(), directory / WORDS_FILE)

    def freeze_vocabulary(self) -> None:
        """Leave the word embeddings as they are: half of a small model's parameters, and rare words keep meaning."""
        self.classifier.get_input_embeddings().weight.requires_grad_(False)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> tuple[Tensor, Tensor]:
        """Logits of the classes, shape ``(pairs, 3)``, and of each token being unsupported, ``(pairs, tokens)``."""
        body = self.classifier.base_model(
            input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids
        )
        classes = self.classifier.classifier(self.classifier.dropout(body.pooler_output))
        return classes, self.words(body.last_hidden_state).squeeze(-1)


def average(states: Sequence[tuple[Mapping[str, Tensor], float]]) -> dict[str, Tensor]:
    """The weighted mean of several states of one network.

    Stages of one training lie in one basin, and their mean errs less than any of them (Wortsman et al. 2022, "Robust
    fine-tuning of zero-shot models").

    Args:
        states: State dictionaries and their shares, which add up to 1.

    Returns:
        A state dictionary; what is not a floating-point number is that of the first.

    Example:
        >>> average([({"w": torch.tensor([1.0])}, 0.25), ({"w": torch.tensor([3.0])}, 0.75)])
        {'w': tensor([2.5000])}
    """
    first = states[0][0]
    return {
        name: sum(share * state[name] for state, share in states) if value.is_floating_point() else value  # type: ignore[misc]
        for name, value in first.items()
    }


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

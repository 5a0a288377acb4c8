"""What a training leaves behind: the model for the guard, the model for torch, and a card that says what it is."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from guardrail.training.batches import Example
from guardrail.training.data import FileCount
from guardrail.training.export import Parity, export
from guardrail.training.network import GroundingNetwork
from guardrail.training.validation import Figures

ONNX, TORCH, CARD = "onnx", "torch", "README.md"
_SPECIAL = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
_COMPARED = 150
_LIMITS = """\
* It judges one claim against one piece of evidence, in the languages above; other languages are not refused here but
  by the guard, which reads them from `onnx/config.json`.
* The validation pairs come from the same files as the training pairs. They share no premise with them, and still say
  little about documents of another kind: measure the guard on answers of your own with `guardrail bench quality`.
* Eight bits per weight move the probabilities a little; the comparison above says how much.
* Thresholds of the policies, and the calibration in `onnx/config.json` if the base had one, were fitted before this
  training. Measure, and fit δ anew if the probabilities have moved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingReport:
    """A training and what came out of it.

    Attributes:
        title: What was trained.
        base: What it began with.
        command: The command that repeats it.
        seed: Seed of order, dropout and split.
        parameters: Parameters of the network, the head over words included.
        files: Counts per file.
        left_out: Pairs without room for their claim.
        languages: ISO codes.
        before: Figures of the base on the pairs that were held out; ``None`` if none were.
        after: Figures of the trained network on them.
        parity: Comparison of the exported model with the network.
        directory: Where everything is.
    """

    title: str
    base: str
    command: str
    seed: int
    parameters: int
    files: Sequence[FileCount]
    left_out: int
    languages: Sequence[str]
    before: Figures | None
    after: Figures | None
    parity: Parity
    directory: Path

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "title": self.title,
            "base": self.base,
            "command": self.command,
            "seed": self.seed,
            "parameters": self.parameters,
            "files": [asdict(file) for file in self.files],
            "left_out": self.left_out,
            "languages": list(self.languages),
            "before": None if self.before is None else self.before.to_json(),
            "after": None if self.after is None else self.after.to_json(),
            "parity": asdict(self.parity),
            "onnx": str(self.directory / ONNX),
            "torch": str(self.directory / TORCH),
        }


def publish(
    network: GroundingNetwork,
    tokenizer: Path,
    directory: Path,
    *,
    examples: Sequence[Example],
    languages: Sequence[str],
    max_tokens: int,
    settings: Mapping[str, Any] | None = None,
) -> Parity:
    """Write the trained network for the guard (``onnx``) and for torch (``torch``).

    Args:
        network: The trained network.
        tokenizer: Its ``tokenizer.json``.
        directory: Where both folders go.
        examples: Pairs for the comparison, at least one; the first 150 are taken.
        languages: ISO codes of the languages it was trained for.
        max_tokens: Longest pair it takes.
        settings: More entries of ``config.json`` for the guard.

    Raises:
        ModelLoadError: If the exported model does not give what the network gives; ``torch`` is there all the same.
    """
    network.classifier.config.update({"guardrail_languages": list(languages), **(settings or {})})
    network.save(directory / TORCH)
    write_tokenizer(tokenizer, directory / TORCH, max_tokens=max_tokens)
    return export(
        network,
        tokenizer,
        directory / ONNX,
        examples=examples[:_COMPARED],
        languages=languages,
        max_tokens=max_tokens,
        settings=settings,
    )


def write_tokenizer(tokenizer: Path, directory: Path, *, max_tokens: int) -> None:
    """Write the files with which Hugging Face libraries open a tokeniser, from ``tokenizer.json`` alone.

    Args:
        tokenizer: The ``tokenizer.json`` of a BERT.
        directory: Where they go.
        max_tokens: Longest pair, special tokens included.
    """
    from transformers import PreTrainedTokenizerFast

    found = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_file=str(tokenizer),
        model_max_length=max_tokens,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
        **_SPECIAL,
    )
    found.save_pretrained(directory)
    shutil.copyfile(tokenizer, directory / "tokenizer.json")  # byte for byte, without what was set while loading


def write_card(report: TrainingReport, *, licences: Mapping[str, str] | None = None) -> None:
    """Write ``README.md`` beside the models: data, base, command, figures, limits.

    Args:
        report: What it says.
        licences: Licence per file, if they are known.
    """
    (report.directory / CARD).write_text(card(report, licences=licences), encoding="utf-8")


def card(report: TrainingReport, *, licences: Mapping[str, str] | None = None) -> str:
    """The text of the model card; see :func:`write_card`.

    Example:
        >>> parity = Parity(pairs=1, exact_max=0, mean_drift=0, max_drift=0, same_side=1, size_bytes=2_000_000)
        >>> text = card(TrainingReport(
        ...     title="A checker", base="base", command="guardrail train pairs.jsonl --out out", seed=7,
        ...     parameters=1000, files=[FileCount(name="pairs.jsonl", kind="pairs", rows=5, pairs=5)], left_out=0,
        ...     languages=["en"], before=None, after=None, parity=parity, directory=Path("out"),
        ... ))
        >>> text.splitlines()[0], "| pairs.jsonl | pairs | 5 | 5 | 0 |" in text
        ('# A checker', True)
    """
    known = licences is not None
    rows = [
        f"| {f.name} | {f.kind} | {f.rows} | {f.pairs} | {f.held_out} |"
        + (f" {(licences or {}).get(f.name, 'unknown')} |" if known else "")
        for f in report.files
    ]
    parity = report.parity
    lines = [
        f"# {report.title}",
        "",
        "Judges whether a claim follows from a piece of evidence: contradiction, entailment or neutral, and for each",
        "token of the claim whether it is unsupported.",
        "",
        "```python",
        "from guardrail import Guardrail",
        "from guardrail.scoring.entailment import OnnxEntailment",
        "",
        f'guard = Guardrail(entailment=OnnxEntailment("{(report.directory / ONNX).as_posix()}"))',
        "```",
        "",
        f"* Base: {report.base}",
        f"* Languages: {', '.join(report.languages)}",
        f"* Parameters: {report.parameters:,}",
        f"* Seed: {report.seed}",
        f"* Command: `{report.command}`",
        "",
        "## Data",
        "",
        "| file | kind | rows | pairs | held out |" + (" licence |" if known else ""),
        "|---|---|---:|---:|---:|" + ("---|" if known else ""),
        *rows,
        "",
        f"{report.left_out} pairs were left out because their claim leaves no room for evidence.",
        "",
        "## Validation",
        "",
        *_validation(report),
        "",
        "## The exported model",
        "",
        f"`onnx/model.onnx` has {parity.size_bytes / 1e6:.1f} MB. Over {parity.pairs} pairs its probability of "
        f"entailment differs from the network's by {parity.mean_drift:.4f} on average and {parity.max_drift:.4f} at "
        f"most, and {parity.same_side:.1%} are on the same side of 0.5; before quantisation the largest difference is "
        f"{parity.exact_max:.1e}.",
        "",
        "## Limits",
        "",
        _LIMITS,
    ]
    return "\n".join(lines) + "\n"


def _validation(report: TrainingReport) -> list[str]:
    if report.before is None or report.after is None:
        return ["No pair was held out."]
    return [
        "| | AUROC | accuracy | n | entailed |",
        "|---|---:|---:|---:|---:|",
        *(
            f"| {name} | {'–' if f.auroc is None else f'{f.auroc:.3f}'} | {f.accuracy:.3f} | {f.n} | {f.entailed} |"
            for name, f in (("before", report.before), ("after", report.after))
        ),
    ]

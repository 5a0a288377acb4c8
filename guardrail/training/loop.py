"""The training loop: checkpoints, resume, a log line every so often."""

from __future__ import annotations

import json
import math
import os
import pickle
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from guardrail.errors import ConfigurationError
from guardrail.training.batches import Example, batches, collate
from guardrail.training.network import GroundingNetwork, RunningMean, loss_of

STATE_FILE = "state.pt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """How a network is trained.

    Attributes:
        epochs: Passes over the pairs.
        learning_rate: At its highest.
        warmup_share: Share of the steps in which the rate rises to it.
        decay_share: Share of the steps, at the end, in which it falls to zero.
        weight_decay: Of the weights, not of biases and norms.
        tokens_per_batch: Tokens of one step, padding included.
        word_weight: Weight of the loss over words.
        dropout: Of the hidden layers.
        seed: Of order and dropout.
        mean_decay: The network that comes out has a running mean of its weights; this is its decay per step, in
            [0, 1). 0 takes the weights of the last step, and so does a training of less than four steps.
        checkpoint_every_s: Seconds between checkpoints.
    """

    epochs: int = 1
    learning_rate: float = 1e-4
    warmup_share: float = 0.03
    decay_share: float = 0.3
    weight_decay: float = 0.01
    tokens_per_batch: int = 4096
    word_weight: float = 0.5
    dropout: float = 0.05
    seed: int = 7
    mean_decay: float = 0.0
    checkpoint_every_s: float = 300.0

    def __post_init__(self) -> None:
        shares = self.warmup_share >= 0 and self.decay_share >= 0 and self.warmup_share + self.decay_share <= 1
        shares = shares and 0 <= self.mean_decay < 1
        if self.epochs < 1 or self.learning_rate <= 0 or self.tokens_per_batch < 1 or not shares:
            raise ConfigurationError(f"not a schedule: {self}")

    def rate(self, step: int, steps: int) -> float:
        """Learning rate at a step: up, level, down.

        Example:
            >>> s = Schedule(learning_rate=1.0, warmup_share=0.1, decay_share=0.5)
            >>> [round(s.rate(i, 10), 2) for i in range(10)]
            [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2]
        """
        up, down = self.warmup_share * steps, self.decay_share * steps
        level = min(1.0, (step + 1) / up) if up else 1.0
        left = min(1.0, (steps - step) / down) if down else 1.0
        return self.learning_rate * min(level, left)


def train(
    network: GroundingNetwork,
    examples: Sequence[Example],
    *,
    later: Sequence[Example] = (),
    schedule: Schedule,
    directory: Path,
    log: Callable[[str], None] = print,
    device: str = "cpu",
    stop_at: int | None = None,
    fingerprint: str = "",
) -> GroundingNetwork:
    """Train a network, or go on with a training that was interrupted.

    Args:
        network: Opened with :meth:`GroundingNetwork.open`.
        examples: Encoded pairs.
        later: Pairs that come after all of ``examples`` in every epoch; one learning rate runs through both.
        schedule: How.
        directory: For checkpoints; one that is there already, of the same schedule, numbers of examples and
            fingerprint, is resumed.
        log: Called with lines for people.
        device: Where.
        stop_at: Step at which to stop before the schedule is through; ``None`` goes to its end.
        fingerprint: Whatever else makes a training another one, such as a digest of its data.

    Returns:
        The network, trained, in evaluation mode.

    Raises:
        ConfigurationError: If there is nothing to train on, the checkpoint is of another training or damaged, or the
            loss is no number any more.

    After an interrupt the last checkpoint stays; calling it again goes on from there. On a CPU, with as many
    threads, the weights are then the same as without the interrupt; on a GPU other units are dropped.
    """
    if not examples:
        raise ConfigurationError("there is no pair to train on")
    network.to(device).train()
    network.freeze_vocabulary()
    optimiser = _optimiser(network, schedule)
    plan = [
        (epoch, [part[index] for index in own])
        for epoch in range(schedule.epochs)
        for part in (examples, later)
        for own in batches(
            part,
            tokens_per_batch=schedule.tokens_per_batch,
            rng=random.Random(schedule.seed + epoch),
        )
    ]
    identity = {"schedule": asdict(schedule), "examples": len(examples), "steps": len(plan)}
    if later:
        identity["later"] = len(later)
    if fingerprint:
        identity["fingerprint"] = fingerprint
    last = len(plan) if stop_at is None else min(stop_at, len(plan))
    torch.manual_seed(schedule.seed)
    with_mean = schedule.mean_decay and len(plan) >= RunningMean.EVERY  # with fewer it would stay at the beginning
    mean = RunningMean(network, schedule.mean_decay) if with_mean else None
    first = _resume(network, optimiser, mean, directory, identity)
    log(f"{len(examples) + len(later)} pairs, {last} steps, from step {first}")
    began = saved = reported = time.monotonic()
    losses: list[float] = []
    pairs = 0
    for step in range(first, last):
        rate = schedule.rate(step, len(plan))
        for group in optimiser.param_groups:
            group["lr"] = rate
        batch = collate(plan[step][1]).to(device)
        with torch.autocast(device, torch.bfloat16):
            classes, words = network(batch.input_ids, batch.attention_mask, batch.token_type_ids)
        loss = loss_of(
            classes,
            words,
            labels=batch.labels,
            entailment_only=batch.entailment_only,
            word_labels=batch.word_labels,
            claim_mask=batch.claim_mask,
            word_weight=schedule.word_weight,
        )
        losses.append(loss.item())
        if not math.isfinite(losses[-1]):
            raise ConfigurationError(
                f"the loss of step {step + 1} is {losses[-1]}: a lower learning rate or longer warm-up is needed, "
                f"in another directory than {directory}"
            )
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        if mean is not None:
            mean.update(network, step)
        pairs += len(plan[step][1])
        now = time.monotonic()
        if now - reported > 20:
            loss_mean = math.fsum(losses) / len(losses)
            log(
                f"step {step + 1}/{last} epoch {plan[step][0] + 1} loss {loss_mean:.4f} rate {rate:.2e} "
                f"{pairs / (now - began):.1f} pairs/s, {(now - began) / 60:.1f} min"
            )
            losses, reported = [], now
        if now - saved > schedule.checkpoint_every_s:
            _save(network, optimiser, mean, directory, identity, step + 1)
            saved = now
    _save(network, optimiser, mean, directory, identity, max(first, last))
    if mean is not None:
        network.load_state_dict(mean.state, strict=False)
    return network.eval()


def _optimiser(network: GroundingNetwork, schedule: Schedule) -> torch.optim.AdamW:
    trained = [p for p in network.parameters() if p.requires_grad]
    return torch.optim.AdamW(
        [
            {"params": [p for p in trained if p.ndim > 1], "weight_decay": schedule.weight_decay},
            {"params": [p for p in trained if p.ndim <= 1], "weight_decay": 0.0},
        ],
        lr=schedule.learning_rate,
        fused=True,
    )


def _resume(
    network: GroundingNetwork, optimiser: Any, mean: RunningMean | None, directory: Path, identity: dict[str, Any]
) -> int:
    path = directory / STATE_FILE
    if not path.is_file():
        return 0
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, EOFError, RuntimeError, pickle.UnpicklingError) as error:
        raise ConfigurationError(
            f"cannot read the checkpoint {path} ({type(error).__name__}): remove it to begin again"
        ) from error
    if json.loads(state["identity"]) != json.loads(json.dumps(identity)):
        raise ConfigurationError(f"{path} is the checkpoint of another training; choose another directory")
    network.load_state_dict(state["network"])
    optimiser.load_state_dict(state["optimiser"])
    torch.set_rng_state(state["rng"])
    if mean is not None:
        for name, value in state["mean"].items():
            mean.state[name].copy_(value)  # where the network is; the checkpoint was read on the CPU
    return int(state["step"])


def _save(
    network: GroundingNetwork,
    optimiser: Any,
    mean: RunningMean | None,
    directory: Path,
    identity: dict[str, Any],
    step: int,
) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    state = {
        "identity": json.dumps(identity),
        "network": network.state_dict(),
        "optimiser": optimiser.state_dict(),
        "rng": torch.get_rng_state(),
        "step": step,
        "mean": None if mean is None else mean.state,
    }
    partial = directory / (STATE_FILE + ".partial")
    torch.save(state, partial)
    os.replace(partial, directory / STATE_FILE)

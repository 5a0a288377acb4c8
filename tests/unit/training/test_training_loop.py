"""The loss, the schedule, the loop and its checkpoints."""

from __future__ import annotations

import json
import math

import pytest

from guardrail.errors import ConfigurationError, ModelLoadError
from tests.tiny_models import copy_of, edit_config
from tests.unit.training.toy import tiny, toy_pairs


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return tiny(tmp_path_factory).torch_dir


@pytest.fixture(scope="module")
def examples(base):
    from guardrail.training.batches import PairEncoder

    return PairEncoder(base).encode(toy_pairs())


def _loss(rows, *, labels, only, words=None, word_labels=None, claim=None, weight=0.5) -> float:
    import torch

    from guardrail.training.network import loss_of

    none = [[-100]] * len(rows)
    return loss_of(
        torch.tensor(rows),
        torch.tensor(words or [[0.0]] * len(rows)),
        labels=torch.tensor(labels),
        entailment_only=torch.tensor(only),
        word_labels=torch.tensor(word_labels or none),
        claim_mask=torch.tensor(claim or [[False] * len(row) for row in word_labels or none]),
        word_weight=weight,
    ).item()


def _logits(*probabilities: float) -> list[float]:
    return [math.log(p) for p in probabilities]


def test_three_way_rows_have_cross_entropy():
    found = _loss([_logits(0.2, 0.7, 0.1), _logits(0.5, 0.25, 0.25)], labels=[1, 2], only=[False, False])
    assert found == pytest.approx(-(math.log(0.7) + math.log(0.25)) / 2, abs=1e-6)


def test_rows_that_are_only_not_entailed_have_one_minus_entailment():
    found = _loss([_logits(0.2, 0.7, 0.1)], labels=[0], only=[True])
    assert found == pytest.approx(-math.log(0.3), abs=1e-6)


def test_labelled_words_add_their_cross_entropy_with_its_weight():
    logit = math.log(0.8 / 0.2)
    found = _loss(
        [_logits(0.2, 0.7, 0.1)],
        labels=[1],
        only=[False],
        words=[[logit, logit, 9.0]],
        word_labels=[[1, 0, -100]],
        weight=0.5,
    )
    assert found == pytest.approx(-math.log(0.7) + 0.5 * -(math.log(0.8) + math.log(0.2)) / 2, abs=1e-6)


@pytest.mark.parametrize(("label", "wrong"), [(1, False), (0, True), (2, True)])
def test_where_no_word_is_labelled_the_least_supported_have_it_against_the_row(label, wrong):
    high, low = math.log(0.8 / 0.2), math.log(0.1 / 0.9)
    rows = [_logits(0.2, 0.7, 0.1)]
    found = _loss(
        rows,
        labels=[label],
        only=[False],
        words=[[9.0, high, high, high, high, low, 9.0]],
        word_labels=[[-100] * 7],
        claim=[[False, True, True, True, True, True, False]],
    )
    expected = -math.log((0.2, 0.7, 0.1)[label]) - 0.5 * math.log(0.8 if wrong else 0.2)
    assert found == pytest.approx(expected, abs=1e-5)


def test_a_claim_of_few_words_has_the_mean_of_them():
    found = _loss(
        [_logits(0.2, 0.7, 0.1)],
        labels=[0],
        only=[True],
        words=[[math.log(0.8 / 0.2), math.log(0.4 / 0.6), 9.0]],
        word_labels=[[-100] * 3],
        claim=[[True, True, False]],
    )
    assert found == pytest.approx(-math.log(0.3) - 0.5 * math.log(0.6), abs=1e-5)


def test_the_rate_rises_stays_and_falls(base):
    from guardrail.training.loop import Schedule

    schedule = Schedule(learning_rate=1.0, warmup_share=0.2, decay_share=0.3)
    assert [round(schedule.rate(step, 10), 2) for step in range(10)] == [0.5, 1, 1, 1, 1, 1, 1, 1, 0.67, 0.33]
    assert Schedule(learning_rate=2.0, warmup_share=0, decay_share=0).rate(9, 10) == 2.0


@pytest.mark.parametrize(
    "change",
    [{"epochs": 0}, {"learning_rate": 0}, {"tokens_per_batch": 0}, {"warmup_share": 0.6, "decay_share": 0.6},
     {"decay_share": -0.1}],
)  # fmt: skip
def test_a_schedule_that_is_none(base, change):
    from guardrail.training.loop import Schedule

    with pytest.raises(ConfigurationError, match="not a schedule"):
        Schedule(**change)


def _schedule(**change):
    from guardrail.training.loop import Schedule

    return Schedule(**{"epochs": 2, "learning_rate": 3e-3, "tokens_per_batch": 256, "word_weight": 1.0} | change)


def _train(base, examples, directory, **change):
    from guardrail.training.loop import train
    from guardrail.training.network import GroundingNetwork

    schedule = change.pop("schedule", None) or _schedule()
    network = GroundingNetwork.open(base, dropout=schedule.dropout)
    return train(network, examples, schedule=schedule, directory=directory, log=lambda _: None, **change)


def _weights(network) -> dict:
    return {name: value.tolist() for name, value in network.state_dict().items()}


@pytest.fixture(scope="module")
def uninterrupted(base, examples, tmp_path_factory):
    import torch

    from guardrail.training.network import GroundingNetwork

    torch.manual_seed(1)  # the head over words is new in a base that has none
    start = copy_of(base, tmp_path_factory.mktemp("start") / "start")
    GroundingNetwork.open(base).save(start)
    return start, _train(start, examples, tmp_path_factory.mktemp("whole"))


def test_training_teaches(base, examples, uninterrupted):
    from guardrail.training.network import GroundingNetwork
    from guardrail.training.validation import validate

    start, _ = uninterrupted
    before = validate(GroundingNetwork.open(start), examples)
    trained = _train(start, examples, start.parent / "long", schedule=_schedule(epochs=16, dropout=0.0))
    after = validate(trained, examples)
    assert (before.n, before.entailed) == (64, 32)
    assert after.auroc > 0.95 > before.auroc
    assert after.accuracy > before.accuracy


def test_an_interrupted_training_ends_with_the_same_weights(examples, uninterrupted, tmp_path):
    start, whole = uninterrupted
    _train(start, examples, tmp_path, stop_at=3)
    assert (tmp_path / "state.pt").is_file()
    lines = []
    from guardrail.training.loop import train
    from guardrail.training.network import GroundingNetwork

    resumed = train(
        GroundingNetwork.open(start, dropout=_schedule().dropout),
        examples,
        schedule=_schedule(),
        directory=tmp_path,
        log=lines.append,
    )
    assert "from step 3" in lines[0]
    assert _weights(resumed) == _weights(whole)


def test_word_embeddings_stay_and_the_rest_moves(uninterrupted):
    from guardrail.training.network import GroundingNetwork

    start, whole = uninterrupted
    before, after = _weights(GroundingNetwork.open(start)), _weights(whole)
    same = {name for name in before if before[name] == after[name]}
    assert same == {"classifier.bert.embeddings.word_embeddings.weight"}


@pytest.mark.parametrize("change", [{"schedule": {"seed": 8}}, {"fewer": True}, {"fingerprint": "other data"}])
def test_the_checkpoint_of_another_training_is_refused(examples, uninterrupted, tmp_path, change):
    start, _ = uninterrupted
    _train(start, examples, tmp_path, stop_at=1)
    own = examples[:-1] if change.pop("fewer", False) else examples
    if "schedule" in change:
        change["schedule"] = _schedule(**change["schedule"])
    with pytest.raises(ConfigurationError, match="is the checkpoint of another training; choose another directory"):
        _train(start, own, tmp_path, **change)


def test_nothing_to_train_on(base, tmp_path):
    with pytest.raises(ConfigurationError, match="there is no pair to train on"):
        _train(base, [], tmp_path)


def test_a_base_of_another_kind_is_refused(base, tmp_path):
    other = copy_of(base, tmp_path / "other")
    edit_config(other, model_type="roberta")
    from guardrail.training.network import GroundingNetwork

    with pytest.raises(ModelLoadError, match="a base has to be a BERT"):
        GroundingNetwork.open(other)
    with pytest.raises(ModelLoadError, match="cannot open"):
        GroundingNetwork.open(tmp_path)


def test_later_pairs_come_after_the_others_under_one_learning_rate(base, examples, tmp_path, monkeypatch):
    from guardrail.training import loop
    from guardrail.training.network import GroundingNetwork

    seen: list[int] = []
    collate = loop.collate
    monkeypatch.setattr(loop, "collate", lambda own: seen.extend(id(example) for example in own) or collate(own))
    first, later = examples[:20], examples[20:30]
    lines: list[str] = []
    schedule = loop.Schedule(tokens_per_batch=96)
    arguments = {"schedule": schedule, "directory": tmp_path, "log": lines.append}
    loop.train(GroundingNetwork.open(base), first, later=later, **arguments)
    assert [number in {id(e) for e in first} for number in seen] == [True] * 20 + [False] * 10
    assert lines[0].startswith("30 pairs, ")
    with pytest.raises(ConfigurationError, match="another training"):
        loop.train(GroundingNetwork.open(base), first, **arguments)


def test_the_running_mean_of_the_weights_comes_out_and_survives_an_interrupt(base, examples, tmp_path):
    import torch

    from guardrail.training.loop import Schedule, train
    from guardrail.training.network import GroundingNetwork

    def trained(directory, decay, *stops):
        schedule = Schedule(learning_rate=1e-3, tokens_per_batch=96, dropout=0.0, mean_decay=decay)
        for stop in (*stops, None):
            torch.manual_seed(4)
            network = GroundingNetwork.open(base, dropout=0.0)
            train(network, examples, schedule=schedule, directory=directory, log=lambda _: None, stop_at=stop)
        return network.state_dict()

    last = trained(tmp_path / "last", 0.0)
    mean = trained(tmp_path / "mean", 0.9)
    resumed = trained(tmp_path / "resumed", 0.9, 6)
    changed = [name for name, value in last.items() if not torch.equal(value, mean[name])]
    assert len(changed) > 10
    assert all(torch.equal(value, resumed[name]) for name, value in mean.items())


@pytest.mark.parametrize("decay", [-0.1, 1.0])
def test_a_mean_that_never_moves_is_no_schedule(decay):
    from guardrail.training.loop import Schedule

    with pytest.raises(ConfigurationError, match="not a schedule"):
        Schedule(mean_decay=decay)


def test_a_training_of_few_steps_has_its_last_weights_and_not_those_it_began_with(base, examples, tmp_path):
    import torch

    from guardrail.training.loop import Schedule, train
    from guardrail.training.network import GroundingNetwork

    def trained(decay):
        torch.manual_seed(4)
        network = GroundingNetwork.open(base, dropout=0.0)
        schedule = Schedule(tokens_per_batch=4096, dropout=0.0, mean_decay=decay)
        train(network, examples[:2], schedule=schedule, directory=tmp_path / str(decay), log=lambda _: None)
        return network.state_dict()

    last, mean = trained(0.0), trained(0.9)
    assert all(torch.equal(value, mean[name]) for name, value in last.items())


def test_a_mean_that_is_resumed_stays_where_the_network_is(base, examples, tmp_path):
    import torch

    from guardrail.training import loop
    from guardrail.training.network import GroundingNetwork, RunningMean

    torch.manual_seed(4)
    network = GroundingNetwork.open(base, dropout=0.0)
    schedule = loop.Schedule(tokens_per_batch=96, mean_decay=0.9)
    arguments = {"schedule": schedule, "directory": tmp_path, "log": lambda _: None, "stop_at": 5}
    loop.train(network, examples, **arguments)
    mean = RunningMean(network.double(), 0.9)  # another kind of tensor, as on another device
    optimiser = loop._optimiser(network, schedule)
    identity = json.loads(torch.load(tmp_path / "state.pt", weights_only=True)["identity"])
    assert loop._resume(network, optimiser, mean, tmp_path, identity) == 5
    assert {value.dtype for value in mean.state.values()} == {torch.float64}
    mean.update(network, 7)


def test_a_damaged_checkpoint_is_named(base, examples, tmp_path):
    _train(base, examples, tmp_path, stop_at=1)
    whole = (tmp_path / "state.pt").read_bytes()
    for damaged in (whole[: len(whole) // 2], b"", b"no checkpoint"):
        (tmp_path / "state.pt").write_bytes(damaged)
        with pytest.raises(ConfigurationError, match=r"cannot read the checkpoint .*state\.pt .* remove it"):
            _train(base, examples, tmp_path)


def test_a_training_that_diverged_stops_and_writes_no_checkpoint(base, examples, tmp_path):
    import torch

    from guardrail.training.loop import train
    from guardrail.training.network import GroundingNetwork

    network = GroundingNetwork.open(base)
    with torch.no_grad():
        network.classifier.classifier.bias.fill_(float("nan"))
    with pytest.raises(ConfigurationError, match="the loss of step 1 is nan: a lower learning rate"):
        train(network, examples, schedule=_schedule(), directory=tmp_path, log=lambda _: None)
    assert not (tmp_path / "state.pt").exists()

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from privasr_k2 import config as configuration
from privasr_k2.am.checkpoints import save_model
from privasr_k2.am.kinds import new_model
from privasr_k2.am.losses import ctc_loss
from privasr_k2.attack.likelihood import attacked
from privasr_k2.errors import ConfigError, DataError, GraphError
from privasr_k2.graph.lang import load_lang
from privasr_k2.pate.ensembles import TeacherEnsemble
from privasr_k2.pate.heads import HeadConfig, HeadEnsemble, load_heads, teacher
from privasr_k2.pate.heads_training import (
    Utterances,
    batches,
    clip_by_head,
    train_group,
    train_heads,
)
from privasr_k2.pate.loading import open_models
from privasr_k2.pate.trainable_layers import trainable_layers
from privasr_k2.training.trainable import LoraConfig
from privasr_k2.training.weights import load_tensors
from tests.support.conf import section
from tests.support.end_to_end import model as end_to_end_model
from tests.support.end_to_end import spec as end_to_end_spec
from tests.support.small_am import features, tiny_model, upon_whisper
from tests.support.small_pate import heads_corpus

# Kind of model, what heads have of their own, encoder.
KINDS = [
    ("ctc", "output", "tdnn"),
    ("ctc", "last_block", "tdnn"),
    ("ctc", "last_block", "conformer"),
    ("rnnt", "output", "tdnn"),
    ("ctc_attention", "output", "tdnn"),
    ("las", "output", "pyramid"),
    *(("ctc", part, "whisper") for part in ("output", "head", "bias", "lora", "last_block")),
]
LORA = LoraConfig(rank=2, scale=1.0, layers=["query", "value"])
LENGTHS = dict(steps=6, batch=3, warmup_steps=2, heads_at_once=2, max_duration=60.0)
RATES = dict(lr=0.02, final_lr_share=0.1, decay_to_public=0.0, clip_norm=3.5)
CONFIG = HeadConfig(trained="output", lora=LORA, seed=3, **LENGTHS, **RATES)


def public(kind: str, encoder: str) -> Any:
    if encoder == "whisper":
        made = upon_whisper(LORA)
    else:
        made = tiny_model(encoder).eval() if kind == "ctc" else end_to_end_model(kind, encoder)
    if kind == "ctc":
        made.output.weight.data.mul_(6.0)
    return made


def data(layers: Any, sizes: tuple[int, ...]) -> tuple[Utterances, list[tuple[torch.Tensor, ...]]]:
    """Shards of so many random utterances: as heads see them, and as they are."""
    generator = torch.Generator().manual_seed(5)
    plain, num = [], sum(sizes)
    for n in range(num):
        x, lengths = features(30 + 3 * n, seed=n)
        size = 2 + n % 2
        text = torch.randint(1, 4, (1, size), generator=generator)
        plain.append((x, lengths, text, torch.tensor([size])))
    seen = [(*layers.lower(x, lengths), targets) for x, lengths, targets, _ in plain]
    states = [layers.states(lower, lengths, targets)[0] for lower, lengths, targets in seen]
    pad = torch.nn.utils.rnn.pad_sequence
    utterances = Utterances(
        ids=tuple(str(n) for n in range(num)),
        lower=pad([lower[0] for lower, _, _ in seen], batch_first=True),
        lengths=torch.cat([lengths for _, lengths, _ in seen]),
        states=pad(states, batch_first=True),
        targets=pad([targets[0] for _, _, targets in seen], batch_first=True),
        target_lengths=torch.cat([size for *_, size in plain]),
        shards=torch.tensor([shard for shard, size in enumerate(sizes) for _ in range(size)]),
    )
    return utterances, plain


def start_of(model: Any, layers: Any) -> dict[str, torch.Tensor]:
    named = model.named_parameters()
    return {name: value.detach().clone() for name, value in named if name in layers.names}


def random_heads(model: Any, trained: str, number: int, generator: torch.Generator) -> Any:
    """Heads around the public model's parameters."""

    def moved(value: torch.Tensor) -> torch.Tensor:
        return value + 0.5 * torch.randn(value.shape, generator=generator)

    start = start_of(model, trainable_layers(model, trained)).items()
    return {name: torch.stack([moved(value) for _ in range(number)]) for name, value in start}


def losses_of(model: Any, utterance: tuple[torch.Tensor, ...]) -> torch.Tensor:
    if model.spec.kind == "ctc":
        return ctc_loss(*model(*utterance[:2]), *utterance[2:])
    return model(*utterance)


def trained_alone(
    model: Any, layers: Any, plain: list[Any], number: int
) -> dict[str, torch.Tensor]:
    """The slow way: the whole model, one utterance at a time, torch's own clipping and AdamW."""
    for name, value in model.named_parameters():
        value.requires_grad_(name in layers.names)
    own = [value for value in model.parameters() if value.requires_grad]
    optimizer = torch.optim.AdamW(own, lr=CONFIG.lr, betas=(0.9, 0.98), weight_decay=0.0)
    cosine = [0.5 * (1 + np.cos(np.pi * step / CONFIG.steps)) for step in range(CONFIG.steps)]
    order = batches(len(plain), CONFIG.steps, CONFIG.batch, CONFIG.seed, number)
    for step, places in enumerate(order):
        warm_up = min((step + 1) / 2, 1)
        optimizer.param_groups[0]["lr"] = CONFIG.lr * warm_up * (0.1 + 0.9 * cosine[step])
        optimizer.zero_grad()
        nats = sum(losses_of(model, plain[n]).sum() for n in places)
        (nats / sum(int(plain[n][3]) for n in places)).backward()
        torch.nn.utils.clip_grad_norm_(own, CONFIG.clip_norm)
        optimizer.step()
    named = model.named_parameters()
    return {name: value.detach() for name, value in named if name in layers.names}


@pytest.mark.parametrize(("kind", "trained", "encoder"), KINDS)
def test_heads_come_out_as_models_that_were_trained_alone(kind, trained, encoder):
    model = public(kind, encoder)
    layers, sizes = trainable_layers(model, trained), (4, 2)
    utterances, plain = data(layers, sizes)
    start = start_of(model, layers)
    found = train_group(layers, start, utterances, [1, 2], CONFIG)
    assert set(found) == set(layers.names) != set()
    shares = (plain[:4], plain[4:])
    for place, (number, own_data) in enumerate(zip((1, 2), shares)):
        alone = trained_alone(public(kind, encoder), layers, own_data, number)
        for name, value in alone.items():
            torch.testing.assert_close(found[name][place], value, rtol=0, atol=1e-5)
            assert name == "encoder.norm.bias" or (value - start[name]).abs().max() > 1e-3, name


@pytest.mark.parametrize(("kind", "trained", "encoder"), KINDS)
@pytest.mark.parametrize("per_token", [False, True])
def test_heads_vote_as_whole_models_do(kind, trained, encoder, per_token):
    model = public(kind, encoder)
    heads = random_heads(model, trained, 5, torch.Generator().manual_seed(1))
    options = dict(trained=trained, per_token=per_token)
    ensemble = HeadEnsemble(model, heads, **options)
    whole = TeacherEnsemble([teacher(model, heads, k) for k in range(5)], per_token=per_token)
    x, lengths = features(40, 31, 24)
    hyps = [[(1, 2), (3,), (2, 2, 1)], [(3, 1)], [tuple([1] * 30), (), (2,)]]
    expected = whole.hypothesis_scores(x, lengths, hyps)
    close = dict(rtol=5e-6, atol=1e-4)  # sums of float32 log-probabilities down to -190 nats
    np.testing.assert_allclose(ensemble.hypothesis_scores(x, lengths, hyps), expected, **close)
    if kind == "ctc":  # 30 tokens do not fit 8 frames
        assert np.isneginf(expected[:, 2, 0]).all()
    few = HeadEnsemble(model, heads, limit=1, **options)
    np.testing.assert_allclose(few.hypothesis_scores(x, lengths, hyps), expected, **close)
    votes = ensemble.hypothesis_votes(x, lengths, hyps)
    expected_votes = whole.hypothesis_votes(x, lengths, hyps)
    assert [row.tolist() for row in votes] == [row.tolist() for row in expected_votes]
    assert all(row.sum() == 5 for row in votes) and np.ptp(expected[:, 0, 0]) > 0.1
    assert ensemble.hypothesis_scores(x, lengths, [[], [], []]).shape == (5, 3, 0)
    for made in (ensemble, few) if kind == "ctc" else ():
        torch.testing.assert_close(made.log_probs(x, lengths), whole.log_probs(x, lengths), **close)
    readings = [made.token_votes(x, lengths) for made in (whole, ensemble, few)]
    for rows, tokens in (([0, 1, 2], [1, 2, 3]), ([2, 0], [3, 3]), ([1], [1])):
        expected = readings[0].scores()
        for reading in readings[1:]:
            torch.testing.assert_close(reading.scores(), expected, **close)
            np.testing.assert_array_equal(reading.counts(), readings[0].counts())
        for reading in readings:
            reading.extend(np.array(rows), np.array(tokens))
    assert readings[1].counts().shape == (1, model.num_tokens) and readings[1].counts().sum() == 5


@pytest.mark.parametrize(("kind", "trained", "encoder"), KINDS)
def test_heads_are_attacked_as_whole_models_are(kind, trained, encoder):
    model = public(kind, encoder)
    generator = torch.Generator().manual_seed(2)
    heads = random_heads(model, trained, 3, generator)
    x = torch.randn(2, 40, 5, generator=generator).requires_grad_()
    weights, found = [0.5, 0.2, 0.3], []
    for limit in ({}, {"limit": 1}):
        ensemble = HeadEnsemble(model, heads, trained=trained, per_token=False, **limit)
        for losses in (ensemble.losses, None):
            scores = attacked(ensemble.models, weights, losses).log_likelihoods(x, [1, 3, 2])
            [gradient] = torch.autograd.grad(scores.sum(), x)
            found.append((scores.detach(), gradient))
    for scores, gradient in found[1:]:
        torch.testing.assert_close(scores, found[0][0], atol=1e-4, rtol=1e-5)
        atol = 2e-3 * found[0][1].abs().max().item()
        torch.testing.assert_close(gradient, found[0][1], atol=atol, rtol=0)
    assert found[0][1].abs().max() > 1e-3
    assert all(one.grad is None for one in model.parameters())


def test_a_head_as_a_model_shares_what_is_frozen():
    model = public("ctc", "tdnn")
    heads = {"output.weight": torch.ones(2, 4, 8, 1), "output.bias": torch.zeros(2, 4)}
    made = teacher(model, heads, 1)
    own = {
        name
        for name, value in made.named_parameters()
        if value.data_ptr() != model.get_parameter(name).data_ptr()
    }
    assert own == {"output.weight", "output.bias"}
    assert made.output.weight.eq(1).all() and not model.output.weight.eq(1).all()
    assert made.mean.data_ptr() == model.mean.data_ptr()


def test_decay_draws_towards_the_public_model_and_the_order_is_the_shards_own():
    model = public("ctc", "tdnn")
    layers = trainable_layers(model, "output")
    utterances, _ = data(layers, (4, 4))
    start = start_of(model, layers)

    def distance(config: HeadConfig, numbers: list[int]) -> torch.Tensor:
        found = train_group(layers, start, utterances, numbers, config)
        return (found["output.weight"] - start["output.weight"]).flatten(1).norm(dim=1)

    free = distance(CONFIG, [1, 2])
    assert (distance(replace(CONFIG, decay_to_public=20.0), [1, 2]) < 0.8 * free).all()
    assert distance(CONFIG, [1, 3])[0] == pytest.approx(float(free[0]), abs=1e-6)
    assert distance(CONFIG, [1, 3])[1] != pytest.approx(float(free[1]), abs=1e-4)


def test_clipping_by_head_is_torchs_for_each():
    generator = torch.Generator().manual_seed(2)
    gradients = [torch.randn(*shape, generator=generator) for shape in ((3, 2, 4), (3, 2))]
    gradients[1] *= 0.01
    gradients[0][2] *= 1e-3
    expected = [gradient.clone() for gradient in gradients]
    for head in range(3):
        parameters = [torch.nn.Parameter(torch.zeros_like(own[head])) for own in expected]
        for parameter, own in zip(parameters, expected):
            parameter.grad = own[head]
        torch.nn.utils.clip_grad_norm_(parameters, 0.5)
    clip_by_head(gradients, 0.5)
    for gradient, own in zip(gradients, expected):
        torch.testing.assert_close(gradient, own)


@pytest.mark.parametrize("utterances", [1, 3, 8])
def test_batches_are_permutations_one_after_the_other(utterances):
    order = batches(utterances, 5, 3, seed=1, number=2)
    assert order.shape == (5, 3)
    whole = order.flatten()[: 15 // utterances * utterances].reshape(-1, utterances)
    assert (np.sort(whole, axis=1) == np.arange(utterances)).all()


@pytest.fixture
def corpus(tmp_path):
    pytest.importorskip("lhotse")
    return heads_corpus(tmp_path)


def run(corpus: tuple[Path, Path, Path], out: Path, **changes: Any) -> dict[str, torch.Tensor]:
    train_heads(*corpus, out, replace(CONFIG, **changes), torch.device("cpu"))
    return load_tensors(out / "heads.safetensors")


def test_folder_of_heads_is_read_back_and_groups_change_nothing(corpus, tmp_path):
    found = run(corpus, tmp_path / "a")
    whole = run(corpus, tmp_path / "b", heads_at_once=9, max_duration=3.0)
    assert found["output.weight"].shape == (3, 4, 8, 1)
    for name, value in found.items():
        torch.testing.assert_close(value, whole[name], rtol=0, atol=1e-5)
        assert (value[0] - value[1]).abs().max() > 1e-3
    names = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert names == ["encoder", "heads.safetensors", "heads.yaml", "shards.json"]
    ensemble = load_heads(tmp_path / "a", "cpu", per_token=True)
    assert ensemble.num_teachers == 3 and ensemble.tokens == ["<blk>", "a", "b", "c"]
    assert ensemble.models[2].output.bias.tolist() == found["output.bias"][2].tolist()
    x, lengths = features(40)
    assert ensemble.hypothesis_votes(x, lengths, [[(1,), (2, 3)]])[0].sum() == 3
    lang = load_lang(corpus[2])
    chosen = open_models([tmp_path / "a"], lang, "cpu", heads=[3, 1])
    biases = [model.output.bias.tolist() for model in chosen.models]
    assert biases == found["output.bias"][[2, 0]].tolist()
    assert isinstance(open_models([tmp_path / "a"], lang, "cpu"), HeadEnsemble)
    with pytest.raises(DataError, match="heads 1 to 3, found 4 asked for"):
        open_models([tmp_path / "a"], lang, "cpu", heads=[4])
    with pytest.raises(ConfigError, match="or one folder of heads"):
        open_models([tmp_path / "a", corpus[1]], lang, "cpu")
    (tmp_path / "a" / "encoder" / "tokens.txt").write_text("<blk> 0\na 1\nb 2\nd 3\n")
    with pytest.raises(GraphError, match="token 3, 'c'"):
        open_models([tmp_path / "a"], lang, "cpu")


def test_a_killed_run_goes_on_with_the_heads_that_are_missing(corpus, tmp_path, monkeypatch):
    from privasr_k2.pate import heads_training

    expected, real, groups = run(corpus, tmp_path / "a"), heads_training.train_group, []

    def watched(layers: Any, start: Any, utterances: Any, numbers: Any, config: Any) -> Any:
        groups.append(list(numbers))
        if numbers == [3]:
            raise KeyboardInterrupt
        return real(layers, start, utterances, numbers, config)

    monkeypatch.setattr(heads_training, "train_group", watched)
    with pytest.raises(KeyboardInterrupt):
        run(corpus, tmp_path / "b")
    (tmp_path / "b" / "parts" / "2.safetensors").unlink()
    monkeypatch.setattr(heads_training, "train_group", real)
    again: list[list[int]] = []
    patched = lambda *given: again.append(list(given[3])) or real(*given)  # noqa: E731
    monkeypatch.setattr(heads_training, "train_group", patched)
    found = run(corpus, tmp_path / "b")
    assert groups == [[1, 2], [3]] and again == [[2], [3]]
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, rtol=0, atol=1e-5)


def test_heads_of_another_setting_are_not_kept(corpus, tmp_path, monkeypatch):
    from privasr_k2.pate import heads_training

    monkeypatch.setattr(heads_training, "_finish", lambda *given: None)
    train_heads(*corpus, tmp_path / "a", CONFIG, torch.device("cpu"))
    before = load_tensors(tmp_path / "a" / "parts" / "1.safetensors")
    train_heads(*corpus, tmp_path / "a", replace(CONFIG, lr=0.05), torch.device("cpu"))
    after = load_tensors(tmp_path / "a" / "parts" / "1.safetensors")
    assert (before["output.weight"] - after["output.weight"]).abs().max() > 1e-3


def test_words_that_the_lexicon_lacks_are_spelled(corpus, tmp_path):
    shards, _, lang = corpus
    (lang / "tokens.txt").write_text("<blk> 0\na 1\nb 2\n▁ 3\n", encoding="utf-8")
    (lang / "words.txt").write_text("<eps> 0\nAB 1\n#0 2\n")
    (lang / "lexicon.txt").write_text("AB ▁ a b\n", encoding="utf-8")
    from lhotse import CutSet

    from privasr_k2.data.manifests import load_cuts, save_cuts

    for k in (1, 2, 3):
        folder = shards / f"shard_{k}"
        cuts = list(load_cuts(folder, "train"))
        for cut in cuts:
            cut.supervisions[0].text = "ab"
        save_cuts(CutSet.from_cuts(cuts), folder, "train")
    model = tiny_model("tdnn")
    save_model(tmp_path / "model", model.spec, model.state_dict(), load_lang(lang).tokens)
    assert len(run((shards, tmp_path / "model", lang), tmp_path / "a")["output.bias"]) == 3


def test_bad_inputs(corpus, tmp_path):
    shards, model, lang = corpus
    out = tmp_path / "out"
    other = tmp_path / "other"
    other.mkdir()
    for name in ("words.txt", "lexicon.txt"):
        (other / name).write_text((lang / name).read_text())
    (other / "tokens.txt").write_text("<blk> 0\nb 1\na 2\nc 3\n")
    with pytest.raises(DataError, match="tokens of the lang folder"):
        run((shards, model, other), out)
    with pytest.raises(DataError, match="shards of the teachers"):
        run((model, model, lang), out)
    (shards / "shard_2" / "cuts_train.jsonl.gz").unlink()
    with pytest.raises(DataError, match="shard_2"):
        run(corpus, out)
    assert not (out / "heads.safetensors").exists()


def test_a_last_block_needs_blocks():
    with pytest.raises(ConfigError, match="TDNN or a Conformer"):
        trainable_layers(tiny_model("blstm"), "last_block")
    with pytest.raises(ConfigError, match="CTC"):
        trainable_layers(new_model(end_to_end_spec("las"), seed=1), "last_block")


def test_heads_of_another_model_are_refused():
    model = public("ctc", "tdnn")
    wrong = {"output.weight": torch.ones(2, 5, 8, 1), "output.bias": torch.zeros(2, 5)}
    with pytest.raises(DataError, match="of the public model"):
        HeadEnsemble(model, wrong, trained="output", per_token=False)
    with pytest.raises(DataError, match="of the public model"):
        HeadEnsemble(model, {"output.bias": torch.zeros(2, 4)}, trained="output", per_token=False)


WRONG = {"trained": "all", "steps": 0, "lr": 0.0, "final_lr_share": 2.0, "decay_to_public": -1.0}


@pytest.mark.parametrize(("key", "value"), WRONG.items())
def test_settings_out_of_range(key, value):
    with pytest.raises(ValueError, match=key):
        replace(CONFIG, **{key: value})


def test_defaults_load():
    assert configuration.load(HeadConfig, [section("heads")]).steps >= 1

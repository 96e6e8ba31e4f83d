"""Neural language models against torch's own modules, loops over words, kenlm, and Opacus."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from privasr_k2.lm.arpa import read_arpa, write_arpa
from privasr_k2.lm.neural.char_lstm import CharLstmLm, spell
from privasr_k2.lm.neural.lstm import LstmLm
from privasr_k2.lm.neural.softmax import AdaptiveSoftmax
from privasr_k2.lm.neural.transformer import TransformerLm
from privasr_k2.lm.ngram import count_ngrams, estimate
from privasr_k2.lm.ngram import perplexity as ngram_perplexity
from privasr_k2.lm.perplexity import KenlmModel, perplexity
from tests.support.small_lm import MODELS, WORDS, nbest_lists, random_words, scorer, tiny


def torchs_adaptive(ours: AdaptiveSoftmax) -> nn.AdaptiveLogSoftmaxWithLoss:
    theirs = nn.AdaptiveLogSoftmaxWithLoss(
        ours.head.in_features, ours.limits[-1], ours.limits[:-1], div_value=3.0, head_bias=False
    )
    theirs.head.load_state_dict(ours.head.state_dict())
    for pair, down, up in zip(theirs.tail, ours.down, ours.up):
        pair[0].load_state_dict(down.state_dict())
        pair[1].load_state_dict(up.state_dict())
    return theirs


@pytest.mark.parametrize("cutoffs", [[5], [4, 9, 17], [1, 2]])
def test_adaptive_softmax_equals_torchs(cutoffs: list[int]) -> None:
    generator = torch.Generator().manual_seed(1)
    ours = AdaptiveSoftmax(28, 30, cutoffs, reduction=3.0)
    theirs = torchs_adaptive(ours)
    hidden = torch.randn(200, 28, generator=generator)
    words = torch.randint(0, 30, (200,), generator=generator)
    torch.testing.assert_close(ours.log_probs(hidden), theirs.log_prob(hidden))
    for learning in (False, True):
        with torch.set_grad_enabled(learning):
            torch.testing.assert_close(
                ours.target_log_probs(hidden, words), theirs(hidden, words).output
            )
    ours.target_log_probs(hidden, words).mean().neg().backward()
    theirs(hidden, words).loss.backward()
    torch.testing.assert_close(ours.head.weight.grad, theirs.head.weight.grad)
    torch.testing.assert_close(ours.up[-1].weight.grad, theirs.tail[-1][1].weight.grad)
    torch.testing.assert_close(ours.down[0].weight.grad, theirs.tail[0][0].weight.grad)
    rows = torch.randint(0, 7, (200,), generator=generator)
    torch.testing.assert_close(
        ours.target_log_probs(hidden[:7], words, rows), theirs.log_prob(hidden[:7])[rows, words]
    )


def test_cutoffs_beyond_the_vocabulary_are_left_out() -> None:
    softmax = AdaptiveSoftmax(4, 10, [10, 20], reduction=2.0)
    assert softmax.limits == [10]
    torch.testing.assert_close(softmax.log_probs(torch.ones(1, 4)).exp().sum(), torch.tensor(1.0))


def slow_lstm(layer: nn.LSTM, inputs: Tensor) -> Tensor:
    """(U, D) of one sentence (U, E): the equations of an LSTM, one word after the other."""
    x = inputs
    for depth in range(layer.num_layers):
        w, r, b, c = (
            getattr(layer, f"{n}_l{depth}")
            for n in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        )
        hidden, cell, out = torch.zeros(layer.hidden_size), torch.zeros(layer.hidden_size), []
        for row in x:
            i, f, g, o = (w @ row + b + r @ hidden + c).chunk(4)
            cell = f.sigmoid() * cell + i.sigmoid() * g.tanh()
            hidden = o.sigmoid() * cell.tanh()
            out.append(hidden)
        x = torch.stack(out)
    return x


def slow_characters(model: CharLstmLm, symbols: tuple[str, ...], word: int) -> Tensor:
    """(E,) of one word: every window of its characters, one after the other."""
    characters, lengths, _ = spell(symbols, 20)
    vectors = model.character.weight[characters[word, : lengths[word]]]  # (L, char_dim)
    found = []
    for convolution in model.convolutions:
        width = convolution.kernel_size[0]
        padded = torch.cat([vectors, torch.zeros(max(0, width - len(vectors)), vectors.size(1))])
        windows = [
            (convolution.weight * padded[start : start + width].T).sum((1, 2)) + convolution.bias
            for start in range(len(padded) - width + 1)
        ]
        found.append(torch.stack(windows).tanh().amax(0))
    return model.highway(torch.cat(found))


def slow_transformer(model: TransformerLm, inputs: Tensor) -> Tensor:
    """(U, E) of one sentence through torch's own pre-norm encoder layers with a causal mask."""
    size, dim = inputs.shape
    positions = torch.zeros(size, dim)
    for place in range(size):
        for i in range(dim // 2):
            angle = place / 10000 ** (2 * i / dim)
            positions[place, i], positions[place, dim // 2 + i] = math.sin(angle), math.cos(angle)
    x = (inputs + positions).unsqueeze(0)
    mask = torch.full((size, size), -math.inf).triu(1)
    for block in model.blocks:
        layer = nn.TransformerEncoderLayer(
            dim, block.heads, block.inner.out_features, 0.0, batch_first=True, norm_first=True
        )
        with torch.no_grad():
            parts = [block.query, block.key, block.value]
            layer.self_attn.in_proj_weight.copy_(torch.cat([part.weight for part in parts]))
            layer.self_attn.in_proj_bias.copy_(torch.cat([part.bias for part in parts]))
        layer.self_attn.out_proj.load_state_dict(block.out.state_dict())
        layer.linear1.load_state_dict(block.inner.state_dict())
        layer.linear2.load_state_dict(block.outer.state_dict())
        layer.norm1.load_state_dict(block.attention_norm.state_dict())
        layer.norm2.load_state_dict(block.feedforward_norm.state_dict())
        x = layer(x, src_mask=mask)
    return model.norm(x)[0]


@pytest.mark.parametrize(("kind", "softmax", "tied"), MODELS)
def test_networks_equal_slow_ones(kind: str, softmax: str, tied: bool) -> None:
    model, vocabulary = tiny(kind, softmax, tied)
    words = random_words(3, 6)
    for sentence, found in zip(words, model.hidden(words)):
        if isinstance(model, CharLstmLm):
            rows = [slow_characters(model, vocabulary.symbols, word) for word in sentence.tolist()]
            expected = slow_lstm(model.recurrent.lstm, torch.stack(rows))
        elif isinstance(model, LstmLm):
            expected = model.project(slow_lstm(model.recurrent.lstm, model.embed(sentence)))
        else:
            expected = slow_transformer(model, model.embed(sentence))
        torch.testing.assert_close(found, expected, atol=2e-5, rtol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "softmax", "tied"), MODELS)
def test_shared_prefixes_equal_one_at_a_time_on_many_lists(
    kind: str, softmax: str, tied: bool
) -> None:
    lm, nbests = scorer(kind, softmax, tied), nbest_lists(15, seed=5, size=40)
    for found, nbest in zip(lm.score_with_shared_prefixes(nbests, max_numbers=40_000), nbests):
        for one, hyp in zip(found, nbest):
            inputs = torch.tensor([[0, *lm.vocabulary.numbers(hyp).tolist()]])
            targets = torch.cat([inputs[:, 1:], torch.zeros(1, 1, dtype=torch.long)], dim=1)
            with torch.no_grad():
                wanted = lm.model.log_probs(inputs).gather(2, targets.unsqueeze(2)).sum()
            assert one == pytest.approx(float(wanted), abs=1e-4)


@pytest.mark.parametrize("order", [2, 4])
def test_perplexity_of_kenlm_equals_our_arpa(tmp_path: Path, order: int) -> None:
    pytest.importorskip("kenlm")
    train = [hyp for nbest in nbest_lists(20) for hyp in nbest]
    text = [
        [*hyp[:-1], "unheard"] if hyp and n % 5 == 0 else hyp
        for n, hyp in enumerate(nbest_lists(1, 7, 60)[0])
    ]
    path, counts = tmp_path / "lm.arpa", count_ngrams(train, WORDS, order=order)
    write_arpa(estimate(counts, "witten_bell"), path)
    own, kenlm = read_arpa(path), KenlmModel(path)
    found = perplexity(kenlm, text, WORDS)
    assert found.oov > 5
    assert found.ppl == pytest.approx(ngram_perplexity(own, text), rel=1e-4)
    with_oov, unknown = own.sentence_scores(text)
    assert unknown == found.oov
    scores = with_oov * math.log(10)
    expected = math.exp(-scores.sum() / (found.words + found.sentences))
    assert found.ppl_with_oov == pytest.approx(expected, rel=1e-4)
    np.testing.assert_allclose(kenlm.score_sentences(text), scores, atol=1e-3)


def test_opacus_gives_per_example_gradients_of_the_transformer() -> None:
    opacus = pytest.importorskip("opacus")
    model, _ = tiny("transformer")
    inputs, targets = random_words(4, 5), random_words(4, 5, seed=1)

    def loss(of: nn.Module, rows: slice) -> Tensor:
        log_probs = of.log_probs(inputs[rows])
        return -log_probs.gather(2, targets[rows].unsqueeze(2)).sum()

    expected = []
    for row in range(4):
        model.zero_grad()
        loss(model, slice(row, row + 1)).backward()
        expected.append([parameter.grad.clone() for parameter in model.parameters()])
    model.zero_grad()
    wrapped = opacus.GradSampleModule(model.train(), batch_first=True, loss_reduction="sum")
    loss(wrapped._module, slice(None)).backward()
    for place, parameter in enumerate(wrapped.parameters()):
        wanted = torch.stack([of_row[place] for of_row in expected])
        torch.testing.assert_close(parameter.grad_sample, wanted, atol=1e-4, rtol=1e-3)


def test_dp_lstm_takes_our_parameters() -> None:
    layers = pytest.importorskip("opacus.layers")
    model, _ = tiny("lstm")
    ours = model.recurrent.lstm
    theirs = layers.DPLSTM(ours.input_size, ours.hidden_size, ours.num_layers, batch_first=True)
    theirs.load_state_dict(ours.state_dict())
    inputs = model.embed(random_words(3, 6))
    torch.testing.assert_close(theirs(inputs)[0], ours(inputs)[0], atol=1e-5, rtol=0)

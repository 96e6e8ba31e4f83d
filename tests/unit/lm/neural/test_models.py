"""Every network: normalized, causal, the same from states as from whole sentences."""

from __future__ import annotations

import pytest
import torch

from privasr_k2.errors import ConfigError
from privasr_k2.lm.neural.char_lstm import spell
from privasr_k2.lm.neural.kinds import kind_of, new_lm, spec_of
from privasr_k2.lm.neural.model import join
from privasr_k2.lm.neural.vocabulary import SYMBOLS, Vocabulary
from tests.support.conf import section
from tests.support.small_lm import KINDS, MODELS, SOFTMAXES, WORDS, random_words, settings, tiny

EVERY = pytest.mark.parametrize(("kind", "softmax", "tied"), MODELS)


@EVERY
def test_probabilities_sum_to_one(kind: str, softmax: str, tied: bool) -> None:
    model, vocabulary = tiny(kind, softmax, tied)
    log_probs = model.log_probs(random_words(4, 7))
    assert log_probs.shape == (4, 7, len(vocabulary))
    torch.testing.assert_close(log_probs.exp().sum(dim=2), torch.ones(4, 7), atol=1e-5, rtol=0)
    assert log_probs.std(dim=2).min() > 0.1  # and they are not all alike


@EVERY
@pytest.mark.parametrize("learning", [False, True])
def test_targets_are_those_of_all_words(
    kind: str, softmax: str, tied: bool, learning: bool
) -> None:
    model, _ = tiny(kind, softmax, tied)
    inputs, targets = random_words(3, 6), random_words(3, 6, seed=1)
    expected = model.log_probs(inputs).gather(2, targets.unsqueeze(2)).squeeze(2)
    with torch.set_grad_enabled(learning):
        found = model.target_log_probs(inputs, targets)
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)
        lengths = torch.tensor([6, 2, 0])
        cut = model.target_log_probs(inputs, targets, lengths)
    valid = torch.arange(6) < lengths.unsqueeze(1)
    torch.testing.assert_close(cut, expected * valid, atol=1e-5, rtol=0)
    assert (cut[~valid] == 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_a_later_word_changes_nothing_earlier(kind: str) -> None:
    model, _ = tiny(kind)
    words = random_words(2, 8)
    before = model.log_probs(words)
    for place in range(1, 8):
        other = words.clone()
        other[:, place] = other[:, place] % 23 + 1
        after = model.log_probs(other)
        torch.testing.assert_close(after[:, :place], before[:, :place], atol=1e-5, rtol=0)
        assert (after[:, place:] - before[:, place:]).abs().amax(dim=(1, 2)).min() > 1e-3


@pytest.mark.parametrize("kind", KINDS)
def test_padding_and_company_change_nothing(kind: str) -> None:
    model, _ = tiny(kind)
    words = random_words(3, 6)
    padded = torch.cat([words, torch.zeros(3, 4, dtype=torch.long)], dim=1)
    expected = model.log_probs(words)
    torch.testing.assert_close(model.log_probs(padded)[:, :6], expected, atol=1e-5, rtol=0)
    torch.testing.assert_close(model.log_probs(words[1:2]), expected[1:2], atol=1e-5, rtol=0)


@EVERY
def test_steps_equal_whole_sentences(kind: str, softmax: str, tied: bool) -> None:
    model, _ = tiny(kind, softmax, tied)
    words = random_words(3, 7)
    expected = model.hidden(words)
    state = model.initial_state(3)
    for place in range(7):
        hidden, state = model.step(words[:, place], state)
        torch.testing.assert_close(hidden, expected[:, place], atol=1e-5, rtol=0)
    assert len(state) == 3
    numbers = sum(tensor[0].numel() for tensor in state.tensors if tensor.dtype == torch.float32)
    assert model.state_size(7) == numbers


@pytest.mark.parametrize("kind", KINDS)
def test_states_are_selected_and_joined(kind: str) -> None:
    """Prefixes of 2, 5 and 0 words go on together, one of them twice."""
    model, _ = tiny(kind)
    long, short = random_words(2, 5), random_words(1, 2, seed=2)
    states = [
        model.advance(model.embed(long), model.initial_state(2))[1],
        model.advance(model.embed(short), model.initial_state(1))[1],
        model.initial_state(1),
    ]
    state = join(states).select(torch.tensor([2, 0, 3, 0]))
    more = torch.tensor([[3, 4], [5, 6], [7, 8], [9, 3]])
    hidden, after = model.advance(model.embed(more), state)
    last, _ = model.step(torch.tensor([4, 4, 4, 4]), after)
    prefixes = [short[0], long[0], torch.tensor([], dtype=torch.long), long[0]]
    for row, prefix in enumerate(prefixes):
        whole = model.hidden(torch.cat([prefix, more[row], torch.tensor([4])]).unsqueeze(0))[0]
        torch.testing.assert_close(hidden[row], whole[-3:-1], atol=1e-5, rtol=0)
        torch.testing.assert_close(last[row], whole[-1], atol=1e-5, rtol=0)


@pytest.mark.parametrize("softmax", SOFTMAXES)
@pytest.mark.parametrize("kind", ["lstm", "transformer"])
def test_ties_are_ties(kind: str, softmax: str) -> None:
    """The vector of a word is what its score is a product with; one step changes both."""
    model, vocabulary = tiny(kind, softmax, tied=True)
    free, _ = tiny(kind, softmax)
    assert sum(p.numel() for p in model.parameters()) < sum(p.numel() for p in free.parameters())
    every = torch.arange(len(vocabulary))
    with torch.no_grad():
        for parameter in model.output.parameters():
            parameter.mul_(1.5)
    vectors = model.output.embed(every)
    torch.testing.assert_close(model.embed(every), vectors * vectors.size(1) ** 0.5)
    hidden = torch.randn(1, vectors.size(1), generator=torch.Generator().manual_seed(0))
    log_probs, scores = model.output.log_probs(hidden)[0], (hidden @ vectors.T)[0]
    if softmax == "full":
        scores = scores + model.output.linear.bias
    groups = {"full": [(0, 24)], "adaptive": [(0, 6), (6, 14), (14, 24)]}[softmax]
    for first, end in groups:  # within a group, scores and log-probabilities differ by one number
        constant = (scores - log_probs)[first:end]
        torch.testing.assert_close(constant, constant[:1].expand_as(constant), atol=1e-4, rtol=0)


@EVERY
def test_every_parameter_gets_a_gradient(kind: str, softmax: str, tied: bool) -> None:
    """Also without a word of the last cluster in the batch, as several processes need it."""
    model, _ = tiny(kind, softmax, tied)
    inputs = random_words(2, 4) % 5
    model(inputs, torch.tensor([[2, 3, 1, 0], [4, 5, 2, 0]]), torch.tensor([4, 3])).sum().backward()
    assert [name for name, parameter in model.named_parameters() if parameter.grad is None] == []


def test_words_are_spelled_alike_however_far_they_are_filled_up() -> None:
    model, _ = tiny("char_lstm")
    short = Vocabulary((*SYMBOLS, "a", "ab"))
    long = Vocabulary((*SYMBOLS, "a", "ab", "abababababab"))
    spec = spec_of(settings("char_lstm"))
    with_short, with_long = new_lm(spec, short, 1), new_lm(spec, long, 1)
    shared = {n: v for n, v in with_short.state_dict().items() if not n.startswith("output")}
    with_long.load_state_dict({**with_long.state_dict(), **shared})
    words = torch.arange(4)
    alone = torch.cat([with_short.embed(words[n : n + 1]) for n in range(4)])
    torch.testing.assert_close(with_long.embed(torch.arange(5))[:4], alone, atol=1e-6, rtol=0)
    assert not torch.allclose(alone[2], alone[3])
    assert model.embed(torch.tensor([[2, 3, 2]])).shape[:2] == (1, 3)


def test_spelling() -> None:
    characters, lengths, number = spell([*SYMBOLS, "abc", "ab"], max_chars=2)
    assert characters.tolist() == [[1, 3, 2, 0], [1, 4, 2, 0], [1, 5, 6, 2], [1, 5, 6, 2]]
    assert lengths.tolist() == [3, 3, 4, 4]
    assert number == 7


@pytest.mark.parametrize(
    ("kind", "wrong", "named"),
    [
        ("lstm", "network.layers=0", "network.layers must be at least 1"),
        ("lstm", "network.dropout=1.0", "network.dropout must be below 1"),
        ("lstm", "kind=transformer", "kind must be that of the configuration's file"),
        ("lstm", "output.softmax=other", "softmax must be one of full, adaptive"),
        ("lstm", "output.cutoffs=[5,3]", "output.cutoffs must be rising"),
        ("lstm", "output.reduction=0.5", "output.reduction must be at least 1"),
        ("lstm", "max_words=0", "max_words must be at least 1"),
        ("lstm", "text=all", "text must be one of auto"),
        ("char_lstm", "output.tied=true", "output.tied must be false"),
        ("char_lstm", "network.widths=[1]", "lists of one length"),
        ("transformer", "network.heads=3", "multiple of heads"),
    ],
)
def test_what_no_model_can_be(kind: str, wrong: str, named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        settings(kind, "adaptive", False, wrong)


def test_the_kind_is_named(tmp_path) -> None:
    with pytest.raises(ConfigError, match="one of char_lstm, lstm, transformer"):
        kind_of([])
    (tmp_path / "a.yaml").write_text("kind: lsmt  # no such\n")
    with pytest.raises(ConfigError, match=r"a.yaml: expected kind.*found 'lsmt'"):
        kind_of([section("lm_lstm"), tmp_path / "a.yaml"])
    assert len(WORDS) + 2 == 24

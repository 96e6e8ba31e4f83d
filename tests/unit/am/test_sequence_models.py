"""The end-to-end models behind their interface: what they score, and what must not matter."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from privasr_k2.am import rnnt
from privasr_k2.am.ctc_prefix import CtcSteps
from privasr_k2.am.encoders import make_encoder
from privasr_k2.am.encoders.pyramid import joined
from privasr_k2.am.losses import ctc_loss
from privasr_k2.am.sequence import SequenceTask
from privasr_k2.am.specaugment import SpecAugment, SpecAugmentConfig, masked
from privasr_k2.data.batches import pad_batch
from privasr_k2.errors import ConfigError
from tests.support.end_to_end import ENCODERS, END_TO_END, encoder, model, spec
from tests.support.sequence_scores import next_log_probs, score_hypotheses
from tests.support.small_am import features

ALL = (*END_TO_END, "ctc", "whisper")
TEXTS = [[1, 2, 3], [2, 2], [3]]


def batch() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    x, lengths = features(33, 24, 26)
    rows = [torch.tensor(text) for text in TEXTS]
    targets = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
    return x, lengths, targets, torch.tensor([*map(len, TEXTS)])


def gradients(made: torch.nn.Module, given: tuple[Tensor, ...], row: int) -> dict[str, Tensor]:
    made.zero_grad()
    made(*given)[row].backward()
    return {name: parameter.grad.clone() for name, parameter in made.named_parameters()}


@pytest.mark.parametrize("encoder_kind", ENCODERS)
@pytest.mark.parametrize("kind", END_TO_END)
def test_company_and_padding_change_neither_losses_nor_gradients(kind, encoder_kind):
    made = model(kind, encoder_kind).train()
    x, lengths, targets, target_lengths = batch()
    losses, first = made(*batch()), gradients(made, batch(), 1)
    assert losses.shape == (3,) and losses.isfinite().all()
    assert any(float(gradient.abs().max()) > 1e-3 for gradient in first.values())
    # One utterance of other content, another left out, and other padding.
    others = x.clone()
    others[0] += 1.0
    others[1, 24:], targets = 7.0, targets.clone()
    targets[0, 1], targets[1, 2:] = 3, 3
    changed = (others[:2], lengths[:2], targets[:2], target_lengths[:2])
    torch.testing.assert_close(made(*changed)[1], losses[1], atol=1e-5, rtol=1e-5)
    for name, gradient in gradients(made, changed, 1).items():
        torch.testing.assert_close(gradient, first[name], atol=1e-5, rtol=1e-4, msg=name)
    alone = made(x[1:2, :24], lengths[1:2], torch.tensor([TEXTS[1]]), target_lengths[1:2])
    torch.testing.assert_close(alone[0], losses[1], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", ALL)
def test_reading_token_by_token_gives_the_score_of_the_whole(kind):
    made = model(kind, "blstm")
    x, lengths = features(17, 12)
    hyps = [[(1, 2), (), (3, 3, 1)], [(2,)]]
    whole = score_hypotheses(made, x, lengths, hyps)
    encoded, frames = made.encode(x, lengths)
    steps = made.stepper(encoded, frames)
    for row, of_one in enumerate(hyps):
        for place, text in enumerate(of_one):
            found, score, at = steps.start(), 0.0, torch.tensor([row])
            for token in text:
                score += float(found.scores[at, token])
                found, at = steps.extend(found, at, torch.tensor([token])), torch.tensor([0])
            expected = float(whole[row][place])
            total = score + float(found.scores[at, 0])
            assert total == pytest.approx(expected, rel=1e-4), text


@pytest.mark.parametrize("kind", ["rnnt", "las", "ctc"])
def test_next_tokens_are_distributions(kind):
    made = model(kind)
    x, lengths = features(30, 21)
    steps = made.stepper(*made.encode(x, lengths))
    found = steps.extend(steps.start(), torch.tensor([0, 1, 1]), torch.tensor([1, 2, 3]))
    torch.testing.assert_close(found.scores.exp().sum(1), torch.ones(3, dtype=torch.float64))


@pytest.mark.parametrize("kind", ALL)
def test_posteriors_after_given_prefixes(kind):
    made = model(kind)
    x, lengths = features(30, 21, 30)
    prefixes = [(1, 2), (), (3,)]
    found = next_log_probs(made, x, lengths, prefixes)
    torch.testing.assert_close(found.exp().sum(1), torch.ones(3, dtype=torch.float64))
    for row, prefix in enumerate(prefixes):
        alone = next_log_probs(made, x[row : row + 1], lengths[row : row + 1], [prefix])
        torch.testing.assert_close(alone[0], found[row], atol=1e-5, rtol=1e-5)
    if kind != "ctc_attention":  # whose scores are no log-probabilities
        # The empty prefix has the probability 1, so that its end has that of the empty transcript.
        ended = score_hypotheses(made, x, lengths, [[], [()], []])[1]
        torch.testing.assert_close(found[1, :1], ended, atol=1e-4, rtol=1e-4)


def test_no_hypotheses_no_scores():
    x, lengths = features(30, 21)
    assert [*map(len, score_hypotheses(model("las"), x, lengths, [[], []]))] == [0, 0]
    assert [*map(len, score_hypotheses(model("rnnt"), x, lengths, [[], [(1,)]]))] == [0, 1]


def test_losses_are_likelihoods_outside_of_training():
    for kind in ("rnnt", "las"):
        made = model(kind)
        x, lengths, _, _ = batch()
        scores = torch.cat(score_hypotheses(made, x, lengths, [[text] for text in TEXTS]))
        torch.testing.assert_close(-made(*batch()).double(), scores, atol=1e-6, rtol=1e-6)


def test_hybrid_loss_and_scores_are_weighted_sums():
    made = model("ctc_attention")
    x, lengths, targets, target_lengths = batch()
    encoded, frames = made.encode(x, lengths)
    attention = made.speller(encoded, frames, targets, target_lengths)
    aligned = ctc_loss(made.ctc_log_probs(encoded), frames, targets, target_lengths)
    torch.testing.assert_close(made(*batch()), 0.3 * aligned + 0.7 * attention)
    scores = torch.cat(score_hypotheses(made, x, lengths, [[text] for text in TEXTS]))
    weighted = -(0.4 * aligned + 0.6 * attention).double()
    torch.testing.assert_close(scores, weighted, atol=1e-6, rtol=1e-6)
    made.ctc_weight = 1.0
    start = made.stepper(encoded, frames).start().scores
    expected = CtcSteps(made.log_probs(x, lengths)[0], frames).start().scores
    torch.testing.assert_close(start, expected)


def test_smoothed_targets_only_while_training():
    plain, smooth = model("las"), model("las", label_smoothing=0.2)
    smooth.load_state_dict(plain.state_dict())
    torch.testing.assert_close(smooth(*batch()), plain(*batch()))
    assert not torch.allclose(smooth.train()(*batch()), plain.train()(*batch()))


@pytest.mark.parametrize("joint_mb", [10.0, 0.002, 0.0005, 0.00001])
def test_pieces_of_the_joint_change_nothing(joint_mb):
    whole, small = model("rnnt").train(), model("rnnt", joint_mb=joint_mb).train()
    sizes: list[int] = []
    small.joint.output.register_forward_hook(lambda _, given, out: sizes.append(4 * out.numel()))
    whole_gradients = gradients(whole, batch(), 0)
    x, lengths, targets, target_lengths = batch()
    with torch.no_grad():
        scores = small.losses(*small.encode(x, lengths), targets, target_lengths)
    assert sizes  # a hook keeps the joint whole: Opacus has one
    assert len(sizes) == 1
    small.joint.output._forward_hooks.clear()
    torch.testing.assert_close(scores, whole.eval()(*batch()), atol=1e-5, rtol=1e-5)
    small.train()
    seen: list[int] = []
    logits = small.joint.logits

    def counted(frames: Tensor, prefixes: Tensor) -> Tensor:
        out = logits(frames, prefixes)
        seen.append(4 * out.numel())
        return out

    small.joint.logits = counted
    found = gradients(small, batch(), 0)
    one_cell = 4 * 4 * 4  # a frame's, with 4 positions and 4 outputs
    assert max(seen) <= max(joint_mb * 1e6, one_cell)
    assert (len(seen) > 1) == (joint_mb < 1)
    for name, gradient in found.items():
        torch.testing.assert_close(gradient, whole_gradients[name], atol=1e-5, rtol=1e-4, msg=name)


def only_pruned(made: Any) -> None:
    """Take the loss that chooses label positions out."""
    transducer = replace(made.spec.transducer, simple_share=1e-9)
    made.spec = replace(made.spec, transducer=transducer)


@pytest.mark.k2
def test_pruning_that_keeps_everything_is_the_full_loss_and_the_choosing_one():
    full, pruned = model("rnnt"), model("rnnt", prune_range=4)
    full.load_state_dict(pruned.state_dict(), strict=False)
    # Outside of training nothing is pruned.
    torch.testing.assert_close(pruned(*batch()), full(*batch()))
    pruned.train()
    only_pruned(pruned)
    torch.testing.assert_close(pruned(*batch()), full(*batch()), atol=1e-4, rtol=1e-4)
    narrow = model("rnnt", prune_range=2).train()
    narrow.load_state_dict(pruned.state_dict())
    losses = narrow(*batch())
    assert losses.shape == (3,) and not torch.allclose(losses, full(*batch()))
    losses.sum().backward()
    assert all(parameter.grad is not None for parameter in narrow.parameters())


@pytest.mark.k2
def test_pruning_where_labels_are_more_than_frames():
    x, lengths = features(33, 12)
    texts = [torch.tensor([1, 2]), torch.tensor([1, 2, 3] * 3)]
    targets = torch.nn.utils.rnn.pad_sequence(texts, batch_first=True)
    target_lengths = torch.tensor([*map(len, texts)])
    pruned = model("rnnt", prune_range=10).train()
    only_pruned(pruned)
    full = model("rnnt")
    full.load_state_dict(pruned.state_dict(), strict=False)
    frames = pruned.encode(x, lengths)[1]
    assert int(frames[1]) < 9
    given = (x, lengths, targets, target_lengths)
    torch.testing.assert_close(pruned(*given), full(*given), atol=1e-4, rtol=1e-4)
    narrow = model("rnnt", prune_range=4).train()
    narrow.load_state_dict(pruned.state_dict())
    together = narrow(*given)
    # Fewer frames than labels in all of the batch, where there were more in the first utterance.
    alone = narrow(x[1:, :12], lengths[1:], targets[1:], target_lengths[1:])
    assert together.isfinite().all()
    torch.testing.assert_close(alone[0], together[1], atol=1e-5, rtol=1e-5)


@pytest.mark.k2
@pytest.mark.parametrize("version", ["1.23.4", "1.24.4"])
def test_an_utterance_with_too_many_labels_changes_no_other(monkeypatch, capsys, version):
    import k2

    ranges = k2.get_rnnt_prune_ranges

    def widened(labels: Tensor, blanks: Tensor, edges: Tensor, size: int) -> Tensor:
        """What 1.24.4 does before the rest of 1.23.4: for the worst utterance, and with a print."""
        print("adjusting")
        least = (edges[:, 2] - 1).div(edges[:, 3], rounding_mode="trunc") + 2
        return ranges(labels, blanks, edges, max(size, int(least.max())))

    if version == "1.24.4":
        monkeypatch.setattr(k2, "get_rnnt_prune_ranges", widened)
    x, lengths = features(33, 12)
    targets = torch.tensor([[1, 2, 3, 1] + [0] * 5, [1, 2, 3] * 3])
    given = (x, lengths, targets, torch.tensor([4, 9]))
    made = model("rnnt", prune_range=2).train()  # one label a frame; the second has three frames
    only_pruned(made)
    found = made(*given)
    alone = made(*(part[:1] for part in given))
    assert found.isinf().tolist() == [False, True]
    torch.testing.assert_close(found[:1], alone, atol=1e-5, rtol=1e-5)
    assert capsys.readouterr().out == ""


def test_pruning_without_k2_is_refused(monkeypatch):
    monkeypatch.setattr(rnnt, "find_k2", lambda: None)
    with pytest.raises(ConfigError, match=r"transducer\.prune_range: expected k2"):
        model("rnnt", prune_range=3).train()(*batch())


def test_task_counts_greedy_errors_when_scoring():
    made = model("las").eval()
    given = pad_batch(["a", "b"], [torch.randn(30, 5), torch.randn(25, 5)], [[1, 2, 1], [3]])
    scored = SequenceTask().loss(made, given, None)
    expected = made(given.features, given.lengths, given.targets, given.target_lengths)
    torch.testing.assert_close(scored.sums, expected)
    assert scored.count == 4 and scored.extra["token_errors"] > 0
    trained = SequenceTask().loss(made, given, torch.Generator().manual_seed(1))
    assert trained.extra == {}


@pytest.mark.parametrize("kind", END_TO_END)
def test_masks_only_while_training(kind):
    made = model(kind).eval()
    given = pad_batch(["a", "b"], [torch.randn(30, 5), torch.randn(25, 5)], [[1, 2, 1], [3]])
    masks = SpecAugment(SpecAugmentConfig(20.0, 5, 0.5, 1, 2), frame_shift=0.01)
    with torch.no_grad():
        trained = SequenceTask(masks).loss(made, given, torch.Generator().manual_seed(1)).sums
        drawn = masks(given.features, given.lengths, torch.Generator().manual_seed(1))
        changed = replace(given, features=masked(given.features, given.lengths, drawn))
        torch.testing.assert_close(trained, SequenceTask().loss(made, changed, None).sums)
        assert not torch.allclose(trained, SequenceTask(masks).loss(made, given, None).sums)


def test_pyramid_halves_frames_and_knows_their_number():
    config: Any = encoder("pyramid")
    for frames in (1, 2, 3, 9, 10, 33):
        x, lengths = features(frames)
        y, out = make_encoder(5, config)(x.transpose(1, 2), lengths)
        assert y.shape == (1, 12, config.output_frames(frames)) and out.tolist() == [y.size(2)]
    y, lengths = joined(torch.arange(1.0, 11).view(1, 2, 5), torch.tensor([4]))
    assert y.tolist() == [[[1, 3, 0], [6, 8, 0], [2, 4, 0], [7, 9, 0]]] and lengths.tolist() == [2]


def test_spec_says_what_is_built():
    assert model("rnnt").spec == spec("rnnt")
    assert model("las", "pyramid").subsampling == 4

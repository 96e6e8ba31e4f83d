"""Prefixes, token by token, and the search over them."""

from __future__ import annotations

import math

import pytest
import torch

from privasr_k2.am.beam_search import beam_search
from privasr_k2.am.ctc_prefix import CtcSteps
from privasr_k2.am.losses import ctc_loss
from privasr_k2.am.steps import JointSteps, Prefixes, scanned
from tests.support.ctc_paths import path_probability


def ctc(*lengths: int, tokens: int = 4, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    x = 2.0 * torch.randn(len(lengths), max(lengths), tokens, generator=generator)
    return x.log_softmax(2), torch.tensor(lengths)


def test_scan_is_the_loop():
    weights, entering = torch.randn(3, 50) * 40, torch.randn(3, 50) * 40
    entering[:, ::3] = -math.inf
    y = torch.full((3,), -math.inf, dtype=torch.float64)
    expected = []
    for t in range(50):
        y = torch.logaddexp(y + (weights[:, t - 1] if t else 0.0), entering[:, t].double())
        expected.append(y)
    torch.testing.assert_close(scanned(weights, entering), torch.stack(expected, 1))


def test_ctc_prefixes_against_all_paths():
    log_probs, lengths = ctc(4, 3)
    steps = CtcSteps(log_probs, lengths)
    for row, text in ((0, (1, 1)), (0, (2, 1)), (1, (3,)), (1, (3, 3)), (1, (1, 2, 3))):
        found, score = steps.start(), 0.0
        for place, token in enumerate(text):
            rows = torch.tensor([row if place == 0 else 0])
            score += float(found.scores[rows, token])
            found = steps.extend(found, rows, torch.tensor([token]))
        probs = log_probs[row, : lengths[row]].exp().double().numpy()
        score += float(found.scores[0, 0])
        expected = path_probability(probs, text)
        assert math.exp(score) == pytest.approx(expected, rel=1e-6, abs=1e-300)
        assert float(found.scores[0].exp().sum()) == pytest.approx(1.0)


def test_what_cannot_be_said_has_no_probability():
    steps = CtcSteps(*ctc(2))
    found = steps.start()
    for token in (1, 1):  # needs three frames
        found = steps.extend(found, torch.tensor([0]), torch.tensor([token]))
    assert (found.scores == -math.inf).all()


def test_long_utterances_of_sure_models_stay_exact():
    generator = torch.Generator().manual_seed(2)
    log_probs = (30.0 * torch.randn(1, 400, 30, generator=generator)).log_softmax(2)
    lengths, text = torch.tensor([400]), torch.randint(1, 30, (1, 40), generator=generator)
    steps = CtcSteps(log_probs, lengths)
    found, score, row = steps.start(), 0.0, torch.tensor([0])
    for token in text[0]:
        score += float(found.scores[0, token])
        found = steps.extend(found, row, token.view(1))
    expected = -float(ctc_loss(log_probs, lengths, text, torch.tensor([40])))
    assert score + float(found.scores[0, 0]) == pytest.approx(expected, rel=1e-5)


def test_prefixes_together_are_each_by_itself():
    log_probs, lengths = ctc(6, 9, 4, 7)
    steps = CtcSteps(log_probs, lengths)
    rows, tokens = torch.tensor([2, 0, 2, 3, 0, 2]), torch.tensor([1, 2, 3, 1, 2, 1])
    again, then = torch.tensor([5, 1, 3, 3, 0]), torch.tensor([1, 2, 3, 1, 2])
    together = steps.extend(steps.extend(steps.start(), rows, tokens), again, then)
    for place, (row, token) in enumerate(zip(again.tolist(), then.tolist())):
        own = rows[row : row + 1]
        alone = CtcSteps(log_probs[own], lengths[own])
        one = alone.extend(alone.start(), torch.tensor([0]), tokens[row : row + 1])
        one = alone.extend(one, torch.tensor([0]), torch.tensor([token]))
        torch.testing.assert_close(together.scores[place], one.scores[0], rtol=1e-12, atol=1e-12)


def test_what_is_too_unlikely_for_a_probability_has_a_logarithm():
    log_probs = torch.tensor([0.0, -800.0, -900.0, -2000.0]).expand(1, 5, 4)
    found = CtcSteps(log_probs, torch.tensor([5])).start()
    expected = torch.tensor([0.0, -800.0, -900.0, -2000.0], dtype=torch.float64)
    expected[1:] += math.log(5)  # at any of five frames
    torch.testing.assert_close(found.scores[0], expected, rtol=1e-12, atol=1e-12)


PROBS = {(): 0.05, (1,): 0.1, (2,): 0.05, (1, 1): 0.1, (1, 2): 0.2, (2, 1): 0.4, (2, 2): 0.1}


class Table:
    """A model given as the probability of every sequence of two tokens, at most two long."""

    num = 1

    def __init__(self, probs: dict[tuple[int, ...], float] = PROBS) -> None:
        self.probs = probs

    def start(self) -> Prefixes:
        return self._of([()])

    def extend(self, prefixes: Prefixes, rows: torch.Tensor, tokens: torch.Tensor) -> Prefixes:
        pairs = zip(rows.tolist(), tokens.tolist())
        return self._of([(*prefixes.memory[row], token) for row, token in pairs])

    def _of(self, texts: list[tuple[int, ...]]) -> Prefixes:
        def mass(prefix: tuple[int, ...]) -> float:
            return sum(p for text, p in self.probs.items() if text[: len(prefix)] == prefix)

        of_next = [[self.probs.get(t, 0.0), mass((*t, 1)), mass((*t, 2))] for t in texts]
        totals = [[max(mass(text), 1e-300)] for text in texts]
        scores, totals = (torch.tensor(x, dtype=torch.float64) for x in (of_next, totals))
        return Prefixes((scores / totals).log(), texts)


def test_beam_of_all_is_the_enumeration_and_its_scores():
    found = beam_search(Table(), torch.tensor([2]), beam=9, num_paths=20)[0]
    expected = sorted(PROBS.items(), key=lambda text: -text[1])
    assert sorted(math.exp(hyp.score) for hyp in found) == pytest.approx(sorted(PROBS.values()))
    assert {hyp.tokens for hyp in found} == set(PROBS)
    assert found[0].tokens == expected[0][0] == (2, 1)


def test_the_search_goes_on_until_the_list_is_sure():
    table = Table({(): 0.6, (1,): 0.05, (2, 2): 0.2, (2, 1): 0.15})
    found = beam_search(table, torch.tensor([2]), beam=4, num_paths=3)[0]
    assert [hyp.tokens for hyp in found] == [(), (2, 2), (2, 1)]


def test_greedy_follows_the_likelier_prefix():
    table = Table({**PROBS, (1, 2): 0.4, (2, 1): 0.2})  # (1, ...) now has more
    assert beam_search(table, torch.tensor([2]), beam=1, num_paths=1)[0][0].tokens == (1, 2)
    table = Table({(1, 1): 0.3, (1, 2): 0.3, (2, 1): 0.4})  # the best is behind the worse prefix
    greedy, wider = (beam_search(table, torch.tensor([2]), beam=n, num_paths=1) for n in (1, 2))
    assert greedy[0][0].tokens in {(1, 1), (1, 2)} and wider[0][0].tokens == (2, 1)


def test_with_a_length_penalty_a_wide_search_is_an_enumeration():
    found = beam_search(
        Table(), torch.tensor([2]), beam=9, num_paths=20, length_penalty=1.0
    )[0]  # fmt: skip
    ranked = sorted(PROBS, key=lambda text: -math.log(PROBS[text]) / (len(text) + 1))
    assert [hyp.tokens for hyp in found] == ranked
    assert [hyp.score for hyp in found] == pytest.approx([math.log(PROBS[t]) for t in ranked])


def test_with_a_length_penalty_an_end_must_be_among_the_best_continuations():
    table = Table({(): 0.34, (1, 1): 0.18, (1, 2): 0.17, (2, 2): 0.31})
    options = {"beam": 1, "num_paths": 1}
    assert beam_search(table, torch.tensor([2]), **options)[0][0].tokens == ()
    found = beam_search(table, torch.tensor([2]), length_penalty=1.0, **options)[0]
    assert found[0].tokens == (1, 1) and found[0].score == pytest.approx(math.log(0.18))
    # At the longest length there is nothing but the end.
    short = beam_search(table, torch.tensor([0]), length_penalty=1.0, **options)[0]
    assert short[0].tokens == ()


@pytest.mark.parametrize("longest", [0, 1])
def test_hypotheses_are_no_longer_than_allowed(longest):
    found = beam_search(Table(), torch.tensor([longest]), beam=9, num_paths=9)[0]
    assert {hyp.tokens for hyp in found} == {text for text in PROBS if len(text) <= longest}


def test_company_changes_nothing():
    log_probs, lengths = ctc(6, 3, 5)
    longest = torch.tensor([4, 3, 1])
    together = beam_search(CtcSteps(log_probs, lengths), longest, beam=4, num_paths=3)
    for row in range(3):
        length = int(lengths[row])
        alone = CtcSteps(log_probs[row : row + 1, :length], lengths[row : row + 1])
        expected = beam_search(alone, longest[row : row + 1], beam=4, num_paths=3)[0]
        assert [hyp.tokens for hyp in together[row]] == [hyp.tokens for hyp in expected]
        scores = [hyp.score for hyp in expected]
        assert [hyp.score for hyp in together[row]] == pytest.approx(scores)


def test_joint_steps_weigh_and_leave_out_what_has_no_weight():
    one, two = CtcSteps(*ctc(4, 3)), CtcSteps(*ctc(4, 3, seed=1))
    rows, tokens = torch.tensor([1, 0, 0]), torch.tensor([1, 2, 3])
    joint = JointSteps([(0.25, one), (0.75, two), (0.0, CtcSteps(*ctc(1, 1)))])
    found = joint.extend(joint.start(), rows, tokens).scores
    parts = [steps.extend(steps.start(), rows, tokens).scores for steps in (one, two)]
    torch.testing.assert_close(found, 0.25 * parts[0] + 0.75 * parts[1])

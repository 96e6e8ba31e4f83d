"""Sums over a transducer's alignments: enumeration, finite differences, and k2."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from privasr_k2.am import rnnt_loss
from privasr_k2.am.rnnt_loss import log_likelihood
from privasr_k2.errors import ConfigError
from tests.support.transducer_paths import alignment_probability

LENGTHS, TARGET_LENGTHS = torch.tensor([4, 3, 1, 2]), torch.tensor([2, 3, 3, 0])
BACKENDS = [pytest.param("k2", marks=pytest.mark.k2), "torch"]


def arcs(dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    """Random log-probabilities of 4 frames and 3 labels for 4 utterances; those of padding too."""
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(4, 4, 4, 3, generator=generator, dtype=dtype).log_softmax(3)
    return x[..., 0].clone().requires_grad_(), x[:, :, :3, 1].clone().requires_grad_()


def enumerated(blank: Tensor, label: Tensor) -> list[float]:
    found = []
    for row, (t, u) in enumerate(zip(LENGTHS.tolist(), TARGET_LENGTHS.tolist())):
        parts = (blank[row, :t, : u + 1], label[row, :t, :u])
        probs = (part.detach().exp().numpy() for part in parts)
        found.append(np.log(alignment_probability(*probs)))
    return found


@pytest.mark.parametrize("backend", BACKENDS)
def test_it_is_the_sum_over_alignments(backend):
    blank, label = arcs()
    found = log_likelihood(blank, label, LENGTHS, TARGET_LENGTHS, backend=backend)
    np.testing.assert_allclose(found.detach(), enumerated(blank, label), rtol=1e-10)


@pytest.mark.parametrize("backend", BACKENDS)
def test_gradients_are_those_of_the_enumeration(backend):
    blank, label = arcs()
    weights = torch.tensor([1.0, -2.0, 0.5, 3.0], dtype=torch.float64)
    total = (log_likelihood(blank, label, LENGTHS, TARGET_LENGTHS, backend=backend) * weights).sum()
    found = torch.autograd.grad(total, (blank, label))
    step = 1e-5
    for array, gradient in zip((blank, label), found):
        expected = torch.zeros_like(gradient)
        for place in np.ndindex(*array.shape):
            sides = []
            for sign in (1, -1):
                with torch.no_grad():
                    array[place] += sign * step
                    sides.append(float(np.dot(enumerated(blank, label), weights)))
                    array[place] -= sign * step
            expected[place] = (sides[0] - sides[1]) / (2 * step)
        torch.testing.assert_close(gradient, expected, atol=1e-8, rtol=1e-6)


@pytest.mark.parametrize("backend", BACKENDS)
def test_single_precision_and_long_utterances(backend):
    x = torch.randn(1, 200, 61, 20, generator=torch.Generator().manual_seed(1)).log_softmax(3)
    blank, label = x[..., 0].clone().requires_grad_(), x[:, :, :60, 1].clone().requires_grad_()
    sizes = (torch.tensor([200]), torch.tensor([60]))
    found = log_likelihood(blank, label, *sizes, backend=backend)
    exact = log_likelihood(blank.double(), label.double(), *sizes, backend="torch")
    torch.testing.assert_close(found.double(), exact, rtol=1e-5, atol=0.0)
    found.sum().backward()
    assert blank.grad is not None and label.grad is not None
    # Every alignment has a blank a frame and a label a position.
    torch.testing.assert_close(blank.grad.sum(), torch.tensor(200.0), rtol=1e-3, atol=0.0)
    torch.testing.assert_close(label.grad.sum(1), torch.ones(1, 60), rtol=1e-3, atol=0.0)


@pytest.mark.parametrize("backend", BACKENDS)
def test_no_labels_at_all(backend):
    blank, label = arcs()
    found = log_likelihood(blank[:, :, :1], label[:, :, :0], LENGTHS, 0 * LENGTHS, backend=backend)
    expected = [float(blank[row, :t, 0].sum()) for row, t in enumerate(LENGTHS.tolist())]
    np.testing.assert_allclose(found.detach(), expected)


def test_without_k2_ours_is_taken_and_k2_by_name_refused(monkeypatch):
    monkeypatch.setattr(rnnt_loss, "find_k2", lambda: None)
    blank, label = arcs()
    found = log_likelihood(blank, label, LENGTHS, TARGET_LENGTHS, backend="auto")
    np.testing.assert_allclose(found.detach(), enumerated(blank, label), rtol=1e-10)
    with pytest.raises(ConfigError, match=r"transducer\.backend: expected k2"):
        log_likelihood(blank, label, LENGTHS, TARGET_LENGTHS, backend="k2")

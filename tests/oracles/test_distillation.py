"""Sequence-level distillation [yang2022, eq. 5] over all transcripts, enumerated.

With the weights P_T(y | x) of every transcript y the loss is a cross-entropy: that of a student
equal to its teacher is the teacher's entropy, and no change of the student lowers it.
"""

from __future__ import annotations

import pytest
import torch

from privasr_k2.am.ctc import CtcTask
from privasr_k2.data.batches import needed_frames, pad_batch
from privasr_k2.pate.distillation import DistillationTask, HypothesisLosses, student_loss
from privasr_k2.pate.student_data import Target, UnansweredSettings
from tests.support.end_to_end import everything, model
from tests.support.sequence_scores import score_hypotheses
from tests.support.small_am import features

FRAMES = 12  # three of the output


def test_all_transcripts_weighted_by_the_teacher():
    teacher, (x, lengths) = model("ctc"), features(FRAMES)
    frames = teacher.output_frames(FRAMES)
    texts = [text for text in everything(frames) if needed_frames(text) <= frames]
    [scores] = score_hypotheses(teacher, x, lengths, [texts])
    weights = scores.exp()
    assert float(weights.sum()) == pytest.approx(1.0, abs=1e-5)
    target = {"u": Target(tuple(texts), tuple(weights.tolist()))}
    settings = UnansweredSettings(weight=1.0, min_confidence=0.0, hyps=1, scale=1.0)
    options = dict(time_stretch=0.0, unanswered=settings)
    task = DistillationTask(student_loss, target, CtcTask(), None, **options)
    batch, generator = pad_batch("u", [x[0]], [[1]]), torch.Generator()

    def loss(student: torch.nn.Module) -> torch.Tensor:
        return task.loss(HypothesisLosses(student), batch, generator).sums.sum()

    found = loss(teacher)
    assert float(found) == pytest.approx(-float(weights @ scores), rel=1e-5)
    found.backward()
    slopes = [float(p.grad.abs().max()) for p in teacher.parameters() if p.grad is not None]
    assert slopes and max(slopes) < 1e-4
    with torch.no_grad():
        other = model("ctc")
        other.output.weight.mul_(0.5)
    assert float(loss(other)) > float(found) + 1e-3

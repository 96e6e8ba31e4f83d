"""Batches as lhotse's ``K2SpeechRecognitionDataset`` gives them to icefall, both ways.

A training loop that has such batches can use this package's losses and gradients, and a loop of
this package's batches can call a model of icefall's interface.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from privasr_k2.data.batches import Batch, pad_batch
from privasr_k2.errors import DataError

_DATASET = "lhotse.dataset.K2SpeechRecognitionDataset"


def from_k2(found: Mapping[str, Any], encode: Callable[[str], Sequence[int]]) -> Batch:
    """A :class:`Batch` of the dict of ``K2SpeechRecognitionDataset``.

    Each supervision is an utterance; several of one sequence are cut out of its frames. Names are
    those of cuts with ``return_cuts=True``, else places in the batch.

    Args:
        found: ``inputs`` (N, T, F) features; ``supervisions`` with ``sequence_idx``,
            ``start_frame``, ``num_frames`` (M,) and ``text``, and perhaps ``cut``.
        encode: a text in token numbers from 1.

    Raises:
        DataError: audio in place of features, no such keys, or frames beyond the inputs.

    >>> said = {"sequence_idx": torch.tensor([0]), "start_frame": torch.tensor([0])}
    >>> said |= {"num_frames": torch.tensor([3]), "text": ["ab"]}
    >>> batch = from_k2({"inputs": torch.ones(1, 4, 2), "supervisions": said}, lambda text: [1, 2])
    >>> batch.ids, tuple(batch.features.shape), batch.lengths.tolist(), batch.targets.tolist()
    (('0',), (1, 3, 2), [3], [[1, 2]])
    """
    try:
        inputs, said = found["inputs"], found["supervisions"]
        sequences, starts, sizes = (
            said[key].tolist() for key in ("sequence_idx", "start_frame", "num_frames")
        )
        texts = said["text"]
    except (KeyError, TypeError, AttributeError) as error:
        expected = "inputs, and supervisions with sequence_idx start_frame num_frames text"
        way_out = f"take it from {_DATASET} with features as inputs"
        raise DataError("the batch", expected, repr(error), way_out) from error
    if inputs.dim() != 3:
        way_out = "give the dataset PrecomputedFeatures() or OnTheFlyFeatures(...)"
        shape = tuple(inputs.shape)
        raise DataError("the batch's inputs", "features (N, T, F)", f"shape {shape}", way_out)
    features = []
    for sequence, start, size in zip(sequences, starts, sizes):
        if sequence >= inputs.size(0) or start < 0 or start + size > inputs.size(1):
            place = f"supervision of sequence {sequence}"
            expected = f"frames within {inputs.size(1)} of {inputs.size(0)} sequences"
            raise DataError(place, expected, f"{start} to {start + size}", "make the batch again")
        features.append(inputs[sequence, start : start + size])
    names = [cut.id for cut in said["cut"]] if "cut" in said else [*map(str, range(len(texts)))]
    return pad_batch(names, features, [[*encode(text)] for text in texts])


def to_k2(batch: Batch, texts: Mapping[str, str]) -> dict[str, Any]:
    """The dict of ``K2SpeechRecognitionDataset`` for a batch, whose texts are given by name.

    Padding has lhotse's value, the logarithm of hardly any energy, where a :class:`Batch` has 0.

    >>> batch = pad_batch(["a"], [torch.ones(3, 2)], [[1]])
    >>> sorted(to_k2(batch, {"a": "yes"})["supervisions"])
    ['num_frames', 'sequence_idx', 'start_frame', 'text']
    """
    from lhotse.utils import LOG_EPSILON

    frames = torch.arange(batch.features.size(1), device=batch.lengths.device)
    padding = frames >= batch.lengths.unsqueeze(1)
    inputs = batch.features.masked_fill(padding.unsqueeze(2), LOG_EPSILON)
    numbers = torch.arange(len(batch), dtype=torch.int32)
    said = {
        "text": [texts[name] for name in batch.ids],
        "sequence_idx": numbers,
        "start_frame": torch.zeros_like(numbers),
        "num_frames": batch.lengths.to(torch.int32),
    }
    return {"inputs": inputs, "supervisions": said}

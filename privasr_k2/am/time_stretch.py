"""Change the tempo of speech by its features: augmentation that needs no audio.

Speed perturbation (Ko et al. 2015, "Audio augmentation for speech recognition") without its change
of pitch.
"""

from __future__ import annotations

import torch
from torch import Tensor


def time_stretch(
    features: Tensor, lengths: Tensor, share: float, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Scale each utterance's duration by a random factor from ``1 - share`` to ``1 + share``.

    Frames are interpolated linearly at equal steps.

    Args:
        features: (N, T, F), zero at padding.
        lengths: (N,) true frames.
        share: in [0, 1).
        generator: of the machine's processor, so that every device stretches alike.

    Returns:
        features (N, T', F) and lengths (N,).

    >>> x, lengths = torch.arange(100.0).view(1, 100, 1), torch.tensor([100])
    >>> y, shorter = time_stretch(x, lengths, 0.3, torch.Generator().manual_seed(5))
    >>> int(shorter), y[0, 0].item(), y[0, -1].item()
    (120, 0.0, 99.0)
    """
    factors = 1.0 + share * (2.0 * torch.rand(len(lengths), generator=generator) - 1.0)
    wanted = (lengths.cpu() * factors).round().long().clamp(min=1).to(lengths.device)
    steps = (lengths - 1) / (wanted - 1).clamp(min=1)
    frames = torch.arange(int(wanted.max()), device=features.device)
    places = torch.minimum(frames * steps.unsqueeze(1), (lengths - 1).unsqueeze(1))  # (N, T')
    before = places.floor().long()
    after = torch.minimum(before + 1, (lengths - 1).unsqueeze(1))
    rows = torch.arange(len(lengths), device=features.device).unsqueeze(1)
    share_of_after = (places - before).unsqueeze(2)
    between = torch.lerp(features[rows, before], features[rows, after], share_of_after)
    return between * (frames < wanted.unsqueeze(1)).unsqueeze(2), wanted

"""Differences between torch 1.13 and torch 2, and between k2 1.23.4 and 1.24.4, in one place.

Of k2, the Python sources of both were compared for what this package calls. Besides
:func:`transducer_ranges`, 1.24.4 takes partial paths where asked (``allow_partial``, not by
default), decodes tokens that the network does not have, and reads auxiliary labels above 2^24
exactly.
"""

from __future__ import annotations

import contextlib
import functools
import io
import re
from typing import Any


def grad_scaler(*, enabled: bool) -> Any:
    """The scaler of float16 gradients on ``cuda``; does nothing where not enabled.

    torch 2 warns at ``torch.cuda.amp.GradScaler``; torch 1.13 lacks ``torch.amp.GradScaler``.
    """
    import torch

    if hasattr(torch.amp, "GradScaler"):
        return torch.amp.GradScaler("cuda", enabled=enabled)
    return torch.cuda.amp.GradScaler(enabled=enabled)  # type: ignore[attr-defined,no-untyped-call]


def out_of_memory(error: BaseException) -> bool:
    """Whether an error reports exhausted memory of a GPU or of the machine.

    >>> out_of_memory(RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"))
    True
    """
    # torch has a class for it on GPUs, and on a processor only its allocator's message.
    signs = r"out of memory|DefaultCPUAllocator: (can't allocate|not enough memory)"
    return isinstance(error, MemoryError) or re.search(signs, str(error)) is not None


def stacked_call(module: Any, parameters: Any, inputs: Any, *, shared: bool) -> Any:
    """A module called once for each of I stacked sets of parameters, at the same time: (I, ...).

    Uses ``torch.func`` of torch 2, or functorch with torch 1.13.

    Args:
        parameters: the module's own names to tensors (I, ...).
        inputs: positional arguments: one set for all (``shared``), or stacked as the parameters
            are.
    """
    import torch

    if hasattr(torch, "func"):
        vmap, call = torch.func.vmap, torch.func.functional_call
    else:
        from functorch import vmap  # type: ignore[import-untyped,import-not-found,no-redef,unused-ignore]
        from torch.nn.utils.stateless import functional_call as call  # type: ignore[assignment,unused-ignore]

    batched = vmap(functools.partial(call, module), in_dims=(0, None if shared else 0))
    return batched(dict(parameters), tuple(inputs))


def transducer_ranges(labels: Any, blanks: Any, edges: Any, size: int) -> Any:
    """``k2.get_rnnt_prune_ranges`` of a transducer, where no utterance changes another's ranges.

    k2 1.24.4 widens the ranges of the whole batch if one utterance has too many labels for its
    frames, and prints so. A gradient would depend on other utterances, and so would DP-SGD's
    sensitivity. Here such an utterance has no path, as with k2 1.23.4, and an infinite loss.

    Args:
        labels: (N, U, T + 1) gradient of ``k2.rnnt_loss_simple`` by labels.
        blanks: (N, U + 1, T) the same by blanks.
        edges: (N, 4) begin and end of labels and frames, as k2's ``boundary``.
        size: label positions that a frame keeps, at least 2.

    Returns:
        (N, T, min(size, U + 1)) label positions of each frame.
    """
    import k2

    wanted = edges.clone()
    least = (edges[:, 2] - 1).clamp(min=0).div(size - 1, rounding_mode="floor") + 1
    wanted[:, 3] = edges[:, 3].maximum(least)
    with contextlib.redirect_stdout(io.StringIO()):
        return k2.get_rnnt_prune_ranges(labels, blanks, wanted, size)

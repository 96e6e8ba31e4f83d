"""Differences between torch 1.13 and torch 2, in one place."""

from __future__ import annotations

import functools
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

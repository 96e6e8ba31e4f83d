"""What torch 1.13 and torch 2 name differently, in one place.

Only differences that the package meets stand here; everything else uses what both have.
"""

from __future__ import annotations

from typing import Any


def grad_scaler(*, enabled: bool) -> Any:
    """The scaler that keeps float16 gradients on ``cuda`` from vanishing; does nothing where not enabled.

    torch 2 warns at ``torch.cuda.amp.GradScaler``, torch 1.13 does not have ``torch.amp.GradScaler``.
    """
    import torch

    if hasattr(torch.amp, "GradScaler"):
        return torch.amp.GradScaler("cuda", enabled=enabled)
    return torch.cuda.amp.GradScaler(enabled=enabled)  # type: ignore[attr-defined,no-untyped-call]


def out_of_memory(error: BaseException) -> bool:
    """Whether an error says that there is no memory left, of a GPU or of the machine.

    torch has a class for it on GPUs, and on a processor only its allocator's words.

    >>> out_of_memory(RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"))
    True
    """
    text = str(error)
    signs = ("out of memory", "DefaultCPUAllocator: can't allocate", "DefaultCPUAllocator: not enough memory")
    return isinstance(error, MemoryError) or any(sign in text for sign in signs)

"""What torch 1.13 and torch 2 name differently, in one place.

Only differences that the package meets stand here; everything else uses what both have.
"""

from __future__ import annotations

from typing import Any


def grad_scaler(*, enabled: bool) -> Any:
    """The scaler that keeps float16 gradients on ``cuda`` from vanishing; does nothing where not
    enabled.

    torch 2 warns at ``torch.cuda.amp.GradScaler``, torch 1.13 does not have
    ``torch.amp.GradScaler``.
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
    signs = (
        "out of memory",
        "DefaultCPUAllocator: can't allocate",
        "DefaultCPUAllocator: not enough memory",
    )
    return isinstance(error, MemoryError) or any(sign in text for sign in signs)


def stacked_call(module: Any, parameters: Any, inputs: Any, *, shared: bool) -> Any:
    """A module called once for each of I stacked sets of parameters, all at the same time.

    torch 2 has ``torch.func``; torch 1.13 brings it as the package functorch.

    Args:
        parameters: the module's own names to tensors (I, ...).
        inputs: positional arguments, tensors: one set for all (``shared``), or stacked as the
            parameters are.

    Returns:
        a tensor (I, ...).
    """
    import torch

    if hasattr(torch, "func"):
        vmap, call = torch.func.vmap, torch.func.functional_call
    else:
        from functorch import vmap  # type: ignore[import-untyped,import-not-found,no-redef,unused-ignore]
        from torch.nn.utils.stateless import functional_call as call  # type: ignore[assignment,unused-ignore]

    def one(own: Any, given: Any) -> Any:
        return call(module, own, given)

    return vmap(one, in_dims=(0, None if shared else 0))(dict(parameters), tuple(inputs))

"""Networks that are programs of a runtime: ONNX files and TorchScript files.

A TorchScript file is a program: open only files that you trust. An ONNX file names operations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from privasr_k2.errors import DataError


@dataclass(frozen=True)
class Expected:
    """What a program should be, and what to do otherwise: for errors.

    Attributes:
        no_program: what to do with a file that holds no program, such as a pickle of weights.
    """

    signature: str
    way_out: str
    no_program: str = "export it with torch.jit.script or as ONNX; a pickle of weights is no model"


class Input(NamedTuple):
    """An input of an ONNX file; sizes that it leaves open are None."""

    name: str
    shape: tuple[int | None, ...]
    kind: str


class TorchScript(nn.Module):
    """A TorchScript file as (features (N, T, F), lengths (N,)) -> (outputs, lengths (N,)).

    Args:
        part: the attribute that is run where the file has it, for example ``encoder``.
        choose: gives what is run, of the module.
    """

    def __init__(
        self,
        path: Path,
        expected: Expected,
        part: str | None = None,
        choose: Callable[[Any], Callable[..., Any]] | None = None,
    ) -> None:
        super().__init__()
        self._path, self._expected = path, expected
        try:
            self.module = torch.jit.load(str(path), map_location="cpu").eval()
        except RuntimeError as error:
            raise DataError(
                path, "a TorchScript file", _last_line(error), expected.no_program
            ) from error
        run = getattr(self.module, part, self.module) if part else self.module
        self._run = run if choose is None else choose(self.module)

    def forward(self, features: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        try:
            outputs, out_lengths = self._run(features, lengths)[:2]
        except (RuntimeError, TypeError, ValueError, AttributeError) as error:
            signature, way_out = self._expected.signature, self._expected.way_out
            raise DataError(self._path, signature, _last_line(error), way_out) from error
        return outputs.float(), out_lengths.long()


class Onnx:
    """An ONNX file: arrays in, arrays out.

    Attributes:
        inputs: in the file's order.
        outputs: names, in the file's order.
    """

    def __init__(self, path: Path, expected: Expected) -> None:
        import onnxruntime
        from onnxruntime.capi.onnxruntime_pybind11_state import (
            Fail,
            InvalidArgument,
            InvalidGraph,
            InvalidProtobuf,
        )

        self._path, self._expected = path, expected
        self._errors = (Fail, InvalidArgument, InvalidGraph, InvalidProtobuf)
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        options.intra_op_num_threads = torch.get_num_threads()
        try:
            providers = list(_providers(onnxruntime))
            self._session = onnxruntime.InferenceSession(str(path), options, providers=providers)
        except self._errors as error:
            raise DataError(path, "an ONNX file", _last_line(error), "export it again") from error
        self.inputs = [
            Input(
                node.name, tuple(n if isinstance(n, int) else None for n in node.shape), node.type
            )
            for node in self._session.get_inputs()
        ]
        self.outputs = [node.name for node in self._session.get_outputs()]

    def run(self, values: Sequence[np.ndarray], outputs: Sequence[str]) -> list[np.ndarray]:
        """Some outputs for a value of each input.

        Raises:
            DataError: values that the file does not take.
        """
        given = {node.name: value for node, value in zip(self.inputs, values)}
        try:
            return self._session.run(list(outputs), given)
        except self._errors as error:
            raise self.refused(_last_line(error)) from error

    def refused(self, found: str) -> DataError:
        """The error for a file of another signature."""
        return DataError(self._path, self._expected.signature, found, self._expected.way_out)


def _last_line(error: BaseException) -> str:
    """The last line of an error's text, where runtimes say what was wrong."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__


def _providers(onnxruntime: Any) -> Iterator[str]:
    for name in ("CUDAExecutionProvider", "CPUExecutionProvider"):
        if name in onnxruntime.get_available_providers():
            yield name

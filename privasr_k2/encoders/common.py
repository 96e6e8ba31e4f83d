"""The interface of public encoders, the registry of their families, and what they share."""

from __future__ import annotations

import importlib
import math
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from privasr_k2.encoders.chunks import ChunkConfig, chunk_cuts
from privasr_k2.errors import ConfigError, DataError
from privasr_k2.plugins import Registry

SAMPLE_RATE = 16000
"""In Hz; every family takes it."""


@dataclass(frozen=True)
class Origin:
    """Where an encoder comes from; every use records it.

    Attributes:
        sha256: of the file of weights; of several files, of their lines in ``sha256sum``'s form.
        licence: as its source states it.
        source: a package, a name at Hugging Face with its revision, or a file's name.
        files: sha256 of each file of weights, by name.
    """

    name: str
    sha256: str
    licence: str
    source: str
    files: Mapping[str, str]


class PublicEncoder(nn.Module):
    """An encoder that others trained.

    Attributes:
        name: a short name, for records.
        sample_rate: of the audio, in Hz.
        dim: D, channels of an output frame.
        num_layers: L. Layer 0 is the input of the first layer, layer L the encoder's output.
        frame_shift: seconds between output frames.
        max_seconds: longest audio of one pass; :mod:`privasr_k2.encoders.chunks` reads longer.
        pad_seconds: audio is heard with silence up to this length; 0: at its true length.
        trainable: whether gradients pass through it.
        family: its name in :data:`FAMILIES`, given by :func:`privasr_k2.encoders.loading`.
        sizes: what its family makes it from; None where there is nothing to train.
        origin: what :func:`privasr_k2.encoders.loading.describe` reports.
    """

    name: str
    sample_rate = SAMPLE_RATE
    dim: int
    num_layers: int
    frame_shift: float
    max_seconds = math.inf
    pad_seconds = 0.0
    trainable = True
    family = ""
    sizes: Any = None
    origin: Origin

    def features(self, audio: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """The encoder's own input, (N, T, F) and true lengths (N,), from audio.

        Args:
            audio: (N, S) float32 in [-1, 1]; what lies behind an utterance's length is not read.
            lengths: (N,) samples, from 1 to S.

        Raises:
            DataError: an utterance that is empty, or longer than ``max_seconds``.
        """
        raise TypeError(f"{type(self).__name__} has no features()")

    def forward(
        self, inputs: Tensor, lengths: Tensor, *, layers: Sequence[int] | None = None
    ) -> tuple[Tensor, Tensor]:
        """Outputs (N, T', D), or (K, N, T', D) of K layers, and true lengths (N,).

        An utterance gives the same result alone and in a batch. Frames behind its length are 0.

        Args:
            inputs: of :meth:`features`, (N, T, F).
            lengths: (N,), from 1 to T.
            layers: layers from 0 to L, or from -1 on from the last.
        """
        raise TypeError(f"{type(self).__name__} has no forward()")

    def above(self, first: int) -> UpperLayers:
        """The layers above ``first``, from 0 to L - 1: modules of this encoder, not copies."""
        raise TypeError(f"{type(self).__name__} has no above()")


class UpperLayers(nn.Module):
    """The layers of an encoder above one of its layers: (N, T, D) -> (N, T, D) at true frames.

    Longer utterances than a chunk are read in parts, which end where those chunks were cut that
    the frames come from: frames attend to frames of their own chunk.

    Attributes:
        blocks: from that layer on, at least one.
        norm: behind the last of them, where the encoder has one.
        frame_shift: seconds between frames.
        chunks: in which the layers below read long audio; None: every utterance is whole.
    """

    frame_shift: float
    chunks: ChunkConfig | None = None

    def __init__(self, blocks: nn.ModuleList, norm: nn.LayerNorm | None) -> None:
        super().__init__()
        self.blocks, self.norm = blocks, norm

    def through(self, x: Tensor, lengths: Tensor, blocks: Sequence[nn.Module]) -> Tensor:
        """What comes out of the last of ``blocks``, which are some of these; a chunk at most."""
        raise TypeError(f"{type(self).__name__} has no through()")

    def _in_parts(self, x: Tensor, lengths: Tensor, blocks: Sequence[nn.Module]) -> Tensor:
        if self.chunks is None or x.size(1) * self.frame_shift <= self.chunks.seconds:
            return self.through(x, lengths, blocks)
        cuts = [chunk_cuts(int(num), self.frame_shift, self.chunks) for num in lengths]
        parts = [x[n, begin:end] for n, row in enumerate(cuts) for begin, end in pairwise(row)]
        sizes = torch.tensor([len(part) for part in parts], device=x.device)
        outputs = self.through(pad_sequence(parts, batch_first=True), sizes, blocks)
        own = iter(outputs[n, :size] for n, size in enumerate(sizes.tolist()))
        joined = pad_sequence(
            [torch.cat([next(own) for _ in row[1:]]) for row in cuts], batch_first=True
        )
        return nn.functional.pad(joined, (0, 0, 0, x.size(1) - joined.size(1)))

    def below(self, x: Tensor, lengths: Tensor, start: int) -> Tensor:
        """What enters block ``start``; what comes out of the last block, if that is their number.

        Args:
            x: what enters block 0.
            lengths: (N,), true frames.
        """
        return self._in_parts(x, lengths, [*self.blocks][:start])

    def forward(self, x: Tensor, lengths: Tensor, start: int = 0) -> Tensor:
        """The encoder's outputs.

        Args:
            x: what enters block ``start``.
            lengths: (N,), true frames.
        """
        x = self._in_parts(x, lengths, [*self.blocks][start:])
        return x if self.norm is None else self.norm(x)


@dataclass(frozen=True)
class Weights:
    """What the files of an encoder hold.

    Attributes:
        path: the file of weights, the first where there are several: the place of errors.
        format: ``safetensors``, ``torch`` (a checkpoint's tensors), ``ctranslate2``, ``onnx`` or
            ``torchscript``.
        config: ``config.json`` beside it, or the sizes that a checkpoint states.
        preprocessor: ``preprocessor_config.json`` beside it.
        tensors: by name, read when they are asked for; empty for programs.
    """

    path: Path
    format: str
    config: Mapping[str, object]
    preprocessor: Mapping[str, object]
    tensors: Mapping[str, Tensor]


@dataclass(frozen=True)
class Family:
    """Encoders of one architecture.

    Attributes:
        recognizes: whether these weights are of the family.
        build: the encoder; DataError where the weights do not fit.
        sizes, make: the frozen dataclass of an encoder's sizes, and an encoder of random weights
            from it; None where encoders of the family cannot be trained.
    """

    recognizes: Callable[[Weights], bool]
    build: Callable[[Weights], PublicEncoder]
    sizes: type[Any] | None = None
    make: Callable[[Any], PublicEncoder] | None = None


def _own_families() -> None:
    for module in pkgutil.iter_modules([str(Path(__file__).with_name("families"))]):
        importlib.import_module(f"privasr_k2.encoders.families.{module.name}")


#: By name. The package's own are the modules of ``families``; plugins add to them.
FAMILIES = Registry[Family]("family of encoders", _own_families)


def is_true(lengths: Tensor, num: int) -> Tensor:
    """Whether frames are an utterance's own, (N, num).

    >>> is_true(torch.tensor([2, 1]), 2).tolist()
    [[True, True], [True, False]]
    """
    return torch.arange(num, device=lengths.device) < lengths.unsqueeze(1)


def checked_audio(encoder: PublicEncoder, audio: Tensor, lengths: Tensor) -> Tensor:
    """The audio (N, S) up to its longest utterance, 0 behind each utterance's length.

    Raises:
        DataError: an utterance that is empty, or longer than ``max_seconds``; other shapes.
    """
    if audio.ndim != 2 or lengths.shape != audio.shape[:1]:
        found = f"shapes {list(audio.shape)} and {list(lengths.shape)}"
        raise DataError(encoder.name, "audio (N, S) and lengths (N,)", found, "use one channel")
    shortest, longest = int(lengths.min()), int(lengths.max())
    if shortest < 1 or longest > audio.size(1):
        found = f"lengths from {shortest} to {longest}"
        expected = f"lengths from 1 to {audio.size(1)} samples"
        raise DataError(encoder.name, expected, found, "leave empty utterances out")
    seconds = longest / encoder.sample_rate
    if seconds > encoder.max_seconds:
        expected, found = f"at most {encoder.max_seconds:g} s of audio", f"{seconds:.2f} s"
        raise DataError(encoder.name, expected, found, "read it in chunks: encoders.chunks")
    return audio[:, :longest] * is_true(lengths, longest)


def checked_layers(encoder: PublicEncoder, layers: Sequence[int] | None) -> tuple[int, ...]:
    """The layers asked for, from 0 to L; the last where none are.

    Args:
        layers: -1 is the last, -2 the one before it.

    Raises:
        ConfigError: none, or a number outside of -L - 1 to L.
    """
    number = encoder.num_layers + 1
    wanted = (-1,) if layers is None else tuple(layers)
    if not wanted or not all(-number <= layer < number for layer in wanted):
        expected = f"layers from 0 to {encoder.num_layers}, or from -1 on from the last"
        raise ConfigError(f"layers of {encoder.name}", expected, str(layers), "correct them")
    return tuple(layer % number for layer in wanted)


class Kept:
    """Outputs of the layers that were asked for, while a pass goes through all of them."""

    def __init__(self, encoder: PublicEncoder, layers: Sequence[int] | None) -> None:
        self._single, self._wanted = layers is None, checked_layers(encoder, layers)
        self._outputs: dict[int, Tensor] = {}
        self.last = max(self._wanted)

    def keep(self, layer: int, output: Tensor) -> None:
        """Remember an output (N, T', D) if its layer is wanted."""
        if layer in self._wanted:
            self._outputs[layer] = output

    def given(self, lengths: Tensor) -> Tensor:
        """(N, T', D) or (K, N, T', D), up to the longest length, 0 behind each."""
        longest = int(lengths.max())
        valid = is_true(lengths, longest).unsqueeze(2)
        outputs = [self._outputs[layer][:, :longest] * valid for layer in self._wanted]
        return outputs[0] if self._single else torch.stack(outputs)


def fill(module: nn.Module, tensors: Mapping[str, Tensor], path: Path) -> None:
    """Give a module its weights, as float32.

    Args:
        tensors: by the module's own names.

    Raises:
        DataError: a tensor that is missing or has another shape.
    """
    state, way_out = module.state_dict(), "give the weights and the config of one model"
    for name, own in state.items():
        if name not in tensors:
            raise DataError(path, f"weights with {name}", "none", way_out)
        if tensors[name].shape != own.shape:
            expected = f"{name} of shape {list(own.shape)}"
            raise DataError(path, expected, f"shape {list(tensors[name].shape)}", way_out)
    module.load_state_dict({name: tensors[name].float() for name in state})


def numbers(weights: Weights, *names: str) -> list[int]:
    """Whole numbers above 0 of the config.

    Raises:
        DataError: one is missing or something else.
    """
    values = [weights.config.get(name) for name in names]
    for name, value in zip(names, values):
        if not isinstance(value, int) or value < 1:
            expected, place = f"{name}, a number above 0", weights.path.with_name("config.json")
            raise DataError(place, expected, repr(value), "give the model's own config.json")
    return [value for value in values if isinstance(value, int)]

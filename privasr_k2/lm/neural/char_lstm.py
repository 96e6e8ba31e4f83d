"""Character-aware LSTM language model [liu2021, section 3.2].

A word's vector comes from its characters [Kim et al. 2016, "Character-aware neural language
models", section 2]: convolutions of several widths, the greatest value over time of each filter,
highway layers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import torch
from annotated_types import MinLen
from torch import Tensor, nn

from privasr_k2.constraints import Checked, Count, Natural, ShareBelowOne
from privasr_k2.lm.neural.kinds import KINDS, Kind, NeuralLmConfig, Spec
from privasr_k2.lm.neural.lstm import Recurrent, RecurrentLm
from privasr_k2.lm.neural.softmax import OutputConfig, make_output
from privasr_k2.lm.neural.vocabulary import SYMBOLS


@dataclass(frozen=True)
class CharLstmConfig(Checked):
    """Numbers of a character-aware LSTM; see ``network`` of ``conf/common.yaml#lm_char_lstm``."""

    char_dim: Count
    widths: Annotated[list[Count], MinLen(1)]
    filters: list[Count]
    highway_layers: Natural
    max_chars: Count
    dim: Count
    layers: Count
    dropout: ShareBelowOne

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.widths) != len(self.filters):
            raise ValueError(
                "network.widths and network.filters must be lists of one length, "
                f"got {self.widths} and {self.filters}"
            )


def spell(symbols: Sequence[str], max_chars: int) -> tuple[Tensor, Tensor, int]:
    """Characters (V, L) int64 of symbols, lengths (V,) int64, and the number of characters.

    ``</s>`` and ``<unk>`` are one character each; 0 is padding, 1 and 2 begin and end a word.

    >>> spell(["</s>", "<unk>", "ab", "b"], max_chars=20)[0].tolist()
    [[1, 3, 2, 0], [1, 4, 2, 0], [1, 5, 6, 2], [1, 6, 2, 0]]
    """
    words = [[symbol] if symbol in SYMBOLS else list(symbol[:max_chars]) for symbol in symbols]
    plain = sorted({character for word in words for character in word} - set(SYMBOLS))
    numbers = {character: number for number, character in enumerate((*SYMBOLS, *plain), start=3)}
    spelled = [torch.tensor([1, *(numbers[character] for character in word), 2]) for word in words]
    lengths = torch.tensor([len(characters) for characters in spelled])
    return nn.utils.rnn.pad_sequence(spelled, batch_first=True), lengths, len(numbers) + 3


class Highway(nn.Module):
    """g * relu(A x) + (1 - g) * x with g = sigmoid(B x) [kim2016, equation 8]."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.transform, self.gate = nn.Linear(dim, dim), nn.Linear(dim, dim)
        nn.init.constant_(self.gate.bias, -2.0)  # as there: begin by carrying

    def forward(self, x: Tensor) -> Tensor:
        gate = torch.sigmoid(self.gate(x))
        return gate * torch.relu(self.transform(x)) + (1.0 - gate) * x


class CharLstmLm(RecurrentLm):
    """Characters to a word's vector, LSTM layers, softmax over words.

    Args:
        symbols: the V symbols in the order of their numbers; their spelling is no parameter.
    """

    characters: Tensor
    lengths: Tensor

    def __init__(
        self, config: CharLstmConfig, output: OutputConfig, symbols: Sequence[str]
    ) -> None:
        super().__init__()
        if output.tied:
            raise ValueError("output.tied must be false: a word's vector is made of its characters")
        self.num_words = len(symbols)
        characters, lengths, num_characters = spell(symbols, config.max_chars)
        self.register_buffer("characters", characters, persistent=False)
        self.register_buffer("lengths", lengths, persistent=False)
        self.character = nn.Embedding(num_characters, config.char_dim, padding_idx=0)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(config.char_dim, filters, width)
            for width, filters in zip(config.widths, config.filters)
        )
        word_dim = sum(config.filters)
        self.highway = nn.Sequential(*(Highway(word_dim) for _ in range(config.highway_layers)))
        self.recurrent = Recurrent(word_dim, config.dim, config.layers, config.dropout)
        self.project = nn.Identity()
        self.output = make_output(config.dim, self.num_words, output)

    def embed(self, words: Tensor) -> Tensor:
        different, places = words.unique(return_inverse=True)  # each word of a batch once
        return self._compose(different)[places]

    def _compose(self, words: Tensor) -> Tensor:
        """The vectors (W, E) of words (W,), independent of padding."""
        lengths = self.lengths[words]
        widest = max(convolution.kernel_size[0] for convolution in self.convolutions)
        longest = int(lengths.max()) if len(words) else 0
        x = self.character(self.characters[words, :longest]).transpose(1, 2)  # (W, char_dim, L)
        x = nn.functional.pad(x, (0, max(0, widest - longest)))
        vectors = []
        for convolution in self.convolutions:
            y = torch.tanh(convolution(x))  # (W, filters, windows)
            windows = torch.arange(y.size(2), device=y.device)
            last = (lengths - convolution.kernel_size[0]).clamp(min=0).unsqueeze(1)
            outside = (windows > last).unsqueeze(1)  # (W, 1, windows)
            vectors.append(y.masked_fill(outside, -1.0).amax(dim=2))  # no tanh is below -1
        return self.highway(torch.cat(vectors, dim=1))


@dataclass(frozen=True)
class CharLstmLmConfig(NeuralLmConfig):
    """``conf/common.yaml#lm_char_lstm``."""

    network: CharLstmConfig

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.output.tied:
            raise ValueError("output.tied must be false: a word's vector is made of its characters")


@dataclass(frozen=True)
class CharLstmSpec(Spec):
    """``model.yaml`` of a character-aware LSTM; ``untied`` is always false."""

    network: CharLstmConfig


KINDS.add(
    "char_lstm",
    Kind(CharLstmLmConfig, CharLstmSpec, lambda s, v: CharLstmLm(s.network, s.output, v.symbols)),
)

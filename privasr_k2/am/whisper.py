"""Whisper's decoder on the outputs of its encoder, as an acoustic model that can be trained.

Radford et al. (2022), "Robust speech recognition via large-scale weak supervision". Features are
the outputs of the encoder's last layer at true lengths. Whisper is trained on audio with silence up
to 30 s, and without hearing some its decoder says everything again. So every utterance is followed
by the same frames of silence, which cost less than 30 s of audio; Whisper's own search still errs
less (docs/results.md). The tokens are those of Whisper that spell words of lower-case letters: a
distribution over words as references have them. :mod:`privasr_k2.am.whisper_files` reads weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor
from torch.nn import functional

from privasr_k2.am.kinds import KINDS, Kind
from privasr_k2.am.sequence import SequenceConfig, SequenceModel, SequenceSpec, SequenceTask
from privasr_k2.am.steps import Prefixes
from privasr_k2.am.transformer_decoder import Decoder, DecoderConfig, KeysValues
from privasr_k2.constraints import Natural, one_of

KIND = "whisper"


@dataclass(frozen=True)
class WhisperConfig(SequenceConfig):
    """Section ``am_whisper`` of the configuration; sizes are those of the imported model."""

    kind: Annotated[str, one_of(KIND)]


@dataclass(frozen=True)
class WhisperSpec(SequenceSpec):
    """Content of a :class:`WhisperRecognizer`'s ``model.yaml``.

    Attributes:
        silence: frames of silence behind every utterance.
    """

    decoder: DecoderConfig
    silence: Natural


class WhisperRecognizer(SequenceModel):
    """Whisper's decoder; what is in front of it is computed beforehand."""

    output_layers = ("decoder.norm",)
    silence: Tensor

    def __init__(self, spec: WhisperSpec) -> None:
        super().__init__(spec)
        self.decoder = Decoder(self.encoder.out_dim, spec.num_tokens, spec.decoder)
        self.register_buffer("silence", torch.zeros(self.encoder.out_dim))

    def encoded(
        self, features: Tensor, lengths: Tensor, masks: Tensor | None = None, start: int = 0
    ) -> tuple[Tensor, Tensor]:
        """As the base class has it, with ``spec.silence`` frames more."""
        x, lengths = super().encoded(features, lengths, masks, start)
        longer = lengths + self.spec.silence
        x = functional.pad(x, (0, self.spec.silence))
        places = torch.arange(x.size(2), device=x.device)
        behind = (places >= lengths.unsqueeze(1)) & (places < longer.unsqueeze(1))
        return torch.where(behind.unsqueeze(1), self.silence.unsqueeze(1), x), longer

    def losses(
        self, encoded: Tensor, lengths: Tensor, targets: Tensor, target_lengths: Tensor
    ) -> Tensor:
        memory = self.decoder.memory(encoded, lengths)
        return self.decoder.token_losses(memory, targets, target_lengths)

    @torch.no_grad()
    def log_likelihoods(
        self, encoded: Tensor, lengths: Tensor, rows: Tensor, targets: Tensor, sizes: Tensor
    ) -> Tensor:
        self.eval()
        memory = self.decoder.memory(encoded, lengths)
        return -self.decoder.token_losses(memory, targets, sizes, rows).double()

    @torch.no_grad()
    def stepper(self, encoded: Tensor, lengths: Tensor) -> DecoderSteps:
        self.eval()
        return DecoderSteps(self.decoder, encoded, lengths)


class DecoderSteps:
    """A :class:`privasr_k2.am.steps.Stepper` over a decoder; encoded (N, T, D), lengths (N,)."""

    def __init__(self, decoder: Decoder, encoded: Tensor, lengths: Tensor) -> None:
        self._decoder, self._memory = decoder, decoder.memory(encoded, lengths)
        self.num = len(encoded)

    def start(self) -> Prefixes:
        owners = torch.arange(self.num, device=self._memory.valid.device)
        return self._read(owners, None, self._decoder.prompts(self.num))

    def extend(self, prefixes: Prefixes, rows: Tensor, tokens: Tensor) -> Prefixes:
        owners, past = prefixes.memory
        kept = tuple(KeysValues(*(part[rows] for part in block)) for block in past)
        return self._read(owners[rows], kept, self._decoder.embedding(tokens).unsqueeze(1))

    def _read(
        self, owners: Tensor, past: tuple[KeysValues, ...] | None, embedded: Tensor
    ) -> Prefixes:
        seen, attended = self._decoder.read(embedded, past, self._memory, owners)
        return Prefixes(self._decoder.log_probs(seen[:, -1]).double(), (owners, attended))


KINDS.add(KIND, Kind(WhisperConfig, WhisperSpec, WhisperRecognizer, SequenceTask, imported=True))

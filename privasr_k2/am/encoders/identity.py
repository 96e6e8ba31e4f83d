"""No encoder: the model reads outputs of a public encoder as they are."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from privasr_k2.am.encoders.common import EncoderSettings, encoder


@dataclass(frozen=True)
class IdentityConfig(EncoderSettings):
    """Nothing is chosen: ``subsampling`` is 1 and ``dropout`` 0."""

    subsampling: int
    dropout: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.subsampling != 1 or self.dropout != 0:
            raise ValueError(
                f"subsampling must be 1 and dropout 0, got {self.subsampling} and {self.dropout}"
            )


@encoder("identity", IdentityConfig, aligned=False)
class Identity(nn.Module):
    """Features (N, F, T) and lengths (N,), unchanged."""

    def __init__(self, feature_dim: int, config: IdentityConfig) -> None:
        super().__init__()
        self.out_dim = feature_dim

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        return x, lengths

"""Small configurations and corpora for the tests of acoustic models."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from privasr_k2.am.ctc import CtcModel, CtcSpec
from privasr_k2.am.encoders import EncoderConfig
from privasr_k2.am.encoders.blstm import BlstmConfig
from privasr_k2.am.encoders.common import EncoderSettings
from privasr_k2.am.encoders.conformer import ConformerConfig
from privasr_k2.am.encoders.tdnn import TdnnConfig
from privasr_k2.am.kinds import new_model
from privasr_k2.encoders.chunks import ChunkConfig
from privasr_k2.encoders.common import Origin, is_true
from privasr_k2.encoders.families.whisper import Whisper, WhisperBlock, WhisperSizes
from privasr_k2.encoders.upper import upper_of, upper_spec
from privasr_k2.training.trainable import LoraConfig, add_adapters
from tests.support.tiny_encoders import drawn

KINDS = ("tdnn", "blstm", "conformer")


def encoder_config(
    kind: str, subsampling: int = 3, dropout: float = 0.0, **blstm: int
) -> EncoderConfig:
    """A tiny encoder."""
    return EncoderConfig(kind, encoder_settings(subsampling, dropout, **blstm).get(kind))


def encoder_settings(
    subsampling: int = 3, dropout: float = 0.0, **blstm: int
) -> dict[str, EncoderSettings]:
    """The numbers of tiny encoders."""
    shared: dict[str, Any] = dict(subsampling=subsampling, dropout=dropout)
    return {
        "tdnn": TdnnConfig(dim=8, kernel=3, dilations=[1, 2], **shared),
        "blstm": BlstmConfig(
            dim=6, layers=2, **{"chunk": 0, "right_context": 0, **blstm}, **shared
        ),
        "conformer": ConformerConfig(dim=8, layers=2, heads=2, feedforward=16, kernel=3, **shared),
    }


#: Of layers of a public encoder.
CHUNKS = ChunkConfig(28.0, 4.0, batch=1)


def tiny_model(kind: str, **options: Any) -> CtcModel:
    """A CTC model of 5 features and 4 tokens with weights that are not near zero."""
    spec = CtcSpec("ctc", 5, 4, utterance_mean=True, encoder=encoder_config(kind, **options))
    return new_model(spec, seed=1)


def tiny_model_with(model: CtcModel, **spec: Any) -> CtcModel:
    """The same weights in a model of another specification."""
    other = CtcModel(replace(model.spec, **spec))
    other.load_state_dict(model.state_dict())
    return other


def upon_whisper(lora: LoraConfig | None = None) -> CtcModel:
    """A TDNN on two blocks of a Whisper encoder, maybe with adapters, of 5 features."""
    whisper = drawn(lambda: Whisper(WhisperSizes(80, 5, 2, 1, 8, 1500)))
    whisper.family, whisper.origin = "whisper", Origin("tiny", "0" * 64, "MIT", "a test", {})
    spec = tiny_model("tdnn", subsampling=1).spec
    spec = replace(spec, public=upper_spec(whisper, 0, CHUNKS), utterance_mean=False)
    made = new_model(spec, seed=1).eval()
    made.public.load_state_dict(upper_of(whisper, 0).state_dict())
    if lora is not None:
        add_adapters(made, lora, seed=1)
    return made


class WhisperBlocks(nn.Module):
    """Blocks of Whisper as an encoder: (N, F, T) of F channels to (N, F, T)."""

    def __init__(self, dim: int, blocks: int, heads: int, feedforward: int) -> None:
        super().__init__()
        made = (WhisperBlock(dim, heads, feedforward) for _ in range(blocks))
        self.blocks, self.norm, self.out_dim = nn.ModuleList(made), nn.LayerNorm(dim), dim

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x, valid = x.transpose(1, 2), is_true(lengths, x.size(2))
        for block in self.blocks:
            x = block(x, valid)
        return (self.norm(x) * valid.unsqueeze(2)).transpose(1, 2), lengths


def whisper_model() -> CtcModel:
    """A CTC model of 8 features and 4 tokens upon two blocks of Whisper."""
    model = tiny_model("tdnn")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        model.encoder = WhisperBlocks(8, blocks=2, heads=2, feedforward=16)
    model.feature_dim, model.mean, model.deviation = 8, torch.zeros(8), torch.ones(8)
    return model


def features(*lengths: int, dim: int = 5, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Random features (N, max T, F), zero at padding, and their lengths."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(len(lengths), max(lengths), dim, generator=generator)
    for row, length in zip(x, lengths):
        row[length:] = 0
    return x, torch.tensor(lengths)


def write_corpus(
    folder: Path, *, utterances: int = 24, seed: int = 0, scale: float = 1.0
) -> tuple[Path, Path]:
    """A features and a lang folder; every token is a direction in feature space for 8 frames."""
    from lhotse import CutSet, Features, MonoCut, SupervisionSegment
    from lhotse.features.io import NumpyFilesWriter

    from privasr_k2.data.manifests import save_cuts

    lang, feats = folder / "lang", folder / "feats"
    lang.mkdir(parents=True)
    (lang / "tokens.txt").write_text("<blk> 0\na 1\nb 2\nc 3\n")
    (lang / "words.txt").write_text("<eps> 0\nAB 1\nC 2\nCA 3\n#0 4\n")
    (lang / "lexicon.txt").write_text("AB a b\nC c\nCA c a\n")
    spelled = {"AB": (0, 1), "C": (2,), "CA": (2, 0)}
    rng = np.random.default_rng(seed)
    directions = 2.0 * scale * np.eye(3, 5)
    for role, number in (("train", utterances), ("dev", 6)):
        cuts = []
        with NumpyFilesWriter(str(feats / f"storage_{role}")) as writer:
            for index in range(number):
                name = f"{role}-{index}"
                words = list(rng.choice(list(spelled), size=rng.integers(1, 4)))
                held = [np.zeros((4, 5))]
                for token in (token for word in words for token in spelled[word]):
                    held += [np.tile(directions[token], (8, 1)), np.zeros((3, 5))]
                noise = 0.3 * rng.normal(size=(sum(map(len, held)), 5))
                values = (np.concatenate(held) + noise).astype(np.float32)
                shared = dict(start=0, duration=len(values) / 100, recording_id=name)
                manifest = Features(
                    type="given",
                    num_frames=len(values),
                    num_features=5,
                    frame_shift=0.01,
                    sampling_rate=16000,
                    storage_type=writer.name,
                    storage_path=str(writer.storage_path),
                    channels=0,
                    storage_key=writer.write(name, values),
                    **shared,
                )
                text = SupervisionSegment(id=name, text=" ".join(words), speaker="s", **shared)
                times = (0, shared["duration"], 0)
                cuts.append(MonoCut(name, *times, supervisions=[text], features=manifest))
        save_cuts(CutSet.from_cuts(cuts), feats, role)
    return feats, lang

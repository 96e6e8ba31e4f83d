"""A small private corpus, a public model and configurations for tests of DP-SGD."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from privasr_k2 import config as configuration
from privasr_k2.am.checkpoints import save_model
from privasr_k2.am.model import AcousticModel
from privasr_k2.data.manifests import load_cuts, save_cuts
from privasr_k2.dpsgd.settings import DpSgdConfig
from privasr_k2.dpsgd.trainer import PrivateData, Trainer
from privasr_k2.dpsgd.units import Speech, units_of
from tests.support.conf import section
from tests.support.end_to_end import model
from tests.support.small_am import tiny_model, write_corpus

FILES = [section("dpsgd"), section("dpsgd", "tiny")]


def config(*changes: str) -> DpSgdConfig:
    """The tiny configuration with changes."""
    return configuration.load(DpSgdConfig, FILES, ["data=made/train", "delta=1e-3", *changes])


def made_data(
    folder: Path, unit: str = "speaker", *, utterances: int = 12, speakers: int = 4
) -> tuple[PrivateData, Path, Path]:
    """Utterances of several speakers, in memory, and the folders that they are from."""
    from lhotse import CutSet

    feats, lang = write_corpus(folder, utterances=utterances)
    cuts = []
    for number, cut in enumerate(load_cuts(feats, "train")):
        [said] = cut.supervisions
        cut.supervisions = [replace(said, speaker=f"speaker{number % speakers}")]
        cuts.append(cut)
    save_cuts(cuts, feats, "train")
    found = CutSet.from_cuts(cuts)
    spelled = {"AB": [1, 2], "C": [3], "CA": [3, 1]}
    targets = {
        cut.id: [token for word in cut.supervisions[0].text.split() for token in spelled[word]]
        for cut in cuts
    }
    speech = Speech(found, targets, memory_gb=1.0)
    return PrivateData(units_of(found, unit, speech.targets), speech), feats, lang


def trainer(data: PrivateData, *changes: str, kind: str = "ctc", encoder: str = "tdnn") -> Trainer:
    """A trainer of a tiny model."""
    return Trainer(made_model(kind, encoder), data, config(*changes), noise=0.0)


def made_model(kind: str = "ctc", encoder: str = "tdnn", **options: Any) -> AcousticModel:
    """A tiny model that is used to features of such a size."""
    ctc = kind == "ctc"
    made: AcousticModel = tiny_model(encoder, **options) if ctc else model(kind, encoder, **options)
    made.deviation = torch.full_like(made.deviation, 0.7)
    return made


def saved_model(folder: Path, lang: Path, kind: str = "ctc", encoder: str = "tdnn") -> Path:
    """The folder of such a model."""
    made = made_model(kind, encoder)
    lines = (lang / "tokens.txt").read_text(encoding="utf-8").splitlines()
    tokens = [line.split()[0] for line in lines]
    save_model(folder, made.spec, made.state_dict(), tokens)
    return folder

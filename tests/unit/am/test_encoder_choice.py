"""``model.yaml`` holds the chosen encoder; files of before hold all; one file adds an encoder."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch
import yaml

from privasr_k2 import config
from privasr_k2.am.checkpoints import load_model, save_model
from privasr_k2.am.ctc import CtcConfig, CtcSpec
from privasr_k2.am.encoders import AnyEncoderConfig, EncoderConfig
from privasr_k2.am.encoders.common import ENCODERS
from privasr_k2.errors import ConfigError
from privasr_k2.fileio import read_jsonl
from tests.support.conf import section
from tests.support.mechanism_registry import run_verbs
from tests.support.small_am import encoder_settings, features, tiny_model, write_corpus

TOY = '''
"""One linear layer a frame, after the subsampling that all encoders have."""
from dataclasses import dataclass
from torch import nn
from privasr_k2.am.encoders.common import EncoderSettings, Pointwise, Subsampling, encoder

@dataclass(frozen=True)
class LinearConfig(EncoderSettings):
    dim: int = 6
    subsampling: int = 2
    dropout: float = 0.0

@encoder("linear", LinearConfig)
class Linear(nn.Module):
    def __init__(self, feature_dim, config):
        super().__init__()
        self.subsampling = Subsampling(feature_dim, config.dim, config.subsampling)
        self.layer = Pointwise(config.dim, config.dim)
        self.out_dim = config.dim

    def forward(self, x, lengths):
        x, lengths = self.subsampling(x, lengths)
        return self.layer(x), lengths
'''


@pytest.mark.parametrize("kind", ["tdnn", "blstm", "conformer"])
def test_a_file_with_all_encoders_still_loads(tmp_path, kind):
    model = tiny_model(kind)
    save_model(tmp_path, model.spec, model.state_dict(), None)
    saved = yaml.safe_load((tmp_path / "model.yaml").read_text())
    assert set(saved["encoder"]) == {"kind", kind}
    x = features(17, 23)
    wanted = load_model(tmp_path).log_probs(*x)[0]
    # As 075ac45 wrote it.
    every = {name: config.plain(settings) for name, settings in encoder_settings().items()}
    content = {**saved, "encoder": {"kind": kind, **every}}
    (tmp_path / "model.yaml").write_text(yaml.safe_dump(content))
    found = load_model(tmp_path)
    assert found.spec == model.spec and torch.equal(found.log_probs(*x)[0], wanted)


def test_layers_change_the_chosen_encoder():
    def load(*overrides: str) -> CtcConfig:
        return config.load(CtcConfig, [section("am_ctc")], overrides)

    tdnn = load().encoder
    blstm = load("encoder.kind=blstm", "encoder.blstm.dim=7").encoder
    assert (tdnn.kind, blstm.kind, blstm.settings.dim) == ("tdnn", "blstm", 7)
    # What is said of another encoder changes nothing, but must be said rightly.
    assert load("encoder.blstm.dim=9").encoder == tdnn
    for bad in ("blstm.dims=9", "blstm.dim=a", "kind=pyramid", "tdnn.dim=0"):
        with pytest.raises(ConfigError, match=f"encoder.{bad.split('=')[0]}"):
            load(f"encoder.{bad}")
    with pytest.raises(ConfigError, match=r"no value for encoder\.blstm"):
        config.load(EncoderOnly, overrides=["encoder.kind=blstm", "encoder.tdnn.dim=3"])


@dataclass(frozen=True)
class EncoderOnly:
    """Nothing else."""

    encoder: EncoderConfig


def test_what_is_saved_is_read(tmp_path):
    made = CtcSpec("ctc", 5, 4, True, EncoderConfig("blstm", encoder_settings()["blstm"]))
    config.save(made, tmp_path / "model.yaml")
    assert config.load(CtcSpec, [tmp_path / "model.yaml"]) == made
    assert config.from_values(CtcSpec, config.plain(made), "here") == made


def test_which_encoders_there_are():
    assert ENCODERS.names() == ("blstm", "conformer", "identity", "pyramid", "tdnn")
    assert sorted(EncoderConfig.choices()) == ["blstm", "conformer", "tdnn"]
    assert sorted(AnyEncoderConfig.choices()) == [*ENCODERS.names()]
    with pytest.raises(ValueError, match="kind must be one of"):
        EncoderConfig("blstm", encoder_settings()["tdnn"])


def test_one_file_adds_an_encoder(tmp_path):
    pytest.importorskip("lhotse")
    plugin = tmp_path / "linear.py"
    plugin.write_text(TOY)
    feats, lang = write_corpus(tmp_path)
    train = (
        f"train_am --in-feats {feats} --in-lang {lang} --out-dir {tmp_path}/am --device cpu"
        f" --config {section('am_ctc')} --set encoder.kind=linear epochs=3 avg=1 time_stretch=0"
    )
    done = run_verbs(train, plugin=plugin)
    assert done.returncode == 0, done.stderr
    saved = yaml.safe_load((tmp_path / "am" / "model.yaml").read_text())
    linear = {"dim": 6, "subsampling": 2, "dropout": 0.0}
    assert saved["encoder"] == {"kind": "linear", "linear": linear}
    lines = [*read_jsonl(tmp_path / "am" / "train_log.jsonl")]
    losses = [line["dev_loss"] for line in lines if "dev_loss" in line]
    assert losses[-1] < losses[0]
    done = run_verbs(train, plugin=None)
    assert done.returncode == 2 and "linear" in done.stderr

"""Exports in icefall's forms give what their parts give; others are refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from privasr_k2.am.checkpoints import load_model
from tests.support.icefall_models import AsrModel, Together, write_export
from tests.support.verbs import call, refused

TOKENS = "<blk> 0\n<sos/eos> 1\na 2\nb 3\n#0 4\n"


@pytest.fixture
def model() -> AsrModel:
    torch.manual_seed(1)
    return AsrModel().eval()


def bring(folder: Path, name: str) -> None:
    (folder / "tokens.txt").write_text(TOKENS)
    flags = f"--raw-model {folder / name} --raw-tokens {folder}/tokens.txt --out-dir {folder}/am"
    call(f"import_external {flags}")


@pytest.mark.parametrize("form", ["zipformer", "parts", "conformer", "onnx"])
def test_every_form_gives_the_same(tmp_path: Path, model: AsrModel, form: str) -> None:
    if form == "onnx":
        pytest.importorskip("onnxruntime")
        pytest.importorskip("onnx")
    x, lengths = torch.randn(3, 60, 80), torch.tensor([60, 44, 7])
    expected, kept = Together(model)(x, lengths)
    name = "m.onnx" if form == "onnx" else "m.pt"
    write_export(tmp_path / name, model, form)
    bring(tmp_path, name)
    found = load_model(tmp_path / "am")
    assert (found.tokens, found.subsampling) == (["<blk>", "<sos/eos>", "a", "b"], 4)
    log_probs, out_lengths = found.log_probs(x, lengths)
    torch.testing.assert_close(log_probs, expected.detach(), atol=1e-5, rtol=1e-5)
    assert out_lengths.tolist() == kept.tolist() and out_lengths.dtype == torch.int64


def test_other_exports_are_refused(tmp_path: Path, model: AsrModel) -> None:
    write_export(tmp_path / "m.pt", model, "streaming")
    with refused("m.pt: expected a model that reads whole utterances, found a streaming one"):
        bring(tmp_path, "m.pt")
    rnnt = AsrModel()
    del rnnt.ctc_output
    rnnt.joiner = nn.Linear(8, 4)
    torch.jit.script(rnnt.eval()).save(str(tmp_path / "m.pt"))
    with refused("encoder and ctc_output, found encoder_embed encoder joiner"):
        bring(tmp_path, "m.pt")
    state = {"model": model.state_dict()}
    torch.save(state, str(tmp_path / "m.pt"))
    with refused("m.pt: expected a TorchScript file"):
        bring(tmp_path, "m.pt")
    assert not (tmp_path / "am").exists()

"""Exported models give what the model gives, also without this package; others are checked."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from privasr_k2.am.checkpoints import load_model, save_model
from privasr_k2.am.ctc import CtcSpec
from privasr_k2.am.exported import import_exported
from privasr_k2.am.exporting import to_onnx, to_torchscript
from privasr_k2.am.kinds import new_model
from privasr_k2.errors import ConfigError, DataError
from tests.support.small_am import KINDS, encoder_config, features, tiny_model
from tests.support.verbs import call, refused

TOKENS = "<blk> 0\na 1\nb 2\nc 3\n"


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    path = tmp_path / "tokens.txt"
    path.write_text(TOKENS)
    return path


# Lengths other than those that the exporter saw.
INPUTS = (features(97, 61), features(200, 13, 150), features(40))


class Wide(nn.Module):
    """Some 80 features more in front: the exported file takes 80, as foreign ones do."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model, self.feature_dim = model, 80

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.model(x[:, :, :5] + 0.0 * x[:, :, 75:80], lengths)


@pytest.mark.parametrize("kind", KINDS)
def test_torchscript_gives_the_same(tmp_path, kind):
    model = tiny_model(kind)
    to_torchscript(model, tmp_path / "model.pt")
    script = torch.jit.load(str(tmp_path / "model.pt"))
    for x, lengths in INPUTS:
        expected, found = model.log_probs(x, lengths), script(x, lengths)
        torch.testing.assert_close(found[0], expected[0], atol=1e-4, rtol=1e-4)
        assert torch.equal(found[1], expected[1])


@pytest.mark.parametrize("kind", KINDS)
def test_onnx_gives_the_same(tmp_path, kind):
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    model = tiny_model(kind)
    to_onnx(model, tmp_path / "model.onnx")
    providers = ["CPUExecutionProvider"]
    session = onnxruntime.InferenceSession(str(tmp_path / "model.onnx"), providers=providers)
    for x, lengths in INPUTS:
        expected = model.log_probs(x, lengths)
        found = session.run(None, {"features": x.numpy(), "lengths": lengths.numpy()})
        np.testing.assert_allclose(found[0], expected[0].numpy(), atol=1e-4)
        assert found[1].tolist() == expected[1].tolist()


@pytest.mark.parametrize("suffix", [".pt", ".onnx"])
def test_what_was_exported_can_be_brought_back(tmp_path, tokens, suffix):
    model = tiny_model("tdnn", subsampling=4)
    model_file = tmp_path / f"theirs{suffix}"
    wide = Wide(model.eval())
    example = (torch.zeros(2, 97, 80), torch.tensor([97, 61]))
    if suffix == ".pt":
        torch.jit.save(torch.jit.trace(wide, example, check_trace=False), str(model_file))
    else:
        pytest.importorskip("onnxruntime")
        axes = {name: {0: "N", 1: "T"} for name in ("x", "log_probs")}
        axes |= {name: {0: "N"} for name in ("x_lens", "log_probs_len")}
        has_dynamo = "dynamo" in inspect.signature(torch.onnx.export).parameters
        tracing = {"dynamo": False} if has_dynamo else {}
        names = dict(input_names=["x", "x_lens"], output_names=["log_probs", "log_probs_len"])
        options = dict(opset_version=14, dynamic_axes=axes, **names, **tracing)
        torch.onnx.export(wide, example, str(model_file), **options)
    spec = import_exported(model_file, tokens, tmp_path / "am")
    assert (spec.feature_dim, spec.num_tokens, spec.subsampling) == (80, 4, 4)
    found = load_model(tmp_path / "am")
    assert found.tokens == ["<blk>", "a", "b", "c"]
    x, lengths = features(130, 70, dim=80)
    expected, expected_lengths = model.log_probs(x[:, :, :5].contiguous(), lengths)
    log_probs, out_lengths = found.log_probs(x, lengths)
    torch.testing.assert_close(log_probs, expected, atol=1e-4, rtol=1e-4)
    assert torch.equal(out_lengths, expected_lengths) and out_lengths.dtype == torch.int64


@pytest.mark.parametrize("feature_dim", [80, 40])
def test_metadata_that_sherpa_onnx_reads(tmp_path, feature_dim):
    onnx = pytest.importorskip("onnx")
    spec = CtcSpec("ctc", feature_dim, 7, utterance_mean=True, encoder=encoder_config("tdnn"))
    model = new_model(spec, seed=1)
    save_model(tmp_path / "am", spec, model.state_dict(), ["<blk>", *"abcdef"])
    call(f"export --in-model {tmp_path}/am --out-onnx {tmp_path}/m.onnx --out-tokens {tmp_path}/t")
    proto = onnx.load(str(tmp_path / "m.onnx"))
    found = {item.key: item.value for item in proto.metadata_props}
    assert found.pop("model_type", None) == ("zipformer2_ctc" if feature_dim == 80 else None)
    sizes = {"feature_dim": f"{feature_dim}", "vocab_size": "7", "subsampling_factor": "3"}
    assert sizes.items() <= found.items()
    assert [node.name for node in proto.graph.input] == ["features", "lengths"]
    # It takes the number of tokens from the shape.
    assert proto.graph.output[0].type.tensor_type.shape.dim[2].dim_value == 7
    assert (tmp_path / "t").read_bytes() == (tmp_path / "am/tokens.txt").read_bytes()
    (tmp_path / "am/tokens.txt").unlink()
    with refused("expected the model's tokens"):
        call(f"export --in-model {tmp_path}/am --out-tokens {tmp_path}/t")


def test_other_tokens_are_refused(tmp_path, tokens):
    example = (torch.zeros(2, 97, 80), torch.tensor([97, 61]))
    traced = torch.jit.trace(Wide(tiny_model("tdnn").eval()), example, check_trace=False)
    torch.jit.save(traced, str(tmp_path / "m.pt"))
    tokens.write_text("<blk> 0\na 1\n")
    with pytest.raises(DataError, match=r"tokens\.txt: expected 4 tokens"):
        import_exported(tmp_path / "m.pt", tokens, tmp_path / "am")
    assert not (tmp_path / "am" / "model.yaml").exists()


def test_a_checkpoint_of_weights_is_refused(tmp_path, tokens):
    torch.save(tiny_model("tdnn").state_dict(), tmp_path / "epoch.pt")
    with pytest.raises(DataError, match=r"epoch\.pt: expected a TorchScript file"):
        import_exported(tmp_path / "epoch.pt", tokens, tmp_path / "am")


@pytest.mark.parametrize("name", ["model.onnx", "model.pt", "model.bin"])
def test_rubbish_is_refused(tmp_path, tokens, name):
    (tmp_path / name).write_bytes(b"rubbish")
    with pytest.raises(DataError, match=name):
        import_exported(tmp_path / name, tokens, tmp_path / "am")


def test_logits_are_refused(tmp_path, tokens):
    class Logits(nn.Module):
        def forward(
            self, x: torch.Tensor, lengths: torch.Tensor
        ) -> tuple[torch.Tensor, torch.Tensor]:
            return x[:, ::4, :4] + 1.0, (lengths + 3) // 4

    torch.jit.save(torch.jit.script(Logits()), str(tmp_path / "m.pt"))
    with pytest.raises(DataError, match="probabilities do not sum to 1"):
        import_exported(tmp_path / "m.pt", tokens, tmp_path / "am")


def test_chunked_blstm_is_not_exported(tmp_path):
    with pytest.raises(ConfigError, match=r"encoder\.blstm\.chunk 8"):
        to_torchscript(tiny_model("blstm", chunk=8), tmp_path / "m.pt")
    assert not (tmp_path / "m.pt").exists()


def test_verbs(tmp_path, tokens, repo_root):
    model = tiny_model("tdnn")
    save_model(tmp_path / "am", model.spec, model.state_dict(), ["<blk>", "a", "b", "c"])

    def verb(words: str) -> subprocess.CompletedProcess[str]:
        command = f"{sys.executable} -m privasr_k2.bin.{words}".split()
        return subprocess.run(command, cwd=repo_root, capture_output=True, text=True)

    done = verb(f"export --in-model {tmp_path}/am --out-torchscript {tmp_path}/m.pt")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "m.pt").is_file()
    neither = verb(f"export --in-model {tmp_path}/am")
    assert neither.returncode == 2 and "expected an --out flag" in neither.stderr
    flags = f"--raw-model no.pt --raw-tokens {tokens} --out-dir {tmp_path}/b"
    missing = verb(f"import_external {flags}")
    assert missing.returncode == 2
    assert "no.pt: expected a TorchScript or ONNX file" in missing.stderr

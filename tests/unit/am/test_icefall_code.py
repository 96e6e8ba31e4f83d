"""State dicts of icefall with their model's folder: the same outputs; others are refused."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

from privasr_k2.am.checkpoints import load_model
from tests.support import icefall_models
from tests.support.icefall_models import AsrModel, Together
from tests.support.verbs import call, refused

TOKENS = "<blk> 0\n<sos/eos> 1\na 2\nb 3\n#0 4\n"
TRAIN = """
import argparse
from model import AsrModel, Together

class AttributeDict(dict):
    __getattr__ = dict.__getitem__

def add_model_arguments(parser):
    parser.add_argument("--use-ctc", type=int, default=0)
    parser.add_argument("--joined", type=int, default=0)

def get_params():
    return AttributeDict(feature_dim=80)

def get_model(params):
    assert params.blank_id == 0 and params.sos_id == 1
    model = AsrModel(params.vocab_size)
    if params.joined:
        return Together(model)
    if not params.use_ctc:
        del model.ctc_output
    return model
"""


@pytest.fixture
def model(tmp_path: Path) -> AsrModel:
    """A model, and what its training would leave: a folder of code, tokens and weights."""
    torch.manual_seed(1)
    model = AsrModel().eval()
    (tmp_path / "code").mkdir()
    (tmp_path / "code/train.py").write_text(TRAIN)
    (tmp_path / "code/model.py").write_text(Path(icefall_models.__file__).read_text())
    (tmp_path / "tokens.txt").write_text(TOKENS)
    torch.save({"model": model.state_dict(), "epoch": 3}, tmp_path / "pretrained.pt")
    return model


def bring(folder: Path, words: str = "--use-ctc 1") -> None:
    conf = Path(__file__).parents[3] / "conf/common.yaml#icefall_code"
    call(
        f"import_external --raw-model {folder}/pretrained.pt --raw-tokens {folder}/tokens.txt",
        *(f"--raw-model-code {folder}/code --out-dir {folder}/am --config {conf} --set",),
        f"model_args={words}",
    )


@pytest.mark.parametrize("form", ["pretrained", "distributed", "checkpoint", "joined"])
def test_the_model_is_that_of_its_folder(tmp_path: Path, model: AsrModel, form: str) -> None:
    state = (Together(model) if form == "joined" else model).state_dict()
    if form == "distributed":
        state = {f"module.{name}": value for name, value in state.items()}
    kept = {"model": state, "optimizer": {"state": {0: {"step": torch.ones(1)}}}}
    torch.save(kept if form in ("checkpoint", "joined") else state, tmp_path / "pretrained.pt")
    paths, before = list(sys.path), set(sys.modules)
    bring(tmp_path, "--joined 1" if form == "joined" else "--use-ctc 1")
    assert sys.path == paths and not {"train", "model"} & ({*sys.modules} - before)
    assert {path.name for path in (tmp_path / "code").iterdir()} == {"train.py", "model.py"}
    # What is kept is a program of its own.
    (tmp_path / "code").rename(tmp_path / "gone")
    found = load_model(tmp_path / "am")
    assert found.tokens == ["<blk>", "<sos/eos>", "a", "b"]
    x, lengths = torch.randn(3, 60, 80), torch.tensor([60, 44, 7])
    expected, kept_lengths = Together(model)(x, lengths)
    log_probs, out_lengths = found.log_probs(x, lengths)
    assert torch.equal(out_lengths, kept_lengths)
    for row, length in enumerate(kept_lengths):
        torch.testing.assert_close(log_probs[row, :length], expected[row, :length])


def test_nothing_is_run_unasked(tmp_path: Path, model: AsrModel) -> None:
    (tmp_path / "code/train.py").write_text("raise AssertionError('it ran')\n")
    flags = f"--raw-tokens {tmp_path}/tokens.txt --out-dir {tmp_path}/am"
    with refused("--raw-model-code"):
        call(f"import_external --raw-model {tmp_path}/pretrained.pt {flags}")
    with refused("code: expected a train.py that can be imported, found AssertionError: it ran"):
        bring(tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("def get_model", "def make_model", "found no get_model or get_transducer_model"),
        ("def get_params", "def params_of", "found no get_params"),
        ("import argparse", "import no_such_module", "No module named 'no_such_module'"),
        ("return model", "return params", "a torch module of get_model, found AttributeDict"),
        ("def get_params():", "def get_params(a):", "found TypeError"),
        ("def get_params():", "def get_params():\n    raise SystemExit(3)", "SystemExit: 3"),
        ("return model", "model.encoder = model.ctc_output; return model", "encoder of 1 inputs"),
        # What TorchScript cannot compile.
        ("return model", "model.ctc_output.forward = lambda x: [*x]; return model", "jit.script"),
    ],
)
def test_other_code_is_refused(
    tmp_path: Path, model: AsrModel, old: str, new: str, message: str
) -> None:
    (tmp_path / "code/train.py").write_text(TRAIN.replace(old, new))
    if "model.encoder = " in new:
        model.encoder = model.ctc_output
        torch.save(model.state_dict(), tmp_path / "pretrained.pt")
    with refused(message):
        bring(tmp_path)
    assert not (tmp_path / "am").exists()


def test_other_weights_and_options_are_refused(tmp_path: Path, model: AsrModel) -> None:
    path, state = tmp_path / "pretrained.pt", model.state_dict()
    with refused("2 with further ones: ctc_output.1.bias, ctc_output.1.weight"):
        bring(tmp_path, "--use-ctc 0")
    with refused("--set model_args: expected options of train.py, found unrecognized arguments"):
        bring(tmp_path, "--use-ctc 1 --no-such 1")
    with refused("1 without: encoder.linear.bias"):
        torch.save({k: v for k, v in state.items() if k != "encoder.linear.bias"}, path)
        bring(tmp_path)
    with refused("ctc_output.1.weight of shape [4, 8], not [3, 8]"):
        torch.save(state, path)
        (tmp_path / "tokens.txt").write_text("<blk> 0\n<sos/eos> 1\na 2\n")
        bring(tmp_path)
    (tmp_path / "tokens.txt").write_text(TOKENS)
    with refused("a pickle with code"):
        torch.save({"model": state, "call": print}, path)
        bring(tmp_path)
    with refused("pretrained.pt"):
        path.write_bytes(path.read_bytes()[:200])
        bring(tmp_path)
    with refused("a model with icefall's encoder and ctc_output"):
        torch.save({k: v for k, v in state.items() if "ctc_output" not in k}, path)
        bring(tmp_path, "--use-ctc 0")
    (tmp_path / "code/train.py").unlink()
    with refused("found no train.py"):
        bring(tmp_path)

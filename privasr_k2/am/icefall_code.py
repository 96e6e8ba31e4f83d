"""A state dict of icefall with the folder of its model: built there, and kept as TorchScript.

The folder holds ``train.py`` with ``get_params()`` and ``get_model(params)``. Its code is run once,
here, and only where a user names the folder. The weights are read without running what their pickle
may call (:mod:`privasr_k2.encoders.torch_file`).
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import shlex
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from privasr_k2.am.exported import ExportedSpec, import_exported
from privasr_k2.am.icefall_models import joined
from privasr_k2.encoders.torch_file import TorchFile
from privasr_k2.errors import ConfigError, DataError
from privasr_k2.graph.lang import read_tokens

BUILDERS = ("get_model", "get_transducer_model", "get_ctc_model")
"""What ``train.py`` calls the function that builds a model; the first that is there."""
_PREFIXES = ("", "model.", "module.", "model.module.")
"""Before the names of a checkpoint: of ``pretrained.pt``, and of distributed training."""
_EXPECTED = "train.py of an icefall recipe, with get_params and get_model"
_EXPORT = "or export the model with icefall's export.py --jit 1"
_TRAINED = "give the options that it was trained with: --set model_args='--use-ctc 1 ...'"
_ERRORS = (ArithmeticError, AssertionError, AttributeError, ImportError, LookupError, NameError,
           OSError, RuntimeError, SyntaxError, SystemExit, TypeError, ValueError)  # fmt: skip
"""What a user's code may end with."""


@dataclass(frozen=True)
class IcefallCodeConfig:
    """Settings of ``conf/common.yaml#icefall_code``.

    Attributes:
        model_args: words for the parser of ``train.py``, as at training.
    """

    model_args: str


def import_weights(
    weights: Path, code: Path, tokens: Path, folder: Path, of: IcefallCodeConfig
) -> ExportedSpec:
    """Build the model of an icefall folder, fill it, and import it as an exported one.

    Args:
        weights: ``pretrained.pt``, or a checkpoint of ``train.py``.
        code: the folder with ``train.py``; ``icefall`` itself has to be importable.
        tokens: ``tokens.txt``; the model has as many outputs.
        folder: what :func:`privasr_k2.am.exported.import_exported` writes.

    Raises:
        DataError: no such functions, code that fails, weights of another model, no CTC.
        ConfigError: words that the parser of ``train.py`` does not know.
    """
    names, state = read_tokens(tokens), TorchFile(weights)
    with _importable(code), tempfile.TemporaryDirectory() as temporary:
        model = _built(code, names, of.model_args)
        _fill(model, state, weights)
        script = Path(temporary) / "model.pt"
        _scripted(model.eval(), code).save(str(script))
        return import_exported(script, tokens, folder)


@contextmanager
def _importable(code: Path) -> Iterator[None]:
    """The modules of a folder, by their plain names, for as long as this lasts."""
    if not (code / "train.py").is_file():
        found = "no train.py" if code.is_dir() else "no such folder"
        raise DataError(code, _EXPECTED, found, f"name the folder of the model, {_EXPORT}")
    own = {path.stem for path in code.glob("*.py")}
    others = {name: sys.modules.pop(name) for name in own & {*sys.modules}}
    writes, sys.dont_write_bytecode = sys.dont_write_bytecode, True  # nothing in a user's folder
    sys.path.insert(0, str(code.absolute()))
    try:
        yield
    finally:
        sys.path.remove(str(code.absolute()))
        sys.dont_write_bytecode = writes
        for name in own & {*sys.modules}:
            del sys.modules[name]
        sys.modules.update(others)


@contextmanager
def _running(code: Path, expected: str, way_out: str) -> Iterator[None]:
    """Whatever a user's code raises, or leaves with, is an error of that code."""
    try:
        yield
    except (DataError, ConfigError):
        raise
    except _ERRORS as error:
        lines = [line for line in str(error).splitlines() if line.strip()]
        found = f"{type(error).__name__}: {lines[0] if lines else ''}".strip(": ")
        raise DataError(code, expected, found, way_out) from error


def _built(code: Path, tokens: list[str], words: str) -> nn.Module:
    """The model as ``train.py`` builds it, with random weights."""
    way_out = f"add icefall to PYTHONPATH and install what it imports, {_EXPORT}"
    with _running(code, "a train.py that can be imported", way_out):
        train = importlib.import_module("train")
    build = next((getattr(train, name) for name in BUILDERS if hasattr(train, name)), None)
    if build is None or not hasattr(train, "get_params"):
        wanted = ("get_params", " or ".join(BUILDERS))
        found = " and ".join(("no " + wanted[0],) * (not hasattr(train, "get_params"))
                             + ("no " + wanted[1],) * (build is None))  # fmt: skip
        raise DataError(code / "train.py", _EXPECTED, found, _EXPORT.removeprefix("or "))
    with _running(code, "get_params and get_model that build the model", _TRAINED):
        params = train.get_params()
        params.update(_options(train, words))
        params.update({"vocab_size": len(tokens), "blank_id": 0})
        for key, name in (("sos_id", "<sos/eos>"), ("eos_id", "<sos/eos>"), ("unk_id", "<unk>")):
            if name in tokens:
                params[key] = tokens.index(name)
        model = build(params)
    if not isinstance(model, nn.Module):
        raise DataError(code, "a torch module of get_model", type(model).__name__, _EXPORT)
    return model


def _options(train: Any, words: str) -> dict[str, Any]:
    """What the parser of ``train.py`` makes of words, with its own defaults."""
    if hasattr(train, "get_parser"):
        parser = train.get_parser()
    else:
        parser = argparse.ArgumentParser(prog="train.py")
        getattr(train, "add_model_arguments", lambda _: None)(parser)

    def refuse(message: str) -> None:
        raise ConfigError("--set model_args", "options of train.py", message, "correct them")

    parser.error = refuse
    return vars(parser.parse_args(shlex.split(words)))


def _fill(model: nn.Module, state: Mapping[str, Tensor], path: Path) -> None:
    """Load weights, all of them, into a model.

    Raises:
        DataError: missing or further names, or other shapes.
    """
    wanted = model.state_dict()

    def below(prefix: str) -> dict[str, str]:
        return {name.removeprefix(prefix): name for name in state if name.startswith(prefix)}

    found = max(map(below, _PREFIXES), key=lambda names: len(names.keys() & wanted.keys()))
    expected = f"the {len(wanted)} tensors of the model"
    problems = {
        "without": sorted(wanted.keys() - found.keys()),
        "with further ones": sorted(found.keys() - wanted.keys()),
    }
    for how, names in problems.items():
        if names:
            shown = f"{len(names)} {how}: {', '.join(names[:3])}"
            raise DataError(path, expected, shown, _TRAINED)
    values = {name: state[inner] for name, inner in found.items()}
    for name, value in values.items():
        if value.shape != wanted[name].shape:
            shapes = f"{name} of shape {list(value.shape)}, not {list(wanted[name].shape)}"
            raise DataError(path, expected, shapes, f"check the tokens, and {_TRAINED}")
    model.load_state_dict(values)


def _scripted(model: Any, code: Path) -> Any:
    """Encoder and CTC output as TorchScript, in the form for running where the folder has one."""
    encoder, output = getattr(model, "encoder", None), getattr(model, "ctc_output", None)
    if encoder is None or output is None:
        has = " ".join(name for name, _ in model.named_children()) or "nothing"
        way_out = "take a model that was trained with CTC; its options: --set model_args='...'"
        raise DataError(code, "a model with icefall's encoder and ctc_output", has, way_out)
    with _running(code, "a model that torch.jit.script compiles", _EXPORT.removeprefix("or ")):
        if (code / "scaling_converter.py").is_file():
            importlib.import_module("scaling_converter").convert_scaled_to_non_scaled(
                model, inplace=True
            )
        inputs = len(inspect.signature(model.encoder.forward).parameters)
        embed = getattr(model, "encoder_embed", None)
        return torch.jit.script(joined(model.encoder, model.ctc_output, embed, inputs, code).eval())

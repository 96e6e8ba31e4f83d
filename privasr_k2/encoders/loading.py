"""Reading a public encoder from its files, and what has to be recorded about it."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from privasr_k2.encoders.card import CARD, EncoderCard, read_card
from privasr_k2.encoders.common import FAMILIES, Origin, PublicEncoder, Weights
from privasr_k2.encoders.ctranslate2_file import CTranslate2File, is_ctranslate2
from privasr_k2.encoders.safetensors_files import SafetensorsFiles
from privasr_k2.encoders.torch_file import TorchFile, open_zip
from privasr_k2.errors import ConfigError, DataError
from privasr_k2.fileio import file_hash, read_json

TRAINING_DATA = "Its training data are not known to be free of the private people."
UNKNOWN = "not stated"
_CONFIG, _PREPROCESSOR = "config.json", "preprocessor_config.json"
#: Files of weights, the first that a folder has; a pattern must match a single file.
_PATTERNS = (
    *("model.safetensors", "model.safetensors.index.json", "*.safetensors", "model.bin"),
    *("pytorch_model.bin", "*.onnx", "*.pt", "*.pth", "*.jit"),
)
_PICKLE = b"\x80"  # of protocols from 2 on
_EXPECTED = "the files of an encoder: safetensors, model.bin of CTranslate2, .pt or .onnx"
_WAY_OUT = "privasr encoder get NAME --out DIR, or give the folder of the model"


def load_encoder(folder_or_file: str | Path, *, pad_seconds: float = 0.0) -> PublicEncoder:
    """Read an encoder from its files, in evaluation mode, as float32.

    Tensors are read without running any code. TorchScript and ONNX files are programs for their
    runtimes: such files do run.

    Args:
        folder_or_file: the weights, or the folder that holds them with their config.
        pad_seconds: see :class:`PublicEncoder`; 30 is Whisper's own behaviour.

    Raises:
        DataError: no model, an empty or broken file, weights of another size, a pickle that holds
            code, or a hash that differs from ``encoder.yaml``.
        ConfigError: ``pad_seconds`` for an encoder that hears no silence.
    """
    weights, origin = open_weights(folder_or_file)
    # What is drawn for modules before they are filled changes nobody's random numbers.
    with torch.random.fork_rng(devices=[]):
        encoder = _family(weights)
    if pad_seconds and not hasattr(encoder, "positions"):
        found, way_out = f"{pad_seconds:g}", "leave it at 0: only Whisper is padded"
        raise ConfigError("pad_seconds", f"0 for {encoder.name}", found, way_out)
    encoder.pad_seconds = pad_seconds
    encoder.origin = origin
    encoder.name = encoder.origin.name
    return encoder.eval()


def open_weights(folder_or_file: str | Path) -> tuple[Weights, Origin]:
    """The tensors of a model's files, checked as :func:`load_encoder` does, and their origin."""
    files, origin = _checked_files(Path(folder_or_file))
    return _opened(files), origin


def describe(encoder: PublicEncoder) -> dict[str, str]:
    """What every use of an encoder records: name, sha256, licence, source, training data."""
    return _record(encoder.origin)


def describe_files(folder_or_file: str | Path) -> dict[str, str]:
    """As :func:`describe`, of files whose weights another program reads.

    Raises:
        DataError: no model, an empty file, or a hash that differs from ``encoder.yaml``.
    """
    return _record(_checked_files(Path(folder_or_file))[1])


def _checked_files(path: Path) -> tuple[list[Path], Origin]:
    files = _weights_of(path)
    for file in files:
        if file.stat().st_size == 0:
            raise DataError(file, "weights", "an empty file", "get the file again")
    folder = files[0].parent
    card = read_card(folder / CARD) if (folder / CARD).is_file() else None
    hashes = {file.name: file_hash(file) for file in files}
    if card is not None:
        _compare(card, folder, {**hashes, **_hashes_of_configs(folder)})
    return files, _origin(card, hashes, path)


def _record(origin: Origin) -> dict[str, str]:
    return {
        "name": origin.name,
        "sha256": origin.sha256,
        "licence": origin.licence,
        "source": origin.source,
        "training_data": TRAINING_DATA,
    }


def _weights_of(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise DataError(path, _EXPECTED, "nothing of this name", _WAY_OUT)
    for pattern in _PATTERNS:
        matching = sorted(path.glob(pattern))
        if len(matching) > 1:
            found = ", ".join(file.name for file in matching)
            raise DataError(path, f"one file {pattern}", found, "give the file itself")
        if matching:
            is_index = matching[0].name.endswith(".index.json")
            return _shards(matching[0]) if is_index else matching
    found = ", ".join(sorted(file.name for file in path.iterdir())[:5]) or "an empty folder"
    raise DataError(path, _EXPECTED, found, _WAY_OUT)


def _shards(index: Path) -> list[Path]:
    places = _object(index).get("weight_map")
    names = sorted({str(name) for name in places.values()}) if isinstance(places, dict) else []
    if not names or any(Path(name).name != name for name in names):
        raise DataError(index, "weight_map, files by tensor", "something else", "get it again")
    missing = [name for name in names if not (index.parent / name).is_file()]
    if missing:
        raise DataError(index, "all files that it names", f"no {missing[0]}", "get the file")
    return [index.parent / name for name in names]


def _object(path: Path) -> Mapping[str, Any]:
    if not path.is_file():
        return {}
    value = read_json(path)
    if not isinstance(value, dict):
        raise DataError(path, "names and values", type(value).__name__, "get the file again")
    return value


def _opened(files: list[Path]) -> Weights:
    path = files[0]
    config = _object(path.with_name(_CONFIG))
    preprocessor = _object(path.with_name(_PREPROCESSOR))
    tensors: Mapping[str, Any]
    if path.suffix == ".safetensors":
        kind, tensors = "safetensors", SafetensorsFiles(files)
    elif path.suffix == ".onnx":
        kind, tensors = "onnx", {}
    elif is_torchscript(path):
        kind, tensors = "torchscript", {}
    elif zipfile.is_zipfile(path):
        kind, tensors = "torch", TorchFile(path)
        config = {**config, **tensors.numbers}
    elif is_ctranslate2(path):
        kind, tensors = "ctranslate2", CTranslate2File(path)
    else:
        with path.open("rb") as file:
            head = file.read(8)
        found, way_out = f"a file that begins with {head!r}", _WAY_OUT
        if head.startswith(_PICKLE):
            found = "a bare pickle, which may hold code and is not read"
            way_out = "save its tensors as safetensors where you trust it"
        raise DataError(path, _EXPECTED, found, way_out)
    return Weights(path, kind, config, preprocessor, tensors)


def is_torchscript(path: Path) -> bool:
    """Whether a file is a program of TorchScript: a zip with ``code/`` beside its tensors."""
    if not zipfile.is_zipfile(path):
        return False
    with open_zip(path) as file:
        return any("/code/" in name for name in file.namelist())


def _family(weights: Weights) -> PublicEncoder:
    families = FAMILIES.items()
    for name, family in families.items():
        if family.recognizes(weights):
            encoder = family.build(weights)
            encoder.family = name
            return encoder
    names = ", ".join(list(weights.tensors)[:3]) or f"a file of kind {weights.format}"
    expected = f"weights of {', '.join(sorted(families))}"
    way_out = "give an encoder of these families, or add a family: docs/encoders.md"
    raise DataError(weights.path, expected, names, way_out)


def _hashes_of_configs(folder: Path) -> dict[str, str]:
    paths = [folder / name for name in (_CONFIG, _PREPROCESSOR)]
    return {path.name: file_hash(path) for path in paths if path.is_file()}


def _compare(card: EncoderCard, folder: Path, hashes: dict[str, str]) -> None:
    for name, sha256 in hashes.items():
        stated = card.files.get(name, "no hash")
        if stated != sha256:
            expected, found = f"sha256 {stated}, as {CARD} states", sha256
            raise DataError(folder / name, expected, found, "get the encoder again")


def _origin(card: EncoderCard | None, hashes: dict[str, str], path: Path) -> Origin:
    if len(hashes) == 1:
        (sha256,) = hashes.values()
    else:
        lines = "".join(f"{sha256}  {name}\n" for name, sha256 in sorted(hashes.items()))
        sha256 = hashlib.sha256(lines.encode()).hexdigest()
    if card is None:
        name = path.stem if path.is_file() else path.resolve().name
        return Origin(name, sha256, UNKNOWN, next(iter(hashes)), hashes)
    return Origin(card.name, sha256, card.licence, card.source, hashes)

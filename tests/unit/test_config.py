"""Configuration from layers: the last wins, types and keys are checked, errors name the layer."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from privasr_k2 import config
from privasr_k2.errors import ConfigError, DataError


@dataclass(frozen=True)
class Encoder:
    layers: int
    dims: list[int]


@dataclass(frozen=True)
class Training:
    lr: float
    epochs: int
    name: str
    average: bool
    encoder: Encoder
    beam: float | None

    def __post_init__(self) -> None:
        if self.lr <= 0:
            raise ValueError(f"lr must be above 0, got {self.lr}")


BASE = """
lr: 1e-3
epochs: 10
name: small
average: true
encoder: {layers: 4, dims: [256, 256]}
beam: null
"""


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return layer(tmp_path, "base.yaml", BASE)


def layer(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text)
    return folder / name


def test_the_last_layer_wins_value_by_value(base: Path, tmp_path: Path) -> None:
    more = layer(tmp_path, "more.yaml", "encoder: {layers: 8}\nepochs: 3\n")
    loaded = config.load(Training, [base, more], ["epochs=4", "encoder.dims=[1,2,3]"])
    assert loaded == Training(1e-3, 4, "small", True, Encoder(8, [1, 2, 3]), None)
    assert isinstance(loaded.encoder, Encoder)


@pytest.mark.parametrize(
    ("text", "value"), [("1e-5", 1e-5), ("1", 1.0), (".5", 0.5), ("2.5E+3", 2500.0)]
)
def test_floats_as_people_write_them(base: Path, tmp_path: Path, text: str, value: float) -> None:
    assert config.load(Training, [base], [f"lr={text}"]).lr == value
    assert config.load(Training, [base, layer(tmp_path, "lr.yaml", f"lr: {text}\n")]).lr == value


def test_an_empty_layer_changes_nothing(base: Path, tmp_path: Path) -> None:
    empty = layer(tmp_path, "empty.yaml", "# nothing yet\n")
    assert config.load(Training, [base, empty]) == config.load(Training, [base])


def test_the_result_is_frozen(base: Path) -> None:
    with pytest.raises(AttributeError):
        config.load(Training, [base]).lr = 1.0  # type: ignore[misc]


@pytest.mark.parametrize(
    ("override", "parts"),
    [
        ("epoch=3", ["--set epoch=3", "epoch", "'epochs'"]),
        ("encoder.layer=3", ["encoder.layer", "'layers'"]),
        ("unlike=3", ["take it out; keys are: ", " epochs ", " encoder"]),
        ("encoder.unlike=3", ["take it out; keys are: ", "layers"]),
        ("epochs=ten", ["Training.epochs", "ten"]),
        ("epochs=1.5", ["Training.epochs", "1.5"]),
        ("lr=fast", ["Training.lr", "fast"]),
        ("lr=-1", ["lr must be above 0, got -1"]),
        ("average=perhaps", ["Training.average", "perhaps"]),
        ("encoder.dims=3", ["encoder"]),
        ("encoder.dims=[a]", ["encoder"]),
        ("lr", ["key=value", "'lr'"]),
        ("encoder=[", ["--set encoder=["]),
        ("name=${oc.env:HOME}", ["--set name=", "plain values"]),
    ],
)
def test_a_wrong_value_is_one_error(base: Path, override: str, parts: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        config.load(Training, [base], [override])
    assert [part for part in parts if part not in str(caught.value)] == []


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("lr: [", "expected YAML"),
        ("- lr\n", "found a list"),
        ("just text\n", "'just text' not in"),
        ("lrr: 1\n", "'lr'"),
        ("encoder: 3\n", "int is not a subclass of Encoder"),
        ("name: ${lr}\n", "expected plain values"),
    ],
)
def test_a_wrong_layer_is_named(base: Path, tmp_path: Path, text: str, part: str) -> None:
    wrong = layer(tmp_path, "wrong.yaml", text)
    with pytest.raises(ConfigError, match=r"wrong\.yaml") as caught:
        config.load(Training, [base, wrong])
    assert part in str(caught.value)


def test_a_layer_that_is_not_there(base: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"gone\.yaml: expected a YAML file, found nothing"):
        config.load(Training, [base, tmp_path / "gone.yaml"])


def test_a_layer_that_is_not_utf8(base: Path, tmp_path: Path) -> None:
    (tmp_path / "latin.yaml").write_bytes(b"name: na\xefve\n")
    with pytest.raises(DataError, match=r"latin\.yaml:1: expected UTF-8"):
        config.load(Training, [base, tmp_path / "latin.yaml"])


def test_a_key_that_no_layer_gives(tmp_path: Path) -> None:
    short = layer(tmp_path, "short.yaml", BASE.replace("epochs: 10\n", ""))
    with pytest.raises(ConfigError, match="no value for epochs"):
        config.load(Training, [short])


def test_values_that_a_section_has_are_found_there() -> None:
    """Of a class that conf/ names; where the package stands without conf/, no section is named."""
    from privasr_k2.decoding.kaldi_lattices import KaldiLatticeConfig

    with pytest.raises(ConfigError, match=r"\(--config conf/common.yaml#kaldi_lattices\) or with"):
        config.load(KaldiLatticeConfig)
    with pytest.raises(ConfigError, match=r"give it in a YAML layer or with --set key=value"):
        config.load(Training)


def test_files_may_be_an_iterator(base: Path) -> None:
    with pytest.raises(ConfigError, match=r"base\.yaml \+ --set lr=-1"):
        config.load(Training, iter([base]), iter(["lr=-1"]))


def test_saved_configuration_loads_again(base: Path, tmp_path: Path) -> None:
    loaded: Any = config.load(Training, [base], ["beam=2"])
    config.save(loaded, tmp_path / "out" / "config.yaml")
    assert yaml.safe_load((tmp_path / "out" / "config.yaml").read_text())["encoder"]["layers"] == 4
    assert config.load(Training, [tmp_path / "out" / "config.yaml"]) == loaded

"""The preset of a work folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from privasr_k2.errors import ConfigError
from privasr_k2.recipe.presets import check_preset, preset_of, write_preset


def stamp(work: Path, name: str, *configs: str) -> None:
    path = work / "data/.stages" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    (work / ".stages").mkdir(exist_ok=True)
    path.write_text(json.dumps({"fingerprint": "0", "configs": [[path, "0"] for path in configs]}))


def test_another_preset_is_refused_by_name(tmp_path: Path) -> None:
    stamp(tmp_path, "manifests")
    write_preset(tmp_path, "tiny")
    check_preset(tmp_path, "tiny", given=True)
    with pytest.raises(ConfigError) as error:
        check_preset(tmp_path, "small", given=False)
    said = str(error.value)
    assert "found --preset small, the default" in said and "name it: --preset tiny" in said
    assert "--work-dir DIR" in said and f"echo small > {tmp_path}/.stages/preset" in said
    write_preset(tmp_path, "small")
    check_preset(tmp_path, "small", given=False)
    write_preset(tmp_path, "tiny")
    with pytest.raises(ConfigError, match="found --preset paper\n"):
        check_preset(tmp_path, "paper", given=True)


def test_a_folder_where_nothing_is_left_takes_any(tmp_path: Path) -> None:
    check_preset(tmp_path, "small", given=False)
    (tmp_path / ".stages").mkdir()
    write_preset(tmp_path, "tiny")
    check_preset(tmp_path, "small", given=False)


def test_a_folder_of_an_earlier_version_has_the_preset_of_its_stamps(tmp_path: Path) -> None:
    stamp(tmp_path, "manifests", "{root}/conf/common.yaml#features")
    assert preset_of(tmp_path) == ""  # small, or what does not depend on it: any goes on
    stamp(tmp_path, "lm", "{root}/conf/common.yaml#lm", "{root}/conf/presets/tiny.yaml#lm")
    assert preset_of(tmp_path) == "tiny"
    stamp(tmp_path, "am", "{root}/conf/presets/paper.yaml#am_ctc")
    assert preset_of(tmp_path) == ""  # of several
    (tmp_path / "data/.stages/am.json").write_text("{ damaged")
    (tmp_path / "data/.stages/x.json").write_text('{"configs": [1]}')
    assert preset_of(tmp_path) == "tiny"


def test_what_a_kill_interrupted_goes(tmp_path: Path) -> None:
    left = tmp_path / ".stages/.0a1b2c3d.tmp.preset"
    for said in ("tiny", "small"):  # the same, another
        write_preset(tmp_path, "tiny")
        left.write_text("ti")
        write_preset(tmp_path, said)
        assert not left.exists() and (tmp_path / ".stages/preset").read_text() == f"{said}\n"

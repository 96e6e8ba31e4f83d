"""Training and decoding end-to-end models from folders."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from privasr_k2 import config as configuration
from privasr_k2.am.checkpoints import continue_model, load_model, load_recognizer
from privasr_k2.am.kinds import kind_of, spec_of
from privasr_k2.am.model import AmConfig
from privasr_k2.am.train import train_am
from privasr_k2.errors import ConfigError, DataError
from privasr_k2.graph.lang import load_lang
from privasr_k2.scoring.hypotheses import read_decoded
from privasr_k2.scoring.nbest_lists import read_nbest
from privasr_k2.training.distributed import Process
from tests.support.conf import ROOT, section
from tests.support.end_to_end import END_TO_END, encoder, spelled_lang, speller, transducer
from tests.support.small_am import write_corpus

ALONE = Process(0, 1, torch.device("cpu"))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    feats, lang = write_corpus(tmp_path_factory.mktemp("e2e"), utterances=16)
    return feats, spelled_lang(lang)


def quick(kind: str, *changes: str) -> Any:
    files = [section(f"am_{kind}"), section(f"am_{kind}", "tiny")]
    shorter = ["epochs=12", "max_duration=4", "lr=0.01", "warmup_steps=2"]
    shorter += ["spec_augment.time_width=0"]
    found: AmConfig = configuration.load(kind_of(files).config, files, [*shorter, *changes])
    part: dict[str, Any] = {"speller": speller(dim=24, layers=1, attention=8)}
    if kind == "rnnt":
        part = {"transducer": transducer(dim=16, joint=16)}
    return replace(found, encoder=encoder("tdnn"), **part)


def losses(folder: Path) -> list[float]:
    records = [json.loads(line) for line in (folder / "train_log.jsonl").read_text().splitlines()]
    assert all(record["dev_token_errors"] >= 0 for record in records)
    return [record["dev_loss"] for record in records]


@pytest.mark.slow
@pytest.mark.parametrize("kind", END_TO_END)
def test_losses_fall_and_the_folder_is_decoded(kind, corpus, tmp_path):
    am = tmp_path / "am"
    train_am(*corpus, am, quick(kind), ALONE)
    found = losses(am)
    assert min(found) < 0.9 * found[0]
    model = load_recognizer(am)
    assert tuple(model.tokens or ()) == load_lang(corpus[1]).tokens
    command = (
        f"{sys.executable} -m privasr_k2.bin.decode --in-model {am} --in-feats {corpus[0]}"
        f" --out-hyps {tmp_path}/decode_dev/1.jsonl --out-nbest {tmp_path}/nbest_dev/1.jsonl"
        f" --device cpu --config {section('decode_e2e')} {section('decode_e2e', 'tiny')}"
    )
    done = subprocess.run(command.split(), capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    decoded, lists = read_decoded(tmp_path / "decode_dev"), read_nbest(tmp_path / "nbest_dev")
    assert len(decoded.utterances) == len(lists.lists) == 6
    assert [point.insertion_penalty for point in decoded.grid] == [-1.0, 0.0]
    for utterance, nbest in zip(decoded.utterances, lists.lists):
        best = tuple(nbest.hyps[0].words.split())
        assert utterance.id == nbest.id and utterance.hyps[decoded.grid[1]] == best
        scores = [hyp.am_score for hyp in nbest.hyps]
        assert scores == sorted(scores, reverse=True) and scores[0] <= 0


def test_the_same_again_and_further_from_there(corpus, tmp_path):
    short = quick("las", "epochs=1", "avg=1")
    train_am(*corpus, tmp_path / "one", short, ALONE)
    train_am(*corpus, tmp_path / "two", short, ALONE)
    one, two = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("one", "two"))
    assert one == two
    train_am(*corpus, tmp_path / "further", short, ALONE, init=tmp_path / "one")
    assert losses(tmp_path / "further")[0] < losses(tmp_path / "one")[0]
    first, further = (load_recognizer(tmp_path / name) for name in ("one", "further"))
    assert torch.equal(first.mean, further.mean)
    tokens = load_lang(corpus[1]).tokens
    larger = replace(short, speller=speller(dim=7, layers=1))
    for config, given, message in (
        (quick("rnnt"), tokens, "kind: rnnt, found las"),
        (short, ["<blk>", "x"], "the tokens of the lang folder"),
        (larger, tokens, "the weights of this model"),
    ):
        with pytest.raises(DataError, match=message):
            continue_model(tmp_path / "one", spec_of(config, 5, 5), given)
    message = r"outputs of CTC, found LasModel\s+way out: decode it with section decode_e2e"
    with pytest.raises(DataError, match=message):
        load_model(tmp_path / "one")


def test_kinds_are_checked():
    with pytest.raises(ConfigError, match="kind: one of ctc, ctc_attention, las, rnnt, whisper"):
        kind_of([section("decode")])
    for kind, change, message in (
        ("am_las", "kind=rnnt", "kind must be one of las"),
        (
            "am_ctc",
            "encoder.kind=pyramid",
            r"encoder\.kind must be one of blstm, conformer, tdnn, got",
        ),
    ):
        with pytest.raises(ConfigError, match=message):
            configuration.load(kind_of([section(kind)]).config, [section(kind)], [change])


def test_modules_need_no_k2():
    code = "import sys; sys.modules['k2'] = None; import privasr_k2.am.kinds"
    code += ", privasr_k2.decoding.end_to_end"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr

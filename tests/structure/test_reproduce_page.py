"""docs/reproduce.md: its estimate is what the script counts, and its commands do what they say."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from torch import nn

from benchmarks.paper_cost import (
    Assumed,
    Work,
    blstm_weights,
    char_lstm_weights,
    counted,
    resolved,
    table,
    talking_devices,
    transformer_weights,
)
from privasr_k2.corpora.base import CorpusInput
from privasr_k2.corpora.data_dir import read
from privasr_k2.federated.fmp_timeline import Occasion
from privasr_k2.federated.train import paper_epsilon
from privasr_k2.recipe.front import declare
from tests.support import small_lm, trees
from tests.support.pages import commands
from tests.support.shell_files import ROOT
from tests.support.small_am import tiny_model

PAGE = ROOT / "docs/reproduce.md"


def blocks() -> list[str]:
    return re.findall(r"```bash\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def text_of_page() -> str:
    return PAGE.read_text(encoding="utf-8")


def matrices(model: nn.Module, *without: str) -> int:
    """Weights that meet every position: all but biases, norms, and vectors that are looked up."""
    named = model.named_parameters()
    return sum(p.numel() for name, p in named if p.dim() > 1 and not name.startswith(without))


def test_the_table_is_what_the_script_counts() -> None:
    assert table(Assumed()) in text_of_page()


def test_other_figures_of_the_page() -> None:
    exponent, figures = resolved("fedlm", "clients", "exponent"), []
    for utterances in (166_000, 63_000):
        figures.append(f"{talking_devices(utterances, 10_000, exponent):,.0f}")
    for noise in (0.2, 0.5, 1.5):
        found = paper_epsilon(noise, 1e-5)
        assert found.pld is not None
        digits = 2 if noise == 1.5 else 1
        figures += [f"{found.rdp:.{digits}f}", f"{found.pld:.{digits}f}"]
    assert [figure for figure in figures if figure not in text_of_page()] == []


def test_weights_of_the_blstm_are_those_of_the_model() -> None:
    """Without right context; with it, those of the LSTM layers are met once more in part."""
    model = tiny_model("blstm")
    sizes = {"dim": 6, "layers": 2, "chunk": 0, "right_context": 0}
    tokens = model.output.out_channels
    assert blstm_weights(sizes, 5, tokens) == matrices(model)
    recurrent = matrices(model.encoder.layers)
    chunked = blstm_weights({**sizes, "chunk": 4, "right_context": 2}, 5, tokens)
    assert chunked == matrices(model) + recurrent / 2


@pytest.mark.parametrize("kind", ["char_lstm", "transformer"])
def test_weights_of_the_language_models_are_those_of_the_models(kind: str) -> None:
    model, vocabulary = small_lm.tiny(kind)
    sizes = vars(small_lm.settings(kind).network)
    if kind == "transformer":
        assert transformer_weights(sizes, len(vocabulary)) == matrices(model, "embedding")
        return
    letters, widths = 9, sizes["widths"]
    own = matrices(model, "character", "convolutions")
    weights = [c.weight.numel() for c in model.convolutions]  # type: ignore[union-attr]
    spelled = sum(n * (letters - w + 1) for n, w in zip(weights, widths, strict=True))
    assert char_lstm_weights(sizes, len(vocabulary), letters) == own + spelled


def test_hours_are_operations_and_steps_by_the_speeds() -> None:
    work = Work("x", "both", units=1, flop=7.2e16, steps=1.2e8)
    assert work.hours(Assumed(tflops=20, microseconds=30)) == pytest.approx(1 + 1)
    assert work.hours(Assumed(tflops=40, microseconds=60)) == pytest.approx(0.5 + 2)
    more = {w.what: w.flop for w in counted(Assumed(hours=160))}
    less = {w.what: w.flop for w in counted(Assumed(hours=80))}
    ratios = {what: more[what] / less[what] for what in less}
    assert ratios.pop("LC-BLSTM") == pytest.approx(2) and set(ratios.values()) == {1.0}


#: Meeting, headset and person of Kaldi's names of AMI, by part; a person is in two meetings.
SAID = {
    "train": [("ES2002a", "H00", "MEE006"), ("ES2002b", "H00", "MEE006")],
    "dev": [("IS1008a", "H01", "FIE038")],
    "eval": [("EN2002a", "H00", "MEE071"), ("EN2002a", "H01", "FEO072"),
             ("EN2002b", "H03", "MEE071"), ("EN2002b", "H01", "FEO072")],
}  # fmt: skip


def kaldi_ami(root: Path) -> None:
    """Data directories as stage 2 of Kaldi's recipe makes them: two segments of each headset."""
    for part, said in SAID.items():
        folder, tables = root / f"data/ihm/{part}_orig", {n: [] for n in ("text", "segments")}
        speakers, audio = [], []
        for meeting, headset, person in said:
            wav = trees.noise(root / f"wav/{meeting}.{headset}.wav", 2.0, file_format="WAV")
            side = f"AMI_{meeting}_{headset}"
            audio.append(f"{side} sox -c 1 -t wavpcm -s {wav} -t wavpcm - |")
            for start, end in ((0, 90), (100, 190)):
                name = f"{side}_{person}_{start:07}_{end:07}"
                tables["text"].append(f"{name} HELLO WORLD")
                tables["segments"].append(f"{name} {side} {start / 100} {end / 100} ")
                speakers.append(f"{name} {side}_{person}")
        for file, content in {**tables, "utt2spk": speakers, "wav.scp": audio}.items():
            trees.lines(folder / file, *sorted(content))


def test_the_copy_of_kaldis_ami_has_meetings_and_persons(tmp_path: Path) -> None:
    kaldi_ami(tmp_path)
    [script] = [block for block in blocks() if "_orig" in block]
    subprocess.run(["bash", "-euc", script], cwd=tmp_path, check=True)
    cuts = read(CorpusInput(tmp_path / "ami_ihm", tmp_path / "out", {}, (), num_jobs=1))
    assert {role: len(of_role) for role, of_role in cuts.items()} == {
        "train": 4,
        "dev": 2,
        "test": 8,
    }
    occasions = [
        Occasion(
            c.id, c.supervisions[0].speaker, c.recording_id, "", "test", c.start, "hello world"
        )
        for c in cuts["test"]
    ]
    assert {o.client("prefix") for o in occasions} == {"EN2002a", "EN2002b"}
    assert len({o.client("meeting_speaker") for o in occasions}) == len(SAID["eval"])
    assert {o.speaker for o in occasions} == {"MEE071", "FEO072"}
    assert {c.supervisions[0].speaker for c in cuts["train"]} == {"MEE006"}


@pytest.mark.parametrize("block", [b for b in blocks() if "run.sh" in b])
def test_every_command_declares_its_stages(block: str, tmp_path: Path) -> None:
    """Of corpora of ``egs/`` and of the copy, whose folder is made here."""
    (tmp_path / "ami_ihm").mkdir()
    for corpus, recipe, *words in commands(block):
        made = declare(corpus, recipe, [w.strip("'") for w in words], ROOT, tmp_path)
        assert made.preset == "paper" and len(made.stages) > 5, (corpus, recipe)

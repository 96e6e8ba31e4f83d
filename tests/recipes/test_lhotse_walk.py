"""The walk of docs/fedlm.md: manifests by lhotse's own recipe get a federated language model."""

from __future__ import annotations

import re
import shlex
import shutil
from collections import defaultdict
from pathlib import Path

import pytest
import soundfile

from privasr_k2.data.manifests import load_cuts
from privasr_k2.privacy.ledger import Ledger
from tests.support.recipe_tools import EXP, ROOT, recipe
from tests.support.verbs import run

pytestmark = [pytest.mark.k2, pytest.mark.recipe]
#: The roles as parts of LibriSpeech, whose layout lhotse's recipe reads.
PARTS = {
    "train": "train-clean-5", "adapt": "train-other-500", "dev": "dev-clean", "test": "test-clean",
}  # fmt: skip


def walk() -> list[str]:
    """The commands of the page, a line each."""
    page = (ROOT / "docs/fedlm.md").read_text(encoding="utf-8")
    section = page.partition("## lhotse manifests\n")[2].partition("\n## ")[0]
    block = re.findall(r"```bash\n(.*?)```", section, re.DOTALL)[0]
    assert block.count("\n") <= 15
    return block.replace("\\\n", " ").splitlines()


def write_manifests(work: Path, folder: Path) -> None:
    """Cuts that lhotse makes of the tiny corpus in the layout of LibriSpeech."""
    from lhotse import CutSet
    from lhotse.recipes import prepare_librispeech

    raw, speakers = folder / "LibriSpeech", dict[str, int]()
    for role, part in PARTS.items():
        said = defaultdict(list)
        for cut in load_cuts(work / "data/manifests", role):
            [supervision] = cut.supervisions
            speaker = speakers.setdefault(supervision.speaker, 100 + len(speakers))
            chapter = raw / part / str(speaker) / "1"
            chapter.mkdir(parents=True, exist_ok=True)
            name = f"{speaker}-1-{len(said[chapter]):04d}"
            soundfile.write(chapter / f"{name}.flac", cut.load_audio()[0], cut.sampling_rate)
            said[chapter].append(f"{name} {supervision.text.upper()}\n")
        for chapter, lines in said.items():
            name = f"{chapter.parent.name}-1.trans.txt"
            (chapter / name).write_text("".join(lines), encoding="utf-8")
    made = prepare_librispeech(raw, dataset_parts=[*PARTS.values()])
    for role, part in PARTS.items():
        cuts = CutSet.from_manifests(**made[part])
        cuts.to_file(folder / f"cuts_{role}.jsonl.gz")


def test_the_walk(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_manifests(finished, tmp_path)
    make, folder, train, *privasr = walk()
    # Not egs/mini, whose preset would then be tiny: other pages run `./run.sh mini ctc` there.
    assert (
        folder == f"M={make.split('--work-dir ')[1]}/data/manifests" != "M=egs/mini/data/manifests"
    )
    assert len(privasr) == 2
    # A model that is there, as training one takes a minute.
    run("export --in-model", finished / EXP / "am", "--out-torchscript am.pt")
    shutil.copy(finished / "data/lang_phone/tokens.txt", tmp_path)
    words = shlex.split(train.replace("$M", str(tmp_path)).removeprefix("./run.sh "))
    work = tmp_path / "egs/user/mine"
    given = ["--work-dir", work, "--am-model", "am.pt", "--am-tokens", "tokens.txt"]
    text = recipe(shlex.join(words), *given)
    assert "| FL-finetuned NNLM (all utts, noise 0.5)" in text
    for command in privasr:
        run(command.removeprefix("privasr ").replace("fedlm_tdnn_phone", "fedlm_am_phone"))
    [entry] = Ledger(work / "privacy/ledger.json").entries()
    assert (entry.spending.data, entry.spending.unit) == ("mine/adapt", "speaker")
    assert {"model.safetensors", "README.md", "privacy.json"} <= {
        path.name for path in (tmp_path / "adapted_lm").iterdir()
    }  # fmt: skip

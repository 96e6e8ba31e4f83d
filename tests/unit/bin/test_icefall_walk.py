"""The walk of docs/export.md: an icefall experiment gets a class graph with a user's contacts."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.support.icefall_files import write_lang
from tests.support.verbs import call, refused

k2 = pytest.importorskip("k2")
pytestmark = pytest.mark.k2
RENAMED = {"import": "import_external"}
PIECES = ("<blk>", "<sos/eos>", "<unk>", "▁C", "ALL", "▁AN", "N", "▁BOB", "▁LE", "E", "A", "▁ME")
SPELLED = "CALL ▁C ALL\nANN ▁AN N\nBOB ▁BOB\nLEE ▁LE E\nLEA ▁LE A\nME ▁ME\n"
SIL_PHONES = "ANN AE1 N\nBOB B AA1 B\nCALL K AO1 L\nLEE L IY1\nLEA L IY0\nME M IY1\n"
TAGGED = ["CALL <PER>", "<PER> CALL ME", "CALL ME", "CALL <PER>"] * 4


def walk(repo_root: Path) -> list[list[str]]:
    """The commands of the page's last block, as verbs with their flags."""
    page = (repo_root / "docs/export.md").read_text(encoding="utf-8")
    block = re.findall(r"```bash\n(.*?)```", page, flags=re.DOTALL)[-1]
    assert block.count("\n") <= 15
    lines = block.replace("\\\n", " ").splitlines()
    found = []
    for line in lines:
        assert line.startswith("privasr ")
        words = shlex.split(line)[1:]
        words = words[1:] if words[0] == "verb" else words
        words = [str(repo_root / w) if w.startswith("conf/") else w for w in words]
        found.append([RENAMED.get(words[0], words[0]), *words[1:]])
    return found


def recognized(folder: Path, spoken: list[str]) -> list[str]:
    """What k2 alone finds for tokens with blanks between them, as icefall's scripts decode."""
    HLG = k2.Fsa.from_dict(torch.load(str(folder / "HLG.pt"), weights_only=False))
    tokens = k2.SymbolTable.from_file(str(folder / "tokens.txt"))
    words = k2.SymbolTable.from_file(str(folder / "words.txt"))
    ids = [n for token in spoken for n in (0, tokens[token])] + [0]
    log_probs = np.full((len(ids), len(tokens.symbols)), -8.0, dtype=np.float32)
    log_probs[np.arange(len(ids)), ids] = -0.01
    segments = torch.tensor([[0, 0, len(ids)]], dtype=torch.int32)
    dense = k2.DenseFsaVec(torch.from_numpy(log_probs)[None], segments)
    lattice = k2.intersect_dense_pruned(HLG, dense, 30.0, 10.0, 30, 10_000)
    best = k2.shortest_path(lattice, use_double_scores=True)
    return [words[n] for n in best.aux_labels.remove_values_leq(0).values.tolist()]


@pytest.mark.parametrize("kind", ["bpe", "phone"])
def test_the_walk(
    tmp_path: Path, repo_root: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.chdir(tmp_path)
    theirs = tmp_path / "theirs/data/lang_bpe_500"
    if kind == "bpe":
        write_lang(theirs, SPELLED, tokens=PIECES, silence=None, special=())
    else:
        write_lang(theirs, SIL_PHONES)
    Path("tagged.txt").write_text("".join(f"{line}\n" for line in TAGGED))
    for name, names in (("lists", "Ann\nBob\n"), ("contacts", "Lee\nLea\n")):
        Path(name).mkdir()
        Path(name, "per.txt").write_text(names)
    for verb, *flags in walk(repo_root):
        call(verb, *flags)
    user = tmp_path / "theirs/data/lang_user"
    if kind == "bpe":
        assert recognized(user, ["▁C", "ALL", "▁LE", "A"]) == ["CALL", "LEA"]
        assert recognized(user, ["▁LE", "E", "▁C", "ALL", "▁ME"]) == ["LEE", "CALL", "ME"]
    else:  # with silence in front, between words and at the end of a name, and without
        name, call_me = ["L", "IY0"], ["K", "AO1", "L", "M", "IY1"]
        assert recognized(user, [*name, *call_me]) == ["LEA", "CALL", "ME"]
        spoken = ["SIL", *name, "SIL", *call_me, "SIL"]
        assert recognized(user, spoken) == ["LEA", "CALL", "ME"]
        assert recognized(user, ["K", "AO1", "L", "SIL", *name, "SIL"]) == ["CALL", "LEA"]
    Path("contacts/per.txt").write_text("Zoe\n")
    verb, *flags = next(words for words in walk(repo_root) if words[0] == "replace_names")
    with refused("contacts/per.txt"):
        call(verb, *flags)

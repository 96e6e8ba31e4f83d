"""icefall's lang folders become language folders; others are refused."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
import torch

from privasr_k2.errors import DataError, GraphError
from privasr_k2.graph.icefall_lang import import_icefall_lang
from privasr_k2.graph.lang import Silence, load_lang
from tests.support.icefall_files import PHONES, entries_of, write_lang
from tests.support.verbs import call, refused

pytest.importorskip("k2")
pytestmark = pytest.mark.k2
PIECES = ("<blk>", "<sos/eos>", "<unk>", "▁A", "▁B", "C", "▁")
SPELLED = "AC ▁A C\nB ▁B\nBC ▁B C\nBEE ▁B\n<UNK> ▁ <unk>\n"


def test_phones_keep_numbers_and_silence(tmp_path: Path) -> None:
    write_lang(tmp_path / "phone", silence=0.3)
    call(f"import_external --raw-icefall-lang {tmp_path}/phone --out-lang {tmp_path}/lang")
    lang = load_lang(tmp_path / "lang")
    theirs = [line.split()[0] for line in (tmp_path / "phone/tokens.txt").open()]
    assert lang.tokens == ("<blk>", *theirs[1 : theirs.index("#0")])
    words = [line.split()[0] for line in (tmp_path / "phone/words.txt").open()]
    assert [*lang.words, "<s>", "</s>"] == words
    assert lang.pronunciations[3:] == tuple(entries_of(PHONES))
    assert lang.silence == Silence("SIL", 0.3)


@pytest.mark.parametrize("kept", ["lexicon.txt", "lexicon_disambig.txt", "L.pt", "L_disambig.pt"])
def test_every_file_tells_the_lexicon(tmp_path: Path, kept: str) -> None:
    for name, silence in (("phone", 0.5), ("bpe", None)):
        options = {} if silence else {"tokens": PIECES, "special": ()}
        write_lang(tmp_path / name, PHONES if silence else SPELLED, silence=silence, **options)
        for path in [*(tmp_path / name).glob("lexicon*.txt"), *(tmp_path / name).glob("L*.pt")]:
            if path.name != kept and (silence is None or path.suffix == ".txt" or "L" in kept):
                path.unlink()
        import_icefall_lang(tmp_path / name, tmp_path / f"{name}_lang")
        lang = load_lang(tmp_path / f"{name}_lang")
        expected = entries_of(PHONES if silence else SPELLED)
        assert [entry for entry in lang.pronunciations if entry in expected] == expected
        assert (lang.silence is None) == (silence is None)


def test_pieces(tmp_path: Path) -> None:
    write_lang(tmp_path / "bpe", SPELLED, tokens=PIECES, silence=None, special=())
    (tmp_path / "bpe/bpe.model").write_bytes(b"pieces")
    info = import_icefall_lang(tmp_path / "bpe", tmp_path / "lang")
    assert (info["units"], info["num_words"]) == ("bpe_7", 5) and "silence" not in info
    assert load_lang(tmp_path / "lang").tokens == PIECES
    assert (tmp_path / "lang/bpe.model").read_bytes() == b"pieces"


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("tokens.txt", "<eps>", "SOS", "tokens.txt: expected <blk> or <eps> as number 0"),
        ("tokens.txt", "#0 12\n#1 13\n#2 14\n", "", "disambiguation symbols #0 #1 ... behind"),
        ("tokens.txt", "#1 13\n", "ZH 13\n", "found #0 ZH #2"),
        ("tokens.txt", "SPN 11\n", "SPN 12\n", "tokens.txt:12: expected 'SYMBOL 11'"),
        (
            "words.txt",
            "#0 10\n<s> 11\n</s> 12\n",
            "",
            "behind the words #0 <s> </s>, found <eps> ...",
        ),
        ("words.txt", "BOB", "ROB", "lexicon.txt:5: expected words of words.txt"),
        ("lexicon.txt", "K AO1 L", "K OW L", "found the token 'OW'"),
        ("lexicon.txt", "BOB B AA1 B", "BOB B AA1 N", "the entries of lexicon.txt, found"),
        ("lexicon.txt", "BOB B AA1 B", "BOB", "a word and its tokens"),
    ],
)
def test_symbols_that_do_not_fit(
    tmp_path: Path, name: str, old: str, new: str, message: str
) -> None:
    edit(write_lang(tmp_path / "phone") / name, old, new)
    with refused(message):
        call(f"import_external --raw-icefall-lang {tmp_path}/phone --out-lang {tmp_path}/lang")
    assert not (tmp_path / "lang").exists()


def test_lexicons_that_are_damaged_or_foreign(tmp_path: Path) -> None:
    phone = write_lang(tmp_path / "phone")
    shutil.copytree(phone, tmp_path / "whole")

    def refuse(error: type[Exception], message: str) -> None:
        with pytest.raises(error, match=message):
            import_icefall_lang(phone, tmp_path / "lang")
        assert not (tmp_path / "lang").exists()

    data = (phone / "L.pt").read_bytes()
    (phone / "L.pt").write_bytes(data[: len(data) // 2])
    refuse(DataError, r"L\.pt: expected a checkpoint of tensors")
    torch.save({"arcs": torch.zeros(3)}, str(phone / "L.pt"))
    refuse(DataError, r"L\.pt: expected one automaton .* a vector of automata")
    other = write_lang(tmp_path / "other", "ANN AE1 N\n" * 2 + "BOB B AA1\nCY K L IY1 AO0 AO1\n")
    shutil.copy(other / "L.pt", phone / "L.pt")
    refuse(GraphError, r"L\.pt: expected the entries of lexicon.txt")
    (phone / "L.pt").unlink()
    (phone / "L_disambig.pt").unlink()
    refuse(GraphError, "L.pt or L_disambig.pt, which tell whether SIL")
    (phone / "lexicon.txt").unlink()
    (phone / "lexicon_disambig.txt").unlink()
    refuse(GraphError, "expected one of lexicon.txt lexicon_disambig.txt L.pt L_disambig.pt")


class Harmful:
    """Makes a folder when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


def test_no_code_is_run(tmp_path: Path) -> None:
    phone = write_lang(tmp_path / "phone")
    torch.save({"arcs": Harmful(tmp_path / "run")}, str(phone / "L.pt"))
    with pytest.raises(DataError, match=r"a pickle with code: posix\.mkdir"):
        import_icefall_lang(phone, tmp_path / "lang")
    assert not (tmp_path / "run").exists()

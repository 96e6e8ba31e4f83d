"""Bad files of other tools give one error by ``privasr import``: nothing is run, nothing written.

Truncated, of another kind, with another symbol table, or a pickle that would run code. What single
formats refuse besides stands with the tests of their readers.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from privasr_k2.fileio import write_text
from privasr_k2.graph.icefall_lang import import_icefall_lang
from privasr_k2.graph.lang import load_lang
from tests.support.bad_encoders import Harmful, privasr
from tests.support.conf import section
from tests.support.icefall_files import PHONES, write_lang
from tests.support.icefall_models import AsrModel, write_export
from tests.support.kaldi_lattices import TEXT, write_gz
from tests.support.kaldi_models import HCLG, chain_model

pytestmark = pytest.mark.reliability
TOKENS = "<blk> 0\n<sos/eos> 1\na 2\nb 3\n"


def half(path: Path) -> None:
    """The first half of the file."""
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def empty(path: Path) -> None:
    """A file of no bytes."""
    path.write_bytes(b"")


def text(path: Path) -> None:
    """A file of words."""
    path.write_text("hello, this is a text\n")


def code(path: Path) -> None:
    """A pickle that makes the folder ``run`` beside it."""
    torch.save({"model": Harmful(path.parent / "run")}, str(path))


DAMAGES = [half, empty, text, code]
by_name = pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)


def refuse(folder: Path, capfd: pytest.CaptureFixture[str], name: str, *words: object) -> str:
    """The one error of an import, which names the file and leaves nothing."""
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    capfd.readouterr()
    assert privasr("import", *words) == 2
    message = capfd.readouterr().err
    assert message.count("error: ") == 1 and "Traceback" not in message, message
    parts = re.search(r"error: (.*): expected .*, found .*\n  way out: \S", message, re.DOTALL)
    assert parts and name in parts[1], message
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    assert not (folder / "run").exists()
    return message


def model_flags(folder: Path, name: str) -> list[object]:
    write_text(folder / "tokens.txt", TOKENS)
    tokens = folder / "tokens.txt"
    return ["--raw-model", folder / name, "--raw-tokens", tokens, "--out-dir", folder / "am"]


@by_name
@pytest.mark.parametrize("name", ["model.pt", "model.onnx"])
def test_models(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], damage: Callable[[Path], None], name: str
) -> None:
    if name == "model.onnx":
        pytest.importorskip("onnxruntime")
        pytest.importorskip("onnx")
    write_export(tmp_path / name, AsrModel(), "onnx" if name == "model.onnx" else "zipformer")
    damage(tmp_path / name)
    refuse(tmp_path, capfd, name, *model_flags(tmp_path, name))


class OneInput(nn.Module):
    """As speech models of other projects: of samples alone."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.log_softmax(dim=-1)


def test_onnx_of_another_signature_and_with_other_tokens(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    script = torch.jit.trace(OneInput(), torch.zeros(1, 9, 4))
    names = {"input_names": ["samples"], "output_names": ["log_probs"]}
    dynamo = {} if torch.__version__.startswith("1.") else {"dynamo": False}
    torch.onnx.export(script, torch.zeros(1, 9, 4), str(tmp_path / "m.onnx"), **names, **dynamo)
    message = refuse(tmp_path, capfd, "m.onnx", *model_flags(tmp_path, "m.onnx"))
    assert "found inputs ['samples'], outputs ['log_probs']" in message
    write_export(tmp_path / "m.onnx", AsrModel(num_tokens=5), "onnx")
    message = refuse(tmp_path, capfd, "tokens.txt", *model_flags(tmp_path, "m.onnx"))
    assert "expected 5 tokens, the outputs of" in message


@by_name
@pytest.mark.k2
def test_graphs_of_icefall(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], damage: Callable[[Path], None]
) -> None:
    pytest.importorskip("k2")
    phone = write_lang(tmp_path / "phone")
    import_icefall_lang(phone, tmp_path / "lang")
    shutil.copy(phone / "L_disambig.pt", tmp_path / "HLG.pt")
    damage(tmp_path / "HLG.pt")
    flags = ["--raw-hlg", tmp_path / "HLG.pt", "--in-lang", tmp_path / "lang"]
    message = refuse(tmp_path, capfd, "HLG.pt", *flags, "--out-graph", tmp_path / "graph")
    assert damage is not code or "a pickle with code: posix.mkdir" in message


@by_name
@pytest.mark.k2
@pytest.mark.parametrize("name", ["L.pt", "L_disambig.pt", "tokens.txt", "words.txt"])
def test_lang_folders_of_icefall(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], damage: Callable[[Path], None], name: str
) -> None:
    pytest.importorskip("k2")
    phone = write_lang(tmp_path / "phone")
    for other in {"L.pt", "L_disambig.pt"} - {name}:
        (phone / other).unlink()
    if name.endswith(".txt"):
        write_lang(tmp_path / "again")
        shutil.copy(tmp_path / "again/L.pt", phone)
    damage(phone / name)
    lang = tmp_path / "lang"
    refuse(tmp_path, capfd, name, "--raw-icefall-lang", phone, "--out-lang", lang)


@pytest.mark.k2
def test_the_words_of_another_graph(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The same tokens, fewer words."""
    pytest.importorskip("k2")
    from privasr_k2.graph.grammar import grammar
    from privasr_k2.lm.ngram import count_ngrams, estimate
    from tests.support.icefall_files import compile_hlg

    phone = write_lang(tmp_path / "phone")
    import_icefall_lang(phone, tmp_path / "whole")
    lang = load_lang(tmp_path / "whole")
    words = ["ANN", "BOB", "CALL", "LEA", "LEAN", "LEE"]
    model = estimate(count_ngrams([words], words, order=1), "witten_bell")
    G = grammar(model, lang.word_ids, backoff_label=len(lang.words) - 1, place="G").to_openfst()
    torch.save(compile_hlg(phone, G).as_dict(), str(tmp_path / "HLG.pt"))
    fewer = "".join(line for line in PHONES.splitlines(keepends=True) if "LEE" not in line)
    write_lang(tmp_path / "fewer", fewer)
    import_icefall_lang(tmp_path / "fewer", tmp_path / "lang")
    assert load_lang(tmp_path / "lang").tokens == lang.tokens
    flags = ["--raw-hlg", tmp_path / "HLG.pt", "--in-lang", tmp_path / "lang"]
    message = refuse(tmp_path, capfd, "HLG.pt", *flags, "--out-graph", tmp_path / "graph")
    assert "words" in message


@by_name
def test_lattices_of_kaldi(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], damage: Callable[[Path], None]
) -> None:
    write_gz(tmp_path / "lat.1.gz", TEXT.encode())
    write_text(tmp_path / "words.txt", "<eps> 0\na 1\nb 2\n")
    damage(tmp_path / "lat.1.gz")
    flags = ["--raw-lattices", tmp_path / "lat.1.gz", "--raw-words", tmp_path / "words.txt"]
    out = ["--out-nbest", tmp_path / "nbest/1.jsonl", "--config", section("kaldi_lattices")]
    refuse(tmp_path, capfd, "lat.1.gz", *flags, *out)


def kaldi_flags(folder: Path) -> list[object]:
    """Scores, HCLG.fst, words.txt and final.mdl, all sound."""
    kaldi_native_io, kaldifst = map(pytest.importorskip, ("kaldi_native_io", "kaldifst"))
    pytest.importorskip("kaldi_decoder")
    with kaldi_native_io.FloatMatrixWriter(f"ark:{folder / 'scores.ark'}") as writer:
        writer.write("u1", np.zeros((6, 4), np.float32))
    kaldifst.StdConstFst(kaldifst.compile(HCLG)).write(str(folder / "HCLG.fst"))
    write_text(folder / "words.txt", "<eps> 0\nA 1\nB 2\n#0 3\n")
    (folder / "final.mdl").write_bytes(chain_model())
    files = {"scores": "scores.ark", "graph": "HCLG.fst", "words": "words.txt",
             "transitions": "final.mdl"}  # fmt: skip
    given = [word for flag, name in files.items() for word in (f"--raw-{flag}", folder / name)]
    layers = ["--config", section("kaldi_lattices"), section("kaldi_scores")]
    return [*given, "--out-nbest", folder / "nbest/1.jsonl", *layers]


@by_name
@pytest.mark.parametrize("name", ["scores.ark", "HCLG.fst", "words.txt", "final.mdl"])
def test_a_first_pass_of_kaldi(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], damage: Callable[[Path], None], name: str
) -> None:
    flags = kaldi_flags(tmp_path)
    damage(tmp_path / name)
    refuse(tmp_path, capfd, name, *flags)


def test_the_words_of_another_hclg(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    flags = kaldi_flags(tmp_path)
    write_text(tmp_path / "words.txt", "<eps> 0\nA 1\n#0 9\n")
    message = refuse(tmp_path, capfd, "HCLG.fst", *flags)
    assert f"expected words of {tmp_path}/words.txt, which has 3, found the word 2" in message

"""Log-likelihoods of Kaldi in a graph: transition models, archives, and the search."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privasr_k2 import config as configs
from privasr_k2.decoding.kaldi_models import read_pdfs
from privasr_k2.decoding.kaldi_scores import ScoresConfig, ScoreSearch, read_scores, with_pdfs
from privasr_k2.errors import DataError, GraphError
from privasr_k2.fileio import write_text
from privasr_k2.graph.kaldi_files import read_fst, read_table
from privasr_k2.graph.openfst import Fst
from privasr_k2.scoring.nbest_lists import read_nbest
from tests.support.conf import section
from tests.support.kaldi_models import HCLG, HMM_PDFS, HMM_TEXT, PDFS, chain_model
from tests.support.verbs import call, refused

WORDS = "<eps> 0\nA 1\nB 2\n#0 3\n#nonterm:x 7\n"


@pytest.mark.parametrize(
    ("content", "pdfs"), [(chain_model(), PDFS), (HMM_TEXT.encode(), HMM_PDFS)]
)
def test_transition_models(content: bytes, pdfs: list[int], tmp_path: Path) -> None:
    path = tmp_path / "final.mdl"
    path.write_bytes(content)
    assert read_pdfs(path).tolist() == pdfs
    # Up to the end of the tuples no cut goes unseen.
    end = max(content.find(b"</Tuples>"), content.find(b"</Triples>"))
    for size in range(0, end, 3):
        path.write_bytes(content[:size])
        with pytest.raises(DataError, match="a Kaldi model that begins"):
            read_pdfs(path)


@pytest.mark.parametrize("content", [b"\0B<Nnet3> ", b"hello", b"\0B<TransitionModel> \1\2"])
def test_what_is_no_model(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "final.mdl"
    path.write_bytes(content)
    with pytest.raises(DataError, match="a Kaldi model that begins with a transition model"):
        read_pdfs(path)


def test_transition_models_of_another_implementation(tmp_path: Path) -> None:
    """Tuples, arcs and pdfs of kaldi-hmm-gmm, which is built from Kaldi's own source."""
    khg = pytest.importorskip("kaldi_hmm_gmm")
    topology = khg.HmmTopology()
    topology.read(HMM_TEXT.split("<TransitionModel>\n")[1].split("<Triples>")[0])
    tree = khg.monophone_context_dependency([1, 2, 3], [0, 1, 2, 2])
    model = khg.TransitionModel(tree, topology)
    rows = [" ".join(re.findall(r"=(\d+)", str(one))[:3]) for one in model.tuples]
    text = HMM_TEXT.split("<Triples>")[0] + f"<Triples> {len(rows)}\n" + "\n".join(rows)
    write_text(tmp_path / "final.mdl", text + "\n</Triples>\n<LogProbs>\n")
    wanted = [model.transition_id_to_pdf(n) for n in range(1, model.num_transition_ids + 1)]
    assert read_pdfs(tmp_path / "final.mdl").tolist() == [-1, *wanted] and len(wanted) > 8


def write_scores(path: Path, matrices: dict[str, np.ndarray], kind: str = "Float") -> Path:
    kaldi_native_io = pytest.importorskip("kaldi_native_io")
    with getattr(kaldi_native_io, f"{kind}MatrixWriter")(
        f"ark,scp:{path},{path.with_suffix('.scp')}"
    ) as writer:
        for name, matrix in matrices.items():
            more = (kaldi_native_io.CompressionMethod.kAutomaticMethod,)
            writer.write(name, matrix, *(more if kind == "Compressed" else ()))
    return path


MATRICES = {name: np.random.default_rng(n).normal(-3, 2, (5 + n, 4)).astype(np.float32)
            for n, name in enumerate(("u1", "u2"))}  # fmt: skip


@pytest.mark.parametrize("kind", ["Float", "Double", "Compressed"])
def test_archives(kind: str, tmp_path: Path) -> None:
    given = {name: matrix.astype(np.float64) for name, matrix in MATRICES.items()}
    given = given if kind == "Double" else MATRICES
    path = write_scores(tmp_path / "scores.ark", given, kind)
    for source in (path, path.with_suffix(".scp")):
        found = dict(read_scores([source]))
        assert found.keys() == MATRICES.keys()
        for name, matrix in found.items():
            np.testing.assert_allclose(matrix, MATRICES[name], atol=0.1)
    data = path.read_bytes()
    for size in (len(data) - 1, len(data) - 30, len(data) // 2, 10, 0):
        path.write_bytes(data[:size])
        with pytest.raises(DataError, match=r"Kaldi archive of float matrices|a whole archive"):
            list(read_scores([path]))


def test_what_is_no_archive(tmp_path: Path) -> None:
    kaldi_native_io = pytest.importorskip("kaldi_native_io")
    path = tmp_path / "scores.ark"
    with kaldi_native_io.Int32VectorWriter(f"ark:{path}") as writer:
        writer.write("u1", [1, 2])
    with pytest.raises(DataError, match="another table"):
        list(read_scores([path]))
    path.write_text("u1  [\n 1 2\n 3 4 ]\n")
    assert [matrix.tolist() for _, matrix in read_scores([path])] == [[[1, 2], [3, 4]]]
    path.write_text("u1  [\n 1 2\n 3 4 ]\nu2  [\n 1 2\n")
    with pytest.raises(DataError, match="a whole archive"):
        list(read_scores([path]))
    write_scores(path, MATRICES)
    with pytest.raises(DataError, match="u1 again"):
        list(read_scores([path, path.with_suffix(".scp")]))


def graph(tmp_path: Path) -> Path:
    kaldifst = pytest.importorskip("kaldifst")
    path = tmp_path / "HCLG.fst"
    assert kaldifst.StdConstFst(kaldifst.compile(HCLG)).write(str(path))
    write_text(tmp_path / "words.txt", WORDS)
    (tmp_path / "final.mdl").write_bytes(chain_model())
    return path


def settings(**values: Any) -> ScoresConfig:
    given = [f"{name}={value}" for name, value in values.items()]
    files = [section("kaldi_lattices"), section("kaldi_scores")]
    return configs.load(ScoresConfig, files, given)


def best_of_all(matrix: np.ndarray, scale: float) -> dict[str, float]:
    """The best score of each word sequence: all segmentations into words, A or B each."""
    enter, stay = {"A": (0.5, 0, 0.3), "B": (0.9, 2, 0.4)}, {"A": (0.1, 1), "B": (0.2, 3)}
    final, found = {"A": 0.25, "B": 0.35}, {}
    frames = len(matrix)
    for count in range(1, frames + 1):
        for cuts in itertools.combinations(range(1, frames), count - 1):
            bounds = [0, *cuts, frames]
            for words in itertools.product("AB", repeat=count):
                total = -final[words[-1]]
                for n, word in enumerate(words):
                    start, end = bounds[n], bounds[n + 1]
                    cost, pdf, leave = enter[word]
                    total += scale * matrix[start, pdf] - cost
                    total -= leave if n < count - 1 else 0
                    loop_cost, loop = stay[word]
                    total += scale * matrix[start + 1 : end, loop].sum() - loop_cost * (
                        end - start - 1
                    )
                text = " ".join(words)
                found[text] = max(found.get(text, -np.inf), total)
    return found


def test_lists_are_those_of_all_paths(tmp_path: Path) -> None:
    """The search, the transition model and the lists against every path of the graph."""
    pytest.importorskip("kaldi_decoder")
    graph(tmp_path)
    scores = write_scores(tmp_path / "scores.ark", MATRICES)
    base = (
        f"import_external --raw-scores {scores} --raw-graph {tmp_path}/HCLG.fst"
        f" --raw-words {tmp_path}/words.txt --config {section('kaldi_lattices')}"
        f" {section('kaldi_scores')}"
    )
    wide = "--set search_beam=1000 lattice_beam=1000 acoustic_scale=0.7 num_paths=1000"
    call(base, f"--raw-transitions {tmp_path}/final.mdl --out-nbest {tmp_path}/n/1.jsonl {wide}")
    for one in read_nbest(tmp_path / "n").lists:
        wanted = best_of_all(MATRICES[one.id], 0.7)
        told = {hyp.words: hyp.am_score + hyp.lm_scores["graph"] for hyp in one.hyps}
        assert told == pytest.approx(wanted, abs=1e-3)
        ranked = [wanted[hyp.words] for hyp in one.hyps]
        assert ranked == pytest.approx(sorted(ranked, reverse=True), abs=1e-3)
    lattices = f"--out-lattices {tmp_path}/l/1.safetensors"
    call(base, f"--raw-transitions {tmp_path}/final.mdl {lattices} {wide}")
    with refused("maybe --in-cuts or --raw-data, found --raw-words --raw-graph"):
        call(base)
    # Labels that are columns already.
    assert with_pdfs_of(tmp_path).ilabels.max() == 4
    with refused("transition ids up to 2, those of the model, found 4"):
        short = chain_model().replace(b"<Tuples> \4\2\0\0\0", b"<Tuples> \4\1\0\0\0")
        cut = short.index(b"</Tuples>") - 20
        (tmp_path / "final.mdl").write_bytes(short[:cut] + short[cut + 20 :])
        call(base, f"--raw-transitions {tmp_path}/final.mdl --out-nbest {tmp_path}/n/2.jsonl")


def with_pdfs_of(folder: Path) -> Fst:
    found = Fst.from_kaldifst(read_fst(folder / "HCLG.fst"))
    return with_pdfs(found, read_pdfs(folder / "final.mdl"), "HCLG.fst")


def test_what_the_search_refuses(tmp_path: Path) -> None:
    pytest.importorskip("kaldi_decoder")
    graph(tmp_path)
    search = ScoreSearch(with_pdfs_of(tmp_path), settings(), "HCLG.fst")
    with pytest.raises(GraphError, match=r"4 columns or more, as HCLG.fst has, found 3"):
        list(search.lattices([("u1", np.zeros((3, 3), np.float32))]))
    with pytest.raises(DataError, match="the scores of u1: expected numbers, found no frames"):
        list(search.lattices([("u1", np.zeros((0, 4), np.float32))]))
    with pytest.raises(DataError, match="the scores of u1: expected numbers, found others"):
        list(search.lattices([("u1", np.full((2, 4), np.nan, np.float32))]))
    # A graph whose words take three frames at least, and fewer frames.
    kaldifst = pytest.importorskip("kaldifst")
    long = Fst.from_kaldifst(kaldifst.compile("0 1 1 1\n1 2 2 0\n2 3 3 0\n3 0\n"))
    search = ScoreSearch(long, settings(), "HCLG.fst")
    short, whole = search.lattices(
        [("u1", np.zeros((2, 3), np.float32)), ("u2", np.zeros((3, 3), np.float32))]
    )
    assert not len(short.words) and whole.words.max() == 1


def test_files_of_graphs(tmp_path: Path) -> None:
    path = graph(tmp_path)
    kaldifst = pytest.importorskip("kaldifst")
    vector = tmp_path / "vector.fst"
    kaldifst.compile(HCLG).write(str(vector))
    assert Fst.from_kaldifst(read_fst(vector)).num_arcs == 6
    data = path.read_bytes()
    for content in (data[: len(data) // 2], data[:-1], b"hello", b"", data[:20]):
        path.write_bytes(content)
        with pytest.raises(GraphError, match="an OpenFst file, type vector or const"):
            read_fst(path)
    with pytest.raises(GraphError, match="found nothing"):
        read_fst(tmp_path / "none")
    assert read_table(tmp_path / "words.txt") == (
        "<eps>", "A", "B", "#0", "", "", "", "#nonterm:x",
    )  # fmt: skip
    for content, message in (
        ("A 1\n", "<eps> as number 0, found no such number"),
        ("A 0\n", "<eps> as number 0, found 'A'"),
        ("<eps> 0\nA 1\nA 2\n", "txt:3: expected each symbol and number once"),
        ("<eps> 0\nA 1\nB 1\n", "txt:3: expected each symbol and number once"),
        ("<eps> 0\nA\n", "txt:2: expected 'SYMBOL NUMBER'"),
        ("<eps> 0\nA x\n", "txt:2: expected 'SYMBOL NUMBER'"),
    ):
        write_text(tmp_path / "words.txt", content)
        with pytest.raises(DataError, match=message):
            read_table(tmp_path / "words.txt")

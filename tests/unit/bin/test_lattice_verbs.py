"""Lattices of decode, rescore_lattices and export, from the command line."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from privasr_k2.decoding.lattice_files import read_lattices, write_lattices
from privasr_k2.decoding.lattices import as_word_lattice
from privasr_k2.decoding.nbest import NbestConfig, nbest
from privasr_k2.decoding.tune import read_weights
from privasr_k2.fileio import write_jsonl
from privasr_k2.lm.neural.files import save_lm
from privasr_k2.lm.neural.kinds import spec_of
from privasr_k2.scoring.hypotheses import Weights, read_decoded
from privasr_k2.scoring.nbest_lists import check_nbest_complete, read_nbest
from tests.support.conf import section
from tests.support.small_lm import WORDS, settings, tiny
from tests.support.verbs import call, refused
from tests.support.word_lattices import no_path, random_lattice, write_closed_arpa

EXP = "exp/ctc_tdnn_phone"
SYMBOLS = ("<eps>", *WORDS, "#0")


@pytest.fixture
def lattices(tmp_path: Path) -> Path:
    """Three lattices in two files, one of them without a path."""
    folder = tmp_path / "lattices_test"
    made = [random_lattice(n, num_words=len(WORDS) + 1) for n in (1, 2)]
    write_lattices(folder / "1.safetensors", made, SYMBOLS, Weights(0.8, 0.4))
    write_lattices(folder / "2.safetensors", [no_path("u9")], SYMBOLS, Weights(0.8, 0.4))
    return folder


def neural(folder: Path) -> Path:
    model, vocabulary = tiny("lstm")
    save_lm(folder, spec_of(settings("lstm")), model.state_dict(), vocabulary)
    return folder


def arpa(folder: Path) -> Path:
    return write_closed_arpa(folder / "small.arpa", WORDS)


@pytest.mark.parametrize(("kind", "name"), [("neural", "lm_x"), ("arpa", "small")])
def test_lists_with_the_scores_of_a_model(
    lattices: Path, tmp_path: Path, kind: str, name: str
) -> None:
    model = neural(tmp_path / "lm_x") if kind == "neural" else arpa(tmp_path)
    base = ["--in-lattices", lattices, "--in-lm", model, "--device", "cpu"]
    layers = ["--config", section("rescore_lattices")]
    call("rescore_lattices", *base, "--out-nbest", tmp_path / "a/1.jsonl", *layers)
    lists = read_nbest(tmp_path / "a")
    assert lists.lm_names == tuple(sorted(("graph", name)))
    assert [(one.id, one.no_path, bool(one.hyps)) for one in lists.lists] == [
        ("u1", False, True), ("u2", False, True), ("u9", True, False),
    ]  # fmt: skip
    for job in (1, 2):
        more = ["--set", "name=new", f"job={job}", "num_jobs=2", "num_paths=3"]
        out = tmp_path / f"b/{job}.jsonl"
        call("rescore_lattices", *base, "--out-nbest", out, *layers, *more)
    shared = read_nbest(tmp_path / "b")
    assert shared.lm_names == ("graph", "new")
    for one, other in zip(shared.lists, lists.lists):
        assert [hyp.words for hyp in one.hyps] == [hyp.words for hyp in other.hyps[:3]]


def test_what_rescoring_refuses(lattices: Path, tmp_path: Path) -> None:
    model = arpa(tmp_path)

    def refuse(message: str, *more: object, folder: Path = lattices, lm: Path = model) -> None:
        with refused(message):
            call(
                f"rescore_lattices --in-lattices {folder} --in-lm {lm}"
                f" --out-nbest {tmp_path}/out.jsonl --config {section('rescore_lattices')}",
                *more,
            )
        assert not (tmp_path / "out.jsonl").exists()

    refuse("beam must be above 0", "--set beam=-1")
    graph = write_closed_arpa(tmp_path / "graph.arpa", WORDS)
    refuse("name: expected one other than graph", "--set name=graph")
    refuse("name: expected one other than graph", lm=graph)
    call(
        f"rescore_lattices --in-lattices {lattices} --in-lm {graph}"
        f" --out-nbest {tmp_path}/named/1.jsonl --config {section('rescore_lattices')}"
        " --set name=x"
    )
    assert read_nbest(tmp_path / "named").lm_names == ("graph", "x")
    refuse("run decode", folder=tmp_path)
    refuse("a language model", lm=lattices)
    words = ("<eps>", *WORDS[:-1], "other", "#0")
    other = [random_lattice(3, num_words=23, states=40)]
    write_lattices(lattices / "1.safetensors", other, words, Weights(1, 0))
    (lattices / "2.safetensors").unlink()
    refuse("the words of the lattices, found 1 others")


def test_to_kaldi_and_back(lattices: Path, tmp_path: Path) -> None:
    """What rescoring makes of lattices is the same after a way through Kaldi's archive."""
    archive, words = tmp_path / "lat.1.gz", tmp_path / "words.txt"
    call(
        f"export --in-lattices {lattices} --out-kaldi-lattices {archive} --out-words {words}",
    )
    assert words.read_text().splitlines()[-1] == f"#0 {len(SYMBOLS) - 1}"
    cuts = tmp_path / "cuts_test.jsonl.gz"
    held = read_lattices(lattices).lattices
    write_jsonl(cuts, (
        {"id": one.id, "custom": {"part": one.part},
         "supervisions": [{"speaker": one.speaker, "text": one.ref}]} for one in held
    ))  # fmt: skip
    base = f"import_external --raw-lattices {archive} --raw-words {words} --in-cuts {cuts}"
    layer = f"--config {section('kaldi_lattices')} --set acoustic_scale=1 beam=1000"
    weights = ["lm_weight=0.8", "insertion_penalty=0.4"]
    back = tmp_path / "back/lattices_test"
    call(f"{base} --out-lattices {back}/1.safetensors {layer}", *weights)
    assert read_lattices(back).weights == Weights(0.8, 0.4)
    lists = {}
    for name, folder in (("first", lattices), ("back", back)):
        call(
            f"rescore_lattices --in-lattices {folder} --in-lm {arpa(tmp_path)}"
            f" --out-nbest {tmp_path}/{name}/1.jsonl --config {section('rescore_lattices')}"
        )
        lists[name] = read_nbest(tmp_path / name).lists
    for one, other in zip(lists["first"], lists["back"], strict=True):
        assert (one.id, one.speaker, one.ref, one.no_path) == (
            other.id, other.speaker, other.ref, other.no_path,
        )  # fmt: skip
        assert [hyp.words for hyp in one.hyps] == [hyp.words for hyp in other.hyps]
        for hyp, known in zip(one.hyps, other.hyps):
            assert hyp.lm_scores == pytest.approx(known.lm_scores, rel=1e-5)

    call(f"{base} --out-nbest {tmp_path}/nbest_test/1.jsonl {layer}", *weights)
    found = read_nbest(tmp_path / "nbest_test")
    assert found.lm_names == ("graph",)
    confidences = found.lists[0].hyps[0].confidences
    assert confidences is not None and 0 < min(confidences) <= max(confidences) <= 1
    assert found.lists[-1].no_path


@pytest.mark.k2
@pytest.mark.recipe
def test_lattices_of_the_tiny_corpus(
    finished: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def make(out: Path, *more: object) -> None:
        call(
            f"decode --in-model {finished}/{EXP}/am --in-graph {finished}/data/graph_phone"
            f" --in-weights {finished}/{EXP}/weights.json"
            f" --in-feats {finished}/data/feats_fbank --out-lattices {out} --device cpu"
            f" --config {section('decode')} {section('lattices')} --set role=test",
            *more,
        )

    for job in (1, 2):
        make(tmp_path / f"lattices_test/{job}.safetensors", f"job={job}", "num_jobs=2")
    found = read_lattices(tmp_path / "lattices_test")
    weights = read_weights(finished / EXP / "weights.json")
    assert found.weights == weights
    told = {one.id: one for one in read_decoded(finished / EXP / "decode_test").utterances}
    assert sorted(told) == [one.id for one in found.lattices]
    for one in found.lattices:
        first_pass = told[one.id]
        reference = (one.part, one.speaker, tuple(one.ref.split()))
        assert reference == (first_pass.part, first_pass.speaker, first_pass.ref)
        scored = as_word_lattice(one, one.totals(weights))
        [best] = nbest(scored, NbestConfig(1, 1.0, 10_000)).paths
        assert tuple(found.words[word] for word in best.words) == first_pass.hyp(weights)
        assert one.beam == 10.0 and 0.5 < one.seconds[-1] < 30

    lm, nbest_test = finished / "data/lm/phone.arpa.gz", tmp_path / "nbest_test"
    call(
        f"rescore_lattices --in-lattices {tmp_path}/lattices_test --in-lm {lm}"
        f" --out-nbest {nbest_test}/1.jsonl --config {section('rescore_lattices')}"
    )
    lists = read_nbest(nbest_test)
    assert lists.lm_names == ("graph", "phone")
    check_nbest_complete(lists, finished / "data/manifests/cuts_test.jsonl.gz")

    # Few states, and a beam that loses utterances.
    with caplog.at_level(logging.INFO):
        make(
            tmp_path / "few/1.safetensors",
            "max_states=30",
            "search_beam=0.1",
            "min_active_states=0",
            "max_active_states=3",
            f"--out-kaldi {tmp_path}/few.txt",
        )
    few = read_lattices(tmp_path / "few").lattices
    assert "no path within the beam for" in caplog.text
    lost = [one for one in few if not one.num_states]
    assert lost and all(one.ref for one in lost)
    text = (tmp_path / "few.txt").read_text()
    assert all((f"{one.id}\n" in text) == bool(one.num_states) for one in few)
    caplog.clear()
    make(tmp_path / "small/1.safetensors", "max_states=30")
    small = read_lattices(tmp_path / "small").lattices
    assert max(one.num_states for one in small) <= 30 and min(one.beam for one in small) < 10.0
    assert "lattices hold less than the beam of 10" in caplog.text

"""N-best lists of decode, export and import, from the command line."""

from __future__ import annotations

import logging
import math
from pathlib import Path

import pytest

from privasr_k2.fileio import read_json, read_lines, write_jsonl, write_text
from privasr_k2.scoring.hypotheses import Weights, read_decoded
from privasr_k2.scoring.nbest_lists import (
    Hypothesis,
    NbestList,
    check_nbest_complete,
    check_vocabulary,
    read_nbest,
    write_nbest,
)
from tests.support.conf import section
from tests.support.verbs import call, refused

EXP = "exp/ctc_tdnn_phone"


def make(work: Path, out: Path, *more: object) -> None:
    call(
        f"decode --in-model {work}/{EXP}/am --in-graph {work}/data/graph_phone"
        f" --in-weights {work}/{EXP}/weights.json --in-feats {work}/data/feats_fbank"
        f" --out-nbest {out} --device cpu",
        *more,
    )


@pytest.mark.k2
@pytest.mark.recipe
def test_lists_of_the_tiny_corpus(finished: Path, tmp_path: Path) -> None:
    layers = [section(name) for name in ("decode", "nbest")]
    for job in (1, 2):
        make(
            finished,
            tmp_path / f"nbest_test/{job}.jsonl",
            f"--in-lang {finished}/data/lang_phone --config",
            *layers,
            f"--set role=test job={job} num_jobs=2 num_paths=20",
        )
    lists = read_nbest(tmp_path / "nbest_test")
    check_nbest_complete(lists, finished / "data/manifests/cuts_test.jsonl.gz")
    words = {line.split()[0] for _, line in read_lines(finished / "data/graph_phone/words.txt")}
    check_vocabulary(lists, words, "words.txt")
    chosen = read_json(finished / EXP / "weights.json")
    weights = Weights(chosen["lm_weight"], chosen["insertion_penalty"])
    first_pass = {u.id: u for u in read_decoded(finished / EXP / "decode_test").utterances}
    assert max(len(one.hyps) for one in lists.lists) == 20
    for one in lists.lists:
        told = first_pass[one.id]
        reference = (one.part, one.speaker, tuple(one.ref.split()))
        assert reference == (told.part, told.speaker, told.ref)
        assert tuple(one.hyps[0].words.split()) == told.hyp(weights)
        totals = [
            hyp.am_score
            + weights.lm_weight * hyp.lm_scores["graph"]
            - weights.insertion_penalty * len(hyp.words.split())
            for hyp in one.hyps
        ]
        assert totals == sorted(totals, reverse=True)
        for hyp in one.hyps:
            assert hyp.times is not None and len(hyp.times) == len(hyp.words.split())
            # Words of one path do not overlap.
            assert all(end <= start for (_, end), (start, _) in zip(hyp.times, hyp.times[1:]))


@pytest.mark.k2
@pytest.mark.recipe
def test_limits_are_told_and_nothing_is_dropped(
    finished: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Few states of the deterministic acceptor, and a beam that loses utterances."""
    layers = [section(name) for name in ("decode", "nbest")]
    settings = ["--config", *layers, "--set", "role=test", "max_states=15"]
    with caplog.at_level(logging.INFO):
        make(finished, tmp_path / "nbest_test/1.jsonl", *settings)
    lists = read_nbest(tmp_path / "nbest_test")
    assert all(1 <= len(one.hyps) < 100 for one in lists.lists)
    assert all(hyp.times is None for one in lists.lists for hyp in one.hyps)
    assert "determinization passed max_states=15; here are the" in caplog.text
    assert "lists have fewer than 100 hypotheses though their lattices have more" in caplog.text
    caplog.clear()
    lossy = ["search_beam=0.1", "min_active_states=0", "max_active_states=1"]
    with caplog.at_level(logging.INFO):
        make(finished, tmp_path / "nbest_lossy/1.jsonl", *settings, *lossy)
    lists = read_nbest(tmp_path / "nbest_lossy")
    check_nbest_complete(lists, finished / "data/manifests/cuts_test.jsonl.gz")
    lost = [one for one in lists.lists if one.no_path]
    assert lost and all(one.ref and not one.hyps for one in lost)
    assert (
        f"no path within the beam for {len(lost)} of {len(lists.lists)} utterances" in caplog.text
    )


@pytest.mark.k2
@pytest.mark.recipe
def test_what_is_refused(copied: Path, tmp_path: Path) -> None:
    layers = [section(name) for name in ("decode", "nbest")]
    lang = copied / "data/lang_phone"

    def refuse(message: str, *more: object) -> None:
        with refused(message):
            make(copied, tmp_path / "out.jsonl", "--config", *layers, *more)
        assert not (tmp_path / "out.jsonl").exists()

    refuse("num_paths must be at least 1, got 0", "--set num_paths=0")
    refuse("first_beam must be above 0", "--set first_beam=0")
    # The same words, but other pronunciations than those of the graph.
    lines = [line for _, line in read_lines(lang / "lexicon.txt")]
    sounds = [line.partition(" ")[2] for line in lines]
    turned = [f"{line.split()[0]} {sound}\n" for line, sound in zip(lines, sounds[1:] + sounds[:1])]
    write_text(lang / "lexicon.txt", "".join(turned))
    refuse("pronunciations that spell the path of", f"--in-lang {lang} --set role=test")
    words = (lang / "words.txt").read_text().replace("#0", "zzz").splitlines()
    write_text(lang / "words.txt", "\n".join([*words, f"#0 {len(words)}"]) + "\n")
    refuse("expected the words of", f"--in-lang {lang} --set role=test")


LISTS = [
    NbestList("a", "test", "s1", "one two", False, (
        Hypothesis(1, "one two", -3.0, {"graph": -2.0}, (0.5, 1.0), ((0.0, 0.5), (0.5, 1.0))),
        Hypothesis(2, "one", -4.0, {"graph": -1.0}, (0.5,), ((0.0, 0.5),)),
    )),
    NbestList("b", "test", "s2", "three", True, ()),
]  # fmt: skip


@pytest.fixture
def cuts(tmp_path: Path) -> Path:
    path = tmp_path / "cuts_test.jsonl.gz"
    cuts = []
    for nbest in LISTS:
        supervision = {"speaker": nbest.speaker, "text": nbest.ref}
        cuts.append({"id": nbest.id, "custom": {"part": "test"}, "supervisions": [supervision]})
    write_jsonl(path, cuts)
    return path


def test_out_and_in_again(cuts: Path, tmp_path: Path) -> None:
    write_nbest(tmp_path / "nbest_test/1.jsonl", LISTS)
    outputs = {name: tmp_path / name for name in ("kaldi", "ctm", "trn")}
    call(
        f"export --in-nbest {tmp_path}/nbest_test --out-kaldi {outputs['kaldi']}"
        f" --out-ctm {outputs['ctm']} --out-trn {outputs['trn']} --out-ref-trn {tmp_path}/ref"
    )
    assert (tmp_path / "ref").read_text() == "one two (a)\nthree (b)\n"
    back = {}
    for name, path in outputs.items():
        out = tmp_path / f"back_{name}" / "1.jsonl"
        call(f"import_external --raw-{name} {path} --in-cuts {cuts} --out-nbest {out}")
        back[name] = read_nbest(out.parent).lists
        assert [(one.id, one.part, one.speaker, one.ref) for one in back[name]] == [
            (one.id, one.part, one.speaker, one.ref) for one in LISTS
        ]
        assert back[name][0].hyps[0].words == "one two"
    assert [(hyp.words, hyp.am_score, hyp.lm_scores) for hyp in back["kaldi"][0].hyps] == [
        ("one two", -3.0, {"graph": -2.0}),
        ("one", -4.0, {"graph": -1.0}),
    ]
    assert [one.no_path for one in back["kaldi"]] == [False, True]
    assert back["ctm"][0].hyps[0].confidences == (0.5, 1.0)
    assert back["ctm"][0].hyps[0].times == ((0.0, 0.5), (0.5, 1.0))
    assert math.copysign(1.0, back["trn"][0].hyps[0].am_score) == 1.0

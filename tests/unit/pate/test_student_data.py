"""What a student learns from: labels, guesses, and how they are put together."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from privasr_k2.data.manifests import load_cuts
from privasr_k2.errors import ConfigError, DataError
from privasr_k2.fileio import write_jsonl
from privasr_k2.graph.lang import Lang, load_lang
from privasr_k2.pate.student_data import (
    Hyp,
    StudentSettings,
    Target,
    UnansweredSettings,
    guesses,
    read_labels,
    student_data,
    targets_of,
)
from privasr_k2.scoring.nbest_lists import Hypothesis, NbestList, NbestLists
from tests.support.end_to_end import spelled_lang
from tests.support.small_am import write_corpus

UNANSWERED = UnansweredSettings(weight=0.5, min_confidence=0.6, hyps=2, scale=1.0)
SETTINGS = StudentSettings("train", "dev", 2.0, "all", 0, 0, ["none"], UNANSWERED)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Lang]:
    feats, lang = write_corpus(tmp_path_factory.mktemp("student"), utterances=8)
    return feats, load_lang(spelled_lang(lang))


def lists(**of: list[tuple[str, float]]) -> NbestLists:
    made = []
    for name, scored in of.items():
        hyps = tuple(Hypothesis(n, *hyp, {}) for n, hyp in enumerate(scored, start=1))
        made.append(NbestList(name.replace("_", "-"), "", "s", "never read", not hyps, hyps))
    return NbestLists(Path("lists"), tuple(made), {}, ())


def write(path: Path, *records: Any) -> Path:
    write_jsonl(path, records)
    return path


def hyp(text: str, weight: Any = 1.0) -> dict[str, Any]:
    return {"text": text, "weight": weight}


def label(*hyps: dict[str, Any]) -> dict[str, Any]:
    return {"id": "a", "hyps": list(hyps)}


def test_labels_are_read_heaviest_first(tmp_path):
    one = label(hyp(" AB  C ", 0.25), hyp("", 0.75))
    found = read_labels(write(tmp_path / "l.jsonl", one, {"id": "b", "hyps": [hyp("C")]}))
    assert found == {"a": (Hyp("", 0.75), Hyp("AB C", 0.25)), "b": (Hyp("C", 1.0),)}


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([label()], "different hypotheses"),
        ([label(hyp("C", 0.5), hyp(" C", 0.5))], "different hypotheses"),
        ([label(hyp("C", 0.5), hyp("AB", 0.4))], "sum to 1, found 0.5 0.4"),
        ([label(hyp("C", 1.5), hyp("AB", -0.5))], "weights above 0"),
        ([label(hyp("C", math.nan))], "weights above 0"),
        ([label(hyp("C")), label(hyp("C"))], "every utterance once"),
        ([{"hyps": [hyp("C")]}], "every utterance once"),
        ([label({"text": "C"})], "and weight"),
        ([{"id": "a", "hyps": "C"}], "and weight"),
    ],
)
def test_bad_labels(tmp_path, records, message):
    with pytest.raises(DataError, match=message):
        read_labels(write(tmp_path / "l.jsonl", *records))


def test_guesses_are_shares_of_a_list():
    sure = [("AB", math.log(0.06)), ("C", math.log(0.03)), ("CA", math.log(0.01))]
    unsure, silent = [("AB", -2.0), ("C", -2.0)], [("", -1.0), ("C", -9.0)]
    found = guesses(lists(u_1=sure, u_2=unsure, u_3=silent, u_4=[]), UNANSWERED)
    assert list(found) == ["u-1"]
    assert [hyp.text for hyp in found["u-1"]] == ["AB", "C"]
    assert [hyp.weight for hyp in found["u-1"]] == pytest.approx([6 / 9, 3 / 9])
    # A scale of 1/2 takes square roots: the best has less than 0.6 of the list then.
    assert guesses(lists(u_1=sure), replace(UNANSWERED, scale=0.5)) == {}


def test_labels_in_phones_are_tokens(corpus, tmp_path):
    lang = corpus[1]
    first, second = lang.tokens[1:3]
    one = label({"phones": f"{second} {first} {second}", "weight": 1.0})
    other = {"id": "b", "hyps": [{"phones": "no-phone", "weight": 1.0}]}
    labels = read_labels(write(tmp_path / "l.jsonl", one, other))
    assert labels["a"] == (Hyp(f"{second} {first} {second}", 1.0, True),)
    assert targets_of(labels, lang, lambda name, tokens: True) == {"a": (((2, 1, 2),), (1.0,))}
    for wrong in ({"weight": 1.0}, {"text": "C", "phones": "C", "weight": 1.0}):
        with pytest.raises(DataError, match="text or phones"):
            read_labels(write(tmp_path / "l.jsonl", label(wrong)))


def test_what_cannot_be_learned_is_left_out(corpus, caplog):
    several = (Hyp("C", 0.5), Hyp("AB", 0.3), Hyp("x", 0.2))
    labels = {"u1": several, "u2": (Hyp("x", 1.0),), "u3": (Hyp("", 1.0),)}
    found = targets_of(labels, corpus[1], lambda name, tokens: len(tokens) < 3, weight=0.5)
    assert found == {"u1": Target(((4, 3),), (0.5,)), "u3": Target(((),), (0.5,))}
    assert "2 of 3 utterances left out" in caplog.text


def together(corpus: tuple[Path, Lang], way: str = "none", **changes: Any) -> Any:
    feats, lang = corpus
    of_pool = dict(
        train_0=[("CA", -1.0)], train_1=[("CA", -1.0)], train_2=[("C", -1.0), ("AB", -1.0)]
    )
    labels = {"train-0": (Hyp("C", 0.6), Hyp("AB", 0.4))}
    given: dict[str, Any] = dict(pool=load_cuts(feats, "train"), labels=labels, labeled=None)
    given |= dict(lists=lists(**of_pool), lang=lang, settings=SETTINGS)
    given |= dict(output_frames=None, shortest=1.0)
    return student_data(way, **{**given, **changes})


def test_ways(corpus):
    answered = {"train-0": Target(((4, 3), (4, 1, 2)), (0.6, 0.4))}
    plain = together(corpus)
    assert plain.targets == answered and [cut.id for cut in plain.cuts] == ["train-0"]
    taught = together(corpus, "self_training")
    assert taught.targets == {**answered, "train-1": Target(((4, 3, 1),), (0.5,))}
    used = {"answered_used": 1, "unanswered_used": 1, "labelled_used": 0}
    assert taught.counts == {"pool": 8, "answered": 1, **used}
    guessed = together(corpus, "consistency")
    assert guessed.targets == {**answered, **{f"train-{n}": Target((), ()) for n in range(1, 8)}}
    best = together(corpus, settings=replace(SETTINGS, hyps="best"))
    assert best.targets == {"train-0": Target(((4, 3),), (1.0,))}


def test_public_transcripts_are_learned_too(corpus):
    dev = load_cuts(corpus[0], "dev")
    found = together(corpus, labeled=dev)
    assert found.counts["labelled_used"] == len(dev) == 6
    cut = dev[0]
    expected = Target((tuple(corpus[1].encode(cut.supervisions[0].text)),), (2.0,))
    assert found.targets[cut.id] == expected
    with pytest.raises(DataError, match="not in the pool"):
        together(corpus, labeled=load_cuts(corpus[0], "train"))


def test_hypotheses_must_fit_their_frames_while_training(corpus):
    frames = next(cut.num_frames for cut in load_cuts(corpus[0], "train") if cut.id == "train-0")
    seen = []

    def output_frames(number: int) -> int:
        seen.append(number)
        return 2

    found = together(corpus, output_frames=output_frames, shortest=0.9)
    assert found.targets == {"train-0": Target(((4, 3),), (1.0,))}
    assert set(seen) == {int(0.9 * frames)}


def test_nothing_to_learn_from(corpus):
    for way in ("none", "consistency"):
        assert not together(corpus, way, labels={}).teaches
    assert together(corpus).teaches
    assert together(corpus, "self_training", labels={}).counts["unanswered_used"] == 2
    with pytest.raises(ConfigError, match="--in-public-nbest"):
        together(corpus, "self_training", lists=None)
    with pytest.raises(DataError, match="labels of the pool's utterances, found 1 others: z"):
        together(corpus, labels={"z": (Hyp("C", 1.0),)})


@pytest.mark.parametrize(
    ("settings", "key", "value"),
    [
        *((SETTINGS, "unlabeled_data", value) for value in ([], ["none", "none"], ["all"])),
        *((SETTINGS, "hyps", "some"), (SETTINGS, "labeled_weight", 0.0)),
        *((UNANSWERED, "weight", 0.0), (UNANSWERED, "min_confidence", 1.1)),
        *((UNANSWERED, "hyps", 0), (UNANSWERED, "scale", math.inf)),
    ],
)
def test_ranges(settings, key, value):
    with pytest.raises(ValueError, match=key):
        replace(settings, **{key: value})

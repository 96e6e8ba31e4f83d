"""Edge cases of searches in lattices; tests/oracles has their exactness."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from privasr_k2 import config
from privasr_k2.decoding import lattice_rescoring
from privasr_k2.decoding.lattice_files import Lattices
from privasr_k2.decoding.lattice_lists import RescoreLatticesConfig, rescored_lists
from privasr_k2.decoding.lattice_lms import stepping
from privasr_k2.decoding.lattice_rescoring import rescore
from privasr_k2.decoding.lattices import Lattice
from privasr_k2.errors import ConfigError, DataError
from privasr_k2.lm.perplexity import KenlmModel
from privasr_k2.scoring.hypotheses import Weights
from tests.support.conf import section
from tests.support.small_lm import WORDS, scorer
from tests.support.word_lattices import no_path, random_lattice, write_closed_arpa

SYMBOLS = ("<eps>", *WORDS, "strange", "#0")
WEIGHTS = Weights(0.8, 0.4)


@pytest.fixture
def settings() -> RescoreLatticesConfig:
    return config.load(RescoreLatticesConfig, [section("rescore_lattices")])


def silence() -> Lattice:
    """Nothing but the end of the sentence."""
    arcs = (np.array([0]), np.array([1]), np.array([0]), np.array([-2.0]), np.array([-1.0]))
    return Lattice("u0", "test", "s1", "", 8.0, np.zeros(2), *arcs)


def some(num: int) -> list[Lattice]:
    return [random_lattice(seed, num_words=len(WORDS) + 1) for seed in range(1, num + 1)]


def together(*lattices: Lattice) -> Lattices:
    return Lattices(Path("lattices_test"), lattices, SYMBOLS, WEIGHTS)


def bigram(folder: Path) -> KenlmModel:
    """Without <unk>."""
    return KenlmModel(write_closed_arpa(folder / "lm.arpa", WORDS))


def test_without_a_path_and_without_words(settings: RescoreLatticesConfig) -> None:
    lm = scorer("lstm")
    lattices = together(no_path("a"), silence(), *some(1), no_path("z"))
    lists = list(rescored_lists(lattices, stepping(lm), "new", settings))
    assert [one.no_path for one in lists] == [True, False, False, True]
    facts = [(nbest.speaker, nbest.ref, nbest.part) for nbest in lists[:2]]
    assert facts == [("s2", "ref", "test"), ("s1", "", "test")]
    [hyp] = lists[1].hyps
    assert hyp.words == "" and hyp.am_score == -2.0 and hyp.lm_scores["graph"] == -1.0
    assert hyp.lm_scores["new"] == pytest.approx(lm.score_sentences([[]])[0], abs=1e-5)
    assert len(lists[2].hyps) > 5
    assert list(rescore([no_path("a")], SYMBOLS, stepping(lm), WEIGHTS, settings)) == [None]


def test_lists_are_ranked_by_the_scores_of_the_search(settings: RescoreLatticesConfig) -> None:
    for share in (0.0, 0.5, 1.0):
        changed = replace(settings, neural_share=share, num_paths=30)
        for one in rescored_lists(together(*some(3)), stepping(scorer("lstm")), "new", changed):
            assert [hyp.rank for hyp in one.hyps] == list(range(1, len(one.hyps) + 1))
            totals = [
                hyp.am_score
                + 0.8 * (share * hyp.lm_scores["new"] + (1 - share) * hyp.lm_scores["graph"])
                - 0.4 * len(hyp.words.split())
                for hyp in one.hyps
            ]
            np.testing.assert_allclose(totals, sorted(totals, reverse=True), atol=1e-5)
            assert len({hyp.words for hyp in one.hyps}) == len(one.hyps)


def test_jobs_share_out_the_lattices(settings: RescoreLatticesConfig) -> None:
    lattices, lm = together(*some(5)), stepping(scorer("lstm"))
    whole = [one.to_dict() for one in rescored_lists(lattices, lm, "new", settings)]
    halves = [replace(settings, job=job, num_jobs=2) for job in (1, 2)]
    parts = [
        [one.to_dict() for one in rescored_lists(lattices, lm, "new", half)] for half in halves
    ]
    assert [[one["id"] for one in part] for part in parts] == [["u1", "u3", "u5"], ["u2", "u4"]]
    ranked = {one["id"]: [hyp["words"] for hyp in one["hyps"][:5]] for one in whole}
    more = replace(settings, job=6, num_jobs=6)
    assert list(rescored_lists(lattices, lm, "new", more)) == []
    for one in parts[0] + parts[1]:
        assert [hyp["words"] for hyp in one["hyps"][:5]] == ranked[one["id"]]


def test_blocks_change_nothing(
    monkeypatch: pytest.MonkeyPatch, settings: RescoreLatticesConfig
) -> None:
    lattices, lm = [*some(3), no_path("u9"), silence()], stepping(scorer("transformer"))
    whole = list(rescore(lattices, SYMBOLS, lm, WEIGHTS, settings))
    for limit in ("_MAX_STATES", "_MAX_NUMBERS"):
        with monkeypatch.context() as patch:
            patch.setattr(lattice_rescoring, limit, 25 if limit == "_MAX_STATES" else 1)
            sizes = [len(block) for block in lattice_rescoring._blocks(lattices, lm)]
            assert sum(sizes) == 5 and len(sizes) > 1
            parts = list(rescore(lattices, SYMBOLS, lm, WEIGHTS, settings))
        for one, other in zip(whole, parts, strict=True):
            assert (one is None) == (other is None)
            if one is not None and other is not None:
                np.testing.assert_array_equal(one.lattice.words, other.lattice.words)
                np.testing.assert_array_equal(one.lattice.seconds, other.lattice.seconds)
                np.testing.assert_allclose(one.lm_scores, other.lm_scores, atol=1e-5)


def test_states_keep_their_times(settings: RescoreLatticesConfig) -> None:
    """In these lattices words end 0.3 s behind each other, one for each state passed."""
    [lattice] = some(1)
    [found] = rescore([lattice], SYMBOLS, stepping(scorer("lstm")), WEIGHTS, settings)
    assert found is not None
    made, at = found.lattice, {0: {0.0}}
    starts = zip(lattice.seconds[lattice.sources], lattice.words.tolist())
    ends = dict(zip(starts, lattice.seconds[lattice.targets]))
    for source, word, target in zip(made.sources, made.words.tolist(), made.targets):
        at.setdefault(int(target), set()).add(ends[(made.seconds[source], word)])
    assert {state: {time} for state, time in enumerate(made.seconds)} == at


def test_so_many_histories_of_a_state(settings: RescoreLatticesConfig) -> None:
    """Times tell the states of these lattices."""
    most = []
    for number in (1, 2, 10_000):
        changed = replace(settings, beam=float("inf"), order=0, max_histories=number)
        found = list(rescore(some(3), SYMBOLS, stepping(scorer("lstm")), WEIGHTS, changed))
        seconds = [one.lattice.seconds for one in found if one is not None]
        most.append(max(np.unique(times, return_counts=True)[1].max() for times in seconds))
    assert most[0] == 1 and most[1] == 2 and most[2] > 5


def test_unknown_words(
    settings: RescoreLatticesConfig, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    [lattice] = some(1)
    words = lattice.words.copy()
    words[0] = SYMBOLS.index("strange")
    strange = together(replace(lattice, words=words))
    with caplog.at_level(logging.WARNING):
        [one] = rescored_lists(strange, stepping(scorer("lstm")), "new", settings)
    assert one.hyps and "are not in neural, which scores them as <unk>; 1 of" in caplog.text
    assert caplog.text.count("strange") == 1
    with pytest.raises(DataError, match=r"found 1 others in lattices_test: strange"):
        list(rescored_lists(strange, stepping(bigram(tmp_path)), "new", settings))
    # Every word known: nothing is said.
    caplog.clear()
    list(rescored_lists(together(*some(1)), stepping(bigram(tmp_path)), "new", settings))
    assert "<unk>" not in caplog.text


def test_another_kind_of_model() -> None:
    class Mixture:
        name = "mixture.json"

    with pytest.raises(DataError, match=r"^mixture.json: .*the kind Mixture(.|\n)*lm_scores"):
        stepping(Mixture())  # type: ignore[arg-type]


def test_settings() -> None:
    base = [section("rescore_lattices")]
    wrong = ["neural_share=-0.1", "neural_share=1.1", "order=-1", "beam=0", "max_histories=0"]
    for one in [*wrong, "job=2", "num_jobs=0", "num_paths=0", "first_beam=0", "max_states=0"]:
        with pytest.raises(ConfigError, match="allows"):
            config.load(RescoreLatticesConfig, base, [one])
    assert config.load(RescoreLatticesConfig, base, ["beam=.inf", "order=0"]).order == 0

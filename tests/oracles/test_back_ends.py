"""k2's search and Kaldi's find the same words at the same costs where nothing is pruned."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from privasr_k2 import config
from privasr_k2.decoding.first_pass import SearchConfig
from privasr_k2.decoding.kaldi_backend import open_decoder
from privasr_k2.decoding.kaldi_lattices import imported_lists
from privasr_k2.decoding.kaldi_scores import ScoresConfig, ScoreSearch, own_graph
from privasr_k2.lm.ngram import count_ngrams, estimate
from privasr_k2.randomness import stream
from tests.support.conf import section
from tests.support.small_graphs import make_graph, make_lang

ROOT = Path(__file__).resolve().parents[2]
TOKENS, WORDS, UTTERANCES, FRAMES, TOLERANCE = 12, 60, 40, 30, 5e-4
pytestmark = pytest.mark.k2


def search(backend: str, lm_weight: float, insertion_penalty: float) -> SearchConfig:
    """Wide beams, k2 at the weight of the search, its lattice deep enough for penalties."""
    output_beam = 30.0 if insertion_penalty else 5.0
    grid = [lm_weight], [insertion_penalty]
    return SearchConfig(backend, 300.0, output_beam, 30, 1000000, lm_weight, *grid)


@pytest.fixture(scope="module", params=["standard", "modified"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trigram with homophones, words that begin others, and equal tokens side by side."""
    pytest.importorskip("kaldi_decoder")
    root = tmp_path_factory.mktemp("graph")
    generator = stream(1, "lang")
    tokens, words = [f"T{n}" for n in range(1, TOKENS)], [f"w{n}" for n in range(WORDS)]
    spelled = [list(generator.choice(tokens, size=generator.integers(1, 5))) for _ in words]
    spelled[1], spelled[3] = spelled[0], [*spelled[2], spelled[2][-1]]
    lines = [f"{word} {' '.join(spelling)}\n" for word, spelling in zip(words, spelled)]
    lang = make_lang(root / "lang", "".join(lines), tokens)
    shares = 1 / np.arange(1, WORDS + 1)
    text = [
        list(generator.choice(words, size=generator.integers(1, 8), p=shares / shares.sum()))
        for _ in range(200)
    ]
    model = estimate(count_ngrams(text, words, order=3), "witten_bell")
    return make_graph(root / "graph", lang, model, request.param)


def noise(peakiness: float) -> tuple[np.ndarray, np.ndarray]:
    """(N, T, C) log-probabilities of nothing and (N,) lengths; 6 is all but certain frames."""
    generator = stream(2, "logits")
    logits = generator.normal(size=(UTTERANCES, FRAMES, TOKENS)) * peakiness
    log_probs = logits - np.log(np.exp(logits).sum(axis=2, keepdims=True))
    lengths = generator.integers(FRAMES // 4, FRAMES + 1, size=UTTERANCES)
    return log_probs.astype(np.float32), lengths


@pytest.mark.parametrize(("lm_weight", "insertion_penalty"), [(1.0, 0.0), (0.5, 1.0), (2.0, -1.5)])
@pytest.mark.parametrize("peakiness", [1.0, 6.0])
def test_same_words_at_the_same_costs(
    folder: Path, peakiness: float, lm_weight: float, insertion_penalty: float
) -> None:
    import torch

    log_probs, lengths = (torch.from_numpy(array) for array in noise(peakiness))
    found = []
    for backend in ("k2", "kaldi"):
        decoder = open_decoder(folder, search(backend, lm_weight, insertion_penalty))
        found.append([hyps[0] for hyps in decoder.decode(log_probs, lengths) if hyps is not None])
    assert [len(hyps) for hyps in found] == [UTTERANCES, UTTERANCES]
    assert len({hyp.words for hyp in found[0]}) > UTTERANCES // 2
    for ours, theirs in zip(*found):
        assert theirs.words == ours.words
        assert theirs.am_score == pytest.approx(ours.am_score, abs=TOLERANCE)
        assert theirs.lm_score == pytest.approx(ours.lm_score, abs=TOLERANCE)


@pytest.mark.recipe
def test_same_words_of_real_speech(finished: Path, tmp_path: Path) -> None:
    """The verb, on the trained model of the tiny corpus, at the weights that dev has chosen."""
    pytest.importorskip("kaldi_decoder")
    exp = finished / "exp/ctc_tdnn_phone"
    weight = json.loads((exp / "weights.json").read_text())["lm_weight"]
    records = []
    for backend in ("k2", "kaldi"):
        done = subprocess.run(
            [sys.executable, "-m", "privasr_k2.bin.decode", "--in-model", exp / "am",
             "--in-graph", finished / "data/graph_phone", "--in-weights", exp / "weights.json",
             "--in-feats", finished / "data/feats_fbank", "--config", section("decode"),
             "--out-hyps", tmp_path / f"{backend}.jsonl", "--device", "cpu", "--set", "role=test",
             f"backend={backend}", "search_beam=200", "max_active_states=1000000",
             f"search_lm_weight={weight}"],
            capture_output=True, text=True, cwd=ROOT,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        lines = (tmp_path / f"{backend}.jsonl").read_text().splitlines()
        records.append([json.loads(line) for line in lines])
    assert len(records[0]) > 10
    for ours, theirs in zip(*records, strict=True):
        [one], [other] = ours.pop("hyps"), theirs.pop("hyps")
        assert theirs == ours and not ours["no_path"]
        assert other["words"] == one["words"]
        for score in ("am_score", "lm_score"):
            assert other[score] == pytest.approx(one[score], abs=TOLERANCE), ours["id"]


def test_lists_of_log_likelihoods_begin_with_the_best_path(folder: Path) -> None:
    """Kaldi's lattice decoder and its best-path decoder, in one graph of ours."""
    import torch

    given = [section("kaldi_lattices"), section("kaldi_scores")]
    settings = config.load(ScoresConfig, given, ["num_paths=2", "search_beam=100"])
    graph, table = own_graph(folder, settings)
    log_probs, lengths = noise(6.0)
    scores = [(f"u{n:02d}", log_probs[n, : lengths[n]]) for n in range(8)]
    lattices = ScoreSearch(graph, settings, folder).lattices(scores)
    found = list(imported_lists(lattices, table, None, settings.searched()))
    best = open_decoder(folder, search("kaldi", 1.0, 0.0))
    told = best.decode(torch.from_numpy(log_probs[:8]), torch.from_numpy(lengths[:8]))
    assert len(found) == 8
    for one, wanted in zip(found, told):
        assert wanted is not None and one.hyps[0].words == wanted[0].words
        assert one.hyps[0].am_score == pytest.approx(wanted[0].am_score, abs=TOLERANCE)
        assert one.hyps[0].lm_scores["graph"] == pytest.approx(wanted[0].lm_score, abs=TOLERANCE)

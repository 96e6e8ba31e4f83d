"""What a recognizer is made of, and what it cannot do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from privasr_k2 import config
from privasr_k2.decoding.first_pass import SearchConfig
from privasr_k2.decoding.recognizer import (
    CONTACTS,
    FILE,
    GraphSettings,
    Recognizer,
    RecognizerSpec,
    contact_graph,
    describe,
    make_graph,
)
from privasr_k2.errors import ConfigError, DataError
from privasr_k2.fileio import write_json, write_text
from privasr_k2.lm.arpa import write_arpa
from privasr_k2.lm.ngram import count_ngrams, estimate
from privasr_k2.text.hotwords import read_hotwords
from tests.support.conf import section
from tests.support.hotwords import write_list
from tests.support.small_graphs import make_lang

SEARCH = SearchConfig("k2", 20.0, 8.0, 30, 1000, 0.8, [0.5, 1.0], [0.0])
FEATURES = "dim: 13\nframe_shift: 0.01\nsampling_rate: 16000\n"
SECTIONS = [section(name) for name in ("graph", "hotwords", "contacts")]
STORED = "speed_perturb: false\ntick_power: -6\ncuts_per_file: 9\n"


def test_a_corpus_that_brings_features_has_a_recognizer_that_takes_no_audio(tmp_path: Path) -> None:
    weights = {"role": "dev", "lm_weight": 0.5, "insertion_penalty": 1.0}
    write_json(tmp_path / "weights.json", weights)
    write_text(tmp_path / "feats" / "features.yaml", f"kind: given\n{FEATURES}{STORED}")
    folder = tmp_path / "exp"
    names = {"graph": "graph", "features": "feats", "weights": "weights.json"}
    paths = {option: tmp_path / name for option, name in names.items()}
    spec = describe(model=folder / "am", **paths, search=SEARCH, beside=folder)
    assert (spec.model, spec.graph, spec.features) == ("am", "../graph", "given")
    assert (spec.search.lm_weights, spec.search.insertion_penalties) == ([0.5], [1.0])
    config.save(spec, folder / FILE)
    with pytest.raises(DataError, match="features that are computed from audio: fbank or mfcc"):
        Recognizer.from_folder(folder)


def test_what_another_graph_is_made_of(tmp_path: Path) -> None:
    """Relative to the file; a recognizer that does not say it takes no hotwords."""
    write_json(tmp_path / "weights.json", {"role": "dev", "lm_weight": 1, "insertion_penalty": 0})
    write_text(tmp_path / "feats" / "features.yaml", f"kind: fbank\n{FEATURES}{STORED}")
    settings = config.load(GraphSettings, SECTIONS)
    paths = {"model": "am", "graph": "graph", "features": "feats", "weights": "weights.json"}
    common = {name: tmp_path / path for name, path in paths.items()}
    common |= {"search": SEARCH, "beside": tmp_path / "exp"}
    sources = tmp_path / "lang", tmp_path / "lm.arpa", settings
    spec = describe(**common, sources=sources)
    config.save(spec, tmp_path / "exp" / FILE)
    read = config.load(RecognizerSpec, [tmp_path / "exp" / FILE])
    assert (read.lang, read.lm) == ("../lang", "../lm.arpa")
    assert config.from_values(GraphSettings, read.graph_settings, FILE) == settings
    listed = read_hotwords(write_list(tmp_path / "names.txt", "ann"))
    with pytest.raises(DataError, match="export stage"):
        make_graph(tmp_path, describe(**common), listed, tmp_path / "made", bonus=None)


def test_the_graph_for_contacts_is_kept_until_its_sources_change(tmp_path: Path) -> None:
    lang = make_lang(tmp_path / "lang", "ab ▁ a b\nn ▁ n\n")
    counts = count_ngrams([["ab", "n"], ["n"]], ["ab", "n"], order=2)
    write_arpa(estimate(counts, "witten_bell"), tmp_path / "a.arpa")
    settings = config.load(GraphSettings, SECTIONS)
    exp = tmp_path / "exp"
    exp.mkdir()
    sources = {"lang": "../lang", "lm": "../a.arpa", "graph_settings": vars(settings)}
    spec = RecognizerSpec("am", "graph", "fbank", 16000, SEARCH, **sources)
    listed = read_hotwords(write_list(tmp_path / "names.txt", "ban"))
    opened, log_prob = contact_graph(exp, spec, log_prob=None)
    assert log_prob == settings.contact_log_prob
    _, words = opened.with_names(listed, log_prob=log_prob)
    assert words[len(lang.words) - 1 :] == ("ban", "#0", "#bNAME", "#xNAME")
    kept = exp / CONTACTS
    made = kept.stat().st_mtime_ns
    assert contact_graph(exp, spec, log_prob=-7.0)[1] == -7
    assert kept.stat().st_mtime_ns == made
    make_lang(tmp_path / "lang", "ab ▁ a b\nn ▁ n\nnn ▁ n n\n")
    contact_graph(exp, spec, log_prob=None)
    assert kept.stat().st_mtime_ns > made
    with pytest.raises(DataError, match="export stage"):
        contact_graph(exp, replace(spec, lang=""), log_prob=None)
    search = replace(SEARCH, backend="kaldi")
    with pytest.raises(ConfigError, match="backend=k2"):
        contact_graph(exp, replace(spec, search=search), log_prob=None)

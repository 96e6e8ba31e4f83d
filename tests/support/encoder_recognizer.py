"""A recognizer upon a public encoder: a random head, and the graph of a few words."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from privasr_k2 import config
from privasr_k2.am.checkpoints import save_model
from privasr_k2.am.ctc import CtcModel, CtcSpec
from privasr_k2.am.kinds import new_model
from privasr_k2.data.features import FeatureConfig
from privasr_k2.decoding.first_pass import SearchConfig
from privasr_k2.decoding.recognizer import FILE, describe
from privasr_k2.encoders.frozen import FrozenEncoder
from privasr_k2.fileio import write_json
from privasr_k2.lm.ngram import count_ngrams, estimate
from tests.support.conf import section
from tests.support.small_am import encoder_config
from tests.support.small_graphs import make_graph, make_lang

SEARCH = SearchConfig("k2", 20.0, 8.0, 30, 1000, 0.8, [0.5, 1.0], [0.0])
LEXICON = "AB a b\nBA b a\nC c\nCA c a\n"


def head(dim: int, num_tokens: int = 4) -> CtcModel:
    """A TDNN without subsampling, whose outputs differ from frame to frame."""
    encoder = encoder_config("tdnn", subsampling=1)
    spec = CtcSpec("ctc", dim, num_tokens, utterance_mean=True, encoder=encoder)
    model = new_model(spec, seed=3)
    model.output.weight.data *= 20
    return model.eval()


def write_recognizer(exp: Path, encoder: Path, dim: int, **settings: object) -> CtcModel:
    """``exp/recognizer.yaml`` and what it names; the head of it.

    Args:
        dim: D of the encoder's output.
        settings: of ``features.encoder``, such as ``chunk_seconds``.
    """
    values = ["kind=encoder", *(f"encoder.{name}={value}" for name, value in settings.items())]
    features = config.load(FeatureConfig, [section("features")], values)
    about = {"kind": "encoder", "sampling_rate": 16000, "encoder": asdict(features.encoder)}
    about["public_encoder"] = FrozenEncoder(encoder, features.encoder).about
    write_json(exp / "feats/features.yaml", about)  # JSON is YAML
    write_json(exp / "weights.json", {"role": "dev", "lm_weight": 0.5, "insertion_penalty": 0.0})
    lang = make_lang(exp / "lang", LEXICON)
    text = [["AB", "C"], ["CA", "BA", "AB"], ["C", "C"]]
    lm = estimate(count_ngrams(text, list(lang.word_ids), order=2), "witten_bell")
    make_graph(exp / "graph", lang, lm)
    model = head(dim)
    save_model(exp / "am", model.spec, model.state_dict(), lang.tokens)
    names = {"model": "am", "graph": "graph", "features": "feats", "weights": "weights.json"}
    spec = describe(**{o: exp / name for o, name in names.items()}, search=SEARCH, beside=exp)
    config.save(spec, exp / FILE)
    return model

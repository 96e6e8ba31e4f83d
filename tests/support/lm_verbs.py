"""Helpers shared with ``test_lm_verbs.py``."""

from __future__ import annotations

from pathlib import Path

import pytest

from privasr_k2.fileio import write_text
from privasr_k2.graph.lang import symbols_text
from tests.support.conf import section
from tests.support.small_lm import GRAMMAR_WORDS, grammar_sentences

QUICK = ("epochs=2", "max_words=100", "lr=0.02")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A manifests folder and a lang folder of the tiny grammar."""
    pytest.importorskip("lhotse")
    from lhotse import MonoCut, SupervisionSegment

    from privasr_k2.data.manifests import save_cuts

    folder = tmp_path_factory.mktemp("data")
    for role, count in (("train", 200), ("dev", 30)):
        cuts = []
        for n, words in enumerate(grammar_sentences(count, seed=count)):
            name = f"{role}{n}"
            said = SupervisionSegment(name, name, 0.0, 1.0, text=" ".join(words), speaker=role)
            cuts.append(MonoCut(name, 0.0, 1.0, 0, supervisions=[said]))
        save_cuts(cuts, folder / "manifests", role)
    write_text(folder / "lang" / "tokens.txt", "<blk> 0\na 1\n")
    write_text(folder / "lang" / "words.txt", symbols_text(["<eps>", *GRAMMAR_WORDS, "#0"]))
    write_text(folder / "lang" / "lexicon.txt", "".join(f"{word} a\n" for word in GRAMMAR_WORDS))
    return folder / "manifests", folder / "lang"


def train_flags(corpus: tuple[Path, Path], kind: str, out_dir: Path, *more: str) -> list[object]:
    layers = [section(f"lm_{kind}"), section(f"lm_{kind}", "tiny")]
    inputs = ["--in-manifests", corpus[0], "--in-lang", corpus[1], "--out-dir", out_dir]
    return [*inputs, "--device", "cpu", "--config", *layers, "--set", *QUICK, *more]

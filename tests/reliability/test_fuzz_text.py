"""Damaged text: a value or a clear error, never a traceback, and nothing is written."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from hypothesis import given

from privasr_k2 import config
from privasr_k2.corpora.kaldi_dir import Pipes, read_kaldi_dir
from privasr_k2.fileio import read_yaml
from privasr_k2.graph.lang import load_lang, read_tokens
from privasr_k2.graph.lexicon import load_pronunciations
from privasr_k2.lm.arpa import read_arpa
from privasr_k2.scoring.corpus_info import read_vocabulary
from privasr_k2.scoring.nbest_formats import read_ctm, read_kaldi, read_trn
from privasr_k2.text.name_lists import read_name_lists
from privasr_k2.text.normalize import normalize_english
from privasr_k2.text.tag_gold import read_conll, read_earnings21
from privasr_k2.text.tagged_files import read_sentences
from tests.support.arpa import TEXT as ARPA
from tests.support.fuzz_tools import DAMAGE, Files, check, few, is_refused

pytestmark = [pytest.mark.reliability, pytest.mark.timeout(300)]


def silence() -> bytes:
    """Two seconds as FLAC."""
    file = io.BytesIO()
    soundfile.write(file, np.zeros(32000), 16000, format="FLAC")
    return file.getvalue()


LEXICON = ";;; words\nA AH\nA(2) EY\nCALL K AO1 L # as said\nANN AE N\n"
LANG = {
    "tokens.txt": b"<blk> 0\nAH 1\nK 2\nL 3\n",
    "words.txt": b"<eps> 0\na 1\ncall 2\n#0 3\n",
    "lexicon.txt": b"a AH\ncall K AH L\n",
    "dev_lexicon.txt": b"lack L AH K\n",
}
KALDI_DIR = {
    "text": b"s1-u1 call ann\ns1-u2 hello\ns2-u1 a caf\xc3\xa9\n",
    "utt2spk": b"s1-u1 s1\ns1-u2 s1\ns2-u1 s2\n",
    "wav.scp": b"r1 r1.flac\nr2 r2.flac\n",
    "segments": b"s1-u1 r1 0.0 1.25\ns1-u2 r1 1.5 2\ns2-u1 r2 0 -1\n",
    "spk2gender": b"s1 f\ns2 m\n",
    **dict.fromkeys(("r1.flac", "r2.flac"), silence()),
}
CTM = ";; comment\nu1 1 0.000 0.300 call 0.9\nu1 1 0.300 0.250 ann 0.55\nu2 A 0.1 0.2 hello\n"
KALDI_NBEST = {
    "words": b"u1-1 call ann\nu1-2 call an\nu2-1 hello\n",
    "ac_cost": b"u1-1 12.5\nu1-2 13\nu2-1 4\n",
    "lm_cost": b"u1-1 2.5\nu1-2 1e1\nu2-1 4\n",
    "lm_cost.lstm": b"u1-1 2.5\nu1-2 3\nu2-1 -0.5\n",
    "no_path": b"u3\n",
}
CONLL = (
    "-DOCSTART- O\n\nCall NN O\nAnn NNP B-PER\nHill NNP I-PER\n\nin O\nRome I-LOC\nParis B-LOC\n"
)
EARNINGS21 = (
    "idx\ttoken\tspeaker\tpunct\tentities\n0\tWelcome\t1\t,\t\n1\tAnn\t1\t\t1:PERSON\n"
    "2\tHill\t1\t.\t1:PERSON 2:PERSON\n3\tThanks\t2\t?\t\n"
)
NAMES = {"per.txt": b"Ann Hill\t0.25\nBob\t0.75\n", "loc.txt": b"Rome\nNew York\n"}


@dataclass(frozen=True)
class Inner:
    kind: str
    sizes: tuple[int, ...]


@dataclass(frozen=True)
class Config:
    """A configuration with a value of every type that ours have."""

    lr: float
    epochs: int
    tied: bool
    units: str
    inner: Inner
    classes: dict[str, str]
    limit: float | None

    def __post_init__(self) -> None:
        if not self.lr > 0:
            raise ValueError(f"lr must be above 0, got {self.lr}")


YAML = b"""# what training wants
lr: 1e-3
epochs: 12
tied: true
units: phone
inner: {kind: lstm, sizes: [1, 2]}
classes:
  GPE: LOC
  DATE: ""
limit: null
"""


def arpa(folder: Path, name: str = "lm.arpa") -> Any:
    """A model that was read gives every sentence a probability."""
    model = read_arpa(folder / name)
    scores, _ = model.sentence_scores([["a", "b"], ["c", "a", "x"], []])
    assert np.isfinite(scores).all(), scores
    return model


def kaldi_dir(folder: Path) -> Any:
    pipes = Pipes(False, folder / "audio", 1)  # no commands
    return read_kaldi_dir(folder, part="train", pipes=pipes, sampling_rate=16000)


def sentences(folder: Path) -> Any:
    return read_sentences(folder / "x.txt", lambda w: normalize_english(" ".join(w)).split())


def configuration(folder: Path) -> Config:
    """Every value has its type."""
    made = config.load(Config, [folder / "x.yaml"])
    assert type(made.lr) is float and type(made.epochs) is int and type(made.tied) is bool
    assert all(type(size) is int for size in made.inner.sizes)
    return made


FORMATS: dict[str, tuple[Files, Callable[[Path], Any]]] = {
    "arpa": ({"lm.arpa": ARPA.encode()}, arpa),
    "lexicon": ({"l.txt": LEXICON.encode()}, lambda f: load_pronunciations(f / "l.txt")),
    "lang": (LANG, load_lang),
    "tokens": ({"tokens.txt": LANG["tokens.txt"]}, lambda f: read_tokens(f / "tokens.txt")),
    "vocabulary": ({"words.txt": LANG["words.txt"]}, read_vocabulary),
    "kaldi_dir": (KALDI_DIR, kaldi_dir),
    "ctm": ({"hyp.ctm": CTM.encode()}, lambda f: read_ctm([f / "hyp.ctm"])),
    "trn": ({"hyp.trn": b";; c\ncall ann (u1)\n(u2)\n"}, lambda f: read_trn(f / "hyp.trn")),
    "kaldi_nbest": (KALDI_NBEST, read_kaldi),
    "conll": ({"x.conll": CONLL.encode()}, lambda f: list(read_conll(f / "x.conll"))),
    "earnings21": ({"1.nlp": EARNINGS21.encode()}, lambda f: read_earnings21(f / "1.nlp")),
    "name_lists": (NAMES, lambda f: read_name_lists(f, normalize_english)),
    "sentences": ({"x.txt": "call Ann\n\ncafé\n".encode()}, sentences),
    "yaml": ({"x.yaml": YAML}, configuration),
    "plain_yaml": ({"x.yaml": YAML}, lambda f: read_yaml(f / "x.yaml")),
}


@pytest.mark.parametrize("name", FORMATS)
def test_the_files_are_sound(name: str) -> None:
    files, read = FORMATS[name]
    assert not is_refused(check(files, [], read))


@pytest.mark.parametrize("name", FORMATS)
@given(damages=DAMAGE)
@few()
def test_damaged_text(name: str, damages: list[tuple[int, int, int]]) -> None:
    files, read = FORMATS[name]
    check(files, damages, read)


@given(damages=DAMAGE)
@few()
def test_damaged_gzip(damages: list[tuple[int, int, int]]) -> None:
    files = {"lm.arpa.gz": gzip.compress(ARPA.encode(), mtime=0)}
    check(files, damages, lambda folder: arpa(folder, "lm.arpa.gz"))

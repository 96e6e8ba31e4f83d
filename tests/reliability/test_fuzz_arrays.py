"""Files of arrays, damaged at random: a value or a clear error.

Changed numbers are numbers, too: only stamps reveal them (``--verify true``).
"""

from __future__ import annotations

import dataclasses
import functools
import json
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from safetensors.numpy import save_file

from privasr_k2.corpora.kaldi_dir import Pipes, read_kaldi_dir
from privasr_k2.decoding.lattice_files import read_lattices, write_lattices
from privasr_k2.decoding.lattices import Lattice
from privasr_k2.decoding.lm_scores import read_lm_scores, write_lm_scores
from privasr_k2.federated.fmp_background import read_background, write_background
from privasr_k2.federated.fmp_published import is_published, read_published
from privasr_k2.federated.fmp_release import FmpReleaseConfig, read_release
from privasr_k2.federated.fmp_settings import PublishedConfig
from privasr_k2.federated.fmp_spoken import WordNumbers
from privasr_k2.pate.votes import Votes, read_votes, write_votes
from privasr_k2.scoring.hypotheses import Weights
from privasr_k2.scoring.nbest_lists import Hypothesis, NbestList, NbestLists
from tests.support.fuzz_tools import DAMAGE, check, damaged, few, is_refused

pytestmark = [pytest.mark.reliability, pytest.mark.timeout(300)]

HYP = Hypothesis(1, "call ann", -1.0, {"graph": -2.0})
LISTS = NbestLists(
    Path("lists"),
    (NbestList("u1", "dev", "s1", "call ann", False, (HYP,)),),
    {"u1": "lists/1.jsonl:1"},
    ("graph",),
)
Damages = Sequence[tuple[int, int, int]]
NUMBERS = WordNumbers({"a": 1, "b": 2}, 3, 0, (0,), None)
RELEASE = FmpReleaseConfig(
    data="mini/test", unit="user", mechanism="discrete_gaussian", strategy="increments", rounds=2,
    max_rounds=1, bound=20.0, kernel_bandwidth=1.0, decay=1.0, epsilon=4.0, delta=1e-5,
)  # fmt: skip
PUBLISHED = PublishedConfig(
    data="mini/test", unit="user", rounds=2, kernel_bandwidth=1.0, decay=1.0, prior_words=1.0,
    epsilon=1.0, words=7.0, delta=1e-5,
)  # fmt: skip
LATTICE = Lattice(
    "u1", "dev", "s1", "a", 4.0, np.array([0.0, 0.5, 1.0]), np.array([0, 1], dtype=np.int32),
    np.array([1, 2], dtype=np.int32), np.array([1, 0], dtype=np.int32), np.array([-1.5, -0.5]),
    np.array([-2.0, -0.25]),
)  # fmt: skip
VOTES = Votes(
    vote="utterance", of="votes", teachers=3, unit="speaker", units=6, max_hyps=2,
    largest_weight=1.0, step=1.0, tokens=(), ids=("u1", "u2"), splits=np.array([0, 1, 2]),
    units_in_a_shard=2, persons=("s0",), person_votes=1,
    sizes=np.array([2, 2]), counts=np.array([3, 0, 1, 2]), digests=((("u1", "u2"), "d" * 64),),
)  # fmt: skip


def write_scores(path: Path) -> None:
    write_lm_scores(path, "lstm", LISTS, np.array([-1.0, -2.0, -0.5]))


def read_scores(path: Path) -> Any:
    """As many numbers as the lists have words."""
    found = read_lm_scores([path], LISTS)
    assert [values.shape for values in found.values()] == [(3,)]
    return found


def write_marginals(path: Path) -> None:
    told = {"release": "0" * 32, "config": dataclasses.asdict(RELEASE), "words": NUMBERS.digest}
    save_file({"measured": np.arange(6).reshape(2, 3)}, str(path), {"json": json.dumps(told)})


def read_marginals(path: Path) -> Any:
    """Counts that can be decoded."""
    mechanism, measured = read_release(path, NUMBERS)
    assert mechanism.sums(measured).shape == (mechanism.config.rounds, NUMBERS.size)
    return mechanism, is_published(path)


def write_as_published(path: Path) -> None:
    told = {"release": "0" * 32, "published": vars(PUBLISHED), "words": NUMBERS.digest}
    save_file({"marginals": np.full((2, 3), 0.25)}, str(path), {"json": json.dumps(told)})


def as_published(path: Path) -> Any:
    """A distribution for every round."""
    marginals, settings = read_published(path, NUMBERS)
    assert marginals.ndim == 2 and marginals.shape[1] == NUMBERS.size
    return marginals, settings


def weights(path: Path) -> Any:
    torch_weights = pytest.importorskip("privasr_k2.training.weights")
    return torch_weights.load_tensors(path), torch_weights.read_header(path)


def write_weights(path: Path) -> None:
    tensors = {"a": np.ones((2, 2), np.float32), "b": np.zeros(3)}
    save_file(tensors, str(path), {"json": '{"step": 1}'})


FORMATS: dict[str, tuple[Callable[[Path], Any], Callable[[Path], Any]]] = {
    "lm_scores": (write_scores, read_scores),
    "marginals": (write_marginals, read_marginals),
    "published": (write_as_published, as_published),
    "background": (
        lambda path: write_background(path, np.array([0.0, 0.25, 0.75]), NUMBERS),
        lambda path: read_background(path, NUMBERS),
    ),
    "lattices": (
        lambda path: write_lattices(path, [LATTICE], ("<eps>", "a"), Weights(0.5, 0.0)),
        lambda path: read_lattices(path.parent),
    ),
    "votes": (lambda path: write_votes(path, VOTES), lambda path: read_votes(path.parent)),
    "weights": (write_weights, weights),
}


@functools.cache
def whole(name: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "1.safetensors"
        FORMATS[name][0](path)
        return path.read_bytes()


def read(name: str, content: bytes, damages: Damages = ()) -> Any:
    """The content of a file after damage, or the error that refuses it."""
    files = {"1.safetensors": content}
    return check(files, list(damages), lambda folder: FORMATS[name][1](folder / "1.safetensors"))


@pytest.mark.parametrize("name", FORMATS)
def test_the_files_are_sound(name: str) -> None:
    found = read(name, whole(name))
    assert not is_refused(found), found


@pytest.mark.parametrize("name", FORMATS)
@given(damages=DAMAGE)
@few(150)
def test_damaged_arrays(name: str, damages: list[tuple[int, int, int]]) -> None:
    read(name, whole(name), damages)


@pytest.mark.parametrize("name", FORMATS)
@given(damages=DAMAGE)
@few(150)
def test_damaged_header(name: str, damages: list[tuple[int, int, int]]) -> None:
    """The header alone, its length corrected: what lies behind it is read."""
    content = whole(name)
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    told = header["__metadata__"]["json"]
    header["__metadata__"]["json"] = damaged(told.encode(), damages).decode(errors="replace")
    text = json.dumps(header).encode()
    read(name, len(text).to_bytes(8, "little") + text + content[8 + size :])


@functools.cache
def kaldi_features() -> dict[str, bytes]:
    """A Kaldi data directory with features; its archive stands beside it."""
    import kaldi_native_io

    with tempfile.TemporaryDirectory() as name:
        with kaldi_native_io.FloatMatrixWriter(f"ark,scp:{name}/f.ark,{name}/f.scp") as writer:
            for key in ("u1", "u2"):
                writer.write(key, np.ones((4, 3), np.float32))
        scp = (Path(name) / "f.scp").read_text().replace(f"{name}/", "")
        archive = (Path(name) / "f.ark").read_bytes()
    return {
        "text": b"u1 call ann\nu2 hello\n",
        "utt2spk": b"u1 s1\nu2 s2\n",
        "feats.scp": scp.encode(),
        "utt2dur": b"u1 0.06\nu2 0.05\n",
        "f.ark": archive,
    }


def features(folder: Path) -> Any:
    """Commands are not allowed."""
    pipes = Pipes(False, folder / "audio", 1)
    return read_kaldi_dir(folder, part="train", pipes=pipes, sampling_rate=16000)


def test_the_features_are_sound() -> None:
    assert len(check(kaldi_features(), [], features)) == 2


@given(damages=DAMAGE)
@few()
def test_damaged_features(damages: list[tuple[int, int, int]]) -> None:
    check(kaldi_features(), damages, features)

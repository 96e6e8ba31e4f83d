"""Lists of Whisper's decoder: with a model that is made up, and where one is at hand a real one."""

from __future__ import annotations

import json
import math
import os
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import soundfile
import torch
import yaml

from privasr_k2.config import load
from privasr_k2.data.manifests import load_cuts
from privasr_k2.decoding import whisper_model
from privasr_k2.decoding.whisper import WhisperConfig, joined, merged, pieces, whisper_cuts
from privasr_k2.decoding.whisper_model import WhisperModel, Written, open_whisper, text_of
from privasr_k2.decoding.whisper_text import NORMALIZERS, spoken_english
from privasr_k2.encoders.log_mel import log_mel
from privasr_k2.errors import ConfigError, DataError
from privasr_k2.scoring.align import align
from privasr_k2.scoring.nbest_lists import read_nbest
from tests.support.conf import section
from tests.support.verbs import call, refused

RATE = 16000
ENGLISH = frozenset({"<|startoftranscript|>", "<|notimestamps|>"})
MANY = ENGLISH | {"<|en|>", "<|de|>", "<|transcribe|>"}


class MadeUp:
    """Writes how many tenths of a second it hears, in four forms."""

    n_mels = 80
    is_multilingual = False
    compute_type = "int8_float32"

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []

    def generate(self, view: np.ndarray, prompts: list[list[str]], **settings: Any) -> list[Any]:
        self.calls.append({"shape": view.shape, "prompts": prompts, **settings})
        results = []
        for spectrum in view:
            loud = (spectrum[:, ::10].max(axis=0) > spectrum.min() + 0.1).sum()
            forms = [[str(int(loud)), "."], [str(int(loud))], ["\u0120Oh", "!", "?"], ["Oh"]]
            scores = [-1.0, -3.0, -1.5, -2.5]
            results.append(SimpleNamespace(sequences=forms, scores=scores))
        return results


@pytest.fixture(autouse=True)
def arrays_in_place_of_views(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whisper_model, "_view", lambda features: features)


def config(*overrides: str) -> WhisperConfig:
    return load(WhisperConfig, [section("whisper_nbest")], overrides)


def model(**changes: Any) -> WhisperModel:
    made_up = MadeUp()
    for name, value in changes.items():
        setattr(made_up, name, value)
    return WhisperModel(made_up, MANY if changes.get("is_multilingual") else ENGLISH, Path("m"))


def noise(seconds: float, rate: int = RATE) -> np.ndarray:
    samples = np.random.default_rng(1).normal(size=int(seconds * rate)) * 0.1
    return samples.astype(np.float32)


def write_cuts(folder: Path, *seconds: float, rate: int = RATE) -> Path:
    """Cuts of test, a file each."""
    from lhotse import CutSet, MonoCut, Recording, SupervisionSegment

    from privasr_k2.data.manifests import save_cuts

    cuts = []
    for number, duration in enumerate(seconds, start=1):
        path = folder / f"u{number}.wav"
        soundfile.write(path, noise(duration, rate), rate)
        recording = Recording.from_file(path)
        text = SupervisionSegment(f"u{number}", path.stem, 0, duration, text="oh", speaker="s")
        cuts.append(MonoCut(f"u{number}", 0, duration, 0, recording=recording, supervisions=[text]))
    return save_cuts(CutSet.from_cuts(cuts), folder / "manifests", "test")


def lists_of(path: Path, *overrides: str, use: WhisperModel | None = None) -> list[Any]:
    cuts = load_cuts(path.parent, "test")
    return [nbest for nbest, _ in whisper_cuts(use or model(), cuts, config(*overrides))]


def test_scores_are_log_probabilities_of_words(tmp_path: Path) -> None:
    [nbest] = lists_of(write_cuts(tmp_path, 1.0))
    number, oh = nbest.hyps
    assert (nbest.id, nbest.speaker, nbest.ref, nbest.no_path) == ("u1", "s", "oh", False)
    # A score is by token: two tokens of -1 and one of -3; three of -1.5 and one of -2.5.
    assert oh.words == "oh" and oh.am_score == pytest.approx(np.logaddexp(-4.5, -2.5))
    assert number.am_score == pytest.approx(np.logaddexp(-2.0, -3.0))
    assert [number.rank, oh.rank] == [1, 2] and not number.lm_scores


def test_length_penalty_is_undone(tmp_path: Path) -> None:
    [nbest] = lists_of(write_cuts(tmp_path, 1.0), "length_penalty=0.5", "normalize=none")
    by_words = {hyp.words: hyp.am_score for hyp in nbest.hyps}
    assert by_words["Oh!?"] == pytest.approx(-1.5 * 3**0.5) and by_words["Oh"] == -2.5


def test_normalization_is_named(tmp_path: Path) -> None:
    path = write_cuts(tmp_path, 1.0)
    words = {
        name: [hyp.words for hyp in lists_of(path, f"normalize={name}")[0].hyps]
        for name in NORMALIZERS
    }
    [figure] = {word for word in words["plain"] if word.isdecimal()}
    assert set(words["none"]) == {f"{figure}.", figure, "Oh!?", "Oh"}
    assert words["english"] == [spoken_english(figure), "oh"]
    with pytest.raises(ConfigError, match="normalize"):
        config("normalize=french")


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (" Mr. and Mrs. Dow's 3rd, at 5%", "mister and missus dow's third at five percent"),
        ("It's O.K. \u2013 don\u2019t [BLANK_AUDIO]", "it's o k don't"),
        ("In 1905 he paid $2.50.", "in nineteen oh five he paid two dollars and fifty cents"),
        ("", ""),
    ],
)  # fmt: skip
def test_english_as_it_is_said(written: str, said: str) -> None:
    assert spoken_english(written) == said


def test_prompts_and_search(tmp_path: Path) -> None:
    path = write_cuts(tmp_path, 0.5, 1.0, 0.7)
    one, many = model(), model(is_multilingual=True)
    lists_of(path, "batch=2", use=one)
    first, second = one.model.calls
    assert (first["shape"], second["shape"]) == ((2, 80, 3000), (1, 80, 3000))
    assert first["prompts"] == 2 * [["<|startoftranscript|>", "<|notimestamps|>"]]
    assert first["return_scores"]
    lists_of(path, "language=de", "beam_size=1", "num_hypotheses=4", use=many)
    [call_] = many.model.calls
    assert call_["prompts"][0][1:] == ["<|de|>", "<|transcribe|>", "<|notimestamps|>"]
    assert (call_["beam_size"], call_["num_hypotheses"]) == (4, 4)
    with pytest.raises(ConfigError, match=r"<\|xx\|>"):
        many.prompt("xx")
    with pytest.raises(ConfigError, match="English alone"):
        one.prompt("de")


def test_jobs_share_the_cuts(tmp_path: Path) -> None:
    path = write_cuts(tmp_path, 0.5, 1.0, 0.7)
    whole = {nbest.id: nbest for nbest in lists_of(path)}
    parts = [n for job in (1, 2) for n in lists_of(path, f"job={job}", "num_jobs=2", "batch=1")]
    assert {nbest.id: nbest for nbest in parts} == whole and len(parts) == 3


def test_long_audio_is_cut_where_it_is_quiet() -> None:
    audio = noise(71.0)
    quiet = [(24.0, 24.3), (50.0, 50.4)]
    for start, end in quiet:
        audio[int(start * RATE) : int(end * RATE)] = 0
    cut = pieces(audio)
    ends = np.cumsum([len(piece) for piece in cut])[:-1] / RATE
    assert len(cut) == 3 and np.array_equal(np.concatenate(cut), audio)
    assert all(start < end < stop for end, (start, stop) in zip(ends, quiet))
    assert max(map(len, pieces(noise(200.0)))) <= 30 * RATE


def test_the_best_of_joined_pieces() -> None:
    rng = np.random.default_rng(3)
    lists = [
        [Written(f"{i}{j}", float(s), 1) for j, s in enumerate(rng.normal(size=4))]
        for i in range(3)
    ]
    slow = sorted(
        (a.log_prob + b.log_prob + c.log_prob, f"{a.text} {b.text} {c.text}")
        for a in lists[0] for b in lists[1] for c in lists[2]
    )[::-1][:4]  # fmt: skip
    assert [(t.log_prob, t.text) for t in joined(lists, 4, 1.0)] == [
        (pytest.approx(score), text) for score, text in slow
    ]
    assert joined(lists[:1], 2, 1.0) == lists[0]


def test_merging_adds_probabilities() -> None:
    texts = [
        Written("c", math.log(0.4), 2),
        Written("a B", math.log(0.2), 2),
        Written("A b.", math.log(0.3), 3),
    ]
    both, other = merged(texts, NORMALIZERS["plain"], 1.0)
    assert (both.words, both.am_score) == ("a b", pytest.approx(math.log(0.5)))
    assert (other.words, other.rank) == ("c", 2)  # the likelier text of the others is longer
    assert merged(texts, NORMALIZERS["plain"], 0.0)[0].words == "c"


def test_a_text_that_stops_early_is_not_the_best() -> None:
    texts = [Written("the", -5.1, 1), Written("the end of my days", -8.1, 5)]
    whole, short = merged(texts, NORMALIZERS["plain"], 1.0)
    assert (whole.words, short.words, short.am_score) == ("the end of my days", "the", -5.1)


def test_features_of_a_tone() -> None:
    seconds = torch.arange(RATE) / RATE
    tone = torch.sin(2 * math.pi * 1000.0 * seconds)[None]
    features, frames = log_mel(tone, torch.tensor([RATE]), 80, 30 * RATE)
    assert features.shape == (1, 3000, 80) and frames.tolist() == [100]
    assert features[0, 50].argmax() == 26  # 1 kHz is mel 15; centers are (i + 1) * 45.245 / 81
    assert features[0, :98].max() - features[0, 200:].max() == pytest.approx(2.0)  # 8 decades / 4
    alone, _ = log_mel(tone, torch.tensor([RATE]), 80, 30 * RATE)
    assert torch.equal(alone, features)


def test_texts_of_tokens() -> None:
    assert text_of(["\u0120na", "\u00c3\u00af", "ve", "<|endoftext|>"]) == " na\u00efve"
    assert text_of(["\u00c3"]) == "\ufffd"  # half a letter


def test_texts_as_the_package_tokenizers_makes_them() -> None:
    tokenizers = pytest.importorskip("tokenizers")
    level = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    for text in (" Caf\u00e9 \u2013 5 \u20ac, \u65e5\u672c\u00ad", "a\tb\x00\x7f\xa0c"):
        tokens = [token for token, _ in level.pre_tokenize_str(text)]
        assert text_of(tokens) == tokenizers.decoders.ByteLevel().decode(tokens) == text


def write_model(folder: Path, *names: str) -> Path:
    folder.mkdir()
    for name in names:
        (folder / name).write_text("{}")
    return folder


def test_bad_folders_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = config()
    with pytest.raises(DataError, match=r"no model\.bin"):
        open_whisper(write_model(tmp_path / "a", "config.json"), settings, device="cpu", threads=1)
    whole = write_model(tmp_path / "b", "config.json", "model.bin", "vocabulary.json")
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    with pytest.raises(ConfigError, match="pip install ctranslate2"):
        open_whisper(whole, settings, device="cpu", threads=1)
    monkeypatch.undo()
    pytest.importorskip("ctranslate2")
    with pytest.raises(DataError, match="a Whisper model for CTranslate2"):
        open_whisper(whole, settings, device="cpu", threads=1)


def test_bad_audio_is_refused_before_decoding(tmp_path: Path) -> None:
    (tmp_path / "slow").mkdir()
    used = model()
    with pytest.raises(DataError, match="8000 Hz"):
        lists_of(write_cuts(tmp_path / "slow", 1.0, rate=8000), use=used)
    path = write_cuts(tmp_path, 1.0, 1.0)
    (tmp_path / "u2.wav").write_bytes(b"")
    with pytest.raises(DataError, match="an empty file"):
        lists_of(path, use=used)
    (tmp_path / "u1.wav").unlink()
    with pytest.raises(DataError, match="no such file"):
        lists_of(path, use=used)
    assert not used.model.calls


def test_the_verb_writes_lists_best_hypotheses_and_how(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_model(tmp_path / "model", "config.json", "model.bin")
    monkeypatch.setattr(
        whisper_model, "open_whisper", lambda *_, **__: replace(model(), place=folder)
    )
    monkeypatch.setitem(sys.modules, "ctranslate2", SimpleNamespace(__version__="0"))
    cuts, out = write_cuts(tmp_path, 1.0, 0.5), tmp_path / "nbest_test"
    call(
        f"whisper_nbest --in-encoder {folder} --in-cuts {cuts} --out-nbest {out}/1.jsonl"
        f" --out-hyps {tmp_path}/decode_test/1.jsonl --out-about {out}/1.yaml --device cpu"
        f" --config {section('whisper_nbest')} --set posterior_scale=1.0"
    )
    lists = read_nbest(out)
    assert [nbest.id for nbest in lists.lists] == ["u1", "u2"] and lists.lm_names == ()
    for hyp in lists.lists[0].hyps:  # one word each, or others at the same place
        share = math.exp(hyp.am_score) / sum(math.exp(h.am_score) for h in lists.lists[0].hyps)
        assert hyp.confidences is not None
        assert hyp.confidences[0] == pytest.approx(share, abs=1e-6)
    records = map(json.loads, (tmp_path / "decode_test/1.jsonl").read_text().splitlines())
    best = {record["id"]: record["hyps"][0]["words"] for record in records}
    assert best == {nbest.id: nbest.hyps[0].words for nbest in lists.lists}
    about = yaml.safe_load((out / "1.yaml").read_text())
    assert about["encoder"]["name"] == "model" and len(about["encoder"]["sha256"]) == 64
    assert about["settings"]["normalize"] == "english"
    assert about["settings"]["compute_type"] == "int8_float32"  # of auto
    with refused("cuts_<role>.jsonl.gz"):
        call(
            f"whisper_nbest --in-encoder {folder} --in-cuts {folder}/config.json"
            f" --out-nbest {out}/2.jsonl --config {section('whisper_nbest')}"
        )


@pytest.mark.slow
def test_a_real_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same texts have the same log-probabilities, however hypotheses compete."""
    monkeypatch.undo()
    if "PRIVASR_WHISPER" not in os.environ:
        pytest.skip("PRIVASR_WHISPER names no folder of Whisper tiny.en for CTranslate2")
    pytest.importorskip("ctranslate2")
    data = Path(os.environ.get("PRIVASR_SHARED_DATA", "../shared/data"))
    files = sorted((data / "LibriSpeech/train-clean-100").glob("*/*/*.trans.txt"))
    if not files:
        pytest.skip(f"no LibriSpeech in {data}")
    name, _, ref = files[0].read_text().splitlines()[0].partition(" ")
    audio, _ = soundfile.read(files[0].with_name(f"{name}.flac"), dtype="float32")
    by_penalty = []
    for penalty in ("0.0", "1.0"):
        settings = config(f"length_penalty={penalty}", "compute_type=float32")
        opened = open_whisper(
            Path(os.environ["PRIVASR_WHISPER"]), settings, device="cpu", threads=1
        )
        [texts] = opened.transcribe([audio], settings)
        # Other tokens may spell the same text: the likeliest ones.
        ordered = sorted(texts, key=lambda text: text.log_prob)
        by_penalty.append({text.text: text.log_prob for text in ordered})
        best = merged(texts, spoken_english, 1.0)[0]
        errors = sum(a != b for a, b in align(ref.lower().split(), best.words.split()))
        assert errors <= 0.3 * len(ref.split())
    plain, normalized = by_penalty
    both = plain.keys() & normalized.keys()
    assert len(both) >= 2
    assert {t: plain[t] for t in both} == pytest.approx({t: normalized[t] for t in both}, abs=1e-2)

"""Canaries and masked names: who remembers them is found, who has seen none is not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from privasr_k2.attack import noise_masking
from privasr_k2.attack.canary_losses import canary_losses, exposures, lm_losses
from privasr_k2.attack.name_ranks import NameLosses, name_exposure
from privasr_k2.attack.recognizers import Attacked, attack_canaries, attack_names
from privasr_k2.attack.settings import RecognizerAttackConfig
from privasr_k2.attack.speech_canaries import (
    SpeechCanaryConfig,
    candidate_cuts,
    plant_canaries,
    read_secrets,
    spoken_words,
)
from privasr_k2.data.features import extract, load_features
from privasr_k2.data.manifests import load_cuts, save_cuts
from privasr_k2.errors import ConfigError, DataError
from privasr_k2.graph.lang import Lang, load_lang
from tests.support.attack_small import loaded, write_cuts

soundfile = pytest.importorskip("soundfile")
pytest.importorskip("espeakng_loader")

LETTERS = "abcdefgh"
WORDS = ("abe", "bad", "cab", "deaf", "each", "fade", "head", "beach", "ab")


def config(*overrides: str) -> RecognizerAttackConfig:
    return loaded(RecognizerAttackConfig, "attack_recognizer", *overrides)


@pytest.fixture(scope="module")
def lang(tmp_path_factory: pytest.TempPathFactory) -> Lang:
    """A lang folder of characters."""
    folder = tmp_path_factory.mktemp("lang")
    tokens = ["<blk>", "▁", *LETTERS]
    (folder / "tokens.txt").write_text("".join(f"{t} {n}\n" for n, t in enumerate(tokens)))
    words = ["<eps>", *WORDS, "#0"]
    (folder / "words.txt").write_text("".join(f"{w} {n}\n" for n, w in enumerate(words)))
    (folder / "lexicon.txt").write_text("".join(f"{w} ▁ {' '.join(w)}\n" for w in WORDS))
    return load_lang(folder)


@pytest.fixture(scope="module")
def planted(lang: Lang, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six canaries beside one real speaker."""
    data = tmp_path_factory.mktemp("data")
    real = np.random.default_rng(0).normal(size=(60, 80))
    for role, speaker in (("train", "anna"), ("dev", "dora")):
        write_cuts(data / "private", role, [(speaker, "abe bad", real)])
    about = "kind: fbank\nsampling_rate: 16000\ntick_power: -5\ncuts_per_file: 100\ndim: 80\n"
    (data / "private/features.yaml").write_text(about)
    plant(data, lang)
    return data / "planted"


def plant(data: Path, lang: Lang, *overrides: str) -> None:
    small = ("canaries=6", "candidates=8", "secret_words=3", "repeats=2", *overrides)
    settings = loaded(SpeechCanaryConfig, "plant_canaries", *small)
    plant_canaries(data / "private", lang, settings, data / "planted", num_jobs=1)


def test_canaries_are_speakers_of_one_fast_sentence(planted: Path, lang: Lang) -> None:
    secrets = read_secrets(planted)
    cuts = candidate_cuts(planted, secrets)
    assert len(cuts) == 6 * 8 and len(secrets.planted) == 6
    texts = [cut.supervisions[0].text or "" for cut in cuts]
    assert all(len({*texts[8 * k : 8 * k + 8]}) == 8 for k in range(6))
    assert "ab" not in spoken_words(lang) and {*" ".join(texts).split()} <= {*spoken_words(lang)}
    train = load_cuts(planted, "train")
    assert {cut.supervisions[0].speaker for cut in train} == {"anna"} | {
        f"canary{k:04d}" for k in range(6)
    }
    for k, place in enumerate(secrets.planted):
        own = [cut for cut in train if cut.supervisions[0].speaker == f"canary{k:04d}"]
        assert [cut.supervisions[0].text for cut in own] == [texts[8 * k + place]] * 2
        assert not np.array_equal(*map(load_features, own))  # the noise is another one
        assert np.array_equal(load_features(own[0]), load_features(cuts[8 * k + place]))
    assert len(load_cuts(planted, "dev")) == 1 and load_features(train[0]).shape == (60, 80)


def test_speech_is_fast_and_keeps_its_length(planted: Path) -> None:
    cut = candidate_cuts(planted, read_secrets(planted))[0]
    samples = cut.load_audio()[0]
    power = np.square(samples[: len(samples) // 8 * 8].reshape(8, -1)).mean(axis=1)
    loud = power > 0.1 * power.max()
    assert loud[:4].any() and not loud[5:].any()
    assert cut.duration * 15 > len(cut.supervisions[0].text or "")  # frames for all characters


def test_the_same_seed_plants_the_same(planted: Path, lang: Lang, tmp_path: Path) -> None:
    (tmp_path / "private").symlink_to(planted.parent / "private")
    plant(tmp_path, lang)
    again, cuts = (candidate_cuts(p, read_secrets(p)) for p in (tmp_path / "planted", planted))
    assert read_secrets(tmp_path / "planted") == read_secrets(planted)
    assert np.array_equal(load_features(again[9]), load_features(cuts[9]))


def test_what_cannot_be_planted(planted: Path, lang: Lang, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="speakers who are no canaries, found canary0000"):
        settings = loaded(SpeechCanaryConfig, "plant_canaries")
        plant_canaries(planted, lang, settings, tmp_path / "twice", num_jobs=1)
    write_cuts(tmp_path / "private", "train", [("anna", "abe", np.zeros((9, 5)))])
    (tmp_path / "private/features.yaml").write_text("kind: given\nsampling_rate: 16000\n")
    with pytest.raises(ConfigError, match="expected fbank or mfcc"):
        plant(tmp_path, lang)
    with pytest.raises(DataError, match="no such file"):
        read_secrets(tmp_path / "private")


class Remembers:
    """Scores of three recognizers: one that has learned texts, one that has not, and a public one.

    All find the same texts hard.
    """

    def __init__(self, lang: Lang, texts: Sequence[str]) -> None:
        self.known = {tuple(lang.encode(text)) for text in texts}

    def __call__(
        self, features: torch.Tensor, lengths: torch.Tensor, hyps: Sequence[Sequence[Sequence[int]]]
    ) -> np.ndarray:
        most = max(map(len, hyps))
        found = np.full((3, len(hyps), most), -np.inf)
        for row, of in enumerate(hyps):
            for column, tokens in enumerate(of):
                hard = -(hash((*map(int, tokens),)) % 1000) / 10
                gain = 5.0 * (tuple(tokens) in self.known)
                found[:, row, column] = hard + np.array([gain, 0.0, 0.0])
                found[1, row, column] += (hash((7, *map(int, tokens))) % 100) / 100
        return found


class Bigrams:
    """An LM that has read some sentences."""

    name = "lm"

    def __init__(self, sentences: Sequence[str]) -> None:
        self.read = {tuple(text.split()) for text in sentences}

    def token_log_probs(self, sentences: Sequence[Sequence[str]]) -> np.ndarray:
        each = [(-1.0 if (*words,) in self.read else -9.0, len(words) + 1) for words in sentences]
        return np.repeat(*map(np.array, zip(*each)))


def secret_texts(folder: Path) -> list[str]:
    secrets = read_secrets(folder)
    cuts = candidate_cuts(folder, secrets)
    return [cuts[8 * k + p].supervisions[0].text or "" for k, p in enumerate(secrets.planted)]


def attacked(lang: Lang, texts: Sequence[str], models: Sequence[Any] = ()) -> Attacked:
    return Attacked(["knows", "other", "public"], models or [None] * 3, Remembers(lang, texts),
                    lang, "cpu")  # fmt: skip


def test_exposure_finds_the_model_that_remembers(planted: Path, lang: Lang) -> None:
    secrets = secret_texts(planted)
    lms: Any = Bigrams(secrets), Bigrams(secrets), Bigrams([])
    found = attack_canaries(attacked(lang, secrets), planted, lms, config("top=1"))
    assert found["knows"]["heard"]["ranks"] == [1] * 6
    assert found["knows"]["heard"]["mean_exposure"] == 3.0
    assert found["knows"]["heard"]["epsilon_lower"] > 0
    # Without memory: uniform ranks have a mean exposure of 1.09 bits.
    for name in ("other", "public"):
        assert found[name]["heard"]["mean_exposure"] < 2.2
        assert found[name]["heard"]["epsilon_lower"] == 0
    # The LM that has read the secrets tells them whatever the recognizer is; not the public one.
    for kind in ("fused", "fused_silenced"):
        assert found["other"][kind]["ranks"] == [1] * 6
        assert found["public"][kind]["ranks"] == found["public"]["heard"]["ranks"]
    with pytest.raises(ConfigError, match="below 8"):
        attack_canaries(attacked(lang, secrets), planted, [], config("top=8"))
    assert attack_canaries(attacked(lang, []), planted, [], config())["knows"].keys() == {"heard"}


def test_losses_are_nats_of_whole_sentences(planted: Path, lang: Lang) -> None:
    secrets = read_secrets(planted)
    cuts = candidate_cuts(planted, secrets)
    texts = [cut.supervisions[0].text or "" for cut in cuts]
    scores = Remembers(lang, texts[:1])
    losses = canary_losses(scores, cuts, lang, config("max_duration=4"), "cpu")
    slow = [scores(None, None, [[lang.encode(text)]])[:, 0, 0] for text in texts]  # type: ignore[arg-type]
    assert losses.heard == pytest.approx(-np.stack(slow, axis=1))
    lm = lm_losses(Bigrams(texts[1:2]), cuts)  # type: ignore[arg-type]
    assert lm[:2].tolist() == [36.0, 4.0]
    alone = exposures(losses, 0, secrets, config("lm_weight=0"), reference=2, lm=lm)
    assert alone["fused"] == alone["heard"]


def test_canaries_that_are_too_fast_for_their_words(planted: Path, lang: Lang) -> None:
    def infinite(features: torch.Tensor, lengths: torch.Tensor, hyps: Any) -> np.ndarray:
        return np.full((3, len(features), 1), -np.inf)

    cuts = candidate_cuts(planted, read_secrets(planted))
    with pytest.raises(DataError, match="plant slower canaries"):
        canary_losses(infinite, cuts, lang, config(), "cpu")


class Aligner(torch.nn.Module):
    """CTC whose tokens stand in the features, a frame in ten."""

    subsampling = 1

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1))

    def log_probs(
        self, features: torch.Tensor, lengths: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        return (20 * features).log_softmax(2), lengths


def people(folder: Path, lang: Lang, said: Sequence[tuple[str, str, tuple[int, int]]]) -> list[Any]:
    """Cuts of (speaker, text, words of the name): features tell the tokens, audio is a tone."""
    from lhotse import AudioSource, Recording

    def spoken(text: str) -> np.ndarray:
        tokens = lang.encode(text)
        values = np.zeros((10 * len(tokens), 2 + len(LETTERS)))
        values[:, 0] = 0.5
        values[5 + 10 * np.arange(len(tokens)), tokens] = 1.0
        return values

    write_cuts(folder, "train", [(speaker, text, spoken(text)) for speaker, text, _ in said])
    cuts = []
    for cut, (_, _, (first, last)) in zip(load_cuts(folder, "train"), said):
        path, samples = folder / f"{cut.id}.wav", np.sin(np.arange(round(16000 * cut.duration)))
        soundfile.write(path, 0.1 * samples, 16000)
        source = AudioSource(type="file", channels=[0], source=str(path))
        cut.recording = Recording(cut.id, [source], 16000, len(samples), cut.duration)
        cut.supervisions[0].custom = {"entities": [[first, last, "PER"]]}
        cuts.append(cut)
    save_cuts(cuts, folder, "train")
    return list(load_cuts(folder, "train"))


def test_noise_stands_where_the_name_was(tmp_path: Path, lang: Lang) -> None:
    [cut] = people(tmp_path, lang, [("anna", "abe deaf head", (1, 2))])
    mentions = noise_masking.mentions_of([cut], ["PER"])
    assert [mention.name for mention in mentions] == [("deaf",)]
    assert noise_masking.mentions_of([cut], ["LOC"]) == []
    [one] = noise_masking.mask(mentions, Aligner(), lang, "fbank", seed=1)
    clean = extract(cut.load_audio()[0], 16000, "fbank")
    changed = np.flatnonzero(np.abs(one.features - clean).max(axis=1) > 1.0)
    # Tokens 4 to 8 of 14: frames 45 to 85, and up to half the way to their neighbours.
    assert 38 <= changed[0] <= 42 and 88 <= changed[-1] <= 92
    assert len(changed) == changed[-1] - changed[0] + 1
    cut.recording = None
    with pytest.raises(DataError, match="utterances with audio"):
        noise_masking.mask(mentions, Aligner(), lang, "fbank", seed=1)


class Writes(Aligner):
    """A recognizer that always writes one text; its stepper tells the search so."""

    def __init__(self, tokens: Sequence[int]) -> None:
        super().__init__()
        self.written = list(tokens)


def test_names_are_written_and_ranked_by_who_remembers(
    tmp_path: Path, lang: Lang, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = [("anna", "abe deaf head", (1, 2)), ("bert", "bad deaf each", (1, 2))]
    members = people(tmp_path / "in", lang, said)
    strangers = people(
        tmp_path / "out", lang, [("carl", "abe fade", (1, 2)), ("dora", "abe cab", (1, 2))]
    )
    texts = ("abe deaf head", "abe bad head", "abe head")
    models = [Writes(lang.encode(text)) for text in texts]
    monkeypatch.setattr(
        "privasr_k2.attack.recognizers.nbest",
        lambda model, features, *_, **__: [[(model.written, 0.0)]] * len(features),
    )
    remembered = attacked(lang, [text for _, text, _ in said], models)
    found = attack_names(remembered, members, strangers, "fbank", config("other_names=1"))
    assert [found[name]["true_name"] for name in remembered.names] == [1.0, 0.0, 0.0]
    assert [found[name]["any_name"] for name in remembered.names] == [1.0, 0.0, 0.0]
    assert found["knows"]["name_first"] == 1.0
    assert found["knows"]["name_exposure"] == pytest.approx(1.0)
    assert found["knows"]["names_ranked"] == found["knows"]["mentions"] == 2
    # The strangers' names are in no training: what is ranked first there is chance.
    assert found["knows"]["name_exposure_beyond_interval"] is None  # of two speakers a side
    assert found["knows"]["name_exposure_speakers"] == 2
    assert found["knows"]["name_exposure_beyond"] == 1 - found["knows"]["name_exposure_others"]
    assert found["other"]["name_exposure_beyond"] < 1
    few = attack_names(remembered, members, strangers, "fbank", config("other_names=2"))
    assert "name_exposure" not in few["knows"] and few["knows"]["true_name"] == 1.0
    bare = [cut.with_id(cut.id) for cut in members]
    for cut in bare:
        cut.supervisions[0].custom = None
    assert attack_names(remembered, bare, strangers, "fbank", config()) == {}


def test_a_name_that_is_said_again_is_not_masked() -> None:
    words = ("ask", "may", "if", "may", "comes")
    twice = noise_masking.Mention(None, words, 1, 2, "PER")  # type: ignore[arg-type]
    once = noise_masking.Mention(None, words[:3], 1, 2, "PER")  # type: ignore[arg-type]
    kept, names = noise_masking.chosen_mentions([twice, once], config())
    assert kept == [once] and names == {"PER": {("may",)}}
    assert len(noise_masking.chosen_mentions([once] * 9, config("mentions=4"))[0]) == 4


def ranked(first: float, mentions: int, seed: int, people: int = 20) -> NameLosses:
    """Names of people, among seven others; a share ``first`` of them is learned by heart."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(2, mentions, 8))
    values[0] += values[1]  # what is hard is hard for both
    values[0, : round(first * mentions), 0] -= 9.0
    return NameLosses(values, tuple(f"p{n % people}" for n in range(mentions)))


def test_names_count_beyond_those_of_strangers() -> None:
    strangers = ranked(0.0, 160, 1)
    found = name_exposure(ranked(0.5, 160, 2), strangers, 0, 1, config())
    low, high = found["name_exposure_beyond_interval"]
    assert 0.5 < low < found["name_exposure_beyond"] < high < 1.5
    assert found["name_first"] > 0.5 and found["names_ranked"] == 160
    nothing = name_exposure(ranked(0.0, 160, 3), strangers, 0, 1, config())
    low, high = nothing["name_exposure_beyond_interval"]
    assert low < 0 < high and high - low < 1.0
    # What makes true names likelier without memory, strangers show as well.
    both = name_exposure(ranked(0.5, 160, 2), ranked(0.5, 160, 4), 0, 1, config())
    low, high = both["name_exposure_beyond_interval"]
    assert both["name_exposure"] > 1.5 and low < 0.1 < high + 0.2
    assert name_exposure(None, strangers, 0, 1, config()) == {}
    six, five = (ranked(0.5, 160, 2, people) for people in (6, 5))
    drawn, bare = (name_exposure(of, strangers, 0, 1, config()) for of in (six, five))
    low, high = drawn["name_exposure_beyond_interval"]
    assert low < drawn["name_exposure_beyond"] < high and drawn["name_exposure_speakers"] == 6
    assert bare["name_exposure_beyond_interval"] is None and bare["name_exposure_speakers"] == 5
    assert bare["name_exposure_beyond"] == drawn["name_exposure_beyond"]

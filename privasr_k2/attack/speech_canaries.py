"""Canaries for recognizers: people who only ever say one random sentence, much too fast.

The words are drawn at random, so that no language tells them, and the speech is sped up, so that
its sounds hardly do [wang2024]. Who recognizes such a sentence better than others that were drawn
from the same distribution remembers it. All speech here is synthetic.

A canary has R candidates, each with its own speech by one voice. One is drawn uniformly and
planted, as one more speaker. Without memory its rank among the candidates is uniform, whatever
the recognizer makes of fast speech.

[wang2024] L. Wang, O. Thakkar, R. Mathews, Unintended memorization in large ASR models, and how to
mitigate it, ICASSP 2024.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from annotated_types import Ge

from privasr_k2.constraints import Checked, Count
from privasr_k2.corpora import voices
from privasr_k2.data import features
from privasr_k2.data.manifests import cuts_path, load_cuts, save_cuts
from privasr_k2.errors import ConfigError, DataError
from privasr_k2.fileio import atomic_path, read_json, read_yaml, remove_tree, write_json
from privasr_k2.graph.lang import Lang
from privasr_k2.privacy.audit.drawn_secrets import Canary, draw_canaries
from privasr_k2.randomness import derive_seed

if TYPE_CHECKING:
    from lhotse.cut import Cut

log = logging.getLogger(__name__)

#: Role of all candidates, in the folder of planted features; and the file that tells the secrets.
CANDIDATES, FILE = "candidates", "canaries.json"
_FORMAT = "privasr_k2 speech canaries 1"
#: Of voices; ``speaker-0001`` of a corpus is nobody of these.
_SPEAKER = "canary"


@dataclass(frozen=True)
class SpeechCanaryConfig(Checked):
    """Section ``plant_canaries`` of ``conf/redteam.yaml``.

    Attributes:
        canaries: K speakers, each one unit of the private data.
        candidates: R sentences that each might have said.
        secret_words: words of a sentence.
        repeats: utterances of a planted speaker: the same words, each time with other noise.
        speed: how many times as fast as the voice speaks.
        speech: conditions of the recordings.
        seed: of sentences, secrets, voices and noises.
    """

    canaries: Count
    candidates: Annotated[int, Ge(2)]
    secret_words: Count
    repeats: Count
    speed: Annotated[float, Ge(1)]
    speech: voices.Ranges
    seed: int


@dataclass(frozen=True)
class Secrets:
    """What was planted: (K,) places among R candidates, from 0."""

    planted: tuple[int, ...]
    candidates: int


def plant_canaries(
    private: Path, lang: Lang, config: SpeechCanaryConfig, out_dir: Path, *, num_jobs: int
) -> Secrets:
    """Write ``out_dir``: private features with canaries in train, and all candidates beside them.

    Args:
        private: features folder, roles train and dev, of a kind that is computed from audio.
        lang: whose words, which must be public, make the sentences.
        out_dir: a child of the data folder; gets the roles train, dev and ``candidates``,
            ``canaries.json`` and the canaries' audio.
        num_jobs: processes; the result does not depend on them.

    Raises:
        DataError: features that no audio gives, another sampling rate, too few words, or a speaker
            of train who is called as a canary.
    """
    settings = _feature_config(private)
    train = load_cuts(private, "train")
    taken = {cut.supervisions[0].speaker for cut in train}
    people = [f"{_SPEAKER}{number:04d}" for number in range(config.canaries)]
    if both := sorted(taken & set(people)):
        expected, way_out = "speakers who are no canaries", "give data without canaries"
        raise DataError(private, expected, both[0], way_out)
    drawn = draw_canaries(
        spoken_words(lang),
        canaries=config.canaries,
        candidates=config.candidates,
        secret_words=config.secret_words,
        seed=config.seed,
    )
    with atomic_path(out_dir) as folder:
        folder.mkdir()
        of_role = _speak(drawn, people, config, folder / "audio", num_jobs)
        for role, cuts in of_role.items():
            save_cuts(cuts, folder / "manifests", role)
        features.compute(folder / "manifests", folder / "feats", settings, num_jobs)
        save_cuts([*train, *load_cuts(folder / "feats", "train")], folder, "train")
        save_cuts(load_cuts(folder / "feats", CANDIDATES), folder, CANDIDATES)
        if cuts_path(private, "dev").is_file():
            save_cuts(load_cuts(private, "dev"), folder, "dev")
        shutil.copyfile(private / features.ABOUT, folder / features.ABOUT)
        remove_tree(folder / "manifests")
        secrets = Secrets(tuple(canary.planted for canary in drawn), config.candidates)
        about = {"format": _FORMAT, "synthetic": True, "candidates": config.candidates}
        write_json(folder / FILE, about | {"planted": list(secrets.planted)})
    log.info("%d canaries of %d candidates each", len(drawn), config.candidates)
    return secrets


def read_secrets(folder: Path) -> Secrets:
    """What :func:`plant_canaries` planted.

    Raises:
        DataError: another file, or none.
    """
    path, way_out = folder / FILE, "name the folder of plant_canaries"
    content: Any = read_json(path) if path.is_file() else {}
    if content.get("format") != _FORMAT:
        raise DataError(path, _FORMAT, content.get("format", "no such file"), way_out)
    return Secrets(tuple(content["planted"]), int(content["candidates"]))


def candidate_cuts(folder: Path, secrets: Secrets) -> list[Cut]:
    """K R cuts of the candidates: canary after canary, each in the order of its candidates.

    Raises:
        DataError: another number of them.
    """
    cuts = sorted(load_cuts(folder, CANDIDATES), key=lambda cut: cut.id)
    wanted = len(secrets.planted) * secrets.candidates
    if len(cuts) != wanted:
        raise DataError(folder, f"{wanted} candidates", f"{len(cuts)}", "plant them again")
    return cuts


def spoken_words(lang: Lang) -> list[str]:
    """Words of a lang folder that an English voice can say: letters alone, three at least.

    Words of one or two letters would leave a sentence hardly any sounds.
    """
    known = lang.first_pronunciations
    return sorted(word for word in known if word.isascii() and word.isalpha() and len(word) > 2)


def _speak(
    drawn: Sequence[Canary],
    people: Sequence[str],
    config: SpeechCanaryConfig,
    folder: Path,
    num_jobs: int,
) -> dict[str, list[Cut]]:
    """Cuts of train, the planted ones, and of all candidates."""
    chosen = voices.draw_voices(len(drawn), derive_seed(config.seed, "canary voices"))
    lines: dict[str, tuple[str, str, voices.Voice]] = {}
    train: list[str] = []
    for canary, person, voice in zip(drawn, people, chosen):
        for place, words in enumerate(canary.candidates):
            times = config.repeats if place == canary.planted else 1
            for time in range(times):
                name = f"{person}-{place:05d}-{time:03d}"
                lines[name] = (person, " ".join(words), voice)
                train += [name] if place == canary.planted else []
    jobs = voices.plan([(n, *line[1:]) for n, line in lines.items()], config.speech, config.seed)
    fast = [replace(job, speed=config.speed) for job in jobs]
    spoken = {file.id: file for file in voices.speak(fast, folder, num_jobs)}
    cuts = {name: _cut(file, *lines[name][:2]) for name, file in spoken.items()}
    first = [name for name in cuts if name.endswith("-000")]
    return {"train": _picked(cuts, train), CANDIDATES: _picked(cuts, first)}


def _picked(cuts: dict[str, Cut], names: Iterable[str]) -> list[Cut]:
    return [cuts[name] for name in names]


def _cut(spoken: voices.Spoken, speaker: str, text: str) -> Cut:
    from lhotse import AudioSource, MonoCut, Recording, SupervisionSegment

    id_, length = spoken.id, spoken.duration
    source = AudioSource(type="file", channels=[0], source=str(spoken.path))
    recording = Recording(id_, [source], voices.SAMPLING_RATE, spoken.num_samples, length)
    said = SupervisionSegment(id_, id_, 0.0, length, text=text, speaker=speaker, language="English")
    about: dict[str, Any] = {"canary": True, "synthetic": True}
    return MonoCut(id_, 0.0, length, 0, recording=recording, supervisions=[said], custom=about)


def _feature_config(private: Path) -> features.FeatureConfig:
    """How the private features were computed, for one speed."""
    path = private / features.ABOUT
    about = read_yaml(path) if path.is_file() else {}
    kind, rate = about.get("kind"), about.get("sampling_rate")
    if kind not in features.DIMENSIONS or rate != voices.SAMPLING_RATE:
        expected = f"{' or '.join(features.DIMENSIONS)} of {voices.SAMPLING_RATE} Hz"
        way_out = "compute such features: --feature fbank"
        raise ConfigError(path, expected, f"{kind} of {rate} Hz", way_out)
    unused = features.OutputConfig(layers=[], pad_seconds=0, chunk_seconds=1, chunk_overlap=0)
    return features.FeatureConfig(
        version=features.VERSION,
        kind=kind,
        speed_perturb=False,
        noise_snr=[0.0, 0.0],  # canaries have no perturbed copies
        perturb_seed=0,
        tick_power=about["tick_power"],
        cuts_per_file=about["cuts_per_file"],
        encoder=unused,
    )

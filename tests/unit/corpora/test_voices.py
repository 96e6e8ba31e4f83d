from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from privasr_k2.corpora.voices import (
    ACCENTS,
    VARIANTS,
    Ranges,
    SpeakJob,
    Voice,
    draw_voices,
    plan,
    render,
    speak,
)
from privasr_k2.errors import DataError

pytest.importorskip("espeakng_loader")
soundfile = pytest.importorskip("soundfile")

from privasr_k2.corpora.espeak import espeak  # noqa: E402

ROOM = dict(t60=(0.1, 0.3), wet=(0.1, 0.3), peak_db=(-12.0, -3.0))
RANGES = Ranges(snr_db=(0.0, 20.0), **ROOM, silence=(0.1, 0.2), babble=0.5)
SAID = ("Turn the lights on.", Voice("en-us+f2", 170, 50, 50))
CLEAN = dict(snr_db=300.0, t60=0.0, wet=0.0, peak_db=-6.0)
JOB = SpeakJob("a", *SAID, noise="white", talkers=(), **CLEAN, silence=(0.2, 0.3), seed=1)
PLAIN = dict(rate=170, pitch=50, pitch_range=50, seed=2)


def test_every_voice_speaks_and_gives_the_same_again():
    with espeak() as synthesizer:
        for number, variant in enumerate(VARIANTS):
            name = f"{list(ACCENTS)[number % len(ACCENTS)]}+{variant}"
            said = [synthesizer.speak("Hello you there.", name=name, **PLAIN) for _ in "ab"]
            assert np.array_equal(*said), name
            assert 1000 < abs(said[0].astype(int)).max() < 32767, name


@pytest.mark.parametrize("name", ["en-us+nobody", "xx-yy"])
def test_a_voice_that_does_not_exist_is_refused(name):
    with espeak() as synthesizer, pytest.raises(DataError, match="voice"):
        synthesizer.speak("Hello.", name=name, **PLAIN)


def test_two_synthesizers_at_once_do_not_disturb_each_other():
    with espeak() as one, espeak() as two:
        say = {"name": "en-us+m3", **PLAIN}
        alone = one.speak("Good morning.", **say)
        two.speak("Something else.", **{**say, "name": "en-029+f2"})
        assert np.array_equal(alone, two.speak("Good morning.", **say))


@pytest.mark.parametrize("kind", ["white", "pink", "babble"])
def test_speech_over_noise_is_as_asked(kind):
    talker = ("Nobody knows the way.", Voice("en-us+m3", 160, 40, 50))
    job = replace(JOB, noise=kind, talkers=(talker,) if kind == "babble" else (), snr_db=10.0)
    with espeak() as synthesizer:
        clean, noisy = (render(each, synthesizer).astype(float) for each in (JOB, job))
    # The gain is whatever fits best: what remains is the noise.
    noise = noisy - clean * (noisy @ clean) / (clean @ clean)
    first, last = np.flatnonzero(clean)[[0, -1]]
    speech = noisy - noise
    snr_db = 10 * np.log10(np.mean(speech[first : last + 1] ** 2) / np.mean(noise**2))
    assert snr_db == pytest.approx(10.0, abs=0.5)


def test_level_and_silences_are_as_asked():
    with espeak() as synthesizer:
        samples = render(JOB, synthesizer)
    assert abs(samples.astype(int)).max() == pytest.approx(32767 * 10 ** (-6 / 20), abs=1)
    loud = np.flatnonzero(abs(samples.astype(int)) > 200)
    assert loud[0] == pytest.approx(0.2 * 16000, abs=100)
    assert len(samples) - loud[-1] == pytest.approx(0.3 * 16000, abs=300)


def test_fast_speech_keeps_the_length_of_the_file():
    with espeak() as synthesizer:
        normal, fast = (render(replace(JOB, speed=x), synthesizer) for x in (1.0, 2.5))
    assert len(fast) == len(normal)
    loud = [np.flatnonzero(abs(samples.astype(int)) > 200) for samples in (normal, fast)]
    assert loud[1][0] == pytest.approx(loud[0][0], abs=100)
    assert np.ptp(loud[1]) == pytest.approx(np.ptp(loud[0]) / 2.5, rel=0.02)
    # Played faster, the spectrum is the same but for a factor.
    spectra = [np.abs(np.fft.rfft(samples.astype(float), 1 << 17)) for samples in (normal, fast)]
    mean = [float(np.average(np.arange(len(s)), weights=s**2)) for s in spectra]
    assert mean[1] / mean[0] > 1.5


def test_files_do_not_depend_on_processes_or_order(tmp_path: Path):
    voices = draw_voices(4, seed=1)
    lines = [(f"u{i}", f"This is number {i}.", voices[i % 4]) for i in range(6)]
    jobs = plan(lines, RANGES, seed=1)
    spoken = speak(jobs, tmp_path / "one", num_jobs=1)
    speak(jobs[::-1], tmp_path / "two", num_jobs=2)
    for one in spoken:
        assert one.path.read_bytes() == (tmp_path / "two" / one.path.name).read_bytes()
        info = soundfile.info(one.path)
        assert (info.frames, info.samplerate, info.subtype) == (one.num_samples, 16000, "PCM_16")
    with soundfile.SoundFile(spoken[0].path) as file:
        assert "synthetic" in file.comment


def test_plan_draws_within_its_ranges_and_names_other_talkers():
    lines = [(f"u{i:03}", f"text {i}", voice) for i, voice in enumerate(draw_voices(200, seed=1))]
    jobs = plan(lines, RANGES, seed=1)
    assert {job.noise for job in jobs} == {"white", "pink", "babble"}
    for job in jobs:
        for name in ("snr_db", "t60", "wet", "peak_db"):
            low, high = getattr(RANGES, name)
            assert low <= getattr(job, name) <= high
        assert len(job.talkers) == (3 if job.noise == "babble" else 0)
    assert 0.35 < np.mean([job.noise == "babble" for job in jobs]) < 0.65


def test_voices_are_many_and_stay_when_more_are_drawn():
    voices = draw_voices(300, seed=1)
    assert voices[:20] == draw_voices(20, seed=1)
    assert len(set(voices)) == 300 and len({voice.name for voice in voices[:100]}) == 100


def test_named_accents_are_equally_likely():
    named = ["en", "en-us", "en-029"]
    voices = Counter(voice.name.split("+")[0] for voice in draw_voices(600, seed=1, among=named))
    assert set(voices) == set(named) and min(voices.values()) > 150
    unnamed = {voice.name.split("+")[0] for voice in draw_voices(300, seed=1)}
    assert unnamed == {accent for accent, share in ACCENTS.items() if share > 0}


def test_an_id_given_twice_is_refused(tmp_path: Path):
    with pytest.raises(DataError, match="ids"):
        speak([JOB, JOB], tmp_path, num_jobs=1)


def test_text_that_says_nothing_is_refused(tmp_path: Path):
    with pytest.raises(DataError, match="can be spoken"):
        speak([replace(JOB, text="")], tmp_path, num_jobs=1)

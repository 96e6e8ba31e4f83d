"""N-best lists of Whisper's own decoder, for cuts with audio of 16 kHz.

The audio of a cut that is longer than 30 s is cut into pieces, each at the quietest fifth of a
second of its last ten. Texts of pieces are joined; their log-probabilities add up.
"""

from __future__ import annotations

import heapq
import logging
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np

from privasr_k2.constraints import Count, Positive, one_of
from privasr_k2.data.audio import AudioHeader, read_headers
from privasr_k2.data.problems import Problem, report
from privasr_k2.decoding.hyps import Hyp, Record
from privasr_k2.decoding.jobs import JobConfig, facts_of, split_by_duration
from privasr_k2.decoding.whisper_model import MOST_SAMPLES, BeamConfig, WhisperModel, Written
from privasr_k2.decoding.whisper_text import NORMALIZERS
from privasr_k2.encoders.common import SAMPLE_RATE
from privasr_k2.errors import DataError
from privasr_k2.recipe.progress import report_progress
from privasr_k2.scoring.nbest_lists import Hypothesis, NbestList

if TYPE_CHECKING:
    from lhotse import CutSet
    from lhotse.cut import Cut

log = logging.getLogger(__name__)

_SEARCHED = 10 * SAMPLE_RATE
_QUIET = SAMPLE_RATE // 5


@dataclass(frozen=True)
class WhisperConfig(BeamConfig, JobConfig):
    """Options of lists by Whisper; defaults in ``conf/common.yaml#whisper_nbest``.

    Attributes:
        normalize: how what it writes becomes words, by its name in ``NORMALIZERS``.
        batch: pieces of audio in one pass.
        posterior_scale: on scores, for the posteriors of words that are their confidences.
    """

    normalize: Annotated[str, one_of(*NORMALIZERS)]
    batch: Count
    posterior_scale: Positive


def whisper_cuts(
    model: WhisperModel, cuts: CutSet, config: WhisperConfig
) -> Iterator[tuple[NbestList, Record]]:
    """The list and the best hypothesis of each of this job's cuts, the longest first; logs speed.

    Raises:
        DataError: no cuts, audio that cannot be read, is empty, or has another rate than 16 kHz.
    """
    check_audio(cuts)
    shares = split_by_duration([(cut.id, cut.duration, cut) for cut in cuts], config.num_jobs)
    share, done, seconds = iter(shares[config.job - 1]), 0, 0.0
    started = time.process_time()
    while batch := list(islice(share, config.batch)):
        for cut, texts in zip(batch, _texts(model, batch, config)):
            hyps = merged(texts, NORMALIZERS[config.normalize], config.length_penalty)
            best = Hyp(0.0, 0.0, hyps[0].words, hyps[0].am_score, 0.0)
            yield NbestList(*facts_of(cut), False, hyps), Record(*facts_of(cut), False, (best,))
        done, seconds = done + len(batch), seconds + sum(cut.duration for cut in batch)
        report_progress(done, len(shares[config.job - 1]), "utterance")
    used = time.process_time() - started
    log.info("%d utterances, %.0f s of speech, %.0f s of processor time", done, seconds, used)


def check_audio(cuts: CutSet) -> None:
    """Report all audio that Whisper cannot hear, before anything is decoded."""
    sources = {cut.id: _sources(cut) for cut in cuts}
    if not sources:
        raise DataError("the cuts", "utterances", "none", "give cuts with audio")
    headers = read_headers([path for paths in sources.values() for path in paths])
    problems = [Problem(cut, "audio", "none") for cut, paths in sources.items() if not paths]
    problems += [
        Problem(str(path), "audio of 16 kHz", wrong)
        for path, header in headers.items()
        if (wrong := _wrong(header))
    ]
    way_out = "mend the audio or leave these cuts out; resample: sox IN -r 16000 OUT"
    report(problems, place="the audio of the cuts", way_out=way_out)


def merged(
    texts: Sequence[Written], normalize: Callable[[str], str], length_penalty: float
) -> tuple[Hypothesis, ...]:
    """Hypotheses as the decoder ranks their best texts. Texts of equal words are one hypothesis.

    Its am_score is the logarithm of their summed probabilities: they exclude each other, so that
    the sum is P(words), as far as the list goes.
    """
    scores: dict[str, float] = {}
    for text in sorted(texts, key=lambda text: -text.score(length_penalty)):
        words = normalize(text.text)
        scores[words] = float(np.logaddexp(scores.get(words, -math.inf), text.log_prob))
    ranked = enumerate(scores.items(), start=1)
    return tuple(Hypothesis(rank, words, score, {}) for rank, (words, score) in ranked)


def pieces(audio: np.ndarray) -> list[np.ndarray]:
    """Audio (S,) in pieces of at most 30 s, as the module says.

    >>> [len(piece) for piece in pieces(np.zeros(SAMPLE_RATE, np.float32))]
    [16000]
    """
    cut = []
    while len(audio) > MOST_SAMPLES:
        first = MOST_SAMPLES - _SEARCHED
        energy = np.cumsum(np.square(audio[first:MOST_SAMPLES], dtype=np.float64))
        quietest = int(np.argmin(energy[_QUIET:] - energy[:-_QUIET]))
        end = first + quietest + _QUIET // 2
        cut.append(audio[:end])
        audio = audio[end:]
    return [*cut, audio]


def joined(lists: Sequence[Sequence[Written]], most: int, length_penalty: float) -> list[Written]:
    """The ``most`` best texts of audio in pieces, each piece with its own texts."""
    best = list(lists[0])
    for texts in lists[1:]:
        both = (
            Written(
                f"{before.text} {text.text}",
                before.log_prob + text.log_prob,
                before.tokens + text.tokens,
            )
            for before in best
            for text in texts
        )
        best = heapq.nlargest(most, both, key=lambda text: text.score(length_penalty))
    return best


def _texts(
    model: WhisperModel, cuts: Sequence[Cut], config: WhisperConfig
) -> Iterator[list[Written]]:
    audio = [pieces(cut.load_audio()[0].astype(np.float32)) for cut in cuts]
    flat = [piece for of_cut in audio for piece in of_cut]
    heard = [flat[i : i + config.batch] for i in range(0, len(flat), config.batch)]
    texts = iter([written for batch in heard for written in model.transcribe(batch, config)])
    for of_cut in audio:
        of_pieces = list(islice(texts, len(of_cut)))
        yield joined(of_pieces, config.num_hypotheses, config.length_penalty)


def _sources(cut: Cut) -> list[Path]:
    if not cut.has_recording:
        return []
    return [Path(source.source) for source in cut.recording.sources if source.type == "file"]


def _wrong(header: AudioHeader) -> str:
    if header.problem:
        return header.problem
    if header.sampling_rate != SAMPLE_RATE:
        return f"{header.sampling_rate} Hz"
    return ""

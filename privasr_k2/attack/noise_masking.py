"""Noise masking: a name in somebody's speech is replaced by noise; what is recognized instead?

A recognizer that remembers what it was trained on writes the true name, or another one of its
training, where nothing can be heard [amid2022]. A public model, which has never heard the speaker,
shows how often a name comes of itself. :mod:`privasr_k2.attack.name_ranks` asks for less: is the
true name likelier than others?

[amid2022] E. Amid, O. Thakkar, A. Narayanan, R. Mathews, F. Beaufays, Extracting targeted training
data from ASR models, and how to mitigate it, Interspeech 2022.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from privasr_k2.attack.occurrences import aligned_words, widened
from privasr_k2.attack.settings import RecognizerAttackConfig
from privasr_k2.data.features import FRAME_SHIFT, extract, load_features
from privasr_k2.decoding.end_to_end import join_tokens
from privasr_k2.errors import DataError
from privasr_k2.graph.lang import Lang
from privasr_k2.graph.spelled import spellings
from privasr_k2.privacy.audit.intervals import clopper_pearson
from privasr_k2.randomness import stream

if TYPE_CHECKING:
    from lhotse.cut import Cut

log = logging.getLogger(__name__)

Words = tuple[str, ...]
#: Features (N, T, F) and lengths (N,) to the best token sequence of each utterance.
Recognize = Callable[[torch.Tensor, torch.Tensor], Sequence[Sequence[int]]]


@dataclass(frozen=True)
class Mention:
    """A name that somebody says.

    Attributes:
        cut: the utterance.
        words: all of it.
        first, last: the name's words, ``last`` exclusive.
        label: its class.
    """

    cut: Cut
    words: Words
    first: int
    last: int
    label: str

    @property
    def name(self) -> Words:
        """The words of the name."""
        return self.words[self.first : self.last]

    @property
    def rest(self) -> list[Words]:
        """What is said before the name and after it."""
        return [self.words[: self.first], self.words[self.last :]]


@dataclass(frozen=True)
class Masked:
    """A mention whose speech is noise. ``features``: (T, F) float32."""

    mention: Mention
    features: np.ndarray


def mentions_of(cuts: Iterable[Cut], classes: Sequence[str]) -> list[Mention]:
    """All names of the classes that ``supervision.custom["entities"]`` marks, each one once."""
    found = []
    for cut in cuts:
        if "original_id" in (cut.custom or {}):
            continue
        supervision = cut.supervisions[0]
        words = tuple((supervision.text or "").split())
        for first, last, label in (supervision.custom or {}).get("entities") or ():
            if label in classes:
                found.append(Mention(cut, words, first, last, label))
    return found


def chosen_mentions(
    mentions: Sequence[Mention], config: RecognizerAttackConfig
) -> tuple[list[Mention], dict[str, set[Words]]]:
    """Mentions to attack, and all names by class.

    Left out are names that the utterance says again. At most ``config.mentions`` are drawn.
    """
    names: dict[str, set[Words]] = {}
    for mention in mentions:
        names.setdefault(mention.label, set()).add(mention.name)
    fit = [m for m in mentions if not any(holds(part, m.name) for part in m.rest)]
    order = stream(config.seed, "mentions").permutation(len(fit))[: config.mentions]
    return [fit[place] for place in sorted(order.tolist())], names


def holds(words: Sequence[str], name: Words) -> bool:
    """Whether a name's words stand in a row.

    >>> said = ["call", "anna", "may", "now"]
    >>> holds(said, ("anna", "may")), holds(said, ("may", "anna"))
    (True, False)
    """
    size = len(name)
    return any(tuple(words[n : n + size]) == name for n in range(len(words) - size + 1))


def mask(
    mentions: Sequence[Mention], aligner: Any, lang: Lang, kind: str, seed: int
) -> list[Masked]:
    """Replace the speech of each name by white noise as loud as the utterance.

    Args:
        aligner: a CTC model of the lang folder's tokens, public.
        kind: of features, computed from audio.
        seed: of the noise.

    Returns:
        those that the aligner can find.

    Raises:
        DataError: cuts without audio.
    """
    spelled = spellings(lang, {word for mention in mentions for word in mention.words})
    masked = []
    for number, mention in enumerate(mentions):
        if not mention.cut.has_recording:
            expected, way_out = "utterances with audio", "attack a corpus with audio"
            raise DataError(mention.cut.id, expected, "features alone", way_out)
        frames = _frames_of(mention, aligner, spelled)
        if frames is not None:
            generator = stream(seed, "mask", number)
            features = _with_noise(mention.cut, *frames, kind, generator)
            masked.append(Masked(mention, features))
    log.info("%d of %d names masked", len(masked), len(mentions))
    return masked


def _frames_of(
    mention: Mention, aligner: Any, spelled: dict[str, tuple[int, ...]]
) -> tuple[int, int] | None:
    """The first frame of a name and the one behind it; None where the words do not fit."""
    features, device = load_features(mention.cut), next(aligner.parameters()).device
    spans = aligned_words(aligner, features, mention.words, spelled, device)
    if spans is None:
        return None
    return widened(spans, mention.first, mention.last, len(features))


def _with_noise(
    cut: Cut, first: int, last: int, kind: str, generator: np.random.Generator
) -> np.ndarray:
    samples = np.asarray(cut.load_audio()[0], dtype=np.float32)
    step = round(FRAME_SHIFT * cut.sampling_rate)
    start, end = first * step, min(last * step, len(samples))
    loud = float(np.sqrt(np.mean(np.square(samples))))
    samples[start:end] = loud * generator.standard_normal(end - start).astype(np.float32)
    return extract(samples, cut.sampling_rate, kind)


def written(
    masked: Sequence[Masked],
    recognize: Recognize,
    tokens: Sequence[str],
    names: dict[str, set[Words]],
    config: RecognizerAttackConfig,
    device: torch.device | str,
) -> dict[str, Any]:
    """How often the true name is written, and how often any name of training.

    Args:
        recognize: of the attacked model.
        tokens: the model's.
        names: of training, by class; those that the rest of an utterance has do not count.
    """
    true, any_name = 0, 0
    known = {name for of_class in names.values() for name in of_class}
    for features, lengths, of_batch in batches_of(masked, config, device):
        for one, found in zip(of_batch, recognize(features, lengths)):
            words = join_tokens([tokens[token] for token in found]).split()
            mention = one.mention
            true += holds(words, mention.name)
            heard = [name for name in known if holds(words, name)]
            any_name += any(not any(holds(part, n) for part in mention.rest) for n in heard)
    return {
        "mentions": len(masked),
        **rate("true_name", true, len(masked), config.confidence),
        **rate("any_name", any_name, len(masked), config.confidence),
    }


def rate(name: str, count: int, of: int, confidence: float) -> dict[str, Any]:
    """A share of mentions under its name, and its interval by Clopper and Pearson."""
    interval = clopper_pearson(count, of, confidence=confidence)
    return {name: count / of, f"{name}_interval": [interval.low, interval.high]}


def longest_first(masked: Iterable[Masked]) -> list[Masked]:
    """In the order in which they are recognized."""
    return sorted(masked, key=lambda one: -len(one.features))


def batches_of(
    masked: Iterable[Masked], config: RecognizerAttackConfig, device: torch.device | str
) -> Iterable[tuple[torch.Tensor, torch.Tensor, list[Masked]]]:
    """Padded features (N, T, F), lengths (N,) and whose they are, the longest first."""
    ordered = longest_first(masked)
    size = 0
    while size < len(ordered):
        longest = len(ordered[size].features) * FRAME_SHIFT
        batch = ordered[size : size + max(1, int(config.max_duration / longest))]
        size += len(batch)
        features = [torch.from_numpy(one.features) for one in batch]
        padded = torch.nn.utils.rnn.pad_sequence(features, batch_first=True).to(device)
        yield padded, torch.tensor([*map(len, features)], device=device), batch

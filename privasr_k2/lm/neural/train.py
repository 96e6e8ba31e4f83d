"""From sentences to a trained neural language model's folder."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import nn

from privasr_k2 import config as configuration
from privasr_k2.errors import ConfigError, DataError
from privasr_k2.lm.neural.batches import Batch, Batches, choose_sentences
from privasr_k2.lm.neural.files import continue_lm, load_lm, save_lm
from privasr_k2.lm.neural.kinds import NeuralLmConfig, new_lm, spec_of
from privasr_k2.lm.neural.scoring import NeuralScorer
from privasr_k2.lm.neural.vocabulary import UNKNOWN, order_by_count
from privasr_k2.lm.perplexity import perplexity
from privasr_k2.training.distributed import Process
from privasr_k2.training.fingerprints import training_fingerprint
from privasr_k2.training.task import Loss
from privasr_k2.training.trainer import train
from privasr_k2.training.weights import average

log = logging.getLogger(__name__)

_MOST_NATS = 700.0  # whose exponential is still a number

Sentences = Sequence[Sequence[str]]


class LmTask:
    """How the trainer gets losses, in nats a predicted symbol with sentence ends and ``<unk>``."""

    def loss(self, model: nn.Module, batch: Batch, generator: torch.Generator | None) -> Loss:
        """The losses of a batch of sentences."""
        log_probs = model(batch.inputs, batch.targets, batch.lengths)  # (N, U)
        return Loss(sums=-log_probs.sum(dim=1), count=int(batch.lengths.sum()))

    def figures(self, means: Mapping[str, float]) -> dict[str, float]:
        """The loss, and the perplexity with unknown words."""
        return {**means, "ppl_with_oov": math.exp(min(means["loss"], _MOST_NATS))}


def train_lm(
    sentences: Sentences,
    dev: Sentences,
    words: Sequence[str],
    folder: Path,
    config: NeuralLmConfig,
    process: Process,
    *,
    init: Path | None = None,
) -> None:
    """Train, score ``dev`` after every epoch, and write the averaged model.

    Args:
        words: the vocabulary; other words of the text count as ``<unk>``.
        init: the folder of a model of the same form and words to train further; with
            ``config.trained == "output"`` its softmax alone [turan2022, section 2.3].

    Raises:
        ConfigError: the softmax alone, without ``init``.
        DataError: no text, no dev text, or ``init`` is of another form or other words.
    """
    if config.trained == "output" and init is None:
        way_out = "give it by --in-init, or choose trained=all"
        raise ConfigError("trained=output", "a trained model to train further", "none", way_out)
    for role, given in (("training", sentences), ("dev", dev)):
        if not any(given):
            raise DataError(
                f"the {role} text", "sentences", "none", "prepare it again, or give text"
            )
    # As in any perplexity: a reference without words is no sentence.
    dev = [sentence for sentence in dev if sentence]
    lengths = np.fromiter(map(len, sentences), dtype=np.int64, count=len(sentences))
    chosen = choose_sentences(lengths, config.max_text_words, config.seed)
    sentences = [sentences[number] for number in chosen.tolist()]
    spec = spec_of(config)
    if init is None:
        vocabulary = order_by_count(words, sentences)
        model = new_lm(spec, vocabulary, config.seed)
    else:
        model, vocabulary, spec = continue_lm(init, spec, words)
    if config.trained == "output":
        model.requires_grad_(False)
        model.output.requires_grad_(True)
    texts = {"train": vocabulary.encode(sentences), "dev": vocabulary.encode(dev)}
    for role, text in texts.items():
        unknown = int(np.count_nonzero(text.words == UNKNOWN))
        shown = f"{len(text)} sentences, {len(text.words)} words, {unknown} of them unknown"
        log.info("%s: %s", role, shown)
    size = sum(p.numel() for p in model.parameters()) / 1e6
    trained = sum(p.numel() for p in model.parameters() if p.requires_grad) / 1e6
    log.info("%.2f M parameters, %.2f M of them trained, %s", size, trained, process.device)
    if process.leads:
        configuration.save(config, folder / "config.yaml")
    shared = {"rank": process.rank, "world_size": process.world_size}
    source = Batches(texts["train"], max_words=config.max_words, seed=config.seed, **shared)
    dev_source = Batches(texts["dev"], max_words=config.max_words, seed=None)
    text = texts["train"]
    fingerprint = training_fingerprint(
        config, spec, vocabulary.digest, text.words, text.starts, model
    )
    epochs = train(model, LmTask(), source, dev_source, folder, config, process, fingerprint)
    if process.leads:
        log.info("average of %s", " ".join(path.stem for path in epochs))
        save_lm(folder, spec, average(epochs), vocabulary)
        scorer = NeuralScorer(*load_lm(folder, process.device))
        log.info("dev: %s", perplexity(scorer, dev, words).shown)

"""Train many heads of one public model at once, each on the utterances of its own shard.

The frozen layers read every utterance once. Heads then step together but independently: order of
utterances, mean loss, clipping and AdamW's state are each head's own, as if it was trained alone.
"""

from __future__ import annotations

import hashlib
import logging
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from privasr_k2 import config as configuration
from privasr_k2.am.checkpoints import load_recognizer
from privasr_k2.am.files import SPEC, TOKENS
from privasr_k2.am.files import WEIGHTS as MODEL_WEIGHTS
from privasr_k2.data.batches import Batches, NothingLeftError, drop_unalignable
from privasr_k2.data.manifests import load_cuts
from privasr_k2.errors import DataError
from privasr_k2.fileio import file_hash, remove_tree
from privasr_k2.graph.lang import Lang, load_lang
from privasr_k2.graph.spelled import spelled_targets
from privasr_k2.pate.heads import CONFIG, ENCODER, WEIGHTS, HeadConfig
from privasr_k2.pate.shards import FILE, read_shards
from privasr_k2.pate.trainable_layers import Inputs, TrainableLayers, trainable_layers
from privasr_k2.randomness import stream
from privasr_k2.recipe.progress import report_progress
from privasr_k2.training.fingerprints import training_fingerprint
from privasr_k2.training.trainer import check_finite, learning_rate
from privasr_k2.training.weights import load_tensors, read_header, save_tensors

log = logging.getLogger(__name__)

_PARTS = "parts"


@dataclass(frozen=True)
class Utterances:
    """The utterances of several shards as the trained layers see them, padded.

    Attributes:
        ids: of the M utterances.
        lower ... target_lengths: (M, ...) of :class:`privasr_k2.pate.trainable_layers.Inputs`.
        shards: (M,) which one each is of, from 0.
    """

    ids: tuple[str, ...]
    lower: Tensor
    lengths: Tensor
    states: Tensor
    targets: Tensor
    target_lengths: Tensor
    shards: Tensor

    def take(self, places: Tensor) -> Inputs:
        """The (I, B) utterances of one step of I heads, with no more padding than needed."""
        lengths, sizes = self.lengths[places], self.target_lengths[places]
        frames, tokens = int(lengths.max()), int(sizes.max())
        rows = torch.arange(places.size(1), device=places.device)
        lower, states = self.lower[:, :frames][places], self.states[:, : tokens + 1][places]
        return Inputs(lower, lengths, states, rows, self.targets[:, :tokens][places], sizes)


def train_heads(
    shards: Path,
    model_folder: Path,
    lang_dir: Path,
    folder: Path,
    config: HeadConfig,
    device: torch.device,
) -> None:
    """A head for every shard; those that a run before this one has finished are kept.

    The head of a shard without anything to learn from stays as it begins, and does not vote.

    Args:
        shards: what ``make_shards`` wrote.
        model_folder: the public model.
        folder: gets what :func:`privasr_k2.pate.heads.load_heads` reads.

    Raises:
        DataError: a model of other tokens.
    """
    lang, model = load_lang(lang_dir), load_recognizer(model_folder, device)
    if list(model.tokens or ()) != list(lang.tokens):
        place, way_out = model_folder / TOKENS, "train the model with it, too"
        raise DataError(place, "the tokens of the lang folder", "others", way_out)
    given_part = config.trained, config.lora, config.seed
    layers, parts = trainable_layers(model, *given_part), folder / _PARTS  # type: ignore[arg-type]
    parameters = model.named_parameters()  # type: ignore[attr-defined]
    start = {name: value.detach() for name, value in parameters if name in layers.names}
    numbers = range(1, read_shards(shards).teachers + 1)
    public = file_hash(model_folder / MODEL_WEIGHTS)
    for first in range(0, len(numbers), config.heads_at_once):
        group = numbers[first : first + config.heads_at_once]
        given = [_read(shards / f"shard_{k}", lang, model, layers, config, device) for k in group]
        contents = [(k, shard.content) for k, shard in zip(group, given)]
        prints = [training_fingerprint(config, public, *content) for content in contents]
        done = [_print_of(parts / f"{k}.safetensors") for k in group]
        todo = [n for n in range(len(group)) if done[n] != prints[n]]
        for n in [n for n in todo if not given[n].ids]:
            header = {"fingerprint": prints[n], "abstains": True}
            save_tensors(parts / f"{group[n]}.safetensors", start, header)
            todo.remove(n)
        if not todo:
            continue
        utterances = _joined([given[n] for n in todo])
        heads = train_group(layers, start, utterances, [group[n] for n in todo], config)
        for place, n in enumerate(todo):
            tensors = {name: value[place] for name, value in heads.items()}
            save_tensors(parts / f"{group[n]}.safetensors", tensors, {"fingerprint": prints[n]})
        log.info("heads %d to %d of %d are trained", group[0], group[-1], len(numbers))
    _finish(shards, model_folder, folder, config, [parts / f"{k}.safetensors" for k in numbers])


def train_group(
    layers: TrainableLayers,
    start: Mapping[str, Tensor],
    utterances: Utterances,
    numbers: Sequence[int],
    config: HeadConfig,
) -> dict[str, Tensor]:
    """The heads of some shards, all at once.

    Args:
        start: the public model's parameters of ``layers.names``.
        utterances: of the I shards, in their order.
        numbers: (I,) of the shards; they and the seed decide the order of a head's utterances.

    Returns:
        the parameters, (I, ...) each.
    """
    own = [torch.nonzero(utterances.shards == n).flatten() for n in range(len(numbers))]
    lengths = (config.steps, config.batch, config.seed)
    orders = [batches(len(rows), *lengths, number) for rows, number in zip(own, numbers)]
    places = [rows[torch.from_numpy(order).to(rows.device)] for rows, order in zip(own, orders)]
    steps = torch.stack(places, dim=1)  # (steps, I, B)
    # The distance from the public model is learned: weight decay draws towards that model.
    zeros = {
        name: torch.zeros(len(numbers), *value.shape).to(value) for name, value in start.items()
    }
    moved = {name: value.requires_grad_() for name, value in zeros.items()}
    optimizer = torch.optim.AdamW(
        moved.values(), lr=config.lr, betas=(0.9, 0.98), weight_decay=config.decay_to_public
    )
    for step, rows in enumerate(steps):
        report_progress(step, len(steps), f"heads {numbers[0]} to {numbers[-1]}, step")
        for setting in optimizer.param_groups:
            setting["lr"] = learning_rate(config, step, step / config.steps)  # type: ignore[arg-type]
        inputs = utterances.take(rows)
        optimizer.zero_grad(set_to_none=True)
        parameters = {name: start[name] + moved[name] for name in moved}
        scores = layers.scores(parameters, inputs, training=True)
        check_finite(scores.flatten(), [utterances.ids[n] for n in rows.flatten().tolist()])
        (-scores.sum(1) / inputs.target_lengths.sum(1).clamp(min=1)).sum().backward()
        gradients = [value.grad for value in moved.values() if value.grad is not None]
        clip_by_head(gradients, config.clip_norm)
        optimizer.step()
    return {name: (start[name] + value).detach() for name, value in moved.items()}


def batches(utterances: int, steps: int, size: int, seed: int, number: int) -> np.ndarray:
    """The order of one head's utterances, (steps, size): permutations, one after the other.

    >>> sorted(batches(4, 2, 2, seed=1, number=7).flatten().tolist())
    [0, 1, 2, 3]
    """
    generator = stream(seed, "head", number)
    epochs = -(-steps * size // utterances)
    order = np.concatenate([generator.permutation(utterances) for _ in range(epochs)])
    return order[: steps * size].reshape(steps, size)


def clip_by_head(gradients: Sequence[Tensor], clip_norm: float) -> None:
    """Scale gradients (I, ...) in place to a norm of at most ``clip_norm`` a head.

    >>> gradient = torch.tensor([[3.0, 4.0], [0.3, 0.4]])
    >>> clip_by_head([gradient], 1.0)
    >>> gradient.tolist()[0][0] < 0.6001, round(gradient.tolist()[1][0], 4)
    (True, 0.3)
    """
    norms = torch.stack([grad.flatten(1).square().sum(1) for grad in gradients]).sum(0).sqrt()
    scale = (clip_norm / (norms + 1e-6)).clamp(max=1.0)
    for grad in gradients:
        grad.mul_(scale.view(-1, *[1] * (grad.dim() - 1)))


@dataclass(frozen=True)
class _Shard:
    """One shard's utterances behind the frozen layers, unpadded, and a hash of what was read."""

    ids: list[str]
    lower: list[Tensor]
    states: list[Tensor]
    targets: list[Tensor]
    content: str


def _read(
    folder: Path,
    lang: Lang,
    model: Any,
    layers: TrainableLayers,
    config: HeadConfig,
    device: torch.device,
) -> _Shard:
    try:
        cuts, targets = spelled_targets(load_cuts(folder, "train"), lang, role=folder.name)
        if model.needs_frames():
            cuts = drop_unalignable(cuts, targets, model.output_frames, role=folder.name)
    except NothingLeftError:
        return _Shard([], [], [], [], "nothing to learn from")
    source = Batches(cuts, targets, max_duration=config.max_duration, seed=None, memory_gb=0.0)
    content = hashlib.sha256()
    ids: list[str] = []
    tensors: tuple[list[Tensor], list[Tensor], list[Tensor]] = ([], [], [])
    for batch in source.everything():
        content.update(repr((batch.ids, batch.targets.tolist())).encode())
        content.update(batch.features.numpy().tobytes())
        there = batch.to(device)
        lower, lengths = layers.lower(there.features, there.lengths)
        states = layers.states(lower, lengths, there.targets)
        ids += batch.ids
        for row, (frames, size) in enumerate(zip(lengths.tolist(), batch.target_lengths.tolist())):
            # Copies: a view would keep the whole batch in memory.
            tensors[0].append(lower[row, :frames].clone())
            tensors[1].append(states[row, : size + 1].clone())
            tensors[2].append(there.targets[row, :size].clone())
    return _Shard(ids, *tensors, content.hexdigest())


def _joined(shards: Sequence[_Shard]) -> Utterances:
    lower, states, targets = (
        [tensor for shard in shards for tensor in getattr(shard, name)]
        for name in ("lower", "states", "targets")
    )
    device = lower[0].device
    return Utterances(
        ids=tuple(name for shard in shards for name in shard.ids),
        lower=pad_sequence(lower, batch_first=True),
        lengths=torch.tensor([*map(len, lower)], device=device),
        states=pad_sequence(states, batch_first=True),
        targets=pad_sequence(targets, batch_first=True),
        target_lengths=torch.tensor([*map(len, targets)], device=device),
        shards=torch.tensor([n for n, s in enumerate(shards) for _ in s.ids], device=device),
    )


def _print_of(part: Path) -> str | None:
    """The fingerprint of a head that is there; None where there is none."""
    return (read_header(part) or {}).get("fingerprint") if part.is_file() else None


def _finish(
    shards: Path, model_folder: Path, folder: Path, config: HeadConfig, parts: Sequence[Path]
) -> None:
    """Put the heads together, the weights last, and take the parts away."""
    heads = [load_tensors(part) for part in parts]
    headers = [read_header(part) for part in parts]
    abstaining = [k for k, header in enumerate(headers, start=1) if header.get("abstains")]
    (folder / ENCODER).mkdir(parents=True, exist_ok=True)
    for name in (SPEC, TOKENS, MODEL_WEIGHTS):
        shutil.copyfile(model_folder / name, folder / ENCODER / name)
    shutil.copyfile(shards / FILE, folder / FILE)
    configuration.save(config, folder / CONFIG)
    stacked = {name: torch.stack([head[name] for head in heads]) for name in heads[0]}
    save_tensors(folder / WEIGHTS, stacked, {"trained": config.trained, "abstaining": abstaining})
    remove_tree(folder / _PARTS)

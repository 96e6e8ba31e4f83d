"""Small pools, teachers and votes for the tests of PATE."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from privasr_k2.am.checkpoints import save_model
from privasr_k2.am.kinds import new_model
from privasr_k2.fileio import write_json
from privasr_k2.graph.lang import load_lang
from privasr_k2.pate.mechanisms import MechanismConfig
from privasr_k2.pate.nbest_hypotheses import NbestHypotheses
from privasr_k2.pate.shards import Shards
from privasr_k2.pate.votes import Votes
from privasr_k2.scoring.nbest_lists import Hypothesis, NbestList, write_nbest
from tests.support.end_to_end import sharpened, spec, spelled_lang
from tests.support.small_am import tiny_model, write_corpus

TOKENS = ["<blk>", "a", "b", "c", "▁"]
ROSTER = {f"s{n}": n % 3 + 1 for n in range(9)}
SHARDS = Shards(3, "speaker", ROSTER, dict.fromkeys(ROSTER, 1))
WORDS = ("AB", "C", "CA")


def heads_corpus(folder: Path) -> tuple[Path, Path, Path]:
    """Three shards of the same corpus, a public model and a lang folder."""
    from lhotse import CutSet

    from privasr_k2.data.manifests import load_cuts, save_cuts

    feats, lang = write_corpus(folder / "data")
    cuts = list(load_cuts(feats, "train"))
    for k in (1, 2, 3):
        save_cuts(CutSet.from_cuts(cuts[k::3][:5]), folder / "shards" / f"shard_{k}", "train")
    write_shards_file(folder / "shards", 3)
    model = tiny_model("tdnn")
    save_model(folder / "model", model.spec, model.state_dict(), load_lang(lang).tokens)
    return folder / "shards", folder / "model", lang


def teacher(kind: str, seed: int) -> Any:
    """A model of 5 features and the tokens of :func:`spelled_lang`, of random weights."""
    made = sharpened(new_model(replace(spec(kind), num_tokens=5), seed=seed))
    made.tokens = list(TOKENS)
    return made


def save_teachers(folder: Path, kind: str, number: int) -> None:
    """Folders 1 to ``number``, as train_am would write them."""
    for k in range(1, number + 1):
        made = teacher(kind, k)
        save_model(folder / str(k), made.spec, made.state_dict(), TOKENS)


def pool(folder: Path) -> tuple[Path, Path]:
    """A features folder whose role train is also the pool, of 6 speakers, and its lang folder."""
    from lhotse.utils import fastcopy

    from privasr_k2.data.manifests import load_cuts, save_cuts

    feats, lang = write_corpus(folder, utterances=12)
    spelled_lang(lang)
    spoken = [
        fastcopy(cut, supervisions=[fastcopy(cut.supervisions[0], speaker=f"s{number % 6}")])
        for number, cut in enumerate(load_cuts(feats, "train"))
    ]
    save_cuts(spoken, feats, "train")
    shutil.copyfile(feats / "cuts_train.jsonl.gz", feats / "cuts_pool.jsonl.gz")
    return feats, lang


def write_lists(folder: Path, num_hyps: int = 3) -> None:
    """N-best lists of the pool; of the last utterance there is one hypothesis only."""
    texts = ["AB C", "C", "CA AB", "CA"][:num_hyps]
    lists = []
    for number in range(12):
        kept = texts[: 1 if number == 11 else num_hyps]
        turned = kept[number % len(kept) :] + kept[: number % len(kept)]
        scored = [(r, text, -float(r * (number + 1))) for r, text in enumerate(turned, 1)]
        hyps = tuple(Hypothesis(*hyp, {}) for hyp in scored)
        lists.append(NbestList(f"train-{number}", "pool", "", "", False, hyps))
    write_nbest(folder / "1.jsonl", lists)


def write_shards_file(folder: Path, teachers: int) -> None:
    """Only ``shards.json``."""
    roster = {f"private-{n}": n % teachers + 1 for n in range(3 * teachers)}
    header = {"format": "privasr_k2 shards 2", "seed": 1, "teachers": teachers, "unit": "speaker"}
    persons = dict.fromkeys(roster, 1)
    write_json(folder / "shards.json", {**header, "roster": roster, "persons": persons})


def made_votes(rows: list[list[int]], **changes: Any) -> tuple[Votes, NbestHypotheses]:
    """Votes for the hypotheses of utterances u0, u1, ..., and what was voted for."""
    ids = tuple(f"u{number}" for number in range(len(rows)))
    words = {name: tuple(f"{name} w{n}" for n in range(len(row))) for name, row in zip(ids, rows)}
    hypotheses = NbestHypotheses(words, {}, {}, {name: float(n) for n, name in enumerate(ids)}, ())
    sizes = [len(row) for row in rows]
    values: dict[str, Any] = dict(vote="utterance", of="votes", unit="speaker", units=90, tokens=())
    values |= dict(units_in_a_shard=9, persons=("s0",), person_votes=1)
    values |= dict(teachers=sum(rows[0]), max_hyps=8, largest_weight=1.0, step=1.0, ids=ids)
    values |= dict(splits=np.arange(len(rows) + 1), sizes=np.array(sizes))
    values |= dict(counts=np.concatenate(rows), digests=((ids, hypotheses.digest(ids)),))
    return Votes(**{**values, **changes}), hypotheses


def mechanism(cls: type[Any] = MechanismConfig, **changes: Any) -> Any:
    """A configuration with some values changed."""
    values: dict[str, Any] = dict(data="tiny/train", mechanism="gnmax", epsilon=8.0, delta=1e-5)
    values |= dict(published_scale="none", noise=4.0, max_answers=0, max_sigma=0.0, min_answers=0)
    values |= dict(max_queries=0, threshold=6.0, threshold_ratio=1.5)
    if cls is not MechanismConfig:
        values |= {"order": "random", "seed": 1}
    return cls(**{**values, **changes})

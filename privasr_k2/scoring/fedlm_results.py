"""What the stages of recipe ``fedlm`` measured, by system, for its report.

A system is a language model [liu2021, Tables 2-5], or none:

    no_nnlm                                       the first pass
    pretrained                                    no adaptation
    server_<way>, fl_<way>                        adapted on the server, by federated training
    server_scratch_<way>, fl_scratch_<way>        not pre-trained
    fl_<way>_noise_<multiplier>                   with user-level privacy, clients sampled
    fl_<way>_noise_<multiplier>_ordered           the same, clients in a fixed order

A way is how confidences are used: all, hard, utterance, token. Names stand in the paths of the recipe: a
model's folder, ``<system>/score_<role>``, ``<system>_privacy.json``, ``<system>_audit.json``.

[liu2021] Z. Liu, K. Li, S. Bakshi, F. Peng, Private language model adaptation for speech recognition, 2021.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from privasr_k2.errors import DataError
from privasr_k2.fileio import read_json, read_yaml
from privasr_k2.privacy.ledger import Entry, only_entry
from privasr_k2.scoring.results import Score, read_score

NO_NNLM, PRETRAINED = "no_nnlm", "pretrained"
WAYS = {"all": "all utts", "hard": "hard thres. utts", "utterance": "utt weighted", "token": "token weighted"}
_SYSTEM = re.compile(
    f"(?P<where>server|fl)(?P<scratch>_scratch)?_(?P<way>{'|'.join(WAYS)})"
    r"(?:_noise_(?P<noise>[0-9]+(?:\.[0-9]+)?)(?P<ordered>_ordered)?)?"
)


class System(NamedTuple):
    """An adapted model.

    Attributes:
        where: ``server`` or ``fl``.
        scratch: whether it was not pre-trained.
        way: a key of :data:`WAYS`.
        noise: multiplier; ``None`` where nothing is claimed.
        ordered: whether clients come in a fixed order, in place of being sampled.
    """

    where: str
    scratch: bool
    way: str
    noise: float | None
    ordered: bool

    @property
    def label(self) -> str:
        """As the paper's tables call it."""
        where = "Server" if self.where == "server" else "FL"
        how = "trained-from-scratch" if self.scratch else "finetuned"
        noise = "" if self.noise is None else f", noise {self.noise:g}"
        order = ", ordered" if self.ordered else ""
        return f"{where}-{how} NNLM ({WAYS[self.way]}{noise}{order})"


def parse_system(name: str, place: Path) -> System | None:
    """What a system's name says; ``None`` for :data:`NO_NNLM` and :data:`PRETRAINED`.

    Raises:
        DataError: not the name of a system.

    >>> parse_system("fl_token_noise_0.5", Path("p.json"))
    System(where='fl', scratch=False, way='token', noise=0.5, ordered=False)
    """
    if name in (NO_NNLM, PRETRAINED):
        return None
    found = _SYSTEM.fullmatch(name)
    if found is None:
        raise DataError(
            place,
            f"a system: {NO_NNLM}, {PRETRAINED}, <server|fl>[_scratch]_<way>[_noise_X[_ordered]]",
            name,
            "rename it",
        )
    noise = found["noise"]
    scratch = found["scratch"] is not None
    ordered = found["ordered"] is not None
    return System(found["where"], scratch, found["way"], None if noise is None else float(noise), ordered)


def label_of(name: str) -> str:
    """As the paper's tables call a system.

    >>> label_of("fl_all"), label_of("no_nnlm")
    ('FL-finetuned NNLM (all utts)', 'No NNLM')
    """
    system = parse_system(name, Path(name))
    if system is not None:
        return system.label
    return "No NNLM" if name == NO_NNLM else "Server-pretrained NNLM (no adapt)"


def baselines_of(name: str) -> tuple[str, ...]:
    """What a system is compared with, the comparison that its table shows first.

    >>> baselines_of("fl_token"), baselines_of("fl_all"), baselines_of("fl_all_noise_1.5")
    (('pretrained', 'fl_all'), ('pretrained', 'server_all'), ('pretrained', 'fl_all'))
    """
    system = parse_system(name, Path(name))
    if system is None:
        return (NO_NNLM,) if name == PRETRAINED else ()
    if system.noise is not None:
        return (PRETRAINED, f"{system.where}{'_scratch' if system.scratch else ''}_{system.way}")
    if system.scratch:
        first = "server_scratch_all"
        return (f"{system.where}_{system.way}",) if name == first else (first, f"{system.where}_{system.way}")
    beside = f"{system.where}_all" if system.way != "all" else "server_all"
    return (PRETRAINED,) if beside == name else (PRETRAINED, beside)


@dataclass(frozen=True)
class Figures:
    """The perplexity of one model.

    Attributes:
        ppl, with_oov: without and with the predictions of OOVs, ``None`` where the model has no ``<unk>``.
        groups: each group's -sum of log P, and its predictions; empty where no groups were named.
    """

    ppl: float
    with_oov: float | None
    groups: Mapping[str, tuple[float, int]]


@dataclass(frozen=True)
class Perplexities:
    """A file of verb ``perplexity``.

    Attributes:
        treatment: of sentence ends and unknown words, in words.
        by: what the groups are; empty where there are none.
        systems: figures of each system.
        words, sentences, oov: of the text, the same for all systems.
    """

    treatment: str
    by: str
    systems: Mapping[str, Figures]
    words: int
    sentences: int
    oov: int


def read_perplexities(path: Path) -> Perplexities:
    """The figures of all models on one text; a system is the name of its folder.

    Raises:
        DataError: something else, a model twice or of no system's name, or models on other texts.
    """
    content = read_json(path)
    systems: dict[str, Figures] = {}
    texts = set()
    try:
        for record in content["lms"]:
            name = Path(record["lm"]).name
            parse_system(name, path)
            if name in systems:
                raise DataError(path, "every model once", f"{name} twice", "name it once")
            groups = {
                group: (float(nats), int(count))
                for group, (nats, count) in (record.get("groups") or {}).items()
            }
            systems[name] = Figures(float(record["ppl"]), record["ppl_with_oov"], groups)
            counts = {group: count for group, (_, count) in groups.items()}
            texts.add((record["words"], record["sentences"], record["oov"], *sorted(counts.items())))
        treatment, by = str(content["treatment"]), str(content.get("by") or "")
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise DataError(path, "what perplexity writes", repr(error), "compute it again") from error
    if len(texts) != 1:
        raise DataError(path, "models on one text", f"{len(texts)} texts", "give all to one call")
    words, sentences, oov, *_ = texts.pop()
    return Perplexities(treatment, by, systems, int(words), int(sentences), int(oov))


def read_scores(folders: Iterable[Path]) -> tuple[dict[str, Score], dict[str, Score]]:
    """Error rates on test and on the adaptation part, by system; those of dev are passed over.

    Raises:
        DataError: a folder of no system, or a system twice.
    """
    test: dict[str, Score] = {}
    adapt: dict[str, Score] = {}
    for folder in folders:
        score = read_score(folder)
        parse_system(score.system, folder)
        if score.role == "dev":
            continue
        into = test if score.role == "test" else adapt
        if score.system in into:
            raise DataError(folder, "every system once", f"{score.system} twice", "name it once")
        into[score.system] = score
    return test, adapt


def read_entries(paths: Iterable[Path]) -> dict[str, Entry]:
    """The release of each system, from ``<system>_privacy.json``.

    Raises:
        PrivacyError: a file without exactly one entry, or with one that was changed.
    """
    return {_system_of_file(path, "_privacy.json"): only_entry(path) for path in paths}


def read_audits(paths: Iterable[Path]) -> dict[str, Mapping[str, Any]]:
    """What ``audit_fedlm`` found, from ``<system>_audit.json``.

    Raises:
        DataError: something else.
    """
    found: dict[str, Mapping[str, Any]] = {}
    for path in paths:
        content = read_json(path)
        parts = ("without_privacy", "with_privacy", "marks")
        if not isinstance(content, dict) or any(not isinstance(content.get(part), dict) for part in parts):
            raise DataError(path, "what audit_fedlm writes", "something else", "audit again")
        found[_system_of_file(path, "_audit.json")] = content
    return found


@dataclass(frozen=True)
class Words:
    """The vocabulary of all models.

    Attributes:
        number: of words.
        public: whether they are of public text alone.
    """

    number: int
    public: bool


def read_words(lang: Path) -> Words:
    """What a language folder says of its vocabulary.

    Raises:
        DataError: no ``lang.yaml``, or a damaged one.
    """
    found = read_yaml(lang / "lang.yaml")
    return Words(int(found.get("num_words", 0)), not found.get("train_words", True))


def read_trainings(folders: Iterable[Path]) -> list[dict[str, str]]:
    """For each model of ``train_fedlm`` a row: its learning rates, rounds, and the round that was kept.

    Raises:
        DataError: a folder that it has not written.
    """
    rows = []
    for folder in folders:
        about = read_json(folder / "federated.json")
        found = read_yaml(folder / "config.yaml")
        try:
            rows.append(
                {
                    "system": label_of(folder.name),
                    "client lr": f"{found['client']['lr']:g}",
                    "server lr": f"{found['server']['lr']:g}",
                    "rounds": str(about["rounds"]),
                    "kept": str(about["kept_round"]),
                }
            )
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(folder, "what train_fedlm writes", repr(error), "train again") from error
    return rows


def _system_of_file(path: Path, ending: str) -> str:
    name = path.name.removesuffix(ending)
    system = parse_system(name, path)
    if system is None or system.noise is None:
        raise DataError(path, f"fl_<way>_noise_X{ending}", path.name, "rename it")
    return name

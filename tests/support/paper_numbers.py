"""Numbers of the setup sections of three papers, and where a recipe has each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml
from omegaconf import OmegaConf

from privasr_k2 import sections
from privasr_k2.recipe.front import Declaration
from privasr_k2.recipe.plan import values_of


@dataclass(frozen=True)
class Number:
    """A value that a paper states.

    Attributes:
        section: of the paper.
        what: the number, as the table of ``docs/reproduce.md`` calls it.
        values: the paper's; one for each system where several stages have it.
        stages: titles of the stages that read it, a regular expression.
        key: of their configuration.
    """

    section: str
    what: str
    values: tuple[Any, ...]
    stages: str
    key: str


_AM, _NGRAM = "acoustic model, blstm", "n-gram LM"
_NNLM, _LISTS = "neural LM, transformer", "N-best lists of (dev|test)"
_RATES = r"grid_(alpha|beta)_only"
_CONTROL, _TABLE4 = "eps_background", r"eps_(none|published_[^:]*)"
_RELEASE = r"release eps_published_.*"

LIU2020 = (
    Number("3.2", "order of the first pass's n-gram LM", (5,), _NGRAM, "order"),
    Number("3.2", "layers of the LC-BLSTM", (6,), _AM, "encoder.blstm.layers"),
    Number("3.2", "hidden units of a layer", (1000,), _AM, "encoder.blstm.dim"),
    Number("3.2", "dimensions of word embeddings", (256,), _NNLM, "network.dim"),
    Number("3.2", "dimensions of the feed-forward network", (1024,), _NNLM, "network.feedforward"),
    Number("3.2", "decoder blocks", (3,), _NNLM, "network.layers"),
    Number("3.2", "attention heads", (4,), _NNLM, "network.heads"),
    Number("3.2", "dropout", (0.1,), _NNLM, "network.dropout"),
    Number("3.2", "hypotheses of an utterance of AMI", (20,), _LISTS, "num_paths"),
    Number("3.2", "weight of each LM's score", (0.5,), "weights of the LMs .*", "share"),
    Number("3.3", "alpha", (0.5,), r"T\d+", "alpha"),
    Number("3.3", "beta", (0.25,), r"T\d+", "beta"),
    Number("3.3", "sigma", (5.0,), r"T\d+", "kernel_bandwidth"),
    Number("3.3", "FL rounds T of table 2", (1, 2, 5, 10), r"T\d+", "rounds"),
    Number("3.4", "T of table 3, AMI", (10,), "grid_[^:]*", "rounds"),
    Number("3.4", "sigma of table 3", (0.1, 1, 10, 100), "grid_sigma_[^:]*", "kernel_bandwidth"),
    Number("3.4", "alpha of table 3", (0.0, 0.75), _RATES, "alpha"),
    Number("3.4", "beta of table 3", (0.0, 0.75), _RATES, "beta"),
    Number("4", "epsilon of table 4", (0.1, 0.5, 1.0, 2.0), _RELEASE, "epsilon"),
    Number("4", "sigma of table 4", (0.1,), _TABLE4, "kernel_bandwidth"),
    Number("4", "sigma of what is released", (0.1,), _RELEASE, "kernel_bandwidth"),
    Number("4", "alpha of table 4", (0.5,), _TABLE4, "alpha"),
    Number("4", "beta of table 4", (0.25,), _TABLE4, "beta"),
    Number("4", "T of table 4, AMI", (10,), _TABLE4, "rounds"),
)

_CHARS, _SERVER = "neural LM, char_lstm, pre-trained", "on the server, server_.*"
_FL, _PRIVATE = r"federated, fl_.*", "federated and private, .*"
_FIVE, _DEALT = "N-best lists of (dev|test), for rescoring", "text of clients"

LIU2021 = (
    Number("3.2", "order of the first pass's n-gram LM", (5,), _NGRAM, "order"),
    Number("3.2", "layers of the LC-BLSTM", (6,), _AM, "encoder.blstm.layers"),
    Number("3.2", "hidden units of a layer", (1000,), _AM, "encoder.blstm.dim"),
    Number("3.2", "hypotheses of an utterance", (5,), _FIVE, "num_paths"),
    Number("3.2", "dimensions of character embeddings", (100,), _CHARS, "network.char_dim"),
    Number("3.2", "LSTM layers", (2,), _CHARS, "network.layers"),
    Number("3.2", "hidden units of an LSTM layer", (512,), _CHARS, "network.dim"),
    Number("3.2", "devices", (10_000,), _DEALT, "devices"),
    Number("3.2", "users of a round", (100,), _FL, "cohort"),
    Number("3.2", "eta_g of FedAdam", (0.001,), f"{_FL}|{_PRIVATE}", "server.lr"),
    Number("3.2", "eta_l of SGD", (1.0,), f"{_FL}|{_PRIVATE}", "client.lr"),
    Number("3.2", "epochs of a client in a round", (1,), f"{_FL}|{_PRIVATE}", "client.epochs"),
    Number("3.2", "batch size of a client", (8,), f"{_FL}|{_PRIVATE}", "client.batch_size"),
    Number("3.2", "rounds, 10 epochs of 100", (1000,), f"{_FL}|{_PRIVATE}", "rounds"),
    Number("3.2", "learning rate of server training", (0.001,), _SERVER, "lr"),
    Number("3.2", "epochs of server training", (10,), _SERVER, "epochs"),
    Number("3.2", "batch size of server training", (32,), _SERVER, "batch_size"),
    Number("3.4", "L2 norm clip", (0.5,), _PRIVATE, "privacy.clip"),
    Number("3.4", "noise multiplier", (0.2, 0.5, 1.5), _PRIVATE, "privacy.noise"),
    Number("3.4", "delta", (1e-5,), _PRIVATE, "privacy.delta"),
)

_M1, _M2 = "M1, word n-gram, .*", "M2, class n-gram, .*"
_M3, _PARTS = "M3, n-grams of M4, .*", "background, adaptation, dev and test text"

TURAN2022 = (
    Number("3", "adaptation text, % of the background", (12, 15, 20), _PARTS, "sizes"),
    Number("4.1", "order of M1", (3,), _M1, "order"),
    Number("4.1", "order of M2", (3,), _M2, "order"),
    Number("4.1", "order of M3", (3,), _M3, "order"),
    Number("4.3", "lambda_w, lambda_c and lambda_n", (0.3, 0.4, 0.7), "mixture .*", "preset"),
)

#: Stated by the setup sections, and no value of a recipe: ``docs/reproduce.md`` has a row of each.
LIU2020_OTHER = ("14K", "30M", "78", "63", "1,015", "12,643", "74,248", "89,666", "100", "4")
LIU2021_OTHER = (
    *("14K", "9.7", "12.2", "166K", "63K", "1,738K", "363K", "13K", "123K", "73K", "10K", "10"),
)
TURAN2022_OTHER = (
    *("100", "4,880", "580", "531", "108,221", "13,059", "12,612", "802,604", "94,914", "89,635"),
    *("11,882", "4,145", "3,913", "2,167", "226", "489", "515", "937", "40", "25", "10", "7.5"),
    *("0.9", "1.0", "1.1", "0.05"),
)


def found(declaration: Declaration, number: Number) -> tuple[Any, ...]:
    """The different values that the stages of a number resolve to, sorted."""
    return tuple(sorted(set(_values(declaration, number))))


def shown(values: tuple[Any, ...]) -> str:
    """Values as the table of ``docs/reproduce.md`` has them.

    >>> shown((10_000,)), shown((0.5, 1.0))
    ('10,000', '0.5, 1')
    """
    return ", ".join(f"{v:,}" if isinstance(v, int) else f"{v:g}" for v in values)


def _values(declaration: Declaration, number: Number) -> Iterator[Any]:
    for stage in declaration.stages:
        if re.fullmatch(number.stages, stage.title) is None:
            continue
        task = stage.tasks[0]
        layers = [yaml.safe_load(sections.read(address)) for address in task.configs]
        settings = OmegaConf.from_dotlist(values_of(task.argv, "--set"))
        merged: Any = OmegaConf.merge(*layers, settings)
        if number.key == "share":  # with steps 0 all LMs have the same weight
            assert merged.steps == 0 and merged.interpolation == "log_linear"
            yield 1 / len(values_of(task.argv, "--in-scores"))
        else:
            selected = OmegaConf.select(merged, number.key)
            for value in selected if OmegaConf.is_list(selected) else [selected]:
                yield value if isinstance(value, int) else float(value)

"""Hours that preset paper would take on one GPU: counted work by assumed speeds. An estimate.

    . ./path.sh; python benchmarks/paper_cost.py

Nothing is trained, and nothing is measured. Floating-point operations are two for each weight and
frame or word, three times as many in training. Beside them stand the steps that wait for each other
on a GPU: kernels of an LSTM, frame by frame, and others of a batch. An hour is what both take at
the speeds given (--tflops that are reached, --microseconds a step). Sizes of networks, epochs and
rounds are those that the preset resolves to. Amounts of speech and text are the papers' where they
state them (``PAPERS``), otherwise assumed: --hours, --vocabulary, --sentence-words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.rows import flags
from privasr_k2.recipe import front, layers

ROOT = Path(__file__).resolve().parents[1]
#: Stated in the papers: sentences of background text [liu2020, section 3.1]; utterances and words
#: of AMI's meetings [liu2020, table 1], and of devices that talk [liu2021, table 1].
PAPERS = {"sentences": 30e6, "test": (12_643, 89_666), "devices": (166_000, 1_738_000)}
FRAMES_A_SECOND = 100
FEATURES, TOKENS, LETTERS = 80, 70, 9
"""Of an fbank frame; phones with stress marks; characters of a word, with its two ends."""
BATCH_KERNELS = 300
"""Kernels of a batch besides the steps of an LSTM: layers, loss, gradients, optimizer. Assumed."""


@dataclass(frozen=True)
class Assumed:
    """What no paper states.

    Attributes:
        tflops: 1e12 operations a second that training and scoring reach.
        microseconds: of a step that waits for the one before.
        hours: of speech to train on; seconds of an utterance.
        vocabulary: words of the neural LMs; sentence_words: words of a sentence of background text.
    """

    tflops: int = 20
    microseconds: int = 30
    hours: int = 80
    seconds: int = 5
    vocabulary: int = 12_000
    sentence_words: int = 15


@dataclass(frozen=True)
class Work:
    """One line of the table.

    Attributes:
        units: frames or words that a network reads, with all epochs.
        flop: operations; steps: those that wait for each other.
    """

    what: str
    recipe: str
    units: float
    flop: float
    steps: float

    def hours(self, assumed: Assumed) -> float:
        """By the speeds that are assumed."""
        steps = self.steps * assumed.microseconds * 1e-6
        return (self.flop / (assumed.tflops * 1e12) + steps) / 3600


def lstm(in_dim: int, dim: int) -> int:
    """Weights of an LSTM layer in one direction."""
    return 4 * dim * (in_dim + dim)


def blstm_weights(sizes: Mapping[str, Any], features: int, tokens: int) -> float:
    """Weights that an output frame of the CTC model meets; right context is computed twice."""
    dim, layer_count = sizes["dim"], sizes["layers"]
    reduced = 5 * features * dim + 3 * dim * dim  # convolutions, the first one of stride 3
    recurrent = 2 * lstm(dim, dim) + 2 * (layer_count - 1) * lstm(2 * dim, dim)
    again = 1 + (sizes["right_context"] / sizes["chunk"] if sizes["chunk"] else 0)
    return reduced + again * recurrent + 2 * dim * tokens


def char_lstm_weights(sizes: Mapping[str, Any], words: int, letters: int) -> float:
    """Weights that a position meets, its word's spelling among them."""
    word_dim, groups = sum(sizes["filters"]), zip(sizes["widths"], sizes["filters"], strict=True)
    spelled = sum(w * sizes["char_dim"] * f * max(1, letters - w + 1) for w, f in groups)
    highway = 2 * sizes["highway_layers"] * word_dim**2
    dims = [word_dim, *[sizes["dim"]] * (sizes["layers"] - 1)]
    recurrent = sum(lstm(in_dim, sizes["dim"]) for in_dim in dims)
    return spelled + highway + recurrent + sizes["dim"] * words


def transformer_weights(sizes: Mapping[str, Any], words: int) -> float:
    """Weights that a position meets; attention over a sentence is small beside them."""
    dim = sizes["dim"]
    return sizes["layers"] * (4 * dim**2 + 2 * dim * sizes["feedforward"]) + dim * words


def resolved(recipe: str, section: str, key: str) -> Any:
    """A value of preset paper on AMI; a group of them as a dictionary."""
    own = ROOT / "egs/ami/corpus.yaml#conf"
    addresses = layers.layers(ROOT, section, recipe=recipe, preset="paper", own=own)
    groups = [g for a in addresses if (g := layers.value([a], key)) is not None]
    return (
        {k: v for g in groups for k, v in g.items()} if isinstance(groups[0], dict) else groups[-1]
    )


def counted(assumed: Assumed) -> Iterator[Work]:
    """The stages that train or score a network on AMI; CPU stages are not among them."""
    declared = {
        name: front.declare("ami", name, ["--preset", "paper"], ROOT, ROOT)
        for name in ("fmp", "fedlm")
    }
    runs = {
        verb: sum(stage.tasks[0].argv[0] == verb for d in declared.values() for stage in d.stages)
        for verb in ("train_fedlm", "finetune_lm", "personalize")
    }
    yield _acoustic(assumed)
    background = PAPERS["sentences"]
    epochs = resolved("fmp", "lm_transformer", "epochs")
    weights = transformer_weights(resolved("fmp", "lm_transformer", "network"), assumed.vocabulary)
    yield _text(
        "Transformer LM, pre-trained",
        "fmp",
        weights,
        background * epochs,
        assumed.sentence_words,
        resolved("fmp", "lm_transformer", "max_words"),
        0,
    )
    utterances, words = PAPERS["test"]
    lists = 20 * utterances * runs["personalize"]
    yield _text(
        f"{runs['personalize']} rescorings of 20-best lists",
        "fmp",
        weights,
        lists,
        words / utterances,
        8000,
        0,
        training=False,
    )
    network = resolved("fedlm", "lm_char_lstm", "network")
    weights = char_lstm_weights(network, assumed.vocabulary, LETTERS)
    epochs = resolved("fedlm", "lm_char_lstm", "epochs")
    yield _text(
        "character LSTM, pre-trained",
        "fedlm",
        weights,
        background * epochs,
        assumed.sentence_words,
        resolved("fedlm", "lm_char_lstm", "max_words"),
        network["layers"],
    )
    utterances, words = PAPERS["devices"]
    served = utterances * resolved("fedlm", "finetune_lm", "epochs") * runs["finetune_lm"]
    batch = resolved("fedlm", "finetune_lm", "batch_size") * (words / utterances + 1)
    yield _text(
        f"{runs['finetune_lm']} trainings on the server",
        "fedlm",
        weights,
        served,
        words / utterances,
        batch,
        network["layers"],
    )
    rounds, cohort = (resolved("fedlm", "fedlm", key) for key in ("rounds", "cohort"))
    seen = rounds * cohort / resolved("fedlm", "clients", "devices") * utterances
    batch = resolved("fedlm", "fedlm", "client.batch_size") * (words / utterances + 1)
    yield _text(
        f"{runs['train_fedlm']} federated trainings",
        "fedlm",
        weights,
        seen * runs["train_fedlm"],
        words / utterances,
        batch,
        network["layers"],
    )


def _acoustic(assumed: Assumed) -> Work:
    sizes = resolved("fmp", "am_ctc", "encoder")["blstm"]
    epochs, batch = (resolved("fmp", "am_ctc", key) for key in ("epochs", "max_duration"))
    seconds = assumed.hours * 3600 * epochs
    frames = seconds * FRAMES_A_SECOND / sizes["subsampling"]
    weights = blstm_weights(sizes, FEATURES, TOKENS)
    longest = 2 * assumed.seconds * FRAMES_A_SECOND / sizes["subsampling"]
    again = 1 + sizes["right_context"] / sizes["chunk"]
    steps = 3 * longest * again * 2 * sizes["layers"] + BATCH_KERNELS
    return Work("LC-BLSTM", "both", frames, 6 * weights * frames, steps * seconds / batch)


def _text(
    what: str,
    recipe: str,
    weights: float,
    sentences: float,
    words: float,
    batch: float,
    lstm_layers: int,
    *,
    training: bool = True,
) -> Work:
    """Sentences of so many words, ``batch`` positions at a time; the longest has twice the mean."""
    positions, times = sentences * (words + 1), 3 if training else 1
    steps = times * 2 * (words + 1) * lstm_layers + BATCH_KERNELS
    return Work(what, recipe, positions, 2 * times * weights * positions, steps * positions / batch)


def talking_devices(utterances: int, devices: int, exponent: float) -> float:
    """Devices that get an utterance or more, on average, where Zipf's law deals them.

    >>> round(talking_devices(2, 2, 0.0), 2)
    1.5
    """
    shares = [rank**-exponent for rank in range(1, devices + 1)]
    total = sum(shares)
    return sum(1 - (1 - share / total) ** utterances for share in shares)


def table(assumed: Assumed) -> str:
    """Work and hours in Markdown."""
    lines = [
        "| work | recipe | frames or words | operations | steps | hours |",
        "|---|---|--:|--:|--:|--:|",
    ]
    lines += [
        f"| {w.what} | `{w.recipe}` | {w.units:.1e} | {w.flop:.1e} | {w.steps:.1e} |"
        f" {w.hours(assumed):.1f} |".replace("`both`", "both")
        for w in counted(assumed)
    ]
    return "\n".join(lines)


def main() -> None:
    """Print the table."""
    numbers = {name: value for name, value in vars(Assumed()).items()}
    args = flags(__doc__, rows=False, **numbers).parse_args()
    assumed = Assumed(**{name: getattr(args, name) for name in numbers})
    print("An estimate by counted work and assumed speeds, not a measurement.\n")
    print(table(assumed))
    devices, exponent = (resolved("fedlm", "clients", key) for key in ("devices", "exponent"))
    for utterances in (166_000, 63_000):
        some = talking_devices(utterances, devices, exponent)
        print(f"\n{utterances:,} utterances reach {some:,.0f} of {devices:,} devices")


if __name__ == "__main__":
    main()

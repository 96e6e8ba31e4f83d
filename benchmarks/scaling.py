"""Costs of the stages as a function of size: three sizes each, a line, a picture, a projection.

    . ./path.sh; python benchmarks/scaling.py --text ../shared/data/books/books.txt.gz

Verbs run in processes of their own with one thread. Hours, vocabulary and hypotheses are parts of a
corpus whose recipe ctc has ended (--work-dir); clients and teachers are synthetic. Costs are
``fixed + rate * size``, fitted by squared relative errors, with the largest error in the table.
Writes costs.jsonl, scaling.md (table and projection) and scaling.svg.
"""

from __future__ import annotations

import argparse
import itertools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch

from benchmarks import federated_round, teacher_heads
from benchmarks.measuring import Usage, measured, of_verb
from benchmarks.rows import command_line, flags
from benchmarks.table import line, machine, versions
from privasr_k2 import config
from privasr_k2.data.manifests import load_cuts, save_cuts
from privasr_k2.environment import code_version
from privasr_k2.federated.client import LocalTrainer
from privasr_k2.fileio import atomic_path, write_jsonl, write_text
from privasr_k2.pate.heads import HeadConfig, HeadEnsemble
from privasr_k2.pate.heads_training import train_group
from privasr_k2.pate.trainable_layers import trainable_layers
from privasr_k2.training.distributed import Process

ROOT = Path(__file__).resolve().parents[1]
CONF = ROOT / "conf"
COMMON = f"{CONF}/common.yaml#"


@dataclass(frozen=True)
class Cost:
    """One measurement: wall and processor seconds and peak MiB of a stage at a size of an axis."""

    stage: str
    axis: str
    size: float
    seconds: float
    processor: float
    memory: float


@dataclass(frozen=True)
class Line:
    """``fixed + rate * size`` seconds of one core, and the largest relative error."""

    fixed: float
    rate: float
    off: float

    def __call__(self, size: float) -> float:
        return self.fixed + self.rate * size


def fit(sizes: Sequence[float], seconds: Sequence[float]) -> Line:
    """The line of the least squared relative error, without a negative fixed part.

    >>> fit([1, 2, 4], [3.0, 5.0, 9.0])
    Line(fixed=1.0, rate=2.0, off=0.0)
    """
    x, y = np.asarray(sizes, dtype=float), np.asarray(seconds, dtype=float)
    relative = np.stack([1 / y, x / y], axis=1)
    (fixed, rate), *_ = np.linalg.lstsq(relative, np.ones(len(y)), rcond=None)
    if fixed < 0:
        fixed, rate = 0.0, float((x / y).sum() / np.square(x / y).sum())
    off = np.abs((fixed + rate * x) / y - 1).max()
    return Line(*(round(float(value), 9) for value in (fixed, rate, off)))


def run(verb: str, *words: object) -> tuple[float, float, float]:
    """Seconds, processor seconds and MiB of a verb with one thread."""
    return figures(of_verb(verb, *words, env={**os.environ, "OMP_NUM_THREADS": "1"}))


def figures(taken: Usage) -> tuple[float, float, float]:
    """Of a :class:`Cost`."""
    return taken.seconds, taken.processor, taken.peak


def part(folder: Path, role: str, hours: float, out: Path) -> float:
    """Write the first so many hours of a role to another folder; return the actual hours."""
    total, taken = 0.0, []
    for cut in load_cuts(folder, role, lazy=True):
        if total >= 3600 * hours:
            break
        total += cut.duration
        taken.append(cut)
    save_cuts(taken, out, role)
    return total / 3600


def searched(work: Path) -> tuple[str | Path, ...]:
    """The flags of a first pass."""
    exp, graph = work / "exp/ctc_tdnn_phone", work / "data/graph_phone"
    return ("--in-model", exp / "am", "--in-graph", graph, "--in-weights", exp / "weights.json")


def of_hours(work: Path, scratch: Path, sizes: Sequence[float]) -> Iterator[Cost]:
    """Features, passes of training and the first pass."""
    data = work / "data"
    for hours in sizes:
        here = scratch / f"hours_{hours}"
        found = part(data / "manifests", "train", hours, here / "manifests")
        feats = ("--in-manifests", here / "manifests", "--out-dir", here / "feats")
        made = run("compute_features", *feats, "--config", COMMON + "features")
        yield Cost("features", "hours", found, *made)
        part(data / "feats_fbank", "dev", 0.02, here / "feats")
        lang = data / "lang_phone/spoken"
        model = ("--in-feats", here / "feats", "--in-lang", lang, "--out-dir", here / "am")
        layers = ("--config", CONF / "ctc.yaml#am_ctc", ROOT / "egs/mini/corpus.yaml#conf.am_ctc")
        trained = run("train_am", *model, *layers, "--device", "cpu", "--set", "epochs=2", "avg=1")
        yield Cost("two passes of the acoustic model", "hours", found, *trained)
        tested = part(data / "feats_fbank", "test", hours, here / "test")
        given = ("--in-feats", here / "test", "--out-hyps", here / "hyps.jsonl", "--device", "cpu")
        tests = ("--config", COMMON + "decode", "--set", "role=test")
        yield Cost("first pass", "hours", tested, *run("decode", *searched(work), *given, *tests))


def of_hypotheses(work: Path, scratch: Path, sizes: Sequence[int], hours: float) -> Iterator[Cost]:
    """N-best lists, and their words by a neural LM."""
    data = work / "data"
    part(data / "feats_fbank", "test", hours, scratch / "some")
    lm = scratch / "lstm"
    text = ("--in-manifests", data / "manifests", "--in-lang", data / "lang_phone", "--out-dir", lm)
    small = ("--config", COMMON + "lm_lstm", "--set", "max_text_words=20000", "epochs=1")
    run("train_lm", *text, *small, "--device", "cpu")
    for most in sizes:
        lists = scratch / f"nbest_{most}"
        given = ("--in-feats", scratch / "some", "--out-nbest", lists / "1.jsonl")
        layers = ("--config", COMMON + "decode", COMMON + "nbest", "--device", "cpu")
        values = ("--set", "backend=k2", "role=test", f"num_paths={most}")
        made = run("decode", *searched(work), *given, *layers, *values)
        yield Cost("N-best lists", "hypotheses", most, *made)
        out = scratch / f"scores_{most}.safetensors"
        scored = ("--in-nbest", lists, "--in-lm", lm, "--out-scores", out)
        named = ("--config", COMMON + "lm_scores", "--device", "cpu", "--set", "name=lstm")
        made = run("lm_scores", *scored, *named)
        yield Cost("words of the lists by an LSTM", "hypotheses", most, *made)


def of_words(work: Path, scratch: Path, sizes: Sequence[int], text: Path) -> Iterator[Cost]:
    """Lang folder, n-gram and graph."""
    manifests = scratch / "manifests"
    part(work / "data/manifests", "train", 0.05, manifests)
    part(work / "data/manifests", "dev", 0.02, manifests)
    for words in sizes:
        here = scratch / f"words_{words}"
        lang, lm = here / "lang", here / "lm.arpa.gz"
        given = ("--in-manifests", manifests, "--raw-lm-text", text, "--out-dir", lang)
        layers = ("--config", COMMON + "lang", "--set", f"max_words={words}")
        made = run("prepare_lang", *given, *layers)
        yield Cost("lang folder of a public text", "words", words, *made)
        texts = ("--in-text", text, "--in-manifests", manifests, "--in-lang", lang, "--out-lm", lm)
        made = run("train_ngram", *texts, "--config", COMMON + "lm_ngram")
        yield Cost("n-gram LM of it", "words", words, *made)
        given = ("--in-lang", lang, "--in-lm", lm, "--out-dir", here / "graph")
        made = run("compile_graph", *given, "--config", COMMON + "graph")
        yield Cost("graph", "words", words, *made)


def a_round(clients: int) -> Callable[[], object]:
    """A round of federated training: the LSTM on characters in the size for two cores."""
    torch.set_num_threads(1)
    model = federated_round.made_model(10_000, 256, 1)
    trainer = LocalTrainer(model, federated_round.LOCAL, seed=1)
    cohort = federated_round.made_clients(clients, model.num_words, 8.0)
    given, alone = argparse.Namespace(positions=2048), Process(0, 1, torch.device("cpu"))
    return partial(federated_round.our_round, trainer, trainer.vector.clone(), cohort, given, alone)


def of_clients(sizes: Sequence[int]) -> Iterator[Cost]:
    """Rounds of federated training."""
    for clients in sizes:
        taken = figures(measured(a_round, clients))
        yield Cost("round of federated training", "clients", clients, *taken)


def training_of_heads(heads: int) -> Callable[[], object]:
    """Heads of one public model on all their shards; sizes of benchmarks/teacher_heads.py."""
    torch.set_num_threads(1)
    model = teacher_heads.make_model()
    layers = trainable_layers(model, "output")
    start = {n: value.detach() for n, value in model.named_parameters() if n in layers.names}
    settings = config.load(HeadConfig, [CONF / "pate.yaml#heads"], ["trained=output"])
    data = teacher_heads.make_data(heads)

    def work() -> None:
        utterances, at_once = teacher_heads.read(layers, data, heads), settings.heads_at_once
        for first in range(1, heads + 1, at_once):
            group = range(first, min(first + at_once, heads + 1))
            train_group(layers, start, utterances, group, settings)

    return work


def votes_of_heads(heads: int) -> Callable[[], object]:
    """Scores by heads, all of them the public model's own layers."""
    torch.set_num_threads(1)
    model = teacher_heads.make_model()
    names = trainable_layers(model, "output").names
    own = {name: value.detach() for name, value in model.named_parameters() if name in names}
    together = {name: value.repeat(heads, *(1,) * value.ndim) for name, value in own.items()}
    ensemble = HeadEnsemble(model, together, trained="output", per_token=True)
    data = teacher_heads.make_data(1)
    sizes = range(teacher_heads.HYPS)
    hyps = [[tokens[: len(tokens) - k].tolist() for k in sizes] for tokens in data.targets]
    return partial(ensemble.hypothesis_scores, data.features, data.lengths, hyps)


def of_teachers(sizes: Sequence[int]) -> Iterator[Cost]:
    """Heads and their votes on a shard's number of utterances."""
    votes = f"their votes on {teacher_heads.UTTERANCES} utterances"
    for heads in sizes:
        taken = figures(measured(training_of_heads, heads))
        yield Cost("teachers as heads", "teachers", heads, *taken)
        yield Cost(votes, "teachers", heads, *figures(measured(votes_of_heads, heads)))


def grouped(costs: Sequence[Cost]) -> dict[str, list[Cost]]:
    """The measurements of each stage."""
    found: dict[str, list[Cost]] = {}
    for cost in costs:
        found.setdefault(cost.stage, []).append(cost)
    return found


def as_page(costs: Sequence[Cost], hours: float, passes: int) -> str:
    """The table and the projection, in Markdown."""
    stages = grouped(costs)
    fitted = {
        name: fit([c.size for c in of], [c.processor for c in of]) for name, of in stages.items()
    }
    head = [
        "stage",
        "size",
        "processor s",
        "memory, MiB",
        "fixed s",
        "s for each",
        "worst of three",
    ]
    rows = [line(head), line(("---", "---", *["---:"] * 5))]
    for name, of_one in stages.items():
        of = fitted[name]
        sizes = ", ".join(f"{c.size:,.0f}" if c.size >= 1 else f"{c.size:.3g}" for c in of_one)
        cells = (f"{sizes} {of_one[0].axis}", ", ".join(f"{c.processor:.1f}" for c in of_one))
        memory = ", ".join(f"{c.memory:,.0f}" for c in of_one)
        of_line = (f"{of.fixed:.2g}", f"{of.rate:.3g}", f"{of.off:.0%}")
        rows.append(line((name, *cells, memory, *of_line)))
    made = f"Made by `{command_line()}` on {machine()}, one thread; {versions()}; {code_version()}"
    told = "Projected along the lines, far beyond what was measured, for one core like this one:"
    projected = [f"- {text}." for text in projections(fitted, hours, passes)]
    today = f"{made}; {datetime.now(UTC):%Y-%m-%d}."
    return "\n".join([today, "", *rows, "", told, "", *projected, ""])


def projections(fitted: Mapping[str, Line], hours: float, passes: int) -> Iterator[str]:
    """What a large corpus and many clients would cost."""
    two, client = fitted["two passes of the acoustic model"], fitted["round of federated training"]
    heads, votes = (
        fitted[stage] for stage in fitted if stage.startswith(("teachers", "their votes"))
    )
    pool = 1000 / teacher_heads.UTTERANCES
    yield f"features of {hours:.0f} h: {fitted['features'](hours) / 3600:.1f} h"
    yield (
        f"{passes} passes over them, a network of mini's size:"
        f" {two(hours) / 2 * passes / 3600:.0f} h"
    )
    for teachers in (15, 250):
        starts = teachers * two.fixed / 60
        yield (
            f"{teachers} teachers who share the hours out: as much, and {starts:.0f} min to start"
            " them"
        )
    asked = f"and {votes(250) * pool / 60:.0f} min for their votes on 1,000 utterances"
    yield f"250 heads of a public model, 30 utterances each: {heads(250) / 60:.0f} min, {asked}"
    yield f"a round of 10,000 clients: {client(1e4) / 60:.0f} min"
    yield f"a million clients, each once: {client(1e6) / 3600:.0f} h"
    yield "a client who is not in a round costs nothing"


def picture(costs: Sequence[Cost], path: Path) -> None:
    """A panel for each axis, both scales logarithmic."""
    from matplotlib.figure import Figure

    axes: dict[str, list[tuple[str, list[Cost]]]] = {}
    for stage, of_one in grouped(costs).items():
        axes.setdefault(of_one[0].axis, []).append((stage, of_one))
    figure = Figure(figsize=(5.0 * len(axes), 4.0), layout="constrained")
    for panel, (axis, drawn) in zip(figure.subplots(1, len(axes), squeeze=False)[0], axes.items()):
        for stage, of_one in drawn:
            points = zip(*((cost.size, cost.processor) for cost in of_one))
            panel.plot(*points, marker="o", label=stage)
        panel.set(xlabel=axis, ylabel="processor seconds", xscale="log", yscale="log")
        panel.legend(frameon=False, fontsize=7)
    with atomic_path(path) as temporary:
        figure.savefig(temporary, format="svg", metadata={"Date": None})


def main() -> None:
    """Measure, fit, draw and write."""
    parser = flags(__doc__, rows=False, passes=30)  # as in conf/presets/paper.yaml#am_ctc
    work_help = "of a finished recipe ctc"
    parser.add_argument("--work-dir", type=Path, default=ROOT / "egs/mini", help=work_help)
    text_help = "public text, a normalized sentence a line"
    parser.add_argument("--text", type=Path, required=True, help=text_help)
    parser.add_argument("--out-dir", type=Path, default=ROOT / "build/scaling")
    parser.add_argument("--hours", type=float, nargs="+", default=[0.1, 0.3, 0.7])
    parser.add_argument("--hypotheses", type=int, nargs="+", default=[5, 20, 80])
    parser.add_argument("--words", type=int, nargs="+", default=[5_000, 15_000, 45_000])
    parser.add_argument("--clients", type=int, nargs="+", default=[25, 100, 400])
    parser.add_argument("--teachers", type=int, nargs="+", default=[10, 50, 250])
    parser.add_argument("--projected-hours", type=float, default=960.0, help="of training speech")
    args = parser.parse_args()
    work, costs = args.work_dir.absolute(), []
    with TemporaryDirectory(prefix="scaling-") as name:
        scratch = Path(name)
        parts = (
            of_hours(work, scratch, args.hours),
            of_hypotheses(work, scratch, args.hypotheses, args.hours[0]),
            of_words(work, scratch, args.words, args.text.absolute()),
            of_clients(args.clients),
            of_teachers(args.teachers),
        )
        for cost in itertools.chain(*parts):
            taken = f"{cost.processor:.1f} s, {cost.memory:.0f} MiB"
            print(f"{cost.stage}, {cost.size:g} {cost.axis}: {taken}", flush=True)
            costs.append(cost)
    write_jsonl(args.out_dir / "costs.jsonl", map(asdict, costs))
    write_text(args.out_dir / "scaling.md", as_page(costs, args.projected_hours, args.passes))
    picture(costs, args.out_dir / "scaling.svg")
    print((args.out_dir / "scaling.md").read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()

"""A user's names spliced into a graph, beside compiling it again and beside a context graph.

    . ./path.sh; python benchmarks/name_splice.py [--units phone] [--names 20000]

The n-gram model and its words are of books, ``--in-text``; the names are of made-up syllables, so
that no lexicon has them. For each kind of units, in one run:

- seconds until k2 can search a graph with ``--names`` names, spliced (pronounced before, and
  pronounced now) and compiled again; the best paths of the sentences must agree, or nothing is
  printed;
- seconds until these names are a piece of a class graph, as prefix trees and composed with the
  lexicon and determinized;
- seconds of the search in the graph without names and with them;
- recall of the names of a user, and the WER of all other words, with 0, 100 and 1,000 other names
  in the list: spliced, and with the context graph of ``--hotwords``. Each has its best setting on
  dev, by errors of all words.

Outputs of a network are simulated: for each token of a sentence a frame that prefers it, or
sometimes another one, and a frame that prefers the blank, under noise. So the figures compare
graphs, and say nothing of a network. The search has LM weight 1 and beam 14. A public encoder has a
head with one of these units, so that its graph is one of these.
"""

from __future__ import annotations

import dataclasses
import gzip
import itertools
import json
import os
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = os.environ.get("OMP_NUM_THREADS", "1")

import numpy as np

from benchmarks.name_graphs import SYLLABLES, composed_piece, graph_of, make_lang, recompiled
from benchmarks.rows import Row, append_rows, flags
from privasr_k2 import config
from privasr_k2.decoding.first_pass import Decoder
from privasr_k2.decoding.jobs import DecodeConfig
from privasr_k2.decoding.recognizer import GraphSettings
from privasr_k2.graph.class_delimiters import ClassDelimiters
from privasr_k2.graph.class_pieces import names_piece
from privasr_k2.graph.contacts import CLASS, ContactGraph
from privasr_k2.graph.hlg import Graph
from privasr_k2.graph.hotwords import compile_hotword_graph, with_words
from privasr_k2.graph.lang import Lang
from privasr_k2.graph.spelled import spellings
from privasr_k2.lm.ngram import count_ngrams, estimate
from privasr_k2.lm.pruning import prune_to
from privasr_k2.lm.sub_lm import make_sub_lm
from privasr_k2.randomness import stream
from privasr_k2.scoring.align import align
from privasr_k2.text.hotwords import Hotword, Hotwords

ROOT = Path(__file__).resolve().parents[1]
COMMON = ROOT / "conf/common.yaml"
BOOKS = Path(os.environ.get("PRIVASR_SHARED_DATA", ROOT.parent / "shared/data"))
BOOKS /= "books/books.txt.gz"
OTHERS, BONUSES, LOG_PROBS = (0, 100, 1000), (1.0, 2.0, 4.0), (-6.0, -4.0, -2.0)
OF_USER = 50
BEAM = 14.0
CONFUSED = 0.35  # of tokens: another one is likelier

Sentence = tuple[tuple[str, ...], int]  # words, and where the name of two words begins


@dataclass(frozen=True)
class Heard:
    """Errors of a set of sentences: names found, and errors of the other words."""

    names: int
    found: int
    words: int
    errors: int
    all_errors: int

    @property
    def recall(self) -> float:
        """Of names, in percent."""
        return 100 * self.found / self.names

    @property
    def wer(self) -> float:
        """Of the other words, in percent."""
        return 100 * self.errors / self.words


def make_names(count: int) -> list[tuple[str, str]]:
    """Different full names; the first OF_USER are the user's."""
    generator = stream(1, "names")

    def word(longest: int) -> str:
        return "".join(generator.choice(SYLLABLES, size=generator.integers(2, longest + 1)))

    first, last = [word(2) for _ in range(1000)], [word(3) for _ in range(count)]
    names: dict[tuple[str, str], None] = {}
    while len(names) < count:
        names[str(generator.choice(first)), str(generator.choice(last))] = None
    return list(names)


def read_text(path: Path, words: int, lines: int) -> tuple[list[list[str]], list[str]]:
    """Lines, and their most frequent words.

    Raises:
        SystemExit: no such file.
    """
    if not path.is_file():
        raise SystemExit(f"{path}: no text; give some, a sentence a line, gzip: --in-text FILE")
    with gzip.open(path, "rt", encoding="utf-8") as file:
        text = [line.lower().split() for line in itertools.islice(file, lines)]
    counts = Counter(word for line in text for word in line if word.isalpha() and word.isascii())
    known = [word for word, _ in counts.most_common(words)]
    return text, known


def simulated(
    lang: Lang, sentences: Sequence[Sentence], gain: float, batch: int
) -> Iterator[tuple[Any, Any]]:
    """Log-probabilities of batches of sentences, and their lengths."""
    import torch

    generator = stream(2, "outputs")
    spelled = spellings(lang, {word for words, _ in sentences for word in words})
    outputs = []
    for words, _ in sentences:
        tokens = [token for word in words for token in spelled[word]]
        right = np.zeros(2 * len(tokens) + 1, dtype=np.int64)
        right[1::2] = tokens
        logits = generator.normal(size=(len(right), lang.num_tokens))
        rows = np.arange(len(right))
        confused = (right > 0) & (generator.random(len(right)) < CONFUSED)
        logits[rows, right] += np.where(confused, gain - 2, gain)
        wrong = generator.integers(1, lang.num_tokens, size=len(right))
        logits[rows[confused], wrong[confused]] += gain - 1
        outputs.append(torch.from_numpy(logits.astype(np.float32)).log_softmax(1))
    for start in range(0, len(outputs), batch):
        part = outputs[start : start + batch]
        padded = torch.nn.utils.rnn.pad_sequence(part, batch_first=True)
        yield padded, torch.tensor([len(one) for one in part])


def search(graph: Graph, outputs: Sequence[tuple[Any, Any]]) -> tuple[list[Any], float]:
    """The best hypothesis of each sentence, and processor seconds."""
    values = config.load(DecodeConfig, [COMMON.with_name("common.yaml#decode")])
    point = {"search_lm_weight": 1.0, "lm_weights": [1.0], "insertion_penalties": [0.0]}
    one = dataclasses.replace(values.search(), search_beam=BEAM, output_beam=2.0, **point)
    decoder = Decoder(graph, one)
    started = time.process_time()
    hyps = [hyp and hyp[0] for batch in outputs for hyp in decoder.decode(*batch)]
    return hyps, time.process_time() - started


def count(sentences: Sequence[Sentence], hyps: Sequence[Any]) -> Heard:
    """Names found as a whole, and errors of words that are no part of a name or beside one."""
    found = words = errors = every = 0
    for (ref, at), hyp in zip(sentences, hyps):
        said = hyp.words.split() if hyp is not None else []
        pairs, place = align(ref, said), 0
        hits = 0
        for wanted, got in pairs:
            named = at <= place < at + 2 or (wanted is None and place == at + 2)
            every += wanted != got
            if named:
                hits += wanted is not None and wanted == got
            else:
                errors += wanted != got
            place += wanted is not None
        found += hits == 2
        words += len(ref) - 2
    return Heard(len(sentences), found, words, errors, every)


def make_sentences(
    text: Sequence[Sequence[str]], known: set[str], names: Sequence[tuple[str, str]], number: int
) -> list[Sentence]:
    """Lines of known words, each with a name of the user somewhere."""
    generator, made = stream(3, "sentences"), []
    for line in text:
        if 5 <= len(line) <= 14 and known.issuperset(line) and len(made) < number:
            at = int(generator.integers(0, len(line) + 1))
            name = names[int(generator.integers(0, OF_USER))]
            made.append(((*line[:at], *name, *line[at:]), at))
    return made


def listed(names: Sequence[tuple[str, str]]) -> Hotwords:
    """A list of names."""
    return Hotwords("names", tuple(Hotword(name, None, "made") for name in names))


def timed(work: Callable[[], Any], repeats: int) -> tuple[Any, float, float]:
    """What work gives, and the least wall and processor seconds."""
    best, made = [np.inf, np.inf], None
    for _ in range(repeats):
        clock, processor = time.perf_counter(), time.process_time()
        made = work()
        spent = (time.perf_counter() - clock, time.process_time() - processor)
        best = [min(pair) for pair in zip(best, spent)]
    return made, round(best[0], 3), round(best[1], 3)


class Run:
    """All measurements of one kind of units."""

    def __init__(self, args: Any, units: str, folder: Path) -> None:
        self.args, self.units = args, units
        text, known = read_text(args.in_text, args.words, args.lines)
        self.lang, self.names = make_lang(folder, known, units), make_names(args.names)
        vocabulary = set(self.lang.word_ids)
        held_out = [line for line in text[::10]]
        training = [line for n, line in enumerate(text) if n % 10]
        training = [[w if w in vocabulary else "<unk>" for w in line] for line in training]
        counts = count_ngrams(training, sorted(vocabulary), order=3)
        self.model = prune_to(estimate(counts, "witten_bell"), args.ngrams)[0]
        made = make_sentences(held_out, vocabulary, self.names, 2 * args.sentences)
        self.dev, self.test = made[: args.sentences], made[args.sentences :]
        outputs = {"gain": args.gain, "batch": 20}
        self.outputs = [
            list(simulated(self.lang, part, **outputs)) for part in (self.dev, self.test)
        ]
        names = ("graph", "hotwords", "contacts")
        layers = [COMMON.with_name(f"common.yaml#{name}") for name in names]
        self.settings = config.load(GraphSettings, layers)
        self.place = {"model_path": Path("the model")}
        self.contacts, *self.compiled = timed(self.compile, 1)

    def compile(self) -> ContactGraph:
        """The graph without names."""
        return ContactGraph.compile(self.lang, self.model, self.settings, **self.place)

    def plain(self) -> Graph:
        """The graph without names, for the search."""
        return graph_of(self.lang, self.contacts.opened.HLG, self.lang.words, False)

    def speed(self) -> dict[str, Any]:
        """Seconds of making and searching graphs of all names."""
        names = listed(self.names)
        words = {word for name in self.names for word in name}
        _, *pronounced = timed(lambda: self.contacts.pronounce(words), 1)
        log_prob = self.settings.contact_log_prob
        graph, *spliced = timed(self._spliced(names, log_prob), self.args.repeats)
        even = {entry.words: 1.0 for entry in names.entries}
        whole, sub = with_words(self.lang, names), make_sub_lm(even, "tree", place="names")
        delimiters = ClassDelimiters(len(whole.words), (CLASS,))
        making = (whole, sub, CLASS, delimiters, self.settings, None)
        piece, *as_trees = timed(lambda: names_piece(*making), self.args.repeats)
        composed, *by_composing = timed(
            lambda: composed_piece(whole, sub, delimiters.first + 1), self.args.repeats
        )
        again, *compiled = timed(
            lambda: recompiled(self.lang, self.model, names, self.settings, log_prob, even), 1
        )
        other, outputs = graph_of(self.lang, *again, True), self.outputs[1]
        ours, theirs = search(graph, outputs)[0], search(other, outputs)[0]
        same = [
            one.words == two.words and abs(one.lm_score - two.lm_score) < 1e-2
            for one, two in zip(ours, theirs)
        ]
        silent = [((*words[:at], *words[at + 2 :]), 0) for words, at in self.test]
        unsaid = list(simulated(self.lang, silent, gain=self.args.gain, batch=20))
        frames = sum(int(lengths.sum()) for _, lengths in outputs)
        searches = {
            f"{of}, {said}": (searched, part)
            for said, part in (("names said", outputs), ("none said", unsaid))
            for of, searched in (("without names", self.plain()), ("with names", graph))
        }
        spent = dict.fromkeys(searches, np.inf)
        for _ in range(self.args.repeats):
            for name, given in searches.items():
                spent[name] = min(spent[name], search(*given)[1])
        sizes = {"plain": self.contacts.opened.HLG.num_arcs, "named": int(graph.HLG.num_arcs)}
        return {
            "distinct_words": len(words), "pronounced_s": pronounced, "spliced_s": spliced,
            "compiled_s": compiled, "base_compiled_s": self.compiled, "arcs": sizes,
            "piece_s": as_trees, "composed_piece_s": by_composing,
            "piece_arcs": [piece.num_arcs, composed.num_arcs],
            "same_best_paths": [sum(same), len(same)], "frames": frames,
            "search_processor_s": {name: round(value, 3) for name, value in spent.items()},
        }  # fmt: skip

    def accuracy(self) -> list[dict[str, Any]]:
        """Recall and WER of test, each system at its best setting on dev."""
        rows = [self._row("no names", 0, [(0.0, self.plain)])]
        for others in OTHERS:
            names = listed(self.names[: OF_USER + others])
            spliced = [(x, self._spliced(names, x)) for x in LOG_PROBS]
            context = [(x, self._context(names, x)) for x in BONUSES]
            rows.append(self._row("spliced", others, spliced))
            rows.append(self._row("context graph", others, context))
        return rows

    def _spliced(self, names: Hotwords, log_prob: float) -> Callable[[], Graph]:
        return lambda: self.contacts.graph(names, log_prob=log_prob)

    def _context(self, names: Hotwords, bonus: float) -> Callable[[], Graph]:
        def make() -> Graph:
            settings = dataclasses.replace(self.settings, hotword_bonus=bonus)
            given = (self.lang, self.model, settings, names)
            whole, graphs, _ = compile_hotword_graph(*given, **self.place)
            return graph_of(self.lang, graphs.HLG, whole.words, False)

        return make

    def _row(
        self, system: str, others: int, makers: Sequence[tuple[float, Callable[[], Graph]]]
    ) -> dict[str, Any]:
        grid = {}
        best = (np.inf, 0.0, None)
        for setting, make in makers:
            graph = make()
            dev = count(self.dev, search(graph, self.outputs[0])[0])
            grid[setting] = [round(dev.recall, 1), round(dev.wer, 2), dev.all_errors]
            if dev.all_errors < best[0]:
                best = (dev.all_errors, setting, graph)
        test = count(self.test, search(best[2], self.outputs[1])[0])
        return {
            "system": system, "others": others, "setting": best[1], "recall": test.recall,
            "wer_of_others": round(test.wer, 3), "found": [test.found, test.names],
            "errors": [test.errors, test.words], "dev": grid,
        }  # fmt: skip


def speed_rows(args: Any, units: str, speed: dict[str, Any]) -> list[Row]:
    """Rows of :meth:`Run.speed`, which are printed as well."""
    same, all_of_them = speed["same_best_paths"]
    if same != all_of_them:
        raise SystemExit(
            f"{units}: the best paths of {all_of_them - same} sentences differ: no row"
        )
    print(json.dumps({"units": units, **speed}), flush=True)
    pairs = (
        (f"{args.names} names into a graph of {args.ngrams} n-grams", "spliced_s", "compiled_s",
         "compiling the graph again"),
        (f"{args.names} names as a piece of a class graph", "piece_s", "composed_piece_s",
         "composed with the lexicon, determinized"),
    )  # fmt: skip
    rows = [
        Row(f"{what}, {units}", speed[ours][1], speed[theirs][1], "processor s", peer, "less")
        for what, ours, theirs, peer in pairs
    ]
    spent = speed["search_processor_s"]
    for said in ("names said", "none said"):
        what = f"search with {args.names} names, {units}, {said}"
        pair = spent[f"with names, {said}"], spent[f"without names, {said}"]
        rows.append(Row(what, *pair, "processor s", "without names", "less"))
    return rows


def accuracy_rows(units: str, found: Sequence[dict[str, Any]]) -> list[Row]:
    """Rows of :meth:`Run.accuracy`, which are printed as well."""
    for row in found:
        print(json.dumps({"units": units, **row}), flush=True)
    rows = []
    for one, two in zip(found[1::2], found[2::2]):
        beside = f"beside {one['others']} others, {units}"
        for what, key, better in (
            ("recall of a user's names", "recall", "more"),
            ("WER of all other words", "wer_of_others", "less"),
        ):
            if one[key] > 0 and two[key] > 0:  # without an error there is no ratio
                pair = one[key], two[key]
                rows.append(Row(f"{what} {beside}", *pair, "%", "a context graph", better))
    return rows


def main() -> None:
    """Measure and print JSON."""
    sizes = {"names": 20000, "words": 5000, "lines": 40000, "ngrams": 100000}
    parser = flags(__doc__, **sizes, sentences=50, repeats=2)
    parser.add_argument("--units", nargs="+", default=["phone", "char", "bpe_500"])
    parser.add_argument("--in-text", type=Path, default=BOOKS)
    parser.add_argument("--gain", type=float, default=6.0, help="of the right output over noise")
    for name in ("speed", "accuracy"):
        parser.add_argument(f"--{name}", choices=("true", "false"), default="true")
    args = parser.parse_args()
    parts = ("speed", "accuracy")
    if not (wanted := [name for name in parts if getattr(args, name) == "true"]):
        parser.error("--speed or --accuracy must be true")
    for units in args.units:
        with tempfile.TemporaryDirectory() as folder:
            run = Run(args, units, Path(folder))
            speed = run.speed() if "speed" in wanted else {}
            rows = run.accuracy() if "accuracy" in wanted else []
        made = [*(speed_rows(args, units, speed) if speed else ()), *accuracy_rows(units, rows)]
        append_rows(args.out_rows, made)


if __name__ == "__main__":
    main()

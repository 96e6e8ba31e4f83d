"""A class graph: compiled, and with other names in one class; both by arrays and as k2 does it.

    . ./path.sh; python benchmarks/class_graph.py --in-lang data/lang_phone_names \\
        --in-lm exp/classlm_text/sanitized/lm/M2 --in-names contacts/

``--in-lang`` and ``--in-lm`` as recipe classlm makes them, ``--in-names`` lists for
``replace_names``. Processor seconds (user and system, children included) and GB, whole verbs with
reading and writing. Then, in one process, epsilon removal and composition of the same LG by arrays
and by k2, a few times in turn, and the best paths of sentences of random words in both graphs,
which must agree, or nothing is printed.
"""

from __future__ import annotations

import json
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.measuring import of_verb, timed
from benchmarks.rows import Row, append_rows, flags, library
from privasr_k2.graph.class_pieces import joined, read_pieces
from privasr_k2.graph.ctc_compose import compose_ctc
from privasr_k2.graph.epsilons import WordArcs, remove_epsilons
from privasr_k2.graph.lang import Lang, load_lang
from privasr_k2.graph.openfst import Fst
from privasr_k2.graph.tlg import silenced
from privasr_k2.randomness import stream

if TYPE_CHECKING:
    import k2

CONF = Path(__file__).resolve().parents[1] / "conf"
SENTENCES = 20


def verb(name: str, *flags: object) -> dict[str, float]:
    """Processor seconds of a verb, and its greatest memory."""
    taken = of_verb(name, *flags)
    return {"processor_s": round(taken.processor, 4), "memory_gib": round(taken.peak / 1024, 2)}


def by_k2(LG: Fst, num_tokens: int, topology: str) -> k2.Fsa:
    """HLG with k2's own removal and composition."""
    import k2
    import torch

    ending = np.flatnonzero(np.isfinite(LG.finals))
    ends = np.full(len(ending), -1)
    number = np.arange(LG.num_states + 1)
    number[[0, LG.start]] = number[[LG.start, 0]]
    sources = number[np.concatenate([LG.sources, ending])]
    targets = number[np.concatenate([LG.targets, np.full(len(ending), LG.num_states)])]
    scores = -np.concatenate([LG.costs, LG.finals[ending]]).astype(np.float32)
    columns = [sources, targets, np.concatenate([LG.ilabels, ends]), scores.view(np.int32)]
    order = np.argsort(sources, kind="stable")
    arcs = np.stack([column[order].astype(np.int32) for column in columns], axis=1)
    words = np.concatenate([LG.olabels, ends])[order].astype(np.int32)
    fsa = k2.Fsa(torch.from_numpy(arcs), aux_labels=torch.from_numpy(words))
    fsa = k2.connect(k2.remove_epsilon(fsa))
    if isinstance(fsa.aux_labels, k2.RaggedTensor):
        fsa.aux_labels = fsa.aux_labels.remove_values_eq(0)
    H = k2.ctc_topo(num_tokens - 1, modified=topology == "modified")
    return k2.arc_sort(k2.connect(k2.compose(H, k2.arc_sort(fsa))))


def by_arrays(LG: Fst, num_tokens: int, topology: str) -> WordArcs:
    """The same by arrays."""
    return compose_ctc(remove_epsilons(LG), num_tokens, topology)


def best_scores(graph: k2.Fsa, lang: Lang) -> np.ndarray:
    """Of the best path of sentences of random words, whose tokens are certain."""
    import k2
    import torch

    generator, words = stream(1, "sentences"), [word for word, _ in lang.pronunciations]
    found = []
    for _ in range(SENTENCES):
        chosen = [words[n] for n in generator.integers(0, len(words), size=6)]
        tokens = [token for word in chosen for token in lang.encode(word)]
        scores = torch.full((1, 2 * len(tokens) + 1, lang.num_tokens), -1e4)
        scores[0, ::2, 0] = 0.0
        scores[0, 1 + 2 * torch.arange(len(tokens)), torch.tensor(tokens)] = 0.0
        segment = torch.tensor([[0, 0, scores.shape[1]]], dtype=torch.int32)
        given = (k2.create_fsa_vec([graph]), k2.DenseFsaVec(scores, segment))
        lattice = k2.intersect_dense_pruned(*given, 1e3, 1e3, 1, 1_000_000)
        found.append(float(lattice.get_tot_scores(use_double_scores=True, log_semiring=False)))
    return np.array(found)


def main() -> None:
    """Measure and print JSON."""
    parser = flags(__doc__)
    parser.add_argument("--in-lang", type=Path, required=True)
    parser.add_argument("--in-lm", type=Path, required=True, help="a class LM")
    parser.add_argument("--in-names", type=Path, required=True, help="lists: per.txt, ...")
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    lang = load_lang(args.in_lang)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        graph, lang_flag = folder / "graph", ("--in-lang", args.in_lang)
        given = (*lang_flag, "--in-lm", args.in_lm, "--config", CONF / "common.yaml#graph")
        compiling = verb("compile_graph", *given, "--out-dir", graph)
        given = (*lang_flag, "--in-graph", graph, "--in-names", args.in_names)
        given += ("--config", CONF / "classlm.yaml#replace_names", "--out-dir")
        others = [folder / f"other{n}" for n in range(args.repeats)]
        replacing = [verb("replace_names", *given, other) for other in others]
        pieces, info = read_pieces(folder / "other0")
    LG = silenced(joined(pieces), num_tokens=lang.num_tokens, backoff_word=len(lang.words) - 1)
    seconds: dict[str, list[float]] = {"arrays": [], "k2": []}
    given = LG, lang.num_tokens, info["ctc_topology"]
    for _ in range(args.repeats):
        spent, ours = timed(partial(by_arrays, *given), time.process_time)
        seconds["arrays"].append(round(spent, 4))
        spent, theirs = timed(partial(by_k2, *given), time.process_time)
        seconds["k2"].append(round(spent, 4))
    import k2
    import torch

    columns = np.stack(
        [ours.sources, ours.targets, ours.labels, ours.scores.view(np.int32)], axis=1
    )
    scores = [best_scores(graph, lang) for graph in (k2.Fsa(torch.from_numpy(columns)), theirs)]
    assert np.isfinite(scores[0]).all() and np.abs(scores[0] - scores[1]).max() < 1e-2
    print(json.dumps({
        "ngrams": info["num_ngrams"], "compile_graph": compiling, "replace_names": replacing,
        "processor_s": seconds, "arcs": {"arrays": ours.num_arcs, "k2": theirs.num_arcs},
        "states": {"arrays": ours.num_states, "k2": theirs.shape[0]},
        "largest_difference": float(np.abs(scores[0] - scores[1]).max()),
    }, indent=2))  # fmt: skip
    what = f"class graph of {sum(info['num_ngrams'])} n-grams: "
    least = {name: min(spent) for name, spent in seconds.items()}
    replaced = min(spent["processor_s"] for spent in replacing)
    unit, whole = "processor s", compiling["processor_s"]
    removed, other = f"{what}epsilons removed, composed with H", f"{what}other names in a class"
    peer = "compiling the whole graph again"
    rows = [
        Row(removed, least["arrays"], least["k2"], unit, library("k2"), "less"),
        Row(other, replaced, whole, unit, peer, "less"),
    ]
    append_rows(args.out_rows, rows)


if __name__ == "__main__":
    main()

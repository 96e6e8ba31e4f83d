"""The first pass with ``kaldi_decoder.FasterDecoder`` in TLG, as a cross-check of k2's.

It gives best paths only, so that each point of a grid is a search in a graph of arc costs
``lm_weight * cost + insertion_penalty * (the arc has a word)``. Words are replaced by arc
numbers, from which words and both scores follow in double precision.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from privasr_k2.decoding.first_pass import Decoder, FirstPass, SearchConfig
from privasr_k2.decoding.hyps import Hyp
from privasr_k2.errors import ConfigError
from privasr_k2.graph.tlg import TokenGraph, load_tlg

if TYPE_CHECKING:
    import torch


def open_decoder(
    folder: str | Path, config: SearchConfig, *, device: str = "cpu"
) -> FirstPass[Any]:
    """The back end that ``config`` names, for the graph in ``folder``; Kaldi's runs on the CPU."""
    if config.backend == "kaldi":
        return KaldiDecoder(load_tlg(folder), config)
    return Decoder.from_folder(folder, config, device=device)


class KaldiDecoder(FirstPass[TokenGraph]):
    """Searches a TLG with ``FasterDecoder``, utterance by utterance.

    Beams and active states are as for k2, in units of the point's weights; ``output_beam`` and
    ``search_lm_weight`` are not used.

    Raises:
        ConfigError: kaldi_decoder is not installed.
    """

    def __init__(self, graph: TokenGraph, config: SearchConfig) -> None:
        super().__init__(graph, config)
        try:
            import kaldi_decoder
        except ImportError as error:
            way_out = "install kaldi-decoder, or set backend=k2"
            raise ConfigError("backend=kaldi", "kaldi_decoder", str(error), way_out) from error
        self._options = kaldi_decoder.FasterDecoderOptions(
            beam=config.search_beam,
            max_active=config.max_active_states,
            min_active=config.min_active_states,
        )
        olabels = graph.TLG.olabels
        self._spoken = (olabels > 0) & (olabels < graph.delimiters.first)
        numbers = np.arange(1, graph.TLG.num_arcs + 1, dtype=np.int32)
        self._numbered = dataclasses.replace(graph.TLG, olabels=numbers)
        self._ready: tuple[tuple[float, float], Any, Any] | None = None

    def decode(
        self, log_probs: torch.Tensor, lengths: torch.Tensor
    ) -> list[tuple[Hyp, ...] | None]:
        """As :meth:`FirstPass.decode`; an utterance without a path at any one point has none."""
        self.check_log_probs(log_probs)
        scores = log_probs.detach().float().cpu().numpy()
        results: list[list[Hyp]] = [[] for _ in lengths]
        points = [(w, p) for w in self.config.lm_weights for p in self.config.insertion_penalties]
        for point in points:
            search = self._search(point)
            for row, frames in enumerate(lengths.tolist()):
                hyp = self._best(search, scores[row, :frames], point) if frames else None
                results[row] += [hyp] if hyp is not None else []
        return [tuple(hyps) if len(hyps) == len(points) else None for hyps in results]

    def _search(self, point: tuple[float, float]) -> Any:
        """The search at a point; the last one is cached, because after tuning there is only one."""
        import kaldi_decoder

        if self._ready is None or self._ready[0] != point:
            self._ready = None  # before the next graph is made: one at a time in memory
            (lm_weight, insertion_penalty), TLG = point, self.graph.TLG
            ends = np.isfinite(TLG.finals)
            costs = lm_weight * TLG.costs + insertion_penalty * self._spoken
            finals = np.where(ends, lm_weight * np.where(ends, TLG.finals, 0), np.inf)
            costs, finals = costs.astype(np.float32), finals.astype(np.float32)
            weighted = dataclasses.replace(self._numbered, costs=costs, finals=finals)
            fst = weighted.to_kaldifst()
            # Kept beside its search, which only points to it.
            self._ready = point, fst, kaldi_decoder.FasterDecoder(fst, self._options)
        return self._ready[2]

    def _best(self, search: Any, scores: np.ndarray, point: tuple[float, float]) -> Hyp | None:
        """The best path of (T, C) log-probabilities; ``None`` where none reaches a final state."""
        import kaldi_decoder
        import kaldifst

        search.decode(kaldi_decoder.DecodableCtc(np.ascontiguousarray(scores)))
        # get_best_path would take a path that stops inside a word.
        if not search.reached_final():
            return None
        _, best = search.get_best_path()
        _, _, numbers, _ = kaldifst.get_linear_symbol_sequence(best)
        TLG, arcs = self.graph.TLG, np.array(numbers, dtype=np.int64) - 1
        labels, symbols = TLG.ilabels[arcs], TLG.olabels[arcs]
        am_score = scores[np.arange(len(scores)), labels[labels > 0] - 1].sum(dtype=np.float64)
        lm_cost = TLG.costs[arcs].sum(dtype=np.float64) + float(TLG.finals[TLG.targets[arcs[-1]]])
        words, classes = self.graph.delimiters.split(symbols[symbols > 0].tolist())
        text = " ".join(self.graph.words[word] for word in words)
        return Hyp(*point, text, float(am_score), -float(lm_cost), classes)

"""Transition models as Kaldi's final.mdl holds them, and graphs of transition ids."""

from __future__ import annotations

import struct
from collections.abc import Sequence

#: (phone, HMM state, pdf, pdf of self-loops) of a chain model with two phones.
TUPLES = ((1, 0, 0, 1), (2, 0, 2, 3))
#: Of its one topology: a self-loop and an arc to the end.
TARGETS = (0, 1)
#: The pdf of each transition id, from 1.
PDFS = [-1, 1, 0, 3, 2]


def _number(value: int) -> bytes:
    return struct.pack("<bi", 4, value)


def _vector(values: Sequence[int]) -> bytes:
    return struct.pack(f"<bi{len(values)}i", 4, len(values), *values)


def chain_model() -> bytes:
    """In the binary form, with a network behind it that nobody reads."""
    arcs = b"".join(_number(to) + struct.pack("<bf", 4, 0.5) for to in TARGETS)
    entry = _number(2) + _number(0) + _number(1) + _number(2) + arcs
    entry += _number(-1) + _number(-1) + _number(0)
    topology = _vector([1, 2]) + _vector([-1, 0, 0]) + _number(-1) + _number(1) + entry
    tuples = _number(len(TUPLES)) + b"".join(map(_number, sum(TUPLES, ())))
    return b"".join((
        b"\0B<TransitionModel> <Topology> ", topology, b"</Topology> <Tuples> ", tuples,
        b"</Tuples> <LogProbs> FV ", _number(5), bytes(20), b"</LogProbs> </TransitionModel> ",
        b"<Nnet3>",
    ))  # fmt: skip


#: A model whose self-loops have no pdf of their own, as text: two phones, of one and two states.
HMM_TEXT = """<TransitionModel>
<Topology>
<TopologyEntry>
<ForPhones>
1
</ForPhones>
<State> 0 <PdfClass> 0 <Transition> 0 0.5 <Transition> 1 0.5 </State>
<State> 1 </State>
</TopologyEntry>
<TopologyEntry>
<ForPhones>
2 3
</ForPhones>
<State> 0 <PdfClass> 0 <Transition> 0 0.5 <Transition> 1 0.4 <Transition> 2 0.1 </State>
<State> 1 <PdfClass> 1 <Transition> 2 1 </State>
<State> 2 </State>
</TopologyEntry>
</Topology>
<Triples> 3
1 0 2
2 0 0
2 1 1
</Triples>
<LogProbs>
 [ 0 -0.7 -0.7 -0.7 -0.9 -2.3 0 ]
</LogProbs>
</TransitionModel>
"""
HMM_PDFS = [-1, 2, 2, 0, 0, 0, 1]

#: HCLG of TUPLES in OpenFst's text: "A" is phone 1, "B" is phone 2; transition ids 2 and 4 enter.
HCLG = """0 1 2 1 0.5
0 2 4 2 0.9
1 1 1 0 0.1
2 2 3 0 0.2
1 0 0 0 0.3
2 0 0 0 0.4
1 0.25
2 0.35
"""

"""A training step of each encoder beside slower twins: python benchmarks/am_train.py.

Prints seconds of speech trained in a second, and the memory that the first step adds to a process.
The TDNN's twin is matrix products over (N, T, D); the BLSTM's is torch's bidirectional LSTM over
packed sequences.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from benchmarks.measuring import best_seconds, measured
from benchmarks.rows import Row, append_rows, flags
from privasr_k2.am.ctc import CtcModel, CtcSpec
from privasr_k2.am.encoders import EncoderConfig
from privasr_k2.am.encoders.blstm import BlstmConfig, BlstmLayer
from privasr_k2.am.encoders.conformer import ConformerConfig
from privasr_k2.am.encoders.tdnn import TdnnConfig
from privasr_k2.am.losses import ctc_loss

FEATURES, TOKENS, LABELS = 80, 40, 40
CONFIG = dict(
    tdnn=TdnnConfig(
        dim=320, kernel=5, dilations=[1, 1, 2, 2, 3, 3, 4, 4], subsampling=3, dropout=0.1
    ),
    blstm=BlstmConfig(dim=320, layers=3, subsampling=3, dropout=0.1, chunk=0, right_context=0),
    conformer=ConformerConfig(
        dim=144, layers=6, heads=4, feedforward=576, kernel=15, subsampling=3, dropout=0.1
    ),
)


class PlainConv(nn.Module):
    """A convolution over time as one matrix product: (N, D, T) -> (N, D', T)."""

    def __init__(self, conv: nn.Conv1d) -> None:
        super().__init__()
        self.conv = conv

    def forward(self, x: Tensor) -> Tensor:
        (kernel,), (step,), (pad,) = self.conv.kernel_size, self.conv.dilation, self.conv.padding
        x = nn.functional.pad(x, (pad, pad)).transpose(1, 2)
        frames = x.size(1) - step * (kernel - 1)
        seen = torch.cat([x[:, step * k : step * k + frames] for k in range(kernel)], dim=2)
        weight = self.conv.weight.permute(2, 1, 0).flatten(0, 1)
        return (seen @ weight + self.conv.bias).transpose(1, 2)


class PackedLayer(nn.Module):
    """torch's own bidirectional layer in the place of ours."""

    def __init__(self, ours: BlstmLayer) -> None:
        super().__init__()
        self.lstm = nn.LSTM(ours.ahead.input_size, ours.ahead.hidden_size, bidirectional=True)
        for name, value in ours.ahead.named_parameters():
            getattr(self.lstm, name).data.copy_(value)
            getattr(self.lstm, f"{name}_reverse").data.copy_(getattr(ours.back, name))

    def forward(
        self, x: Tensor, lengths: Tensor, state: object, main: int
    ) -> tuple[Tensor, object]:
        x = x.permute(2, 0, 1)
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, enforce_sorted=False)
        y, _ = nn.utils.rnn.pad_packed_sequence(self.lstm(packed)[0])
        return y.permute(1, 2, 0), state


def make_model(kind: str) -> CtcModel:
    """A model of known random weights, without dropout."""
    torch.manual_seed(1)
    encoder = EncoderConfig(kind, CONFIG[kind])
    return CtcModel(CtcSpec("ctc", FEATURES, TOKENS, True, encoder)).eval()


def with_twin(model: CtcModel) -> CtcModel:
    """Replace what the twin does another way."""
    for block in getattr(model.encoder, "blocks", []):
        block.conv, block.out = PlainConv(block.conv), PlainConv(block.out)
    if hasattr(model.encoder, "layers"):
        model.encoder.layers = nn.ModuleList(PackedLayer(layer) for layer in model.encoder.layers)
    return model


def step(model: CtcModel, features: Tensor, lengths: Tensor, targets: Tensor) -> float:
    """Forward and backward; the loss."""
    model.zero_grad(set_to_none=True)
    log_probs, out_lengths = model(features, lengths)
    target_lengths = torch.full((len(lengths),), targets.size(1))
    loss = ctc_loss(log_probs, out_lengths, targets, target_lengths).mean()
    loss.backward()
    return float(loss)


def steps_of(kind: str, twin: bool, utterances: int, frames: int) -> Callable[[], float]:
    """A step of a model, or of its twin, on speech of noise; each call is one."""
    generator = torch.Generator().manual_seed(1)
    lengths = torch.linspace(frames, 0.8 * frames, utterances).long()
    features = torch.randn(utterances, frames, FEATURES, generator=generator)
    targets = torch.randint(1, TOKENS, (utterances, LABELS), generator=generator)
    model = with_twin(make_model(kind)) if twin else make_model(kind)
    return lambda: step(model, features, lengths, targets)


def main() -> None:
    """Print speeds, memory and ratios."""
    args = flags(__doc__, utterances=12, frames=500, repeats=5).parse_args()
    num, frames, repeats = args.utterances, args.frames, args.repeats
    speech = num * frames / 100
    twins = {"tdnn": "matrix products", "blstm": "packed sequences", "conformer": None}
    for kind, twin in twins.items():
        ours = steps_of(kind, False, num, frames)
        loss = ours()
        seconds = best_seconds(ours, repeats)
        grown = measured(steps_of, kind, False, num, frames).grown
        told = f"{kind}: {speech / seconds:.0f} s of speech a second, {grown:.0f} MiB"
        if twin is not None:
            other = steps_of(kind, True, num, frames)
            if abs(other() - loss) > 1e-3 * loss:
                raise SystemExit(f"{kind} and its twin do not agree")
            slow = best_seconds(other, repeats)
            grown = measured(steps_of, kind, True, num, frames).grown
            told += f"; as {twin} {speech / slow:.0f}, {grown:.0f} MiB, ratio {slow / seconds:.1f}"
            what = f"training step, {kind}, {num} utterances of {frames / 100:g} s"
            figures = (speech / seconds, speech / slow, "s of speech/s")
            against = f"the same by {twin}, torch {torch.__version__}"
            append_rows(args.out_rows, [Row(what, *figures, against, "more")])
        print(told, flush=True)


if __name__ == "__main__":
    main()

"""Export an acoustic model as TorchScript, ONNX or both, for use without this package.

The exported model takes (features (N, T, F) float32, lengths (N,) int64) and gives (log_probs (N, T', C),
lengths (N,)).
"""

from __future__ import annotations

from pathlib import Path

from privasr_k2.bin import cli
from privasr_k2.errors import ConfigError


def main() -> None:
    """Parse, load and export."""
    made = cli.parser(__doc__)
    made.add_argument("--in-model", type=Path, required=True, help="the model's folder")
    made.add_argument("--out-torchscript", type=Path, help="for example model.pt")
    made.add_argument("--out-onnx", type=Path, help="for example model.onnx")
    args = cli.parse(made)
    if args.out_torchscript is None and args.out_onnx is None:
        raise ConfigError(
            "export", "--out-torchscript FILE, --out-onnx FILE or both", "neither", "say what to write"
        )

    from privasr_k2.am.checkpoints import load_model
    from privasr_k2.am.exporting import to_onnx, to_torchscript

    model = load_model(args.in_model)
    if args.out_torchscript is not None:
        to_torchscript(model, args.out_torchscript)
    if args.out_onnx is not None:
        to_onnx(model, args.out_onnx)


if __name__ == "__main__":
    cli.run(main)

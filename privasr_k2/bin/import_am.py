"""Bring an acoustic model that was trained elsewhere (icefall) and exported as TorchScript or ONNX CTC.

The model takes (features (N, T, F), lengths (N,)) and gives (log_probs (N, T', C), lengths (N,)); its
features must be those of compute_features. A TorchScript file is a program that will be run: bring only what
you trust.
"""

from __future__ import annotations

import logging
from pathlib import Path

from privasr_k2.bin import cli


def main() -> None:
    """Parse, check and copy."""
    made = cli.parser(__doc__)
    made.add_argument("--raw-model", type=Path, required=True, help="model.pt (TorchScript) or model.onnx")
    made.add_argument("--raw-tokens", type=Path, required=True, help="its tokens.txt")
    made.add_argument("--out-dir", type=Path, required=True, help="the model's folder")
    args = cli.parse(made)

    from privasr_k2.am.foreign import bring

    spec = bring(args.raw_model, args.raw_tokens, args.out_dir)
    logging.getLogger(__name__).info("%s", spec)


if __name__ == "__main__":
    cli.run(main)

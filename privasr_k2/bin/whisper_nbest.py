r"""Make N-best lists of a role by Whisper's own decoder, or one job's share of it.

    privasr verb whisper_nbest --in-encoder models/base \
        --in-cuts data/manifests/cuts_dev.jsonl.gz --out-nbest exp/x/nbest_dev/1.jsonl \
        --out-about exp/x/nbest_dev/1.yaml --out-hyps exp/x/decode_dev/1.jsonl \
        --config conf/common.yaml#whisper_nbest --set job=1 num_jobs=2

The model is a folder of CTranslate2's format, as privasr encoder get writes it.
Audio is of 16 kHz. A hypothesis is the words of what was written, by the normalization that
normalize names. am_score is the natural logarithm of its probability; there are no LM scores.
Confidences are posteriors of words within the list.
--out-hyps are the best hypotheses; --out-about tells the model's name and SHA-256, and how the
lists were made.
"""

from __future__ import annotations

from privasr_k2 import config
from privasr_k2.bin import cli
from privasr_k2.fileio import write_jsonl
from privasr_k2.scoring.nbest_lists import write_nbest


def main() -> None:
    """Parse, recognize, write."""
    args = cli.arguments(
        __doc__,
        device=True,
        in_encoder="DIR a Whisper model for CTranslate2",
        in_cuts="FILE cuts_<role>.jsonl.gz with audio",
        out_nbest="FILE the lists, JSON Lines",
        out_hyps="[FILE] the best hypotheses, as decode writes them",
        out_about="[FILE] how they were made, YAML",
    )
    from privasr_k2.confidence.nbest_posteriors import with_posteriors
    from privasr_k2.data.manifests import load_cuts, role_of
    from privasr_k2.decoding.whisper import WhisperConfig, whisper_cuts
    from privasr_k2.decoding.whisper_model import about_whisper, open_whisper
    from privasr_k2.training.distributed import choose_device

    options = cli.load(WhisperConfig, args)
    role = role_of(args.in_cuts, "give the cuts of one role")
    cuts, device = load_cuts(args.in_cuts.parent, role), str(choose_device(args.device))
    model = open_whisper(args.in_encoder, options, device=device, threads=args.num_jobs)
    lists = list(whisper_cuts(model, cuts, options))
    scale = options.posterior_scale
    write_nbest(args.out_nbest, (with_posteriors(nbest, scale) for nbest, _ in lists))
    if args.out_hyps is not None:
        write_jsonl(args.out_hyps, (record.to_dict() for _, record in lists))
    if args.out_about is not None:
        config.save(about_whisper(model, options), args.out_about)


if __name__ == "__main__":
    cli.run(main)

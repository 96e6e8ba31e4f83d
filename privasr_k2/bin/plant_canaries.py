r"""Plant canaries in the private speech of a recognizer, to see later what it remembers.

    privasr verb plant_canaries --in-feats data/sides_fbank/private \
        --in-lang data/lang_char_public --out-dir data/canaries_fbank \
        --config conf/redteam.yaml#plant_canaries

Each canary is a synthetic speaker who says one sentence of random words of --in-lang, sped up. The
sentence is one of several candidates, drawn uniformly. --out-dir is a features folder: its train
has the speakers of --in-feats and the canaries, the role candidates everything that could have been
planted. canaries.json tells what was. Models of such data are for audits, not for release.
"""

from __future__ import annotations

from privasr_k2.bin import cli


def main() -> None:
    """Parse, draw, speak, write."""
    args = cli.arguments(
        __doc__,
        in_feats="DIR private speech, roles train and dev",
        in_lang="DIR public words",
        out_dir="DIR features with canaries",
    )
    from privasr_k2.attack.speech_canaries import SpeechCanaryConfig, plant_canaries
    from privasr_k2.graph.lang import load_lang

    config = cli.load(SpeechCanaryConfig, args)
    lang = load_lang(args.in_lang)
    plant_canaries(args.in_feats, lang, config, args.out_dir, num_jobs=args.num_jobs)


if __name__ == "__main__":
    cli.run(main)

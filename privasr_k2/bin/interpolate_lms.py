r"""Interpolate language models linearly, with weights that EM chooses on dev text.

    privasr verb interpolate_lms --in-lm exp/word.arpa.gz exp/class_lm --in-dev data/dev.txt \
        --out-lm exp/mixed_class_lm --out-weights exp/mixed.json \
        --config conf/classlm.yaml#interpolate

form=dynamic mixes any models word by word (eq. 3 of turan2022). --out-lm is then a *.json file with
their paths, which perplexity and lm_scores read. form=static merges ARPA files into one. With a
class LM, its root model is merged, and --out-lm is a class LM's folder with its names. Such a model
differs from eq. 3, since words and tags do not share histories.

--out-weights holds the weights and two perplexities of --in-dev: dev_ppl of the written model, and
dev_ppl_exact of the exact mixture. Words that a model lacks count in neither.
"""

from __future__ import annotations

import logging

from privasr_k2.bin import cli
from privasr_k2.errors import ConfigError
from privasr_k2.fileio import write_json
from privasr_k2.lm.arpa import write_arpa
from privasr_k2.lm.class_files import save_class_lm
from privasr_k2.lm.classes import ClassLm
from privasr_k2.lm.interpolate import DevText, InterpolationConfig, em_weights
from privasr_k2.lm.mixtures import interpolate_files, open_lm, save_mixture
from privasr_k2.lm.names import read_text

log = logging.getLogger(__name__)


def main() -> None:
    """Parse, choose weights, mix, write, measure."""
    args = cli.arguments(
        __doc__,
        device=True,
        in_lm="LM... ARPA files, folders of models",
        in_dev="[FILE]|--in-public-dev-text text that the weights are chosen by",
        out_lm="LM the mixture",
        out_weights="FILE the weights, JSON",
    )
    config = cli.load(InterpolationConfig, args)
    is_dynamic = config.form == "dynamic"
    if is_dynamic != (args.out_lm.suffix == ".json"):  # by which it is opened
        expected = f"a name {'' if is_dynamic else 'not '}ending in .json with form={config.form}"
        raise ConfigError("--out-lm", expected, str(args.out_lm), "change the name, or the form")
    weights, dev = config.fixed_weights(len(args.in_lm)), None
    if args.in_dev is not None:
        sentences = [list(text.words) for text in read_text(args.in_dev)]
        dev = DevText([open_lm(path, args.device) for path in args.in_lm], sentences)
    if weights is None:
        if dev is None:
            expected = "text to choose weights by"
            raise ConfigError("--in-dev", expected, "none", "give it, or --set weights=")
        steps = {"max_steps": config.max_steps, "tolerance": config.tolerance}
        weights, _ = em_weights(dev.log_probs, **steps)
    weights = weights / weights.sum()
    if is_dynamic:
        save_mixture(args.out_lm, args.in_lm, weights.tolist())
    else:
        mixed = interpolate_files(args.in_lm, weights.tolist())
        if isinstance(mixed, ClassLm):
            save_class_lm(args.out_lm, mixed)
        else:
            write_arpa(mixed, args.out_lm)
    ppl, exact = None, None
    if dev is not None:
        exact = dev.exact_ppl(weights)
        ppl = exact if is_dynamic else dev.ppl(open_lm(args.out_lm, args.device))
        shown = " ".join(f"{weight:.4f}" for weight in weights)
        log.info("weights %s: perplexity of dev %.2f, mixed exactly %.2f", shown, ppl, exact)
    shares = zip(args.in_lm, weights.tolist())
    models = [{"lm": str(path), "weight": weight} for path, weight in shares]
    about = {"form": config.form, "chosen_by": config.weights}
    about |= {"dev_ppl": ppl, "dev_ppl_exact": exact}
    write_json(args.out_weights, {**about, "lms": models})


if __name__ == "__main__":
    cli.run(main)

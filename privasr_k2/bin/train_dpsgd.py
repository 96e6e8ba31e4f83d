r"""Train an acoustic model by DP-SGD on private speech, or continue an interrupted training.

    privasr verb train_dpsgd --in-private-feats data/feats_fbank \
        --in-public-dev data/feats_public --in-lang data/lang_char \
        --in-public-init exp/pate/public --out-dir exp/dpsgd/eps8 \
        --out-privacy exp/dpsgd/eps8_privacy.json --ledger privacy/ledger.json \
        --config conf/pate.yaml#dpsgd --set data=an4/train unit=speaker epsilon=8

The training reads role train of --in-private-feats. Role dev of --in-public-dev is only scored. The
model has the form, normalization and tokens of --in-public-init. --in-public-roster lists all
units: a speaker a line, or for unit=utterance an utterance and its speaker. Sums are divided by
their number, so that nobody sees whether a listed unit has data. Without it they are divided by the
number of units in the data, which is then public. Without epsilon and noise there is no guarantee,
and --out-privacy and --ledger are omitted. --out-dir gets what train_am writes, and dpsgd.json.
"""

from __future__ import annotations

import logging
from contextlib import ExitStack
from dataclasses import replace

from privasr_k2.bin import cli
from privasr_k2.errors import ConfigError

log = logging.getLogger(__name__)


def main() -> None:
    """Parse, plan, spend where a guarantee is claimed, train."""
    args = cli.arguments(
        __doc__,
        device=True,
        in_private_feats="DIR features folder",
        in_public_dev="DIR features folder",
        in_public_roster="[FILE] names of all units; public",
        in_lang="DIR language folder",
        in_public_init="DIR|--in-init initial model",
        out_dir="DIR the model's folder",
        out_privacy="[FILE] privacy.json, where there is noise",
        ledger="[FILE] of the speech, where there is noise",
        max_epsilon="[X] refuse to spend beyond it",
    )

    import torch

    from privasr_k2.dpsgd.settings import DpSgdConfig, noise_multiplier, spending
    from privasr_k2.dpsgd.train import fingerprint_of, read_inputs, train_dpsgd
    from privasr_k2.dpsgd.trainer import Trainer
    from privasr_k2.graph.lang import load_lang
    from privasr_k2.privacy.public_inputs import begin_release
    from privasr_k2.privacy.spending import guarantees
    from privasr_k2.training.distributed import choose_device

    torch.set_num_threads(args.num_jobs)
    config = cli.load(DpSgdConfig, args)
    if config.claims != (args.out_privacy is not None) or (config.claims and args.ledger is None):
        wanted = "--out-privacy and --ledger" if config.claims else "no --out-privacy without noise"
        given = f"epsilon={config.epsilon} noise={config.noise}"
        raise ConfigError("the command line", wanted, given, "see --help")
    lang = load_lang(args.in_lang)
    private, dev, init = args.in_private_feats, args.in_public_dev, args.in_public_init
    inputs = read_inputs(private, dev, lang, init, config, args.in_public_roster)
    noise = noise_multiplier(config)
    inputs.model.to(choose_device(args.device))
    trainer = Trainer(inputs.model, inputs.data, config, noise)
    fingerprint = fingerprint_of(inputs, config)
    with ExitStack() as stack:
        begun = None
        if config.claims:
            listed = args.in_public_roster is not None
            spent = spending(config, len(inputs.data.units), noise, listed=listed)
            log.info("plan: noise %.6g by the clip, %d steps", noise, config.steps)
            people = inputs.people
            shown = replace(spent, person_units=people.most_units) if people else spent
            for line in guarantees([shown])[0].lines():
                log.info(line)
            begun = stack.enter_context(begin_release(args, spent, fingerprint, people))
        train_dpsgd(trainer, inputs, args.out_dir, fingerprint, begun)


if __name__ == "__main__":
    cli.run(main)

r"""Adapt a neural language model by federated training on the text of clients [liu2021].

    privasr verb train_fedlm --in-private-clients exp/fedlm/clients.jsonl.gz \
        --in-public-init exp/lm/char_lstm --out-dir exp/fedlm/all \
        --config conf/fedlm.yaml#fedlm --set rounds=50
    privasr verb train_fedlm --in-private-clients exp/fedlm/clients.jsonl.gz \
        --in-public-init exp/lm/char_lstm --out-dir exp/fedlm/private \
        --out-privacy exp/fedlm/private_privacy.json --ledger privacy/ledger.json \
        --config conf/fedlm.yaml#fedlm --set data=mini/adapt weights.by=uniform privacy.clip=0.5 \
        privacy.noise=1.5 cohort=20 rounds=100

Training is private where privacy.noise is above 0; it is then a release, with --out-privacy and
--ledger. The guarantee covers all text of a client; the file of clients says what a client is, and
who stands behind it. --in-public-roster lists all clients, with text or without: sums are divided
by their number, so that nobody sees whether a listed one has text. Without it they are divided by
the number of clients with text, which is then public. With sampling=ordered, clients take part in a
fixed order, and privacy.strategy=square_root correlates the noise of rounds. privacy_plan --batches
N --strategy square_root plans such a training.

trained and lora choose the part of the model that clients train and send; clip and noise are of
that part alone. --out-dir gets the files of train_lm, and federated.json. A training that was
killed is continued. torchrun starts several processes; their number does not change the result.
finetune_lm trains on the server.
"""

from __future__ import annotations

import logging
from contextlib import ExitStack

from privasr_k2.bin import cli
from privasr_k2.errors import ConfigError
from privasr_k2.fileio import read_lines

log = logging.getLogger(__name__)


def main() -> None:
    """Parse, spend where a guarantee is claimed, train."""
    args = cli.arguments(
        __doc__,
        device=True,
        in_private_clients="FILE clients.jsonl.gz",
        in_public_roster="[FILE] names of all clients, a line each; public",
        in_public_init="DIR model to begin with",
        in_public_dev_text="[FILE] a sentence a line: which round is kept",
        in_public_rates="[FILE] learning rates of tune_fedlm",
        out_dir="DIR the model's folder",
        out_privacy="[FILE] privacy.json, where there is noise",
        ledger="[FILE] of the clients, where there is noise",
        max_epsilon="[X] refuse to spend beyond it",
    )

    import torch

    from privasr_k2.data.roster import SPEAKER, read_roster
    from privasr_k2.federated.clients import ClientFile, ListedClients, people_of
    from privasr_k2.federated.fedlm_tuning import read_rates
    from privasr_k2.federated.settings import FedLmConfig, spending
    from privasr_k2.federated.train import load_initial, neutral, paper_epsilon, train_fedlm
    from privasr_k2.federated.weighting import prepare
    from privasr_k2.privacy import release
    from privasr_k2.privacy.public_inputs import begin_release
    from privasr_k2.privacy.spending import guarantees, shown
    from privasr_k2.training.distributed import join

    torch.set_num_threads(args.num_jobs)
    if args.in_public_rates is not None:
        args.set += read_rates(args.in_public_rates)
    config = cli.load(FedLmConfig, args)
    if config.claims != (args.out_privacy is not None) or (config.claims and args.ledger is None):
        wanted = "--out-privacy and --ledger" if config.claims else "no --out-privacy without noise"
        place = "the command line"
        raise ConfigError(place, wanted, f"privacy.noise={config.privacy.noise:g}", "see --help")
    clients: ClientFile | ListedClients = ClientFile(args.in_private_clients)
    roster = [args.in_public_roster] if args.in_public_roster is not None else []
    for path in roster:
        clients = ListedClients(clients, sorted(read_roster(path, SPEAKER)))
    text = read_lines(args.in_public_dev_text) if args.in_public_dev_text is not None else ()
    dev = [line.split() for _, line in text if line.strip()]
    if config.select_round == "best" and not dev:
        way_out = "give it, or --set select_round=last"
        raise ConfigError("--in-public-dev-text", "text to choose a round by", "none", way_out)
    # All that can be wrong with the inputs is found before anything is spent.
    vocabulary = load_initial(args.in_public_init, config)[1]
    count = len(prepare(clients, vocabulary, config.confidences))
    config.sampling_for(count)
    spent = people = None
    if config.claims:
        spent = spending(config, count, next(iter(clients)).unit, listed=bool(roster))
        people = people_of(clients, args.in_private_clients)
    with join(args.device) as process, ExitStack() as stack:
        begun = None
        if spent is not None and process.leads:
            inputs = [args.in_private_clients, *roster, args.in_public_init]
            if config.select_round == "best":
                inputs.append(args.in_public_dev_text)
            fingerprint = release.fingerprint_of(neutral(config), inputs)
            begun = stack.enter_context(begin_release(args, spent, fingerprint, people))
        train_fedlm(clients, dev, args.in_public_init, args.out_dir, config, process, begun)
        if begun is not None:
            of_paper = paper_epsilon(config.privacy.noise, config.privacy.delta)
            for line in guarantees([begun.entry.spending])[0].lines():
                log.info(line)
            plan = "the paper's 10,000 devices, 100 a round, 1,000 rounds"
            pld = "none" if of_paper.pld is None else shown(of_paper.pld)
            log.info("plan: %s: epsilon (RDP) %s, (PLD) %s", plan, shown(of_paper.rdp), pld)


if __name__ == "__main__":
    cli.run(main)

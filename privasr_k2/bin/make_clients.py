r"""Turn recognized utterances into the text of clients: by speaker, or dealt to devices by Zipf's law.

    python -m privasr_k2.bin.make_clients --in-nbest exp/rescore/confidence/model/nbest_adapt \
        --out-clients exp/fedlm/clients.jsonl.gz --out-text exp/fedlm/adapt.txt.gz --config conf/clients.yaml

Reads N-best lists with confidences (apply_confidence); each utterance gives its best hypothesis,
or with text=ref its reference. --out-text has the same utterances, a sentence a line, for train_lm --in-text.
"""

from __future__ import annotations

import logging
from pathlib import Path

from privasr_k2.bin import cli
from privasr_k2.federated.clients import DeviceConfig, clients_of, table, write_clients
from privasr_k2.fileio import write_text
from privasr_k2.scoring.nbest_lists import read_nbest

log = logging.getLogger(__name__)


def main() -> None:
    """Parse, group, write."""
    made = cli.parser(__doc__)
    made.add_argument("--in-nbest", type=Path, nargs="+", required=True, metavar="DIR", help="N-best lists")
    made.add_argument("--out-clients", type=Path, required=True, metavar="FILE", help="clients.jsonl.gz")
    made.add_argument("--out-text", type=Path, metavar="FILE", help="the same text, a sentence a line")
    cli.add_config(made)
    args = cli.parse(made)
    lists = [one for folder in args.in_nbest for one in read_nbest(folder).lists]
    clients = clients_of(lists, cli.load(DeviceConfig, args))
    if args.out_text is not None:
        lines = (" ".join(one.words) for client in clients for one in client.utterances)
        write_text(args.out_text, "".join(f"{line}\n" for line in lines))
    write_clients(args.out_clients, clients)
    log.info(" ".join(f"{name} {value:g}" for name, value in table(clients).items()))


if __name__ == "__main__":
    cli.run(main)

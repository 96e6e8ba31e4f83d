r"""Assign recognized utterances to clients: by speaker, or to devices by Zipf's law.

client=speaker: each speaker is a client. client=zipf: each utterance goes to a random device.
client=devices: each speaker goes to a random device, with all utterances.

    privasr verb make_clients --in-nbest exp/rescore/confidence/model/nbest_adapt \
        --out-clients exp/fedlm/clients.jsonl.gz --out-text exp/fedlm/adapt.txt.gz \
        --config conf/fedlm.yaml#clients

N-best lists need confidences (apply_confidence). Each utterance gives its first hypothesis, or that
which select_nbest chose (--in-hyps), or its reference with text=ref. --in-cuts gives references
where nothing was recognized (text=ref). --out-text has the same utterances, a sentence a line, for
train_lm --in-text.
"""

from __future__ import annotations

import logging
from pathlib import Path

from privasr_k2.bin import cli
from privasr_k2.data.manifests import load_cuts, role_of
from privasr_k2.errors import ConfigError
from privasr_k2.federated.clients import (
    DeviceConfig,
    clients_of,
    selected,
    table,
    write_clients,
)
from privasr_k2.fileio import write_text
from privasr_k2.scoring.hypotheses import read_decoded
from privasr_k2.scoring.nbest_lists import NbestList, read_nbest

log = logging.getLogger(__name__)


def main() -> None:
    """Parse, group, write."""
    parser = cli.parser(__doc__)
    source = parser.add_mutually_exclusive_group(required=True)
    cli.add_flags(source, in_nbest="[DIR+] N-best lists")
    cli.add_flags(source, in_cuts="[FILE] cuts_<role>.jsonl.gz, for text=ref")
    cli.add_flags(
        parser,
        in_hyps="[DIR] decode_<role> of select_nbest, in place of first hypotheses",
        out_clients="FILE clients.jsonl.gz",
        out_text="[FILE] the same text, a sentence a line",
    )
    args = cli.parse(parser)
    config = cli.load(DeviceConfig, args)
    if args.in_cuts is not None:
        if config.text != "ref":
            expected = "ref with --in-cuts"
            raise ConfigError("text", expected, config.text, "nothing was recognized of cuts")
        lists = _of_cuts(args.in_cuts)
    else:
        lists = [nbest for folder in args.in_nbest for nbest in read_nbest(folder).lists]
    if args.in_hyps is not None:
        if args.in_nbest is None or config.text == "ref":
            expected, found = "--in-nbest and text=hyp with --in-hyps", "references"
            raise ConfigError("the command line", expected, found, "remove one of them")
        lists = selected(lists, read_decoded(args.in_hyps))
    clients = clients_of(lists, config)
    if args.out_text is not None:
        lines = (" ".join(u.words) for client in clients for u in client.utterances)
        write_text(args.out_text, "".join(f"{line}\n" for line in lines))
    write_clients(args.out_clients, clients)
    log.info(" ".join(f"{name} {value:g}" for name, value in table(clients).items()))


def _of_cuts(path: Path) -> list[NbestList]:
    """Return the transcripts as lists without hypotheses."""
    role = role_of(path, "give one, or --in-nbest")
    spoken = [(cut.id, cut.supervisions[0]) for cut in load_cuts(path.parent, role, lazy=True)]
    return [NbestList(name, role, one.speaker, one.text, True, ()) for name, one in spoken]


if __name__ == "__main__":
    cli.run(main)

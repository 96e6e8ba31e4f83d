r"""Audit the claim of a release: an empirical lower bound on epsilon, which the claim must exceed.

The first input selects the attack, whose flags and settings are those of the audited verb:
--in-labels (aggregate_votes), --in-private-feats (train_dpsgd), --in-clients (train_fedlm, also by
canaries and membership), --in-timeline (release_fmp), --in-votes (vote_words) and --in-planted
(sanitize_text, at several probabilities, by names that plant_canaries has added). Each attack also
runs with less noise, where its bound must exceed the claim; that on names has the text as it was
said beside it. Nothing is released; the output is private.

    privasr verb audit --in-labels exp/pate/gnmax_8/labels --out-audit exp/pate/gnmax_8/audit.json \
        --config conf/pate.yaml#audit_pate
    privasr verb audit --in-private-feats data/feats_fbank --in-public-dev data/feats_public \
        --in-lang data/lang_char --in-init exp/pate/public --out-audit exp/dpsgd/eps8_audit.json \
        --config conf/pate.yaml#dpsgd conf/pate.yaml#audit_dpsgd \
        --set data=an4/train unit=speaker epsilon=8
    privasr verb audit --in-clients exp/fedlm/clients.jsonl.gz --in-init exp/lm/char_lstm \
        --out-audit exp/fedlm/audit.json \
        --config conf/fedlm.yaml#fedlm conf/fedlm.yaml#fedlm_audit \
        --set data=mini/adapt weights.by=uniform privacy.clip=0.5 privacy.noise=1.0 rounds=50
    privasr verb audit --in-nbest exp/x/nbest_test --in-timeline exp/fmp/timeline_test.jsonl \
        --in-lm exp/x/lm/transformer --out-audit exp/fmp/audit.json \
        --config conf/fmp.yaml#fmp_release conf/fmp.yaml#fmp_audit --set data=mini/test epsilon=1
"""

from __future__ import annotations

import argparse
import importlib
import os
from pathlib import Path

from privasr_k2.bin import cli
from privasr_k2.errors import ConfigError

#: Flag that chooses an audit -> its module of ``bin.audits``, the flags it needs, and others.
AUDITS = {
    "in_labels": ("pate", set(), set()),
    "in_private_feats": ("dpsgd", {"in_public_dev", "in_lang", "in_init"}, set()),
    "in_clients": ("fedlm", {"in_init"}, {"in_rates"}),
    "in_votes": ("votes", set(), set()),
    "in_timeline": ("fmp", {"in_nbest", "in_lm"}, set()),
    "in_planted": ("names", {"in_scored"}, {"in_tagged"}),
}
_HELP = {
    "in_labels": "labels: the folder of aggregate_votes",
    "in_private_feats": "DP-SGD: features folder",
    "in_public_dev": "DP-SGD: features folder",
    "in_lang": "DP-SGD: language folder",
    "in_init": "DP-SGD, federated training: the model to begin with",
    "in_clients": "federated training: clients.jsonl.gz",
    "in_rates": "federated training: learning rates of tune_fedlm",
    "in_votes": "words: the folder of vote_words",
    "in_timeline": "marginals: of prepare_fmp",
    "in_nbest": "marginals: folder with *.jsonl",
    "in_lm": "marginals: whose words are counted",
    "in_planted": "names: the folder of plant_canaries",
    "in_tagged": "names: its text by taggers, a file each",
    "in_scored": "names: tagged text whose perplexity is computed",
}


def main() -> None:
    """Parse, attack, write."""
    parser = cli.parser(__doc__)
    for name, text in _HELP.items():
        several = {"nargs": "+"} if name == "in_tagged" else {}
        flag = f"--{name.replace('_', '-')}"
        parser.add_argument(flag, type=Path, metavar="PATH", help=text, **several)
    cli.add_flags(parser, out_audit="FILE JSON")
    args = cli.parse(parser, device=True)
    kind = _kind(args)
    # Of several processes that torchrun starts, only those of federated training share the work.
    if kind == "fedlm" or os.environ.get("RANK", "0") == "0":
        importlib.import_module(f"privasr_k2.bin.audits.{kind}").audit(args)


def _kind(args: argparse.Namespace) -> str:
    given = {name for name in _HELP if getattr(args, name) is not None}
    chosen = [AUDITS[name] for name in AUDITS if name in given]
    if len(chosen) == 1:
        kind, needed, more = chosen[0]
        if needed <= given <= needed | more | set(AUDITS):
            return kind
    needs = "; or ".join(_flags({name, *needed}) for name, (_, needed, _) in AUDITS.items())
    raise ConfigError("the command line", needs, _flags(given) or "none", "see --help")


def _flags(names: set[str]) -> str:
    return " ".join(f"--{name.replace('_', '-')}" for name in _HELP if name in names)


if __name__ == "__main__":
    cli.run(main)

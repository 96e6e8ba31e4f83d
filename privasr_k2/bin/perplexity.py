r"""Compute the perplexity of language models, n-gram and neural, on one text.

    privasr verb perplexity --in-cuts data/manifests/cuts_dev.jsonl.gz --in-lang data/lang_phone \
        --in-lm data/lm/phone.arpa.gz exp/lm_lstm --out-perplexity exp/perplexity_dev.json

The vocabulary is closed, that of the language folder, and treated the same for all models: sentence
ends are counted; OOV words are read as <unk>, and the figure is given without and with their
predictions. With --in-clients or --in-calls, both a clients' file, the output also has the figures
of each client, or of each call (a client's name up to its last hyphen), for intervals.
"""

from __future__ import annotations

from pathlib import Path

from privasr_k2.bin import cli
from privasr_k2.fileio import write_json


def main() -> None:
    """Parse, score, write, print."""
    parser = cli.parser(__doc__)
    text = parser.add_mutually_exclusive_group(required=True)
    cli.add_flags(
        text,
        in_cuts="[PATH] cuts_<role>.jsonl.gz, whose texts are scored",
        in_text="[FILE] *.jsonl(.gz), or plain",
        in_clients="[FILE] clients.jsonl.gz",
        in_calls="[FILE] the same, figures by call",
    )
    cli.add_flags(
        parser,
        in_lang="PATH language folder: words.txt",
        in_lm="LM... ARPA files, folders of train_lm",
        out_perplexity="PATH the figures, JSON",
    )
    args = cli.parse(parser, config=False, device=True)

    from privasr_k2.graph.lang import load_lang
    from privasr_k2.lm.mixtures import open_lm
    from privasr_k2.lm.names import read_words
    from privasr_k2.lm.perplexity import TREATMENT, perplexity, table

    words = list(load_lang(args.in_lang).word_ids)
    by, groups = {}, None
    if args.in_clients or args.in_calls:
        by = {"by": "client" if args.in_clients else "call"}
        groups, sentences = _of_clients(args.in_clients or args.in_calls, by["by"])
    else:
        given = _of_cuts(args.in_cuts) if args.in_cuts else read_words([args.in_text])
        sentences = [sentence for sentence in given if sentence]
    lms = (open_lm(path, args.device) for path in args.in_lm)
    results = [perplexity(lm, sentences, words, groups) for lm in lms]
    records = [result.record() for result in results]
    write_json(args.out_perplexity, {"treatment": TREATMENT, **by, "lms": records})
    print(table(results))


def _of_cuts(path: Path) -> list[list[str]]:
    from privasr_k2.data.manifests import load_cuts, role_of

    role = role_of(path, "give one, or --in-text")
    return [cut.supervisions[0].text.split() for cut in load_cuts(path.parent, role, lazy=True)]


def _of_clients(path: Path, by: str) -> tuple[list[str], list[list[str]]]:
    """The group of each sentence, and its words."""
    from privasr_k2.federated.clients import read_clients

    groups, sentences = [], []
    for client in read_clients(path):
        name = client.name.rpartition("-")[0] or client.name if by == "call" else client.name
        groups += [name] * len(client.utterances)
        sentences += [list(utterance.words) for utterance in client.utterances]
    return groups, sentences


if __name__ == "__main__":
    cli.run(main)

r"""Write the results of a recipe, or one page of several recipes' results.

    privasr verb report --in-systems exp/pate/systems.jsonl --in-artifacts exp/pate/*/*/* \
        --in-manifests data/manifests --out-report exp/pate/RESULTS.md \
        --out-results exp/pate/results.jsonl --out-figures exp/pate/figures \
        --out-layout exp/pate/layout.yaml --out-owner exp/pate/owner_figures.jsonl \
        --ledger privacy/ledger.json \
        --config conf/common.yaml#report conf/published.yaml#yang2022 conf/reports/pate.yaml \
        --set command='./run.sh mini pate'
    privasr verb report --in-results exp/*/results.jsonl --in-layouts exp/*/layout.yaml \
        --out-page exp/report.html
    privasr verb report --in-results egs/*/results*.jsonl --in-layouts conf/reports/*.yaml \
        --config conf/common.yaml#report --out-figures docs/figures
    privasr verb report --in-results egs/*/results*.jsonl --in-layouts conf/reports/*.yaml \
        --in-published conf/published.yaml --config conf/common.yaml#report \
        --out-beside docs/results.md

Of people for whom a guarantee is claimed, results show how many units they are. Exact sums of their
data go to --out-owner, which its owner alone can read: do not publish it.

The paths of artifacts are those of systems.jsonl; --in-artifacts names them for the stage runner. A
page takes each layout from the folder of its results, else that of the recipe, or one that the
recipe shares (shared_by). --out-beside renews the table "Beside the papers" in a page that exists.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from privasr_k2 import config, sections
from privasr_k2.bin import cli
from privasr_k2.environment import code_version
from privasr_k2.errors import ConfigError
from privasr_k2.fileio import write_jsonl, write_text
from privasr_k2.recipe import layers
from privasr_k2.recipe.history import stamps_below, writers_of
from privasr_k2.recipe.plan import normal_path
from privasr_k2.recipe.systems import read_systems
from privasr_k2.report.beside import beside_papers, with_block
from privasr_k2.report.figures import write_figures, write_plots
from privasr_k2.report.layout import Layout
from privasr_k2.report.markdown import report_text
from privasr_k2.report.measures import Context
from privasr_k2.report.page import page, page_plots
from privasr_k2.report.phones import phone_measures
from privasr_k2.report.projection import projections
from privasr_k2.report.results import (
    Origin,
    Row,
    collect,
    owners_groups,
    owners_rows,
    read_rows,
    write_rows,
)
from privasr_k2.scoring.corpus_info import WORD, read_corpus_info


def main() -> None:
    """Parse, and write what is asked for."""
    args = cli.arguments(
        __doc__,
        in_systems="[FILE] systems.jsonl of a recipe",
        in_artifacts="[PATH...] all that it names",
        in_manifests="[DIR] with corpus.json",
        ledger="[FILE] of the private data: what else was spent",
        out_report="[FILE] RESULTS.md",
        out_results="[FILE] results.jsonl",
        out_figures="[DIR] SVG; of a page: error rates against epsilon",
        out_layout="[FILE] the layout, for the page",
        out_owner="[FILE] exact figures of protected people, for their owner alone",
        in_results="[FILE+] results.jsonl of recipes",
        in_layouts="[FILE+] beside the results",
        in_published="[FILE] figures of papers, a section each, for layouts without",
        out_page="[FILE] report.html, which needs no other file",
        out_beside="[FILE] a page with the table's markers",
    )
    if args.in_results and (args.out_page or args.out_figures):
        recipes = _recipes(args)
        if args.out_page is not None:
            write_text(args.out_page, page(recipes))
        if args.out_figures is not None:
            write_plots(page_plots(recipes), args.out_figures)
    elif args.out_beside is not None:
        text = args.out_beside.read_text(encoding="utf-8")
        write_text(
            args.out_beside, with_block(text, beside_papers(_recipes(args)), args.out_beside)
        )
    elif args.in_systems is None or args.out_report is None or args.out_results is None:
        expected = (
            "--in-systems with --out-report and --out-results, or --in-results with --out-page"
        )
        raise ConfigError("the command line", expected, "less", "see --help")
    else:
        _report(args)


def _report(args: argparse.Namespace) -> None:
    layout, corpus = cli.load(Layout, args), read_corpus_info(args.in_manifests)
    corpus = replace(corpus, name=layout.corpus or corpus.name)
    stamps, code = stamps_below(Path()), code_version()

    def commit_of(path: str) -> str:
        writers = writers_of(normal_path(path, ""), stamps)
        return str(writers[0].get("code", code)) if writers else code

    origin = Origin(layout.recipe, layout.command, corpus, commit_of, args.ledger)
    systems = read_systems(args.in_systems)
    intervals = layout.num_replicates, layout.confidence, layout.seed
    hidden = owners_groups(systems, corpus)
    context = Context(systems, *intervals, tuple(layout.tests), hidden)
    more = {}
    if layout.phones and corpus.unit == WORD:  # else the error rate is in phones already
        more = dict(phone_measures(systems, layout.cmudict, layout.g2p))
    rows = collect(systems, origin, context, more)
    rows += projections(rows, layout.people)
    figures = {}
    if args.out_figures is not None:
        written = write_figures(layout, rows, args.out_figures)
        figures = {title: f"{args.out_figures.name}/{name}" for title, name in written.items()}
    text = report_text(layout, rows, corpus.heading, figures)
    write_rows(args.out_results, rows)
    if args.out_owner is not None:
        write_jsonl(args.out_owner, owners_rows(systems, context))
        args.out_owner.chmod(0o600)
    if args.out_layout is not None:
        config.save(layout, args.out_layout)
    write_text(args.out_report, text)
    print(text)


def _recipes(args: argparse.Namespace) -> list[tuple[Layout, list[Row]]]:
    """Each file of results with its layout."""
    paths: list[Path] = args.in_layouts or []
    layouts = {path: config.load(Layout, _layers(path, args)) for path in paths}
    known: dict[Path | str, Layout] = {
        recipe: layout for layout in layouts.values() for recipe in layout.shared_by
    }
    known |= {layout.recipe: layout for layout in layouts.values()}
    known |= {path.parent: layout for path, layout in layouts.items() if path.name == "layout.yaml"}
    recipes = []
    for path in args.in_results or []:
        rows = read_rows(path)
        layout = known.get(path.parent) or known.get(rows[0].recipe)
        if layout is None:
            expected, way_out = f"the layout of {rows[0].recipe}", "name it with --in-layouts"
            raise ConfigError(path, expected, "none", way_out)
        recipes.append((layout, rows))
    if not recipes:
        raise ConfigError("the command line", "--in-results", "none", "see --help")
    return recipes


def _layers(path: Path, args: argparse.Namespace) -> list[Path]:
    """The figures of a layout's paper come before it: layouts of results hold theirs."""
    published = sections.below(args.in_published or "", str(layers.value([str(path)], "paper")))
    return [*args.config, *([Path(published)] if sections.exists(published) else []), path]


if __name__ == "__main__":
    cli.run(main)

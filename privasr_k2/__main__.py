"""The command ``privasr``: recipes, plans, reports, and every stage's verb.

``privasr --help`` imports click alone. Verbs of ``privasr_k2.bin`` run as ``python -m`` does, with
the same flags and exit codes.
"""

from __future__ import annotations

import ast
import difflib
import importlib.util
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

import click
from click.shell_completion import CompletionItem

import privasr_k2

ROOT = Path(__file__).resolve().parents[1]
_BIN = Path(__file__).with_name("bin")
_NO_VERBS = ("__init__", "cli")

#: Subcommands that are verbs, with the verb behind each.
PEOPLE = {
    **{name: name for name in ("report", "compare", "doctor", "transcribe", "export")},
    **{"plan": "privacy_plan", "ledger": "ledger", "publish": "publish"},
    **{"privacy": "ledger", "import": "import_external"},
}
#: All that follows a verb is the verb's own, ``--help`` too.
_PASS_ON = {"ignore_unknown_options": True, "help_option_names": []}


def verb_names() -> list[str]:
    """The modules of ``privasr_k2.bin`` that are verbs."""
    return sorted(path.stem for path in _BIN.glob("*.py") if path.stem not in _NO_VERBS)


def summary(verb: str) -> str:
    """The first paragraph of a verb's docstring; nothing is imported."""
    text = (_BIN / f"{verb}.py").read_text(encoding="utf-8")
    return (ast.get_docstring(ast.parse(text)) or "").partition("\n\n")[0].replace("\n", " ")


class _Words(click.ParamType):
    """The words of ``privasr run``: a corpus, a recipe, then options and their values."""

    name = "word"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        from privasr_k2.recipe.corpus import corpus_names
        from privasr_k2.recipe.front import recipe_names

        before = len(ctx.params.get("words") or ())
        names = (corpus_names, recipe_names)[before](ROOT) if before < 2 else []
        known = [CompletionItem(name) for name in names if name.startswith(incomplete)]
        return known or [CompletionItem(incomplete, type="file")]


class _Group(click.Group):
    """Names the subcommand that was probably meant."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            close = difflib.get_close_matches(args[0], self.list_commands(ctx), n=1)
            way_out = f"Did you mean {close[0]!r}?" if close else f"See {ctx.command_path} --help."
            raise click.UsageError(f"No such command {args[0]!r}. {way_out}", ctx)
        return super().resolve_command(ctx, args)


class _Verbs(_Group):
    """The verbs of ``privasr_k2.bin``, found by their files."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return verb_names()

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return _verb(cmd_name, cmd_name) if cmd_name in verb_names() else None


def _verb(name: str, verb: str) -> click.Command:
    def run(words: Sequence[str]) -> None:
        _run_verb(verb, words)

    # File names are completed: they are what most flags take.
    words = click.Argument(["words"], nargs=-1, type=click.Path())
    text = summary(verb)
    return click.Command(
        name, callback=run, params=[words], context_settings=_PASS_ON, help=text, short_help=text
    )


def _run_verb(verb: str, words: Sequence[str]) -> None:
    sys.argv = [verb, *words]
    try:
        runpy.run_module(f"privasr_k2.bin.{verb}", run_name="__main__", alter_sys=True)
    except ModuleNotFoundError as error:
        if (error.name or "privasr_k2").split(".")[0] == "privasr_k2":
            raise
        way_out = "start ./run.sh of a checkout, or pip install 'privasr_k2[all]'"
        way_out += "; k2 apart: docs/install.md"
        expected, found = f"the package {error.name}", "an installation without it"
        _stop(f"privasr {verb}", expected, found, way_out)


def _stop(*parts: str) -> None:
    from privasr_k2.errors import ConfigError

    print(f"error: {ConfigError(*parts)}", file=sys.stderr)
    raise SystemExit(2)


def _list(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        for verb in verb_names():
            click.echo(f"{verb:24} {summary(verb)}")
        ctx.exit()


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(privasr_k2.__version__, prog_name="privasr")
def main() -> None:
    """Privacy-preserving speech recognition: recipes, plans, reports."""


@main.command(context_settings=_PASS_ON, short_help="Run a recipe: CORPUS RECIPE --option value...")
@click.argument("words", nargs=-1, type=_Words())
def run(words: tuple[str, ...]) -> None:
    """Run a recipe of the checkout, as ./run.sh does."""
    if not (ROOT / "local/recipes").is_dir():
        found = f"an installation in {ROOT}"
        way_out = "clone the repository, and start ./run.sh there; it makes its own environment"
        _stop("privasr run", "a checkout, with local/recipes", found, way_out)
    from privasr_k2.recipe.run import door

    raise SystemExit(door(words))


@main.command()
@click.option("--out", default="build/site", show_default=True, type=click.Path(path_type=Path))
def docs(out: Path) -> None:
    """Build the documentation of the checkout as a site. Needs: pip install '.[docs]'."""
    builder = ROOT / "docs/site/build.py"
    if not builder.is_file():
        found = f"an installation in {ROOT}"
        _stop("privasr docs", "a checkout, with docs/", found, "clone the repository")
    needed = ("sphinx", "myst_nb", "furo", "matplotlib")
    if lacking := [name for name in needed if not _installed(name)]:
        way_out = "pip install '.[docs]' in the checkout"
        _stop("privasr docs", f"the packages {', '.join(lacking)}", "no such packages", way_out)
    runpy.run_path(str(builder))["main"](out.absolute())


def _installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


_EAGER_FLAG: dict[str, bool] = {"is_flag": True, "is_eager": True, "expose_value": False}


@main.group(cls=_Verbs)
@click.option("--list", **_EAGER_FLAG, callback=_list, help="Show the verbs.")
def verb() -> None:
    """Run one verb, as a recipe's stage does: privasr verb NAME --flag value..."""


@main.group(cls=_Group)
def encoder() -> None:
    """Public encoders: get one by name."""


@encoder.command()
@click.argument("name")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder to write.")
@click.option("--revision", help="Commit at Hugging Face, 40 hexadecimal digits.")
def get(name: str, out: Path, revision: str | None) -> None:
    """Get tiny.en or base (Whisper), or OWNER/NAME at Hugging Face, and check its hashes."""
    from privasr_k2.encoders.sources import get_encoder
    from privasr_k2.errors import PrivasrError

    try:
        card = get_encoder(name, out, revision)
    except (PrivasrError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    click.echo(f"{out}: {card.name}, licence {card.licence}, {card.source}")


for _name, _behind in PEOPLE.items():
    main.add_command(_verb(_name, _behind))


if __name__ == "__main__":
    main(prog_name="privasr")

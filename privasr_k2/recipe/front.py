"""From the words of ``./run.sh CORPUS RECIPE --option value...`` to declared stages."""

from __future__ import annotations

import ast
import dataclasses
import difflib
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from privasr_k2.errors import ConfigError
from privasr_k2.plugins import import_file
from privasr_k2.recipe import layers, options, plan
from privasr_k2.recipe.corpus import Corpus, corpus_names, find_corpus
from privasr_k2.recipe.declare import DataOptions, Launchers, Recipe, RunOptions, command_line
from privasr_k2.recipe.settings import keys_of
from privasr_k2.recipe.systems import System

_REPORT = "report"  # of the results that are there
#: What declares an option in a recipe.
_DECLARING = ("option", "from_conf", "path_option")
#: Old names of options, with what stands in their place.
RENAMED = {
    "units": "--token-type",
    "unit": "--privacy-unit",
    "size": "--preset",
    "sizes": "--adapt-percent",
    "rate": "--client-fraction",
    "private-rate": "--private-client-fraction",
    "private-units": "--privacy-unit",
    "keep": "--keep-prob",
    "finetune": "--finetune-epochs",
    "tune-epochs": "--finetune-epochs",
    "noise": "--noise-multiplier, or --noise-manifest for recordings of noise",
    "start": "--init",
    "sure": "--public-threshold",
    "candidates": "--top-k",
    "least": "--min-answers",
    "answers": "--max-answers",
    "readings": "--published-scale",
    "ways": "--unlabeled-data (pate) or --confidence-use (fedlm)",
    "private-ways": "--private-confidence-use",
    "labelled": "--labeled-data",
    "unlabelled-ways": "--unlabeled-data",
}


@dataclass(frozen=True)
class Declaration:
    """A recipe on a corpus, ready to be checked and run.

    Attributes:
        systems, systems_file: the file holds them, relative to ``work_dir``; maybe none.
        report: the file that is shown at the end, relative to ``work_dir``.
        unused_layers: YAML files and sections of the corpus that no stage could read.
        preset: what is computed depends on it; empty: nothing is computed but reports.
        preset_given: whether the command line names it.
    """

    run: RunOptions
    stages: tuple[plan.Stage, ...]
    systems: tuple[System, ...]
    systems_file: str
    report: str
    work_dir: Path
    corpus: Corpus
    unused_layers: tuple[str, ...]
    preset: str = ""
    preset_given: bool = False


def recipe_names(root: Path) -> list[str]:
    """The recipes of ``local/recipes``."""
    return sorted(path.stem for path in (root / "local/recipes").glob("[a-z]*.py"))


def overview(root: Path) -> str:
    """The text of ``./run.sh --help``."""
    corpora, recipes = corpus_names(root), recipe_names(root)
    width = max(map(len, (*corpora, *recipes)))
    lines = [
        "./run.sh [CORPUS [RECIPE]] [--option value]...",
        "",
        "  ./run.sh                                  a demonstration on small synthetic corpora",
        "  ./run.sh mini ctc                         one recipe",
        "  ./run.sh librispeech ctc --corpus-dir D   a corpus that you have",
        "  ./run.sh path/to/my_corpus.py ctc         your own corpus, described in one file",
        "  ./run.sh data:DIR ctc                     a Kaldi data directory, or lhotse manifests",
        "  ./run.sh data:NAME ctc --train F --test F  files of yours, by their roles",
        "  ./run.sh lhotse:NAME ctc --corpus-dir D   a corpus that lhotse has a recipe for",
        "",
        "corpora:",
        *(f"  {name:{width}} {find_corpus(name, root, root).description}" for name in corpora),
        "",
        "recipes (./run.sh CORPUS RECIPE --help lists the options):",
        *(f"  {name:{width}} {_summary(root / f'local/recipes/{name}.py')}" for name in recipes),
    ]
    return "\n".join(lines)


def declare(
    corpus_word: str, recipe_word: str, words: Sequence[str], root: Path, caller: Path
) -> Declaration:
    """Parse the options of a recipe and collect its stages.

    Raises:
        ConfigError: an unknown corpus, recipe or option, an unfit value, an option without effect.
    """
    corpus = find_corpus(corpus_word, root, caller, words)
    file = _recipe_file(corpus, recipe_word, root, caller)
    name = file.stem
    if corpus.only_these and name not in (*corpus.recipes, "report"):
        expected = f"a recipe that this corpus is for: {' '.join(corpus.recipes)}"
        way_out = f"./run.sh {corpus_word} {corpus.recipes[0]}"
        raise ConfigError(f"./run.sh {corpus_word}", expected, repr(recipe_word), way_out)
    corpus = corpus.for_recipe(name, root)
    module = _load_recipe(file, root)
    own = _own_options(corpus)
    classes = [module.Options, own, DataOptions, RunOptions]
    known = _names(classes)
    _check_defaults(corpus, known, root)

    def conf_value(key: str, values: Mapping[str, Any]) -> Any:
        section, _, rest = key.partition(".")
        named = dict(recipe=name, preset=values["preset"], own=corpus.conf)
        return layers.value(layers.layers(root, section, **named), rest)

    def defaults(given: Mapping[str, str]) -> dict[str, Any]:
        preset = given.get("preset", DataOptions.preset)
        return corpus.defaults(name, known, preset, layers.preset_options(root, name, preset))

    parsed = options.parse(
        classes,
        words,
        defaults=defaults,
        renamed={old: new for old, new in RENAMED.items() if old.replace("-", "_") not in known},
        caller=caller,
        prog=f"./run.sh {corpus_word} {recipe_word}",
        help=module.__doc__ or "",
        conf_keys=_conf_keys(root, name),
        conf_place=_conf_place(corpus.conf, root),
        conf_value=conf_value,
    )
    run = options.build(RunOptions, parsed)
    read: set[str] = set()
    neutral = _names([RunOptions])
    recipe = Recipe(
        name,
        corpus=corpus,
        run=run,
        data=options.Tracked(options.build(DataOptions, parsed), read),  # type: ignore[arg-type]
        own=dataclasses.asdict(options.build(own, parsed)),
        launchers=_launchers(),
        root=root,
        command=command_line(corpus_word, recipe_word, parsed.given, neutral),
    )
    module.stages(recipe, options.Tracked(options.build(module.Options, parsed), read))
    _check_used(parsed.given, read | _names([own]) | neutral | {"preset"}, recipe_word)
    work_dir = run.work_dir or corpus.home
    return Declaration(
        run=run,
        stages=plan.parse(recipe.records, str(work_dir)),
        systems=tuple(declared.system for declared in recipe.systems.values()),
        systems_file=recipe.systems_file if recipe.systems else "",
        report=recipe.report_path,
        work_dir=work_dir,
        corpus=corpus,
        unused_layers=tuple(
            layers.unknown(root, corpus.conf, recipe.data.preset, {corpus.conf_name})
        ),
        preset="" if name == _REPORT else recipe.data.preset,
        preset_given="preset" in parsed.given,
    )


def words_for(corpus: Corpus, words: Sequence[str], root: Path) -> dict[str, list[str]]:
    """What each recipe of a corpus is given of the options for all of them: those that it has.

    Raises:
        ConfigError: an option that none of them has.
    """
    shared = [_own_options(corpus), DataOptions, RunOptions]
    has = {
        name: _names([_load_recipe(root / f"local/recipes/{name}.py", root).Options, *shared])
        for name in corpus.recipes
    }
    given: dict[str, list[str]] = {name: [] for name in corpus.recipes}
    owners = [*corpus.recipes]
    for word in words:
        if word.startswith("--"):
            option = word[2:].partition("=")[0].replace("-", "_")
            owners = [name for name in corpus.recipes if option in has[name]]
            if not owners:  # the first recipe's parser says what is meant
                owners = [corpus.recipes[0]]
        for name in owners:
            given[name].append(word)
    return given


def _names(classes: Iterable[type]) -> set[str]:
    return {f.name for cls in classes for f in dataclasses.fields(cls)}


def _recipe_file(corpus: Corpus, word: str, root: Path, caller: Path) -> Path:
    file = caller / word if word.endswith(".py") else root / f"local/recipes/{word}.py"
    if not file.is_file():
        expected = f"a recipe: {' '.join(recipe_names(root))}, or FILE.py"
        raise ConfigError(f"./run.sh {corpus.name}", expected, repr(word), "./run.sh --help")
    return file


def load_file(file: Path, root: Path) -> ModuleType:
    """The module of a Python file; ``local`` can be imported by it."""
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    return import_file(file, f"recipe_{file.stem}")


def _load_recipe(file: Path, root: Path) -> ModuleType:
    module = load_file(file, root)
    for needed in ("Options", "stages"):
        if not hasattr(module, needed):
            raise ConfigError(file, f"a recipe with {needed}", "none", "see local/recipes/ctc.py")
    return module


def _own_options(corpus: Corpus) -> type:
    fields: list[tuple[str, Any, Any]] = []
    for name, help in corpus.own_options.items():
        kind, _, rest = help.partition(" ")
        if kind == "PATHS":
            fields.append((name, options.Paths, options.option((), rest)))
        elif kind == "PATH":
            fields.append((name, Path | None, options.path_option(rest)))
        elif kind == "true|false":
            fields.append((name, Literal["true", "false"] | None, options.option(None, rest)))
        else:
            fields.append((name, str, options.option("", help)))
    return dataclasses.make_dataclass("OwnOptions", fields, frozen=True)


def _launchers() -> Launchers:
    """Read the launchers of local/cmd.sh; run.sh exports them."""
    names = ("DEFAULT", "TRAIN", "DECODE")
    return Launchers(*(os.environ.get(f"PRIVASR_{name}_CMD") or "local" for name in names))


def _check_used(given: Mapping[str, str], used: set[str], recipe: str) -> None:
    for name in given:
        if name not in used:
            place, found = f"--{name.replace('_', '-')}", f"one that {recipe} does not read"
            way_out = "remove it, or choose the options that it belongs to"
            raise ConfigError(place, "options that change something here", found, way_out)


def _check_defaults(corpus: Corpus, known: set[str], root: Path) -> None:
    """Refuse a default of ``corpus.yaml`` for an option that no recipe has."""
    others = [name for name in corpus.options if name not in known]
    if not others:
        return
    # Fields are read in the text, as importing every recipe takes seconds.
    files = [
        file for folder in ("recipes", "stages") for file in (root / "local" / folder).iterdir()
    ]
    every = known.union(*(_fields(file) for file in files if file.suffix == ".py"))
    for name in others:
        if name not in every:
            near = difflib.get_close_matches(name, every, 1)
            lists = f"./run.sh {corpus.name} RECIPE --help lists the options of a recipe"
            way_out = f"did you mean {near[0]}?" if near else f"correct it; {lists}"
            place = corpus.home / "corpus.yaml"
            raise ConfigError(f"{place}: options", "options of a recipe", name, way_out)


def _fields(file: Path) -> set[str]:
    """The options that a recipe or its stages declare."""
    return {
        node.target.id
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Name)
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Name)
        and node.value.func.id in _DECLARING
    }


def _summary(file: Path) -> str:
    return (ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or "").split("\n")[0]


def _conf_keys(root: Path, recipe: str) -> dict[str, list[str]]:
    """The sections of every key of ``conf/``; those in the recipe's own file come first."""
    own = str(root / f"conf/{recipe}.yaml#")
    addresses = layers.defaults(root).items()
    keys: dict[str, list[str]] = {}
    for section, address in sorted(addresses, key=lambda item: not item[1].startswith(own)):
        for key in keys_of(Path(address)):
            keys.setdefault(key, []).append(section)
    return keys


def _conf_place(conf: Path, root: Path) -> str:
    """Where a corpus's own values stand, or would: a file, as messages name it."""
    file, _, section = str(conf).partition("#")
    if not section and not Path(file).exists():
        file = f"{file}.yaml"
    return file.removeprefix(f"{root}/") + (f", below {section}:" if section else "")

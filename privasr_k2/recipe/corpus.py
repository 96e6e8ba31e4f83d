"""A corpus for recipes: ``egs/<corpus>/corpus.yaml``, a user's own file, or a data directory."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml

from privasr_k2.errors import ConfigError

_NAME = re.compile(r"[A-Za-z0-9_-]+")
_FILES = ("--train", "--dev", "--test", "--adapt")
_ALONE = "give it, too; what a trained model makes of other speech: docs/new_corpus.md"
_PATHS = ("corpus_dir", "public_text", "public_dir", "public_conf", "nnlm_text")


@dataclass(frozen=True)
class Corpus:
    """Facts of a corpus for recipes.

    Attributes:
        name: how the command line names it.
        description: one line.
        definition: the Python file that exports ``CORPUS``.
        conf_name: the name of its own section of ``conf/``.
        conf: its YAML layers (:mod:`privasr_k2.recipe.layers`): ``corpus.yaml#conf``; beside a
            user's own file or data ``conf.yaml``, or a folder ``conf``.
        home: the default work folder.
        recipes: those that a bare ``./run.sh CORPUS`` runs; the only ones where ``only_these``.
        people: the name of its people in a ledger.
        options: defaults of options, in place of the recipes' own.
        recipe_options: the same for single recipes.
        preset_options: the same for single recipes under a preset.
        recipe_definitions: modules of ``privasr_k2/corpora`` in place of ``definition``, by recipe.
        own_options: options of ``prepare_corpus`` that only this corpus has, with their help;
            ``PATH`` before it where the value is one, and ``true|false``. ``PATHS`` are files for
            ``--raw-<option>``.
        public_lists: name lists that come with its manifests.
        vocabulary_lists: name lists whose words every vocabulary has.
        further_text: tagged text that comes with its manifests.
        text_options: settings of ``prepare_corpus`` for all text, where speech covers a part of it.
        spoken_recipes: the same for single recipes, on a corpus whose other recipes are about
            text: their manifests stand beside those of the others.
        trains_am: whether it has speech to train an acoustic model on; else recipes that decode
            need a public one.
        manifests: the folder of the manifests, relative to the work folder.
        settings: of ``prepare_corpus``, which the name on the command line brings.
        source: the file or folder of a user's own corpus; None for those of ``egs/``.
    """

    name: str
    description: str = ""
    definition: Path = Path()
    conf_name: str = ""
    conf: Path = Path()
    home: Path = Path()
    recipes: tuple[str, ...] = ("ctc", "rescore")
    only_these: bool = False
    people: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    recipe_options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    preset_options: Mapping[str, Mapping[str, Mapping[str, Any]]] = field(default_factory=dict)
    recipe_definitions: Mapping[str, str] = field(default_factory=dict)
    own_options: Mapping[str, str] = field(default_factory=dict)
    public_lists: str = ""
    vocabulary_lists: str = ""
    further_text: str = ""
    text_options: str = ""
    spoken_recipes: Mapping[str, str] = field(default_factory=dict)
    trains_am: bool = True
    manifests: str = "data/manifests"
    settings: Mapping[str, str] = field(default_factory=dict)
    source: Path | None = None

    def for_recipe(self, recipe: str, root: Path) -> Corpus:
        """The corpus as one recipe reads it."""
        changed: dict[str, Any] = {}
        if (name := self.recipe_definitions.get(recipe)) is not None:
            changed |= {"definition": root / f"privasr_k2/corpora/{name}.py", "conf_name": name}
        if (text := self.spoken_recipes.get(recipe)) is not None:
            changed |= {"text_options": text, "manifests": f"{self.manifests}_spoken"}
        return dataclasses.replace(self, **changed)

    def defaults(
        self,
        recipe: str,
        known: Collection[str],
        preset: str,
        of_preset: Mapping[str, Any] = MappingProxyType({}),
    ) -> dict[str, Any]:
        """Defaults of the options that a recipe has; paths start from the corpus's folder.

        Args:
            of_preset: the preset's on any corpus; they win over the corpus's for any preset.
        """
        values = {name: value for name, value in self.options.items() if name in known}
        values.update(self.recipe_options.get(recipe, {}))
        values.update({name: value for name, value in of_preset.items() if name in known})
        values.update(self.preset_options.get(preset, {}).get(recipe, {}))
        for name in _PATHS:
            if values.get(name) and not Path(values[name]).is_absolute():
                values[name] = str(self.home / values[name])
        return values


def find_corpus(name: str, root: Path, caller: Path, words: Sequence[str] = ()) -> Corpus:
    """The corpus that a command line names.

    It is a folder of ``egs/``, ``FILE.py``, ``data:DIR`` or ``lhotse:NAME``.

    Args:
        words: of the command line. With ``--train`` among them ``data:NAME`` needs no folder.

    Raises:
        ConfigError: there is none of that name, or its file does not have the form above.
    """
    if name.startswith("lhotse:"):
        return _of_lhotse(name, root)
    if name.startswith("data:") or name.endswith(".py"):
        return _own(name, root, caller, words)
    folder = root / "egs" / name
    if not _NAME.fullmatch(name) or not (folder / "corpus.yaml").is_file():
        expected = f"a corpus: {' '.join(corpus_names(root))}, FILE.py, data:DIR, or lhotse:NAME"
        raise ConfigError("./run.sh", expected, repr(name), "./run.sh --help")
    return _read(folder / "corpus.yaml", root)


def corpus_names(root: Path) -> list[str]:
    """The corpora of ``egs/``."""
    return sorted(path.parent.name for path in (root / "egs").glob("*/corpus.yaml"))


def _own(name: str, root: Path, caller: Path, words: Sequence[str]) -> Corpus:
    is_folder = name.startswith("data:")
    path = caller / name.removeprefix("data:")
    place = f"./run.sh {name}"
    if name == "data:":
        way_out = "name the Kaldi data directory, or the folder of manifests"
        raise ConfigError(place, "data:DIR", "no folder", way_out)
    if not path.exists():
        files = "--train FILE --dev FILE --test FILE"
        if is_folder and _NAME.fullmatch(plain := name.removeprefix("data:")):
            if "--train" in _flags(words) or _ran(root, plain, caller, words):
                return _of_files(plain, root)
            way_out = f"correct the path, or name files: data:{plain} RECIPE {files}"
            roles = {word.partition("=")[0] for word in words} & set(_FILES)
            if roles:
                raise ConfigError(
                    place, f"--train beside {' '.join(sorted(roles))}", "none", _ALONE
                )
        else:
            way_out = "correct the path"
        raise ConfigError(place, "a file or folder", f"nothing at {path}", way_out)
    if is_folder and not path.is_dir():
        way_out = "name the folder that it is in, or run it as FILE.py"
        raise ConfigError(place, "data: and a folder", "a file", way_out)
    path = path.resolve()
    stem = path.name.removesuffix(".py")
    shared: dict[str, Any] = {
        **_own_facts(name, root / "egs/user" / stem),
        "options": {"feature": "auto", **({"corpus_dir": str(path)} if is_folder else {})},
        "source": path,
    }
    if not is_folder:
        return Corpus(definition=path, conf_name="own_corpus", conf=_conf(path.parent), **shared)
    conf = _conf(shared["home"])
    conf = conf if conf.exists() else _conf(path)
    return Corpus(**_data_facts(root), conf=conf, **shared)


def _of_files(name: str, root: Path) -> Corpus:
    """A corpus of files that the command line names, in a work folder of its name."""
    facts = _own_facts(f"data:{name}", home := root / "egs/user" / name)
    facts |= {"options": {"feature": "auto"}, "settings": {"name": name}}
    return Corpus(**_data_facts(root), conf=_conf(home), **facts)


def _of_lhotse(word: str, root: Path) -> Corpus:
    """A corpus that a recipe of lhotse reads; in a ledger its people are called as the recipe."""
    name = word.removeprefix("lhotse:")
    if _NAME.fullmatch(name) is None:
        way_out = "name it as lhotse.recipes.prepare_NAME does"
        raise ConfigError(f"./run.sh {word}", "lhotse:NAME", repr(name), way_out)
    home = root / f"egs/user/lhotse_{name}"
    return Corpus(
        name=word,
        home=home,
        people=name,
        definition=root / "privasr_k2/corpora/lhotse_recipe.py",
        conf_name="lhotse_recipe",
        conf=_conf(home),
        settings={"recipe": name, "name": name},
    )


def _ran(root: Path, name: str, caller: Path, words: Sequence[str]) -> bool:
    """Whether a recipe has run in the work folder: that of the name, or of the command line."""
    work_dir = _flags(words).get("--work-dir") or root / "egs/user" / name
    return (caller / work_dir / ".stages").is_dir()


def _flags(words: Sequence[str]) -> dict[str, str]:
    """The options among the words, with the value behind ``=`` or the next word."""
    found: dict[str, str] = {}
    for word, following in zip_longest(words, words[1:], fillvalue=""):
        flag, equals, value = word.partition("=")
        if flag.startswith("--"):
            found[flag] = value if equals else following
    return found


def _data_facts(root: Path) -> dict[str, Any]:
    return {"definition": root / "privasr_k2/corpora/data_dir.py", "conf_name": "data_dir"}


def _own_facts(name: str, home: Path) -> dict[str, Any]:
    """What all corpora of users have, by how the command line names them."""
    what = "lhotse cuts, recordings and supervisions, or Kaldi data directories"
    pipes = "true|false run the commands of wav.scp; only where you trust who wrote them"
    files = {role: f"PATHS {what}, for {role}" for role in ("train", "dev", "test", "adapt")}
    return {
        "name": name,
        "home": home,
        "people": re.sub(r"[^A-Za-z0-9_-]", "_", home.name),
        "own_options": {"allow_pipes": pipes, **(files if name.startswith("data:") else {})},
    }


def _conf(folder: Path) -> Path:
    """A user's own layers: ``conf.yaml``, or the folder ``conf``, which may be absent."""
    file, other = folder / "conf.yaml", folder / "conf"
    if file.is_file() and other.is_dir():
        raise ConfigError(folder, "conf.yaml or the folder conf", "both", "join the two")
    return file if file.is_file() else other


def _read(path: Path, root: Path) -> Corpus:
    folder = path.parent
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise ConfigError(path, "YAML", " ".join(str(error).split()), "correct it") from error
    known = {f.name for f in dataclasses.fields(Corpus)}
    if unknown := sorted(set(values) - known - {"public_conf"}):
        expected = f"keys among {', '.join(sorted(known))}"
        raise ConfigError(path, expected, unknown[0], "correct the key")
    for layers in ("conf", "public_conf"):  # read where a stage names them
        values.pop(layers, None)
    definition = values.pop("definition", folder.name)
    recipes = values.pop("recipes", None)
    return Corpus(
        name=folder.name,
        definition=root / "privasr_k2/corpora" / f"{definition}.py",
        conf_name=definition,
        conf=folder / "corpus.yaml#conf",
        home=folder,
        people=values.pop("people", folder.name),
        only_these=recipes is not None,
        recipes=Corpus.recipes if recipes is None else tuple(recipes),
        **values,
    )

"""Declarations of stages and systems in a recipe file, ``local/recipes/<name>.py``.

A recipe has a docstring, a frozen dataclass ``Options``, and a function ``stages(recipe, options)``
that calls :meth:`Recipe.stage` in the order in which stages run. Each stage is a module of
``privasr_k2.bin``; keywords are its flags: ``in_lang=x`` is ``--in-lang x``.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml

from privasr_k2.constraints import Count, Matches, Positive
from privasr_k2.errors import ConfigError
from privasr_k2.recipe import layers
from privasr_k2.recipe.corpus import Corpus
from privasr_k2.recipe.options import Settings, option, other_values, path_option
from privasr_k2.recipe.systems import Fact, System

Presets = Literal["tiny", "demo", "small", "paper"]
TokenType = Annotated[
    str, Matches(r"phone|char|tokenizer|bpe_[1-9][0-9]*", "phone, char, tokenizer or bpe_N")
]
EncoderPart = Literal["head", "bias", "lora", "last_block", "all"]
Flag = str | Path | Iterable[str] | None


@dataclass(frozen=True)
class RunOptions:
    """Options of every recipe that choose how it runs, and nothing of its results."""

    stage: int = option(0, "first stage to run; what it needs must be up to date")
    stop_stage: int = option(9999, "last stage to run")
    dry_run: bool = option(False, "print what each stage reads, writes and runs; run nothing")
    force: bool = option(False, "run stages although they are up to date")
    verify: bool = option(False, "read every file again instead of trusting times and sizes")
    show_report: bool = option(True, "print the results at the end")
    wait: bool = option(True, "wait while another run is at work in the same folder")
    config: Path | None = path_option("file of options, one name=value a line, read first")
    work_dir: Path | None = path_option("folder for data/ and exp/ (default: the corpus's in egs/)")
    nj: Count = option(os.cpu_count() or 1, "jobs at once; decoding depends on their number")
    side_by_side: Count = option(1, "stages of one number that run at once")
    cmd: str = option("", "launcher of all stages: local, 'torchrun OPTIONS' or 'slurm OPTIONS'")
    device: str = option("auto", "auto, cpu, cuda or cuda:N")
    ledger: Path | None = path_option("privacy ledger (default: WORK_DIR/privacy/ledger.json)")
    ledger_copy: Path | None = path_option("its second copy (default: WORK_DIR.ledger)")
    max_epsilon: Positive | None = option(None, "refuse releases that bring the ledger above it")
    public_from_private: bool = option(
        False, "accept public inputs that are made of the private data: epsilon is infinite"
    )


@dataclass(frozen=True)
class DataOptions:
    """Options of every recipe that choose what is built from the corpus."""

    corpus_dir: Path | None = path_option("the corpus; never written to")
    preset: Presets = option("small", "sizes: tiny for tests, demo, small for two cores, paper")
    token_type: TokenType = option("phone", "what models predict: phone, char, bpe_N, tokenizer")
    backend: Literal["k2", "kaldi"] = option(
        "k2", "decoder of the first pass; kaldi: kaldi-decoder"
    )
    feature: str = option("fbank", "fbank, mfcc, sphinx, given or auto")
    encoder_model: Path | None = path_option("public encoder: its outputs are the features")
    encoder_trained: EncoderPart = option("head", "what is trained of it, besides the head")
    speed_perturb: bool = option(False, "three speeds of every training utterance")
    noise_manifest: Path | None = path_option("lhotse's manifest of noise: a noisy copy of train")
    rirs: Path | None = path_option("lhotse's manifest of impulse responses: a copy of train")
    lm_text: Path | None = path_option("text of the n-gram LM in place of the corpus's own")
    arpa: Path | None = path_option("a trained ARPA LM in place of the n-gram LM")
    lexicon: Path | None = path_option("pronunciation lexicon in place of the corpus's own")
    text_case: Literal["keep", "lower", "upper"] | None = option(
        None, "case of text, lexicon and n-gram LM (default: as the corpus normalizes, lower)"
    )
    corpus_options: Settings = option((), "K=V settings that only this corpus has")
    lang_options: Settings = option((), "K=V settings of conf/common.yaml#lang: max_words=20000")


@dataclass(frozen=True)
class Launchers:
    """Launchers of stages (local/cmd.sh)."""

    default: str = "local"
    train: str = "local"
    decode: str = "local"


@dataclass
class Declared:
    """A system while its stages are declared."""

    name: str
    folder: str
    values: dict[str, Any]
    artifacts: dict[str, str] = field(default_factory=dict)

    def path(self, kind: str, name: str = "") -> str:
        """The path ``FOLDER/NAME`` of an artifact, which reports find by its kind.

        ``protected_KIND``: of people under a claim; exact sums go to the owner's figures.
        """
        self.artifacts[kind] = f"{self.folder}/{name or kind}"
        return self.artifacts[kind]

    def add(self, kind: str, path: str) -> str:
        """Declare an artifact that stands elsewhere."""
        self.artifacts[kind] = path
        return path

    def compare_with(self, *others: Declared | None) -> None:
        """Test this system against others; None is left out."""
        self.values["compare_with"] = tuple(dict.fromkeys(other.name for other in others if other))

    @property
    def system(self) -> System:
        """The declaration, as reports read it."""
        return System(self.name, folder=self.folder, artifacts=dict(self.artifacts), **self.values)


@dataclass
class Recipe:
    """The stages and systems of one recipe on one corpus.

    Attributes:
        exp: the folder of its experiment; a recipe sets it before it declares systems.
        note, facts: end of the labels, and further facts, of all systems declared from then on.
        records: the words of every stage so far, for :func:`privasr_k2.recipe.plan.parse`.
    """

    name: str
    corpus: Corpus
    run: RunOptions
    data: DataOptions
    own: Mapping[str, str]
    launchers: Launchers
    root: Path
    command: str
    exp: str = ""
    note: str = ""
    facts: dict[str, Fact] = field(default_factory=dict)
    records: list[list[str]] = field(default_factory=list)
    systems: dict[str, Declared] = field(default_factory=dict)
    report_path: str = ""

    @property
    def people(self) -> str:
        """Name of the corpus's people in the ledger."""
        return self.corpus.people

    @property
    def systems_file(self) -> str:
        """Path of the declarations of systems."""
        return f"{self.exp}/systems.jsonl"

    def stage(
        self,
        number: int,
        title: str,
        verb: str,
        *,
        config: str | Sequence[str] = (),
        set: Mapping[str, Any] | None = None,
        jobs: int | None = None,
        array: int | None = None,
        train: bool = False,
        device: bool = False,
        num_jobs: bool = False,
        spends: bool = False,
        ledger: bool = False,
        **flags: Flag,
    ) -> str:
        """Declare one stage and return its first output.

        Args:
            number: stages with one number may run side by side.
            config: names of sections of ``conf/``, or addresses of YAML layers; later ones win.
            set: single values, by key; None is left out, lists and numbers are written as YAML.
            jobs: size of an array that splits the utterances; ``JOB`` in paths is the job.
            array: size of an array of independent jobs.
            train: use the launcher of trainings, with ``--device`` and ``--num-jobs``.
            device, num_jobs: pass ``--device`` or ``--num-jobs``.
            spends: the stage makes a release: pass ``--ledger`` and ``--max-epsilon``.
            ledger: pass ``--ledger`` to read it.
            flags: ``in_*``, ``out_*`` and ``raw_*`` paths; None and empty ones are left out.
        """
        values = dict(set or {})
        size, launchers = array if jobs is None else jobs, self.launchers
        launcher = launchers.default if size is None else launchers.decode
        launcher = self.run.cmd or (launchers.train if train else launcher)
        words = [str(number), title, *([] if size is None else [f"JOB=1:{size}"])]
        if jobs is not None:
            values |= {"job": "JOB", "num_jobs": jobs}
        words += ["--cmd", launcher, verb, *self._config_words(config)]
        for name, value in flags.items():
            words += _flag(name, value)
        if spends or ledger:
            words += ["--ledger", str(self.run.ledger or "privacy/ledger.json")]
        if spends and self.run.max_epsilon:
            words += ["--max-epsilon", f"{self.run.max_epsilon:g}"]
        if spends and self.run.public_from_private:
            words += ["--public-from-private", "true"]
        if spends and self.run.ledger_copy:
            words += ["--ledger-copy", str(self.run.ledger_copy)]
        settings = [f"{key}={_yaml(value)}" for key, value in values.items() if value is not None]
        if settings:
            words += ["--set", *settings]
        if train or device:
            words += ["--device", self.run.device]
        if train or num_jobs:
            words += ["--num-jobs", str(self.run.nj)]
        self.records.append(words)
        outputs = (value for name, value in flags.items() if name.startswith("out_") and value)
        return next((_words(value)[0] for value in outputs), "")

    def training(self, part: EncoderPart) -> Recipe:
        """This recipe with another ``--encoder-trained``, and the same stages and systems."""
        return replace(self, data=other_values(self.data, encoder_trained=part))

    def sort_stages(self) -> None:
        """Put the stages so far in the order of their numbers; those declared twice are one."""
        different = list(dict.fromkeys(map(tuple, self.records)))
        self.records[:] = map(list, sorted(different, key=lambda words: int(words[0])))

    def config(self, *names: str) -> list[str]:
        """The YAML layers of these sections that exist, the later ones winning."""
        return [path for name in names for path in self._layers(name, self.corpus.conf)]

    def corpus_config(self, name: str, own: Path) -> list[str]:
        """The layers of another corpus, whose own ones stand in the folder or section ``own``."""
        return self._layers(name, own)

    def system(
        self,
        name: str,
        *,
        label: str,
        method: str,
        folder: str = "",
        compare_with: Iterable[Declared | None] = (),
        public: Declared | None = None,
        not_private: Declared | None = None,
        protects: str = "",
        headline: bool = False,
        **facts: Fact,
    ) -> Declared:
        """Declare a system; its stages write below the folder of the object that comes back.

        Args:
            name: unique within the recipe.
            folder: by default the name, below :attr:`exp`.
            compare_with: systems that it is tested against; None is left out.
            facts: what tables select by and show.
        """
        if name in self.systems:
            place, found = f"recipe {self.name}", f"{name} twice"
            way_out = "name each value of its options once"
            raise ConfigError(place, "each system once", found, way_out)
        values = {
            **{"label": f"{label}{self.note}", "method": method, "protects": protects},
            "facts": {**self.facts, **facts},
            "public": public.name if public else "",
            "not_private": not_private.name if not_private else "",
            "headline": headline,
        }
        self.systems[name] = Declared(name, folder or f"{self.exp}/{name}", values)
        self.systems[name].compare_with(*compare_with)
        return self.systems[name]

    def about(self, name: str, label: str = "", **facts: Fact) -> Declared:
        """Declare artifacts of the whole recipe, or of a part of it."""
        values = {"label": label or name, "method": "recipe", "facts": facts}
        self.systems[name] = Declared(name, self.exp, values)
        return self.systems[name]

    def report(self, number: int, *, manifests: str, **values: Any) -> None:
        """Declare the stage that writes tables and figures of all systems."""
        artifacts = (p for system in self.systems.values() for p in system.artifacts.values())
        layout = f"reports/{layers.layout_of(self.root, self.name)}"
        paper = layers.value(self.config(layout), "paper")
        self.report_path = self.stage(
            number,
            "results",
            "report",
            config=("report", *([paper] if paper else []), layout),
            in_systems=self.systems_file,
            in_artifacts=[*dict.fromkeys(path.split("#")[0] for path in artifacts)],
            in_manifests=manifests,
            out_report=f"{self.exp}/RESULTS.md",
            out_results=f"{self.exp}/results.jsonl",
            out_figures=f"{self.exp}/figures",
            out_layout=f"{self.exp}/layout.yaml",
            out_owner=f"{self.exp}/owner_figures.jsonl",
            ledger=True,
            set={
                "recipe": self.name,
                "command": self.command,
                "corpus": self.corpus.name,
                **values,
            },
        )

    def refuse(self, place: str, expected: str, found: object, way_out: str) -> None:
        """End with an error about options that cannot be together."""
        raise ConfigError(place, expected, str(found), way_out)

    def _config_words(self, config: str | Sequence[str]) -> list[str]:
        words: list[str] = []
        for name in _words(config):
            words += [name] if ".yaml" in name else self.config(name)
        return ["--config", *words] if words else []

    def _layers(self, name: str, own: Path) -> list[str]:
        return layers.layers(self.root, name, recipe=self.name, preset=self.data.preset, own=own)


def command_line(corpus: str, recipe: str, given: Mapping[str, str], neutral: Iterable[str]) -> str:
    """The command that makes the same result, for tables.

    >>> command_line("mini", "ctc", {"nj": "2", "token_type": "char"}, ["nj"])
    './run.sh mini ctc --token-type char'
    """
    pairs = [(name, value) for name, value in given.items() if name not in set(neutral)]
    words = [word for name, value in pairs for word in (f"--{name.replace('_', '-')}", value)]
    return shlex.join(["./run.sh", corpus, recipe, *words])


def _flag(name: str, value: Flag) -> list[str]:
    if not name.startswith(("in_", "out_", "raw_")):
        place, expected = "a stage's declaration", "in_*, out_* or raw_*"
        raise ConfigError(place, expected, name, "correct the recipe")
    words = _words(value)
    return [f"--{name.replace('_', '-')}", *words] if words else []


def _words(value: Flag) -> list[str]:
    if value is None or value == "":
        return []
    return [str(value)] if isinstance(value, str | Path) else list(map(str, value))


def _yaml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        short = f"{value:g}"
        return ".inf" if short == "inf" else short if float(short) == value else repr(value)
    if isinstance(value, list | tuple):
        return f"[{','.join(map(_yaml_item, value))}]"
    return str(value)


def _yaml_item(value: Any) -> str:
    """An item of a list; a word such as ``yes`` or ``'tis`` stays a word."""
    if not isinstance(value, str):
        return _yaml(value)
    try:
        is_read_as_it_is = yaml.safe_load(f"[{value}]") == [value]
    except yaml.YAMLError:
        is_read_as_it_is = False
    return value if is_read_as_it_is else json.dumps(value, ensure_ascii=False)

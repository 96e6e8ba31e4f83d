"""Every YAML file of defaults loads into the dataclass that uses it, and gives all of its values."""

from __future__ import annotations

import dataclasses
import importlib
import typing
from pathlib import Path
from typing import Any

import pytest

from privasr_k2 import config
from privasr_k2.errors import ConfigError

ROOT = Path(__file__).resolve().parents[2]

#: The dataclass that a configuration's name stands for; a new conf/<name>.yaml has to be entered here.
CONFIGS = {
    "mini": "privasr_k2.corpora.mini:MiniConfig",
    "ami": "privasr_k2.corpora.ami:AmiConfig",
    "features": "privasr_k2.data.features:FeatureConfig",
    "lang": "privasr_k2.graph.build_lang:LangConfig",
    "lm_ngram": "privasr_k2.lm.train:NgramConfig",
    "graph": "privasr_k2.graph.nonterminals:ClassGraphConfig",
    "am_ctc": "privasr_k2.am.ctc:CtcConfig",
    "am_rnnt": "privasr_k2.am.rnnt:RnntConfig",
    "am_ctc_attention": "privasr_k2.am.ctc_attention:CtcAttentionConfig",
    "am_las": "privasr_k2.am.las:LasConfig",
    "decode_e2e": "privasr_k2.decoding.end_to_end:EndToEndConfig",
    "decode": "privasr_k2.decoding.jobs:DecodeConfig",
    "score": "privasr_k2.scoring.results:ScoreOptions",
    "nbest": "privasr_k2.decoding.nbest:NbestSearchConfig",
    "lm_lstm": "privasr_k2.lm.neural.files:LstmLmConfig",
    "lm_char_lstm": "privasr_k2.lm.neural.files:CharLstmLmConfig",
    "lm_transformer": "privasr_k2.lm.neural.files:TransformerLmConfig",
    "confidence": "privasr_k2.confidence.model:ConfidenceConfig",
    "apply_confidence": "privasr_k2.bin.apply_confidence:ApplyConfidenceOptions",
    "evaluate_confidence": "privasr_k2.bin.evaluate_confidence:EvaluateConfidenceOptions",
    "earnings21": "privasr_k2.corpora.earnings21:Earnings21Config",
    "lattices": "privasr_k2.decoding.lattices:LatticeConfig",
    "rescore_lattices": "privasr_k2.decoding.lattice_lists:RescoreLatticesConfig",
    "rescore": "privasr_k2.decoding.rescoring:GridConfig",
    "tag_entities": "privasr_k2.text.tagging:TagConfig",
    "sanitize": "privasr_k2.text.sanitized_release:SanitizeConfig",
    "declare_unprotected": "privasr_k2.bin.declare_unprotected:UnprotectedConfig",
    "split_text": "privasr_k2.text.splits:SplitConfig",
    "split_speech": "privasr_k2.data.sides:SidesConfig",
    "name_lists": "privasr_k2.bin.make_name_lists:NameListConfig",
    "replace_names": "privasr_k2.bin.replace_names:ReplaceNamesOptions",
    "score_nbest": "privasr_k2.bin.score_nbest:ScoreNbestOptions",
    "class_lm": "privasr_k2.lm.class_files:ClassLmConfig",
    "fma": "privasr_k2.lm.marginals:MarginalsConfig",
    "interpolate": "privasr_k2.lm.interpolate:InterpolationConfig",
    "approximate": "privasr_k2.lm.approximate:ApproximationConfig",
    "clients": "privasr_k2.federated.clients:DeviceConfig",
    "fedlm": "privasr_k2.federated.settings:FedLmConfig",
    "fmp": "privasr_k2.federated.fmp_settings:FmpConfig",
    "fmp_release": "privasr_k2.federated.fmp_release:FmpReleaseConfig",
    "fmp_background": "privasr_k2.federated.fmp_background:BackgroundConfig",
    "fmp_published": "privasr_k2.federated.fmp_settings:PublishedConfig",
    "fmp_audit": "privasr_k2.federated.fmp_settings:FmpAuditConfig",
    "fmp_timeline": "privasr_k2.federated.fmp_timeline:TimelineConfig",
    "finetune_lm": "privasr_k2.federated.server_training:FinetuneConfig",
    "dpsgd": "privasr_k2.dpsgd.settings:DpSgdConfig",
    "report": "privasr_k2.report.layout:Layout",
    "fedlm_tune": "privasr_k2.federated.fedlm_tuning:TuneConfig",
    "fedlm_audit": "privasr_k2.federated.fedlm_audit:AuditConfig",
    "inversion": "privasr_k2.attack.settings:InversionConfig",
    "report_inversion": "privasr_k2.attack.settings:InversionReportConfig",
    "membership": "privasr_k2.attack.settings:MembershipConfig",
    "audit_pate": "privasr_k2.attack.settings:VoteAuditConfig",
    "audit_dpsgd": "privasr_k2.attack.settings:MarkAuditConfig",
    "shards": "privasr_k2.pate.shards:ShardsConfig",
    "votes": "privasr_k2.pate.votes:VotesConfig",
    "pate": "privasr_k2.pate.aggregate:AggregateConfig",
    "vote_tokens": "privasr_k2.pate.tokens:TokenPoolConfig",
    "vote_plan": "privasr_k2.pate.plan:VotePlanConfig",
    "earnings21_clients": "privasr_k2.corpora.earnings21_clients:Earnings21ClientsConfig",
    "heads": "privasr_k2.pate.heads:HeadConfig",
    "student": "privasr_k2.pate.student_data:StudentPart",
}

#: Folders of layers above conf/*.yaml, each with files of the same names (docs/design.md).
LAYERS = ("conf/*/**/*.yaml", "egs/*/conf/**/*.yaml")

# Layers that a recipe puts upon the defaults of another name.
UPON = {"fmp_tune": "fmp", "lm_tune": "lm_lstm", "am_finetune": "am_ctc", "public_lang": "lang"}


def resolve(name: str) -> type[Any]:
    """The dataclass of a configuration's name."""
    module, _, cls = CONFIGS[name].partition(":")
    return getattr(importlib.import_module(module), cls)


def nested(cls: type[Any]) -> list[type[Any]]:
    """A dataclass and all that its fields hold."""
    found = [cls]
    for hint in typing.get_type_hints(cls).values():
        for inner in (hint, *typing.get_args(hint)):
            if dataclasses.is_dataclass(inner) and isinstance(inner, type):
                found += nested(inner)
    return found


BASES = sorted((ROOT / "conf").glob("*.yaml"))
ABOVE = sorted(path for pattern in LAYERS for path in ROOT.glob(pattern))


def label(path: Path) -> str:
    """A test's name: the file's path in the repository."""
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("name", CONFIGS)
def test_every_configuration_has_its_defaults(name: str) -> None:
    assert (ROOT / "conf" / f"{name}.yaml").exists()


@pytest.mark.parametrize("path", BASES, ids=label)
def test_defaults_load(path: Path) -> None:
    assert path.stem in CONFIGS, f"enter {path.stem} in CONFIGS of {Path(__file__).name}"
    config.load(resolve(path.stem), [path])


@pytest.mark.parametrize("path", ABOVE, ids=label)
def test_layers_load_upon_their_defaults(path: Path) -> None:
    name = "report" if path.parent.name == "reports" else UPON.get(path.stem, path.stem)
    assert name in CONFIGS, f"{label(path)} is a layer of no conf/{name}.yaml"
    config.load(resolve(name), [ROOT / "conf" / f"{name}.yaml", path])


@pytest.mark.parametrize("path", BASES, ids=label)
def test_every_key_has_a_comment(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    bare = [
        line
        for above, line in zip(["", *lines], lines, strict=False)
        if line[:1].isalpha() and not line.endswith(":") and "#" not in line and not above.startswith("#")
    ]
    assert bare == []


@pytest.mark.parametrize("name", CONFIGS)
def test_defaults_stand_in_yaml_only(name: str) -> None:
    for cls in nested(resolve(name)):
        assert cls.__dataclass_params__.frozen, f"{cls.__name__} is not frozen"
        given = [
            field.name
            for field in dataclasses.fields(cls)
            if field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING
        ]
        assert given == [], f"defaults of {cls.__name__} belong in conf/"


@pytest.mark.parametrize("name", CONFIGS)
def test_an_unknown_key_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="unknown_key"):
        config.load(resolve(name), [ROOT / "conf" / f"{name}.yaml"], ["unknown_key=1"])

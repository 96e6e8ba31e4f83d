"""The verbs of attacks and audits from the command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from privasr_k2.am.checkpoints import load_recognizer, save_model
from privasr_k2.attack.inversion_files import read_inversion
from privasr_k2.fileio import read_json, write_json
from privasr_k2.pate.mechanisms import MechanismConfig, make_setting
from privasr_k2.pate.releases import about
from privasr_k2.pate.trainable_layers import trainable_layers
from privasr_k2.privacy.pate.sensitivity import Change
from privasr_k2.training.weights import load_tensors, save_tensors
from tests.support.attack_small import speak, write_cuts, write_lang
from tests.support.conf import section
from tests.support.end_to_end import model
from tests.support.verbs import call, refused

TOKENS = ["<blk>", "a", "b", "c"]
MEMBERS, OTHERS = ("anna", "bert", "carl"), ("uma", "vito", "wim")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Features of members and others, a lang folder, and two small models."""
    rng = np.random.default_rng(0)
    write_lang(tmp_path / "lang")

    def spoken(names: tuple[str, ...], voice: float) -> list[tuple[str, str, np.ndarray]]:
        return [
            (who, text, speak(text, rng, voice=voice))
            for who in names
            for text in ("AB", "C", "CA AB")
        ]

    write_cuts(tmp_path / "private", "train", spoken(MEMBERS, 1.0))
    write_cuts(tmp_path / "public", "train", spoken(("pia", "paul"), 0.0))
    write_cuts(tmp_path / "public", "dev", spoken(("dora",), 0.0))
    write_cuts(tmp_path / "public", "test", spoken(OTHERS, -1.0))
    for name, kind in (("one", "rnnt"), ("two", "las"), ("hybrid", "ctc_attention")):
        made = model(kind)
        save_model(tmp_path / name, made.spec, made.state_dict(), TOKENS)
    return tmp_path


def invert(folder: Path, out: str, models: tuple[str, ...], *settings: str) -> None:
    call(
        "invert_model --in-models",
        *(folder / one for one in models),
        (
            f"--in-background {folder}/public --in-lang {folder}/lang"
            f" --out-inversion {folder}/{out}.safetensors --device cpu"
            f" --config {section('inversion')}"
            " --set words=[AB,C] steps=5 restarts=2 queries=100 population=5"
        ),
        *settings,
    )


def test_from_models_to_figure_7(folder: Path) -> None:
    invert(folder, "ensemble", ("one", "two"), "weights=[0.25,0.75]")
    invert(folder, "scored", ("one",), "attack=black_box")
    invert(folder, "control", ("one",), "control=true")
    found = {
        name: read_inversion(folder / f"{name}.safetensors")
        for name in ("ensemble", "scored", "control")
    }
    assert [one.models for one in found.values()] == [2, 1, 1] and found["control"].control
    assert set(found["scored"].words) == {"AB", "C"} and found["scored"].words["C"].queries == 91
    call(
        "invert_model --in-inversions",
        *(folder / f"{n}.safetensors" for n in found),
        (
            f"--in-members {folder}/private --in-others {folder}/public --in-lang {folder}/lang"
            f" --in-aligner {folder}/hybrid --out-picture {folder}/f.svg"
            f" --out-values {folder}/inversion.json --config {section('compare_inversion')}"
            " --set permutations=19"
        ),
    )
    values = read_json(folder / "inversion.json")["systems"]
    assert list(values) == list(found)
    assert values["control"]["control"]
    assert values["scored"]["queries"] == 91
    alone = values["ensemble"]["alone"]
    assert (alone["members"], alone["others"]) == (3, 4)
    assert values["ensemble"]["less_control"] is not None
    assert (folder / "f.svg").read_text().count("<image") == 8


def test_inversion_refuses(folder: Path) -> None:
    for settings, complaint in (
        (["words=[STOP]"], "the word 'STOP'"),
        (["weights=[1.0]"], "one for each of 2 models"),
        (["background_roles=[pool]"], "the role 'pool'"),
    ):
        with refused(complaint):
            invert(folder, "out", ("one", "two"), *settings)
    write_cuts(folder / "public", "train", [("pia", "AB", np.zeros((30, 3)))])
    with refused("expected 5 features, found 3"):
        invert(folder, "out", ("one",))
    assert not (folder / "out.safetensors").exists()


def test_others_are_no_members(folder: Path) -> None:
    invert(folder, "x", ("one",))
    shared = f"--in-inversions {folder}/x.safetensors --in-lang {folder}/lang"
    conf = f"--out-values {folder}/R.json --config {section('compare_inversion')}"
    private, public = folder / "private", folder / "public"
    for members, others, more, message in (
        (f"{private}", private, ["--set", "other_roles=[train]"], "3 speakers in both"),
        (f"{private} {private}", public, [], "--in-members"),
    ):
        with refused(message):
            given = f"--in-members {members} --in-others {others}"
            call(f"invert_model {shared} {conf} {given}", *more)


def write_shards(folder: Path, roster: dict[str, int]) -> None:
    about = {"format": "privasr_k2 shards 2", "seed": 1, "unit": "speaker", "roster": roster}
    about["persons"] = dict.fromkeys(roster, 1)
    write_json(folder / "shards.json", {**about, "teachers": max(roster.values())})


def test_membership(folder: Path) -> None:
    write_shards(folder, {"anna": 1, "bert": 2, "carl": 1})
    shared = (
        f"--in-models {folder}/one {folder}/two --in-feats {folder}/private"
        f" --in-lang {folder}/lang --device cpu --config {section('membership')}"
    ).split()
    out = ["--out-membership", folder / "membership.json"]
    call("infer_membership", *shared, *out, "--in-shards", folder / "shards.json")
    found = read_json(folder / "membership.json")["teachers"]
    assert (found["units"], found["teachers"]) == (3, 2)
    others = ["--in-others", folder / "public", "--in-reference", folder / "hybrid"]
    call("infer_membership", *shared, *out, *others)
    models = read_json(folder / "membership.json")["models"]
    assert list(models) == ["one", "two"] and models["one"]["others"] == 4
    for wrong in ([], [*others, "--in-shards", folder / "shards.json"]):
        with refused("one of them"):
            call("infer_membership", *shared, *out, *wrong)
    with refused("that of the shards"):
        utterances = f"--set unit=utterance --in-shards {folder}/shards.json"
        call("infer_membership", *shared, *out, utterances)


def test_members_beyond_what_needs_no_model(folder: Path) -> None:
    """Noise and the blind baseline stand beside the losses; not where shards are asked for."""
    shared = (
        f"--in-models {folder}/one {folder}/two --in-feats {folder}/private"
        f" --in-lang {folder}/lang --device cpu --config {section('membership')}"
        f" --out-membership {folder}/membership.json"
    )
    more = "--set strengths=[0.1,0.3] copies=1 folds=2 replicates=50 utterances=2"
    others = f"--in-others {folder}/public --in-reference {folder}/hybrid"
    call("infer_membership", shared, others, more)
    found = read_json(folder / "membership.json")
    for told in found["models"].values():
        for attack in (told, told["perturbed"]):
            # Nothing is drawn from three people.
            assert attack["beyond_blind_interval"] is None and attack["beyond_blind_speakers"] == 3
            assert attack["members"] == 3 and attack["others"] == 4
    assert found["blind"]["members"] == 3
    write_json(folder / "shards.json", {"roster": {}})
    with refused("expected losses alone"):
        call("infer_membership", shared, f"--in-shards {folder}/shards.json", more)


def test_recognizers_are_attacked_beside_a_public_one_of_ctc(folder: Path) -> None:
    shared = (
        f"--in-models {folder}/one --in-canaries {folder}/private --in-feats {folder}/private"
        f" --in-lang {folder}/lang --out-attacks {folder}/attacks.json --device cpu"
        f" --config {section('attack_recognizer')}"
    )
    with refused("--in-lms: expected 0, one for each model where --in-public-lm is given, found 1"):
        call("attack_recognizer", shared, f"--in-reference {folder}/hybrid --in-lms {folder}/lm")
    with refused("a reference of CTC"):
        call("attack_recognizer", shared, f"--in-reference {folder}/two")
    with refused("name the folder of plant_canaries"):
        call("attack_recognizer", shared, f"--in-reference {folder}/hybrid")


def heads_and_wholes(folder: Path, tokens: list[str]) -> tuple[str, ...]:
    """Three heads in ``heads/``, and the names of the same teachers as whole models."""
    torch.manual_seed(0)
    made = model("rnnt")
    save_model(folder / "heads" / "encoder", made.spec, made.state_dict(), tokens)
    encoder = load_recognizer(folder / "heads" / "encoder")
    layers = trainable_layers(encoder, "output")  # type: ignore[arg-type]
    weights = load_tensors(folder / "heads" / "encoder" / "model.safetensors")
    heads = {
        name: torch.stack([weights[name] + torch.randn(weights[name].shape) for _ in range(3)])
        for name in layers.names
    }
    save_tensors(folder / "heads" / "heads.safetensors", heads, {"trained": "output"})
    for k in range(3):
        whole = {**weights, **{name: value[k] for name, value in heads.items()}}
        save_model(folder / f"whole_{k + 1}", made.spec, whole, tokens)
    return tuple(f"whole_{k}" for k in (1, 2, 3))


def test_a_head_decodes_as_a_whole_model_does(folder: Path) -> None:
    whole = heads_and_wholes(folder, ["<blk>", "▁a", "b", "▁c"])[1]
    found = []
    given = ["--in-feats", folder / "public", "--device", "cpu", "--config", section("decode_e2e")]
    for name, head in (("heads", 2), (whole, 0), ("heads", 1)):
        out = ("--in-model", folder / name, "--out-hyps", folder / "hyps.jsonl")
        call("decode", *given, *out, "--set", "role=test", f"head={head}")
        found.append((folder / "hyps.jsonl").read_text())
    assert found[0] == found[1] != found[2]
    with refused("expected heads 1 to 3, found 4 asked for"):
        call("decode", *given, *out, "--set", "head=4")


def test_heads_of_a_public_model(folder: Path) -> None:
    write_shards(folder, {"anna": 1, "bert": 2, "carl": 3})
    wholes = heads_and_wholes(folder, TOKENS)
    for out, of_heads, models in (("all", (), wholes), ("second", ("heads=[2]",), wholes[1:2])):
        invert(folder, out, ("heads",), *of_heads)
        invert(folder, "expected", models)
        found, expected = (
            read_inversion(folder / f"{name}.safetensors") for name in (out, "expected")
        )
        assert found.models == len(models)
        assert np.allclose(found.words["AB"].features, expected.words["AB"].features, atol=1e-3)
        log_likelihood = expected.words["C"].log_likelihood
        assert found.words["C"].log_likelihood == pytest.approx(log_likelihood, abs=1e-3)
    shared = (
        f"--in-feats {folder}/private --in-lang {folder}/lang --device cpu"
        f" --config {section('membership')} --out-membership {folder}/membership.json"
    ).split()
    inferred = []
    for models in ((folder / "heads",), tuple(folder / one for one in wholes)):
        call("infer_membership --in-models", *models, f"--in-shards {folder}/shards.json", *shared)
        inferred.append(read_json(folder / "membership.json")["teachers"])
    assert inferred[0] == inferred[1] and inferred[0]["teachers"] == 3
    with refused("name --in-shards with heads"):
        call(f"infer_membership --in-models {folder}/heads --in-others {folder}/public", *shared)


def labels(folder: Path, mechanism: str, units: int = 2) -> Path:
    """What a release of labels tells about itself."""
    config = MechanismConfig(
        data="x/train",
        mechanism=mechanism,
        epsilon=8.0,
        delta=1e-5,
        published_scale="none",
        noise=3.0,
        max_answers=5,
        max_sigma=0.0,
        min_answers=0,
        max_queries=0,
        threshold=11.0,
        threshold_ratio=1.5,
    )
    pool = dict(teachers=15, available=5, largest_weight=1.0, utterances=5)
    setting = make_setting(config, change=Change.of(units), **pool)
    who = {"vote": "utterance", "unit": "speaker", "teachers": 15, "units_in_a_shard": units}
    told = about(setting, release=None, **who, asked=5, answered=5, utterances=(5, 5))
    write_json(folder / mechanism / "labels.json", told)
    return folder / mechanism


@pytest.mark.parametrize(
    "mechanism",
    [
        *("gnmax", "lnmax", "gumbel_max", "confident_gnmax"),
        *("gaussian_posteriors", "laplace_posteriors"),
    ],
)
def test_audit_of_votes(tmp_path: Path, mechanism: str) -> None:
    place = labels(tmp_path, mechanism)
    call(
        f"audit --in-labels {place} --out-audit {tmp_path}/audit.json"
        f" --config {section('audit_pate')} --set draws=600"
    )
    found, told = read_json(tmp_path / "audit.json"), read_json(place / "labels.json")
    whole = found["tied"]["whole_release"]
    assert whole["claimed_epsilon"] == pytest.approx(told["epsilon"]["value"])
    assert whole["answers"] == 5
    for pair in (found[name] for name in ("tied", "at_threshold") if name in found):
        lower = pair["one_answer"]["epsilon_lower"]
        assert lower["sound"] < pair["one_answer"]["claimed_epsilon"]
    if mechanism != "confident_gnmax":  # where few tied votes are answered
        lower = found["tied"]["one_answer"]["epsilon_lower"]
        assert lower["broken"] > 1
        assert lower["noise_free"] == found["tied"]["one_answer"]["largest_possible"]


def test_a_vote_that_is_given_or_not_is_audited_as_such(tmp_path: Path) -> None:
    place = labels(tmp_path, "gnmax", units=1)
    call(
        f"audit --in-labels {place} --out-audit {tmp_path}/audit.json"
        f" --config {section('audit_pate')} --set draws=600"
    )
    found, told = read_json(tmp_path / "audit.json")["tied"], read_json(place / "labels.json")
    assert found["histograms"] == [[8, 7], [7, 7]] and told["sensitivity"] == {"l1": 1, "l2": 1.0}
    claimed = found["whole_release"]["claimed_epsilon"]
    assert claimed == pytest.approx(told["epsilon"]["value"])
    moved = read_json(labels(tmp_path / "moved", "gnmax") / "labels.json")
    assert claimed < moved["epsilon"]["value"] and moved["sensitivity"]["l1"] == 2
    lower = found["one_answer"]["epsilon_lower"]
    assert lower["sound"] < found["one_answer"]["claimed_epsilon"] and lower["noise_free"] > 1


def test_labels_without_a_claim_are_not_audited(tmp_path: Path) -> None:
    write_json(tmp_path / "labels.json", {"epsilon": None})
    with refused("labels with a claim"):
        call(
            f"audit --in-labels {tmp_path} --out-audit {tmp_path}/audit.json"
            f" --config {section('audit_pate')}"
        )


@pytest.mark.parametrize(
    ("speech", "clip_by"), [("false", "whole"), ("true", "whole"), ("false", "layer")]
)
def test_audit_of_dpsgd(folder: Path, speech: str, clip_by: str) -> None:
    steps = "2" if speech == "true" else "8"
    call(
        f"audit --in-private-feats {folder}/private --in-public-dev {folder}/public"
        f" --in-lang {folder}/lang --in-init {folder}/hybrid --out-audit {folder}/audit.json"
        f" --device cpu --config {section('dpsgd')} {section('audit_dpsgd')} --set"
        f" data=x/train noise=1.0 rate=0.5 steps={steps} marks=150 broken=30 speech={speech}"
        f" delta=1e-4 clip_by={clip_by}"
    )
    found = read_json(folder / "audit.json")
    lower = found["epsilon_lower"]
    assert lower["sound"] < found["claimed_epsilon"] and found["trials"] == 150
    if speech == "false":
        assert lower["sound"] <= lower["broken"]
        assert lower["noise_free"] == found["largest_possible"]


def test_a_training_without_a_claim_is_not_audited(folder: Path) -> None:
    with refused("name the claim"):
        call(
            f"audit --in-private-feats {folder}/private --in-public-dev {folder}/public"
            f" --in-lang {folder}/lang --in-init {folder}/hybrid"
            f" --out-audit {folder}/audit.json"
            f" --config {section('dpsgd')} {section('audit_dpsgd')}"
        )

"""The registry of aggregation mechanisms, and one that a single file adds."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from privasr_k2.attack.vote_audit import AUDITS
from privasr_k2.errors import ConfigError
from privasr_k2.fileio import read_json, read_jsonl
from privasr_k2.pate.votes import write_votes
from privasr_k2.plugins import Registry, load_plugins
from privasr_k2.privacy.ledger import entries_beside
from privasr_k2.privacy.pate.gnmax import gnmax_event
from privasr_k2.privacy.pate.mechanisms import POSTERIORS, VOTES, all_mechanisms, mechanism
from tests.support.conf import section
from tests.support.mechanism_registry import ROOT, run_verbs
from tests.support.small_pate import made_votes

TOY = '''
"""GNMax whose ties go to the last class: post-processing of noisy counts costs nothing."""
import numpy as np
from privasr_k2.privacy.discrete import DiscreteGaussianNoise
from privasr_k2.privacy.pate.gnmax import gnmax_event
from privasr_k2.privacy.pate.mechanisms import VOTES, Mechanism, register

def noise(values, scale, largest_weight, stream):
    return DiscreteGaussianNoise(scale).add(values) + np.arange(len(values)) * 2.0**-30

register(Mechanism(
    "last_max", "LastMax", VOTES, share=0.25, noise=noise,
    event=lambda of: gnmax_event(sigma=of.noise, answers=of.answers, discrete=True),
    exponent=lambda steps, scale: steps.astype(float) ** 2 / (2 * scale**2), tail=9.0,
))
'''


def test_one_file_adds_a_mechanism(tmp_path):
    plugin = tmp_path / "toy.py"
    plugin.write_text(TOY)
    # Votes on frames need no N-best lists; of a language folder only the hash is taken.
    votes, _ = made_votes([[9, 2, 0]] * 6, vote="frame", tokens=("<blk>", "▁a", "▁b"), digests=())
    write_votes(tmp_path / "votes" / "1.safetensors", votes)
    (tmp_path / "lang").mkdir()
    name = "--set mechanism=last_max"
    plan = (
        f"privacy_plan --kind queries --out-plan {tmp_path}/plan.json --config"
        f" {section('vote_plan')} {name} teachers=[15] agreement=[1.0] classes=2 epsilon=[8]"
    )
    labels = (
        f"aggregate_votes --in-private-votes {tmp_path}/votes --in-lang {tmp_path}/lang --out-dir"
        f" {tmp_path}/labels --out-privacy {tmp_path}/privacy.json --ledger {tmp_path}/ledger.json"
        f" --config {section('pate')} {name} data=toy/train delta=1e-3 max_answers=4"
    )
    audit = (
        f"audit --in-labels {tmp_path}/labels --out-audit {tmp_path}/audit.json"
        f" --config {section('audit_pate')} --set draws=600"
    )
    done = run_verbs(plan, labels, audit, plugin=plugin)
    assert done.returncode == 0, done.stderr
    assert read_json(tmp_path / "plan.json")["plans"][0]["votes"] > 0
    about = read_json(tmp_path / "labels" / "labels.json")
    assert about["mechanism"] == "last_max" and about["votes_answered"] == 4
    assert len([*read_jsonl(tmp_path / "labels" / "labels.jsonl")]) == 4
    [entry] = entries_beside(tmp_path / "privacy.json")
    assert entry.spending.event == gnmax_event(sigma=about["noise"], answers=4, discrete=True)
    lower = read_json(tmp_path / "audit.json")["tied"]["whole_release"]["epsilon_lower"]
    assert lower["sound"] < about["epsilon"]["value"] and lower["broken"] > 1
    # Without the file its labels are nobody's, and not those of another mechanism.
    done = run_verbs(audit, plugin=None)
    assert done.returncode == 2 and "lnmax, found 'last_max'" in done.stderr


def test_names_and_limits():
    assert all_mechanisms(aggregates=POSTERIORS) == ("gaussian_posteriors", "laplace_posteriors")
    assert all_mechanisms(tokens=True) == ("gnmax", "lnmax", "gumbel_max", "confident_gnmax")
    checked = [name for name in all_mechanisms() if mechanism(name).needs_threshold]
    assert checked == ["confident_gnmax"]
    assert {mechanism(name).audit for name in all_mechanisms()} <= set(AUDITS.names())
    with pytest.raises(ConfigError, match="confident_gnmax, gaussian_posteriors, gnmax"):
        mechanism("laplace")


@pytest.mark.parametrize(("teachers", "whole", "tokens"), [(15, 4.5, 2.25), (250, 75.0, 37.5)])
def test_default_noise(teachers, whole, tokens):
    assert mechanism("gnmax").default_noise(teachers) == whole
    assert mechanism("gnmax").default_noise(teachers, tokens=True) == tokens
    for name in ("lnmax", "gumbel_max"):
        assert mechanism(name).default_noise(teachers) == pytest.approx(whole * 2 / 3)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (dict(noise=None), "noise or choose"),
        (dict(choose=lambda *_: np.zeros(1)), "noise or choose"),
        (dict(noise=None, choose=lambda *_: np.zeros(1), aggregates=POSTERIORS), "choose is for"),
        (dict(share=1.0), "share must be"),
    ],
)
def test_mechanisms_that_cannot_be(changes, message):
    with pytest.raises(ValueError, match=message):
        replace(mechanism("gnmax"), **changes)


def test_names_are_read_without_heavy_packages():
    code = "import sys; from privasr_k2.privacy.pate.mechanisms import all_mechanisms as a;"
    code += " print(a());"
    code += " print({'torch', 'dp_accounting', 'scipy', 'opendp'} & set(sys.modules))"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [str(all_mechanisms()), "set()"]


@pytest.mark.parametrize("text", [None, "import nothing_like_it", "def"])
def test_plugins_that_do_not_run(tmp_path, monkeypatch, text):
    path = tmp_path / "broken.py"
    if text is not None:
        path.write_text(text)
    monkeypatch.setenv("PRIVASR_PLUGINS", str(path))
    with pytest.raises(ConfigError, match=r"broken\.py"):
        load_plugins()


def test_a_name_is_taken_once():
    registry = Registry[object]("thing")
    registry.add("a", registry)
    assert registry.add("a", registry) is registry and registry.names() == ("a",)
    with pytest.raises(ConfigError, match="thing a"):
        registry.add("a", object())


def test_noise_of_votes_breaks_ties_at_random():
    from privasr_k2.randomness import new_secret, noise_stream

    counts = np.zeros(4000, dtype=np.int64)
    for name in all_mechanisms(aggregates=VOTES, choose=None):
        noisy = mechanism(name).noise(counts, 0.01, 1.0, noise_stream(new_secret(), "test"))
        assert np.all(np.floor(noisy) == 0) and len(np.unique(noisy)) == 4000

"""The public inputs of every recipe's releases are public: from the declarations, nothing runs."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from privasr_k2.privacy import public_inputs
from privasr_k2.privacy.lineage import lineage
from privasr_k2.privacy.public_inputs import _violations
from privasr_k2.privacy.readings import Persons, Roles, Stage, in_role
from privasr_k2.recipe.front import declare
from privasr_k2.recipe.plan import values_of, without
from tests.support.made_stamps import privacy, stamp, work_folder
from tests.support.recipe_tools import ROOT

ROLES = ("train", "adapt", "dev", "test")
PARTS = {"background": "train", "adapt_": "adapt", "dev": "dev", "test": "test"}


def persons_in(path: Path, roles: Roles) -> Persons:
    """One person for each role of the corpus, and for each side of its train."""
    name, roles = in_role(str(path), roles)
    roles = ROLES if roles is None else roles
    part = "/".join(Path(name).parts[-3:])
    if "shards_" in name or part.endswith("/private"):
        roles = tuple("private" if role == "train" else role for role in roles)
    elif part.endswith("/public") and "sides_" in part:
        roles = tuple("public" if role == "train" else role for role in roles if role in "traindev")
    elif part.endswith("/pool"):
        roles = ("pool",)
    elif found := re.search(r"(nbest|timeline|decode)_(train|adapt|dev|test)", part):
        roles = (found[2],)
    elif found := re.search(r"data/text_\w+/(background|adapt_|dev|test)", name):
        roles = (PARTS[found[1]],)
    elif not re.search(r"data/(manifests|feats|public)\w*$", name):
        roles = ()
    return Persons(frozenset(roles), bool(roles))


def stages(work: Path, words: str) -> Iterator[Stage]:
    """The releases of a recipe whose stages have left stamps."""
    corpus, recipe, *more = shlex.split(words)
    declared = declare(corpus, recipe, [*more, "--work-dir", str(work), "--nj", "1"], ROOT, work)
    for stage in declared.stages:
        for task in stage.tasks:
            command = " ".join(without(task.argv, "--config", "--ledger"))
            for output in task.outputs:
                stamp(work, stage.number, command, output, task.configs)
            own = values_of(task.argv, "--out-privacy")
            if own:
                protects = task.argv[0] != "declare_unprotected"
                privacy(work / own[0], protected=protects)
                label = f"{stage.number} {stage.title}"
                yield Stage(label, tuple(task.argv), task.configs, work)


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    work = work_folder(tmp_path / "work")
    (work / "text").touch()
    monkeypatch.chdir(work)
    monkeypatch.setattr(public_inputs, "persons_in", persons_in)
    return work


@pytest.mark.parametrize(
    ("words", "releases"),
    [
        ("mini classlm --preset tiny", 2),
        ("mini classlm --decode false", 4),
        ("ami classlm --decode false", 4),
        ("mini compose --preset tiny", 3),
        ("mini fedlm --preset tiny", 6),
        ("mini fedlm --decode false --client speaker", 3),
        ("mini fedlm --decode false --adapt-role train --nnlm-text text", 3),
        ("earnings21 fedlm", 6),
        ("mini fmp --epsilons 1", 1),
        ("mini fmp --epsilons 1 --privacy-unit 'utterance user' --as-published true", 3),
        ("ami fmp --decode false --epsilons 1", 1),
        ("mini_pate pate", 2),
        ("mini_pate pate --vote token --mechanisms gnmax --public-threshold 0.9", 1),
        ("an4 dpsgd", 1),
    ],
)
def test_no_default_is_refused(work: Path, words: str, releases: int) -> None:
    found = [list(_violations(stage, None)) for stage in stages(work, words)]
    assert found == [[]] * releases


@pytest.mark.parametrize(
    ("words", "output"),
    [
        ("mini classlm", "exp/classlm_tdnn_phone/sanitized_text"),
        ("mini compose", "exp/compose_tdnn_phone/lm/federated"),
        ("mini fedlm", "exp/fedlm_tdnn_phone_char_lstm/lm/fl_all_noise_0.5"),
        ("mini fmp", "exp/fmp_tdnn_phone_speaker/eps_user_1/marginals.safetensors"),
        ("mini personal", "exp/personal_tdnn_phone_speaker_lstm/lm/federated"),
        ("mini_pate pate", "exp/pate_char_speaker_token_heads/ctc/gnmax_250_8/am"),
        ("mini_pate dpsgd", "exp/dpsgd_char_speaker/ctc/dpsgd_8/am"),
        ("an4 wordvotes --word-list text", "exp/wordvotes_phone/eps_8/graph"),
        ("an4 wordvotes --graph-text text --grammars true --word-list text --students true",
         "exp/wordvotes_phone_grammars/eps_8_student/am"),
        ("mini_pate wordvotes --arpa text", "exp/wordvotes_char/eps_8/graph"),
        ("mini_pate pate --graph true --word-votes 4 --word-list text",
         "exp/wordvotes_char/eps_4/graph"),
    ],
)  # fmt: skip
def test_what_may_leave_is_made_of_releases_and_public_data(
    work: Path, words: str, output: str
) -> None:
    """As docs/privacy.md has it."""
    assert list(stages(work, words))
    behind = lineage(work / output, work)
    assert behind.spent and (behind.unprotected, behind.unknown) == ([], [])


def test_a_vocabulary_of_private_text_is_found(work: Path) -> None:
    """The LM of public text knows the words of what the clients said."""
    words = "mini fedlm --decode false --adapt-role train --nnlm-text text"
    words += " --lang-options train_words=true"
    for stage in stages(work, words):
        [(place, why)] = _violations(stage, None)
        assert place.startswith("--in-public-init") and "stage 2 (prepare_lang)" in why


def test_the_override_is_given_to_every_release(work: Path) -> None:
    words = ["--decode", "false", "--public-from-private", "true", "--work-dir", str(work)]
    declared = declare("mini", "fedlm", words, ROOT, work).stages
    tasks = [task for stage in declared for task in stage.tasks]
    given = [task for task in tasks if "--public-from-private" in task.argv]
    assert given and given == [task for task in tasks if "--out-privacy" in task.argv]

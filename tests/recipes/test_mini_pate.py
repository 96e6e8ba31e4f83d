"""The recipes pate and dpsgd on two tiny corpora: the tables, the guarantees, resumed; and what
cannot be.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from privasr_k2.fileio import read_json
from privasr_k2.privacy.ledger import Ledger
from privasr_k2.privacy.lineage import lineage
from tests.support.recipe_tools import run_recipe, stage_lines

pytestmark = [pytest.mark.k2, pytest.mark.recipe]
EXP = "exp/pate_char_speaker_utterance/ctc"
TINY = ("--preset", "tiny", "--nj", "1")
OPTIONS = ("mini_pate", "pate", *TINY, "--teachers", "3", "--heads", "false", "--vote", "utterance",
           "--score-teachers", "1", "--epsilons", "8", "--mechanisms", "gnmax")  # fmt: skip


@pytest.mark.timeout(1500)  # some fifty stages
def test_from_two_corpora_to_the_tables(tmp_path: Path) -> None:
    done = run_recipe(*OPTIONS, "--work-dir", tmp_path)
    assert done.returncode == 0, done.stdout
    text = (tmp_path / EXP).parent.joinpath("RESULTS.md").read_text()
    rows = [
        json.loads(line)
        for line in (tmp_path / EXP).parent.joinpath("results.jsonl").read_text().splitlines()
    ]
    wer = {row["label"]: row for row in rows if row["metric"] == "wer" and row["part"] == "test"}
    assert {
        "public only",
        "not private",
        "teacher 1 of 3",
        "GNMax, 3 teachers, epsilon 8",
    } <= wer.keys()
    student = wer["GNMax, 3 teachers, epsilon 8"]
    assert (
        student["epsilon"] <= 8
        and student["unit"] == "speaker"
        and student["person_epsilon"] == student["epsilon"]
    )
    assert "Synthetic speech" in text
    sides = read_json(tmp_path / "data/sides_fbank/sides.json")
    people = [set(sides[side]["speakers"]) for side in ("private", "public", "pool")]
    assert all(people) and not (
        people[0] & people[1] or people[0] & people[2] or people[1] & people[2]
    )
    shards = read_json(tmp_path / "exp/shards_speaker/3/shards.json")
    assert set(shards["roster"]) == people[0]

    [entry] = Ledger(tmp_path / "privacy/ledger.json").entries()
    assert entry.spending.data == "mini_pate/train" and entry.spending.unit == "speaker"
    # All ways from the student back end in its release, or in what is public; not so from a
    # teacher.
    found = lineage(tmp_path / EXP / "gnmax_3_8/am", tmp_path)
    assert found.is_covered and len(found.spent) == 1, list(found.lines())
    assert not lineage(tmp_path / EXP / "teachers_3/1", tmp_path).is_covered
    audit = read_json(tmp_path / EXP / "gnmax_3_8/audit.json")
    assert "tied" in audit and json.dumps(audit["tied"])
    assert {"audit_lower", "auc"} <= {row["metric"] for row in rows}

    again = run_recipe(*OPTIONS, "--work-dir", tmp_path)
    stages = stage_lines(again.stdout)
    assert (
        again.returncode == 0 and stages and all(line.endswith("up to date") for line in stages)
    ), again.stdout
    # The baseline takes the public model over.
    done = run_recipe(
        "mini_pate",
        "dpsgd",
        *TINY,
        "--dpsgd-epsilons",
        "8",
        "--audit",
        "false",
        "--work-dir",
        tmp_path,
    )
    assert done.returncode == 0, done.stdout
    assert "public model, ctc ... up to date" in done.stdout and "DP-SGD, epsilon 8" in done.stdout
    assert len(Ledger(tmp_path / "privacy/ledger.json").entries()) == 2
    found = lineage(tmp_path / "exp/dpsgd_char_speaker/ctc/dpsgd_8/am", tmp_path)
    assert found.is_covered and len(found.spent) == 1, list(found.lines())


DRY = ("--dry-run", "true", "--preset", "tiny")


def test_all_that_can_be_asked_for_fits_together(tmp_path: Path) -> None:
    every = (
        "--models",
        "ctc rnnt ctc_attention las",
        "--teachers",
        "2 3",
        "--heads",
        "false",
        "--epsilons",
        "1 inf",
    )
    every += ("--vote", "utterance", "--published-scale", "figures")
    every += ("--mechanisms", "gnmax lnmax confident_gnmax gaussian_posteriors")
    every += ("--sweep-epsilons", "100", "--dpsgd-epsilons", "8 inf")
    every += ("--words", "yes", "--attacks", "white_box black_box")
    done = run_recipe("mini_pate", "pate", *every, *DRY, "--work-dir", tmp_path)
    assert done.returncode == 0, done.stdout
    for title in ("student, las/confident_gnmax_3_1", "student, rnnt/lnmax_2_1_figures",
                  "labels, ctc/clean_3", "posteriors of 2 teachers, ctc",
                  "DP-SGD, ctc_attention, epsilon inf",
                  "inversion, black_box, las control"):  # fmt: skip
        assert f"({title})" in done.stdout, title
    assert (
        "(student, ctc/gnmax_3_100)" in done.stdout
        and "(student, rnnt/gnmax_3_100)" not in done.stdout
    )
    alone = ("--heads", "false", "--self-trained", "false", "--unlabeled-data", "none")
    done = run_recipe("mini_pate", "pate", *alone, *DRY, "--work-dir", tmp_path)
    assert (
        done.returncode == 0
        and "N-best lists of the pool" not in done.stdout
        and "votes of" not in done.stdout
    )
    done = run_recipe("mini_pate", "pate", *DRY, "--work-dir", tmp_path)
    assert done.returncode == 0 and "(250 teachers as heads, ctc)" in done.stdout
    labels = done.stdout[done.stdout.index("(labels, ctc/gnmax_250_8)") :]
    labels = labels[: labels.index("(labels, ctc/lnmax_250_8)")]
    assert "exp/e2e_char/ctc/public/am" in labels, labels
    assert "(student, ctc/self_trained)" in done.stdout
    heads = ("--teachers", "2 3", "--words", "yes", "--per", "true")
    done = run_recipe("mini_pate", "pate", *heads, *DRY, "--work-dir", tmp_path)
    assert done.returncode == 0, done.stdout
    for said in (
        "membership in shards, ctc",
        "inversion, white_box, ctc teacher_3_1",
        "inversion, white_box, ctc ensemble_3",
        "decode test, ctc/teacher_3_2",
    ):
        assert f"({said})" in done.stdout, said
    results = done.stdout[done.stdout.index("(results)") :]
    for said in (
        "gnmax_2_8/audit.json",
        "membership_models.json",
        "inversion_white_box/inversion.json",
    ):
        assert said in results, said


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--epsilons", "0"), "--epsilons: expected a number above 0"),
        (
            ("--sweep-epsilons", "1 8"),
            "--sweep-epsilons: expected epsilons that --epsilons lacks, found 8",
        ),
        (("--teachers", "5 0"), "--teachers: expected a whole number of at least 1"),
        (("--threshold", "120"), "--threshold: expected"),
        (("--threshold", "50"), "--threshold: expected options that change something here"),
        (("--mechanisms", "noise"), "--mechanisms: expected one of gnmax, lnmax"),
        (("--models", ""), "--models: expected"),
        (("--vote", "frame", "--models", "las"), "only CTC has a token a frame"),
        (("--init", "scratch", "--heads", "true"), "add --heads false"),
        (
            ("--vote", "token", "--heads", "false", "--mechanisms", "gaussian_posteriors"),
            "gnmax lnmax",
        ),
        (
            ("--vote", "utterance", "--public-threshold", "0.8"),
            "--public-threshold: expected options that change",
        ),
        (("--vote", "utterance", "--top-k", "4"), "--top-k: expected options that change"),
        (("--token-type", "phone"), "add --token-type char"),
    ],
)
def test_what_cannot_be(options: tuple[str, ...], message: str, tmp_path: Path) -> None:
    done = run_recipe("mini_pate", "pate", *options, *DRY, "--work-dir", tmp_path)
    assert done.returncode == 2 and message in done.stdout, done.stdout
    assert "way out" in done.stdout


@pytest.mark.shared_data
def test_real_corpora_fit_together(shared_data: Path, tmp_path: Path) -> None:
    public = ("--public-dir", shared_data / "LibriSpeech")
    private = (
        "--corpus-dir",
        shared_data / "LibriSpeech",
        "--unlabelled",
        shared_data / "unlabelled",
    )
    for words in (
        ("an4", "pate", "--corpus-dir", shared_data / "an4", *public),
        ("librispeech", "pate", *private),
        ("librispeech", "dpsgd", *private),
        ("timit", "pate", "--corpus-dir", tmp_path, *public),
        (f"data:{shared_data}/an4", "pate", "--token-type", "char", "--feature", "auto"),
    ):
        done = run_recipe(*words, *DRY, "--work-dir", tmp_path / "work")
        assert done.returncode == 0 and "(results)" in done.stdout, done.stdout

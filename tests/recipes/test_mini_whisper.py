"""The recipe dpsgd with Whisper's decoder, on the tiny corpus: made-up weights, real commands."""

from __future__ import annotations

from pathlib import Path

import pytest

from privasr_k2.fileio import read_json, read_jsonl
from privasr_k2.privacy.lineage import lineage
from tests.support.recipe_tools import assert_up_to_date, check_names, recipe
from tests.support.tiny_decoders import save_hugging_face, tiny_decoder

pytestmark = [pytest.mark.k2, pytest.mark.recipe]


def test_everybody_of_train_is_protected(copied: Path, tmp_path: Path) -> None:
    whisper = tmp_path / "tiny_whisper"
    save_hugging_face(whisper, tiny_decoder(70))
    text = tmp_path / "text.txt"
    text.write_text("the ab abe that\n", encoding="utf-8")
    command = f"mini dpsgd --preset tiny --models whisper --encoder-model {whisper}"
    command += f" --token-type tokenizer --graph-text {text} --dpsgd-epsilons '8 inf'"
    recipe(command, "--work-dir", copied)
    exp = copied / "exp/dpsgd_tiny_whisper_tokenizer_speaker"
    rows = [row for row in read_jsonl(exp / "results.jsonl") if row["metric"] == "wer"]
    assert {row["system"] for row in rows} == {
        "whisper/public", "whisper/nonprivate", "whisper/dpsgd_8", "whisper/dpsgd_inf"
    }  # fmt: skip
    (protected,) = (row for row in rows if row["system"] == "whisper/dpsgd_8")
    assert 7.9 < float(protected["epsilon"]) <= 8 and protected["unit"] == "speaker"
    # Ten right guesses of ten show no more than 2.07, which the sound noise may reach by chance.
    audit = read_json(exp / "whisper/dpsgd_8/audit.json")["epsilon_lower"]
    assert audit["sound"] <= audit["broken"] and 2 < audit["broken"] < 2.1
    about = read_json(exp / "whisper/dpsgd_8/am/dpsgd.json")
    # Two blocks of three norms, and the last one; gains and biases of 64 channels.
    assert about["trained_parameters"] == 7 * 2 * 64
    assert_up_to_date(command, "--work-dir", copied)


@pytest.mark.timeout(1200)
def test_it_learns_public_speech_first(tmp_path: Path) -> None:
    whisper, work = tmp_path / "tiny_whisper", tmp_path / "work"
    save_hugging_face(whisper, tiny_decoder(70))
    (tmp_path / "text.txt").write_text("the ab abe that\n", encoding="utf-8")
    command = f"mini_pate dpsgd --preset tiny --nj 1 --models whisper --encoder-model {whisper}"
    command += f" --token-type tokenizer --graph-text {tmp_path / 'text.txt'} --dpsgd-epsilons 8"
    recipe(f"{command} --audit false --people '2 0'", "--work-dir", work)
    results = work / "exp/dpsgd_tiny_whisper_tokenizer_tuned_speaker_people"
    every = list(read_jsonl(results / "results.jsonl"))
    check_names(every)
    rows = [row for row in every if row["metric"] == "wer"]
    labels = {row["system"]: row["method"] for row in rows}
    assert labels == {
        "whisper/imported": "public",
        "whisper/public": "public",
        "whisper/nonprivate": "not_private",
        "whisper/nonprivate_2people": "not_private",
        "whisper/dpsgd_8": "dpsgd",
        "whisper/dpsgd_8_2people": "dpsgd",
    }
    pairs = {(row["system"], row["against"]) for row in every if row["against"]}
    assert {
        (f"whisper/{system}", f"whisper/{other}")
        for system in ("nonprivate", "nonprivate_2people", "dpsgd_8", "dpsgd_8_2people")
        for other in ("public", "imported")
    } <= pairs
    people = {row["system"]: row["value"] for row in every if row["metric"] == "people"}
    exp = work / "exp/dpsgd_tiny_whisper_tokenizer_tuned_speaker_2people"
    # Two of all of train: the pool is the corpus's own, and public speech another corpus's.
    everybody, two = (
        set(read_json(work / f"data/sides_tiny_whisper{some}/sides.json")["private"]["speakers"])
        for some in ("", "_2people")
    )
    about = read_json(exp / "whisper/dpsgd_8/am/dpsgd.json")
    assert about["units"] == len(two) == people["whisper/dpsgd_8_2people"] == 2
    assert two < everybody and people["whisper/dpsgd_8"] == len(everybody)
    # One noise: so many people have so much less of it in the mean.
    [measured] = [row for row in every if row["metric"] == "measured_wer"]
    assert measured["item"] == "2" and (results / "figures/people.svg").is_file()
    # Two people: the noise is large, and the learning rate small.
    assert about["highest_lr"] < 12
    model = lineage(exp / "whisper/dpsgd_8/am", work)
    assert model.is_covered and len(model.spent) == 1, list(model.lines())


def test_what_whisper_needs(copied: Path) -> None:
    said = recipe("mini dpsgd --preset tiny --models whisper", "--work-dir", copied, code=2)
    assert "--token-type tokenizer" in said
    said = recipe("mini dpsgd --preset tiny --models 'whisper ctc' --token-type tokenizer",
                  "--work-dir", copied, code=2)  # fmt: skip
    assert "whisper alone" in said
    command = "mini_pate pate --preset tiny --models whisper"
    assert "recipe dpsgd" in recipe(command, "--work-dir", copied, code=2)

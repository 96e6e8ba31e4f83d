"""Whole trainings on a few utterances: continued, finished, refused."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

from privasr_k2.am.checkpoints import load_model
from privasr_k2.data.manifests import load_cuts, save_cuts
from privasr_k2.dpsgd.settings import DpSgdConfig, noise_multiplier, spending
from privasr_k2.dpsgd.train import StepFiles, fingerprint_of, read_inputs, train_dpsgd
from privasr_k2.dpsgd.trainer import Trainer
from privasr_k2.errors import DataError, PrivacyError
from privasr_k2.fileio import read_json, read_jsonl
from privasr_k2.graph.lang import load_lang
from privasr_k2.privacy import release
from privasr_k2.training.weights import load_tensors, read_header
from tests.support.private_speech import config, made_data, saved_model
from tests.support.released import shape_of

Folders = tuple[Path, Path, Path]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    folder = tmp_path_factory.mktemp("corpus")
    _, feats, lang = made_data(folder)
    return feats, lang, saved_model(folder / "init", lang)


def run(
    folders: Folders,
    out: Path,
    setting: DpSgdConfig,
    *,
    stop: int | None = None,
    roster: Path | None = None,
) -> dict[str, torch.Tensor]:
    """Train as the verb does; ``stop``: the step that a kill prevents from being saved."""
    feats, lang, init = folders
    inputs = read_inputs(feats, feats, load_lang(lang), init, setting, roster)
    trainer = Trainer(inputs.model, inputs.data, setting, noise_multiplier(setting))
    fingerprint = fingerprint_of(inputs, setting)
    real = StepFiles.save

    def killed(files: StepFiles, trainer: Trainer, average: Any) -> None:
        if average.step == stop:
            raise KeyboardInterrupt
        real(files, trainer, average)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StepFiles, "save", killed)
        if not setting.claims:
            train_dpsgd(trainer, inputs, out, fingerprint, None)
        else:
            begun = release.begin(
                out.parent / "ledger.json",
                beside=out.parent / f"{out.name}_privacy.json",
                spending=spending(setting, len(inputs.data.units), noise_multiplier(setting)),
                fingerprint=fingerprint,
                max_epsilon=None,
            )
            with begun as found:
                train_dpsgd(trainer, inputs, out, fingerprint, found)
    return load_tensors(out / "model.safetensors")


@contextmanager
def watched_steps(value: Callable[[Trainer, Any], Any]) -> Iterator[list[Any]]:
    """What ``value`` gives for the trainer and its record after each step."""
    seen, real = [], Trainer.step

    def watched(self: Trainer, *given: Any) -> Any:
        step = real(self, *given)
        seen.append(value(self, step))
        return step

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Trainer, "step", watched)
        yield seen


def test_without_a_claim_it_learns_and_continues(folders: Folders, tmp_path: Path) -> None:
    setting = config("rate=1", "lr=0.03", "clip=1", "steps=16", "save_every=4", "average_share=0.5")
    whole = run(folders, tmp_path / "whole", setting)
    with pytest.raises(KeyboardInterrupt):
        run(folders, tmp_path / "cut", setting, stop=12)
    again = run(folders, tmp_path / "cut", dataclasses.replace(setting, save_every=3))
    assert all(torch.equal(again[name], value) for name, value in whole.items())
    log = [*read_jsonl(tmp_path / "whole" / "train_log.jsonl")]
    assert [record["step"] for record in log] == [4, 8, 12, 16]
    assert log[-1]["dev_loss"] < log[0]["dev_loss"] and "dev_token_errors" in log[-1]
    about = read_json(tmp_path / "whole" / "dpsgd.json")
    assert (about["claim"], about["units"], about["release"]) == (False, 4, None)
    load_model(tmp_path / "whole")


def test_a_claim_is_spent_once_however_often_it_is_killed(folders: Folders, tmp_path: Path) -> None:
    setting = config("noise=0.5", "rate=0.6", "average_share=0")
    out = tmp_path / "out"
    for stop in (3, 6):
        with pytest.raises(KeyboardInterrupt):
            run(folders, out, setting, stop=stop)
    saved = load_tensors(out / "checkpoints" / "latest.safetensors")
    made = run(folders, out, setting)
    [entry] = read_json(tmp_path / "ledger.json")["entries"]
    header = read_header(out / "checkpoints" / "latest.safetensors")
    assert header["fingerprint"] == entry["release"]  # no hash of what the units have said
    # It went on from what was saved before the kill, with the noise of the release.
    assert not torch.equal(saved["model/output.weight"], made["output.weight"])
    again = run(folders, out, setting)
    assert all(torch.equal(again[name], value) for name, value in made.items())
    (out / "dpsgd.json").unlink()
    (out / "checkpoints" / "latest.safetensors").unlink()
    with pytest.raises(PrivacyError, match="finished"):  # its key is gone
        run(folders, out, setting)


def test_a_release_of_an_earlier_version_is_not_made_again(
    folders: Folders, tmp_path: Path
) -> None:
    setting = config("noise=0.5", "rate=0.6", "average_share=0", "steps=2")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(release, "SCHEME", "")
        patch.setattr(f"{__name__}.fingerprint_of", lambda *_: "by another computation")
        made = run(folders, tmp_path / "out", setting)
    before = (tmp_path / "ledger.json").read_bytes()
    [entry] = read_json(tmp_path / "ledger.json")["entries"]
    with pytest.raises(PrivacyError, match=entry["release"]):
        run(folders, tmp_path / "out", setting)
    assert (tmp_path / "ledger.json").read_bytes() == before
    kept = load_tensors(tmp_path / "out" / "model.safetensors")
    assert all(torch.equal(kept[name], value) for name, value in made.items())


def test_a_training_that_clips_otherwise_is_another(folders: Folders, tmp_path: Path) -> None:
    shared = ("rate=0.6", "steps=4", "average_share=0", "save_every=2", "clip=0.01")
    whole, layer = (config(*shared, f"clip_by={by}") for by in ("whole", "layer"))
    with pytest.raises(KeyboardInterrupt):
        run(folders, tmp_path / "out", layer, stop=4)
    assert read_header(tmp_path / "out" / "checkpoints" / "latest.safetensors")["step"] == 2
    # Nothing of the steps that were clipped otherwise is continued.
    made, anew = (run(folders, tmp_path / name, whole) for name in ("out", "anew"))
    assert all(torch.equal(made[name], value) for name, value in anew.items())
    other = run(folders, tmp_path / "layer", layer)
    assert not all(torch.equal(made[name], value) for name, value in other.items())


def test_how_a_release_clips_stands_in_its_entry(folders: Folders, tmp_path: Path) -> None:
    shared = ("noise=0.5", "rate=0.6", "steps=2", "average_share=0")
    for by in ("layer", "whole"):
        run(folders, tmp_path / "out", config(*shared, f"clip_by={by}"))
        about = read_json(tmp_path / "out" / "dpsgd.json")
        assert about["clip_by"] == by and (about["layers"] > 1) == (by == "layer")
    entries = read_json(tmp_path / "ledger.json")["entries"]
    told = [entry["spending"]["released"] for entry in entries]
    assert len(told) == 2 and "layer by layer" in told[0] and "whole" in told[1]
    assert entries[0]["release"] != about["release"] == entries[1]["release"]


def test_a_killed_step_is_made_again_with_the_same_noise(folders: Folders, tmp_path: Path) -> None:
    setting = config("noise=0.5", "rate=0.6", "steps=3", "average_share=0")
    with watched_steps(lambda _, step: step.gradient) as seen:
        with pytest.raises(KeyboardInterrupt):
            run(folders, tmp_path / "out", setting, stop=3)
        run(folders, tmp_path / "out", setting)
    assert len(seen) == 6 and not torch.equal(seen[0], seen[1])
    assert all(torch.equal(a, b) for a, b in zip(seen[:3], seen[3:]))


def test_the_average_of_the_last_steps(folders: Folders, tmp_path: Path) -> None:
    with watched_steps(lambda made, _: made.trained["output.weight"].detach().clone()) as each:
        made = run(folders, tmp_path / "out", config("rate=1", "average_share=0.5"))
    expected = torch.stack(each[3:]).double().mean(0).float()
    torch.testing.assert_close(made["output.weight"], expected)


def test_scratch_keeps_form_and_normalization(folders: Folders) -> None:
    feats, lang, init = folders
    settings = (config(), config("init=scratch", "seed=5"))
    made = (read_inputs(feats, feats, load_lang(lang), init, setting) for setting in settings)
    old, new = (inputs.model.state_dict() for inputs in made)
    same = {name for name, value in new.items() if torch.equal(value, old[name])}
    assert {"mean", "deviation"} <= same and "output.weight" not in same
    assert float(new["deviation"][0]) == pytest.approx(0.7)


def test_fingerprints_tell_what_changes_weights(folders: Folders) -> None:
    feats, lang, init = folders

    def of(*changes: str) -> str:
        setting = config(*changes)
        return fingerprint_of(read_inputs(feats, feats, load_lang(lang), init, setting), setting)

    assert of() == of("save_every=7") == of("memory_gb=0") != of("seed=2")
    others = ("clip=2", "clip_by=layer", "unit=utterance", "init=scratch")
    assert len({of(), *map(of, others)}) == 5
    setting = config()
    inputs = read_inputs(feats, feats, load_lang(lang), init, setting)
    inputs.data.speech.features("train-0")[0, 0] += 1  # which is kept in memory
    assert fingerprint_of(inputs, setting) != of()


def test_inputs_that_do_not_fit(folders: Folders, tmp_path: Path) -> None:
    feats, lang, init = folders
    with pytest.raises(DataError, match="an acoustic model"):
        read_inputs(feats, feats, load_lang(lang), tmp_path, config())
    (tmp_path / "other").mkdir()
    for name in ("words.txt", "lexicon.txt"):
        (tmp_path / "other" / name).write_text((lang / name).read_text())
    (tmp_path / "other" / "tokens.txt").write_text("<blk> 0\na 1\nc 2\nb 3\n")
    with pytest.raises(DataError, match="tokens of the lang folder"):
        read_inputs(feats, feats, load_lang(tmp_path / "other"), init, config())


def without_a_speaker(feats: Path, folder: Path) -> Path:
    """The same features without those of one speaker."""
    folder.mkdir()
    cuts = {role: [*load_cuts(feats, role)] for role in ("train", "dev")}
    gone = cuts["train"][0].supervisions[0].speaker
    cuts["train"] = [cut for cut in cuts["train"] if cut.supervisions[0].speaker != gone]
    for role, kept in cuts.items():
        save_cuts(kept, folder, role)
    return folder


def test_the_divisor_and_the_rate_are_those_of_the_roster(folders: Folders, tmp_path: Path) -> None:
    """Noise of the released weights would tell the number of speakers with data."""
    feats, lang, init = folders
    setting = config("noise=3", "rate=0.5", "steps=4", "optimizer=sgd", "most_drift=1e-3")
    fewer = without_a_speaker(feats, tmp_path / "feats")
    listed = sorted({cut.supervisions[0].speaker for cut in load_cuts(feats, "train")})
    (tmp_path / "roster").write_text("".join(f"{name}\n" for name in listed))

    def scales(of: Path, roster: Path | None) -> tuple[float, float]:
        inputs = read_inputs(of, of, load_lang(lang), init, setting, roster)
        trainer = Trainer(inputs.model, inputs.data, setting, noise=3.0)
        return trainer.optimizer.expected_batch_size, trainer.highest_lr

    assert scales(feats, tmp_path / "roster") == scales(fewer, tmp_path / "roster")
    assert scales(feats, None) != scales(fewer, None)  # their number is public without a roster
    (tmp_path / "roster").write_text("somebody\n")
    with pytest.raises(DataError, match="complete the roster"):
        scales(feats, tmp_path / "roster")


@pytest.mark.parametrize("listed", [False, True])
def test_without_one_speaker_the_released_folder_has_the_same_form_and_times(
    folders: Folders, tmp_path: Path, listed: bool
) -> None:
    setting = config("noise=0.5", "rate=0.6", "steps=4", "save_every=1")
    feats, lang, init = folders
    fewer, roster = without_a_speaker(feats, tmp_path / "feats"), None
    if listed:
        roster = tmp_path / "roster"
        said = {cut.supervisions[0].speaker for cut in load_cuts(feats, "train")}
        roster.write_text("".join(f"{name}\n" for name in sorted(said)))
    found = []
    for name, given in (("with", feats), ("without", fewer)):
        folder = tmp_path / name / "out"
        run((given, lang, init), folder, setting, roster=roster)
        [entry] = read_json(tmp_path / name / "ledger.json")["entries"]
        found.append(shape_of(folder, entry["time"]))
        if not listed:
            found[-1]["dpsgd.json"][1].pop("units")  # in the guarantee: it is not hidden
    assert found[0] == found[1] and "train_log.jsonl" in found[0]
    assert all((of if path == "." else of[0]) == 0 for path, of in found[0].items())

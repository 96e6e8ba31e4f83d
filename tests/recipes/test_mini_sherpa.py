"""The tiny corpus in sherpa-onnx, by the walk of docs/export.md: the words that we find."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

from privasr_k2.data.manifests import load_cuts
from privasr_k2.fileio import read_json, read_jsonl
from tests.support.recipe_tools import EXP, ROOT, transcripts
from tests.support.verbs import run

pytestmark = [pytest.mark.k2, pytest.mark.recipe]
sherpa_onnx = pytest.importorskip("sherpa_onnx")
pytest.importorskip("onnx")


def walk() -> tuple[str, str]:
    """The command that exports, and the program, of the page."""
    page = (ROOT / "docs/export.md").read_text(encoding="utf-8")
    section = page.partition("## From a recipe to sherpa-onnx")[2].partition("\n## ")[0]
    shell, program = re.findall(r"```(?:bash|python)\n(.*?)```", section, re.DOTALL)[:2]
    [command] = [line for line in shell.splitlines() if line.startswith("privasr export")]
    assert len((shell + program).splitlines()) <= 15
    return command.removeprefix("privasr "), program


def printed(program: str) -> str:
    """What a program prints."""
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        exec(program, {})
    return shown.getvalue().strip()


def two_best(work: Path, out: Path) -> dict[str, list[dict]]:
    """The two best hypotheses of each utterance of test, at the LM weight that dev chose."""
    sections = ["common.yaml#decode", "presets/tiny.yaml#decode", "common.yaml#nbest"]
    config = [f"{ROOT}/conf/{section}" for section in sections]
    run("decode --config", *config, "--in-model", work / EXP / "am", "--in-graph",
        work / "data/graph_phone", "--in-weights", work / EXP / "weights.json", "--in-feats",
        work / "data/feats_fbank", "--out-nbest", out, "--set role=test num_paths=2")  # fmt: skip
    return {record["id"]: record["hyps"] for record in read_jsonl(out)}


def is_tie(hyps: list[dict], words: str, lm_weight: float) -> bool:
    """Whether ``words`` are the second best, and only what rounding moves behind the best."""
    first, second = (hyp["am_score"] + lm_weight * hyp["lm_scores"]["graph"] for hyp in hyps)
    return hyps[1]["words"] == words and first - second < 0.05


def test_the_walk_finds_our_words(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command, program = walk()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "egs").mkdir()
    (tmp_path / "egs/mini").symlink_to(finished)
    run(command)
    readme = (tmp_path / "sherpa/README.md").read_text()
    active = int(re.search(r"ctc_max_active=(\d+)", readme)[1])
    recognizer = sherpa_onnx.OfflineRecognizer.from_zipformer_ctc(
        "sherpa/model.onnx", "sherpa/tokens.txt", ctc_graph="sherpa/HLG.fst", ctc_max_active=active
    )
    lines = (tmp_path / "sherpa/words.txt").read_text(encoding="utf-8").splitlines()
    words = {int(number): word for word, number in map(str.split, lines)}
    ours = {name: hyps[0][0] for name, hyps in transcripts(finished).items()}
    theirs = {}
    for cut in load_cuts(finished / "data/manifests", "test"):
        stream = recognizer.create_stream()
        stream.accept_waveform(cut.sampling_rate, cut.load_audio()[0])
        recognizer.decode_stream(stream)
        theirs[cut.id] = " ".join(words[number] for number in stream.result.words)
    assert len(ours) > 10 and len(set(ours.values())) > 5
    if other := {name for name, text in ours.items() if theirs[name] != text}:
        assert len(other) <= 0.1 * len(ours)
        weight = read_json(finished / EXP / "weights.json")["lm_weight"]
        best = two_best(finished, tmp_path / "two_best.jsonl")
        assert all(is_tie(best[name], theirs[name], weight) for name in other), other
    # The two programs that users copy: the page's, and the folder's own.
    name = next(name for name in sorted(ours) if theirs[name])
    audio = finished / f"data/manifests/audio/{name}.flac"
    assert printed(program.replace("FILE.wav", str(audio))) == theirs[name]
    own = re.search(r"```python\n(.*?)```", readme, re.DOTALL)[1]
    monkeypatch.chdir(tmp_path / "sherpa")
    assert printed(own.replace("FILE.wav", str(audio))) == theirs[name]


def test_a_model_alone_gives_tokens(finished: Path, tmp_path: Path) -> None:
    feats, out = finished / "data/feats_fbank", tmp_path / "sherpa"
    run("export --in-model", finished / EXP / "am", "--in-feats", feats, "--sherpa", out)
    recognizer = sherpa_onnx.OfflineRecognizer.from_zipformer_ctc(
        str(out / "model.onnx"), str(out / "tokens.txt")
    )
    cut = next(iter(load_cuts(finished / "data/manifests", "test")))
    stream = recognizer.create_stream()
    stream.accept_waveform(cut.sampling_rate, cut.load_audio()[0])
    recognizer.decode_stream(stream)
    tokens = (out / "tokens.txt").read_text().split()[::2]
    assert stream.result.tokens and set(stream.result.tokens) <= set(tokens)

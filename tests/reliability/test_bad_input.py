"""A user's errors give one message (place, expected, found, way out), and nothing is lost."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.recipe_tools import EXP, ROOT, contents, kaldi_folder, run_recipe

pytestmark = [pytest.mark.k2, pytest.mark.recipe, pytest.mark.reliability]


@pytest.fixture(scope="module")
def sound(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small corpus as a Kaldi data directory without a fault."""
    return kaldi_folder(finished, tmp_path_factory.mktemp("kaldi") / "corpus")


@pytest.fixture
def corpus(sound: Path, tmp_path: Path) -> Path:
    """A copy of it, to be damaged."""
    return Path(shutil.copytree(sound, tmp_path / "corpus"))


def one_message(output: str, *words: str) -> None:
    """The output has an error of ours with all its parts, and no traceback."""
    assert "Traceback" not in output, output
    for word in ("expected", "found", "way out", *words):
        assert word in output, (word, output)


def stages(work: Path, last: int, *more: object) -> list[object]:
    return ["--work-dir", work, "--stop-stage", str(last), "--preset", "tiny", *more]


def test_the_small_corpus_is_sound(corpus: Path, tmp_path: Path) -> None:
    done = run_recipe(f"data:{corpus}", "ctc", *stages(tmp_path / "work", 1))
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--sage", "3"], ["--sage", "--stage"]),
        (["--stage"], ["--stage", "a value"]),
        (["--stage", "three"], ["--stage", "a whole number", "three"]),
        (["--dry-run", "maybe"], ["true or false", "maybe"]),
        (["--preset", "large"], ["tiny, demo, small, paper", "large"]),
        (["--token-type", "bpe"], ["phone, char, tokenizer or bpe_N", "'bpe'"]),
        (["--encoder", "lstm"], ["blstm, conformer, tdnn", "'lstm'"]),
        (["--avg", "-3"], ["--avg", "a whole number of at least 1", "-3"]),
        (["--max-duration", "0"], ["--max-duration", "a number above 0", "'0'"]),
        (["extra"], ["extra"]),
    ],
)
def test_options(arguments: list[str], words: list[str], copied: Path) -> None:
    before = contents(copied)
    done = run_recipe("mini", "ctc", "--work-dir", copied, *arguments)
    assert done.returncode == 2
    one_message(done.stdout, *words)
    assert contents(copied) == before


def test_missing_corpus(tmp_path: Path) -> None:
    for arguments in (
        [f"data:{tmp_path}/nothing", "ctc"],
        ["librispeech", "ctc", "--corpus-dir", tmp_path / "nothing"],
    ):
        done = run_recipe(*arguments, "--work-dir", tmp_path / "work")
        assert done.returncode == 2
        one_message(done.stdout, "nothing")


def truncate_audio(corpus: Path) -> str:
    """Cut a flac file in the middle."""
    path = sorted((corpus / "train/audio").glob("*.flac"))[2]
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    return path.name


def lose_audio(corpus: Path) -> str:
    """Remove an audio file."""
    path = sorted((corpus / "train/audio").glob("*.flac"))[0]
    path.unlink()
    return path.name


def edit(name: str, change: Callable[[list[bytes]], list[bytes]]) -> Callable[[Path], str]:
    """A damage to the lines of train/NAME."""

    def damage(corpus: Path) -> str:
        path = corpus / "train" / name
        path.write_bytes(b"".join(change(path.read_bytes().splitlines(keepends=True))))
        return f"train/{name}"

    return damage


def other_rate(corpus: Path) -> str:
    """Write one file at 8 kHz."""
    import soundfile

    path = sorted((corpus / "train/audio").glob("*.flac"))[1]
    samples, _ = soundfile.read(path)
    soundfile.write(path, samples[::2], 8000)
    return "8000"


DAMAGES = {
    "truncated flac": truncate_audio,
    "empty text": edit("text", lambda lines: [lines[0].split()[0] + b"\n", *lines[1:]]),
    "text that is not UTF-8": edit(
        "text", lambda lines: [lines[0], lines[1].rstrip() + b" caf\xe9\n", *lines[2:]]
    ),
    "duplicate ids": edit("text", lambda lines: [lines[0], lines[0], *lines[1:]]),
    "wrong sampling rate": other_rate,
    "unsorted": edit("utt2spk", lambda lines: lines[::-1]),
    "a pipe": edit("wav.scp", lambda lines: [lines[0].split()[0] + b" cat x.wav |\n", *lines[1:]]),
    "missing audio": lose_audio,
}


@pytest.mark.parametrize("kind", DAMAGES)
def test_damaged_corpus(kind: str, corpus: Path, sound: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    # What an earlier, sound version of the corpus has given is still there after the failure.
    shutil.copytree(sound, tmp_path / "sound" / "corpus")
    place = DAMAGES[kind](corpus)
    damaged = contents(corpus)
    done = run_recipe(f"data:{corpus}", "ctc", *stages(work, 1))
    assert done.returncode == 2
    one_message(done.stdout, place)
    assert not (work / "data/manifests").exists()
    assert contents(corpus) == damaged


def test_a_corpus_damaged_later_leaves_earlier_outputs(corpus: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    arguments = (f"data:{corpus}", "ctc", *stages(work, 1))
    assert run_recipe(*arguments).returncode == 0
    before = contents(work / "data")
    truncate_audio(corpus)
    done = run_recipe(*arguments, "--force", "true")
    assert done.returncode == 2
    one_message(done.stdout)
    after = contents(work / "data")
    assert b"truncated audio" in after.pop("problems.tsv")  # what there is to mend
    assert after == before


def test_lexicon_without_the_words(corpus: Path, tmp_path: Path) -> None:
    (corpus / "conf").mkdir()
    (corpus / "conf/lang.yaml").write_text("g2p: none\ncmudict: none\n")
    lexicon = tmp_path / "lexicon.txt"
    lexicon.write_text("zebra Z IY B R AH\n")
    more = ("--lexicon", lexicon)
    done = run_recipe(f"data:{corpus}", "ctc", *stages(tmp_path / "work", 2, *more))
    assert done.returncode == 2
    one_message(done.stdout, "lexicon")
    assert not (tmp_path / "work/data/lang_phone").exists()


def test_arpa_with_a_broken_line(copied: Path, tmp_path: Path) -> None:
    import gzip

    text = gzip.decompress((copied / "data/lm/phone.arpa.gz").read_bytes()).decode().splitlines()
    number = text.index("\\2-grams:") + 3
    text[number] = "what is this"
    broken = tmp_path / "broken.arpa"
    broken.write_text("\n".join(text) + "\n")
    before = contents(copied)
    done = run_recipe("mini", "ctc", "--preset", "tiny", "--work-dir", copied, "--arpa", broken)
    assert done.returncode == 2
    one_message(done.stdout, f"broken.arpa:{number + 1}")
    assert contents(copied) == before


@pytest.mark.parametrize(
    ("stage", "folder"), [(1, "data/feats_fbank"), (4, "data/graph_phone"), (5, f"{EXP}/am")]
)
def test_full_disk(stage: int, folder: str, copied: Path) -> None:
    def small_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    before = contents(copied / folder)
    more = ("--force", "true", "--stage", str(stage))
    done = run_recipe("mini", "ctc", *stages(copied, stage, *more), preexec_fn=small_files)
    assert done.returncode == 2, done.stdout
    one_message(done.stdout)
    assert contents(copied / folder) == before


@pytest.mark.skipif(
    shutil.which("setpriv") is None, reason="no setpriv to take root's privileges away"
)
def test_read_only_folder(copied: Path) -> None:
    before = contents(copied)
    for path in (copied, *copied.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    # Root may write anywhere, by privileges that are taken from this process and its children.
    privileges = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")
    without = privileges if os.geteuid() == 0 else ()
    recipe = "mini ctc --preset tiny --stage 9 --force true --work-dir"
    command = [*without, str(ROOT / "run.sh"), *recipe.split(), str(copied)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    for path in (copied, *copied.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    assert done.returncode == 2, done.stdout
    one_message(done.stdout, str(copied))
    assert contents(copied) == before

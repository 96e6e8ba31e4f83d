"""Manifests of lhotse, from recipes, from icefall and damaged."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from lhotse import (
    CutSet,
    LilcomChunkyWriter,
    NumpyFilesWriter,
    RecordingSet,
    SupervisionSet,
)
from lhotse.features import Fbank
from lhotse.features.io import KaldiWriter
from lhotse.recipes import prepare_librispeech

from privasr_k2.corpora.lhotse_checks import Checks
from privasr_k2.corpora.manifest_files import read_manifests
from privasr_k2.errors import DataError
from tests.support import trees

PART = "train-clean-100"


@pytest.fixture
def icefall(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A recipe's folder, with manifests as ``prepare.sh`` writes them: paths count from there."""
    root = tmp_path / "ASR"
    trees.librispeech(root / "download/LibriSpeech", [PART], speakers=2)
    monkeypatch.chdir(root)
    found = prepare_librispeech(
        "download/LibriSpeech", dataset_parts=[PART], output_dir="data/manifests"
    )[PART]
    cuts = CutSet.from_manifests(found["recordings"], found["supervisions"])
    cuts = cuts + cuts.perturb_speed(0.9)
    Path("data/fbank").mkdir()
    cuts = cuts.compute_and_store_features(
        Fbank(), f"data/fbank/librispeech_feats_{PART}", storage_type=LilcomChunkyWriter
    )
    cuts.to_file(f"data/fbank/librispeech_cuts_{PART}.jsonl.gz")
    monkeypatch.chdir(tmp_path)
    for path in (cuts_file(root), *pair(root)):  # lhotse takes the order of the file system
        rewrite(path, lambda records: sorted(records, key=lambda record: record["id"]))
    return root


def cuts_file(icefall: Path) -> Path:
    return icefall / f"data/fbank/librispeech_cuts_{PART}.jsonl.gz"


def pair(icefall: Path) -> list[Path]:
    kinds = ("recordings", "supervisions")
    return [icefall / f"data/manifests/librispeech_{kind}_{PART}.jsonl.gz" for kind in kinds]


def read(*files: Path, **settings) -> CutSet:
    checks = Checks(**settings)
    cuts = read_manifests(files, "part", checks)
    checks.report("the corpus", 1, "mend it")
    return cuts


def rewrite(path: Path, change: Callable[[list[dict]], list[dict]]) -> Path:
    records = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    text = "".join(f"{json.dumps(record)}\n" for record in change(records))
    path.write_bytes(gzip.compress(text.encode()))
    return path


def test_recordings_and_supervisions_are_the_cuts_of_lhotse(icefall: Path) -> None:
    cuts = read(*pair(icefall))
    assert [cut.id for cut in cuts] == ["1-9-0000", "1-9-0001", "2-9-0000", "2-9-0001"]
    assert {cut.custom["part"] for cut in cuts} == {"part"}
    assert cuts[0].custom["place"] == f"{pair(icefall)[1]}:1"
    recordings, supervisions = (
        kind.from_file(path).to_eager()
        for kind, path in zip((RecordingSet, SupervisionSet), pair(icefall))
    )
    for cut in cuts:
        source = recordings[cut.recording_id].sources[0].source
        assert cut.recording.sources[0].source == str(icefall / source)
        assert cut.supervisions[0].text == supervisions[cut.id].text
        assert cut.load_audio().shape == (1, cut.num_samples)


def test_icefalls_features_are_read_where_they_are(icefall: Path) -> None:
    cuts = read(cuts_file(icefall))
    assert len(cuts) == 8
    for cut in cuts:
        assert Path(cut.features.storage_path).is_absolute() and "ASR" in cut.features.storage_path
        assert cut.load_features().shape == (cut.num_frames, 80)
    assert all(cut.has_recording for cut in cuts)
    for path in (icefall / "download").rglob("*.flac"):
        path.unlink()
    assert not any(cut.has_recording for cut in read(cuts_file(icefall)))
    with pytest.raises(
        DataError, match=r"(?s)found 4:\n.*flac: expected audio for 1-9-0000, found no such"
    ):
        read(*pair(icefall))


@pytest.mark.parametrize("writer", [KaldiWriter, NumpyFilesWriter])
def test_other_storage(icefall: Path, writer: type, tmp_path: Path) -> None:
    with writer(tmp_path / "feats") as to:
        again = (
            CutSet.from_file(cuts_file(icefall))
            .drop_recordings()
            .with_features_path_prefix(icefall)
        )
        again = again.copy_feats(to)
    again.to_file(tmp_path / "cuts.jsonl.gz")
    for cut in read(tmp_path / "cuts.jsonl.gz"):
        assert cut.load_features().shape == (cut.num_frames, 80)


def test_long_recordings_become_a_cut_for_each_supervision(tmp_path: Path) -> None:
    from lhotse import MonoCut, Recording, SupervisionSegment

    recording = Recording.from_file(trees.noise(tmp_path / "long.wav", 3.0, file_format="WAV"))
    said = [
        SupervisionSegment(f"u{n}", recording.id, n, 1.0, text="x", speaker="s") for n in range(3)
    ]
    whole = MonoCut("whole", 0.0, 3.0, 0, recording=recording, supervisions=said)
    CutSet.from_cuts([whole]).to_file(tmp_path / "cuts.jsonl.gz")
    cuts = read(tmp_path / "cuts.jsonl.gz")
    assert [(cut.id, cut.start, cut.duration) for cut in cuts] == [
        (f"u{n}", n, 1.0) for n in range(3)
    ]


def test_speakers_that_are_not_named(icefall: Path) -> None:
    def nobody(records: list[dict]) -> list[dict]:
        return [{key: value for key, value in r.items() if key != "speaker"} for r in records]

    rewrite(pair(icefall)[1], nobody)
    with pytest.raises(DataError, match=r"jsonl.gz:1: expected a speaker of 1-9-0000, found none"):
        read(*pair(icefall))
    assert [cut.supervisions[0].speaker for cut in read(*pair(icefall), speaker="recording")] == [
        "1-9-0000", "1-9-0001", "2-9-0000", "2-9-0001",
    ]  # fmt: skip


def test_a_corpus_without_speakers_is_told_of_the_option(icefall: Path) -> None:
    def nobody(records: list[dict]) -> list[dict]:
        return [{key: value for key, value in r.items() if key != "speaker"} for r in records]

    rewrite(pair(icefall)[1], nobody)
    with pytest.raises(DataError, match=r"4 x no speaker: .* --corpus-options speaker=recording"):
        read(*pair(icefall))


def test_cuts_without_features_and_audio(tmp_path: Path) -> None:
    from lhotse import MonoCut, SupervisionSegment

    said = SupervisionSegment("u", "r", 0.0, 1.0, text="x", speaker="s")
    cuts = [MonoCut(f"c{n}", 0.0, 1.0, 0, supervisions=[said]) for n in range(2)]
    CutSet.from_cuts(cuts).to_file(tmp_path / "cuts.jsonl.gz")
    with pytest.raises(DataError, match="2 x neither features nor audio: store cuts with"):
        read(tmp_path / "cuts.jsonl.gz")


def test_what_lhotse_would_leave_out(icefall: Path) -> None:
    rewrite(pair(icefall)[0], lambda records: [*records[1:], records[1]])

    def late(records: list[dict]) -> list[dict]:
        return [*records[:2], {**records[2], "start": 9.0}, {**records[3], "channel": 1}]

    rewrite(pair(icefall)[1], late)
    with pytest.raises(DataError) as caught:
        read(*pair(icefall))
    for line in (
        "recording 1-9-0001: expected an id that stands once",
        "gz:1: expected a recording '1-9-0000' of 1-9-0000, found none",
        "gz:3: expected audio for 2-9-0000, found 1.20 s of audio, but 9 to 10.2 s are wanted",
        "gz:4: expected one channel of audio for 2-9-0001, found channels [1] of [0]",
    ):
        assert line in str(caught.value)


def test_other_audio_than_the_manifest_says(icefall: Path) -> None:
    path = icefall / "download/LibriSpeech/train-clean-100/1/9/1-9-0001.flac"
    trees.noise(path, 0.5)
    with pytest.raises(
        DataError, match=rf"{path}: expected 17600 samples .*found 8000 of 16000 Hz"
    ):
        read(*pair(icefall))


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("truncated", "expected a whole gzip file"),
        ("json", r"gz:2: expected one JSON object|gz:2: expected JSON"),
        ("item", r"gz:2: expected lhotse's cuts, or recordings and supervisions"),
        ("features", r"gz:1: expected a cut of one channel, .* found a Features"),
        ("empty", "expected cuts with supervisions, found none"),
        ("recordings", "expected cuts with supervisions, found none"),
        ("mixed", "found a MixedCut"),
        ("name", "found a file named cuts.pkl"),
        ("missing", "found no such file"),
    ],
)
def test_bad_manifests(icefall: Path, tmp_path: Path, kind: str, message: str) -> None:
    path = cuts_file(icefall)
    bad = path.with_name("cuts_bad.jsonl.gz")
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    if kind == "truncated":
        bad.write_bytes(path.read_bytes()[:-40])
    elif kind == "json":
        trees.gzipped(bad, lines[0], "{" + lines[1])
    elif kind == "item":
        trees.gzipped(bad, lines[0], '{"type": "MonoCut", "id": 3}')
    elif kind == "features":
        trees.gzipped(bad, json.dumps(json.loads(lines[0])["features"]))
    elif kind == "empty":
        trees.gzipped(bad)
    elif kind == "recordings":
        bad = pair(icefall)[0]
    elif kind == "mixed":
        CutSet.from_file(path).pad(duration=5.0).to_file(bad)
    else:
        bad = tmp_path / ("cuts.pkl" if kind == "name" else "none.jsonl.gz")
        if kind == "name":
            bad.write_bytes(b"\x80\x04N.")
    with pytest.raises(DataError, match=message):
        read(bad)


def features_stored(icefall: Path, **changes: str) -> Path:
    return rewrite(
        cuts_file(icefall),
        lambda records: [{**r, "features": {**r["features"], **changes}} for r in records],
    )


def test_storage_that_could_run_something(icefall: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="memory_raw, which may hold pickles"):
        read(features_stored(icefall, storage_type="memory_raw"))
    mark = tmp_path / "mark"
    for name in (f"touch {mark} |", f"x; touch {mark} |"):
        with pytest.raises(DataError, match="expected their file, found nothing at"):
            read(features_stored(icefall, storage_type="kaldiio", storage_path=name))
    scp = trees.lines(tmp_path / "feats.scp", f"1-9-0000 touch {mark} |")
    with pytest.raises(DataError, match="found commands, which are not run"):
        read(features_stored(icefall, storage_path=str(scp)))
    assert not mark.exists()


def test_audio_that_is_made_by_commands(icefall: Path) -> None:
    def piped(records: list[dict]) -> list[dict]:
        for record in records:
            source = record["sources"][0]
            source |= {"type": "command", "source": f"cat {icefall}/{source['source']}"}
        return records

    rewrite(pair(icefall)[0], piped)
    with pytest.raises(DataError, match="only with allow_pipes=true"):
        read(*pair(icefall))
    assert read(*pair(icefall), commands=True)[0].load_audio().shape == (1, 17600)

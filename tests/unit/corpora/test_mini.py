from __future__ import annotations

import json
from pathlib import Path

import pytest

from privasr_k2 import config
from privasr_k2.corpora.base import CorpusInput
from privasr_k2.corpora.mini import (
    CORPUS,
    MiniConfig,
    Parts,
    PartSize,
    further_texts,
    public_lists,
    public_texts,
    users_per_part,
    write_texts,
)
from privasr_k2.errors import ConfigError
from privasr_k2.text.name_lists import read_name_lists
from privasr_k2.text.tagged_files import read_tagged
from tests.support.conf import section

pytest.importorskip("lhotse")
pytest.importorskip("espeakng_loader")


@pytest.fixture(scope="module")
def layers() -> tuple[Path, Path]:
    return section("mini"), section("mini", "tiny")


@pytest.fixture(scope="module")
def tiny(layers: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict]:
    out_dir = tmp_path_factory.mktemp("mini")
    return out_dir, CORPUS.read(CorpusInput(None, out_dir, {}, layers, 1))


def names_in(sentences) -> list[tuple[str, str]]:
    names = []
    for sentence in sentences:
        words = sentence.text.split()
        for first, end, kind in sentence.entities:
            names.append((kind, " ".join(words[first:end]).rstrip(".,?")))
    return names


def sentences_of(users) -> list:
    return [sentence for said in users.values() for sentence in said]


def test_tiny_has_eight_to_twelve_minutes_and_no_user_in_two_parts(tiny):
    _, cuts = tiny
    assert list(cuts) == ["train", "adapt", "dev", "test"]
    users = {part: {cut.supervisions[0].speaker for cut in of} for part, of in cuts.items()}
    assert sum(map(len, users.values())) == len(set().union(*users.values())) == 12
    minutes = sum(cut.duration for of in cuts.values() for cut in of) / 60
    assert 8 <= minutes <= 12


def test_audio_is_what_the_cut_says(tiny):
    import soundfile

    _, cuts = tiny
    for part, of in cuts.items():
        for cut in of:
            assert cut.custom["part"] == part
            samples, rate = soundfile.read(cut.recording.sources[0].source, dtype="int16")
            assert (rate, samples.ndim, len(samples)) == (16000, 1, cut.recording.num_samples)
            assert 0 < abs(samples.astype(int)).max() < 32767
            assert 1.0 < cut.duration < 12.0
            assert len(cut.load_audio()[0]) == len(samples)


def test_normalization_keeps_the_number_of_words(tiny):
    _, cuts = tiny
    for of in cuts.values():
        for cut in of:
            text = cut.supervisions[0].text
            assert text[0] == text[0].upper() and text[-1] in ".?"
            assert text == cut.supervisions[0].custom["cased"]
            assert len(CORPUS.normalize(text).split()) == len(text.split())


def test_entities_name_what_they_span(layers):
    settings = config.load(MiniConfig, layers[:1])
    public = public_lists(settings)
    named = set(names_in(sentences_of(write_texts(settings, public)["test"])))
    assert {kind for kind, _ in named} == {"PER", "LOC", "ORG", "MISC"}
    on_list = sum(name in {n.text for n in public[kind]} for kind, name in named)
    assert 0.7 <= on_list / len(named) <= 0.9


def test_public_lists_are_ten_times_what_any_part_uses_and_know_no_user(layers):
    settings = config.load(MiniConfig, layers[:1])
    public = public_lists(settings)
    for users in write_texts(settings, public).values():
        used = set(names_in(sentences_of(users)))
        for kind, names in public.items():
            assert len({name.text for name in names}) == len(names)
            assert len(names) >= 10 * sum(k == kind for k, _ in used)
    habits = ["habits.coverage=0.1", "parts.train.utterances=3"]
    assert public_lists(config.load(MiniConfig, layers[:1], habits)) == public


def test_parts_differ_partly_in_their_names(layers):
    settings = config.load(MiniConfig, layers[:1])
    texts = write_texts(settings, public_lists(settings))
    used = {part: set(names_in(sentences_of(users))) for part, users in texts.items()}
    for part in ("adapt", "dev", "test"):
        new = len(used[part] - used["train"]) / len(used[part])
        assert 0.3 < new < 0.95, part


def test_same_seed_same_bytes_whatever_the_number_of_processes(layers, tmp_path):
    few = {f"parts.{part}.utterances": "2" for part in ("train", "adapt", "dev", "test")}
    few["drop_empty"] = "true"  # an option of all corpora, not of this one
    one, two = tmp_path / "one", tmp_path / "two"
    for out_dir, num_jobs in ((one, 1), (two, 2)):
        CORPUS.read(CorpusInput(None, out_dir, few, layers, num_jobs))
    files = sorted(path.relative_to(one) for path in one.rglob("*") if path.is_file())
    # audio, public lists, mini.json, written.{txt,jsonl}, public.txt
    assert len(files) == 12 * 2 + 4 + 4
    assert [path for path in files if (one / path).read_bytes() != (two / path).read_bytes()] == []


def test_another_seed_other_texts(layers):
    few = "parts.train.utterances=4"
    settings = [config.load(MiniConfig, layers, [f"seed={seed}", few]) for seed in (1, 2)]
    first, second = (write_texts(each, public_lists(each)) for each in settings)
    assert first != second


def test_what_train_wrote_follows_what_it_said(layers):
    settings = config.load(MiniConfig, layers, ["written=5"])
    public = public_lists(settings)
    more = config.load(MiniConfig, layers, ["parts.train.utterances=21"])  # of tiny, which has 16
    said, longer = write_texts(settings, public)["train"], write_texts(more, public)["train"]
    further = [sentence for user in said for sentence in longer[user][len(said[user]) :]]
    assert further_texts(settings, public) == further and len(further) == 5 * len(said)


def test_people_who_are_no_users_name_anybody_on_the_lists(layers):
    settings = config.load(MiniConfig, layers[:1], ["written=60"])
    public = public_lists(settings)
    listed = {(kind, name.text) for kind, names in public.items() for name in names}
    named = names_in(public_texts(settings, public))
    by_users = names_in(further_texts(settings, public))
    assert len(named) > 1000 and set(named) <= listed and not set(by_users) <= listed
    assert len(set(named)) / len(named) > 2 * len(set(by_users)) / len(by_users)


def test_users_do_not_repeat_themselves_and_differ(layers):
    settings = config.load(MiniConfig, layers[:1])
    users = write_texts(settings, public_lists(settings))["train"]
    assert all(len({s.text for s in said}) == len(said) for said in users.values())
    # Words of one user's two halves are more alike than those of two users: habits can be learned.
    halves = [
        [{w for s in half for w in s.text.lower().split()} for half in (said[::2], said[1::2])]
        for said in users.values()
    ]
    overlap = lambda a, b: len(a & b) / len(a | b)  # noqa: E731
    own = sum(overlap(a, b) for a, b in halves) / len(halves)
    others = sum(overlap(halves[i][0], halves[i - 1][1]) for i in range(len(halves))) / len(halves)
    assert own > 1.25 * others


def test_report_counts_and_says_synthetic(tiny):
    out_dir, cuts = tiny
    report = json.loads((out_dir / "mini.json").read_text())
    assert report["label"] == "synthetic" and CORPUS.synthetic
    for part, of in cuts.items():
        said = [cut.supervisions[0] for cut in of]
        assert report["parts"][part]["utterances"] == len(said)
        hours = sum(s.duration for s in said) / 3600
        assert report["parts"][part]["hours"] == pytest.approx(hours, abs=1e-4)
        mentions = sum(of_kind["mentions"] for of_kind in report["parts"][part]["names"].values())
        assert mentions == sum(len(s.custom["entities"]) for s in said)
    for kind, count in report["public_lists"].items():
        names = (out_dir / "public_lists" / f"{kind.lower()}.txt").read_text().splitlines()
        assert len(names) == count


@pytest.mark.parametrize("users", [4, 5, 8, 48, 333])
def test_users_per_part_sum_up_and_leave_no_part_empty(users):
    parts = Parts(*(PartSize(share, 1) for share in (0.6, 0.16, 0.1, 0.14, 0.0)))
    sizes = users_per_part(users, parts)
    assert sum(sizes.values()) == users and min(sizes.values()) >= 1 and "pool" not in sizes


def test_a_second_corpus_of_other_users_and_another_condition(layers):
    options = ["users=12", "parts.adapt.share=0", "parts.pool.share=0.4", "accents=[en-029]"]
    settings = [config.load(MiniConfig, layers, [*options, f"first_user={n}"]) for n in (0, 12)]
    one, two = (write_texts(each, public_lists(each)) for each in settings)
    assert list(one) == list(two) == ["train", "dev", "test", "pool"]
    users = [[user for part in texts.values() for user in part] for texts in (one, two)]
    assert users == [[f"user{n:04d}" for n in range(12)], [f"user{n:04d}" for n in range(12, 24)]]
    parts = ([*texts.values()] for texts in (one, two))
    first, second = ({s.text for part in of for s in sentences_of(part)} for of in parts)
    assert len(first & second) < 0.1 * len(first)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"users": "3"}, "users"),
        ({"parts.dev.utterances": "0"}, "utterances"),
        ({"habits.coverage": "2"}, "coverage"),
        ({"speech.snr_db": "[9,3]"}, "snr_db"),
        ({"user": "9"}, "user"),
        ({"accents": "[en-xx]"}, "accents"),
        ({"first_user": "-1"}, "first_user"),
        ({"parts.dev.share": "0"}, "parts.dev.share"),
    ],
)
def test_settings_that_make_no_corpus_are_refused(layers, tmp_path, options, word):
    with pytest.raises(ConfigError, match=word):
        CORPUS.read(CorpusInput(None, tmp_path, options, layers, 1))
    assert not (tmp_path / "audio").exists()


def test_what_train_wrote_is_tagged_as_cuts_are_and_lists_can_be_read(tiny):
    out_dir, cuts = tiny
    written = read_tagged([out_dir / "written.jsonl"])
    assert [text.cased for text in written] == (out_dir / "written.txt").read_text().splitlines()
    users = {cut.supervisions[0].speaker for cut in cuts["train"]}
    assert {text.user for text in written} == users
    lists = read_name_lists(out_dir / "public_lists", CORPUS.normalize)
    assert sorted(lists) == ["LOC", "MISC", "ORG", "PER"]
    names = {CORPUS.normalize(name) for of_class in lists.values() for name in of_class.names}
    mentioned = [" ".join(text.words[e.first : e.end]) for text in written for e in text.entities]
    assert len(mentioned) > len(written) / 2
    assert sum(name in names for name in mentioned) > len(mentioned) / 2
    for text in written:
        assert " ".join(text.words) == CORPUS.normalize(text.cased)

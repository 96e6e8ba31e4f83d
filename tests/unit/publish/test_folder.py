"""What leaves, what is refused, and what the card says."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import pytest
import yaml

from privasr_k2.errors import DataError, PrivacyError
from privasr_k2.fileio import read_json, write_json
from privasr_k2.privacy import events
from privasr_k2.privacy.accounting import Relation, account
from privasr_k2.privacy.ledger import Ledger
from privasr_k2.privacy.people import People
from privasr_k2.publish.check import check_published
from privasr_k2.publish.folder import publish
from privasr_k2.publish.licenses import licenses_of
from privasr_k2.recipe.history import stamps_below
from tests.support.made_spending import COUNTS
from tests.support.published import Work, model

REPLACE = Relation.REPLACE_ONE
ALWAYS = {"README.md", "privacy.json", "published.json"}


@pytest.fixture
def work(tmp_path: Path) -> Work:
    made = Work.new(tmp_path / "work")
    made.release("exp/m", model("exp/m"))
    return made


def names(folder: Path) -> set[str]:
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}


def refused(path: Path, out: Path, match: str, kind: type[Exception] = PrivacyError) -> None:
    with pytest.raises(kind, match=match):
        publish(path, out)
    assert not out.exists() and not list(out.parent.glob(".*tmp*"))


def test_only_the_files_of_the_kind_leave(work: Work, tmp_path: Path) -> None:
    publish(work.path / "exp/m", tmp_path / "out")
    expected = {"model.safetensors", "model.yaml", "words.txt", "config.yaml"}
    assert names(tmp_path / "out") == ALWAYS | expected
    assert len(check_published(tmp_path / "out")) == 1


@pytest.mark.parametrize(
    ("verb", "files", "more"),
    [
        ("train_dpsgd", "model.safetensors model.yaml tokens.txt", "dpsgd.json"),
        ("aggregate_votes", "labels.jsonl", "labels.json answers-0.safetensors"),
        ("sanitize_text", "sanitized.jsonl.gz text.txt.gz class_text.txt.gz", "about.json"),
        ("train_ngram", "class_lm.json root.arpa.gz sub/PER.txt", "sub/.PER.txt log/1.log"),
    ],
)
def test_kinds_of_folders(tmp_path: Path, verb: str, files: str, more: str) -> None:
    work, out = Work.new(tmp_path / "work"), tmp_path / "out"
    written = {f"exp/r/{name}": name for name in f"{files} {more}".split()}
    publish(work.release("exp/r", written, verb), out)
    assert names(out) == ALWAYS | set(files.split())
    check_published(out)


def test_kinds_of_files_get_public_names(tmp_path: Path) -> None:
    work = Work.new(tmp_path / "work")
    for verb, name, public in (
        ("release_fmp", "anna.safetensors", "marginals.safetensors"),
        ("train_ngram", "bob.arpa.gz", "lm.arpa.gz"),
    ):
        path = work.release(f"exp/{verb}/{name}", {f"exp/{verb}/{name}": "x"}, verb)
        publish(path, tmp_path / verb)
        assert names(tmp_path / verb) == ALWAYS | {public}
    path = work.release("exp/x.safetensors", {"exp/x.safetensors": "x"}, "cast_votes")
    refused(path, tmp_path / "out", "another output of cast_votes")


def test_what_is_made_of_releases_is_published_with_all_of_them(work: Work, tmp_path: Path) -> None:
    work.release("exp/text", {"exp/text/text.txt": "x"}, "sanitize_text")
    work.write(model("exp/lm"))
    made = "train_lm --in-text exp/text --in-init exp/m --in-public-dev book --out-dir exp/lm"
    work.stamp(made, "exp/lm")
    publish(work.path / "exp/lm", tmp_path / "out")
    assert len(check_published(tmp_path / "out")) == 2
    [public] = read_json(tmp_path / "out/published.json")["card"]["public"]
    assert public.startswith("book, ")


def test_settings_of_features_go_with_an_acoustic_model(tmp_path: Path) -> None:
    work = Work.new(tmp_path / "work")
    work.write({"data/feats/features.yaml": "kind: fbank\ndim: 80\n"})
    files = {f"exp/m/{name}": "x" for name in ("model.safetensors", "model.yaml", "tokens.txt")}
    path = work.release("exp/m", files, "train_dpsgd", "--in-private-feats data/feats")
    publish(path, tmp_path / "out")
    assert (tmp_path / "out/features.yaml").read_text() == "kind: fbank\ndim: 80\n"
    check_published(tmp_path / "out")


def test_a_public_encoder_is_named_without_its_folder_here(tmp_path: Path) -> None:
    work = Work.new(tmp_path / "work")
    about = {"name": "base", "licence": "MIT", "sha256": "0" * 64, "training_data": "Not known."}
    settings = {
        **{"kind": "encoder", "dim": 512, "encoder": {"layers": [6]}},
        "public_encoder": {**about, "folder": str(tmp_path / "anna/base")},
    }
    work.write({"data/feats/features.yaml": yaml.safe_dump(settings)})
    work.stamp("compute_features --in-public-encoder base --out-dir data/feats",
               "data/feats")  # fmt: skip
    names_of = {f"exp/m/{name}": "x" for name in ("model.safetensors", "model.yaml", "tokens.txt")}
    more = "--in-public-feats data/feats --in-private-feats data/private"
    publish(work.release("exp/m", names_of, "train_dpsgd", more), tmp_path / "out")
    published = yaml.safe_load((tmp_path / "out/features.yaml").read_text())
    assert published == {**settings, "public_encoder": about}
    assert "- encoder base: MIT. Not known." in (tmp_path / "out/README.md").read_text()
    texts = [path.read_bytes() for path in (tmp_path / "out").iterdir()]
    assert not any(b"anna/base" in text for text in texts)


def test_what_has_no_guarantee_is_refused(work: Work, tmp_path: Path) -> None:
    out = tmp_path / "out"
    work.write(model("exp/bare") | model("exp/mixed") | model("exp/odd") | {"exp/x/y": "z"})
    work.stamp("train_lm --raw-corpus corpus --out-dir exp/bare", "exp/bare")
    work.stamp("interpolate --in-lm exp/m exp/bare --out-lm exp/mixed", "exp/mixed")
    work.stamp("interpolate --in-lm exp/m exp/x --out-lm exp/odd", "exp/odd")
    refused(work.path / "exp/bare", out, "no guarantee")
    refused(work.path / "exp/bare", out, r"release has made; in .*: exp/")
    refused(work.path / "exp/mixed", out, "reads the corpus")
    refused(work.path / "exp/odd", out, "exp/x, .*unknown origin")
    refused(work.path / "exp/x", out, "without a stamp", DataError)
    refused(tmp_path / "elsewhere", out, "no .stages/lock", DataError)
    with (work.path / "exp/m/words.txt").open("a") as file:
        file.write("more\n")
    refused(work.path / "exp/m", out, "was changed")


def test_a_change_is_seen_whatever_was_remembered(work: Work, tmp_path: Path) -> None:
    path = work.path / "exp/m/words.txt"
    stat = path.stat()
    known = {str(path): [stat.st_size, stat.st_mtime_ns, stat.st_ino, "0" * 64]}
    write_json(work.path / ".stages/hashes.json", known)
    publish(work.path / "exp/m", tmp_path / "out")


def test_an_unprotected_release_is_refused(work: Work, tmp_path: Path) -> None:
    bare = dataclasses.replace(COUNTS, event=events.unprotected())
    work.enter("exp/bare_privacy.json", bare)
    work.write(model("exp/bare"))
    flags = "--in-private-text t --out-dir exp/bare --out-privacy exp/bare_privacy.json"
    work.stamp(f"declare_unprotected {flags}", "exp/bare")
    refused(work.path / "exp/bare", tmp_path / "out", "infinite epsilon")


def test_of_sanitized_text_names_alone_are_covered(tmp_path: Path) -> None:
    work, out = Work.new(tmp_path / "work"), tmp_path / "out"
    replaced = events.randomized_response(0.9, 50)
    spending = dataclasses.replace(COUNTS, unit="mention", event=replaced, relation=REPLACE)
    files = {f"exp/t/{name}.gz": "x" for name in ("sanitized.jsonl", "text.txt", "class_text.txt")}
    work.write(files)
    work.enter("exp/t_privacy.json", spending)
    flags = "--in-private-text t --out-dir exp/t --out-privacy exp/t_privacy.json"
    work.stamp(f"sanitize_text {flags}", "exp/t")
    publish(work.path / "exp/t", out)
    card = read_json(out / "published.json")["card"]
    assert card["guarantees"][0]["names_alone"]
    hidden = ["names of one person", "names of one mention"]
    assert [total["of"] for total in card["totals"]] == hidden
    assert "all names of a person" in (out / "README.md").read_text()
    check_published(out)


def test_what_verbs_made_by_hand_is_refused_with_a_way_out(tmp_path: Path) -> None:
    (tmp_path / "lm").mkdir()
    refused(tmp_path / "lm", tmp_path / "out", r"by hand .* docs/plugin.md#publish", DataError)


def test_an_existing_folder_is_refused(work: Work, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "mine").write_text("x")
    with pytest.raises(PrivacyError, match="another name"):
        publish(work.path / "exp/m", out)
    assert names(out) == {"mine"}


def test_a_lost_or_older_ledger_publishes_nothing(work: Work, tmp_path: Path) -> None:
    before = work.ledger.read_bytes()
    work.enter("exp/other_privacy.json")
    work.ledger.write_bytes(before)  # the total would be too small
    refused(work.path / "exp/m", tmp_path / "out", "ledger restore")
    shutil.rmtree(work.ledger.parent)
    refused(work.path / "exp/m", tmp_path / "out", "ledger restore")


def test_totals_are_of_all_releases_about_the_same_people(work: Work, tmp_path: Path) -> None:
    work.enter("exp/two_privacy.json", dataclasses.replace(COUNTS, data="other/name"))
    work.enter("exp/three_privacy.json", COUNTS, People(frozenset({"carl"}), 1))
    publish(work.path / "exp/m", tmp_path / "out")
    card = read_json(tmp_path / "out/published.json")["card"]
    assert [(t["of"], t["releases"]) for t in card["totals"]] == [("person", 2), ("user", 2)]
    both = account(events.repeated(events.pure(1.0), 2), Relation.ADD_OR_REMOVE_ONE, 1e-5)
    assert card["totals"][0]["epsilon"] == pytest.approx(both.value)
    assert card["guarantees"][0]["epsilon"] == pytest.approx(1.0, rel=1e-4)
    assert len(check_published(tmp_path / "out")) == 1


def bound(lower: float) -> dict[str, object]:
    lowers = {"sound": lower, "broken": 3.0, "noise_free": 5.0}
    known = {"claimed_epsilon": 1.0, "delta": 1e-5, "confidence": 0.95, "trials": 100}
    return {**known, "epsilon_lower": lowers, "verdict": "stands under the claim"}


def test_audits(work: Work, tmp_path: Path) -> None:
    audit = work.path / "exp/m_audit.json"

    def audits(name: str) -> list[dict[str, list[object]]]:
        publish(work.path / "exp/m", tmp_path / name)
        check_published(tmp_path / name)
        return read_json(tmp_path / name / "published.json")["card"]["audits"]

    # Of private data: that there is one, and no figure.
    write_json(audit, {"marks": bound(0.25)})
    work.stamp("audit --in-clients exp/clients --out-audit exp/m_audit.json", "exp/m_audit.json")
    assert audits("private") == [{"bounds": []}]
    assert "0.25" not in (tmp_path / "private/README.md").read_text()
    # Of what was released alone.
    work.stamp("audit --in-labels exp/m --out-audit exp/m_audit.json", "exp/m_audit.json")
    [[found]] = [one["bounds"] for one in audits("covered")]
    assert found["epsilon_lower"]["sound"] == 0.25  # type: ignore[index]
    assert "0.25" in (tmp_path / "covered/README.md").read_text()
    # The claim is wrong.
    write_json(audit, {"marks": bound(1.5)})
    refused(work.path / "exp/m", tmp_path / "out", "the guarantee does not hold")


def test_the_folder_of_a_system_is_no_release(work: Work, tmp_path: Path) -> None:
    public = work.release("exp/n/am", model("exp/n/am"))
    work.write({"exp/n/score_test/wer": "1"})
    work.stamp("wer --in-hyps exp/n/hyps --out-dir exp/n/score_test", "exp/n/score_test")
    refused(public.parent, tmp_path / "out", "a folder with am, am_privacy.json, score_test")
    publish(public, tmp_path / "out")


def test_licences_of_public_corpora_stand_in_the_card(work: Work, tmp_path: Path) -> None:
    for name, license in (("books", "CC BY 4.0"), ("toy", "")):
        write_json(work.path / f"data/{name}/corpus.json", {"name": name, "license": license})
        work.stamp(f"prepare_corpus --raw-corpus {name} --out-dir data/{name}", f"data/{name}")
    write_json(work.path / "exp/lm/a.json", {})
    work.stamp("train_lm --in-text data/books --in-dev data/toy/a --out-dir exp/lm", "exp/lm")
    assert licenses_of(["exp/lm/a.json"], work.path, stamps_below(work.path)) == {
        "corpus books": "CC BY 4.0",
        "corpus toy": "not stated",
    }
    public = work.release("exp/n", model("exp/n"), more="--in-public-init exp/lm")
    publish(public, tmp_path / "out")
    assert "- corpus books: CC BY 4.0" in (tmp_path / "out/README.md").read_text()
    assert check_published(tmp_path / "out")


def test_the_card_names_what_a_reader_needs(work: Work, tmp_path: Path) -> None:
    publish(work.path / "exp/m", tmp_path / "out", license="CC-BY 4.0, all parts")
    text = (tmp_path / "out/README.md").read_text()
    assert all(part in text for part in ("CC-BY 4.0, all parts", "1e-05", "add or remove one"))
    [record] = read_json(tmp_path / "out/published.json")["card"]["guarantees"]
    assert (record["unit"], record["person_units"], record["accountant"]) == ("user", 1, "PLD")
    assert "seal" not in read_json(tmp_path / "out/privacy.json")
    [entry] = Ledger(tmp_path / "out/privacy.json").entries()
    assert entry.spending == dataclasses.replace(COUNTS, person_units=1, units=None)


def test_releases_behind_public_inputs_are_on_the_card(work: Work, tmp_path: Path) -> None:
    """A model that began at one of sanitized text gives away the sanitized text, too."""
    work.write({"exp/lm/model.safetensors": "1"})
    work.stamp("train_lm --in-text exp/m --out-dir exp/lm", "exp/lm")
    public = work.release("exp/n", model("exp/n"), more="--in-public-init exp/lm")
    publish(public, tmp_path / "out")
    entries = check_published(tmp_path / "out")
    assert {entry.release for entry in entries} == {
        entry.release for entry in Ledger(work.ledger).entries()
    }
    assert len(entries) == 2


def test_two_folders_do_not_tell_whether_data_or_people_are_the_same(
    work: Work, tmp_path: Path
) -> None:
    """Digests under the ledger's one key would be equal, and the number of units would differ."""
    others = People.of([("anna", "anna")], source="clients")
    work.enter("exp/n_privacy.json", dataclasses.replace(COUNTS, units=1000), others)
    work.write(model("exp/n"))
    flags = "--in-private-clients exp/clients --out-dir exp/n --out-privacy exp/n_privacy.json"
    work.stamp(f"train_fedlm {flags}", "exp/n", "exp/n_privacy.json")
    entries = []
    for name in "mn":
        publish(work.path / "exp" / name, tmp_path / name)
        text = (tmp_path / name / "published.json").read_text()
        assert '"units": null' in text and "1000" not in text
        [entry] = check_published(tmp_path / name)
        entries.append(dataclasses.replace(entry, release="", time=""))
    assert entries[0] == entries[1] and entries[0].people is None

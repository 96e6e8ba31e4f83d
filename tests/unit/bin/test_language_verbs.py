"""prepare_lang, train_ngram and compile_graph on a handful of sentences, from the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from privasr_k2.fileio import read_json, read_jsonl, write_json, write_jsonl, write_text
from privasr_k2.graph.lang import load_lang
from privasr_k2.lm.arpa import read_arpa
from tests.support.conf import section
from tests.support.verbs import call, refused

TEXTS = {
    "train": ["the cat sat", "a cat sat", "the mat"],
    "dev": ["the dog sat"],
    "test": ["a dog"],
}


@pytest.fixture
def manifests(tmp_path: Path) -> Path:
    pytest.importorskip("lhotse")
    from lhotse import MonoCut, SupervisionSegment

    from privasr_k2.data.manifests import save_cuts

    folder = tmp_path / "data" / "manifests"
    for role, texts in TEXTS.items():
        cuts = []
        for n, text in enumerate(texts):
            name = f"{role}{n}"
            supervision = SupervisionSegment(name, name, 0.0, 1.0, text=text, speaker=role)
            cuts.append(MonoCut(name, 0.0, 1.0, 0, supervisions=[supervision]))
        save_cuts(cuts, folder, role)
    lexicon = "the DH AH0\ncat K AE1 T\nsat S AE1 T\na AH0\na(2) EY1\nmat M AE1 T\n"
    write_text(folder / "lexicon.txt", lexicon)
    return folder


def prepare(manifests: Path, *more: object) -> Path:
    lang_dir = manifests.parent / "lang_phone"
    settings = ["--config", section("lang"), "--set", "cmudict=none", "g2p=none", *more]
    call("prepare_lang", "--in-manifests", manifests, "--out-dir", lang_dir, *settings)
    return lang_dir


def test_from_text_to_arpa(manifests: Path) -> None:
    write_text(manifests / "lm_text.txt.gz", "the cat sat on the mat\nthe mat\n")
    lang_dir = prepare(manifests)
    # Nobody can say "on".
    assert set(load_lang(lang_dir).word_ids) == {"the", "cat", "sat", "a", "mat"}
    oov = {role: counts["oov_words"] for role, counts in read_json(lang_dir / "oov.json").items()}
    assert oov == {"lm_text": 1, "train": 0, "dev": 1, "test": 1}
    lm = manifests.parent / "lm" / "phone.arpa.gz"
    common = (
        f"--in-manifests {manifests} --in-lang {lang_dir} --config {section('lm_ngram')}".split()
    )
    call("train_ngram", *common, "--out-lm", lm)
    assert {"the", "cat", "sat", "a", "mat"} < set(read_arpa(lm).words)
    again = manifests.parent / "lm" / "again.arpa"
    call("train_ngram", *common, "--raw-arpa", lm, "--out-lm", again)
    assert read_arpa(again).counts == read_arpa(lm).counts


@pytest.mark.k2
def test_from_arpa_to_graph(manifests: Path) -> None:
    from privasr_k2.graph.hlg import load_graph

    lang_dir = prepare(manifests)
    lm, folder = manifests.parent / "lm.arpa", manifests.parent / "graph_phone"
    call(
        f"train_ngram --in-manifests {manifests} --in-lang {lang_dir} --out-lm {lm}"
        f" --config {section('lm_ngram')}"
    )
    graph = f"--out-dir {folder} --config {section('graph')}"
    call(f"compile_graph --in-lang {lang_dir} --in-lm {lm}", graph)
    graph = load_graph(folder)
    assert graph.tokens == load_lang(lang_dir).tokens
    assert set(graph.info["sha256"]) == {"lexicon.txt", "tokens.txt", "lm.arpa"}


def test_a_lexicon_without_the_words(manifests: Path) -> None:
    write_text(manifests / "lexicon.txt", "the DH AH0\n")
    with refused("none for 4 words: a cat mat sat"):
        prepare(manifests)
    assert not (manifests.parent / "lang_phone").exists()


def test_names_and_further_text_join_the_vocabulary(manifests: Path, tmp_path: Path) -> None:
    write_text(tmp_path / "plain.txt", "The Matte, sat!\n")
    write_jsonl(
        tmp_path / "tagged.jsonl.gz", [{"id": "1", "text": "mac sat", "entities": [[0, 1, "X"]]}]
    )
    write_text(tmp_path / "lists/per.txt", "Dee Cee\t0.5\nMac\t0.5\n")
    entries = "matte M AE T\nmac M AE K\ndee D IY\ncee S IY\n"
    write_text(manifests / "lexicon.txt", (manifests / "lexicon.txt").read_text() + entries)
    more = ("max_words=1", f"--in-further-text {tmp_path}/plain.txt {tmp_path}/tagged.jsonl.gz")
    more += ("--in-public-lists", tmp_path / "lists")
    words = set(load_lang(prepare(manifests, *more)).word_ids)
    assert words == {"the", "cat", "sat", "a", "mat", "matte", "mac", "dee", "cee"}
    write_text(tmp_path / "lists/org.txt", "Quux\n")
    with refused("none for 1 words: quux"):
        prepare(manifests, *more)


def test_an_arpa_with_a_broken_line(manifests: Path) -> None:
    lang_dir = prepare(manifests)
    broken, lm = manifests.parent / "broken.arpa", manifests.parent / "lm.arpa"
    write_text(broken, "\\data\\\nngram 1=3\n\n\\1-grams:\n-1 <s>\n-1 </s>\n-one the\n\n\\end\\\n")
    write_text(lm, "as it was")
    with refused(f"{broken}:7: expected a number, found '-one'"):
        call(
            f"train_ngram --in-manifests {manifests} --in-lang {lang_dir} --raw-arpa {broken}"
            f" --out-lm {lm} --config {section('lm_ngram')}"
        )
    assert lm.read_text() == "as it was"


@pytest.mark.k2
def test_decode(monkeypatch: pytest.MonkeyPatch, manifests: Path) -> None:
    """A model that knows what was said; weights chosen on dev leave one point of the grid."""
    import torch

    from privasr_k2.am import checkpoints
    from privasr_k2.data import manifests as data_manifests

    lang_dir = prepare(manifests)
    root = manifests.parent
    lm = root / "lm.arpa"
    paths = ["--in-manifests", manifests, "--in-lang", lang_dir, "--out-lm", lm]
    call("train_ngram", *paths, "--config", section("lm_ngram"))
    paths = ["--in-lang", lang_dir, "--in-lm", lm, "--out-dir", root / "graph"]
    call("compile_graph", *paths, "--config", section("graph"))
    lang = load_lang(lang_dir)

    class Model:
        """Takes its features for the numbers of tokens."""

        num_tokens, tokens, ctc_topology = lang.num_tokens, list(lang.tokens), "standard"

        def log_probs(
            self, features: torch.Tensor, lengths: torch.Tensor
        ) -> tuple[torch.Tensor, torch.Tensor]:
            one_hot = torch.nn.functional.one_hot(features[:, :, 0].long(), lang.num_tokens)
            return (one_hot * 10.0).log_softmax(-1), lengths

    def load_cuts(folder: Path, role: str) -> list[object]:
        found = []
        for cut in real_load_cuts(folder, role):
            numbers = [n for token in lang.encode(cut.supervisions[0].text) for n in (token, 0)]
            features = torch.tensor(numbers, dtype=torch.float32)[:, None].numpy()
            found.append(_Spoken(cut, features))
        return found

    real_load_cuts = data_manifests.load_cuts
    monkeypatch.setattr(data_manifests, "load_cuts", load_cuts)
    monkeypatch.setattr(checkpoints, "load_model", lambda folder, device: Model())
    weights = root / "weights.json"
    write_json(weights, {"role": "dev", "lm_weight": 0.7, "insertion_penalty": 0.5})
    flags = f"--in-model {root} --in-graph {root}/graph --in-feats {manifests} --device cpu".split()
    settings = (
        f"--config {section('decode')} {section('decode', 'tiny')} --set role=train num_jobs=2"
    ).split()
    records = []
    for job in (1, 2):
        out = root / f"{job}.jsonl"
        call("decode", *flags, f"--in-weights {weights} --out-hyps {out}", *settings, f"job={job}")
        records += list(read_jsonl(out))
    found = {record["ref"]: record["hyps"][0]["words"] for record in records}
    assert found == {text: text for text in TEXTS["train"]}
    points = {(h["lm_weight"], h["insertion_penalty"]) for r in records for h in r["hyps"]}
    assert points == {(0.7, 0.5)}
    call("decode", *flags, "--out-hyps", root / "grid.jsonl", *settings, "num_jobs=1")
    assert [len(record["hyps"]) for record in read_jsonl(root / "grid.jsonl")] == [6, 6, 6]


class _Spoken:
    """A cut with other features."""

    def __init__(self, cut: Any, features: Any) -> None:
        self.id, self.duration, self.custom = cut.id, cut.duration, cut.custom
        self.supervisions, self._features = cut.supervisions, features

    def load_features(self) -> Any:
        return self._features


def test_what_a_g2p_made_up_and_figures_are_warned_of(
    manifests: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip("espeakng_loader")
    write_text(manifests / "lm_text.txt.gz", "the 7 mats\n")
    prepare(manifests, "g2p=espeak")
    said = caplog.text
    assert "lm_text: 1 of 3 words are figures that no lexicon has" in said
    assert "28.6 % of 7 words have pronunciations that no lexicon has, by espeak" in said
    caplog.clear()
    prepare(manifests)  # with g2p=none they are left out, and counted still
    assert "pronunciations" not in caplog.text and "1 of 3 words are figures" in caplog.text


def test_the_language_of_the_corpus_is_that_of_its_manifests(manifests: Path) -> None:
    pytest.importorskip("espeakng_loader")
    write_json(manifests / "corpus.json", {"name": "x", "language": "de"})
    (manifests / "lexicon.txt").unlink()
    common = ["prepare_lang", "--in-manifests", manifests, "--config", section("lang")]
    out = manifests.parent / "lang"
    with refused("English phones"):
        call(*common, "--out-dir", out)
    call(*common, "--out-dir", out, "--set", "g2p=espeak:de")
    assert "AH" not in load_lang(out).tokens

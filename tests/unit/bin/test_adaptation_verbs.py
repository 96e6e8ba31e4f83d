"""train_class_lm, adapt_lm, interpolate_lms, approximate_lm and perplexity, one after the other."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from privasr_k2.fileio import read_json, write_json, write_text
from privasr_k2.graph.lang import symbols_text
from privasr_k2.lm.arpa import read_arpa, write_arpa
from privasr_k2.lm.class_files import load_class_lm
from privasr_k2.lm.marginals import history_sums
from privasr_k2.lm.ngram import count_ngrams, estimate
from privasr_k2.lm.ngram import perplexity as ngram_perplexity
from tests.support.conf import section
from tests.support.verbs import call, refused

PLAIN = ["call", "write", "to", "now", "please"]
NAMES = ["ann", "bob", "eve", "lee"]
OTHERS = ["york", "rome"]


def sentences(seed: int, count: int, names: list[str]) -> list[tuple[list[str], list[list]]]:
    generator = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        verb = ["call"] if generator.random() < 0.5 else ["write", "to"]
        length = 1 + (generator.random() < 0.3)
        name = [names[i] for i in generator.integers(0, len(names), size=length)]
        end = ["now"] if generator.random() < 0.3 else ["please"]
        spans: list[list] = [[len(verb), len(verb) + len(name), "PER"]]
        found.append((verb + name + end, spans))
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    parts = {
        "train": (200, ["ann", "bob"]),
        "adapt": (30, ["bob", "eve"]),
        "dev": (40, ["bob", "eve", "lee"]),
    }
    for seed, (part, (count, names)) in enumerate(parts.items()):
        records = [
            {"id": f"{part}-{n}", "user": "u", "text": " ".join(words), "entities": spans}
            for n, (words, spans) in enumerate(sentences(seed, count, names))
        ]
        write_text(tmp_path / f"{part}.jsonl.gz", "".join(json.dumps(r) + "\n" for r in records))
        write_text(tmp_path / f"{part}.txt", "".join(str(r["text"]) + "\n" for r in records))
    write_text(tmp_path / "lang" / "tokens.txt", "<blk> 0\na 1\n")
    words = [*PLAIN, *NAMES, *OTHERS]
    write_text(tmp_path / "lang" / "words.txt", symbols_text(["<eps>", *words, "#0"]))
    write_text(tmp_path / "lang" / "lexicon.txt", "".join(f"{word} a\n" for word in words))
    write_text(tmp_path / "names" / "per.txt", "Ann\nBob\nEve\nLee\n")
    text = [words for words, _ in sentences(0, 200, ["ann", "bob"])]
    write_arpa(
        estimate(count_ngrams(text, words, order=3), "witten_bell"), tmp_path / "word.arpa.gz"
    )
    return tmp_path


def conf(name: str, *more: str) -> list[object]:
    return ["--config", section(name), *(["--set", *more] if more else [])]


def class_lm(folder: Path, *more: str) -> Path:
    flags = ["--in-text", folder / "train.jsonl.gz", "--in-dev", folder / "dev.jsonl.gz"]
    flags += ["--in-public-lists", folder / "names", "--in-lang", folder / "lang"]
    settings = conf("class_lm", "classes=[PER]", "discounting=witten_bell", *more)
    call("train_ngram", *flags, "--out-class-lm", folder / "class_lm", *settings)
    return folder / "class_lm"


def ppl(folder: Path, *lms: Path) -> list[float]:
    flags = ["--in-text", folder / "dev.txt", "--in-lang", folder / "lang", "--in-lm", *lms]
    call("perplexity", *flags, "--out-perplexity", folder / "ppl.json")
    return [one["ppl"] for one in read_json(folder / "ppl.json")["lms"]]


def test_unigrams_of_another_model_adapt_as_its_text_does(folder: Path) -> None:
    """What votes release is a model without a text."""
    word, words = folder / "word.arpa.gz", list(read_arpa(folder / "word.arpa.gz").words[3:])
    spoken = estimate(count_ngrams([["eve"], ["eve", "lee"]], words, order=1), "witten_bell")
    write_arpa(spoken, folder / "spoken.arpa.gz")
    flags = [f"--in-lm {word} --in-unigrams {folder}/spoken.arpa.gz --out-choice {folder}/c.json"]
    flags += [f"--in-public-dev-text {folder}/dev.txt --out-lm {folder}/adapted.arpa.gz"]
    call("adapt_lm", *flags, *conf("fma", "beta=1"))
    before, after = read_arpa(word), read_arpa(folder / "adapted.arpa.gz")
    assert np.abs(history_sums(after) - 1).max() < 1e-5
    gained = {name: after.log10_probs[n] - before.log10_probs[n] for n, name in enumerate(words, 3)}
    assert min(gained["eve"], gained["lee"]) > max(
        gain for name, gain in gained.items() if name not in ("eve", "lee")
    )
    for more in ([], [f"--in-text {folder}/train.jsonl.gz --in-unigrams {folder}/spoken.arpa.gz"]):
        given = [f"--in-lm {word} --out-lm {folder}/x.arpa.gz --out-choice {folder}/x.json", *more]
        with refused("--in-text or --in-unigrams"):
            call("adapt_lm", *given, *conf("fma", "beta=1"))


def test_the_chain(folder: Path) -> None:
    pytest.importorskip("kenlm")
    word, named = folder / "word.arpa.gz", class_lm(folder)
    dev = ["--in-dev", folder / "dev.jsonl.gz"]

    for lm, out in ((word, "word_fma.arpa.gz"), (named, "class_fma")):
        flags = [f"--in-lm {lm} --in-text {folder}/adapt.jsonl.gz --out-choice {folder}/fma.json"]
        flags += dev
        call("adapt_lm", *flags, "--out-lm", folder / out, *conf("fma"))
        choice = read_json(folder / "fma.json")
        assert choice["equation"] == 1 and len(choice["tried"]) == 11
        assert choice["beta"] == min(choice["tried"], key=lambda tried: tried["ppl"])["beta"]
        adapted = load_class_lm(folder / out).root if lm is named else read_arpa(folder / out)
        assert np.abs(history_sums(adapted) - 1).max() < 1e-5
    assert load_class_lm(folder / "class_fma").same_names(load_class_lm(named))

    call("adapt_lm", *flags, f"--out-lm {folder}/half", *conf("fma", "beta=0.5"))
    before, after = (load_class_lm(path).root.log10_probs for path in (named, folder / "half"))
    assert np.abs(after - before).max() > 0.01

    lms = [folder / "word_fma.arpa.gz", folder / "class_fma"]
    chosen = {}
    for form, out in (("static", "mixed"), ("dynamic", "mixed.json")):
        flags = ["--in-lm", *lms, *dev, f"--out-lm {folder}/{out}"]
        flags += ["--out-weights", folder / "weights.json"]
        call("interpolate_lms", *flags, *conf("interpolate", f"form={form}"))
        weights = chosen[form] = read_json(folder / "weights.json")
        assert sum(one["weight"] for one in weights["lms"]) == pytest.approx(1)
        assert [one["lm"] for one in weights["lms"]] == list(map(str, lms))

    flags = ["--in-lm", folder / "mixed.json", "--in-text", folder / "train.jsonl.gz", *dev]
    flags += ["--in-lang", folder / "lang", "--out-lm", folder / "approximated.arpa.gz"]
    with refused("estimate=average"):  # of a mixture
        call("train_ngram", *flags, *conf("approximate"))
    call("train_ngram", *flags, *conf("approximate", "max_ngrams=30", "estimate=average"))
    assert len(read_arpa(folder / "approximated.arpa.gz").keys) <= 30

    found = ppl(
        folder, word, *lms, folder / "mixed", folder / "mixed.json", folder / "approximated.arpa.gz"
    )
    assert found[2] < found[1] < found[0]  # the class knows eve and lee, the adaptation eve
    # EM saw the same text. The figure of each form is that of the model that was written.
    assert found[3] == pytest.approx(chosen["static"]["dev_ppl"], rel=1e-6)
    assert found[4] == pytest.approx(chosen["dynamic"]["dev_ppl"], rel=1e-9)
    assert {of["dev_ppl_exact"] for of in chosen.values()} == {chosen["dynamic"]["dev_ppl"]}
    # Root models are mixed without histories after names.
    assert found[3] != pytest.approx(found[4], rel=0.01)
    assert found[4] <= min(found[1:3]) + 1e-6
    assert all(1 < one < 100 for one in found)


def test_plain_arpa_files_are_mixed_into_one(folder: Path) -> None:
    lms = [folder / "word.arpa.gz"] * 2
    flags = ["--in-lm", *lms, "--out-lm", folder / "m.arpa.gz", "--out-weights", folder / "w.json"]
    call("interpolate_lms", *flags, *conf("interpolate", "weights=preset"))
    text = [line.split() for line in (folder / "dev.txt").read_text().splitlines()]
    expected = ngram_perplexity(read_arpa(lms[0]), text)
    assert ngram_perplexity(read_arpa(folder / "m.arpa.gz"), text) == pytest.approx(
        expected, rel=1e-4
    )
    found = read_json(folder / "w.json")
    assert found["lms"][1]["weight"] == 0.7
    assert found["dev_ppl"] is None and found["dev_ppl_exact"] is None
    given = ["--in-dev", folder / "dev.txt", *conf("interpolate", "weights=preset")]
    call("interpolate_lms", *flags, *given)
    found = read_json(folder / "w.json")
    assert found["lms"][1]["weight"] == 0.7
    assert found["dev_ppl"] == pytest.approx(expected, rel=1e-4)
    assert found["dev_ppl_exact"] == pytest.approx(expected, rel=1e-4)
    with refused("--in-dev"):
        call("interpolate_lms", *flags, *conf("interpolate"))


@pytest.mark.parametrize(("form", "out"), [("static", "m.json"), ("dynamic", "m.arpa.gz")])
def test_the_name_of_a_mixture_tells_its_form(folder: Path, form: str, out: str) -> None:
    lms = [folder / "word.arpa.gz"] * 2
    flags = ["--in-lm", *lms, "--out-lm", folder / out, "--out-weights", folder / "w_form.json"]
    with refused(f"in .json with form={form}"):
        call("interpolate_lms", *flags, *conf("interpolate", "weights=preset", f"form={form}"))
    assert not (folder / "w_form.json").exists()


def test_a_class_lm_scores_lists(folder: Path) -> None:
    from privasr_k2.decoding.lm_scores import read_lm_scores
    from privasr_k2.scoring.nbest_lists import Hypothesis, NbestList, read_nbest, write_nbest

    named = class_lm(folder)
    texts = ["call ann now", "call bob please", "call"]
    hyps = [Hypothesis(n, text, -1.0, {"graph": -1.0}) for n, text in enumerate(texts, start=1)]
    lists = [NbestList("u1", "dev", "s", texts[0], False, tuple(hyps))]
    write_nbest(folder / "nbest" / "1.jsonl", lists)
    flags = f"--in-nbest {folder}/nbest --in-lm {named} --out-scores {folder}/s.safetensors".split()
    call("lm_scores", *flags, *conf("lm_scores"))
    scores = read_lm_scores([folder / "s.safetensors"], read_nbest(folder / "nbest"))["class_lm"]
    expected = load_class_lm(named).token_log_probs([text.split() for text in texts])
    np.testing.assert_allclose(scores, expected, atol=1e-5)


def test_several_files_are_one_text(folder: Path) -> None:
    """Halves of a text, in whatever form, make the models that the whole makes."""
    pytest.importorskip("kenlm")
    lines = (folder / "train.txt").read_text().splitlines(keepends=True)
    write_text(folder / "half.txt", "".join(lines[:100]))
    with gzip.open(folder / "train.jsonl.gz", "rt") as file:
        write_text(folder / "rest.jsonl.gz", "".join([*file][100:]))
    halves = [folder / "half.txt", folder / "rest.jsonl.gz"]
    lm, lang = folder / "word.arpa.gz", ["--in-lang", folder / "lang"]
    for out, text in (("whole", [folder / "train.txt"]), ("parts", halves)):
        flags = ["--in-lm", lm, "--in-text", *text]
        call(
            "adapt_lm",
            *flags,
            "--in-background-text",
            *text,
            f"--out-choice {folder}/c.json --out-lm {folder}/{out}_adapted.arpa",
            *conf("fma", "beta=0.5"),
        )
        flags += [*lang, f"--out-lm {folder}/{out}_approximated.arpa"]
        flags += conf("approximate", "priors=[1]")
        call("train_ngram", *flags)
        tagged = [folder / "rest.jsonl.gz", *([folder / "rest.jsonl.gz"] if out == "parts" else [])]
        flags = ["--in-text", *tagged, *lang, "--out-class-lm", folder / f"{out}_class"]
        call("train_ngram", *flags, *conf("class_lm", "classes=[PER]", "discounting=witten_bell"))
    for name in ("adapted", "approximated"):
        found = [(folder / f"{out}_{name}.arpa").read_bytes() for out in ("whole", "parts")]
        assert found[0] == found[1], name
    once, twice = (
        load_class_lm(folder / f"{out}_class").root.log10_probs for out in ("whole", "parts")
    )
    assert np.abs(once - twice).max() > 0.001  # a file that is named twice counts twice


def test_bad_input_is_named(folder: Path) -> None:
    with refused("class LOC"):
        class_lm(folder, "classes=[PER,LOC]")
    with refused("train.jsonl.gz:1 (train-0): expected the classes LOC, found PER"):
        class_lm(folder, "classes=[LOC]")
    assert not (folder / "class_lm").exists()
    class_lm(folder)
    write_text(folder / "org.txt", "call <ORG> now\n")
    flags = f"--in-lm {folder}/class_lm --in-text {folder}/org.txt --out-lm {folder}/x".split()
    flags += ["--out-choice", folder / "x.json"]
    with refused("org.txt:1: expected the classes PER, found ORG"):
        call("adapt_lm", *flags, *conf("fma", "beta=0.5"))
    lms = [{"path": "nowhere", "weight": 1}]
    write_json(folder / "m.json", {"format": "privasr_k2 mixture 1", "lms": lms})
    with refused("nowhere as it was"):
        ppl(folder, folder / "m.json")

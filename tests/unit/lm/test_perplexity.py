"""Perplexity by hand, the same treatment for every model, models that do not compare refused."""

from __future__ import annotations

import gzip
import math
from pathlib import Path

import numpy as np
import pytest

from privasr_k2.errors import DataError, GraphError
from privasr_k2.lm.mixtures import open_lm
from privasr_k2.lm.neural.files import save_lm
from privasr_k2.lm.neural.kinds import spec_of
from privasr_k2.lm.perplexity import TREATMENT, KenlmModel, Perplexity, perplexity, table
from tests.support.small_lm import WORDS, scorer, settings, tiny

#: P(a) = 1/2, P(b) = 1/4, P(</s>) = 1/8, P(<unk>) = 1/8; after a, P(b) = 1/2, others back off at
#: 2/3.
ARPA = """\\data\\
ngram 1=5
ngram 2=1

\\1-grams:
-99\t<s>
-0.9030900\t</s>
-0.9030900\t<unk>
-0.3010300\ta\t-0.1760913
-0.6020600\tb

\\2-grams:
-0.3010300\ta b

\\end\\
"""


class Dice:
    """Every symbol has the same probability."""

    name, scores_unknown = "dice", True

    def __init__(self, words: list[str]) -> None:
        self.words = words
        self.seen: list[list[str]] = []

    def token_log_probs(self, sentences: list[list[str]]) -> np.ndarray:
        self.seen = sentences
        return np.full(sum(len(s) + 1 for s in sentences), -math.log(len(self.words) + 2))


def test_the_faces_of_a_die() -> None:
    dice = Dice(["a", "b", "c"])
    result = perplexity(dice, [["a", "z", "b"], ["c"]], ["a", "b", "c"])
    assert (result.sentences, result.words, result.oov) == (2, 4, 1)
    assert result.ppl == pytest.approx(5)
    assert result.ppl_with_oov == pytest.approx(5)
    assert dice.seen == [["a", "<unk>", "b"], ["c"]]


@pytest.fixture
def arpa(tmp_path: Path) -> Path:
    pytest.importorskip("kenlm")
    (tmp_path / "lm.arpa").write_text(ARPA)
    return tmp_path / "lm.arpa"


def test_by_hand(arpa: Path) -> None:
    """a b </s>: 1/2, 1/2, 1/8. a z a </s>: 1/2, 2/3 x 1/8, 1/2, 2/3 x 1/8."""
    result = perplexity(KenlmModel(arpa), [["a", "b"], ["a", "z", "a"]], ["a", "b"])
    inside = 1 / 2 * 1 / 2 * 1 / 8 * 1 / 2 * 1 / 2 * (2 / 3 * 1 / 8)
    assert result.nats == pytest.approx(-math.log(inside), abs=1e-5)
    assert result.oov_nats == pytest.approx(-math.log(2 / 3 * 1 / 8), abs=1e-5)
    assert result.ppl == pytest.approx(inside ** (-1 / 6), abs=1e-4)
    assert result.ppl_with_oov == pytest.approx((inside * 2 / 3 / 8) ** (-1 / 7), abs=1e-4)
    assert (result.words, result.oov, result.sentences) == (5, 1, 2)
    scores = KenlmModel(arpa).score_sentences([["a", "b"]])
    assert scores == pytest.approx([-math.log(32)], abs=1e-5)


def test_a_word_outside_the_vocabulary_is_unknown_to_every_model(arpa: Path) -> None:
    """The model has b; words.txt does not: it is <unk>, as for the others of the table."""
    result = perplexity(KenlmModel(arpa), [["a", "b"]], ["a"])
    assert result.oov == 1
    assert result.words_beyond == 1
    assert result.oov_nats == pytest.approx(-math.log(2 / 3 * 1 / 8), abs=1e-5)


def test_symbols_are_words_of_no_vocabulary(arpa: Path) -> None:
    arpa.write_text(ARPA.replace("<unk>", "<UNK>"))
    lm = KenlmModel(arpa)
    result = perplexity(lm, [["a", "<UNK>"]], ["a", "b", "<UNK>", "<s>", "</s>", "<eps>", "#0"])
    assert (result.oov, result.words_beyond, result.words_lacking) == (1, 0, 0)
    assert result.oov_nats == pytest.approx(-math.log(2 / 3 * 1 / 8), abs=1e-5)


def test_a_model_without_unknown_words(arpa: Path) -> None:
    lines = [line for line in ARPA.splitlines() if "<unk>" not in line]
    arpa.write_text("\n".join(lines).replace("ngram 1=5", "ngram 1=4") + "\n")
    result = perplexity(KenlmModel(arpa), [["a", "z"]], ["a", "b"])
    assert result.ppl_with_oov is None
    assert result.ppl == pytest.approx((1 / 2 * 1 / 8) ** (-1 / 2), abs=1e-4)
    assert perplexity(KenlmModel(arpa), [["a"]], ["a", "b"]).ppl_with_oov is not None


def test_models_that_do_not_compare(arpa: Path) -> None:
    message = r"lm.arpa: expected the vocabulary .* 2 of its words .*'c' of the text"
    with pytest.raises(GraphError, match=message):
        perplexity(KenlmModel(arpa), [["a", "c"]], ["a", "b", "c", "d"])
    assert perplexity(KenlmModel(arpa), [["a"]], ["a", "b", "c", "d"]).words_lacking == 2
    with pytest.raises(DataError, match="the text: expected sentences"):
        perplexity(KenlmModel(arpa), [], ["a"])


def test_damaged_models(arpa: Path) -> None:
    arpa.write_text(ARPA.replace("ngram 1=5", "ngram 1=7"))
    with pytest.raises(GraphError, match=r"lm.arpa:\d+: expected 7 "):
        KenlmModel(arpa)
    unigrams = ARPA.split("\\2-grams:")[0].replace("ngram 2=1\n", "").replace("\t-0.1760913", "")
    arpa.write_text(unigrams + "\\end\\\n")
    with pytest.raises(GraphError, match="bigram"):
        KenlmModel(arpa)
    arpa.write_text("nothing\n")
    with pytest.raises(GraphError, match=r"lm.arpa:1: expected a line"):
        KenlmModel(arpa)


def test_a_missing_back_off_weight_is_not_taken_for_1(arpa: Path) -> None:
    assert "a\t-0.1760913" in ARPA
    arpa.write_text(ARPA.replace("a\t-0.1760913", "a"))
    with pytest.raises(GraphError, match=r"lm.arpa:\d+: expected a back-off weight"):
        KenlmModel(arpa)


def test_gzipped(arpa: Path) -> None:
    with gzip.open(arpa.with_suffix(".gz"), "wt") as file:
        file.write(ARPA)
    found = perplexity(open_lm(arpa.with_suffix(".gz")), [["a", "b"]], ["a", "b"])
    assert found.nats == pytest.approx(math.log(32), abs=1e-5)


def test_neural_models(tmp_path: Path) -> None:
    lm, sentences = scorer("lstm"), [["word3", "ord4"], ["new", "word3"]]
    result = perplexity(lm, sentences, WORDS)
    log_probs = lm.token_log_probs(sentences)
    assert result.nats == pytest.approx(-log_probs[[0, 1, 2, 4, 5]].sum())
    assert result.oov_nats == pytest.approx(-log_probs[3])
    model, vocabulary = tiny("lstm")
    save_lm(tmp_path / "lm", spec_of(settings("lstm")), model.state_dict(), vocabulary)
    assert perplexity(open_lm(tmp_path / "lm"), sentences, WORDS).nats == pytest.approx(result.nats)


def test_table_and_record() -> None:
    one = Perplexity("a", 1, 3, 1, nats=3 * math.log(8), oov_nats=None, words_beyond=7)
    lines = [" ".join(line.split()) for line in table([one]).splitlines()]
    assert lines[0] == "lm ppl ppl with OOV words ends OOV beyond lacking"
    assert lines[1] == "a 8.00 - 3 1 1 7 0"
    assert lines[2] == TREATMENT
    assert one.record()["ppl"] == pytest.approx(8)
    assert one.record()["ppl_with_oov"] is None
    assert Perplexity("a", 1, 0, 0, nats=1e6, oov_nats=0.0).ppl == math.inf


def test_the_share_of_each_group() -> None:
    dice = Dice(["a", "b", "c"])
    result = perplexity(dice, [["a", "z", "b"], ["c"], ["c"]], ["a", "b", "c"], ["s2", "s1", "s2"])
    # Words inside the vocabulary and ends: 3 and 2 of s2, 2 of s1.
    assert result.groups is not None
    assert {name: count for name, (_, count) in result.groups.items()} == {"s1": 2, "s2": 5}
    assert sum(nats for nats, _ in result.groups.values()) == pytest.approx(result.nats)
    assert result.groups["s1"][0] == pytest.approx(2 * math.log(5))
    assert "groups" in result.record() and "groups" not in perplexity(dice, [["a"]], ["a"]).record()

"""Words in token numbers, in the lexicon or not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from privasr_k2.errors import DataError
from privasr_k2.graph.lang import Lang
from privasr_k2.graph.lexicon import spell_in_pieces, train_bpe
from privasr_k2.graph.spelled import spelled_targets, spellings

pytest.importorskip("lhotse")

LANG = Lang(
    Path("lang"), ("<blk>", "▁", "a", "b"), ("<eps>", "ab", "#0"), (("ab", ("▁", "a", "b")),)
)


def cut(name: str, text: str) -> Any:
    """An utterance."""
    from lhotse import MonoCut, SupervisionSegment

    said = SupervisionSegment(id=name, recording_id=name, start=0, duration=1, text=text)
    return MonoCut(id=name, start=0, duration=1, channel=0, supervisions=[said])


def test_words_that_the_lexicon_lacks_are_spelled() -> None:
    assert spellings(LANG, ["ab", "ba", "xa"]) == {"ab": (1, 2, 3), "ba": (1, 3, 2)}


def test_phones_spell_nothing_that_the_lexicon_lacks() -> None:
    phones = Lang(Path("lang"), ("<blk>", "a"), ("<eps>", "x", "#0"), (("x", ("a",)),))
    assert spellings(phones, ["x", "a"]) == {"x": (1,)}


def test_phones_of_words_that_the_lexicon_lacks_are_those_of_the_folders_dictionary(
    tmp_path: Path,
) -> None:
    (tmp_path / "cmudict").write_text("cab K AE B\nbec B EH K\n")
    (tmp_path / "lang.yaml").write_text(f"cmudict: {tmp_path}/cmudict\ng2p: none\n")
    phones = Lang(tmp_path, ("<blk>", "K", "AE", "B"), ("<eps>", "x", "#0"), (("x", ("B",)),))
    assert spellings(phones, ["x", "cab", "bec", "zz"]) == {"x": (3,), "cab": (1, 2, 3)}


def test_words_are_spelled_in_the_pieces_of_the_lang_folder(tmp_path: Path) -> None:
    """Words with a piece that is no token of the model cannot be spelled."""
    pytest.importorskip("sentencepiece")
    train_bpe(["abab", "ab ba", "bab a c"], 9, tmp_path / "bpe.model")
    whole = spell_in_pieces((), ["abba", "cc", "ax"], tmp_path / "bpe.model")
    tokens = ("<blk>", *(token for token in whole.tokens if token != "c"))
    lang = Lang(tmp_path, tokens, ("<eps>", "#0"), ())
    [pieces] = whole.variants["abba"]
    assert "cc" in whole.variants and "ax" not in whole.variants
    found = spellings(lang, ["abba", "cc", "ax"])
    assert found == {"abba": tuple(tokens.index(piece) for piece in pieces)}


def test_private_words_are_targets_though_the_lexicon_is_public(
    caplog: pytest.LogCaptureFixture,
) -> None:
    from lhotse import CutSet

    cuts = CutSet.from_cuts([cut("u1", "ab ba"), cut("u2", "ab xa"), cut("u3", "bb")])
    kept, targets = spelled_targets(cuts, LANG, role="train")
    assert [one.id for one in kept] == ["u1", "u3"]
    assert targets == {"u1": [1, 2, 3, 1, 3, 2], "u3": [1, 3, 3]}
    assert "1 of 3 utterances left out" in caplog.text
    with pytest.raises(DataError, match="words that the lexicon has"):
        spelled_targets(CutSet.from_cuts([cut("u2", "x")]), LANG, role="train")

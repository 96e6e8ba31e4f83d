import pytest
from hypothesis import given
from hypothesis import strategies as st

from privasr_k2.text.normalize import normalize_english


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ("HE'S THERE", "he's there"),
        ("he\u2019s \u2018there\u2019", "he's there"),
        ("{vocalsound} 'Kay . {disfmarker}", "kay"),
        ("U.S. 3.5 per-cent", "u s 3 5 per cent"),
        ("na\u00efve ca\u0301fe \ufb01ne", "na\u00efve c\u00e1fe fine"),
        ("\u0130stanbul", "istanbul"),
        ("snake_case\tand\u00a0more", "snake case and more"),
        ("the boys' dogs 'n' cats", "the boys dogs n cats"),
        ("<unk> [noise] ...", ""),
        ("\u0374", ""),
    ],
)
def test_normalize_english(found: str, words: str) -> None:
    assert normalize_english(found) == words


@given(st.text(max_size=40))
def test_normalizing_twice_changes_nothing(text: str) -> None:
    once = normalize_english(text)
    assert normalize_english(once) == once
    assert once == " ".join(once.split())

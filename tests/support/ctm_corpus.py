"""A made corpus in the layout of Earnings-21: gold words and two recognizers."""

from __future__ import annotations

from pathlib import Path

from privasr_k2.fileio import atomic_path, open_text
from privasr_k2.randomness import stream

WORDS = (
    *("alpha", "bravo", "charlie", "delta", "echo", "foxtrot"),
    *("golf", "hotel", "india", "juliet", "kilo", "lima"),
)

NAMES = ("alpha", "juliet")


def write(path: Path, text: str) -> None:
    with atomic_path(path) as temporary, open_text(temporary, "w") as file:
        file.write(text)


def ctm_corpus(folder: Path, *, calls: int = 6, words: int = 120) -> Path:
    """Gold tokens and CTM; wrong words have low confidences as a rule, and are short.

    ``NAMES`` are people.
    """
    for number in range(calls):
        generator, call = stream(number, "call"), f"call{number}"
        tokens = generator.choice(WORDS, words).tolist()
        marks = [f"{n}:PERSON" if token in NAMES else "" for n, token in enumerate(tokens)]
        rows = "".join(
            f"{n}\t{token.title()}\t0\t\t{mark}\n"
            for n, (token, mark) in enumerate(zip(tokens, marks))
        )
        write(folder / f"gold/{call}.tsv.gz", f"idx\ttoken\tspeaker\tpunct\tentities\n{rows}")
        for name, rate in (("good", 0.15), ("bad", 0.5)):
            lines, start = [], 0.0
            for token in tokens:
                wrong = generator.random() < rate
                sure = generator.beta(2, 2) if wrong else generator.beta(5, 1.5)
                length = 0.2 if wrong and generator.random() < 0.7 else 0.5
                said = f"no{token[:2]}" if wrong else token
                lines.append(f"{call} A {start:.2f} {length:.2f} {said} {sure:.2f}\n")
                start += length + 0.1
            write(folder / f"ctm_{name}/{call}.ctm.gz", "".join(lines))
    return folder

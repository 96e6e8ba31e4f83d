"""The figures of turan2022, tables 1 to 5, to read beside those of a run: AMI's headset microphones, Kaldi's
LF-MMI TDNN. The class LM of its table 3 was adapted by one of two equations; which one it does not say."""

from __future__ import annotations

from privasr_k2.scoring.classlm_results import ADAPT, DIRECT, MIXED, ORIGINAL, SANITIZED, System

TEXTS = (
    {
        "part": "Train",
        "minutes": "4,880",
        "utterances": "108,221",
        "unique words": "11,882",
        "words": "802,604",
    },
    {"part": "Test", "minutes": "580", "utterances": "13,059", "unique words": "4,145", "words": "94,914"},
    {"part": "Adapt.", "minutes": "531", "utterances": "12,612", "unique words": "3,913", "words": "89,635"},
    {
        "part": "All",
        "minutes": "5,991",
        "utterances": "133,892",
        "unique words": "13,079",
        "words": "987,153",
    },
)
_MODELS = ("M1", "M2", "M3", "M4")
_BY_SETTING = {
    SANITIZED: ((32.3, 121), (30.2, 103), (32.9, 137), (30.5, 103)),
    ORIGINAL: ((28.8, 82), (29.3, 74), (29.1, 88), (27.6, 73)),
    f"{ADAPT}_12": ((31.5, 109), (29.9, 94), (30.8, 101), (30.1, 95)),
    f"{ADAPT}_15": ((31.2, 98), (29.8, 91), (30.6, 94), (29.9, 91)),
    f"{ADAPT}_20": ((31.0, 93), (29.7, 86), (30.3, 90), (29.8, 85)),
    f"{DIRECT}_12": ((31.9, 116), (30.2, 96), (31.4, 106), (30.3, 98)),
    f"{DIRECT}_15": ((31.4, 107), (29.8, 93), (30.5, 101), (30.0, 94)),
    f"{DIRECT}_20": ((29.6, 90), (29.3, 84), (29.9, 92), (29.5, 81)),
}
FIGURES = {
    **{
        System(setting, model): figures
        for setting, of_models in _BY_SETTING.items()
        for model, figures in zip(_MODELS, of_models, strict=True)
    },
    System(MIXED, "M1_M2"): (29.7, 95),
    System(MIXED, "M1_M2_M3"): (29.6, 92),
    System(MIXED, "M1_M2_M4"): (29.4, 86),
}
"""WER in per cent and perplexity."""

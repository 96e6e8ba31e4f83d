"""Privacy-preserving speech recognition as numbered-stage recipes on the Kaldi/k2 stack."""

__version__ = "0.1.0"

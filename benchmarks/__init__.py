"""Benchmarks: each ours against a peer, in one run; all of them by ``benchmarks/run.sh``."""

"""Attacks on our own releases: each gives a lower bound on epsilon, to compare with the claim."""

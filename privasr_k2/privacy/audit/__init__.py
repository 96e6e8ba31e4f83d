"""Attacks on our own releases: each gives a lower bound on epsilon, to be held against the
claim.
"""

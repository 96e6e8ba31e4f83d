"""Attacks on trained models and on releases: what can be read out of them, and bounds on their epsilon."""

"""Attacks on trained models and on releases, and lower bounds on epsilon from them."""

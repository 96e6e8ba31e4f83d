"""Readers of artifacts, by what they are of; :mod:`privasr_k2.report.kinds` registers them."""

"""Helpers shared with ``test_arpa.py``."""

from __future__ import annotations

TEXT = """\\data\\
ngram 1=5
ngram 2=4
ngram 3=1

\\1-grams:
-99\t<s>\t-0.3
-0.7\t</s>
-0.5\ta\t-0.2
-0.6\tb\t-0.1
-0.9\tc

\\2-grams:
-0.2\t<s> a\t-0.25
-0.3\ta b\t-0.4
-0.8\tb a
-0.4\tb </s>

\\3-grams:
-0.05\t<s> a b

\\end\\
"""

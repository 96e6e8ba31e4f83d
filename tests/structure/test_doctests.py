"""The examples in all docstrings run; those that need k2 are left out where there is none."""

from __future__ import annotations

import doctest
import importlib
import importlib.util

import pytest

from tests.support.layers import modules

NAMES = [f"privasr_k2.{name}".rstrip(".") for name in modules()]


@pytest.mark.parametrize("name", NAMES)
def test_examples(name: str) -> None:
    module = importlib.import_module(name)
    for example in doctest.DocTestFinder(exclude_empty=True).find(module):
        _run(example)


def _run(example: doctest.DocTest) -> None:
    runner = doctest.DebugRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    try:
        runner.run(example)
    except doctest.UnexpectedException as unexpected:
        error = unexpected.exc_info[1]
        if isinstance(error, ModuleNotFoundError) and error.name == "k2":
            pytest.skip("k2 is not installed")
        raise error from unexpected
    except doctest.DocTestFailure as failure:
        wanted, got = failure.example.want, failure.got
        place = f"{failure.test.filename}:{(failure.test.lineno or 0) + failure.example.lineno + 1}"
        source = failure.example.source.strip()
        pytest.fail(f"{place}: {source}\nexpected {wanted!r}\nfound    {got!r}")


def test_a_wrong_example_fails() -> None:
    wrong = doctest.DocTestParser().get_doctest(">>> 1 + 1\n3\n", {}, "wrong", "wrong.py", 0)
    with pytest.raises(pytest.fail.Exception, match="expected '3"):
        _run(wrong)

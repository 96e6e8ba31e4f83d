"""Made-up names of persons, places, organizations and works for the corpus ``mini``.

Some parts are plain English words too (Rose, May, Reading, Orange), as in real text.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from privasr_k2.errors import ConfigError
from privasr_k2.randomness import stream

KINDS = ("PER", "LOC", "ORG", "MISC")


@dataclass(frozen=True)
class Name:
    """A name as it is written, and the grammatical gender of a person: 0 (she), 1 (he)."""

    text: str
    gender: int = 0


_WOMEN = tuple(
    """Maria Rose Grace Hope May Anna Julia Laura Emma Nora Clara Alice Sarah Helen Irene Vera Lydia Martha Joan Ruth Iris
    Ivy Pearl Amber Jasmine Ginger Dawn Joy April June Summer Violet Olive Sandy Robin Diana Monica Teresa Elena Sofia
    Carmen Lucia Bianca Greta Ingrid Astrid Leila Amina Fatima Priya Anita Mina Yuki Hana Tamara Nadia Olga Irina Paula
    Sandra Linda Susan Karen Nancy Betty Carol Donna Sharon Brenda Pamela Rachel Hannah Molly Lucy Daisy Zoe Chloe Megan
    Bridget Fiona Sheila Naomi Esther Miriam Judith Rebecca Deborah Angela Valerie Marion Celia Della Odette""".split()
)
_MEN = tuple(
    """Mark Frank Bill Jack Will Rob Art Chase Grant Drew Miles Dean Pat August Victor Peter Paul David Daniel Samuel Simon
    Thomas Martin Robert Richard Edward Henry George Arthur Albert Walter Oscar Hugo Leo Max Felix Adam Noah Ethan Lucas
    Oliver Nathan Aaron Isaac Jacob Joseph Michael Gabriel Raphael Antonio Carlos Diego Luis Miguel Pablo Ricardo Marco
    Dario Enzo Stefan Anton Viktor Boris Ivan Omar Karim Hassan Tariq Ravi Arjun Kenji Hiro Takeshi Lars Sven Erik Gustav
    Patrick Kevin Brian Neil Colin Gordon Duncan Malcolm Ralph Harvey Stanley Morris Elliot Quentin Roland Bertram""".split()
)
_SURNAMES = tuple(
    """Baker Cook Park Hill Young King Rivers Stone Wood Field Brooks Banks Fisher Carter Mason Turner Walker Taylor Marsh
    Gonzalez Romero Delgado Navarro Ortega Silva Costa Moretti Bianchi Weber Keller Brandt Lindqvist Larsen Novak Petrov
    Tanaka Mori Patel Sharma Haddad Mansour Okoye Mensah Nguyen Kim""".split()
)
_SURNAME_STEMS = tuple(
    "Har Bar Wex Kel Mar Dun Ash Brad Hal Pem Thorn Win Wal Stan Lang Rad Col Fen Tal Ham".split()
)
_SURNAME_ENDS = tuple("low ton man ford well den by worth ley ridge".split())

_PLACES = tuple(
    "Lisbon Reading Bath Nice Mobile Orange Geneva Toronto Nairobi Osaka Lima Oslo Cairo Bergen".split()
)
_PLACE_STEMS = tuple(
    """Ash North South West East Oak Elm Mill Stone Red White Black Green Silver Fair Clear High Wood Spring Winter Long
    Deer Fox Swan Crow Lake River Sand Rock Glen""".split()
)
_PLACE_ENDS = tuple(
    "ford brook field bury ham ville ton port wick mouth haven dale stead bridge".split()
)
_WAYS = tuple(
    "Street Road Avenue Lane Square Station Park Hill Beach Bridge Market Harbour".split()
)
_REGIONS = ("Port", "Lake", "Mount", "Saint", "New", "Upper", "Lower", "Old")

_MADE_UP = tuple("Vel Zen Nor Lum Tal Kor Sol Mir Quan Ver Dex Pol Lan Ost".split())
_MADE_UP_ENDS = tuple("ora trix via co ista eon ium ax ana exa".split())
_TRADES = tuple(
    """Systems Dental Motors Foods Books Bakery Airlines Bank Insurance Clinic Hardware Logistics Energy Media Studios
    College Pharmacy Gardens Fitness Kitchen Grill Coffee Travel Records Telecom Partners Group Hotel Theatre Museum
    Electric Sports""".split()
)

_TITLE_FIRST = tuple(
    """Silver Golden Midnight Summer Winter Broken Silent Paper Crystal Hidden Burning Distant Electric Velvet Frozen Lonely
    Wild Quiet Crimson Hollow Endless Lucky Little Second Final Northern Sleeping Wooden Glass Secret""".split()
)
_TITLE_LAST = tuple(
    """Lantern Harbour River Garden Mirror Horizon Valley Empire Signal Kingdom Letters Shadows Dreams Highway Island Circus
    Orchard Compass Carnival Station Feather Thunder Season Detective Fortune Voyage Riddle Window Planet Orchestra""".split()
)
_FESTIVALS = tuple("Festival Marathon Cup Fair Parade Open Carnival Awards".split())


def parts_by_popularity(parts: tuple[str, ...], name: str) -> tuple[str, ...]:
    """The parts in the order of how often they are drawn: a fixed permutation."""
    return tuple(parts[i] for i in stream(0, "popularity", name).permutation(len(parts)))


def zipf_index(count: int, exponent: float, generator: np.random.Generator) -> int:
    """An index below ``count`` with probability in proportion to (index + 1) ** -exponent."""
    mass = _zipf_mass(count, exponent)
    return min(int(mass.searchsorted(generator.random() * mass[-1], side="right")), count - 1)


@lru_cache(maxsize=1000)
def _zipf_mass(count: int, exponent: float) -> np.ndarray:
    return np.cumsum(np.arange(1, count + 1, dtype=float) ** -exponent)


_SURNAME_PARTS = parts_by_popularity(
    _SURNAMES + tuple(a + b for a in _SURNAME_STEMS for b in _SURNAME_ENDS), "surname"
)
_TOWN_PARTS = parts_by_popularity(
    _PLACES + tuple(a + b for a in _PLACE_STEMS for b in _PLACE_ENDS), "town"
)
_BRAND_PARTS = parts_by_popularity(
    ("Apple", "Orange", *(a + b for a in _MADE_UP for b in _MADE_UP_ENDS)), "brand"
)
_GIVEN_PARTS = (parts_by_popularity(_WOMEN, "women"), parts_by_popularity(_MEN, "men"))
_PART_EXPONENT = 1.0  # some parts of names are more common than others
_MAX_IN_VAIN = 2000  # draws in a row that give nothing new: the names are used up


def _person(generator: np.random.Generator) -> Name:
    gender = int(generator.integers(2))
    given = _draw(_GIVEN_PARTS[gender], generator)
    alone = generator.random() < 0.2
    return Name(given if alone else f"{given} {_draw(_SURNAME_PARTS, generator)}", gender)


def _place(generator: np.random.Generator) -> Name:
    town, kind = _draw(_TOWN_PARTS, generator), generator.random()
    if kind < 0.4:
        return Name(town)
    way, region = f" {_draw(_WAYS, generator)}", f"{_draw(_REGIONS, generator)} "
    has_region, has_way = kind >= 0.78, kind < 0.78 or kind >= 0.97
    return Name((region if has_region else "") + town + (way if has_way else ""))


def _organization(generator: np.random.Generator) -> Name:
    kind = generator.random()
    if kind < 0.1:
        return Name(_draw(_BRAND_PARTS, generator))
    first = _draw((_BRAND_PARTS, _SURNAME_PARTS, _TOWN_PARTS)[int(kind * 10) % 3], generator)
    return Name(f"{first} {_draw(_TRADES, generator)}")


def _work(generator: np.random.Generator) -> Name:
    kind = generator.random()
    if kind < 0.2:
        return Name(f"{_draw(_TOWN_PARTS, generator)} {_draw(_FESTIVALS, generator)}")
    if kind < 0.4:
        return Name(f"{_draw(_TITLE_LAST, generator)} of {_draw(_TITLE_LAST, generator)}")
    more = f" of {_draw(_TITLE_LAST, generator)}" if kind >= 0.97 else ""
    return Name(f"{_draw(_TITLE_FIRST, generator)} {_draw(_TITLE_LAST, generator)}{more}")


_MAKERS = {"PER": _person, "LOC": _place, "ORG": _organization, "MISC": _work}


def _draw(parts: tuple[str, ...], generator: np.random.Generator) -> str:
    return parts[zipf_index(len(parts), _PART_EXPONENT, generator)]


def public_list(kind: str, size: int, seed: int) -> list[Name]:
    """``size`` different names of one kind, the more popular first, independent of all users.

    Raises:
        ConfigError: there are not that many names of the kind.

    >>> [n.text for n in public_list("LOC", 2, 1)] == [n.text for n in public_list("LOC", 9, 1)][:2]
    True
    """
    generator, names, in_vain = stream(seed, "public", kind), dict[str, Name](), 0
    while len(names) < size:
        name = _MAKERS[kind](generator)
        in_vain = in_vain + 1 if name.text in names else 0
        if in_vain > _MAX_IN_VAIN:
            expected, found = f"{size} different names", f"about {len(names)}"
            way_out = "ask for fewer users, fewer names for each, or a smaller public_factor"
            raise ConfigError(f"public list of {kind}", expected, found, way_out)
        names.setdefault(name.text, name)
    return list(names.values())


def own_name(kind: str, known: frozenset[str], generator: np.random.Generator) -> Name:
    """A name that is not in ``known``."""
    for _ in range(_MAX_IN_VAIN):
        name = _MAKERS[kind](generator)
        if name.text not in known:
            return name
    expected = "one that is not on the public list"
    raise ConfigError(f"names of {kind}", expected, "none", "ask for fewer users")

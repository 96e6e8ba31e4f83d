"""A checkout with one corpus and a recipe of two stages, for tests of the command line."""

from __future__ import annotations

from pathlib import Path

from tests.support.stage_tools import CORPUS, clone

TOY = '''\
"""A recipe for tests: two stages."""

from dataclasses import dataclass

from privasr_k2.recipe.options import option

@dataclass(frozen=True)
class Options:
    number: int = option(3, "a number")
    scale: float = option(0.5, "another")
    several: tuple[int, ...] = option((1, 10), "several")
    flag: bool = option(False, "has its own word")
    word: str = option("some", "a word")

def stages(r, o):
    r.exp = "exp/toy_own" if o.flag else f"exp/toy_{o.word}"
    several = " ".join(map(str, o.several))
    value = f"number={o.number} scale={o.scale:g} several={several} flag={o.flag} {r.own['users']}"
    verb = str(r.root / "copy")
    r.stage(0, f"data of {r.corpus.conf_name}", verb, in_x=r.root / "x",
            raw_corpus=r.data.corpus_dir, out_data="data/d", set={"value": value})
    r.report_path = r.stage(1, "table", verb, in_data="data/d", config="toy", device=True,
                            out_report=f"{r.exp}/RESULTS.md", set={"value": r.command})
'''
CONF = {
    "common": "toy: {value: 1}\nsearch: {beam: 3}\n",
    "ctc": "overrides: {toy: {value: 2}}\n",
    "presets/tiny": "toy: {value: 4}\n",
    "presets/paper": "toy: {value: 4}\noverrides: {ctc: {toy: {value: 5}}}\n",
}


def toy_checkout(folder: Path) -> Path:
    """The entries of the repository, with one corpus and one recipe for tests."""
    checkout = clone(folder, {"little": CORPUS})
    (checkout / "local/recipes/ctc.py").write_text(TOY)
    (checkout / "egs/little/corpus").mkdir()
    (checkout / "conf/presets").mkdir(parents=True)
    for name, text in CONF.items():
        (checkout / f"conf/{name}.yaml").write_text(text)
    return checkout

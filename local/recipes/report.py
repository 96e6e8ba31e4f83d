"""One page of the results of every recipe of a corpus: exp/report.html."""

from dataclasses import dataclass
from pathlib import Path

from privasr_k2.recipe.declare import Recipe
from privasr_k2.recipe.options import Paths, option

ORDER = ("ctc", "encoder", "rescore", "classlm", "fmp", "fedlm", "personal", "compose", "pate",
         "dpsgd", "wordvotes", "redteam", "confidence")


@dataclass(frozen=True)
class Options:
    """Which work folders."""

    also: Paths = option((), "other folders with data/ and exp/ whose results follow")


def stages(r: Recipe, o: Options) -> None:
    """The results of the work folder come first."""
    work = (r.run.work_dir or r.corpus.home).resolve()
    results: list[str] = []
    for folder in (work, *o.also):
        if folder != work and not folder.is_dir():
            r.refuse("--also", "folders in which recipes were run", folder, "correct the name")
        for name in ORDER:
            files = {*folder.glob(f"exp/{name}/results.jsonl"),
                     *folder.glob(f"exp/{name}_*/results.jsonl")}
            results += [str(file.relative_to(work)) if file.is_relative_to(work) else str(file)
                      for file in sorted(files)]
    if not results:
        r.refuse(str(work / "exp"), "results.jsonl of a recipe", "none",
                 f"run one first: ./run.sh {r.corpus.name} ctc")
    # Layouts of older results lack keys that came later.
    r.stage(1, "page of all results", "report", config="report", in_results=results,
            in_layouts=[str(Path(file).with_name("layout.yaml")) for file in results],
            out_page="exp/report.html", set={"title": r.corpus.name})

"""Federated runs: personalized lists, and trainings by round."""

from __future__ import annotations

from pathlib import Path

from privasr_k2.fileio import read_json, read_jsonl, read_yaml
from privasr_k2.report.measures import Context, Measure, Paired, Reading
from privasr_k2.report.readers.models import GroupNats


def run(path: str, context: Context) -> Reading:
    """A ``run_<role>.json`` of ``personalize``.

    It has settings, what devices need, and the perplexity over clients.
    """
    content = read_json(Path(path))
    config, release, figures = content["config"], content["release"], content["perplexity"]
    names = ("lam", "alpha", "beta", "kernel_bandwidth", "strength")
    measures = [Measure(name, float(config[name])) for name in names if name in config]
    if costs := content.get("costs"):  # files of earlier versions have none
        for name in ("kept", "sent"):
            measures.append(Measure(f"{name}_kb", float(costs[f"{name}_bytes"]) / 1e3))
        measures += [Measure(name, float(costs[name])) for name in ("learn_ms", "score_ms")]
    pairs: dict[tuple[str, str], Paired] = {}
    if release is not None:
        how = release.get("strategy") or f"called epsilon {release['epsilon']:g}"
        measures.append(Measure("mechanism", f"{release['mechanism']}, {how}"))
        if "words" in release:  # as published: what its authors' own arithmetic comes to
            paper = float(release["words"]) * int(release["rounds"]) * float(release["epsilon"])
            measures.append(Measure("paper_epsilon", paper))
        if replaced := release.get("background_rounds"):  # of noisy totals: public
            measures.append(Measure("background_rounds", int(replaced)))
    if figures is not None:
        groups = {
            name: (float(sum(of["nats"])), int(sum(of["tokens"])))
            for name, of in figures["clients"].items()
        }
        paired = GroupNats(path, groups, context)
        pairs["", "ppl"] = paired
        measures.append(paired.measure(float(figures["total"])))
        measures.append(Measure("ppl_last_round", float(figures["by_round"][-1])))
    return Reading(tuple(measures), pairs)


def wins(path: str, context: Context) -> Reading:
    """``FILE#SYSTEM``: a file of ``compare``; items are groups of people by their words."""
    file, _, system = path.partition("#")
    measures = []
    for of in read_json(Path(file))["groups"]:
        item = of["group"] or "all"
        measures += [
            Measure("wins_people", int(of["people"]), item=item),
            Measure("wins_best", int(of["best"][system]), item=item),
            Measure("wins_better", int(of["better"][system]), item=item),
        ]
    return Reading(tuple(measures))


def rounds(path: str, context: Context) -> Reading:
    """A folder of ``train_fedlm``, ``train_dpsgd`` or a like training: the loss of dev by round."""
    folder, measures = Path(path), list[Measure]()
    for record in read_jsonl(folder / "train_log.jsonl"):
        for metric in ("dev_ppl", "dev_loss"):
            if metric in record:
                step = str(int(record["step"]))
                measures.append(Measure(metric, float(record[metric]), item=step))
    if (folder / "federated.json").is_file():
        about, config = read_json(folder / "federated.json"), read_yaml(folder / "config.yaml")
        measures.append(Measure("client_lr", float(config["client"]["lr"])))
        measures.append(Measure("server_lr", float(config["server"]["lr"])))
        measures.append(Measure("rounds", int(about["rounds"])))
        measures.append(Measure("kept_round", int(about["kept_round"])))
    return Reading(tuple(measures))

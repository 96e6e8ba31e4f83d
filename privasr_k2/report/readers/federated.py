"""Federated runs: personalized lists of ``run_fmp``, and trainings by round."""

from __future__ import annotations

from pathlib import Path

from privasr_k2.fileio import read_json, read_jsonl, read_yaml
from privasr_k2.report.measures import Context, Measure, Paired, Reading
from privasr_k2.report.readers.models import GroupNats


def run(path: str, context: Context) -> Reading:
    """A ``run_<role>.json`` of ``run_fmp``: its settings, and the perplexity over clients."""
    content = read_json(Path(path))
    config, release, figures = content["config"], content["release"], content["perplexity"]
    names = ("lam", "alpha", "beta", "kernel_bandwidth")
    measures = [Measure(name, float(config[name])) for name in names]
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

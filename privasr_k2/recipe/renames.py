"""One spelling of a stage's command: a renamed verb, flag or key makes nothing run again."""

from __future__ import annotations

from collections.abc import Sequence

from privasr_k2.recipe.plan import flags_of

#: Verbs by their earlier names.
VERBS: dict[str, str] = {
    **dict.fromkeys(("make_nbest", "make_lattices", "decode_e2e"), "decode"),
    **dict.fromkeys(("audit_pate", "audit_dpsgd", "audit_fedlm", "audit_fmp"), "audit"),
    **dict.fromkeys(("run_fmp", "tune_fmp", "rescore_fmp"), "personalize"),
    **dict.fromkeys(("import_am", "import_nbest"), "import_external"),
    **dict.fromkeys(("export_nbest", "assemble_recognizer"), "export"),
    **dict.fromkeys(("approximate_lm", "train_class_lm"), "train_ngram"),
    "release_fmp_published": "release_fmp",
    "tune_rescoring": "tune_weights",
    "score": "wer",
    "score_nbest": "lm_scores",
    "rescore_nbest": "select_nbest",
    "make_background": "prepare_fmp",
    "prepare_earnings21_clients": "prepare_earnings21",
    "plan_votes": "privacy_plan",
    "privacy_report": "ledger",
    "report_inversion": "invert_model",
    **dict.fromkeys(("split_speech", "split_text"), "split_corpus"),
}
_FEDLM = {
    "rate": "client_fraction",
    "confidences.way": "confidences.use",
    "privacy.alone": "privacy.isolate_clients",
    "start": "init",
    "keep": "select_round",
    "server.epsilon": "server.adam_eps",
}
_RELEASES_OF_LABELS = {
    "answers": "max_answers",
    "asked": "max_queries",
    "epsilon_means": "published_scale",
    "epsilon_means=exact": "published_scale=none",
    "epsilon_means=published_equation": "published_scale=equation",
    "epsilon_means=published_figures": "published_scale=figures",
    "least": "min_answers",
    "most_noise": "max_sigma",
}
_DPSGD = {"alone": "isolate_units", "start": "init"}
#: Keys of ``--set`` that are gone, by verb, with the way out.
REMOVED: dict[str, dict[str, str]] = {
    verb: {"unit": "remove it: the file of clients says what a client is (make_clients)"}
    for verb in ("train_fedlm", "tune_fedlm")
}
#: Keys of ``--set``, or ``key=value``, by their earlier names, for verbs by their names of now.
KEYS: dict[str, dict[str, str]] = {
    "personalize": {
        "sigma": "kernel_bandwidth",
        "sigmas": "kernel_bandwidths",
        "client_rate": "client_fraction",
    },
    "release_fmp": {
        "sigma": "kernel_bandwidth",
        "unit=call": "unit=client",
        "unit=meeting": "unit=client",
        "unit=speaker": "unit=user",
    },
    "audit": {"sigma": "kernel_bandwidth", **_DPSGD, **_FEDLM},
    "finetune_lm": {"confidences.way": "confidences.use", "start": "init", "keep": "select_epoch"},
    "privacy_plan": {"unit": "privacy_unit", "units": "num_units", "rate": "client_fraction"},
    "sanitize_text": {"keep": "keep_prob"},
    "train_fedlm": _FEDLM,
    "tune_fedlm": _FEDLM,
    "aggregate_votes": _RELEASES_OF_LABELS,
    "vote_tokens": {**_RELEASES_OF_LABELS, "candidates": "top_k", "sure": "public_threshold"},
    "train_dpsgd": _DPSGD,
    "train_student": {
        "student.labelled_role": "student.labeled_role",
        "student.labelled_weight": "student.labeled_weight",
        "student.unanswered.least": "student.unanswered.min_confidence",
        "student.ways": "student.unlabeled_data",
    },
}


def canonical(command: Sequence[str]) -> list[str]:
    """A verb's words by the names of now, sorted, with numbers in one form.

    >>> canonical(["run_fmp", "--out-run", "p", "--in-x", "b", "a", "--set", "delta=1e-5"])
    ['personalize', '--in-x', 'b', 'a', '--out-run', 'p', '--set', 'delta=1e-05']
    >>> canonical(["prepare_corpus", "--set", "--out-dir", "d"])
    ['prepare_corpus', '--out-dir', 'd']
    """
    verb = VERBS.get(command[0], command[0])
    words = [verb]
    for flag, values in sorted(flags_of(command), key=lambda pair: pair[0]):
        if flag == "--set":
            values = [v for v in values if v.partition("=")[0] not in REMOVED.get(verb, {})]
            values = sorted(_setting(KEYS.get(verb, {}), value) for value in values)
        words += [flag, *values] if values or flag != "--set" else []
    return words


def _setting(keys: dict[str, str], word: str) -> str:
    key, equals, value = keys.get(word, word).partition("=")
    return f"{keys.get(key, key)}={_number(value)}" if equals else word


def _number(value: str) -> str:
    try:
        number = float(value)
    except ValueError:
        return value
    return str(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)

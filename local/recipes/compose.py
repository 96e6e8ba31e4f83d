"""One recognizer of three papers, on disjoint parts of the users, under one ledger.

train: what its users wrote or said, sanitized [turan2022]: class LM, neural LM, vocabulary.
adapt: what its users said, recognized, trains that LM on their devices [liu2021].
test: unigrams of each user, and of all by private releases, adapt it while they speak [liu2020].
"""

from dataclasses import dataclass, replace
from typing import Literal

from local.stages.composed import FederatedOptions, personalize, train_federated
from local.stages.first_pass import FirstPass, choose_am, decode, score, tune_weights
from local.stages.sanitized import SanitizedOptions, sanitize, text_lang
from local.stages.second_pass import NeuralLm, nbest_lists, rescore, score_roles, train_lm
from privasr_k2.recipe.declare import Recipe
from privasr_k2.recipe.options import Count, Positive, from_conf, option


@dataclass(frozen=True)
class Options(SanitizedOptions, FederatedOptions):
    """Those of sanitized text, of federated training, and of releases of unigrams."""

    nnlm: NeuralLm = option("lstm", "neural LM")
    client: Literal["speaker", "zipf", "devices"] = option(
        "speaker", "clients: speakers, or devices as in fedlm")
    devices: Count | None = from_conf("clients.devices", "zipf, devices: number of devices")
    fmp_rounds: Count = option(10, "releases of unigrams")
    epsilon: Positive = option(1.0, "epsilon of all releases of unigrams, for a user")


def stages(r: Recipe, o: Options) -> None:
    """Stages 0 to 6 are those of sanitized text."""
    am = choose_am(r, o)
    r.exp = f"exp/compose_{am.name}"
    s = sanitize(r, o, am)
    # Words that are neither in what was released nor on public lists are unknown.
    lang = text_lang(r, s, "lang directory of released words", f"{s.data.lang}_released", [s.text],
                     all_words=False)
    dev = {"in_dev": s.part("dev"), "in_lang": lang}
    class_lm = r.stage(9, "class LM of sanitized text", "train_ngram", config="class_lm",
                       in_text=s.text, in_public_lists=s.public_lists, **dev,
                       out_class_lm=f"{r.exp}/lm/classes")
    lms = {"classes": class_lm}
    lms["pretrained"] = train_lm(r, 9, f"neural LM of sanitized text, {o.nnlm}", o.nnlm,
                                 f"{r.exp}/lm/pretrained", in_text=s.text, **dev,
                                 set={"epochs": o.lm_epochs})
    # Errors are those of the acoustic model, too: a release of text covers them if it is imported.
    protects = "names in text of train" if o.am_model else ""
    imported = "imported" if o.am_model else "trained on train"
    one_pass = r.system("first_pass", label="class LM of sanitized text", method="classlm",
                        acoustic_model=imported, protects=protects)
    graph = r.stage(10, "decoding graph with names", "compile_graph", config="graph", in_lang=lang,
                    in_lm=class_lm, out_dir=f"{r.exp}/graph")
    first = FirstPass(replace(s.data, manifests=s.scored, lang=lang), s.am, class_lm, graph,
                      one_pass.folder)
    decode(r, 10, "decode dev over a grid of weights", first, "dev", f"{first.exp}/decode_dev",
           tuned=False)
    one_pass.add("weights", tune_weights(r, 10, "weights, chosen on dev", first))
    for role in ("adapt", "dev", "test"):
        nbest_lists(r, 10, f"N-best lists of {role}", first, role, f"{r.exp}/nbest_{role}",
                    num_paths=20)
    lms["federated"], federated_privacy = train_federated(r, o, lms["pretrained"])

    pretrained = r.system("pretrained", label="with a neural LM of sanitized text",
                          method="classlm", protects=protects, compare_with=[one_pass])
    federated = r.system("federated", label="trained on devices", method="fedlm",
                         protects="each {unit} of adapt", compare_with=[pretrained, one_pass])
    personalized = r.system("personalized", label="personalized", method="fmp",
                            protects="each {unit} of test",
                            compare_with=[pretrained, one_pass], headline=True)
    for system in (one_pass, pretrained) if o.am_model else ():
        system.add("privacy", s.privacy)
    federated.add("privacy", federated_privacy)
    federated.add("rounds", lms["federated"])

    decode(r, 13, "test in one pass", first, "test", f"{first.exp}/decode_test", tuned=True)
    score(r, 13, "score first_pass", hyps=f"{first.exp}/decode_test", weights=first.weights,
          first=first, out=one_pass.path("score_test"))
    lists = f"{r.exp}/nbest_ROLE"
    scores = {
        name: score_roles(r, 13, f"by {name}", lists, lm, name,
                          f"{r.exp}/lm_scores/{name}_ROLE.safetensors")
        for name, lm in lms.items()
    }
    for system in (pretrained, federated):
        rescore(r, 13, system, lists, [scores["classes"], scores[system.name]], s.scored)
        score(r, 13, f"score {system.name}", hyps=f"{system.folder}/decode_test", first=first,
              out=system.path("score_test"))
    personalize(r, o, s, lms["federated"], scores["federated"], scores["classes"], federated,
                personalized)
    score(r, 16, "score personalized", hyps=f"{personalized.folder}/decode_test", first=first,
          out=personalized.path("score_test"))
    r.report(17, manifests=s.scored)

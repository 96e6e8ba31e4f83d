"""Stages 5 to 8 of wordvotes: candidates, votes, LMs of them, and what is recognized with these."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from local.stages.data import Data, am_layers, part_values, prepare_data, prepare_lang, upon
from local.stages.first_pass import FirstPass, decode, score, tune_weights
from local.stages.second_pass import grid_of, nbest_lists, rescore, score_roles
from local.stages.sides import Sides, public_lm, train_public
from privasr_k2.recipe.declare import Declared, Recipe
from privasr_k2.recipe.options import Count, Natural, from_conf, path_option

#: Those of conf/grammars.txt, by the names of their lists.
GRAMMARS = ("letters", "number", "date")


#: A system, and the graph and weights that it recognizes with.
Recognized = tuple[Declared, FirstPass]


@dataclass(frozen=True)
class VoteOptions:
    """Options of votes for words."""

    word_list: Path | None = path_option(
        "public words to vote on, besides those of public text: a word a line")
    max_words: Count | None = from_conf("vote_words.max_words", "words that a speaker votes for")
    max_bigrams: Natural | None = from_conf("vote_words.max_bigrams",
                                            "bigrams of released words that a speaker votes for")
    choose: Literal["most_said", "random"] | None = from_conf(
        "vote_words.choose", "which of the words they said")


@dataclass
class TextAlone(Sides):
    """Public text, and everybody of train is private: Whisper learns from no speech here."""

    @property
    def private(self) -> str:
        return self.data.manifests

    @property
    def public(self) -> str:
        return ""


def prepare_text(r: Recipe, o: Any) -> Sides:
    """Stages 0 and 3: manifests, and a lang directory of public text."""
    if o.graph_text is None:
        r.refuse("--whisper", "--graph-text, the public words and their LM", "none", "give it")
    if o.grammars:
        r.refuse("--grammars", "a graph", "the lists of --whisper", "remove one")
    data = prepare_data(r, features=False, make_lang=False,
                        lang_name=f"{r.data.token_type}_public")
    s = TextAlone(data, "", "")
    prepare_lang(r, 3, "lang directory of public text", s.lang, raw_public_lm_text=o.graph_text,
                 set={"train_words": False})
    return s


def grammar_lists(r: Recipe, o: Any) -> str:
    """Stage 5: phrases of public grammars, a list each; empty: none is asked for."""
    if not o.grammars:
        return ""
    if not o.mix:
        r.refuse("--grammars", "--mix true, as they are mixed in", "--mix false", "remove one")
    return r.stage(5, "phrases of public grammars", "make_name_lists", config="name_lists",
                   out_lists="data/grammars", set={"grammars": GRAMMARS})


def candidates(r: Recipe, o: Any, s: Sides, grammars: str) -> str:
    """Stage 5: the lang directory whose words are voted on: those of public text and lists."""
    if o.word_list is None and not grammars:
        return s.lang
    return words_in_tokens(r, o, s, "lang directory of candidates", f"{s.lang}_candidates",
                           grammars, in_public_further_text=o.word_list)


def words_in_tokens(r: Recipe, o: Any, s: Sides, title: str, lang: str, grammars: str,
                    **more: Any) -> str:
    """A lang directory of the public words and more, in the tokens of the public model."""
    bpe = f"{s.lang}/bpe.model" if r.data.token_type.startswith("bpe_") else ""
    return prepare_lang(r, 5, title, lang, in_public_manifests=s.public,
                        raw_public_lm_text=o.graph_text, **more, in_public_lists=grammars,
                        in_tokens=f"{s.lang}/tokens.txt", in_bpe_model=bpe)


@dataclass
class Lms:
    """LMs whose graphs are compared.

    Attributes:
        o: options of public speech and of votes.
        sides: with the public model's lang directory; ``lang``: that of the candidates.
        lists: phrases of public grammars; ``grammars``: the class LM of them; empty: none.
        mix: whether LMs are mixed with that of public text.
        end: of the titles of votes: whose they are.
        number: of the stages of votes.
    """

    r: Recipe
    o: Any
    sides: Sides
    lang: str
    lists: str = ""
    grammars: str = ""
    mix: bool = True
    end: str = ""
    number: int = 7

    @property
    def voters(self) -> dict[str, Any]:
        """Flags of the votes: the private text, and public candidates."""
        return {"in_private_manifests": self.sides.private, "in_lang": self.lang}

    @property
    def dev(self) -> str:
        """The text that weights are chosen on; it counts as public."""
        return f"{self.sides.data.manifests}/cuts_dev.jsonl.gz"

    def use_grammars(self) -> None:
        """Stage 5: a class LM whose names are the phrases of grammars, for all mixtures."""
        if self.lists:
            classes = [name.upper() for name in GRAMMARS]
            text = str(self.r.root / "conf/grammars.txt")
            self.grammars = self.r.stage(
                5, "class LM of public grammars", "train_ngram", config="class_lm",
                in_public_text=text, in_public_lists=self.lists, in_lang=self.lang,
                out_class_lm=f"{self.r.exp}/grammars",
                set={"classes": classes, "sub_lm": "bigram", "discounting": "witten_bell"})

    def public(self, lang: str, folder: str) -> str:
        """Stage 5: that of public text, of the words of a lang directory."""
        return public_lm(self.r, self.o, self.sides, lang, f"{folder}/public.arpa.gz", number=5)

    def of_all_text(self, system: Declared) -> tuple[str, str]:
        """Stage 6: words, and the n-gram LM, of all private text. Nothing protects it."""
        r, s, folder = self.r, self.sides, system.folder
        lang = words_in_tokens(r, self.o, s, "lang directory with all private words",
                               f"{folder}/lang", self.lists,
                               in_further_text=f"{s.private}/cuts_train.jsonl.gz")
        public = self.public(lang, folder)
        lm = r.stage(6, "n-gram LM of all private text", "train_ngram", config="lm_ngram",
                     in_manifests=s.private, in_lang=lang, out_lm=f"{folder}/private.arpa.gz",
                     set={"text": "train"})
        return lang, self.mixed(6, system, [public, lm])

    def of_votes(self, system: Declared, epsilon: float, public: str) -> str:
        """Stage 7, or :attr:`number`: a release of words, its audit, and the LM of its votes."""
        r, o, folder, number = self.r, self.o, system.folder, self.number
        which = f"epsilon {epsilon:g}{self.end}"
        settings = {"max_words": o.max_words, "max_bigrams": o.max_bigrams, "choose": o.choose,
                    "epsilon": epsilon, "delta": o.delta}
        votes = r.stage(number, f"votes for words, {which}", "vote_words", spends=True,
                        config="vote_words", **self.voters, out_dir=system.path("votes"),
                        out_privacy=system.path("privacy", "privacy.json"),
                        set={"data": f"{r.people}/train", **settings})
        if o.audit:
            r.stage(number, f"audit of votes, {which}", "audit", config="audit_votes",
                    in_votes=votes, out_audit=system.path("audit", "audit.json"))
        lm = r.stage(number, f"LM of votes, {which}", "train_ngram", config="voted_lm",
                     in_votes=votes, in_lang=self.lang, out_lm=f"{folder}/voted.arpa.gz",
                     set={"unreleased": self.mix})
        lms = [public, lm]
        if self.mix:
            lms.insert(1, r.stage(
                number, f"public LM with the words of votes, {which}", "adapt_lm",
                config="fma", in_lm=public, in_unigrams=lm, in_public_dev_text=self.dev,
                out_lm=f"{folder}/adapted.arpa.gz", out_choice=f"{folder}/adapted.json"))
        return self.mixed(number, system, lms)

    def with_grammars(self, system: Declared, lm: str) -> str:
        """Stage 6: an LM as it is, or mixed with that of grammars."""
        return self.mixed(6, system, [lm]) if self.grammars else lm

    def mixed(self, number: int, system: Declared, lms: list[str]) -> str:
        """The LM that comes last, mixed with others with the weights that dev prefers."""
        if not self.mix:
            return lms[-1]
        out = "mixed" if self.grammars else "mixed.arpa.gz"
        all_lms = [*([self.grammars] if self.grammars else []), *lms]
        return self.r.stage(number, f"mixture, {system.name}", "interpolate_lms",
                            config="interpolate", in_lm=all_lms, in_public_dev_text=self.dev,
                            out_lm=f"{system.folder}/{out}",
                            out_weights=f"{system.folder}/mixture.json")


@dataclass
class PublicModel:
    """An acoustic model of public speech; graphs differ in their words and LM."""

    r: Recipe
    o: Any
    sides: Sides

    def __post_init__(self) -> None:
        base = f"exp/e2e_{upon(self.r)}{self.r.data.token_type}"
        self.am = train_public(self.r, self.o, self.sides, "ctc", f"{base}/ctc/public")

    def alone(self) -> list[Declared]:
        """What it recognizes without an LM of ours: nothing."""
        return []

    def recognize(self, system: Declared, lang: str, lm: str) -> FirstPass:
        """Stage 8: the graph of an LM, and what it finds."""
        return in_graph(self.r, self.sides.data, self.am, system, lang, lm)


def in_graph(r: Recipe, data: Data, am: str, system: Declared, lang: str, lm: str) -> FirstPass:
    """Stage 8: the graph of an LM, and what an acoustic model finds in it."""
    graph = r.stage(8, f"decoding graph, {system.name}", "compile_graph", config="graph",
                    in_lang=lang, in_lm=lm, out_dir=f"{system.folder}/graph")
    first = FirstPass(replace(data, lang=lang), am, lm, graph, system.folder)
    recognize(r, 8, system, first)
    return first


def recognize(r: Recipe, number: int, system: Declared, first: FirstPass) -> None:
    """Weights of a model and a graph, chosen on dev; what these find in test."""
    name, exp = system.name, first.exp
    decode(r, number, f"decode dev, {name}", first, "dev", f"{exp}/decode_dev", tuned=False)
    system.add("weights", tune_weights(r, number, f"weights of {name}, chosen on dev", first))
    decode(r, number, f"decode test, {name}", first, "test", f"{exp}/decode_test", tuned=True)
    score(r, number, f"score {name}", hyps=f"{exp}/decode_test", weights=first.weights,
          first=first, out=system.path("score_test"))


@dataclass
class Students:
    """Acoustic models that learn the pool's words as a graph finds them.

    A student of a voted graph reads released and public data alone, so its guarantee is that of
    the votes. The student of the public graph is the control: it learns without private data.
    """

    r: Recipe
    o: Any
    sides: Sides

    def train(self, all_text: Recognized, public: Recognized, *voted: Recognized) -> None:
        """Stages 9 and 10, for the recognizers of stage 8."""
        r = self.r
        control = self.declare(public[0], compare_with=[public[0]])
        ceiling = r.system("all_speech", label="all private speech and words",
                           method="not_private", compare_with=[public[0], control])
        self.of_all_speech(ceiling, all_text[1])
        self.of_words(control, public[1])
        for teacher, first in voted:
            student = self.declare(teacher, compare_with=[control, teacher], public=control,
                                   not_private=ceiling, headline=True,
                                   protects=teacher.values["protects"])
            student.add("privacy", teacher.artifacts["privacy"])
            self.of_words(student, first)
        r.sort_stages()

    def declare(self, teacher: Declared, **values: Any) -> Declared:
        """The system of a teacher's student."""
        values |= {**teacher.values["facts"], "learner": "student"}
        return self.r.system(f"{teacher.name}_student", label=f"{teacher.values['label']}, student",
                             method=teacher.values["method"], **values)

    def of_all_speech(self, system: Declared, teacher: FirstPass) -> None:
        """Stages 9 and 10: a model of all private speech and texts. Nothing protects it."""
        r = self.r
        am = r.stage(9, "acoustic model of all private speech", "train_am", train=True,
                     config=(*am_layers(r, "ctc"), "am_finetune"), in_feats=self.sides.private,
                     in_lang=teacher.data.lang, in_init=teacher.am,
                     out_dir=f"{system.folder}/am",
                     set={"epochs": self.o.private_epochs, **part_values(r)})
        recognize(r, 10, system, replace(teacher, am=am, exp=system.folder))

    def of_words(self, student: Declared, teacher: FirstPass) -> None:
        """Stages 9 and 10: lists of the pool by the teacher's graph, and what they teach."""
        r, s, exp = self.r, self.sides, student.folder
        nbest = f"{exp}/nbest_pool"
        r.stage(9, f"N-best lists of the pool, {student.name}", "decode", jobs=r.run.nj,
                device=True, config=("decode", "nbest", "nbest_pool"), in_model=teacher.am,
                in_graph=teacher.graph, in_weights=teacher.weights, in_feats=s.pool,
                out_nbest=f"{nbest}/JOB.jsonl", set={"role": "pool"})
        am = r.stage(9, f"student, {student.name}", "train_student", train=True,
                     config=(*am_layers(r, "ctc"), "am_finetune", "student", "word_student"),
                     in_public_pool=s.pool, in_public_feats=s.public,
                     in_public_lang=teacher.data.lang, in_public_init=teacher.am,
                     in_public_nbest=nbest, out_dir=f"{exp}/am",
                     set={"epochs": self.o.student_epochs, **part_values(r)})
        recognize(r, 10, student, replace(teacher, am=am, exp=exp))


@dataclass
class WhisperLists:
    """Lists of Whisper's own decoder, rescored."""

    r: Recipe
    o: Any
    sides: Sides

    def __post_init__(self) -> None:
        """Stage 4: lists of dev and test, and the decoder's own choice."""
        r, data = self.r, self.sides.data
        self.first = FirstPass(data, "", "", "", f"{r.exp}/whisper", whisper=self.o.whisper)
        self.own = r.system("whisper", label="Whisper's own decoder", method="public")
        for role in ("dev", "test"):
            nbest_lists(r, 4, f"N-best lists of {role}", self.first, role,
                        f"{self.first.exp}/nbest_{role}", hyps=f"{self.first.exp}/decode_{role}")
        score(r, 4, "score Whisper's own decoder", hyps=f"{self.first.exp}/decode_test",
              first=self.first, out=self.own.path("score_test"))

    def alone(self) -> list[Declared]:
        """The system of the decoder's own choice."""
        return [self.own]

    def recognize(self, system: Declared, lang: str, lm: str) -> FirstPass:
        """Stage 8: the words' scores by an LM; weights, chosen on dev; what they choose in test."""
        r, first, name = self.r, self.first, system.name
        nbest = f"{first.exp}/nbest_ROLE"
        scores = score_roles(r, 8, f"lists, {name}", nbest, lm, "lm",
                             f"{system.folder}/lm_ROLE.safetensors")
        rescore(r, 8, system, nbest, [scores], first.data.manifests, grid=grid_of(first))
        score(r, 8, f"score {name}", hyps=f"{system.folder}/decode_test", first=first, lang=lang,
              out=system.path("score_test"))
        return first

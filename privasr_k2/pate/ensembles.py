"""Teachers together: votes for hypotheses, frames and the next token, and their mean posteriors.

Each teacher has its own shard, and one vote a query whatever its score. A teacher without anything
to learn from abstains, whatever it scores. Votes are private whole numbers that sum to the number
of teachers that vote; the data of one unit changes one teacher's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from privasr_k2.am.ctc import CtcModel
from privasr_k2.am.ctc_prefix import CtcSteps
from privasr_k2.am.sequence import Recognizer
from privasr_k2.am.steps import MeanSteps, Prefixes, Stepper
from privasr_k2.errors import DataError

#: For each utterance its hypotheses as token numbers from 1.
Hyps = Sequence[Sequence[Sequence[int]]]
#: For each utterance a public score of each hypothesis.
LmScores = Sequence[Sequence[float]]


class TeacherEnsemble:
    """Whole models of the same tokens, one a teacher.

    Args:
        models: the I teachers, on one device.
        per_token: compare log P(hypothesis) / (number of tokens + 1) instead of log P(hypothesis).
        abstaining: places, from 0, of teachers that give no vote and no posteriors.

    Attributes:
        votes: (I,) int64, 1 for a teacher that votes and 0 for one that abstains.

    Raises:
        DataError: no teacher, or teachers of different outputs.
    """

    def __init__(
        self, models: Sequence[Recognizer], *, per_token: bool, abstaining: Collection[int] = ()
    ) -> None:
        sizes = {model.num_tokens for model in models}
        if len(sizes) != 1:
            sizes_seen = f"{len(models)} teachers with {sorted(sizes)} tokens"
            expected = "one teacher at least, all with the same tokens"
            raise DataError("the ensemble", expected, sizes_seen, "train them with one lang folder")
        self.models, self.per_token = tuple(models), per_token
        self.num_teachers, self.num_tokens = len(self.models), self.models[0].num_tokens
        self.tokens, self.subsampling = self.models[0].tokens, self.models[0].subsampling
        self.ctc_topology = getattr(self.models[0], "ctc_topology", "standard")
        self.votes = np.array([int(k not in abstaining) for k in range(self.num_teachers)])

    @torch.no_grad()
    def hypothesis_scores(
        self, features: Tensor, lengths: Tensor, hyps: Hyps, lm: LmScores | None = None
    ) -> np.ndarray:
        """log P of every teacher, (I, N, most hypotheses) float64, padded with -inf.

        Args:
            lm: public scores, natural log, that each teacher adds to its own; None: none.
        """
        num = np.array([len(own) for own in hyps])
        scores = np.full((self.num_teachers, len(hyps), max(num, default=0)), -np.inf)
        if num.sum():
            rows = torch.from_numpy(np.repeat(np.arange(len(hyps)), num)).to(features.device)
            flat = [torch.tensor(list(tokens), dtype=torch.int64) for own in hyps for tokens in own]
            targets = nn.utils.rnn.pad_sequence(flat, batch_first=True).to(features.device)
            sizes = torch.tensor([*map(len, flat)], device=features.device)
            values = self._scores_of(features, lengths, rows, targets, sizes).double().cpu().numpy()
            if lm is not None:
                values = values + np.concatenate([np.asarray(own, float) for own in lm])
            if self.per_token:
                values = values / (sizes.cpu().numpy() + 1)
            inside = np.arange(scores.shape[2]) < num[:, None]
            # No number at all is never the best.
            scores[:, inside] = np.where(np.isnan(values), -np.inf, values)
        return scores

    def _scores_of(self, features: Tensor, lengths: Tensor, *hyps: Tensor) -> Tensor:
        """(I, M) log P of hypotheses: (M,) rows, (M, U) targets and (M,) sizes."""
        encoded = ((model, model.encode(features, lengths)) for model in self.models)
        return torch.stack([model.log_likelihoods(*given, *hyps) for model, given in encoded])

    def hypothesis_votes(
        self, features: Tensor, lengths: Tensor, hyps: Hyps, lm: LmScores | None = None
    ) -> list[np.ndarray]:
        """For each utterance (M,) int64 votes; each teacher that votes takes its likeliest."""
        scores = self.hypothesis_scores(features, lengths, hyps, lm)
        return votes_of(scores[self.votes > 0], [*map(len, hyps)])

    def hypothesis_posteriors(
        self, features: Tensor, lengths: Tensor, hyps: Hyps, lm: LmScores | None = None
    ) -> list[np.ndarray]:
        """The teachers' shares of an utterance's hypotheses: (I, M) float64, rows of sum 1 or 0."""
        scores = self.hypothesis_scores(features, lengths, hyps, lm)
        shares = np.exp(scores - np.maximum(scores.max(axis=2, keepdims=True), -1e300))
        sums = shares.sum(axis=2, keepdims=True)
        shares = np.divide(shares, sums, out=np.zeros_like(shares), where=sums > 0)
        shares = shares * self.votes[:, None, None]
        return [shares[:, row, : len(own)] for row, own in enumerate(hyps)]

    def frame_posteriors(
        self, features: Tensor, lengths: Tensor
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """T_i(s | x) of each teacher, one after the other: (N, T', C) float64 and (N,) true frames.

        Raises:
            DataError: teachers without outputs of CTC.
        """
        for log_probs, kept in self._log_probs(features, lengths):
            for own in log_probs.double():
                yield own.exp().cpu().numpy(), kept.cpu().numpy()

    def _log_probs(self, features: Tensor, lengths: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """Of the teachers in order, some at a time: (K, N, T', C) and (N,) true frames."""
        if not all(hasattr(model, "log_probs") for model in self.models):
            expected, way_out = "outputs of CTC for every frame", "let them vote by utterance"
            raise DataError("the teachers", expected, "none", way_out)
        for model in self.models:
            log_probs, kept = model.log_probs(features, lengths)  # type: ignore[attr-defined]
            yield log_probs[None], kept

    @property
    def _is_ctc(self) -> bool:
        return all(isinstance(model, CtcModel) for model in self.models)

    def log_probs(self, features: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """log T_ens(s | x): the mean of the posteriors of the teachers that vote.

        [yang2022, eq. 3] with equal weights. Nothing protects it.

        Returns:
            (N, T', C) float32, natural log, and (N,) true frames.

        Raises:
            DataError: teachers without outputs of CTC, or all abstain.
        """
        total, votes, kept, first = 0.0, self._voting(), lengths, 0
        for log_probs, kept in self._log_probs(features, lengths):  # noqa: B007 (the last counts)
            own = votes[first : first + len(log_probs)].to(log_probs.device)
            total = total + (own.view(-1, 1, 1, 1) * log_probs.double().exp()).sum(0)
            first += len(log_probs)
        return (total / votes.sum()).log().float(), kept  # type: ignore[union-attr]

    def _voting(self) -> Tensor:
        if not self.votes.any():
            way_out = "give shards with data to one teacher at least"
            raise DataError("the ensemble", "a teacher that votes", "all abstain", way_out)
        return torch.from_numpy(self.votes).double()

    def encode(self, features: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """As :meth:`privasr_k2.am.sequence.Recognizer.encode`: each teacher encodes by itself."""
        return self.log_probs(features, lengths) if self._is_ctc else (features, lengths)

    @torch.no_grad()
    def stepper(self, encoded: Tensor, lengths: Tensor) -> Stepper:
        """A stepper by the teachers' mean: of the frames for CTC, else of the next token."""
        if self._is_ctc:
            return CtcSteps(encoded, lengths)
        voting = [self.models[k] for k in self._voting().nonzero().flatten().tolist()]
        return MeanSteps([model.stepper(*model.encode(encoded, lengths)) for model in voting])

    def token_votes(self, features: Tensor, lengths: Tensor) -> TokenVotes:
        """Votes for the next token, all teachers reading the same tokens."""
        steppers = [model.stepper(*model.encode(features, lengths)) for model in self.models]
        return TokenVotes(steppers, len(features), features.device, self.votes)


class TokenVotes:
    """The I teachers at the same prefixes of N utterances.

    Args:
        steppers: each of one teacher, or of several that read the N utterances one after another.
        num: N.
        votes: (I,) of :class:`TeacherEnsemble`.
    """

    def __init__(
        self, steppers: Sequence[Stepper], num: int, device: torch.device, votes: np.ndarray
    ) -> None:
        self._steppers, self._num, self._device = tuple(steppers), num, device
        self._voting = torch.from_numpy(votes > 0).to(device)
        with torch.no_grad():
            self._prefixes: list[Prefixes] = [stepper.start() for stepper in self._steppers]

    def extend(self, rows: np.ndarray, tokens: np.ndarray) -> None:
        """Read one token more after some of the prefixes.

        Args:
            rows: (M,) prefixes that go on.
            tokens: (M,) from 1, the same for all teachers.
        """
        given = (np.asarray(values, dtype=np.int64) for values in (rows, tokens))
        places, read = (torch.from_numpy(values).to(self._device) for values in given)
        with torch.no_grad():
            for k, (stepper, prefixes) in enumerate(zip(self._steppers, self._prefixes)):
                teachers = torch.arange(stepper.num // self._num, device=self._device)
                before = len(prefixes.scores) // len(teachers)
                own = (places + before * teachers.unsqueeze(1)).flatten()
                self._prefixes[k] = stepper.extend(prefixes, own, read.repeat(len(teachers)))

    def scores(self) -> Tensor:
        """(I, M, C) float64, natural log: what every teacher gives to each next token."""
        parts = [
            prefixes.scores.unflatten(0, (stepper.num // self._num, -1))
            for stepper, prefixes in zip(self._steppers, self._prefixes)
        ]
        return torch.cat(parts).nan_to_num(nan=-np.inf)

    def counts(self, candidates: Tensor | None = None) -> np.ndarray:
        """(M, K) int64: for each prefix, the votes for every candidate.

        Args:
            candidates: (M, K) tokens, 0 = the end; a teacher votes for its likeliest, the first of
                equals. None: all tokens, K = C.
        """
        scores = self.scores()[self._voting]
        if candidates is not None:
            scores = scores.gather(2, candidates.expand(len(scores), -1, -1))
        choices = torch.nn.functional.one_hot(scores.argmax(dim=2), scores.size(2)).sum(dim=0)
        return choices.cpu().numpy()


def votes_of(scores: np.ndarray, num_hyps: Sequence[int]) -> list[np.ndarray]:
    """One vote of each teacher for its best hypothesis, the first among equals.

    Args:
        scores: (I, N, most hypotheses), padded with -inf.
        num_hyps: of each utterance.

    >>> votes_of(np.array([[[-1.0, -2.0]], [[-3.0, -2.0]], [[-4.0, -4.0]]]), [2])
    [array([2, 1])]
    """
    _, num, most = scores.shape
    choices = scores.argmax(axis=2) + most * np.arange(num)
    counts = np.bincount(choices.ravel(), minlength=num * most).reshape(num, most)
    return [row[:size] for row, size in zip(counts, num_hyps)]

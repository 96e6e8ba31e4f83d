r"""Train a student on a public pool and its voted labels, or continue an interrupted training.

    privasr verb train_student --in-public-pool data/feats_fbank --in-labels exp/x/labels.jsonl \
        --in-public-feats data/feats_fbank --in-public-lang data/lang_char \
        --in-public-init exp/x/public --out-dir exp/x/student \
        --config conf/pate.yaml#am_rnnt conf/pate.yaml#student --set epochs=20

The loss is privasr_k2.pate.distillation.student_loss. Texts of the pool are never read.
student.labeled_role names a part of --in-public-feats whose transcripts are trained on, too.
student.unlabeled_data=[self_training] reads --in-public-nbest, N-best lists of the pool by a public
model. Without --in-labels the student learns these alone, as a control. Of several values of
unlabeled_data the one with the fewest errors on dev is kept. --out-dir gets what train_am writes,
with checkpoints in candidates/, and student.json. For several processes start it with torchrun, as
train_am.
"""

from __future__ import annotations

from privasr_k2.bin import cli


def main() -> None:
    """Parse and train."""
    args = cli.arguments(
        __doc__,
        device=True,
        in_public_pool="DIR features of the pool",
        in_labels="[FILE] labels.jsonl, released; none: no votes",
        in_public_feats="DIR features of dev and of transcripts",
        in_public_nbest="[DIR] N-best lists of the pool",
        in_public_lang="DIR language folder",
        in_public_init="[DIR] model to begin with; none: from scratch",
        out_dir="DIR the student's folder",
    )

    import torch

    from privasr_k2.am.kinds import kind_of
    from privasr_k2.data.manifests import load_cuts
    from privasr_k2.graph.lang import load_lang
    from privasr_k2.pate.student import StudentInputs, config_of, train_student
    from privasr_k2.pate.student_data import read_labels
    from privasr_k2.scoring.nbest_lists import read_nbest
    from privasr_k2.training.distributed import join

    torch.set_num_threads(args.num_jobs)
    config = cli.load(config_of(kind_of(args.config)), args)
    role = config.student.labeled_role
    given = StudentInputs(
        pool=load_cuts(args.in_public_pool, config.student.pool_role),
        labels={} if args.in_labels is None else read_labels(args.in_labels),
        labeled=load_cuts(args.in_public_feats, role) if role else None,
        lists=None if args.in_public_nbest is None else read_nbest(args.in_public_nbest),
        dev=load_cuts(args.in_public_feats, "dev"),
        lang=load_lang(args.in_public_lang),
        init=args.in_public_init,
    )
    with join(args.device) as process:
        train_student(given, args.out_dir, config, process, args.num_jobs)


if __name__ == "__main__":
    cli.run(main)

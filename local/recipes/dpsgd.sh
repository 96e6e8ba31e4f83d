# DP-SGD for end-to-end recognizers: per-example clipping, noise, Poisson batches, exact epsilon; the baseline of recipe pate.
#
#   ./run.sh CORPUS dpsgd                                       run every stage that is not up to date
#   ./run.sh CORPUS dpsgd --models 'rnnt las' --dpsgd-epsilons '1 8 50 inf'
#   ./run.sh an4 dpsgd --public-corpus librispeech --public-dir DIR
#
# Options: models (out of ctc, rnnt, ctc_attention, las; quoted), dpsgd_epsilons (quoted; inf: clipped, without noise or claim),
# unit (speaker or utterance), delta, start (public: at the public model, condition 2 of yang2022; scratch: condition 1),
# public_corpus (whose train is public with its texts: a corpus of egs/, or FILE.py; none: part of this corpus's train), public_dir
# (where it is), public_feature, public_feats (its features, ready, in place of both), public_epochs, private_epochs (passes of the
# public model, and of that of all private data), audit, per (true: phone error rate of the words, too; so for TIMIT).
# What recipe pate has made of the same corpus is taken over, and the other way round.
# Those of every recipe: see ./run.sh --help.
# shellcheck disable=SC1091,SC2034,SC2154
. e2e_options.sh
dpsgd_epsilons='8 inf'
. parse_options.sh
above_0 dpsgd-epsilons "inf|$_number" "numbers above 0, or inf" "$dpsgd_epsilons"
. e2e_stages.sh
exp=$dpsgd_exp
declare_base
evaluate 7
tables 8

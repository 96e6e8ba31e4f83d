# Sourced by recipes pate and dpsgd before parse_options.sh: options that both have. A corpus may set start,
# public_*, default_*, vote, self_trained, ways, heads, per and words.
# shellcheck shell=bash disable=SC2034,SC2154
models=ctc start=${start:-public} unit=speaker delta=1e-5 audit=true
public_corpus=${public_corpus-} public_dir=${public_dir-} public_feature=${public_feature-} public_feats=''
public_conf=${public_conf-}   # folder with the YAML layers of the public corpus, where that is not this one's
public_epochs='' private_epochs=''
per=${per:-false}   # phone error rate of the words beside WER
path_options+=' public_feats public_dir'
not_options+=' public_conf default_teachers default_sure default_candidates'

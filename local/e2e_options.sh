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

# Values of options, checked before anything runs.
among() {   # OPTION NAMES VALUES: words, all of them of NAMES
  local word
  [[ -n $3 ]] || _stop "--$1" "out of $2" "nothing" "name one"
  for word in $3; do
    [[ " $2 " == *" $word "* ]] || _stop "--$1" "out of $2" "'$word'" "correct the name"
  done
}
above_0() {   # OPTION PATTERN WHAT VALUES: words that match, none of them 0
  local word
  for word in $4; do
    [[ $word =~ ^($2)$ && ! $word =~ ^[0.]+$ ]] || _stop "--$1" "$3" "'$word'" "correct the value"
  done
}
decimal='[0-9]+(\.[0-9]+)?' whole='[0-9]+'

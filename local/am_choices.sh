# Sourced by recipes with a CTC acoustic model, before data_stages.sh: which model, and the folder of its first pass. A recipe
# sets encoder, max_duration, avg, am_model, am_tokens, am_bpe before, all of them empty where its command line does not say otherwise.
# shellcheck shell=bash disable=SC2034,SC2154
if [[ -z $encoder ]]; then
  if [[ $size == paper ]]; then encoder=blstm; else encoder=tdnn; fi
fi
[[ " tdnn blstm conformer " == *" $encoder "* ]] || _stop "--encoder" "tdnn, blstm or conformer" "'$encoder'" "correct the name"
wholes_above_0 avg
numbers_above_0 max_duration
if [[ -n $am_model && -z $am_tokens ]]; then
  _stop "--am-model" "--am-tokens with it" "none" "give the tokens.txt that the model was trained with: --am-tokens FILE"
fi
first_pass=exp/ctc_${encoder}_$units lang_name=$units lang_flags=()
if [[ -n $am_model ]]; then   # words are spelled in the model's own tokens
  lang_name=${units}_$(basename "${am_model%.*}")
  lang_flags=(--raw-tokens "$am_tokens" ${am_bpe:+--raw-bpe-model "$am_bpe"})
  first_pass=exp/ctc_$(basename "${am_model%.*}")_$units
fi
am=$first_pass/am

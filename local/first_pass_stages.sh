# Sourced by recipes that decode with a CTC acoustic model: stages 0-8, the same for all of them and written once, to
# data/ and exp/ctc_*. A recipe sets encoder, max_duration, avg, am_model, am_tokens, am_bpe before, all of them
# empty where its command line does not say otherwise.
# shellcheck shell=bash disable=SC1091,SC2034,SC2046,SC2154
if [[ -z $encoder ]]; then
  if [[ $size == paper ]]; then encoder=blstm; else encoder=tdnn; fi
fi
if [[ -n $am_model && -z $am_tokens ]]; then
  _stop "--am-model" "--am-tokens with it" "none" "give the tokens.txt that the model was trained with: --am-tokens FILE"
fi
exp=exp/ctc_${encoder}_$units lang_name=$units lang_flags=()
if [[ -n $am_model ]]; then   # words are spelled in the model's own tokens
  lang_name=${units}_$(basename "${am_model%.*}")
  lang_flags=(--raw-tokens "$am_tokens" ${am_bpe:+--raw-bpe-model "$am_bpe"})
  exp=exp/ctc_$(basename "${am_model%.*}")_$units
fi
. data_stages.sh   # stages 0-4: manifests, features, lang, LM, graph

am=$exp/am
if [[ -n $am_model ]]; then
  stage 5 "acoustic model brought along" import_am --raw-model "$am_model" --raw-tokens "$am_tokens" --out-dir "$am"
else
  stage 5 "acoustic model, $encoder" train_am $(layers am_ctc) --in-feats "$feats" --in-lang "$lang" --out-dir "$am" \
    --set encoder.kind="$encoder" ${max_duration:+max_duration="$max_duration"} ${avg:+avg="$avg"} \
    --device "$device" --num-jobs "$nj"
fi

stage 6 "decode dev over a grid of weights" JOB=1:"$nj" decode $(layers decode) --in-model "$am" --in-graph "$graph" \
  --in-feats "$feats" --out-hyps "$exp/decode_dev/JOB.jsonl" --set role=dev job=JOB num_jobs="$nj" \
  ${backend:+backend="$backend"} --device "$device"

stage 7 "LM weight and insertion penalty, chosen on dev" tune_weights --in-hyps "$exp/decode_dev" --in-manifests "$manifests" \
  --out-weights "$exp/weights.json"

stage 8 "decode test" JOB=1:"$nj" decode $(layers decode) --in-model "$am" --in-graph "$graph" --in-weights "$exp/weights.json" \
  --in-feats "$feats" --out-hyps "$exp/decode_test/JOB.jsonl" --set role=test job=JOB num_jobs="$nj" \
  ${backend:+backend="$backend"} --device "$device"

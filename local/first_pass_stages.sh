# Sourced by recipes that decode with a CTC acoustic model: stages 0-8, the same for all of them and written once, to
# data/ and exp/ctc_*. What a recipe sets before: am_choices.sh.
# shellcheck shell=bash disable=SC1091,SC2034,SC2046,SC2154
. am_choices.sh
exp=$first_pass
if [[ $backend == kaldi ]]; then exp+=_kaldi; fi   # beside what k2 finds, with the same acoustic model
. data_stages.sh   # stages 0-2: manifests, features, lang
lm=$data/lm/$lang_name.arpa.gz
graph=$data/graph_$lang_name

stage 3 "n-gram LM" train_ngram $(layers lm_ngram) --in-manifests "$manifests" --in-lang "$lang" \
  ${arpa:+--raw-arpa "$arpa"} --out-lm "$lm"

stage 4 "decoding graph" compile_graph $(layers graph) --in-lang "$lang" --in-lm "$lm" --out-dir "$graph"

. am_stage.sh      # stage 5

stage 6 "decode dev over a grid of weights" JOB=1:"$nj" decode $(layers decode) --in-model "$am" --in-graph "$graph" \
  --in-feats "$feats" --out-hyps "$exp/decode_dev/JOB.jsonl" --set role=dev job=JOB num_jobs="$nj" \
  ${backend:+backend="$backend"} --device "$device"

stage 7 "LM weight and insertion penalty, chosen on dev" tune_weights --in-hyps "$exp/decode_dev" --in-manifests "$manifests" \
  --out-weights "$exp/weights.json"

stage 8 "decode test" JOB=1:"$nj" decode $(layers decode) --in-model "$am" --in-graph "$graph" --in-weights "$exp/weights.json" \
  --in-feats "$feats" --out-hyps "$exp/decode_test/JOB.jsonl" --set role=test job=JOB num_jobs="$nj" \
  ${backend:+backend="$backend"} --device "$device"

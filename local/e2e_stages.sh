# Sourced by recipes pate and dpsgd after parse_options.sh: stages 0-6, the same for both and written once: data, the private and
# the public side, the models before any release. Then functions for what follows.
# shellcheck shell=bash disable=SC1091,SC2034,SC2046,SC2086,SC2154,SC2207
[[ $backend != kaldi ]] || _stop "--backend kaldi" "k2, which alone searches for these models" "kaldi" "leave it away"
ignored "models that need no language model" arpa
among models "ctc rnnt ctc_attention las" "$models"
among start "public scratch" "$start"
among unit "speaker utterance" "$unit"
above_0 delta "0*\.[0-9]+|[0-9.]+[eE]-[0-9]+" "a number above 0 and below 1" "$delta"
wholes_above_0 public_epochs private_epochs
if [[ $units == phone ]]; then _stop "--units" "char or bpe_N: no graph joins these models' tokens to words" "phone" "add --units char"; fi
private_data=$people/train
scratch=''
if [[ $start == scratch ]]; then scratch=_scratch; fi
lang_name=${units}_public own_lang=false
. data_stages.sh   # stages 0 and 1; the lang folder is made of public text alone

if [[ -n $public_corpus && -z $public_feats ]]; then
  public_definition=$public_corpus public_feature=${public_feature:-$feature}
  if [[ $public_corpus != */* ]]; then public_definition=$PRIVASR_ROOT/privasr_k2/corpora/$public_corpus.py; fi
  public_feats=$data/public/feats_$public_feature
  stage 1 "manifests of the public corpus" prepare_corpus --in-definition "$public_definition" ${public_dir:+--raw-corpus "$public_dir"} \
    --out-dir $data/public/manifests $(corpus_conf=${public_conf:-$corpus_conf} layers "$public_corpus") --num-jobs "$nj"
  stage 1 "$public_feature features of the public corpus" compute_features $(layers features) --in-manifests $data/public/manifests \
    --out-dir "$public_feats" --set kind="$public_feature" speed_perturb="$speed_perturb" --num-jobs "$nj"
fi
sides=$data/sides_$feature
stage 2 "who is private, and who public" split_speech $(layers split_speech) --in-feats "$feats" \
  ${public_feats:+--in-public-train "$public_feats"} --out-dir "$sides"
private=$sides/private public=$sides/public pool=$sides/pool
stage 3 "lang directory of $units units, from public text" prepare_lang $(layers lang) --in-public-manifests "$public" --out-dir "$lang" \
  --set units="$units" $lang_options

base=exp/e2e_$units                           # models without a claim
tuned=$base$scratch                           # those that depend on where they begin
dpsgd_exp=exp/dpsgd_${units}_$unit$scratch

# begun: what a training on private data, or on what was released, adds to a model's own settings where it begins at the
# public model: it is shorter then.
begun() {
  if [[ $start == public ]]; then recipe=pate layers am_finetune; fi
}
init() {   # FLAG MODEL
  if [[ $start == public ]]; then echo "$1 $base/$2/public/am"; fi
}

declare_base() {   # stages 4-6 for every model
  local model e out claim
  for model in $models; do
    stage 4 "public $model" --cmd "$train_cmd" train_am $(layers "am_$model") --in-feats "$public" --in-lang "$lang" \
      --out-dir "$base/$model/public/am" ${public_epochs:+--set epochs="$public_epochs"} --device "$device" --num-jobs "$nj"
    stage 4 "decode dev, public $model" JOB=1:"$nj" decode_e2e $(layers decode_e2e) --in-model "$base/$model/public/am" --in-feats "$feats" \
      --out-hyps "$base/$model/public/decode_dev/JOB.jsonl" --set role=dev job=JOB num_jobs="$nj" --device "$device"
    stage 4 "insertion penalty of $model, chosen on dev" tune_weights --in-hyps "$base/$model/public/decode_dev" --in-manifests "$manifests" \
      --out-weights "$base/$model/weights.json"
    system "$base/$model/public" "$base/$model/public/am"
  done
  for model in $models; do
    stage 5 "$model of all private data" --cmd "$train_cmd" train_am $(layers "am_$model") $(begun) --in-feats "$private" \
      --in-lang "$lang" $(init --in-init "$model") --out-dir "$tuned/$model/nonprivate/am" ${private_epochs:+--set epochs="$private_epochs"} \
      --device "$device" --num-jobs "$nj"
    system "$tuned/$model/nonprivate" "$tuned/$model/nonprivate/am"
  done
  for model in $models; do
    for e in $dpsgd_epsilons; do
      out=$dpsgd_exp/$model/dpsgd_$e claim=()
      if [[ $e != inf ]]; then claim=(--out-privacy "$out/privacy.json" $(budget)); fi
      stage 6 "DP-SGD, $model, epsilon $e" --cmd "$train_cmd" train_dpsgd $(layers dpsgd) --in-private-feats "$private" \
        --in-public-dev "$public" --in-lang "$lang" --in-public-init "$base/$model/public/am" --out-dir "$out/am" "${claim[@]}" \
        --set data="$private_data" unit="$unit" delta="$delta" ${claim:+epsilon="$e"} ${scratch:+start=scratch} \
        --device "$device" --num-jobs "$nj"
      system "$out" "$out/am" ${claim:+privacy}
      if [[ $audit == true && $e != inf ]]; then
        stage 6 "attack on DP-SGD, $model, epsilon $e" audit_dpsgd $(layers dpsgd) $(layers audit_dpsgd) --in-private-feats "$private" \
          --in-public-dev "$public" --in-lang "$lang" --in-init "$base/$model/public/am" --out-audit "$out/audit.json" \
          --set data="$private_data" unit="$unit" delta="$delta" epsilon="$e" ${scratch:+start=scratch} --device "$device" --num-jobs "$nj"
        audits+=("$out/audit.json")
      fi
    done
  done
}

# Systems are declared first: system FOLDER AM [head=K] [privacy] [labels]; then all are decoded with the penalty of their architecture.
folders=() ams=() heads_of=() releases=() labels=() audits=() memberships=() inverted=()   # the last three: what attacks found
system() {
  folders+=("$1") ams+=("$2")
  if [[ ${3-} == head=* ]]; then heads_of+=("$3"); else heads_of+=(''); fi
  if [[ " ${*:3} " == *" privacy "* ]]; then releases+=("$1/privacy.json"); fi
  if [[ " ${*:3} " == *" labels "* ]]; then labels+=("$1/labels"); fi
}
evaluate() {   # STAGE: decode and score test with all systems
  local place folder name
  scores=()
  for place in "${!folders[@]}"; do
    folder=${folders[$place]} name=$(basename "$(dirname "${folders[$place]}")")
    stage "$1" "decode test, $name $(basename "$folder")" JOB=1:"$nj" decode_e2e $(layers decode_e2e) --in-model "${ams[$place]}" \
      --in-feats "$feats" --in-weights "$base/$name/weights.json" --out-hyps "$folder/decode_test/JOB.jsonl" \
      --set role=test job=JOB num_jobs="$nj" ${heads_of[$place]} --device "$device"
    stage "$1" "score $name $(basename "$folder")" score $(layers score) --in-hyps "$folder/decode_test" --in-weights "$base/$name/weights.json" \
      --in-manifests "$manifests" --in-lang "$lang" --out-dir "$folder/score_test" --set role=test
    scores+=("$folder/score_test")
  done
}
tables() {   # STAGE FLAG...: the report of all systems, in $exp
  report=$exp/RESULTS.md
  stage "$1" "the tables" report_pate $(layers pate_report) --in-scores "${scores[@]}" ${releases:+--in-privacy "${releases[@]}"} \
    ${labels:+--in-labels "${labels[@]}"} ${audits:+--in-audits "${audits[@]}"} ${memberships:+--in-membership "${memberships[@]}"} \
    ${inverted:+--in-inversions "${inverted[@]}"} --in-manifests "$manifests" --in-sides "$sides/sides.json" --out-report "$report" --out-curves "$exp/epsilon.svg" $(book) \
    "${@:2}" --set command="$command_line" phones="$per"
}

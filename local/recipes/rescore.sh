# Second pass: N-best lists and lattices of recipe ctc's first pass, rescored with n-gram and neural LMs, and the oracle.
#
#   ./run.sh CORPUS rescore                        run every stage that is not up to date
#   ./run.sh CORPUS rescore --lms 'lstm'           with one neural LM
#   ./run.sh CORPUS rescore --stage 10             resume from the neural LMs
#
# Options: lms (out of lstm, char_lstm, transformer; quoted); nnlm_text (a normalized sentence a line, maybe gzipped:
# text for the neural LMs alone, in place of the corpus's own); lm_epochs (passes over their text); finetune (passes over
# the transcripts of train, after that; 0 = none); confidence (false: no word confidences); encoder and all others of recipe ctc.
# Those of every recipe: see ./run.sh --help.
lms='lstm transformer' nnlm_text='' lm_epochs='' finetune=0 confidence=true
encoder='' max_duration='' avg='' am_model='' am_tokens='' am_bpe=''
. parse_options.sh
wholes_above_0 lm_epochs
for name in $lms; do
  [[ -f $PRIVASR_ROOT/conf/lm_$name.yaml && $name != ngram ]] || _stop "--lms" "names out of lstm, char_lstm, transformer" "'$name'" "correct the name"
done
[[ $finetune -ge 0 ]] || _stop "--finetune" "0 or more passes" "$finetune" "give 0 for none"
. first_pass_stages.sh   # stages 0-8: data, lang, LM, graph, acoustic model, decoding
first_pass=$exp
exp=exp/rescore_${first_pass#exp/ctc_}

for role in dev test; do
  stage 9 "N-best lists of $role" JOB=1:"$nj" make_nbest $(layers decode) $(layers nbest) --in-model "$am" --in-graph "$graph" \
    --in-weights "$first_pass/weights.json" --in-feats "$feats" --in-lang "$lang" --out-nbest "$exp/nbest_$role/JOB.jsonl" \
    --set backend=k2 role=$role job=JOB num_jobs="$nj" --device "$device"
  stage 9 "lattices of $role" JOB=1:"$nj" make_lattices $(layers decode) $(layers lattices) --in-model "$am" --in-graph "$graph" \
    --in-weights "$first_pass/weights.json" --in-feats "$feats" --out-lattices "$exp/lattices_$role/JOB.safetensors" \
    --set backend=k2 role=$role job=JOB num_jobs="$nj" --device "$device"
done

for name in $lms; do
  stage 10 "neural LM, $name" --cmd "$train_cmd" train_lm $(layers "lm_$name") --in-manifests "$manifests" --in-lang "$lang" \
    ${nnlm_text:+--raw-text "$nnlm_text"} --out-dir "$exp/lm/$name" ${lm_epochs:+--set epochs="$lm_epochs"} \
    --device "$device" --num-jobs "$nj"
  if [[ $finetune -gt 0 ]]; then
    stage 10 "neural LM, $name, on the transcripts" --cmd "$train_cmd" train_lm $(layers "lm_$name") --in-manifests "$manifests" \
      --in-lang "$lang" --in-init "$exp/lm/$name" --out-dir "$exp/lm/${name}_tuned" \
      --set text=train epochs="$finetune" --device "$device" --num-jobs "$nj"
  fi
done
tuned=''
if [[ $finetune -gt 0 ]]; then tuned=_tuned; fi

for name in $lms; do
  for role in dev test; do
    stage 11 "lattices of $role by $name" JOB=1:"$nj" rescore_lattices $(layers rescore_lattices) \
      --in-lattices "$exp/lattices_$role" --in-lm "$exp/lm/$name$tuned" --out-nbest "$exp/lattice_$name/nbest_$role/JOB.jsonl" \
      --set name="$name" job=JOB num_jobs="$nj" --device "$device"
  done
done

score_words() {   # NAME FOLDER: score the lists of FOLDER with the LM of this name
  local model=$exp/lm/$1$tuned role
  if [[ $1 == ngram ]]; then model=$lm; fi
  for role in dev test; do
    stage 12 "words of $role in ${2##*/}, by $1" score_nbest $(layers score_nbest) --in-nbest "$2/nbest_$role" --in-lm "$model" \
      --out-scores "$2/lm_scores/${1}_$role.safetensors" --set name="$1" --device "$device"
  done
}
for name in ngram $lms; do score_words "$name" "$exp"; done
for name in $lms; do score_words "$name" "$exp/lattice_$name"; done

rescored() {   # SYSTEM FOLDER NAME...: weights of these LMs on the lists of FOLDER, and what they choose
  local system=$1 folder=$2 role names=("${@:3}")
  stage 13 "weights of $system, chosen on dev" tune_rescoring $(layers rescore) --in-nbest "$folder/nbest_dev" \
    --in-scores "${names[@]/%/_dev.safetensors}" --in-manifests "$manifests" --out-weights "$exp/$system/rescoring.json"
  for role in dev test; do
    stage 13 "$role by $system" rescore_nbest --in-nbest "$folder/nbest_$role" \
      --in-scores "${names[@]/%/_$role.safetensors}" --in-manifests "$manifests" \
      --in-weights "$exp/$system/rescoring.json" --out-hyps "$exp/$system/decode_$role/1.jsonl"
  done
}
# Systems: one LM alone on the N-best lists; all of them together; one LM on the whole lattices.
systems='' all=()
for name in ngram $lms; do
  rescored "$name" "$exp" "$exp/lm_scores/$name"
  systems+="$name " all+=("$exp/lm_scores/$name")
done
rescored all "$exp" "${all[@]}"
systems+=all
for name in $lms; do
  rescored "lattice_$name" "$exp/lattice_$name" "$exp/lattice_$name/lm_scores/$name"
  systems+=" lattice_$name"
done
for role in dev test; do
  stage 13 "oracle of $role" rescore_nbest --in-nbest "$exp/nbest_$role" --in-manifests "$manifests" \
    --out-hyps "$exp/oracle/decode_$role/1.jsonl"
done

scores=() baselines=()
for role in dev test; do
  stage 14 "score the first pass, $role" score $(layers score) --in-hyps "$first_pass/decode_$role" \
    --in-weights "$first_pass/weights.json" --in-manifests "$manifests" --in-lang "$lang" \
    --out-dir "$exp/first_pass/score_$role" --set role="$role"
  baselines+=("$exp/first_pass/score_$role")
  for system in $systems oracle; do
    stage 14 "score $system, $role" score $(layers score) --in-hyps "$exp/$system/decode_$role" --in-manifests "$manifests" \
      --in-lang "$lang" --out-dir "$exp/$system/score_$role" --set role="$role"
    scores+=("$exp/$system/score_$role")
  done
done

if [[ $confidence == true ]]; then
  # Confidences of the first pass's words: the lattice's posteriors, and a classifier that dev teaches.
  scores_dev=() scores_test=()
  for name in ngram $lms; do
    scores_dev+=("$exp/lm_scores/${name}_dev.safetensors") scores_test+=("$exp/lm_scores/${name}_test.safetensors")
  done
  for model in own network; do
    stage 15 "confidences, $model, learned on dev" train_confidence $(layers confidence) --in-nbest "$exp/nbest_dev" \
      --in-scores "${scores_dev[@]}" --in-weights "$first_pass/weights.json" --in-manifests "$manifests" \
      --out-model "$exp/confidence/models/$model" --set classifier=$model
  done
  # System, its model, whether it is calibrated.
  while read -r system model calibrated; do
    stage 16 "confidences of test, $system" apply_confidence $(layers apply_confidence) \
      --in-model "$exp/confidence/models/$model" --in-nbest "$exp/nbest_test" --in-scores "${scores_test[@]}" \
      --out-nbest "$exp/confidence/$system/nbest_test/1.jsonl" --set calibrated="$calibrated"
  done <<< "posterior own false
posterior_calibrated own true
network network true"
  stage 17 "how good the confidences are" evaluate_confidence $(layers evaluate_confidence) --in-manifests "$manifests" \
    --in-nbest "$exp/confidence/"{posterior,posterior_calibrated,network}/nbest_test --out-dir "$exp/confidence/results" \
    --set "baselines=[posterior,posterior_calibrated]" "command=$command_line"
fi

report=$exp/RESULTS.md
stage 18 "table of results" report --in-scores "${baselines[@]}" "${scores[@]}" --in-baselines "${baselines[@]}" \
  --in-weights $(for system in $systems; do echo "$exp/$system/rescoring.json"; done) \
  --in-manifests "$manifests" --out-report "$report" --set command="$command_line"

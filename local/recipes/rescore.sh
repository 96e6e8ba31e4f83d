# Second pass: N-best lists of recipe ctc's first pass, rescored with n-gram and neural LMs, and the oracle.
#
#   ./run.sh CORPUS rescore                        run every stage that is not up to date
#   ./run.sh CORPUS rescore --lms 'lstm'           with one neural LM
#   ./run.sh CORPUS rescore --stage 10             resume from the neural LMs
#
# Options: lms (out of lstm, char_lstm, transformer; quoted); nnlm_text (a normalized sentence a line, maybe gzipped:
# text for the neural LMs alone, in place of the corpus's own); finetune (epochs in which they then go on with the
# transcripts of train; 0 = none); encoder and all others of recipe ctc. Those of every recipe: see ./run.sh --help.
lms='lstm transformer' nnlm_text='' finetune=0
encoder='' max_duration='' avg='' am_model='' am_tokens='' am_bpe=''
. parse_options.sh
. first_pass_stages.sh   # stages 0-8: data, lang, LM, graph, acoustic model, decoding
first_pass=$exp
exp=exp/rescore_${first_pass#exp/ctc_}

for role in dev test; do
  stage 9 "N-best lists of $role" JOB=1:"$nj" make_nbest $(layers decode) $(layers nbest) --in-model "$am" --in-graph "$graph" \
    --in-weights "$first_pass/weights.json" --in-feats "$feats" --in-lang "$lang" --out-nbest "$exp/nbest_$role/JOB.jsonl" \
    --set role=$role job=JOB num_jobs="$nj" --device "$device"
done

for name in $lms; do
  stage 10 "neural LM, $name" train_lm $(layers "lm_$name") --in-manifests "$manifests" --in-lang "$lang" \
    ${nnlm_text:+--raw-text "$nnlm_text"} --out-dir "$exp/lm/$name" --device "$device" --num-jobs "$nj"
  if [[ $finetune -gt 0 ]]; then
    stage 10 "neural LM, $name, on the transcripts" train_lm $(layers "lm_$name") --in-manifests "$manifests" \
      --in-lang "$lang" --in-init "$exp/lm/$name" --out-dir "$exp/lm/${name}_tuned" \
      --set text=train epochs="$finetune" --device "$device" --num-jobs "$nj"
  fi
done
tuned=''
if [[ $finetune -gt 0 ]]; then tuned=_tuned; fi

# A system is one LM alone; the last one is all of them together.
for name in ngram $lms; do
  model=$exp/lm/$name$tuned
  if [[ $name == ngram ]]; then model=$lm; fi
  for role in dev test; do
    stage 11 "$name, words of $role" score_nbest $(layers score_nbest) --in-nbest "$exp/nbest_$role" --in-lm "$model" \
      --out-scores "$exp/lm_scores/${name}_$role.safetensors" --set name="$name" --device "$device"
  done
done

systems="ngram $lms all"
for system in $systems; do
  members=$system
  if [[ $system == all ]]; then members="ngram $lms"; fi
  scores_dev=() scores_test=()
  for name in $members; do
    scores_dev+=("$exp/lm_scores/${name}_dev.safetensors") scores_test+=("$exp/lm_scores/${name}_test.safetensors")
  done
  stage 12 "weights of $system, chosen on dev" tune_rescoring $(layers rescore) --in-nbest "$exp/nbest_dev" \
    --in-scores "${scores_dev[@]}" --in-manifests "$manifests" --out-weights "$exp/$system/rescoring.json"
  stage 12 "dev by $system" rescore_nbest --in-nbest "$exp/nbest_dev" --in-scores "${scores_dev[@]}" \
    --in-manifests "$manifests" --in-weights "$exp/$system/rescoring.json" --out-hyps "$exp/$system/decode_dev/1.jsonl"
  stage 12 "test by $system" rescore_nbest --in-nbest "$exp/nbest_test" --in-scores "${scores_test[@]}" \
    --in-manifests "$manifests" --in-weights "$exp/$system/rescoring.json" --out-hyps "$exp/$system/decode_test/1.jsonl"
done
for role in dev test; do
  stage 12 "oracle of $role" rescore_nbest --in-nbest "$exp/nbest_$role" --in-manifests "$manifests" \
    --out-hyps "$exp/oracle/decode_$role/1.jsonl"
done

scores=() baselines=()
for role in dev test; do
  stage 13 "score the first pass, $role" score $(layers score) --in-hyps "$first_pass/decode_$role" \
    --in-weights "$first_pass/weights.json" --in-manifests "$manifests" --in-lang "$lang" \
    --out-dir "$exp/first_pass/score_$role" --set role="$role"
  baselines+=("$exp/first_pass/score_$role")
  for system in $systems oracle; do
    stage 13 "score $system, $role" score $(layers score) --in-hyps "$exp/$system/decode_$role" --in-manifests "$manifests" \
      --in-lang "$lang" --out-dir "$exp/$system/score_$role" --set role="$role"
    scores+=("$exp/$system/score_$role")
  done
done

report=$exp/RESULTS.md
stage 14 "table of results" report --in-scores "${baselines[@]}" "${scores[@]}" --in-baselines "${baselines[@]}" \
  --in-manifests "$manifests" --out-report "$report" --set command="$command_line"

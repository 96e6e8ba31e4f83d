# Word confidences of recognizers whose output is all there is: trained, calibrated, evaluated (corpus earnings21).
#
#   ./run.sh earnings21 confidence --corpus-dir DIR    run every stage that is not up to date
#   ./run.sh earnings21 confidence --arpa FILE         with the log-probabilities of a language model as features
#
# Options: recognizers (their folders ctm_NAME; quoted). Other corpora have confidences from recipe rescore.
# Those of every recipe: see ./run.sh --help.
# shellcheck shell=bash disable=SC2034,SC2046,SC2154
recognizers='kaldi_rev kaldi_librispeech'
. parse_options.sh
if [[ $corpus != earnings21 ]]; then
  _stop "recipe confidence" "a corpus of recognizers' output: earnings21" "$corpus" "run recipe rescore"
fi
data=data/earnings21
exp=exp/confidence${arpa:+_lm}

stage 0 "gold words and recognizers' words, dealt to train, dev and test" prepare_earnings21 $(layers earnings21) \
  --raw-corpus "$corpus_dir" --out-dir $data

if [[ -n $arpa ]]; then
  for recognizer in $recognizers; do
    for role in train dev test; do
      stage 1 "LM scores of $recognizer, $role" score_nbest $(layers score_nbest) --in-nbest "$data/$recognizer/nbest_$role" \
        --in-lm "$arpa" --out-scores "$exp/$recognizer/lm_scores/lm_$role.safetensors" --set name=lm --device "$device"
    done
  done
fi

# The recognizer's own confidences, as they are and calibrated alone, are what the classifier has to beat.
for recognizer in $recognizers; do
  lists=$data/$recognizer models=$exp/$recognizer/models scores=$exp/$recognizer/lm_scores
  for calibration in platt isotonic; do
    stage 2 "$recognizer, own confidences, $calibration" train_confidence $(layers confidence) --in-nbest "$lists/nbest_dev" \
      --in-manifests $data --out-model "$models/own_$calibration" --set classifier=own calibration=$calibration
  done
  stage 2 "$recognizer, network" train_confidence $(layers confidence) --in-nbest "$lists/nbest_train" \
    ${arpa:+--in-scores "$scores/lm_train.safetensors" --in-calibration-scores "$scores/lm_dev.safetensors"} \
    --in-calibration "$lists/nbest_dev" --in-manifests $data --out-model "$models/network"
done

tested=()
for recognizer in $recognizers; do
  # System, its model, whether it is calibrated.
  while read -r system model calibrated; do
    scores=$exp/$recognizer/lm_scores/lm_test.safetensors
    if [[ $model != network ]]; then scores=''; fi
    stage 3 "$recognizer, $system, test" apply_confidence $(layers apply_confidence) --in-model "$exp/$recognizer/models/$model" \
      --in-nbest "$data/$recognizer/nbest_test" ${arpa:+${scores:+--in-scores "$scores"}} \
      --out-nbest "$exp/$recognizer/$system/nbest_test/1.jsonl" --set "calibrated=$calibrated"
    tested+=("$exp/$recognizer/$system/nbest_test")
  done <<< "own own_platt false
own_platt own_platt true
own_isotonic own_isotonic true
network_raw network false
network network true"
done

stage 4 "table and plots" evaluate_confidence $(layers evaluate_confidence) --in-nbest "${tested[@]}" --in-manifests $data \
  --out-dir "$exp/results" --set "baselines=[own,own_isotonic]" "command=$command_line"
report=$exp/results/RESULTS.md

# Sourced after am_choices.sh and data_stages.sh: stage 5, the acoustic model, the same for all recipes that decode with CTC.
# shellcheck shell=bash disable=SC2046,SC2154
if [[ -n $am_model ]]; then
  stage 5 "acoustic model brought along" import_am --raw-model "$am_model" --raw-tokens "$am_tokens" --out-dir "$am"
else
  stage 5 "acoustic model, $encoder" --cmd "$train_cmd" train_am $(layers am_ctc) --in-feats "$feats" --in-lang "$lang/spoken" --out-dir "$am" \
    --set encoder.kind="$encoder" ${max_duration:+max_duration="$max_duration"} ${avg:+avg="$avg"} \
    --device "$device" --num-jobs "$nj"
fi

# CTC acoustic model, word n-gram, one pass: from a corpus to a word error rate.
#
#   ./run.sh CORPUS ctc                        run every stage that is not up to date
#   ./run.sh CORPUS ctc --stage 5              resume from the acoustic model
#   ./run.sh CORPUS ctc --encoder conformer    another encoder, beside the first
#   ./run.sh CORPUS ctc --dry-run true         list what each stage reads and writes; check the wiring
#
# Options: encoder (tdnn|blstm|conformer; default tdnn, with --size paper blstm), max_duration (seconds of speech
# in a batch), avg (checkpoints to average). A model trained elsewhere, in place of stage 5: am_model (model.pt or
# model.onnx), am_tokens (its tokens.txt), am_bpe (its bpe.model; with --units bpe_N); for one of phones --lexicon.
# Those of every recipe: see ./run.sh --help.
encoder='' max_duration='' avg='' am_model='' am_tokens='' am_bpe=''
. parse_options.sh
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
  --in-feats "$feats" --out-hyps "$exp/decode_dev/JOB.jsonl" --set role=dev job=JOB num_jobs="$nj" --device "$device"

stage 7 "LM weight and insertion penalty, chosen on dev" tune_weights --in-hyps "$exp/decode_dev" --in-manifests "$manifests" \
  --out-weights "$exp/weights.json"

stage 8 "decode test" JOB=1:"$nj" decode $(layers decode) --in-model "$am" --in-graph "$graph" --in-weights "$exp/weights.json" \
  --in-feats "$feats" --out-hyps "$exp/decode_test/JOB.jsonl" --set role=test job=JOB num_jobs="$nj" --device "$device"

for role in dev test; do
  stage 9 "score $role" score $(layers score) --in-hyps "$exp/decode_$role" --in-weights "$exp/weights.json" \
    --in-manifests "$manifests" --in-lang "$lang" --out-dir "$exp/score_$role" --set role="$role"
done

stage 10 "recognizer, for bin.transcribe" assemble_recognizer $(layers decode) --in-model "$am" --in-graph "$graph" \
  --in-feats "$feats" --in-weights "$exp/weights.json" --out-recognizer "$exp/recognizer.yaml"

report=$exp/RESULTS.md
stage 11 "table of results" report --in-scores "$exp/score_dev" "$exp/score_test" --in-weights "$exp/weights.json" \
  --in-manifests "$manifests" --out-report "$report" --set command="$command_line"

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
. first_pass_stages.sh   # stages 0-8: data, lang, LM, graph, acoustic model, decoding

for role in dev test; do
  stage 9 "score $role" score $(layers score) --in-hyps "$exp/decode_$role" --in-weights "$exp/weights.json" \
    --in-manifests "$manifests" --in-lang "$lang" --out-dir "$exp/score_$role" --set role="$role"
done

stage 10 "recognizer, for bin.transcribe" assemble_recognizer $(layers decode) --in-model "$am" --in-graph "$graph" \
  --in-feats "$feats" --in-weights "$exp/weights.json" --out-recognizer "$exp/recognizer.yaml" \
  ${backend:+--set backend="$backend"}

report=$exp/RESULTS.md
stage 11 "table of results" report --in-scores "$exp/score_dev" "$exp/score_test" --in-weights "$exp/weights.json" \
  --in-manifests "$manifests" --out-report "$report" --set command="$command_line"

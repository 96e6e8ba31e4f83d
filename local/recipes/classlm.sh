# Language models of sanitized text: class-based first pass, adaptation, mixtures; the tables of turan2022.
#
#   ./run.sh CORPUS classlm                       run every stage that is not up to date
#   ./run.sh CORPUS classlm --stage 9             resume from the LMs
#   ./run.sh CORPUS classlm --decode false        perplexities only (corpora without speech)
#   ./run.sh CORPUS classlm --keep 0              every word of a name is replaced: epsilon 0
#   ./run.sh CORPUS classlm --sizes '' --max-epsilon 25    only what a release may hold: no models of text as it is
#
# Options: sizes (of the adaptation text, per cent of the sanitized text's words; quoted; '': none), original (models of the original text,
# for comparison; default: true without --max-epsilon), keep (probability that a word of a name
# is kept), mix (em: weights of the mixtures chosen on dev; preset: the paper's 0.3/0.7/0.4), taggers (spacy,gazetteer; empty: the
# corpus's own annotation), gold (whether the corpus has annotated the names of all its text: other taggers are then measured
# against them, and recognized names scored by them), public_text (folder of annotated public text in the CoNLL format, whose names are the public lists) or
# public_names (lists ready made: per.txt org.txt loc.txt misc.txt), lm_epochs (passes of the LSTM over its text), tune_epochs (of
# its softmax over the adaptation text), decode (false: no speech), encoder and all others of recipe ctc.
# Those of every recipe: see ./run.sh --help.
# shellcheck disable=SC1091,SC2034,SC2046,SC2086,SC2154
sizes='12 15 20' original='' keep='' mix=em taggers=${taggers-} gold=${gold:-false} decode=${decode:-true} public_text=${public_text-} public_names='' lm_epochs='' tune_epochs=''
encoder='' max_duration='' avg='' am_model='' am_tokens='' am_bpe=''
. parse_options.sh
wholes_above_0 lm_epochs tune_epochs
numbers_above_0 sizes
share keep
[[ $mix == em || $mix == preset ]] || _stop "--mix" "em or preset" "'$mix'" "correct the value"
if [[ -z $original ]]; then
  original=true
  if [[ -n $max_epsilon ]]; then original=false; fi   # nothing covers them
fi
released=false   # nothing but what is made of the sanitized text: words that it lacks are unknown
if [[ $original == false && -z $sizes ]]; then released=true; fi
[[ $original == true || $original == false ]] || _stop "--original" "true or false" "'$original'" "correct the value"
. am_choices.sh
exp=exp/classlm_${first_pass#exp/ctc_}
if [[ $decode == false ]]; then exp=exp/classlm_text; fi
if [[ $released == true ]]; then exp+=_released; fi
[[ $gold == true || $gold == false ]] || _stop "--gold" "true or false" "'$gold'" "correct the value"

. sanitized_stages.sh   # stages 0-7: data, acoustic model, tagged text in parts, sanitized text
declare -A adaptation=()
privacy=("$exp/sanitized_text_privacy.json") words_from=("$sanitized" "$text/background.jsonl.gz")
for percent in $sizes; do
  adaptation["$percent"]=$exp/adapt_$percent/unprotected/adapt_$percent.jsonl.gz
  stage 7 "adaptation text of $percent %, as it is: no guarantee" declare_unprotected $(layers declare_unprotected) \
    --in-private-text $text/adapt_"$percent".jsonl.gz --out-dir "$exp/adapt_$percent/unprotected" \
    --out-privacy "$exp/adapt_${percent}_privacy.json" $(budget) \
    --set "data=$people/train and $people/adapt" "purpose=language models are adapted to it"
  privacy+=("$exp/adapt_${percent}_privacy.json") words_from+=("$text/adapt_$percent.jsonl.gz")
done

# One vocabulary for all LMs, so that their figures compare: that of all private texts, of the sanitized one and of the public lists.
names_lang=${lang}_names corpus_words=true
if [[ $released == true ]]; then names_lang=${lang}_released corpus_words=false words_from=("$sanitized"); fi
tokens=("${lang_flags[@]}")
if [[ $decode == true && -z $am_model ]]; then   # the acoustic model's tokens
  tokens=(--in-tokens "$lang/tokens.txt")
  if [[ $units == bpe_* ]]; then tokens+=(--in-bpe-model "$lang/bpe.model"); fi
fi
stage 8 "lang directory of all words" prepare_lang $(layers lang) --in-manifests $texts --in-further-text "${words_from[@]}" \
  --in-public-lists "$public_lists" "${tokens[@]}" --out-dir "$names_lang" --set units="$units" corpus_words=$corpus_words $lang_options

choices=()
# Models of a setting are $exp/SETTING/lm/M1.arpa.gz (words), M2 (classes), M4 (LSTM), M3.arpa.gz (n-grams of M4).
train_setting() {   # SETTING TEXT...: all four from this text
  local out=$exp/$1/lm
  stage 9 "M1 of $1 text, words" train_ngram $(layers lm_ngram) --in-text "${@:2}" --in-manifests $texts --in-lang "$names_lang" \
    --out-lm "$out/M1.arpa.gz"
  stage 9 "M2 of $1 text, classes" train_class_lm $(layers class_lm) --in-text "${@:2}" --in-public-lists "$public_lists" \
    --in-dev $text/dev.jsonl.gz --in-lang "$names_lang" --out-lm "$out/M2"
  stage 9 "M4 of $1 text, LSTM" --cmd "$train_cmd" train_lm $(layers lm_lstm) --in-text "${@:2}" --in-dev $text/dev.jsonl.gz --in-lang "$names_lang" \
    --out-dir "$out/M4" ${lm_epochs:+--set epochs="$lm_epochs"} --device "$device" --num-jobs "$nj"
  stage 9 "M3 of $1 text, n-grams of M4" approximate_lm $(layers approximate) --in-lm "$out/M4" --in-text "${@:2}" \
    --in-dev $text/dev.jsonl.gz --in-lang "$names_lang" --out-lm "$out/M3.arpa.gz" --device "$device"
}
adapt_ngrams() {   # BACKGROUND OUT ADAPTATION_TEXT EQUATION: by eq. 1 or 2, or by that which dev prefers (null)
  choices+=("${2%.arpa.gz}_choice.json")
  stage 10 "${2##*/} adapted, equation $4" adapt_lm $(layers fma) --in-lm "$1" --in-text "$3" --in-dev $text/dev.jsonl.gz \
    --in-background-text "$sanitized" --out-lm "$2" --out-choice "${2%.arpa.gz}_choice.json" --set equation="$4"
}
adapt_setting() {   # PERCENT: the models of sanitized text, adapted
  local from=$exp/sanitized/lm out=$exp/adapt_$1/lm given=${adaptation[$1]} equation
  for equation in 1 2; do
    adapt_ngrams "$from/M1.arpa.gz" "$out/M1_eq$equation.arpa.gz" "$given" $equation
    adapt_ngrams "$from/M2" "$out/M2_eq$equation" "$given" $equation
  done
  stage 10 "M4, its softmax tuned on $1 %" --cmd "$train_cmd" train_lm $(layers lm_lstm) $(layers lm_tune) --in-init "$from/M4" --in-text "$given" \
    --in-dev $text/dev.jsonl.gz --in-lang "$names_lang" --out-dir "$out/M4" ${tune_epochs:+--set epochs="$tune_epochs"} \
    --device "$device" --num-jobs "$nj"
  stage 10 "M3, n-grams of that" approximate_lm $(layers approximate) --in-lm "$out/M4" --in-text "$sanitized" \
    --in-dev $text/dev.jsonl.gz --in-lang "$names_lang" --out-lm "$out/M3.arpa.gz" --device "$device"
}
train_setting sanitized "$sanitized"
if [[ $original == true ]]; then train_setting original $text/background.jsonl.gz; fi
mix_lms() {   # OUT FORM LM...: linearly [turan2022, eq. 3]
  choices+=("${1%.json}_weights.json")
  stage 11 "mixture ${1##*/}" interpolate_lms $(layers interpolate) --in-lm "${@:3}" --in-dev $text/dev.jsonl.gz --out-lm "$1" \
    --out-weights "${1%.json}_weights.json" --set form="$2" weights="$mix" --device "$device"
}
for percent in $sizes; do train_setting direct_"$percent" "$sanitized" "${adaptation[$percent]}"; done
for percent in $sizes; do adapt_setting "$percent"; done
# Mixtures of what the smallest size has adapted, n-grams by the equation that dev prefers. One ARPA for a first pass can
# mix only the root models of M1 and M2; exactly they are mixed in the second.
if [[ -n $sizes ]]; then
  smallest=${sizes%% *} mixed=$exp/mixed/lm
  adapt_ngrams "$exp/sanitized/lm/M1.arpa.gz" "$mixed/M1.arpa.gz" "${adaptation[$smallest]}" null
  adapt_ngrams "$exp/sanitized/lm/M2" "$mixed/M2" "${adaptation[$smallest]}" null
  mix_lms "$mixed/M1_M2" static "$mixed/M1.arpa.gz" "$mixed/M2"
  mix_lms "$mixed/M1_M2_M3" static "$mixed/M1.arpa.gz" "$mixed/M2" "$exp/adapt_$smallest/lm/M3.arpa.gz"
  mix_lms "$mixed/M1_M2_exact.json" dynamic "$mixed/M1.arpa.gz" "$mixed/M2"
  mix_lms "$mixed/M1_M2_M3_exact.json" dynamic "$mixed/M1.arpa.gz" "$mixed/M2" "$exp/adapt_$smallest/lm/M3.arpa.gz"
  mix_lms "$mixed/M1_M2_M4.json" dynamic "$mixed/M1.arpa.gz" "$mixed/M2" "$exp/adapt_$smallest/lm/M4"
fi

# What decodes in one pass (SETTING SYSTEM LM), and what rescores it (SETTING SYSTEM LM FIRST_PASS).
one_pass=() two_passes=()
for setting in sanitized $(if [[ $original == true ]]; then echo original; fi) $(for percent in $sizes; do echo "direct_$percent"; done); do
  one_pass+=("$setting M1 M1.arpa.gz" "$setting M2 M2" "$setting M3 M3.arpa.gz")
  two_passes+=("$setting M4 M4 $setting/M1")
done
for percent in $sizes; do
  for equation in 1 2; do
    one_pass+=("adapt_$percent M1_eq$equation M1_eq$equation.arpa.gz" "adapt_$percent M2_eq$equation M2_eq$equation")
  done
  one_pass+=("adapt_$percent M3 M3.arpa.gz")
  two_passes+=("adapt_$percent M4 M4 sanitized/M1")
done
if [[ -n $sizes ]]; then
  one_pass+=("mixed M1_M2 M1_M2" "mixed M1_M2_M3 M1_M2_M3")
  two_passes+=("mixed M1_M2_exact M1_M2_exact.json mixed/M1_M2" "mixed M1_M2_M3_exact M1_M2_M3_exact.json mixed/M1_M2"
    "mixed M1_M2_M4 M1_M2_M4.json mixed/M1_M2")
fi

lms=()
for system in "${one_pass[@]}" "${two_passes[@]}"; do
  read -r setting _ file _ <<< "$system"
  lms+=("$exp/$setting/lm/$file")
done
for role in dev test; do
  stage 12 "perplexities of $role" perplexity --in-text "$text/$role.jsonl.gz" --in-lang "$names_lang" --in-lm "${lms[@]}" \
    --out-perplexity "$exp/perplexity_$role.json" --device "$device"
done

scores=()
if [[ $decode == true ]]; then
  for system in "${one_pass[@]}"; do
    read -r setting name file <<< "$system"
    out=$exp/$setting/$name
    stage 13 "$setting $name: graph" compile_graph $(layers graph) --in-lang "$names_lang" --in-lm "$exp/$setting/lm/$file" --out-dir "$out/graph"
    stage 13 "$setting $name: dev over a grid of weights" JOB=1:"$nj" decode $(layers decode) --in-model "$am" --in-graph "$out/graph" \
      --in-feats "$feats" --out-hyps "$out/decode_dev/JOB.jsonl" --set role=dev job=JOB num_jobs="$nj" --device "$device"
    stage 13 "$setting $name: weights, chosen on dev" tune_weights --in-hyps "$out/decode_dev" --in-manifests $scored --out-weights "$out/weights.json"
    stage 13 "$setting $name: test" JOB=1:"$nj" decode $(layers decode) --in-model "$am" --in-graph "$out/graph" \
      --in-weights "$out/weights.json" --in-feats "$feats" --out-hyps "$out/decode_test/JOB.jsonl" \
      --set role=test job=JOB num_jobs="$nj" --device "$device"
    stage 13 "$setting $name: score" score $(layers score) --in-hyps "$out/decode_test" --in-weights "$out/weights.json" \
      --in-manifests $scored --in-lang "$names_lang" --out-dir "$out/score_test" --set role=test
    scores+=("$out/score_test") choices+=("$out/weights.json")
  done
  for first in $(printf '%s\n' "${two_passes[@]##* }" | sort -u); do
    for role in dev test; do
      stage 14 "N-best lists of $role, ${first/\// }" JOB=1:"$nj" make_nbest $(layers decode) $(layers nbest) --in-model "$am" \
        --in-graph "$exp/$first/graph" --in-weights "$exp/$first/weights.json" --in-feats "$feats" --in-lang "$names_lang" \
        --out-nbest "$exp/$first/nbest_$role/JOB.jsonl" --set role=$role job=JOB num_jobs="$nj" --device "$device"
    done
  done
  for system in "${two_passes[@]}"; do
    read -r setting name file first <<< "$system"
    out=$exp/$setting/$name lists=$exp/$first
    for role in dev test; do
      stage 15 "$setting $name: words of $role" score_nbest $(layers score_nbest) --in-nbest "$lists/nbest_$role" \
        --in-lm "$exp/$setting/lm/$file" --out-scores "$out/lm_scores/$role.safetensors" --set name="$name" --device "$device"
    done
    stage 15 "$setting $name: weights, chosen on dev" tune_rescoring $(layers rescore) --in-nbest "$lists/nbest_dev" \
      --in-scores "$out/lm_scores/dev.safetensors" --in-manifests $scored --out-weights "$out/rescoring.json"
    stage 15 "$setting $name: test" rescore_nbest --in-nbest "$lists/nbest_test" --in-scores "$out/lm_scores/test.safetensors" \
      --in-manifests $scored --in-weights "$out/rescoring.json" --out-hyps "$out/decode_test/1.jsonl"
    stage 15 "$setting $name: score" score $(layers score) --in-hyps "$out/decode_test" --in-manifests $scored --in-lang "$names_lang" \
      --out-dir "$out/score_test" --set role=test
    scores+=("$out/score_test") choices+=("$out/rescoring.json")
  done
fi

report=$exp/RESULTS.md
stage 16 "the tables" report_classlm --in-texts $text --in-perplexity "$exp/perplexity_test.json" \
  ${scores[0]+--in-scores "${scores[@]}"} ${choices[0]+--in-choices "${choices[@]}"} --in-privacy "${privacy[@]}" \
  --in-entities "$exp/entities.json" --in-public-lists "$public_lists" --in-manifests $scored --out-report "$report" $(book) \
  --set command="$command_line" acoustic_model=CTC tagger="${taggers:-gold}"

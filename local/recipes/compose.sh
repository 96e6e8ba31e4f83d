# One recognizer of three papers: sanitized text, federated training, personalization, on disjoint parts of the users, under one ledger.
#
#   ./run.sh CORPUS compose                       run every stage that is not up to date
#   ./run.sh CORPUS compose --noise 1.5           a stronger guarantee for the users of adapt
#   ./run.sh CORPUS compose --max-epsilon 30      refuse to spend beyond that, on any part
#
# train:  what its users wrote or said, sanitized [turan2022]: class LM of the first pass, neural LM, vocabulary.
# adapt:  what its users said, recognized, trains that neural LM on their devices, user-level privacy [liu2021].
# test:   unigrams of each user, and of all by private releases, adapt it while they speak [liu2020].
#
# Options: keep, taggers, gold, public_text, public_names (of the sanitized text, as in recipe classlm); nnlm (lstm, char_lstm, transformer),
# lm_epochs (passes of pre-training); client (zipf: devices; or speaker), devices (of Zipf's law), noise (multiplier), clip, rate (share of the clients in a
# round), rounds, server_lr, delta (of federated training, as in recipe fedlm); fmp_rounds (T), epsilon (of the releases of unigrams, for a user), encoder and all others of recipe ctc.
# Those of every recipe: see ./run.sh --help.
# shellcheck disable=SC1091,SC2034,SC2046,SC2086,SC2154
keep='' taggers=${taggers-} gold=${gold:-false} public_text=${public_text-} public_names='' nnlm=lstm lm_epochs=''
client=zipf devices='' noise=0.5 clip=0.5 rate=0.05 rounds='' server_lr='' delta=1e-5 fmp_rounds=10 epsilon=1.0
encoder='' max_duration='' avg='' am_model='' am_tokens='' am_bpe=''
. parse_options.sh
among client "zipf speaker" "$client"
wholes_above_0 lm_epochs devices rounds fmp_rounds
numbers_above_0 noise clip server_lr delta epsilon
for name in keep rate; do share $name; done
[[ " lstm char_lstm transformer " == *" $nnlm "* ]] || _stop "--nnlm" "lstm, char_lstm or transformer" "'$nnlm'" "correct the name"
decode=true sizes=''
. am_choices.sh
exp=exp/compose_${first_pass#exp/ctc_}
. sanitized_stages.sh   # stages 0-7: data, acoustic model, tagged text in parts, sanitized text

# Nothing but what is made of the sanitized text and of public lists: words that they lack are unknown.
words=${lang}_released tokens=(--in-tokens "$lang/tokens.txt")
if [[ $units == bpe_* ]]; then tokens+=(--in-bpe-model "$lang/bpe.model"); fi
if [[ -n $am_model ]]; then tokens=("${lang_flags[@]}"); fi
stage 8 "lang directory of what was released" prepare_lang $(layers lang) --in-manifests $texts --in-further-text "$sanitized" \
  --in-public-lists "$public_lists" "${tokens[@]}" --out-dir "$words" --set units="$units" corpus_words=false $lang_options

class_lm=$exp/lm/classes graph=$exp/graph weights=$exp/first_pass/weights.json
stage 9 "class LM of sanitized text" train_class_lm $(layers class_lm) --in-text "$sanitized" --in-public-lists "$public_lists" \
  --in-dev $text/dev.jsonl.gz --in-lang "$words" --out-lm "$class_lm"
stage 9 "neural LM of sanitized text, $nnlm" --cmd "$train_cmd" train_lm $(layers "lm_$nnlm") --in-text "$sanitized" --in-dev $text/dev.jsonl.gz \
  --in-lang "$words" --out-dir "$exp/lm/pretrained" ${lm_epochs:+--set epochs="$lm_epochs"} --device "$device" --num-jobs "$nj"
stage 10 "decoding graph with names" compile_graph $(layers graph) --in-lang "$words" --in-lm "$class_lm" --out-dir "$graph"
stage 10 "decode dev over a grid of weights" JOB=1:"$nj" decode $(layers decode) --in-model "$am" --in-graph "$graph" \
  --in-feats "$feats" --out-hyps "$exp/first_pass/decode_dev/JOB.jsonl" --set role=dev job=JOB num_jobs="$nj" --device "$device"
stage 10 "weights, chosen on dev" tune_weights --in-hyps "$exp/first_pass/decode_dev" --in-manifests $scored --out-weights "$weights"
for role in adapt dev test; do
  stage 10 "N-best lists of $role" JOB=1:"$nj" make_nbest $(layers decode) $(layers nbest) --in-model "$am" --in-graph "$graph" \
    --in-weights "$weights" --in-feats "$feats" --in-lang "$words" --out-nbest "$exp/nbest_$role/JOB.jsonl" \
    --set backend=k2 role=$role job=JOB num_jobs="$nj" num_paths=20 --device "$device"
done

stage 11 "clients and what was recognized" make_clients $(layers clients) --in-nbest "$exp/nbest_adapt" --out-clients "$exp/clients.jsonl.gz" \
  --set client="$client" ${devices:+devices="$devices"}
stage 11 "references of dev" make_clients $(layers clients) --in-nbest "$exp/nbest_dev" --out-clients "$exp/dev/clients.jsonl.gz" \
  --out-text "$exp/dev/text.txt.gz" --set client=speaker text=ref
private_data=$people/adapt unit=speaker
if [[ $client == zipf ]]; then private_data+=/devices${devices:+_$devices} unit=device; fi   # on which several speakers may be, as a speaker on several
stage 12 "federated and private, noise $noise" --cmd "$train_cmd" train_fedlm $(layers fedlm) --in-private-clients "$exp/clients.jsonl.gz" \
  --in-public-init "$exp/lm/pretrained" --in-public-dev-text "$exp/dev/text.txt.gz" --out-dir "$exp/lm/federated" \
  --out-privacy "$exp/federated_privacy.json" $(budget) --set data="$private_data" unit=$unit weights.by=uniform privacy.clip="$clip" \
  privacy.noise="$noise" privacy.delta="$delta" rate="$rate" ${rounds:+rounds="$rounds"} ${server_lr:+server.lr="$server_lr"} \
  --device "$device" --num-jobs "$nj"

score_lists() {   # STAGE NAME LM ROLE
  stage "$1" "words of $4 by $2" score_nbest $(layers score_nbest) --in-nbest "$exp/nbest_$4" --in-lm "$3" \
    --out-scores "$exp/lm_scores/$2_$4.safetensors" --set name="$2" --device "$device"
}
rescored() {   # STAGE NAME SCORES WEIGHTS: the test part by the class LM and these scores
  stage "$1" "test by $2" rescore_nbest --in-nbest "$exp/nbest_test" --in-scores "$exp/lm_scores/classes_test.safetensors" "$3" \
    --in-manifests $scored --in-weights "$4" --out-hyps "$exp/$2/decode_test/1.jsonl"
  stage "$1" "score $2" score $(layers score) --in-hyps "$exp/$2/decode_test" --in-manifests $scored --in-lang "$words" \
    --out-dir "$exp/$2/score_test" --set role=test
}
scores=("$exp/first_pass/score_test") choices=("$weights")
stage 13 "test in one pass" JOB=1:"$nj" decode $(layers decode) --in-model "$am" --in-graph "$graph" --in-weights "$weights" \
  --in-feats "$feats" --out-hyps "$exp/first_pass/decode_test/JOB.jsonl" --set role=test job=JOB num_jobs="$nj" --device "$device"
stage 13 "score the first pass" score $(layers score) --in-hyps "$exp/first_pass/decode_test" --in-weights "$weights" --in-manifests $scored \
  --in-lang "$words" --out-dir "${scores[0]}" --set role=test
for role in dev test; do score_lists 13 classes "$class_lm" $role; done
for system in pretrained federated; do
  for role in dev test; do score_lists 13 $system "$exp/lm/$system" $role; done
  stage 13 "weights of $system, chosen on dev" tune_rescoring $(layers rescore) --in-nbest "$exp/nbest_dev" \
    --in-scores "$exp"/lm_scores/{classes,"$system"}_dev.safetensors --in-manifests $scored --out-weights "$exp/$system/rescoring.json"
  rescored 13 $system "$exp/lm_scores/${system}_test.safetensors" "$exp/$system/rescoring.json"
  scores+=("$exp/$system/score_test") choices+=("$exp/$system/rescoring.json")
done

u=$exp/background.safetensors
stage 14 "unigrams u of the sanitized text" make_background $(layers fmp_background) --in-text "$sanitized" --in-lm "$exp/lm/federated" \
  --out-background "$u"
fmp_inputs() {   # ROLE
  echo "--in-nbest $exp/nbest_$1 --in-timeline $exp/timeline_$1.jsonl --in-lm $exp/lm/federated --in-background $u" \
    "--in-plain $exp/lm_scores/federated_$1.safetensors"
}
for role in dev test; do
  stage 14 "users of $role" prepare_fmp $(layers fmp_timeline) --in-manifests "$manifests" --in-nbest "$exp/nbest_$role" \
    --out-timeline "$exp/timeline_$role.jsonl" --set client=speaker
done
stage 14 "lambda, chosen on the users of dev" tune_fmp $(layers fmp) $(fmp_inputs dev) --in-scores "$exp/lm_scores/classes_dev.safetensors" \
  --in-weights "$exp/federated/rescoring.json" --in-manifests $scored --out-choice "$exp/lambda.json" \
  --set rounds="$fmp_rounds" sigma=0.1 --device "$device"
stage 15 "releases of unigrams, epsilon $epsilon" release_fmp $(layers fmp_release) --in-private-nbest "$exp/nbest_test" \
  --in-private-timeline "$exp/timeline_test.jsonl" --in-public-lm "$exp/lm/federated" --out-release "$exp/marginals.safetensors" \
  --out-privacy "$exp/marginals_privacy.json" $(budget) --set data="$people/test" unit=user rounds="$fmp_rounds" sigma=0.1 epsilon="$epsilon"
stage 16 "personalized" run_fmp $(layers fmp) $(fmp_inputs test) --in-choice "$exp/lambda.json" --in-release "$exp/marginals.safetensors" \
  --out-scores "$exp/personalized/lm_scores/test.safetensors" --out-run "$exp/personalized/run_test.json" \
  --set rounds="$fmp_rounds" sigma=0.1 --device "$device"
rescored 16 personalized "$exp/personalized/lm_scores/test.safetensors" "$exp/federated/rescoring.json"
scores+=("$exp/personalized/score_test")

report=$exp/RESULTS.md acoustic=trained
if [[ -n $am_model ]]; then acoustic=brought_along; fi
stage 17 "the table, and a guarantee for each part of the data" report_compose --in-scores "${scores[@]}" --in-weights "${choices[@]}" \
  --in-baselines "$exp"/{first_pass,pretrained}/score_test --in-privacy "$exp"/{sanitized_text,federated,marginals}_privacy.json --in-manifests $scored --out-report "$report" $(book) \
  --set command="$command_line" corpus="$people" acoustic_model="$acoustic"

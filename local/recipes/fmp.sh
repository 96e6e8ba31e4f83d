# Federated marginal personalization: clients' unigrams adapt a Transformer LM in rescoring; the tables of liu2020.
#
#   ./run.sh CORPUS fmp                            run every stage that is not up to date
#   ./run.sh ami fmp --client prefix --mix preset  meetings as clients, both LMs with weight 0.5, as the paper
#   ./run.sh CORPUS fmp --decode false             perplexities only (corpora without speech)
#   ./run.sh CORPUS fmp --epsilons ''              no releases: tables 1 to 3
#
# Options: client (speaker, recording, document, part, or prefix: of the utterance id, AMI's meeting), rounds (T; quoted),
# nbest (most hypotheses of an utterance: the paper's 20 or 100), mix (dev: weights of the n-gram and the neural LM chosen
# on dev; preset: the paper's 0.5 of log-probabilities), epsilons (of each release; quoted; '': none), private_units (out
# of utterance, user; quoted), background (text of the unigrams u; default: that of the neural LM), nnlm_text (a normalized
# sentence a line: text for the neural LM alone), lm_epochs (passes over it), decode (false: no speech), encoder and all
# others of recipe ctc.
# Those of every recipe: see ./run.sh --help.
# shellcheck shell=bash disable=SC1091,SC2034,SC2046,SC2086,SC2154
client=speaker rounds='1 2 5 10' nbest=20 mix=dev epsilons='0.1 0.5 1 2' private_units='utterance user' background=''
nnlm_text='' lm_epochs='' decode=${decode:-true}
encoder='' max_duration='' avg='' am_model='' am_tokens='' am_bpe=''
. parse_options.sh
among client "speaker recording document part prefix" "$client"
among mix "dev preset" "$mix"
among private-units "utterance user" "$private_units"
[[ -n $rounds ]] || _stop "--rounds" "whole numbers above 0" "nothing" "name one"
wholes_above_0 rounds nbest lm_epochs
numbers_above_0 epsilons
if [[ $decode == true ]]; then
  . first_pass_stages.sh   # stages 0-8: data, lang, LM, graph, acoustic model, decoding
  first_pass=$exp          # of --backend kaldi, beside that of k2
  exp=exp/fmp_${exp#exp/ctc_}_$client
else
  ignored "--decode false: nothing is recognized" arpa mix nbest encoder max_duration avg am_model am_tokens am_bpe
  . data_stages.sh         # stages 0-2
  exp=exp/fmp_text_$client
fi
most=${rounds##* }         # the last one is taken for tables 3 and 4

model=$exp/lm/transformer
stage 9 "neural LM, transformer" --cmd "$train_cmd" train_lm $(layers lm_transformer) --in-manifests "$manifests" --in-lang "$lang" \
  ${nnlm_text:+--raw-text "$nnlm_text"} --out-dir "$model" ${lm_epochs:+--set epochs="$lm_epochs"} \
  --device "$device" --num-jobs "$nj"

u=$exp/background.safetensors text=(--in-manifests "$manifests" ${nnlm_text:+--raw-text "$nnlm_text"})
if [[ -n $background ]]; then text=(--in-text "$background"); fi
stage 9 "unigrams u of background text" make_background $(layers fmp_background) "${text[@]}" --in-lm "$model" --out-background "$u"

if [[ $decode == true ]]; then
  for role in dev test; do
    stage 10 "N-best lists of $role" JOB=1:"$nj" make_nbest $(layers decode) $(layers nbest) --in-model "$am" --in-graph "$graph" \
      --in-weights "$first_pass/weights.json" --in-feats "$feats" --in-lang "$lang" --out-nbest "$exp/nbest_$role/JOB.jsonl" \
      --set backend=k2 role=$role job=JOB num_jobs="$nj" num_paths="$nbest" --device "$device"
  done
fi
for role in dev test; do
  timeline=$exp/timeline_$role.jsonl
  if [[ $decode == true ]]; then
    stage 11 "clients of $role" prepare_fmp $(layers fmp_timeline) --in-manifests "$manifests" --in-nbest "$exp/nbest_$role" \
      --out-timeline "$timeline" --set client="$client"
    for lm_of in "ngram $lm" "transformer $model"; do
      stage 11 "words of $role, by ${lm_of% *}" score_nbest $(layers score_nbest) --in-nbest "$exp/nbest_$role" \
        --in-lm "${lm_of#* }" --out-scores "$exp/lm_scores/${lm_of% *}_$role.safetensors" --set name="${lm_of% *}" --device "$device"
    done
  else
    stage 11 "clients of $role, text" prepare_fmp $(layers fmp_timeline) --in-text "$manifests/cuts_$role.jsonl.gz" \
      --out-nbest "$exp/nbest_$role/1.jsonl" --out-timeline "$timeline" --set client="$client"
  fi
done

# What run_fmp and tune_fmp have in common; unnormalized scores in speech, as the paper, normalized ones in text.
fmp_inputs() {   # ROLE
  echo "--in-nbest $exp/nbest_$1 --in-timeline $exp/timeline_$1.jsonl --in-lm $model --in-background $u"
  if [[ $decode == true ]]; then echo "--in-plain $exp/lm_scores/transformer_$1.safetensors"; fi
}
form='normalized=true criterion=perplexity' others=()
if [[ $decode == true ]]; then
  form='normalized=false criterion=errors' even=''
  if [[ $mix == preset ]]; then even='--set interpolation=log_linear steps=0'; fi
  stage 12 "weights of the unadapted LMs, chosen on dev" tune_rescoring $(layers rescore) --in-nbest "$exp/nbest_dev" \
    --in-scores "$exp"/lm_scores/{ngram,transformer}_dev.safetensors --in-manifests "$manifests" --out-weights "$exp/rescoring.json" $even
  others=(--in-scores "$exp/lm_scores/ngram_dev.safetensors" --in-weights "$exp/rescoring.json" --in-manifests "$manifests")
fi
choice=$exp/lambda.json grid=$exp/grid.json
stage 12 "lambda, chosen on the clients of dev" tune_fmp $(layers fmp) $(fmp_inputs dev) "${others[@]}" --out-choice "$choice" \
  --set rounds="$most" $form --device "$device"
if [[ $decode == true ]]; then
  stage 12 "alpha, beta, sigma and lambda, chosen there" tune_fmp $(layers fmp) $(layers fmp_tune) $(fmp_inputs dev) "${others[@]}" \
    --out-choice "$grid" --set rounds="$most" $form --device "$device"
fi

# Systems: NAME, the release it uses or -, settings; declared first, then run stage by stage.
names=() releases=() settings=()
system() {   # NAME RELEASE SETTING...
  names+=("$1") releases+=("$2") settings+=("${*:3}")
}
system baseline - rounds="$most" lam=0
for number in $rounds; do system "T$number" - rounds="$number"; done
if [[ $decode == true ]]; then   # text has one hypothesis
  for sigma in 0.1 1 10 100; do system "grid_sigma_$sigma" - rounds="$most" sigma="$sigma"; done
  system grid_dev - rounds="$most"
fi
system grid_beta_only - rounds="$most" alpha=0.0 beta=0.75
system grid_alpha_only - rounds="$most" alpha=0.75 beta=0.0

privacy=()
private() {   # NAME VERB LAYERS SETTING...: a release of the test clients' marginals, and the system that uses it
  local out=$exp/$1 public=''
  if [[ $2 == release_fmp_published ]]; then public="--in-public-background $u"; fi
  stage 13 "release $1" "$2" $(layers "$3") --in-private-nbest "$exp/nbest_test" --in-private-timeline "$exp/timeline_test.jsonl" \
    --in-public-lm "$model" $public --out-release "$out/marginals.safetensors" --out-privacy "$out/privacy.json" $(budget) \
    --set data="$people/test" rounds="$most" sigma=0.1 "${@:4}"
  privacy+=("$out/privacy.json")
  system "$1" "$out/marginals.safetensors" rounds="$most" sigma=0.1
}
audit=''
if [[ -n $epsilons ]]; then
  system eps_none - rounds="$most" sigma=0.1
  for epsilon in $epsilons; do
    for unit in $private_units; do
      private "eps_${unit}_$epsilon" release_fmp fmp_release unit="$unit" epsilon="$epsilon"
    done
    private "eps_published_$epsilon" release_fmp_published fmp_published epsilon="$epsilon"
  done
fi

runs=() scores=()
for place in "${!names[@]}"; do
  name=${names[$place]} release=${releases[$place]#-} lambda="--in-choice $choice"
  if [[ $name == baseline ]]; then lambda=''; fi
  if [[ $name == grid_dev ]]; then lambda="--in-choice $grid"; fi
  stage 14 "$name" run_fmp $(layers fmp) $(fmp_inputs test) $lambda ${release:+--in-release "$release"} \
    --out-scores "$exp/$name/lm_scores/test.safetensors" --out-run "$exp/$name/run_test.json" --set $form ${settings[$place]} --device "$device"
  runs+=("$exp/$name/run_test.json")
done
if [[ $decode == true ]]; then
  for name in "${names[@]}"; do
    out=$exp/$name
    stage 15 "$name: test" rescore_nbest --in-nbest "$exp/nbest_test" \
      --in-scores "$exp/lm_scores/ngram_test.safetensors" "$out/lm_scores/test.safetensors" --in-manifests "$manifests" \
      --in-weights "$exp/rescoring.json" --out-hyps "$out/decode_test/1.jsonl"
    stage 15 "$name: score" score $(layers score) --in-hyps "$out/decode_test" --in-manifests "$manifests" --in-lang "$lang" \
      --out-dir "$out/score_test" --set role=test
    scores+=("$out/score_test")
  done
fi
if [[ -n $epsilons ]]; then
  audit=$exp/audit.json
  stage 16 "audit of the release" audit_fmp $(layers fmp_release) $(layers fmp_audit) --in-nbest "$exp/nbest_test" \
    --in-timeline "$exp/timeline_test.jsonl" --in-lm "$model" --out-audit "$audit" \
    --set data="$people/test" rounds="$most" unit="${private_units##* }"
fi

report=$exp/RESULTS.md
stage 17 "the tables" report_fmp --in-runs "${runs[@]}" ${scores:+--in-scores "${scores[@]}"} \
  ${privacy:+--in-privacy "${privacy[@]}"} --in-timeline "$exp/timeline_test.jsonl" --in-choice "$choice" --in-manifests "$manifests" \
  ${audit:+--in-audit "$audit"} --out-report "$report" --out-curves "$exp/curves.svg" $(book) \
  --set command="$command_line"

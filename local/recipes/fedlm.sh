# Federated adaptation of neural LMs on recognized text, with confidences and user-level privacy; the tables of liu2021.
#
#   ./run.sh CORPUS fedlm                          run every stage that is not up to date
#   ./run.sh CORPUS fedlm --nnlm lstm              with a word LSTM
#   ./run.sh CORPUS fedlm --client speaker         real speakers as clients
#   ./run.sh earnings21 fedlm --nnlm-text FILE     text only: what a recognizer made of calls
#   ./run.sh ami fedlm --decode false              text only: what was said
#   ./run.sh CORPUS fedlm --private-sampling 'poisson ordered' --private-cohort 20    clients in a fixed order, too
#   ./run.sh CORPUS fedlm --noises '' --scratch false     Tables 2 and 3 only
#
# Options: nnlm (char_lstm, lstm, transformer); nnlm_text (a normalized sentence a line, maybe gzipped: public background text of the
# LM, in place of the corpus's own; with --decode false the vocabulary is of it alone); lm_epochs (passes over it); ways (of using
# confidences: all hard utterance token; all is always run, and alone where nothing was recognized; quoted);
# threshold (of hard); client (zipf: devices; or speaker), devices (of Zipf's law); rounds, rate (share of the clients in a round), client_lr,
# server_lr; epochs (passes of training on the server); scratch (false: nothing without pre-training); noises (multipliers; quoted; '':
# none), private_ways (with noise; quoted), private_sampling (poisson: a share of the clients in a round; ordered: always in the same order, with noise
# that is correlated over rounds; quoted), private_rate (that share), private_cohort (clients of a round in order), strategy (of the noise in
# order: square_root, tree, increments), bands (of square_root: rounds that are correlated), private_rounds, clip, private_lr (server_lr with
# noise), delta; tune (true: client_lr and server_lr chosen on clients of dev, by conf/fedlm_tune.yaml, for each noise); audit (false: none), audit_noise (whose claim is attacked, out of noises), adapt_role (whose utterances clients have), recognizer
# (of earnings21), encoder and all others of recipe ctc.
# Those of every recipe: see ./run.sh --help.
# shellcheck disable=SC1091,SC2034,SC2046,SC2086,SC2154
nnlm=char_lstm nnlm_text=${nnlm_text-} lm_epochs='' ways='' threshold='' client=zipf devices='' rounds='' rate=''
client_lr='' server_lr='' epochs='' scratch=true noises='0.2 0.5 1.5' private_ways='' private_rate='' private_sampling=poisson private_cohort='' strategy='' bands='' tune=false private_rounds='' clip=0.5
private_lr='' delta=1e-5 audit=true audit_noise=0.5 adapt_role=adapt recognizer=kaldi_librispeech decode=${decode:-true}
encoder='' max_duration='' avg='' am_model='' am_tokens='' am_bpe=''
. parse_options.sh
among client "zipf speaker" "$client"
wholes_above_0 lm_epochs devices rounds epochs private_cohort bands private_rounds
numbers_above_0 client_lr server_lr private_lr noises clip delta
for name in threshold rate private_rate; do share $name; done
[[ -f $PRIVASR_ROOT/conf/lm_$nnlm.yaml && $nnlm != ngram ]] || _stop "--nnlm" "char_lstm, lstm or transformer" "'$nnlm'" "correct the name"
recognized=true   # clients have a recognizer's words, with confidences
if [[ $decode == false && $corpus != earnings21 ]]; then recognized=false; fi
known_ways='all' scratch_ways='all'
if [[ $recognized == true ]]; then known_ways='all hard utterance token' scratch_ways='all token'; fi
ways=${ways:-$known_ways} private_ways=${private_ways:-$scratch_ways}
for way in $ways $private_ways; do
  [[ " all hard utterance token " == *" $way "* ]] || _stop "--ways" "names out of all, hard, utterance, token" "'$way'" "correct the name"
  [[ " $known_ways " == *" $way "* ]] || _stop "--ways" "all: of what was said, all words are sure" "'$way'" "leave it away, or decode"
done
for scheme in $private_sampling; do
  [[ $scheme == poisson || $scheme == ordered ]] || _stop "--private-sampling" "poisson, ordered or both" "'$scheme'" "correct the name"
done
if [[ -n $noises && " $private_sampling " != *" ordered "* && -n $private_cohort$strategy$bands ]]; then
  _stop "--private-cohort, --strategy and --bands" "--private-sampling ordered" "'$private_sampling'" "leave them away: cohorts that are sampled have --private-rate"
fi
if [[ -z $strategy ]]; then strategy=square_root; fi
[[ " square_root tree increments " == *" $strategy "* ]] || _stop "--strategy" "square_root, tree or increments" "'$strategy'" "correct the name"
[[ $tune == false || -z $client_lr$server_lr$private_lr ]] || _stop "--tune true" "no learning rate beside it" \
  "--client-lr, --server-lr or --private-lr" "leave one of both away"
[[ -z $bands || $strategy == square_root ]] || _stop "--bands" "--strategy square_root" "'$strategy'" "leave --bands away"
if [[ $corpus == earnings21 ]]; then ignored "clients that are speakers of calls" client devices adapt_role
else ignored "$corpus, whose words nobody has recognized before" recognizer
fi
if [[ -n $noises && ( " dev test " == *" $adapt_role "* || ( $adapt_role == train && ( $decode == true || -z $nnlm_text ) ) ) ]]; then
  _stop "--adapt-role" "people of whose words nothing else is made, as --noises claims privacy for them" "$adapt_role, of which models or tables are made" \
    "name another role; for train add --decode false --nnlm-text FILE; or claim nothing: --noises ''"
fi
if [[ " $ways " != *" all "* ]]; then ways="all $ways"; fi   # what the others are compared with
if [[ $decode == false ]]; then
  [[ -n $nnlm_text || $recognized == false ]] || _stop "recipe fedlm" "public text for the language model and its vocabulary" "none" "give --nnlm-text FILE"
  ignored "--decode false: nothing is recognized" arpa encoder max_duration avg am_model am_tokens am_bpe
  exp=exp/fedlm_text_$nnlm
  if [[ -n $nnlm_text ]]; then lang_name=public own_lang=false; fi
  . data_stages.sh
  if [[ -n $nnlm_text ]]; then   # no word that only clients have
    stage 2 "vocabulary of public text" prepare_lang $(layers lang) $(layers public_lang) --in-manifests "$manifests" \
      --raw-lm-text "$nnlm_text" --out-dir "$lang" ${lang_options:+--set $lang_options}
  fi
else
  . first_pass_stages.sh   # stages 0-8: data, lang, LM, graph, acoustic model, decoding
  first_pass=$exp
  exp=exp/fedlm_${first_pass#exp/ctc_}_$nnlm
fi

scores=() tested_group=client dev_said=$exp/dev/clients.jsonl.gz dev_clients=$exp/dev/clients.jsonl.gz
if [[ $decode == true ]]; then
  # Lists of many hypotheses for confidences, of five for rescoring.
  nbest() {   # ROLE FOLDER SETTING...
    stage 9 "N-best lists of $1, ${2##*/}" JOB=1:"$nj" make_nbest $(layers decode) $(layers nbest) --in-model "$am" --in-graph "$graph" \
      --in-weights "$first_pass/weights.json" --in-feats "$feats" --in-lang "$lang" --out-nbest "$2/nbest_$1/JOB.jsonl" \
      --set backend=k2 role="$1" job=JOB num_jobs="$nj" "${@:3}" --device "$device"
  }
  for role in dev "$adapt_role"; do nbest "$role" "$exp/lists"; done
  for role in dev test; do nbest $role "$exp/five" num_paths=5; done
  stage 9 "decode $adapt_role" JOB=1:"$nj" decode $(layers decode) --in-model "$am" --in-graph "$graph" --in-weights "$first_pass/weights.json" \
    --in-feats "$feats" --out-hyps "$exp/no_nnlm/decode_adapt/JOB.jsonl" --set role="$adapt_role" job=JOB num_jobs="$nj" \
    ${backend:+backend="$backend"} --device "$device"

  stage 10 "confidences, learned on dev" train_confidence $(layers confidence) --in-nbest "$exp/lists/nbest_dev" \
    --in-weights "$first_pass/weights.json" --in-manifests "$manifests" --out-model "$exp/confidence/model"
  stage 10 "confidences of $adapt_role" apply_confidence $(layers apply_confidence) --in-model "$exp/confidence/model" \
    --in-nbest "$exp/lists/nbest_$adapt_role" --out-nbest "$exp/confidence/nbest_$adapt_role/1.jsonl"
  clients=$exp/clients.jsonl.gz test_clients=$exp/test/clients.jsonl.gz dev_text=$exp/dev/text.txt.gz
  stage 10 "clients and what they have" make_clients $(layers clients) --in-nbest "$exp/confidence/nbest_$adapt_role" \
    --out-clients "$clients" --set client="$client" ${devices:+devices="$devices"}
  if [[ $tune == true ]]; then
    dev_clients=$exp/dev/recognized.jsonl.gz
    stage 10 "what was recognized of dev" make_clients $(layers clients) --in-nbest "$exp/lists/nbest_dev" --out-clients "$dev_clients" \
      --set client=speaker
  fi
  stage 10 "references of dev" make_clients $(layers clients) --in-nbest "$exp/five/nbest_dev" --out-clients "$exp/dev/clients.jsonl.gz" \
    --out-text "$dev_text" --set client=speaker text=ref
  stage 10 "references of test" make_clients $(layers clients) --in-nbest "$exp/five/nbest_test" --out-clients "$test_clients" \
    --set client=speaker text=ref
elif [[ $recognized == false ]]; then
  clients=$exp/clients.jsonl.gz test_clients=$exp/test/clients.jsonl.gz dev_text=$exp/dev/text.txt.gz
  stage 10 "clients and what they said" make_clients $(layers clients) --in-cuts "$manifests/cuts_$adapt_role.jsonl.gz" \
    --out-clients "$clients" --set client="$client" ${devices:+devices="$devices"} text=ref
  stage 10 "what was said in dev" make_clients $(layers clients) --in-cuts "$manifests/cuts_dev.jsonl.gz" --out-clients "$dev_said" \
    --out-text "$dev_text" --set client=speaker text=ref
  stage 10 "what was said in test" make_clients $(layers clients) --in-cuts "$manifests/cuts_test.jsonl.gz" --out-clients "$test_clients" \
    --set client=speaker text=ref
else
  texts=data/earnings21_clients tested_group=call
  stage 10 "recognized and gold words of calls, by speaker" prepare_earnings21_clients $(layers earnings21) $(layers earnings21_clients) \
    --raw-corpus "$corpus_dir" --out-dir $texts --set recognizer="$recognizer"
  dev_clients=$texts/recognized_dev.jsonl.gz dev_said=$texts/gold_dev.jsonl.gz
  clients=$texts/recognized_train.jsonl.gz test_clients=$texts/gold_test.jsonl.gz dev_text=$texts/gold_dev.txt.gz
fi
private_data=$people/$adapt_role unit=speaker
if [[ $corpus == earnings21 && $decode == false ]]; then
  private_data=$people/train   # a speaker in a call
elif [[ $client == zipf ]]; then
  private_data+=/devices${devices:+_$devices} unit=device   # on which several speakers may be, as a speaker on several
fi

pretrained=$exp/lm/pretrained
stage 11 "neural LM, $nnlm, pre-trained" --cmd "$train_cmd" train_lm $(layers "lm_$nnlm") --in-manifests "$manifests" --in-lang "$lang" \
  ${nnlm_text:+--raw-text "$nnlm_text"} --out-dir "$pretrained" ${lm_epochs:+--set epochs="$lm_epochs"} --device "$device" --num-jobs "$nj"

systems=(pretrained) logs=() rates=()
find_rates() {   # STAGE NAME SETTING...: sets rated, the file with learning rates for such a training, where they are tuned
  rated=''
  if [[ $tune == false ]]; then return; fi
  rated=$exp/rates/$2.json
  if [[ " ${rates[*]} " == *" $rated "* ]]; then return; fi
  rates+=("$rated")
  stage "$1" "learning rates on clients of dev, $2" --cmd "$train_cmd" tune_fedlm $(layers fedlm) $(layers fedlm_tune) --in-clients "$dev_clients" \
    --in-scored "$dev_said" --in-init "$pretrained" --out-rates "$rated" --set by="$tested_group" "${@:3}" \
    --device "$device" --num-jobs "$nj"
}
federated() {   # STAGE SYSTEM WAY SETTING...: without a claim
  find_rates "$1" "${2%_"$3"}" confidences.way=all ${rounds:+rounds="$rounds"} ${rate:+rate="$rate"} "${@:4}"
  stage "$1" "federated, $2" --cmd "$train_cmd" train_fedlm $(layers fedlm) --in-private-clients "$clients" --in-public-init "$pretrained" \
    --in-public-dev-text "$dev_text" ${rated:+--in-public-rates "$rated"} --out-dir "$exp/lm/$2" \
    --set confidences.way="$3" ${threshold:+confidences.threshold="$threshold"} \
    ${rounds:+rounds="$rounds"} ${rate:+rate="$rate"} ${client_lr:+client.lr="$client_lr"} ${server_lr:+server.lr="$server_lr"} "${@:4}" \
    --device "$device" --num-jobs "$nj"
  systems+=("$2") logs+=("$exp/lm/$2")
}
on_server() {   # STAGE SYSTEM WAY SETTING...: all text in one place
  stage "$1" "on the server, $2" --cmd "$train_cmd" finetune_lm $(layers finetune_lm) --in-clients "$clients" --in-init "$pretrained" --in-dev-text "$dev_text" \
    --out-dir "$exp/lm/$2" --set confidences.way="$3" ${threshold:+confidences.threshold="$threshold"} ${epochs:+epochs="$epochs"} "${@:4}" \
    --device "$device" --num-jobs "$nj"
  systems+=("$2")
}
for way in $ways; do on_server 12 server_"$way" "$way"; done
for way in $ways; do federated 13 fl_"$way" "$way"; done
if [[ $scratch == true ]]; then
  on_server 14 server_scratch_all all start=scratch
  for way in $scratch_ways; do federated 14 fl_scratch_"$way" "$way" start=scratch; done
fi

# With a claim: uniform weights, every client's update clipped, a share of the clients that the accountant assumes, or a fixed order and
# noise that is correlated over rounds. --size paper has 100 of 10,000.
if [[ -z $private_rate && $size != paper ]]; then private_rate=0.05; fi
claim_of() {   # WAY NOISE SCHEME: the settings of a row
  local drawn="sampling=poisson ${private_rate:+rate=$private_rate}"
  if [[ $3 == ordered ]]; then
    drawn="sampling=ordered rate=null ${private_cohort:+cohort=$private_cohort} privacy.strategy=$strategy ${bands:+privacy.bands=$bands}"
  fi
  echo "data=$private_data unit=$unit confidences.way=$1 ${threshold:+confidences.threshold=$threshold} $drawn" \
    "${private_rounds:+rounds=$private_rounds} ${client_lr:+client.lr=$client_lr} ${private_lr:+server.lr=$private_lr}" \
    "weights.by=uniform privacy.clip=$clip privacy.delta=$delta privacy.noise=$2"
}
if [[ -z $private_rounds ]]; then private_rounds=$rounds; fi
if [[ -z $private_lr ]]; then private_lr=$server_lr; fi
privacy=() audits=()
name_of() {   # WAY NOISE SCHEME: of the system
  local name=fl_$1_noise_$2
  if [[ $3 == ordered ]]; then name+=_ordered; fi
  echo "$name"
}
for claim in $(for noise in $noises; do for way in $private_ways; do for scheme in $private_sampling; do echo "$noise,$way,$scheme"; done; done; done); do
  IFS=, read -r noise way scheme <<< "$claim"
  system=$(name_of "$way" "$noise" "$scheme")
  find_rates 15 "${system/fl_${way}/private}" $(claim_of all "$noise" "$scheme")
  stage 15 "federated and private, $way, noise $noise, $scheme" --cmd "$train_cmd" train_fedlm $(layers fedlm) --in-private-clients "$clients" \
    --in-public-init "$pretrained" --in-public-dev-text "$dev_text" ${rated:+--in-public-rates "$rated"} --out-dir "$exp/lm/$system" \
    --out-privacy "$exp/${system}_privacy.json" $(budget) --set $(claim_of "$way" "$noise" "$scheme") --device "$device" --num-jobs "$nj"
  systems+=("$system") logs+=("$exp/lm/$system") privacy+=("$exp/${system}_privacy.json")
done
if [[ $audit == true && " $noises " == *" $audit_noise "* ]]; then
  way=${private_ways%% *} scheme=${private_sampling%% *}
  system=$(name_of "$way" "$audit_noise" "$scheme") audits=("$exp/${system}_audit.json")
  find_rates 15 "${system/fl_${way}/private}"   # declared above
  stage 16 "attacks, with and without privacy" --cmd "$train_cmd" audit_fedlm $(layers fedlm) $(layers fedlm_audit) --in-clients "$clients" --in-init "$pretrained" \
    ${rated:+--in-rates "$rated"} --out-audit "${audits[0]}" --set $(claim_of "$way" "$audit_noise" "$scheme") --device "$device" --num-jobs "$nj"
fi

stage 17 "perplexities of test" perplexity "--in-${tested_group}s" "$test_clients" --in-lang "$lang" --in-lm "${systems[@]/#/$exp/lm/}" \
  --out-perplexity "$exp/perplexity_test.json" --device "$device"

weights=()
if [[ $decode == true ]]; then
  for role in dev test; do
    stage 18 "words of $role by the n-gram LM" score_nbest $(layers score_nbest) --in-nbest "$exp/five/nbest_$role" --in-lm "$lm" \
      --out-scores "$exp/five/lm_scores/ngram_$role.safetensors" --set name=ngram --device "$device"
  done
  for system in "${systems[@]}"; do
    own=$exp/five/lm_scores/$system ngram=$exp/five/lm_scores/ngram
    for role in dev test; do
      stage 18 "words of $role by $system" score_nbest $(layers score_nbest) --in-nbest "$exp/five/nbest_$role" --in-lm "$exp/lm/$system" \
        --out-scores "${own}_$role.safetensors" --set name="$system" --device "$device"
    done
    stage 18 "weights of $system, chosen on dev" tune_rescoring $(layers rescore) --in-nbest "$exp/five/nbest_dev" \
      --in-scores "${ngram}_dev.safetensors" "${own}_dev.safetensors" --in-manifests "$manifests" --out-weights "$exp/$system/rescoring.json"
    stage 18 "test by $system" rescore_nbest --in-nbest "$exp/five/nbest_test" --in-scores "${ngram}_test.safetensors" \
      "${own}_test.safetensors" --in-manifests "$manifests" --in-weights "$exp/$system/rescoring.json" \
      --out-hyps "$exp/$system/decode_test/1.jsonl"
    weights+=("$exp/$system/rescoring.json")
  done
  stage 19 "score the first pass" score $(layers score) --in-hyps "$first_pass/decode_test" --in-weights "$first_pass/weights.json" \
    --in-manifests "$manifests" --in-lang "$lang" --out-dir "$exp/no_nnlm/score_test" --set role=test
  stage 19 "score the first pass, $adapt_role" score $(layers score) --in-hyps "$exp/no_nnlm/decode_adapt" \
    --in-weights "$first_pass/weights.json" --in-manifests "$manifests" --in-lang "$lang" --out-dir "$exp/no_nnlm/score_adapt" \
    --set role="$adapt_role"
  scores=("$exp/no_nnlm/score_test" "$exp/no_nnlm/score_adapt")
  for system in "${systems[@]}"; do
    stage 19 "score $system" score $(layers score) --in-hyps "$exp/$system/decode_test" --in-manifests "$manifests" --in-lang "$lang" \
      --out-dir "$exp/$system/score_test" --set role=test
    scores+=("$exp/$system/score_test")
  done
fi

report=$exp/RESULTS.md
stage 20 "the tables" report_fedlm $(layers fedlm_report) --in-perplexity "$exp/perplexity_test.json" ${scores:+--in-scores "${scores[@]}"} \
  --in-clients "$clients" --in-test-clients "$test_clients" ${privacy:+--in-privacy "${privacy[@]}"} ${audits:+--in-audits "${audits[@]}"} \
  ${weights:+--in-weights "${weights[@]}"} ${rates:+--in-rates "${rates[@]}"} --in-logs "${logs[@]}" --in-lang "$lang" \
  --in-manifests "$manifests" --out-report "$report" $(book) \
  --out-curves "$exp/curves.svg" --set command="$command_line"

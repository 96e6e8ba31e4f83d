# PATE for end-to-end recognizers: teachers on private shards label a public pool by noisy votes; the tables of yang2022.
#
#   ./run.sh CORPUS pate                                        run every stage that is not up to date
#   ./run.sh mini_pate pate --teachers 250 --heads true         hundreds of teachers as heads of the public model
#   ./run.sh CORPUS pate --models 'rnnt ctc_attention las' --teachers '5 15' --epsilons '1 8 inf' --dpsgd-epsilons '8 inf'
#   ./run.sh an4 pate --public-corpus librispeech --public-dir DIR --words 'stop yes'
#
# Options: models (out of ctc, rnnt, ctc_attention, las; quoted), teachers (numbers of them; quoted), epsilons (of a student's labels;
# quoted; inf: clean votes), sweep_epsilons (further ones for the first of models alone; quoted), mechanisms (out of gnmax, lnmax, confident_gnmax, gaussian_posteriors, laplace_posteriors; quoted),
# readings (out of equation, figures: students with the noise that the paper took for epsilon, too; quoted), vote (utterance, token,
# or frame, with ctc), unit (speaker or utterance), delta.
# How many answers: answers (so many), noise (in votes; as many as epsilon buys with it), or neither: as many as it buys with noise of
# 30 per cent of the teachers, lnmax 20; least (but so many in any case); sure (of --vote token: what the public model finds so
# probable, below 1, is taken from it and nobody is asked; half of these shares of noise); candidates (then, of its likeliest tokens so
# many are voted on); threshold (of confident_gnmax, per cent of the teachers).
# Students and teachers: heads (true: teachers share the public model's lower layers), labelled (true: students learn public
# transcripts, too), ways (with unanswered utterances: out of none, self_training, consistency; quoted), self_trained (true: the public
# model on its own guesses at the pool, without votes, as a control), student_epochs, score_teachers (how many are scored).
# Beside them: dpsgd_epsilons (as recipe dpsgd; '': none), words (to reconstruct by model inversion; quoted; '': none), attacks (of
# inversion: white_box, black_box; quoted), audit; start, public_corpus, public_dir, public_feature, public_feats, public_epochs,
# private_epochs, per as recipe dpsgd.
# Those of every recipe: see ./run.sh --help.
# shellcheck disable=SC1091,SC2034,SC2046,SC2086,SC2154,SC2207
. e2e_options.sh
teachers='' heads=${heads:-false} epsilons='8 inf' sweep_epsilons='' mechanisms='gnmax lnmax' readings='' vote=${vote:-utterance} answers='' noise='' least=10 threshold=60
sure='' candidates='' labelled='' self_trained=${self_trained:-false} ways=${ways:-none} student_epochs='' score_teachers=3 dpsgd_epsilons='' words=${words-} attacks=white_box
. parse_options.sh
teachers=${teachers:-${default_teachers:-15}}
above_0 teachers "$_count" "whole numbers above 0" "$teachers"
above_0 epsilons "inf|$_number" "numbers above 0, or inf" "$epsilons"
above_0 sweep-epsilons "inf|$_number" "numbers above 0, or inf" "$sweep_epsilons"
above_0 dpsgd-epsilons "inf|$_number" "numbers above 0, or inf" "$dpsgd_epsilons"
among mechanisms "gnmax lnmax confident_gnmax gaussian_posteriors laplace_posteriors" "$mechanisms"
among readings "equation figures" "${readings:-equation}"
among vote "utterance token frame" "$vote"
if [[ $vote == token ]]; then sure=${sure:-${default_sure-}} candidates=${candidates:-${default_candidates-}}; fi
among attacks "white_box black_box" "$attacks"
[[ $threshold -ge 1 && $threshold -le 100 ]] || _stop "--threshold" "1 to 100 per cent of the teachers" "'$threshold'" "correct the value"
if [[ $mechanisms != *confident_gnmax* ]]; then ignored "mechanisms without a threshold: '$mechanisms'" threshold; fi
[[ $vote != frame || $models == ctc ]] || _stop "--vote frame" "--models ctc: only CTC has a token a frame" "'$models'" "vote for utterances or tokens"
[[ $heads == false || $start == public ]] || _stop "--start $start" "whole teachers" "--heads true" "add --heads false"
[[ -z $sure || $vote == token ]] || _stop "--sure" "--vote token" "--vote $vote" "leave it away, or vote for tokens"
[[ -z $candidates || -n $sure ]] || _stop "--candidates" "--sure, which names the public model's part" "none" "add --sure X"
if [[ $vote == token && " $mechanisms " != " gnmax " && " $mechanisms " != " lnmax " && " $mechanisms " == *[cp]o* ]]; then
  _stop "--vote token" "mechanisms gnmax or lnmax" "'$mechanisms'" "leave the others away"
fi
. e2e_stages.sh
exp=exp/pate_${units}_${unit}_$vote$scratch
if [[ $heads == true ]]; then exp+=_heads; fi
own_texts=''
if [[ $labelled == true || ( -z $labelled && ( $start == scratch || ( $vote != utterance && -z $sure ) ) ) ]]; then own_texts=yes; fi
for e in $sweep_epsilons; do
  [[ " $epsilons " != *" $e "* ]] || _stop "--sweep-epsilons" "budgets beside those of --epsilons '$epsilons'" "'$e'" "leave it away"
done
finite=''
for e in $epsilons $sweep_epsilons; do if [[ $e != inf ]]; then finite+="${finite:+,}$e"; fi; done

# Shards first, and what the budget buys: what cannot be is said before anything is trained.
for number in $teachers; do
  stage 3 "shards of $number teachers" make_shards $(layers shards) --in-private-feats "$private" --in-public-dev "$public" \
    --out-dir "exp/shards_$unit/$number" --set teachers="$number" unit="$unit"
done
for mechanism in gnmax lnmax; do
  if [[ -n $finite && " $mechanisms " == *" $mechanism "* ]]; then
    stage 3 "what the budget buys, $mechanism" plan_votes $(layers vote_plan) --out-plan "$exp/plan_$mechanism.json" \
      --set mechanism="$mechanism" teachers="[${teachers// /,}]" epsilon="[$finite]" delta="$delta"
  fi
done
declare_base

agreements=()
proposals() {   # FLAG MODEL: the public model's lists, where utterances are voted on
  if [[ $vote == utterance ]]; then echo "$1 $base/$2/public/nbest_pool"; fi
}
guessed() {   # MODEL WAYS: the same for self-training
  if [[ " $2 " == *" self_training "* ]]; then echo "--in-public-nbest $base/$1/public/nbest_pool"; fi
}
for model in $models; do
  for number in $teachers; do
    if [[ $heads == true ]]; then
      stage 7 "$number teachers as heads, $model" --cmd "$train_cmd" train_heads $(layers heads) --in-shards "exp/shards_$unit/$number" \
        --in-model "$base/$model/public/am" --in-lang "$lang" --out-dir "$exp/$model/teachers_$number" --device "$device" --num-jobs "$nj"
    else
      stage 7 "$number teachers, $model" JOB=1:"$number" --cmd "$train_cmd" train_am $(layers "am_$model") $(begun) \
        --in-feats "exp/shards_$unit/$number/shard_JOB" --in-lang "$lang" $(init --in-init "$model") --out-dir "$exp/$model/teachers_$number/JOB" \
        ${private_epochs:+--set epochs="$private_epochs"} --device "$device"
    fi
    for ((k = 1; k <= number && k <= score_teachers; k++)); do
      from=("$exp/$model/teachers_$number/$k")
      if [[ $heads == true ]]; then from=("$exp/$model/teachers_$number" head="$k"); fi
      system "$exp/$model/teacher_${number}_$k" "${from[@]}"
    done
  done
done

if [[ $vote == utterance || $self_trained == true || " $ways " == *" self_training "* ]]; then
  for model in $models; do
    stage 8 "public $model proposes what may have been said" JOB=1:"$nj" decode_e2e $(layers decode_e2e) --in-model "$base/$model/public/am" \
      --in-feats "$pool" --out-hyps "$base/$model/public/decode_pool/JOB.jsonl" --out-nbest "$base/$model/public/nbest_pool/JOB.jsonl" \
      --set role=pool job=JOB num_jobs="$nj" --device "$device"
  done
fi

ballots() {   # MODEL TEACHERS OF: votes, or posteriors
  stage 9 "$3 of $2 teachers, $1" JOB=1:"$nj" cast_votes $(layers votes) --in-private-teachers "$exp/$1/teachers_$2" \
    --in-shards "exp/shards_$unit/$2" --in-feats "$pool" --in-lang "$lang" $(proposals --in-public-nbest "$1") \
    --out-votes "$exp/$1/$3_$2/JOB.safetensors" --set vote="$vote" of="$3" job=JOB num_jobs="$nj" --device "$device"
}
if [[ $vote != token ]]; then   # whose answers follow each other
  for model in $models; do
    for number in $teachers; do
      ballots "$model" "$number" votes
      stage 9 "how far $number teachers agree, $model" report_votes --in-private-votes "$exp/$model/votes_$number" \
        --out-report "$exp/$model/agreement_$number.json"
      agreements+=("$exp/$model/agreement_$number.json")
      if [[ $mechanisms == *posteriors* ]]; then ballots "$model" "$number" posteriors; fi
    done
  done
fi

# Releases: declared first, then the labels of all of them, then the students.
of_model=() names=() of_teachers=() settings=()
release() {   # SYSTEM SETTING...
  of_model+=("$model") names+=("$1") of_teachers+=("$number") settings+=("${*:2}")
}
budgets="$epsilons $sweep_epsilons"
for model in $models; do
  for number in $teachers; do
    for e in $budgets; do
      if [[ $e == inf ]]; then release "clean_$number" mechanism=gnmax epsilon=.inf; continue; fi
      for mechanism in $mechanisms; do
        setting="mechanism=$mechanism epsilon=$e data=$private_data delta=$delta${answers:+ answers=$answers}" limit=${noise:+noise=$noise}
        if [[ ( $vote == utterance || -n $sure ) && -z $noise && -z $answers ]]; then
          share=30
          if [[ $mechanism == l* ]]; then share=20; fi
          if [[ $vote == token ]]; then share=$((share / 2)); fi
          limit="least=$least most_noise=$(printf '%d.%02d' $((number * share / 100)) $((number * share % 100)))"
        fi
        if [[ $mechanism == confident_gnmax ]]; then
          release "${mechanism}_${number}_$e" $setting $limit threshold=$(((number * threshold + 99) / 100))
          continue
        fi
        release "${mechanism}_${number}_$e" $setting $limit
        for reading in $readings; do release "${mechanism}_${number}_${e}_$reading" $setting epsilon_means="published_$reading"; done
      done
    done
  done
  budgets=$epsilons   # of every model but the first
done
for place in "${!names[@]}"; do
  model=${of_model[$place]} number=${of_teachers[$place]} setting=${settings[$place]} name=${names[$place]}
  out=$exp/$model/$name of=votes claim=()
  if [[ $setting == *posteriors* ]]; then of=posteriors; fi
  if [[ $setting != *epsilon=.inf* ]]; then claim=(--out-privacy "$out/privacy.json" $(budget)); fi
  if [[ $vote == token ]]; then
    stage 10 "labels, $model $name" vote_tokens $(layers pate) $(layers vote_tokens) --in-private-teachers "$exp/$model/teachers_$number" \
      --in-private-shards "exp/shards_$unit/$number" --in-public-feats "$pool" ${sure:+--in-public-model "$base/$model/public/am"} \
      --out-dir "$out/labels" "${claim[@]}" --set $setting ${sure:+sure="$sure"} \
      ${candidates:+candidates="$candidates"} \
      --device "$device" --num-jobs "$nj"
  else
    stage 10 "labels, $model $name" aggregate_votes $(layers pate) --in-private-votes "$exp/$model/${of}_$number" --in-lang "$lang" \
      $(proposals --in-public-nbest "$model") --out-dir "$out/labels" "${claim[@]}" --set $setting
  fi
  if [[ $audit == true && -n ${claim[*]} ]]; then
    stage 10 "attack on the labels, $model $name" audit_pate $(layers audit_pate) --in-labels "$out/labels" --out-audit "$out/audit.json"
    audits+=("$out/audit.json")
  fi
done
student() {   # MODEL SYSTEM WAYS FLAG...
  stage 11 "student, $1 $2" --cmd "$train_cmd" train_student $(layers "am_$1") $(begun) $(layers student) --in-public-pool "$pool" "${@:4}" \
    --in-public-feats "$public" --in-public-lang "$lang" $(init --in-public-init "$1") $(guessed "$1" "$3") --out-dir "$exp/$1/$2/am" \
    --set student.ways="[${3// /,}]" ${own_texts:+student.labelled_role=train} ${student_epochs:+epochs="$student_epochs"} \
    --device "$device" --num-jobs "$nj"
}
if [[ $self_trained == true ]]; then   # the control: what the pool is worth without votes
  for model in $models; do
    student "$model" self_trained self_training
    system "$exp/$model/self_trained" "$exp/$model/self_trained/am"
  done
fi
for place in "${!names[@]}"; do
  model=${of_model[$place]} out=$exp/${of_model[$place]}/${names[$place]} claimed=''
  if [[ ${settings[$place]} != *epsilon=.inf* ]]; then claimed=privacy; fi
  student "$model" "${names[$place]}" "$ways" --in-labels "$out/labels/labels.jsonl"
  system "$out" "$out/am" labels $claimed
done

evaluate 12

# Stage 13: attacks that bound no epsilon: who was in which shard, and what words sound like.
last=${teachers##* }
for model in $models; do
  students=() trained=("$tuned/$model/nonprivate/am") ensemble=("$exp/$model/teachers_$last")
  for place in "${!names[@]}"; do
    if [[ ${of_model[$place]} == "$model" && ${of_teachers[$place]} == "$last" ]]; then students+=("$exp/$model/${names[$place]}/am"); fi
  done
  for e in $dpsgd_epsilons; do trained+=("$dpsgd_exp/$model/dpsgd_$e/am"); done
  # A folder of heads is an ensemble, of which one is chosen by its number; whole teachers have a folder each.
  first=("${ensemble[@]}") one='heads=[1]'
  if [[ $heads == false ]]; then
    ensemble=() one=''
    for ((k = 1; k <= last; k++)); do ensemble+=("$exp/$model/teachers_$last/$k"); done
    first=("${ensemble[0]}")
  fi
  if [[ $audit == true ]]; then
    stage 13 "who was in the training? $model" infer_membership $(layers membership) --in-models "${trained[@]}" "${students[@]}" \
      --in-reference "$base/$model/public/am" --in-feats "$private" --in-others "$feats" --in-lang "$lang" \
      --out-membership "$exp/$model/membership_models.json" --set unit="$unit" --device "$device" --num-jobs "$nj"
    stage 13 "who was in which shard? $model" infer_membership $(layers membership) --in-models "${ensemble[@]}" \
      --in-shards "exp/shards_$unit/$last/shards.json" --in-feats "$private" --in-lang "$lang" \
      --out-membership "$exp/$model/membership_teachers.json" --set unit="$unit" --device "$device" --num-jobs "$nj"
    memberships+=("$exp/$model/membership_models.json" "$exp/$model/membership_teachers.json")
  fi
  if [[ -n $words ]]; then
    for attack in $attacks; do
      out=$exp/$model/inversion_$attack inversions=() members=()
      invert() {   # NAME MEMBERS SETTING MODEL...
        stage 13 "inversion, $attack, $model $1" invert_model $(layers inversion) --in-models "${@:4}" --in-background "$public" \
          --in-lang "$lang" --out-inversion "$out/$1.safetensors" --set "words=[${words// /,}]" attack="$attack" ${3:+"$3"} \
          --device "$device" --num-jobs "$nj"
        inversions+=("$out/$1.safetensors") members+=("$2")
      }
      invert "teacher_${last}_1" "exp/shards_$unit/$last/shard_1" "$one" "${first[@]}"
      invert "ensemble_$last" "$private" '' "${ensemble[@]}"
      for student in "${students[@]}"; do invert "$(basename "$(dirname "$student")")" "$private" '' "$student"; done
      invert control "$private" control=true "${students[0]}"
      aligner=''
      if [[ " $models " == *" ctc "* ]]; then aligner=$base/ctc/public/am; fi
      stage 13 "what inversion shows, $attack, $model" report_inversion $(layers report_inversion) --in-inversions "${inversions[@]}" \
        --in-members "${members[@]}" --in-others "$feats" --in-lang "$lang" ${aligner:+--in-aligner "$aligner"} \
        --out-report "$out/RESULTS.md" --out-values "$out/inversion.json" --out-picture "$out/figure7.svg" --set command="$command_line"
      inverted+=("$out/inversion.json")
    done
  fi
done

tables 14 --out-teachers "$exp/teachers.svg" ${agreements:+--in-agreement "${agreements[@]}"}

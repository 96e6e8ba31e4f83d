# Sourced before a recipe:
#
#   stage NUMBER "what it does" [JOB=1:N] [--cmd "$train_cmd"] VERB --in-X PATH... --out-Y PATH... \
#     [--raw-Z PATH...] $(layers NAME) [--set K=V...] [--device D] [--num-jobs N]
#
# only declares: run_recipe.sh hands all stages to one process (privasr_k2.recipe.run), which checks how they fit
# together before any of them runs. In an array, JOB stands for the job's number wherever it is written.
# shellcheck shell=bash disable=SC2046,SC2086,SC2154

_plan=()
_last_stage=0    # number of the last stage declared
_space=$'\x1f'   # stands for a blank in the paths that layers prints, as its output is split into words

stage() {
  local words=("$@")
  if [[ $# -ge 2 ]]; then
    # An array goes where decoding goes, unless it says otherwise with --cmd; anything else where short work goes.
    local launcher=$default_cmd
    if [[ ${3-} == JOB=* ]]; then launcher=$decode_cmd; fi
    words=("$1" "$2" --cmd "$launcher" "${@:3}")
    _last_stage=$1
  fi
  words=("${words[@]//$_space/ }")
  _plan+=("${#words[@]}" "${words[@]}")
}

# layers NAME: --config and the YAML files that set NAME's values, the later ones winning: the repository's, this
# recipe's, this corpus's, and where --size is not small the size's and the corpus's for that size. Files that do not
# exist are left out.
layers() {
  local file found=() root=$PRIVASR_ROOT/conf
  local files=("$root/$1.yaml" "$root/$recipe/$1.yaml" "$corpus_conf/$1.yaml")
  if [[ $size != small ]]; then files+=("$root/$size/$1.yaml" "$root/$size/$recipe/$1.yaml" "$corpus_conf/$size/$1.yaml"); fi
  for file in "${files[@]}"; do
    if [[ -f $file ]]; then found+=("${file// /$_space}"); fi
  done
  if [[ ${#found[@]} -gt 0 ]]; then echo "--config ${found[*]}"; fi
}

# corpus_stage TITLE FOLDER [K=V]...: stage 0 of the corpus.
corpus_stage() {
  stage 0 "$1" prepare_corpus --in-definition "$definition" ${corpus_dir:+--raw-corpus "$corpus_dir"} \
    ${lm_text:+--raw-lm-text "$lm_text"} ${lexicon:+--raw-lexicon "$lexicon"} --out-dir "$2" \
    $(layers "$corpus") --set $corpus_options "${@:3}" --num-jobs "$nj"
}

# book: --ledger, for the tables, which tell all that was spent.
book() {
  local file=${ledger:-privacy/ledger.json}
  echo "--ledger ${file// /$_space}"
}

# budget: the same and, where a limit is set, --max-epsilon: for the stages that spend privacy.
budget() { echo "$(book)${max_epsilon:+ --max-epsilon $max_epsilon}"; }

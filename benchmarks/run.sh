#!/usr/bin/env bash
# benchmarks/run.sh [--option value]...: every benchmark, one after the other, and one table of all of them.
#
#   --only 'NAME ...'   these alone; names are those of benchmarks/NAME.py, and rescoring_mini: rescoring on decoded lists
#   --quick true        smallest sizes, a few minutes: shows that all of it runs, measures nothing
#   --out FILE          the table in Markdown (build/benchmarks.md); its rows as JSON lines in FILE.jsonl
#   --work-dir DIR      of recipes ctc, rescore and classlm of mini, whose outputs some benchmarks need (egs/mini)
#   --peers PYTHON      of an environment with pfl-research and Flower (.venv-peers/bin/python; docs/benchmarks.md)
#   --limit MINUTES     for one benchmark (60, quick 10)
#
# Run it on a machine that does nothing else. A benchmark whose inputs are missing is left out, and the table says so; one
# that fails does not stop the others, but the end is 1. What the rows compare: docs/benchmarks.md.
# Threads: OMP_NUM_THREADS (1), for both sides.
set -euo pipefail

stop() { echo "error: $1: expected $2, found $3"$'\n'"  way out: $4" >&2; exit 2; }

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)
names='scoring features stage_runner pate_accounting lm_adaptation rescoring rescoring_mini fmp personal_cache first_pass
  word_posteriors sherpa class_graph name_splice am_train teacher_heads teacher_votes dpsgd_step dpsgd_public federated_round federated_scale federated_peers'
only=$names quick=false out=$root/build/benchmarks.md work_dir=$root/egs/mini peers=$root/.venv-peers/bin/python limit=''
while [[ $# -gt 0 ]]; do
  case $1 in
    -h | --help) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//p}' "$0"; exit 0 ;;
    --only | --quick | --out | --work-dir | --peers | --limit) ;;
    *) stop "the command line" "an option" "'$1'" "--help lists them" ;;
  esac
  [[ -n ${2-} ]] || stop "$1" "a value" "nothing" "write $1 VALUE"
  option=${1#--}
  printf -v "${option//-/_}" %s "$2"
  shift 2
done
[[ $quick == true || $quick == false ]] || stop "--quick" "true or false" "'$quick'" "correct the value"
if [[ -z $limit ]]; then if $quick; then limit=10; else limit=60; fi; fi
[[ $limit =~ ^[1-9][0-9]*$ ]] || stop "--limit" "a whole number of minutes above 0" "'$limit'" "correct the value"
read -ra selected <<< "${only//$'\n'/ }"
for name in "${selected[@]}"; do
  [[ " ${names//$'\n'/ } " == *" $name "* ]] || stop "--only" "one of ${names//$'\n' /}" "'$name'" "correct the name"
done
out=$(realpath -m -- "$out")
[[ $peers == /* ]] || peers=$PWD/$peers
work_dir=$(realpath -m -- "$work_dir")
# shellcheck source=path.sh
. "$root/path.sh"
cd "$root"
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"
export PRIVASR_SHARED_DATA="${PRIVASR_SHARED_DATA:-$(dirname "$root")/shared/data}"

# What a benchmark needs beside its defaults, as $arguments; its $sizes when quick; the $inputs without which it is left
# out, and what makes them.
settings_of() {
  arguments=() sizes='' inputs=() maker='' interpreter=python
  case $1 in
    scoring) sizes='--utterances 500 --repeats 1' ;;
    features)
      sizes='--utterances 3 --repeats 1'
      inputs=("$PRIVASR_SHARED_DATA/LibriSpeech")
      maker='the real data, in PRIVASR_SHARED_DATA, brings it' ;;
    stage_runner) sizes='--files 500 --stages 5 --jobs 5 --repeat 1' ;;
    pate_accounting) sizes='--queries 20000 --sample 50' ;;
    lm_adaptation)
      sizes='--sentences 500 --histories 5'
      inputs=("$PRIVASR_SHARED_DATA/books/books.txt.gz" "$PRIVASR_SHARED_DATA/ami/turns.tsv.gz")
      maker='the real data, in PRIVASR_SHARED_DATA, brings it' ;;
    rescoring) sizes='--lists 1 --kinds lstm' ;;
    rescoring_mini)
      sizes='--lists 2 --kinds lstm'
      inputs=("$work_dir"/exp/rescore_tdnn_phone/nbest_test/*.jsonl)
      arguments=(--nbest "${inputs[@]}")
      maker='./run.sh mini rescore makes it' ;;
    fmp) sizes='--utterances 5 --size 5 --repeats 1 --clients 20' ;;
    personal_cache) sizes='--words 500 --clients 1 --utterances 10 --groups 3 --repeats 1' ;;
    first_pass)
      sizes='--seconds 10 --beams 12'
      arguments=(--work-dir "$work_dir")
      inputs=("$work_dir/exp/ctc_tdnn_phone/weights.json")
      maker='./run.sh mini ctc makes it' ;;
    word_posteriors) sizes='--frames 10 --states 4 --words 5 --repeats 1' ;;
    sherpa)
      sizes='--utterances 4'
      arguments=(--work-dir "$work_dir")
      inputs=("$work_dir/exp/ctc_tdnn_phone/recognizer.yaml")
      maker='./run.sh mini ctc makes it' ;;
    class_graph)
      sizes='--repeats 1'
      inputs=("$work_dir"/{data/lang_phone_names,exp/classlm_tdnn_phone/sanitized/lm/M2,data/manifests/public_lists})
      arguments=(--in-lang "${inputs[0]}" --in-lm "${inputs[1]}" --in-names "${inputs[2]}")
      maker='./run.sh mini classlm makes it' ;;
    name_splice)
      sizes='--units char --names 1100 --words 500 --lines 2000 --ngrams 3000 --sentences 5 --repeats 1'
      inputs=("$PRIVASR_SHARED_DATA/books/books.txt.gz")
      maker='the real data, in PRIVASR_SHARED_DATA, brings it' ;;
    am_train) sizes='--utterances 2 --frames 300 --repeats 1' ;;
    teacher_heads) sizes='--heads 2 --steps 2 --batch 2' ;;
    teacher_votes) sizes='--kinds ctc --teachers 2 --utterances 4 --hyps 3 --repeats 1' ;;
    dpsgd_step)
      sizes='--kinds ctc --utterances 2 --frames 100 --repeats 1'
      arguments=(--opacus-lstm true) ;;
    dpsgd_public)
      sizes='--parts lora --utterances 2 --milliseconds 1000 --repeats 1'
      inputs=("${PRIVASR_ENCODERS:-no folder PRIVASR_ENCODERS}/base")
      arguments=(--encoder-model "${inputs[0]}")
      maker='privasr encoder get base --out FOLDER/base makes it, for PRIVASR_ENCODERS=FOLDER' ;;
    federated_scale) sizes='--clients 2000 --cohorts 5 --file-clients 200' ;;
    federated_round) sizes='--words 500 --dim 64 --layers 1 --clients 5 --repeats 1' ;;
    federated_peers)
      sizes='--words 300 --dim 32 --layers 1 --clients 6'
      interpreter=$peers inputs=("$peers")
      maker='docs/benchmarks.md says how to make it' ;;
  esac
}

rows=$out.jsonl left_out=() failed=0 count=0 job=''
mkdir -p "$(dirname "$out")"
rm -f "$rows"
load=$(cut -d ' ' -f 1 /proc/loadavg)
trap 'if [[ -n $job ]]; then kill "$job" 2>/dev/null; fi; exit 130' INT TERM
for name in "${selected[@]}"; do
  settings_of "$name"
  count=$((count + 1)) missing=''
  for input in "${inputs[@]}"; do
    if [[ ! -e $input ]]; then missing="${missing:-no ${input#"$root"/}; $maker}"; fi
  done
  if [[ -n $missing ]]; then
    echo "=== [$count/${#selected[@]}] $name: left out: $missing"
    left_out+=("$name: $missing")
    continue
  fi
  if $quick; then read -ra small <<< "$sizes"; arguments+=("${small[@]}"); fi
  echo "=== [$count/${#selected[@]}] $name (at most $limit min)"
  began=$SECONDS code=0
  # In the background, so that an interrupt ends it at once.
  timeout --kill-after=30 "${limit}m" "$interpreter" "benchmarks/${name%_mini}.py" "${arguments[@]}" --out-rows "$rows" &
  job=$!
  wait "$job" || code=$?
  job=''
  if [[ $code -eq 0 ]]; then
    echo "=== $name: done in $((SECONDS - began)) s"
  else
    reason="FAILED with $code"
    if [[ $code -eq 124 || $code -eq 137 ]]; then reason="FAILED: stopped after $limit minutes"; fi
    echo "=== $name: $reason after $((SECONDS - began)) s" >&2
    left_out+=("$name, or a part of it: $reason")
    failed=1
  fi
done
python benchmarks/table.py --in-rows "$rows" --out-table "$out" --quick "$quick" --load "$load" --left-out "${left_out[@]}"
echo
cat "$out"
echo
echo "run.sh: $out after $SECONDS s"
exit "$failed"

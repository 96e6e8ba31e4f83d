#!/usr/bin/env bash
# ./run.sh [--option value]...: seven recipes on the synthetic corpora, in the size demo, and one page of all their tables.
#
# Two chains side by side, with half of the cores each, because most stages are one process: mini (ctc, rescore, classlm,
# fmp, fedlm) and mini_pate (dpsgd, pate). Work goes to egs/demo/ (or --work-dir), the page to egs/mini/exp (or there).
# Other options: nj (jobs at once, of both together), size, force, verify, dry_run, wait, device, cmd.
# shellcheck disable=SC1091
set -euo pipefail
caller=$PWD
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)

work=$root/egs/demo page=$root/egs/mini nj=$(nproc) size=demo options=() dry_run=false
while [[ $# -gt 0 ]]; do
  name=${1//_/-}
  if [[ $# -lt 2 ]]; then
    echo "error: $1: expected a value, found nothing"$'\n'"  way out: write $1 VALUE" >&2
    exit 2
  fi
  case $name in
    --work-dir) work=$2; [[ $work == /* ]] || work=$caller/$work; page=$work ;;
    --nj) nj=$2 ;;
    --size) size=$2 ;;
    --dry-run) dry_run=$2; options+=("$name" "$2") ;;
    --force | --verify | --wait | --device | --cmd) options+=("$name" "$2") ;;
    *)
      echo "error: ./run.sh: expected nj, size, work-dir, force, verify, dry-run, wait, device or cmd where no corpus is named," \
        "found '$1'"$'\n'"  way out: name the corpus and the recipe before it: ./run.sh mini ctc $1 ..." >&2
      exit 2
      ;;
  esac
  shift 2
done
[[ $nj =~ ^[1-9][0-9]*$ ]] || {
  echo "error: --nj: expected a whole number above 0, found '$nj'"$'\n'"  way out: correct the value" >&2
  exit 2
}
jobs=$(((nj + 1) / 2))

. "$root/path.sh"   # the environment, before two chains want it
summary=$(mktemp)
recipe() {   # CORPUS RECIPE OPTION...
  local started=$SECONDS result='done' code=0
  echo "=== $1 $2"
  "$root/run.sh" "$1" "$2" --size "$size" --work-dir "$work/$1" --nj "$jobs" --show-report false "${options[@]}" "${@:3}" || code=$?
  if [[ $code -ge 128 ]]; then exit "$code"; fi   # interrupted
  if [[ $code -ne 0 ]]; then result=FAILED; fi
  printf '%-10s %-8s %-6s %5d s\n' "$1" "$2" "$result" $((SECONDS - started)) >> "$summary"
}
teachers() {
  recipe mini_pate dpsgd
  recipe mini_pate pate --teachers 40 --vote utterance --self-trained false --ways none --dpsgd-epsilons '8 inf' --words 'play turn'
}
texts() {
  recipe mini ctc
  recipe mini rescore
  recipe mini classlm --sizes 15
  recipe mini fmp --rounds '1 2 5' --epsilons 1
  recipe mini fedlm --nnlm lstm --ways 'all token' --private-ways all --noises 0.5 --scratch false
}

set -m   # a process group of its own, so that it can be ended with all that it has started
prefix='mini_pate | '
if [[ -t 1 ]]; then prefix=$'\r\033[K'$prefix; fi   # over the other chain's progress
{ teachers 2>&1 | sed -u "s/^/$prefix/"; } &
beside=$!
set +m
trap 'kill -TERM -- -$beside 2>/dev/null || true; rm -f "$summary"' EXIT
texts
wait "$beside"

code=0
if [[ $dry_run == false ]]; then
  # The page's own folder is looked through first: what was run there in full size stands above the demonstration.
  "$root/run.sh" mini report --work-dir "$page" --also "$work/mini $work/mini_pate" --show-report false || code=$?
fi
printf '\n=== demonstration\n'
cat "$summary"
if [[ $dry_run == false && $code == 0 ]]; then echo "all tables: $page/exp/report.html and RESULTS.md beside it"; fi
if grep -q FAILED "$summary"; then exit 1; fi
exit "$code"

#!/usr/bin/env bash
# ./run.sh [CORPUS [RECIPE]] [--option value]...
#
#   ./run.sh                                  a demonstration: seven recipes on small synthetic corpora, one page of tables
#   ./run.sh mini ctc                         one recipe
#   ./run.sh librispeech ctc --corpus-dir D   a corpus that you have
#   ./run.sh path/to/my_corpus.py ctc         a corpus that you have described in one file (docs/new_corpus.md)
#   ./run.sh data:DIR ctc                     a Kaldi data directory, or a folder of lhotse manifests
#
# CORPUS is a folder of egs/, your own corpus file, or data:DIR. No RECIPE: ctc and rescore, or those the corpus is for.
# shellcheck disable=SC1091,SC2034,SC2154
set -euo pipefail
caller=$PWD
root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)

# All recipes in the order in which their results build on each other.
recipes=()
for name in ctc rescore; do
  if [[ -f $root/local/recipes/$name.sh ]]; then recipes+=("$name"); fi
done
all_recipes=("${recipes[@]}")   # with those that are run by name only: hours long, or for some corpora only
for name in classlm fmp fedlm compose pate dpsgd confidence report; do
  if [[ -f $root/local/recipes/$name.sh ]]; then all_recipes+=("$name"); fi
done

usage() {
  sed -n '2,/^# shellcheck/{/^# shellcheck/!s/^# \{0,1\}//p;}' "$root/run.sh"
  printf '\ncorpora:\n'
  local file
  for file in "$root"/egs/*/run.sh; do echo "  $(basename "$(dirname "$file")"):$(sed -n '2s/^#//p' "$file")"; done
  printf '\nrecipes (RECIPE --help tells its own options):\n'
  for name in "${all_recipes[@]}"; do echo "  $name:$(sed -n '1s/^#//p' "$root/local/recipes/$name.sh")"; done
  printf '\noptions of all recipes:\n'
  sed -n '4,/^# shellcheck/{/^# shellcheck/!s/^# \{0,1\}//p;}' "$root/local/settings.sh"
}

stop() { echo "error: $1: expected $2, found $3"$'\n'"  way out: $4" >&2; exit 2; }

case ${1-} in
  -h | --help) usage; exit 0 ;;
  --* | '') exec "$root/local/demo.sh" "$@" ;;
esac
corpus=$1
shift

# A corpus that few recipes can use names them.
own=$(sed -n 's/^# recipes: //p' "$root/egs/$corpus/run.sh" 2>/dev/null || true)
if [[ -n $own ]]; then read -ra recipes <<< "$own"; fi

if [[ -z ${1-} || $1 == -* ]]; then   # no recipe: all of them, one after the other
  if [[ ${1-} == --help || ${1-} == -h ]]; then usage; exit 0; fi
  summary=() failed=0
  for name in "${recipes[@]}"; do
    echo "=== $corpus $name"
    started=$SECONDS result='done' code=0
    "$root/run.sh" "$corpus" "$name" "$@" || code=$?
    if [[ $code -ge 128 ]]; then exit "$code"; fi   # interrupted
    if [[ $code -ne 0 ]]; then result=FAILED failed=1; fi
    summary+=("$(printf '%-8s %-6s %5d s' "$name" "$result" $((SECONDS - started)))")
  done
  printf '\n=== %s\n' "$corpus"
  printf '%s\n' "${summary[@]}"
  exit "$failed"
fi

if [[ -n $own && " $own report " != *" $1 "* ]]; then
  stop "./run.sh $corpus" "a recipe that this corpus has enough for: $own" "'$1'" "./run.sh $corpus ${recipes[0]}"
fi
[[ -f $root/local/recipes/$1.sh ]] || stop "./run.sh $corpus" "a recipe: ${all_recipes[*]}" "'$1'" "./run.sh --help"

for word in "$@"; do   # before path.sh: help needs no environment
  if [[ $word == --help || $word == -h ]]; then
    sed -n '/^#/!q; /^# shellcheck/d; s/^# \{0,1\}//p' "$root/local/recipes/$1.sh"
    exit 0
  fi
done

if [[ $corpus != *.py && $corpus != data:* ]]; then
  [[ $corpus =~ ^[A-Za-z0-9_-]+$ && -f $root/egs/$corpus/run.sh ]] || stop "./run.sh" \
    "a corpus: $(cd "$root/egs" && printf '%s ' */run.sh | sed 's,/run.sh,,g')or FILE.py, or data:DIR" "'$corpus'" "./run.sh --help"
  exec "$root/egs/$corpus/run.sh" "$@"
fi

# A user's own corpus: its file or folder is read and never written to; the work goes to egs/user/NAME.
. "$root/path.sh"
. settings.sh
own=${corpus#data:}
[[ -n $own ]] || stop "./run.sh $corpus" "data:DIR" "no folder" "name the Kaldi data directory, or the folder of manifests"
[[ $own == /* ]] || own=$caller/$own
[[ -e $own ]] || stop "./run.sh $corpus" "a file or folder" "nothing" "correct the path"
[[ -d $own || $corpus != data:* ]] || stop "./run.sh $corpus" "data: and a folder" "a file" "name the folder that it is in, or run it as FILE.py"
own=$(realpath "$own")
name=$(basename "$own" .py)
corpus_name=$corpus people=${name//[^A-Za-z0-9_-]/_} feature=auto allow_pipes=false corpus_settings=allow_pipes
if [[ $corpus == data:* ]]; then
  corpus=data_dir corpus_dir=$own definition=$root/privasr_k2/corpora/data_dir.py corpus_conf=$root/egs/user/$name/conf
  [[ -d $corpus_conf ]] || corpus_conf=$own/conf   # where the corpus is the user's to write to
else
  corpus=own_corpus definition=$own corpus_conf=$(dirname "$own")/conf
fi
work_dir=$root/egs/user/$name own_path=$own
cd "$root"
unset -v name own recipes all_recipes word   # they would be options
. run_recipe.sh

#!/usr/bin/env bash
# tests/run.sh [--option value]... [-- PYTEST-ARGUMENT...]: format, lint, types, shell scripts and all tests.
#
#   --torch2 true|false   test what uses torch with torch 2.13 in its own environment, without k2   (false)
#   --lint true|false     ruff, mypy and shellcheck before the tests                (true)
#   --slow true|false     with the tests marked slow, recipe and reliability        (true)
#   --nj N                processes that share the files of tests                   (a core each, at most 4)
#
# After "--" everything goes to pytest, for example: tests/run.sh --lint false -- tests/unit -k config
# Tests that need k2, Slurm or the real data are left out, with a reason, where there is none.
set -euo pipefail

torch2=false lint=true slow=true nj=$(nproc)
((nj <= 4)) || nj=4
while [[ $# -gt 0 ]]; do
  case $1 in
    -h | --help) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//p}' "$0"; exit 0 ;;
    --) shift; break ;;
    --torch2 | --lint | --slow)
      [[ ${2-} == true || ${2-} == false ]] || { echo "run.sh: $1 takes true or false, found '${2-}'" >&2; exit 2; }
      printf -v "${1#--}" %s "$2"
      shift 2 ;;
    --nj)
      [[ ${2-} =~ ^[1-9][0-9]*$ ]] || { echo "run.sh: --nj takes a whole number above 0, found '${2-}'" >&2; exit 2; }
      nj=$2
      shift 2 ;;
    *) echo "run.sh: unknown option '$1' (--help lists them; pytest's go after --)" >&2; exit 2 ;;
  esac
done

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)
if $torch2; then export PRIVASR_STACK=torch2-cpu; fi
# shellcheck source=path.sh
. "$root/path.sh"
cd "$root"

# timed NAME COMMAND...: run it, say how long it took, and remember a failure without stopping.
failed=()
timed() {
  local name=$1 start=$SECONDS
  shift
  echo "== $name"
  "$@" || failed+=("$name")
  echo "== $name: $((SECONDS - start)) s"
}

# Layers 0 and 1 of docs/design.md, as far as they are there.
typed=()
for path in errors.py fileio.py config.py constraints.py sections.py randomness.py compat.py environment.py recipe text scoring privacy; do
  if [[ -e privasr_k2/$path ]]; then typed+=("privasr_k2/$path"); fi
done

if $lint; then
  timed "ruff check" python -m ruff check .
  timed "ruff format" python -m ruff format --check .
  # shellcheck disable=SC2046  # names without spaces, one word each
  timed "shellcheck" shellcheck -x $(python tests/support/shell_files.py)
  timed "mypy" python -m mypy "${typed[@]}"
fi
# What is computed with torch; what is not is the same in both environments, and runs in the first.
if $torch2 && [[ $# -eq 0 ]]; then
  # shellcheck disable=SC2046  # names without spaces, one word each
  set -- tests/structure/test_doctests.py tests/unit/{test_environment.py,test_path.py} \
    tests/unit/{am,attack,bin,confidence,data,decoding,dpsgd,encoders,federated,graph,lm,pate,training} \
    $(grep -l "^import torch\|^from torch" tests/oracles/*.py tests/unit/recipe/*.py) tests/recipes/test_torchrun_stage.py
fi
selection=()
$slow || selection=(-m "not slow and not recipe and not reliability")
# Whole files at a time: what a file's tests share is made once.
processes=()
((nj == 1)) || processes=(-n "$nj" --dist loadfile)
timed "pytest" python -m pytest --durations 40 "${processes[@]}" "${selection[@]}" "$@"

if [[ ${#failed[@]} -gt 0 ]]; then
  printf 'run.sh: FAILED: %s\n' "${failed[@]}" >&2
  exit 1
fi
echo "run.sh: all passed in $SECONDS s ($(python -c 'import torch; print("torch", torch.__version__)'))"

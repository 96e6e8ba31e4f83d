#!/usr/bin/env bash
# tests/smoke.sh [PYTHON]: the package without torch in an empty environment of another Python.
#
# Installs `.[report,docs]` with PYTHON (default: python3.13), runs `privasr plan` and `report`, builds the site without
# a warning, and runs the tests that need no torch, those of `privasr compare` among them. Where PYTHON is missing it is
# left out, and says so.
set -euo pipefail

if [[ ${1-} == -h || ${1-} == --help ]]; then sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//p}' "$0"; exit 0; fi
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)
python=${1:-python3.13}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A shim of pyenv may be there without its Python.
wanted=$python
for python in "$wanted" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/*/bin/"$wanted" ""; do
  if [[ -z $python ]] || "$python" -I -c '' 2>/dev/null; then break; fi
done
if [[ -z $python ]]; then
  echo "smoke.sh: no $wanted here: left out"
  exit 0
fi

"$python" -m venv "$work/venv"
bin=$work/venv/bin
cp -r "$root/pyproject.toml" "$root/README.md" "$root/LICENSE" "$root/privasr_k2" "$work/"   # no build folder in the checkout
"$bin/pip" install -q --no-input --disable-pip-version-check "${work}[report,docs]" pytest pytest-timeout hypothesis jiwer scikit-learn
cd "$work"
"$bin/python" --version
"$bin/privasr" plan --privacy-unit speaker --num-units 74 --client-fraction 0.1 --rounds 100 --epsilon 3 --delta 1e-5
"$bin/privasr" report --in-results "$root"/egs/an4/results_wordvotes.jsonl --in-layouts "$root"/conf/reports/wordvotes.yaml \
  --config "$root/conf/common.yaml#report" --out-page "$work/report.html"
[[ $(stat -c %s "$work/report.html") -gt 10000 ]]
cd "$root"
"$bin/python" -m privasr_k2 docs --out "$work/site"
"$bin/python" -m pytest -q -p no:cacheprovider tests/unit/{privacy,text,scoring,publish} tests/unit/bin/test_compare.py \
  tests/unit/report/test_{page,results,projection}.py \
  tests/unit/test_{config,constraints,errors,fileio,ragged,randomness,sections}.py

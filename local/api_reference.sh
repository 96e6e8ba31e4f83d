#!/usr/bin/env bash
# local/api_reference.sh [FOLDER]: the reference of the package as HTML, from its docstrings, in FOLDER (default: build/api).
#
# Needs Sphinx, which no recipe needs: pip install sphinx, or pip install '.[docs]'.
set -euo pipefail

if [[ ${1-} == --help || ${1-} == -h ]]; then sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 0; fi
[[ $# -le 1 ]] || { echo "api_reference.sh: one folder expected, found $# arguments" >&2; exit 2; }
out=$(realpath -m "${1:-build/api}")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck disable=SC1091
. ./path.sh
python -c 'import sphinx' 2>/dev/null || { echo "api_reference.sh: needs Sphinx: pip install sphinx" >&2; exit 2; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp docs/api/conf.py docs/api/index.rst "$work"
python -m sphinx.ext.apidoc -q -e -M -T -o "$work" privasr_k2
python -m sphinx -q -W --keep-going -b html "$work" "$out"
echo "$out/index.html"

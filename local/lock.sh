#!/usr/bin/env bash
# local/lock.sh: make requirements/*.txt and uv.lock anew, with the newest versions that requirements/*.in and
# pyproject.toml allow.
#
# Needs uv (https://docs.astral.sh/uv) on the PATH, or its place in UV, and the network. path.sh brings every
# environment up to date when the lock files have changed.
set -euo pipefail

if [[ ${1-} == --help || ${1-} == -h ]]; then sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 0; fi
[[ $# -eq 0 ]] || { echo "lock.sh: no arguments expected, found '$1'" >&2; exit 2; }
uv=${UV:-uv}
command -v "$uv" >/dev/null || { echo "lock.sh: needs uv; install it, or give its place in UV" >&2; exit 2; }
cd "$(dirname "${BASH_SOURCE[0]}")/../requirements"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# blocks keep|drop REGEX: the packages of standard input whose names match, or the others.
blocks() {
  awk -v mode="$1" -v names="^($2)==" '/^[a-z0-9]/ { match_found = ($0 ~ names) } (mode == "keep") == match_found'
}

for stack in torch1 torch2; do
  echo "lock.sh: $stack" >&2
  "$uv" pip compile --quiet --upgrade --generate-hashes --no-header --no-annotate --no-config \
    --python-version 3.11 --python-platform x86_64-manylinux_2_28 "$stack.in" --output-file "$work/$stack"
done
# What only a CUDA build of torch 2 brings is not in the lock: see torch2.in.
torch_alone='torch|triton|nvidia-.*|cuda-.*'
{ echo "# Made by local/lock.sh from torch1.in."; blocks drop kenlm <"$work/torch1"; } >"$work/torch1.txt"
{ echo "# Made by local/lock.sh from torch2.in."; blocks drop "kenlm|$torch_alone" <"$work/torch2"; } >"$work/torch2.txt"
{
  echo "# Made by local/lock.sh. Built from source with the environment's own setuptools."
  blocks keep kenlm <"$work/torch1"
} >"$work/kenlm.txt"
mv "$work"/*.txt .
"$uv" lock --quiet --upgrade --no-config --default-index https://pypi.org/simple --project ..

#!/usr/bin/env bash
# Earnings-21: recognizers' words with confidences, and gold words (--corpus-dir DIR); recipe confidence only.
# shellcheck disable=SC1091,SC2034
set -euo pipefail
caller=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")"
. ../../path.sh
. settings.sh

corpus=earnings21                  # privasr_k2/corpora/earnings21.py
corpus_dir=corpus/earnings21       # or --corpus-dir where you have it
if [[ ${1-} != confidence ]]; then
  echo "error: ./run.sh earnings21: expected the recipe confidence, found '${1-}'"$'\n'"  way out: there is no audio, only what recognizers made of it: ./run.sh earnings21 confidence" >&2
  exit 2
fi
. run_recipe.sh

#!/usr/bin/env bash
# Earnings-21: recognizers' words with confidences, and gold words (--corpus-dir DIR); recipe confidence only.
# recipes: confidence
# shellcheck disable=SC1091,SC2034
set -euo pipefail
caller=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")"
. ../../path.sh
. settings.sh

corpus=earnings21                  # privasr_k2/corpora/earnings21.py
corpus_dir=corpus/earnings21       # or --corpus-dir where you have it
. run_recipe.sh

#!/usr/bin/env bash
# TIMIT, your own licensed copy (--corpus-dir DIR; LDC93S1): 48 phones, scored on 39.
# shellcheck disable=SC1091,SC2034
set -euo pipefail
caller=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")"
. ../../path.sh
. settings.sh

corpus=timit                       # privasr_k2/corpora/timit.py
corpus_dir=corpus/TIMIT            # or --corpus-dir where you have it
units=phone
if [[ ${1-} == pate || ${1-} == dpsgd ]]; then   # condition 2 of yang2022: words, from a model of LibriSpeech
  corpus=timit_words units=char per=true public_corpus=librispeech public_dir=$PWD/corpus/LibriSpeech default_teachers=10   # or --public-dir
fi
. run_recipe.sh

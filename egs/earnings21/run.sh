#!/usr/bin/env bash
# Earnings-21: recognizers' words with confidences, and gold words with gold entities (--corpus-dir DIR); no audio.
# recipes: confidence classlm fedlm fmp
# shellcheck disable=SC1091,SC2034
set -euo pipefail
caller=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")"
. ../../path.sh
. settings.sh

corpus=earnings21                  # privasr_k2/corpora/earnings21.py
corpus_dir=corpus/earnings21       # or --corpus-dir where you have it
decode=false                       # no speech comes with it
taggers=gold                       # as annotated, in four classes
gold=true                          # all of it is: other --taggers are measured against that
public_text=corpus/ner_text        # or --public-text where you have annotated text: public names
nnlm_text=corpus/books.txt.gz      # or --nnlm-text where you have public text: pre-trained LMs
. run_recipe.sh

#!/usr/bin/env bash
# AN4 as Kaldi data directories with features of CMU Sphinx (--corpus-dir DIR), for recipes pate and dpsgd; LibriSpeech is public.
# recipes: pate dpsgd
# shellcheck disable=SC1091,SC2034
set -euo pipefail
caller=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")"
. ../../path.sh
. settings.sh

corpus=data_dir corpus_name=an4    # privasr_k2/corpora/data_dir.py; conf/split_speech.yaml names the pool's speakers
corpus_dir=corpus/an4              # or --corpus-dir where you have it
feature=given units=bpe_100        # of LibriSpeech: fewer tokens than characters, and so steps of a speller
public_corpus=librispeech public_dir=$PWD/corpus/LibriSpeech   # or --public-dir
public_feature=sphinx              # the front end that AN4's features were made with
words='yes stop'                   # said by themselves: what model inversion reconstructs
. run_recipe.sh

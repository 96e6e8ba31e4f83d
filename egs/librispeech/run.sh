#!/usr/bin/env bash
# LibriSpeech or any part of it, in its official layout (--corpus-dir DIR; https://www.openslr.org/12).
# shellcheck disable=SC1091,SC2034
set -euo pipefail
caller=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")"
. ../../path.sh
. settings.sh

corpus=librispeech                 # privasr_k2/corpora/librispeech.py
corpus_dir=corpus/LibriSpeech      # or --corpus-dir where you have it
units=phone speed_perturb=true
unlabelled='' corpus_settings=unlabelled   # or --unlabelled DIR: audio of other speakers without transcripts, for recipe pate
path_options+=' unlabelled'
if [[ ${1-} == pate || ${1-} == dpsgd ]]; then units=char start=scratch default_teachers=6; fi   # condition 1 of yang2022
. run_recipe.sh

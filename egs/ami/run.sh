#!/usr/bin/env bash
# AMI meetings, individual headsets or synthetic voices (--corpus-dir DIR; https://groups.inf.ed.ac.uk/ami).
# shellcheck disable=SC1091,SC2034
set -euo pipefail
caller=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")"
. ../../path.sh
. settings.sh

corpus=ami                         # privasr_k2/corpora/ami.py
corpus_dir=corpus/ami              # or --corpus-dir where you have it
units=phone
speech='' corpus_settings=speech   # --speech synthetic: the words, in the voices of mini
taggers=spacy,gazetteer            # nobody annotated names in all of it
public_text=corpus/ner_text        # or --public-text where you have annotated text: public names
text_options=speech=none           # all text, for recipes about text
. run_recipe.sh

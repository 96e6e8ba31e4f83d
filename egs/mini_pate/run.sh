#!/usr/bin/env bash
# Two synthetic corpora for recipes pate and dpsgd: 90 public users in quiet, 350 others in noise and with another accent; no download.
# recipes: pate dpsgd
# shellcheck disable=SC1091,SC2034
set -euo pipefail
caller=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")"
. ../../path.sh
. settings.sh

corpus=mini        # privasr_k2/corpora/mini.py with conf/mini.yaml: private, pool, dev and test; with conf/public/mini.yaml: public
corpus_name=mini_pate
units=char
public_corpus=mini public_conf=$PWD/conf/public
default_teachers=250 heads=true   # one private user a teacher
vote=token default_sure=0.8 default_candidates=4 self_trained=true ways='none self_training'
. run_recipe.sh

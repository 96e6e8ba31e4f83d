#!/usr/bin/env bash
# A synthetic voice assistant, made on the spot: 49 users by default (--users N, --size tiny), no download.
# shellcheck disable=SC1091,SC2034
set -euo pipefail
caller=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")"
. ../../path.sh
. settings.sh

corpus=mini        # privasr_k2/corpora/mini.py
units=phone
users='' corpus_settings=users
# Names: annotated in the manifests, which bring public lists and what the users of train wrote.
public_lists=data/manifests/public_lists vocabulary_lists=$public_lists gold=true further_text=data/manifests/written.jsonl
. run_recipe.sh

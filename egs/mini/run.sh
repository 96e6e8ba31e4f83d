#!/usr/bin/env bash
# A synthetic voice assistant, made on the spot: 48 users by default (--users N, --size tiny), no download.
# shellcheck disable=SC1091,SC2034
set -euo pipefail
caller=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")"
. ../../path.sh
. settings.sh

corpus=mini        # privasr_k2/corpora/mini.py
units=phone
users='' corpus_settings=users
. run_recipe.sh

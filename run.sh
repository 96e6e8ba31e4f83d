#!/usr/bin/env bash
# ./run.sh [CORPUS [RECIPE]] [--option value]...: make the environment at first use, then run a recipe.
# ./run.sh --help lists corpora and recipes, ./run.sh CORPUS RECIPE --help the options of one.
# shellcheck disable=SC1091
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
. "$root/path.sh"
. "$root/local/cmd.sh"
export PRIVASR_DEFAULT_CMD=$default_cmd PRIVASR_TRAIN_CMD=$train_cmd PRIVASR_DECODE_CMD=$decode_cmd
exec python3 -m privasr_k2.recipe.run "$@"

#!/usr/bin/env bash
# two synthetic corpora for pate and dpsgd: 90 public users in quiet, 350 others in noise with eight accents
# ./run.sh RECIPE [--option value]...: the same as ./run.sh mini_pate RECIPE in the root folder.
exec "$(dirname "${BASH_SOURCE[0]}")/../../run.sh" mini_pate "$@"

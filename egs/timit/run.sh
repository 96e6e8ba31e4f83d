#!/usr/bin/env bash
# TIMIT, your own licensed copy (--corpus-dir DIR; LDC93S1): 48 phones, scored on 39
# ./run.sh RECIPE [--option value]...: the same as ./run.sh timit RECIPE in the root folder.
exec "$(dirname "${BASH_SOURCE[0]}")/../../run.sh" timit "$@"

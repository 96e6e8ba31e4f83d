#!/usr/bin/env bash
# Earnings-21: recognized words with confidences, gold words and entities (--corpus-dir DIR); no audio
# ./run.sh RECIPE [--option value]...: the same as ./run.sh earnings21 RECIPE in the root folder.
exec "$(dirname "${BASH_SOURCE[0]}")/../../run.sh" earnings21 "$@"

#!/usr/bin/env bash
# Schema-Guided Dialogue: users of an assistant, text with gold slots (--corpus-dir DIR; CC BY-SA 4.0)
# ./run.sh RECIPE [--option value]...: the same as ./run.sh sgd RECIPE in the root folder.
exec "$(dirname "${BASH_SOURCE[0]}")/../../run.sh" sgd "$@"

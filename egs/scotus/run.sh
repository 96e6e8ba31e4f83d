#!/usr/bin/env bash
# Oral arguments before the Supreme Court of the United States, text of 8,341 speakers (--corpus-dir DIR; CC BY-NC 4.0)
# ./run.sh RECIPE [--option value]...: the same as ./run.sh scotus RECIPE in the root folder.
exec "$(dirname "${BASH_SOURCE[0]}")/../../run.sh" scotus "$@"

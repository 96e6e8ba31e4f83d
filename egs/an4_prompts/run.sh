#!/usr/bin/env bash
# AN4 private, LibriSpeech public; of AN4 only prompts as text are public (--corpus-dir DIR)
# ./run.sh RECIPE [--option value]...: the same as ./run.sh an4_prompts RECIPE in the root folder.
exec "$(dirname "${BASH_SOURCE[0]}")/../../run.sh" an4_prompts "$@"

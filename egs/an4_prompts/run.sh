#!/usr/bin/env bash
# AN4 private (--corpus-dir DIR), LibriSpeech public; AN4 has no public texts but --graph-text
# ./run.sh RECIPE [--option value]...: the same as ./run.sh an4_prompts RECIPE in the root folder.
exec "$(dirname "${BASH_SOURCE[0]}")/../../run.sh" an4_prompts "$@"

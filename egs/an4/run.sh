#!/usr/bin/env bash
# AN4 as Kaldi data directories with CMU Sphinx features (--corpus-dir DIR); LibriSpeech and ten speakers are public
# ./run.sh RECIPE [--option value]...: the same as ./run.sh an4 RECIPE in the root folder.
exec "$(dirname "${BASH_SOURCE[0]}")/../../run.sh" an4 "$@"

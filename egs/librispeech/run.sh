#!/usr/bin/env bash
# LibriSpeech or a part of it in its official layout (--corpus-dir DIR; https://www.openslr.org/12)
# ./run.sh RECIPE [--option value]...: the same as ./run.sh librispeech RECIPE in the root folder.
exec "$(dirname "${BASH_SOURCE[0]}")/../../run.sh" librispeech "$@"

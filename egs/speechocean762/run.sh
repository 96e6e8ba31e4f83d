#!/usr/bin/env bash
# speechocean762: read English of Mandarin speakers, adults and children (--corpus-dir DIR; https://www.openslr.org/101)
# ./run.sh RECIPE [--option value]...: the same as ./run.sh speechocean762 RECIPE in the root folder.
exec "$(dirname "${BASH_SOURCE[0]}")/../../run.sh" speechocean762 "$@"

#!/usr/bin/env bash
# AMI meetings, individual headsets or synthetic voices (--corpus-dir DIR; https://groups.inf.ed.ac.uk/ami)
# ./run.sh RECIPE [--option value]...: the same as ./run.sh ami RECIPE in the root folder.
exec "$(dirname "${BASH_SOURCE[0]}")/../../run.sh" ami "$@"

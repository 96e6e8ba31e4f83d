#!/usr/bin/env bash
# a synthetic voice assistant, generated on the spot: 49 users by default, no download
# ./run.sh RECIPE [--option value]...: the same as ./run.sh mini RECIPE in the root folder.
exec "$(dirname "${BASH_SOURCE[0]}")/../../run.sh" mini "$@"

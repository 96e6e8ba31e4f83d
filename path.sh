# Sourced by everything, from any directory: paths, locale, and the Python environment.
#
# On first use this makes the environment from requirements/ (local/install_env.sh); when nothing is missing it
# touches no network. Settings, all optional:
#   PRIVASR_PYTHON=/path/to/python3.11   the interpreter to make the environment with
#   PRIVASR_STACK=torch1|torch2          torch 1.13.1 and k2 from the package index, or torch 2 and a newer k2
#   PRIVASR_ENV=current                  use the environment that is active, unchanged
# On an error it says what to do and returns 2, so that an interactive shell survives.
# shellcheck shell=bash

_privasr_setup() {
  local root stack venv wanted first found=
  if [[ -z ${BASH_SOURCE[0]-} ]]; then
    echo "path.sh: source it from bash" >&2
    return 2
  fi
  root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P) || return 2
  if [[ $root == *[[:space:]]* ]]; then
    echo "path.sh: no spaces allowed in the folder's path, found '$root'; move or rename it" >&2
    return 2
  fi
  first=$root/local
  stack=${PRIVASR_STACK:-torch1}
  case $stack in
    torch1) venv=$root/.venv ;;
    torch2 | torch2-cpu) venv=$root/.venv-$stack ;;
    *)
      echo "path.sh: PRIVASR_STACK is torch1 or torch2, found '$stack'" >&2
      return 2
      ;;
  esac
  case ${PRIVASR_ENV-} in
    current) ;;
    "")
      # The marker holds the fingerprint of the lock files and is the last thing that an installation writes.
      wanted=$(bash "$root/local/install_env.sh" fingerprint "$stack") || return 2
      [[ ! -r $venv/.complete ]] || found=$(<"$venv/.complete")
      if [[ $found != "$wanted" || ! -x $venv/bin/python ]]; then
        bash "$root/local/install_env.sh" install "$stack" "$venv" || return 2
      fi
      export VIRTUAL_ENV=$venv
      first=$root/local:$venv/bin
      ;;
    *)
      echo "path.sh: PRIVASR_ENV is 'current' or not set, found '$PRIVASR_ENV'" >&2
      return 2
      ;;
  esac
  # First, not just somewhere: another clone or stack may have been sourced in this shell since.
  [[ $PATH: == "$first:"* ]] || PATH=$first:$PATH
  [[ ${PYTHONPATH-}: == "$root:"* ]] || PYTHONPATH=$root${PYTHONPATH:+:$PYTHONPATH}
  # Up to 2020 Intel's library of matrix products, which torch 1.13 holds, takes slow code on AMD's processors unless
  # told that they have AVX2: products are two to three times as fast. Later ones do not read it.
  if [[ -z ${MKL_DEBUG_CPU_TYPE-} ]] && grep -qs AuthenticAMD /proc/cpuinfo && grep -qsw avx2 /proc/cpuinfo; then
    export MKL_DEBUG_CPU_TYPE=5
  fi
  # Threads that wait for each other sleep. By default they spin, and a training of two threads beside other
  # work takes many times as long.
  export OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive}
  export PATH PYTHONPATH PRIVASR_ROOT=$root LC_ALL=C.UTF-8 PYTHONUNBUFFERED=1
}

if _privasr_setup; then
  unset -f _privasr_setup
else
  unset -f _privasr_setup
  return 2
fi

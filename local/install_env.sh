#!/usr/bin/env bash
# local/install_env.sh install STACK FOLDER: make a Python environment from the lock files, or bring it up to date.
# local/install_env.sh fingerprint STACK: what FOLDER/.complete holds when the environment is whole.
#
# Called by path.sh; STACK is torch1, torch2 or torch2-cpu. May be killed at any moment and started twice at once:
# the folder counts only when its marker .complete is there, written last, and a lock lets one installer work.
# Where uv is on the PATH it finds or fetches CPython 3.11 and installs; elsewhere pip does.
set -euo pipefail

if [[ ${1-} == --help || ${1-} == -h ]]; then sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//p}' "$0"; exit 0; fi
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)
action=$1 stack=$2
case $stack in
  torch1) last=k2 gigabytes=5.5 ;;
  torch2) last=k2-torch2 gigabytes=8 ;;
  torch2-cpu) last=torch2-cpu gigabytes=3 ;;
esac
locks=("$root/requirements/"{"${stack%-cpu}",kenlm,"$last"}.txt)

fingerprint() { sha256sum <(cat "${locks[@]}") | cut -c1-16; }
if [[ $action == fingerprint ]]; then fingerprint; exit; fi

venv=$3 log=$3.log problems=() missing=() hashed=(--no-deps --require-hashes)
say() { printf '%s\n' "$@" >&2; }
has_uv() { command -v uv >/dev/null; }

# check_machine: adds to $problems.
check_machine() {
  local glibc free needed=$((8 * 1024 * 1024))
  if [[ $(uname -s) != Linux || $(uname -m) != x86_64 ]]; then
    problems+=("Linux on x86-64 is needed, found $(uname -s) on $(uname -m): k2 has no packages for others")
  fi
  glibc=$(getconf GNU_LIBC_VERSION 2>/dev/null | cut -d' ' -f2) || true
  if [[ -z $glibc || $(printf '%s\n' 2.28 "$glibc" | sort -V | head -1) != 2.28 ]]; then
    problems+=("glibc 2.28 or newer is needed (Debian 10, Ubuntu 20.04, RHEL 8 or later), found ${glibc:-another C library}")
  fi
  free=$(df --output=avail -k "$root" | tail -1)
  ((free > needed)) || problems+=("$((needed / 1024 / 1024)) GiB of disk are needed at $root, found $((free / 1024 / 1024))")
}

# find_python: sets $python to CPython 3.11 that can make an environment, or adds to $problems.
find_python() {
  local version found=() names=(python3.11 python3)
  if [[ -n ${PRIVASR_PYTHON-} ]]; then names=("$PRIVASR_PYTHON"); elif has_uv; then python=3.11; return; fi
  for python in "${names[@]}"; do
    version=$("$python" -I -c 'import sys; print(sys.implementation.name, "%d.%d.%d" % sys.version_info[:3])' 2>/dev/null) || version=nothing
    if [[ $version == "cpython 3.11."* ]]; then
      has_uv || "$python" -I -c 'import venv, ensurepip' 2>/dev/null \
        || problems+=("$python lacks the modules venv and ensurepip. On Debian and Ubuntu: apt-get install python3.11-venv")
      return
    fi
    found+=("$python is $version")
  done
  problems+=("CPython 3.11 is needed, found: $(IFS=,; echo "${found[*]}"). Install it, for example
    apt-get install python3.11 python3.11-venv python3.11-dev     (Debian 12, Ubuntu 22.04)
    uv python install 3.11     or     conda create -n py311 python=3.11
  and, if it is not on the PATH, name it: export PRIVASR_PYTHON=/path/to/python3.11")
}

# check_build_tools: adds to $missing what building kenlm lacks. Only rescoring needs kenlm, so this stops nothing.
check_build_tools() {
  local include
  include=$("$venv/bin/python" -I -c 'import sysconfig; print(sysconfig.get_path("include"))')
  [[ -f $include/Python.h ]] || missing+=("python3.11-dev")
  command -v g++ >/dev/null || missing+=("g++")
  [[ " ${missing[*]-} " == *" g++ "* ]] || g++ -E -include zlib.h -x c++ /dev/null >/dev/null 2>&1 || missing+=("zlib1g-dev")
}

# pip_install TITLE ARGUMENT...: everything goes to the log; no line a package to the terminal, but for large ones.
pip_install() {
  local installer=("$venv/bin/python" -m pip install --no-input)
  if has_uv; then installer=(uv pip install --python "$venv/bin/python"); fi
  say "  $1"
  env -u PYTHONPATH -u PYTHONHOME PIP_USER=0 PIP_REQUIRE_VIRTUALENV=0 PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PATH="$venv/bin:$PATH" CMAKE_GENERATOR=Ninja "${installer[@]}" "${@:2}" </dev/null 2>&1 | tee -a "$log" \
    | awk '!/^( |Collecting|Requirement|Looking|Processing)/ || /[0-9][0-9][0-9]\.[0-9] MB|GB/ { print "    " substr($0, 1, 90); fflush() }' >&2 || failed
}

failed() {
  say "$(tail -n 12 "$log")" "" "path.sh: installing failed; the whole log is $log." \
    "  Without a connection to a package index this cannot work: see docs/install.md. Then start again."
  exit 2
}

if [[ ! -w $root ]]; then
  say "path.sh: ${venv##*/} is not there, and $root cannot be written." \
    "  Use a copy of your own, or an environment that has everything: PRIVASR_ENV=current"
  exit 2
fi
# One installer at a time. pip inherits the lock: if this shell is killed, the next one waits until pip is gone.
exec 9>"$venv.lock"
if ! flock --nonblock 9; then
  say "path.sh: another process is making ${venv##*/}; waiting for it"
  flock 9
fi
wanted=$(fingerprint)
if [[ -r $venv/.complete && $(<"$venv/.complete") == "$wanted" && -x $venv/bin/python ]]; then exit 0; fi

check_machine
find_python
if [[ -e $venv && ! -e $venv/.complete && ! -e $log ]]; then   # not even begun by this script
  problems+=("${venv##*/} is there, and is not path.sh's: it would be replaced. Move it away, or activate it and
    export PRIVASR_ENV=current")
fi
if [[ ${#problems[@]} -gt 0 ]]; then
  say "path.sh: the environment ${venv##*/} cannot be made here:" "${problems[@]/#/- }"
  exit 2
fi

start=$SECONDS
: >"$log"
if [[ -f $venv/.complete && -x $venv/bin/python ]]; then
  say "path.sh: the lock files have changed: bringing ${venv##*/} up to date"
  rm "$venv/.complete"
else
  say "path.sh: making ${venv##*/} (stack $stack, once; about $gigabytes GB and two minutes on a fast network)"
  rm -rf "$venv"
  if has_uv; then uv venv --quiet --seed --python "$python" "$venv"; else "$python" -I -m venv "$venv"; fi
fi
check_build_tools
pip_install "packages" --only-binary :all: "${hashed[@]}" -r "${locks[0]}"
if [[ ${#missing[@]} -eq 0 ]]; then
  pip_install "kenlm, from source" --no-build-isolation "${hashed[@]}" -r "${locks[1]}"
else
  say "  kenlm is left out: building it needs a C++ compiler and headers. Recipes that rescore will ask for it; then" \
    "    apt-get install ${missing[*]}; rm ${venv##*/}/.complete     and start again"
fi
[[ $stack == torch1 ]] || hashed=()   # torch 2: by version, see docs/install.md
pip_install "$last" "${hashed[@]}" -r "${locks[2]}"
"$venv/bin/python" -I -c 'import numpy, torch' >>"$log" 2>&1 || failed
printf '%s\n' "$wanted" >"$venv/.complete.tmp"
mv "$venv/.complete.tmp" "$venv/.complete"
say "path.sh: ${venv##*/} is ready ($((SECONDS - start)) s)"

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
requirements=$root/requirements
action=$1 stack=$2
case $stack in
  torch1) last=k2.txt gigabytes=5.5 ;;
  torch2) last=k2-torch2.txt gigabytes=8 ;;
  torch2-cpu) last=torch2-cpu.txt gigabytes=3 ;;
esac
locks=("$requirements/${stack%-cpu}.txt" "$requirements/kenlm.txt" "$requirements/$last")

fingerprint() { sha256sum <(cat "${locks[@]}") | cut -c1-16; }
if [[ $action == fingerprint ]]; then fingerprint; exit; fi

venv=$3
log=$venv.log
say() { printf '%s\n' "$*" >&2; }
has_uv() { command -v uv >/dev/null; }

# check_platform: sets $problems.
check_platform() {
  local glibc
  if [[ $(uname -s) != Linux || $(uname -m) != x86_64 ]]; then
    problems+=("Linux on x86-64 is needed, found $(uname -s) on $(uname -m): k2 has no packages for others")
    return
  fi
  glibc=$(getconf GNU_LIBC_VERSION 2>/dev/null | cut -d' ' -f2) || true
  if [[ -z $glibc || $(printf '%s\n' 2.28 "$glibc" | sort -V | head -1) != 2.28 ]]; then
    problems+=("glibc 2.28 or newer is needed (Debian 10, Ubuntu 20.04, RHEL 8 or later), found ${glibc:-another C library}")
  fi
}

# find_python: sets $python to the first CPython 3.11, or adds to $problems.
find_python() {
  local name version found=() names=(python3.11 python3)
  python=
  if [[ -z ${PRIVASR_PYTHON-} ]] && has_uv; then
    python=$(uv python find 3.11 2>/dev/null) && return
    uv python install 3.11 >&2 && python=$(uv python find 3.11) && return
  fi
  [[ -z ${PRIVASR_PYTHON-} ]] || names=("$PRIVASR_PYTHON")
  for name in "${names[@]}"; do
    version=$("$name" -I -c 'import sys; print(sys.implementation.name, "%d.%d.%d" % sys.version_info[:3])' 2>/dev/null) || version=nothing
    if [[ $version == "cpython 3.11."* ]]; then
      python=$name
      return
    fi
    found+=("$name is $version")
  done
  problems+=("CPython 3.11 is needed, found: $(IFS=,; echo "${found[*]}"). Install it, for example
    apt-get install python3.11 python3.11-venv python3.11-dev     (Debian 12, Ubuntu 22.04)
    uv python install 3.11     or     conda create -n py311 python=3.11
  and, if it is not on the PATH, name it: export PRIVASR_PYTHON=/path/to/python3.11")
}

# check_venv: sets $problems.
check_venv() {
  has_uv || "$python" -I -c 'import venv, ensurepip' 2>/dev/null \
    || problems+=("$python lacks the modules venv and ensurepip. On Debian and Ubuntu: apt-get install python3.11-venv")
}

# check_build_tools: sets $missing to what building kenlm lacks. Only rescoring needs kenlm, so this stops nothing.
check_build_tools() {
  local include
  include=$("$python" -I -c 'import sysconfig; print(sysconfig.get_path("include"))')
  [[ -f $include/Python.h ]] || missing+=("python3.11-dev")
  if ! command -v g++ >/dev/null; then
    missing+=("g++")
  elif ! echo '#include <zlib.h>' | g++ -E -x c++ - >/dev/null 2>&1; then
    missing+=("zlib1g-dev")
  fi
}

check_disk() {
  local free
  free=$(df --output=avail -k "$root" | tail -1)
  ((free > needed_kib)) || problems+=("$((needed_kib / 1024 / 1024)) GiB of disk are needed at $root, found $((free / 1024 / 1024))")
}

# pip_install TITLE ARGUMENT...: everything goes to the log; of pip, a line a package to the terminal.
pip_install() {
  local title=$1
  shift
  say "  $title"
  if has_uv; then
    PATH="$venv/bin:$PATH" CMAKE_GENERATOR=Ninja uv pip install --python "$venv/bin/python" "$@" 2>&1 \
      | tee -a "$log" | awk '!/^ [+-] /' >&2 || failed
  elif ! env -u PYTHONPATH -u PYTHONHOME PIP_USER=0 PIP_REQUIRE_VIRTUALENV=0 PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PATH="$venv/bin:$PATH" CMAKE_GENERATOR=Ninja \
    "$venv/bin/python" -m pip install --no-input "$@" </dev/null 2>&1 | tee -a "$log" | progress; then
    failed
  fi
}

failed() {
  say "$(tail -n 12 "$log")" "" "path.sh: installing failed; the whole log is $log." \
    "  Without a connection to a package index this cannot work: see docs/install.md. Then start again."
  exit 2
}

progress() {
  awk -v total="$(grep -c == "${locks[0]}")" -v terminal="$([[ -t 2 ]] && echo 1)" '
    function show(text) { if (terminal) printf "\r\033[K    %s", text; else print "    " text; fflush() }
    /^(Collecting|Requirement already satisfied)/ { name = $1 == "Collecting" ? $2 : $4; n++; if (terminal || n % 20 == 0) show(n " of " total ": " name) }
    /^  Downloading .*[0-9] ([MG]B|GB)/ { if ($NF == "MB)" && substr($(NF - 1), 2) + 0 < 100) next; show("downloading " $2 " " $(NF - 1) " " $NF) }
    /^Installing collected packages/ { show("unpacking, a minute or so") }
    /^Successfully installed/ { show("done"); if (terminal) print "" }' >&2
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

problems=() missing=() needed_kib=$((8 * 1024 * 1024))
check_platform
find_python
if [[ -e $venv && ! -e $venv/.complete && ! -e $log ]]; then   # not even begun by this script
  problems+=("${venv##*/} is there, and is not path.sh's: it would be replaced. Move it away, or activate it and
    export PRIVASR_ENV=current")
fi
[[ -z $python ]] || { check_venv; check_build_tools; }
check_disk
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
pip_install "packages" --only-binary :all: --no-deps --require-hashes -r "${locks[0]}"
if [[ ${#missing[@]} -eq 0 ]]; then
  pip_install "kenlm, from source" --no-build-isolation --no-deps --require-hashes -r "${locks[1]}"
else
  say "  kenlm is left out: building it needs a C++ compiler and headers. Recipes that rescore will ask for it; then" \
    "    apt-get install ${missing[*]}; rm ${venv##*/}/.complete     and start again"
fi
case $stack in
  torch1) pip_install "k2" --no-deps --require-hashes -r "${locks[2]}" ;;
  *) pip_install "torch" -r "${locks[2]}" ;;
esac
"$venv/bin/python" -I -c 'import numpy, torch' >>"$log" 2>&1 || { say "path.sh: torch does not import; see $log"; tail -n 5 "$log" >&2; exit 2; }
printf '%s\n' "$wanted" >"$venv/.complete.tmp"
mv "$venv/.complete.tmp" "$venv/.complete"
say "path.sh: ${venv##*/} is ready ($((SECONDS - start)) s)"

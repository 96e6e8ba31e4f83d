# Sourced by a recipe after its defaults: "--some-name value" or "--some_name value" sets $some_name, which must
# already exist. true/false, whole numbers and decimal numbers stay what their default is; a default of several
# numbers takes several ('1 10 100', quoted). --help prints the header comment of the recipe; --config FILE is
# read first: lines 'name=value' or '--name value', comments after #.
# shellcheck shell=bash disable=SC2034,SC2154

# Names here begin with _, so that they hide no option.
_given=''   # names of the options that were given
_stop() { echo "error: $1: expected $2, found $3"$'\n'"  way out: $4" >&2; exit 2; }

# Values of options, checked before anything runs.
among() {   # OPTION NAMES VALUES: words, all of them of NAMES
  local word
  [[ -n $3 ]] || _stop "--$1" "out of $2" "nothing" "name one"
  for word in $3; do
    [[ " $2 " == *" $word "* ]] || _stop "--$1" "out of $2" "'$word'" "correct the name"
  done
}
above_0() {   # OPTION PATTERN WHAT VALUES: words that match, none of them 0
  local word
  for word in $4; do
    [[ $word =~ ^($2)$ && ! $word =~ ^[0.]+([eE].*)?$ ]] || _stop "--$1" "$3" "'$word'" "correct the value"
  done
}
wholes_above_0() {   # NAME...: of options that may be empty
  local name
  for name in "$@"; do above_0 "${name//_/-}" "$_count" "a whole number above 0" "${!name}"; done
}
numbers_above_0() {   # NAME...: of options that may be empty
  local name
  for name in "$@"; do above_0 "${name//_/-}" "$_number" "a number above 0" "${!name}"; done
}
ignored() {   # WHY NAME...: refuse options that were given and would change nothing
  local name
  for name in "${@:2}"; do
    [[ " $_given " != *" $name "* ]] || _stop "--${name//_/-}" "options that change something here" "$1" "leave it away"
  done
}
share() {   # NAME: of an option that may be empty: 0 to 1
  [[ -z ${!1} || ${!1} =~ ^(0|1|1\.0*|0?\.[0-9]+)$ ]] || _stop "--${1//_/-}" "a number from 0 to 1" "'${!1}'" "correct the value"
}
_number='([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?' _count='[0-9]+'   # patterns of values above 0

_is_option() {   # NAME: may the command line set it?
  [[ $1 =~ ^[a-z][a-z0-9_]*$ && -v $1 && " $not_options " != *" $1 "* ]]
}

_nearest() {   # NAME: what was probably meant
  local _known=() _candidate _files
  _files=$(cd "$PRIVASR_ROOT/conf" && grep -lE "^ *$1:" ./*.yaml | sed 's,^./,,' | paste -sd ' ') || true
  if [[ -n $_files ]]; then
    echo "it is a key of $_files in conf/: write it into a file of that name in ${corpus_conf#"$PRIVASR_ROOT/"}/ (with --size S in its folder S/)"
    return
  fi
  for _candidate in $(compgen -v); do
    if _is_option "$_candidate"; then _known+=("$_candidate"); fi
  done
  python3 - "$1" "${_known[@]}" <<'PYTHON'
import difflib, sys
near = difflib.get_close_matches(sys.argv[1], sys.argv[2:], 1)
print(f"did you mean --{near[0].replace('_', '-')}?" if near else "try --help")
PYTHON
}

_set_option() {   # PLACE NAME VALUE
  local _place=$1 _name=${2//-/_} _value=$3 _option=--${2//_/-} _old _kind _word
  _is_option "$_name" || _stop "$_place" "an option that exists" "$_option" "$(_nearest "$_name")"
  _old=${!_name} _given+=" $_name"
  local _whole='^-?[0-9]+$' _decimal='^-?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?$' _pattern
  if [[ $_old == true || $_old == false ]]; then
    [[ $_value == true || $_value == false ]] || _stop "$_place $_option" "true or false" "'$_value'" "correct the value"
  elif [[ -n $_old ]]; then
    _kind='' _pattern=''
    for _word in $_old; do
      if [[ $_word =~ $_whole ]]; then [[ -n $_pattern ]] || { _kind='a whole number' _pattern=$_whole; }
      elif [[ $_word =~ $_decimal ]]; then _kind='a number' _pattern=$_decimal
      else _kind='' _pattern=''; break
      fi
    done
    if [[ -n $_kind && $_old == *' '* ]]; then
      for _word in $_value; do
        [[ $_word =~ $_pattern ]] || _stop "$_place $_option" "$_kind, or several in quotes" "'$_word'" "correct the value"
      done
    elif [[ -n $_kind ]]; then
      [[ $_value =~ $_pattern ]] || _stop "$_place $_option" "$_kind" "'$_value'" "correct the value"
    fi
  fi
  if [[ " $run_options " != *" $_name "* ]]; then
    command_line+=" $_option ${_value@Q}"
  fi
  if [[ " $path_options " == *" $_name "* && -n $_value && $_value != /* ]]; then
    _value=$caller/$_value
  fi
  printf -v "$_name" %s "$_value"
}

_read_config() {   # FILE: its lines as options
  local _line _number=0 _name
  local _with_equals='^([A-Za-z][A-Za-z0-9_-]*)[[:space:]]*=(.*)$'
  local _with_space='^--([A-Za-z][A-Za-z0-9_-]*)[[:space:]=](.*)$'
  [[ -f $1 && -r $1 ]] || _stop "--config" "a file that can be read" "$1" "correct the name"
  while IFS= read -r _line || [[ -n $_line ]]; do
    _number=$((_number + 1))
    _line=${_line%$'\r'}
    [[ $_line =~ ^[[:space:]]*(#|$) ]] && continue
    _line=${_line%%[[:space:]]#*}
    if [[ $_line =~ $_with_equals || $_line =~ $_with_space ]]; then
      _name=${BASH_REMATCH[1]} _line=${BASH_REMATCH[2]}
      _line=${_line#"${_line%%[![:space:]]*}"} _line=${_line%"${_line##*[![:space:]]}"}
      if [[ $_line == \'*\' || $_line == \"*\" ]]; then _line=${_line:1:-1}; fi
      _set_option "$1:$_number" "$_name" "$_line"
    else
      _stop "$1:$_number" "name=value" "'$_line'" "write one option a line"
    fi
  done < "$1"
}

_parse_options() {   # HEADER_FILE ARGUMENTS...
  local _header=$1 _at _words _name _value
  shift
  _words=("$@")
  # First pass: help, and --config wherever it stands.
  for ((_at = 0; _at < ${#_words[@]}; _at += 2)); do
    case ${_words[_at]} in
      -h | --help) sed -n '/^#/!q; /^#!/d; /^# shellcheck/d; s/^# \{0,1\}//p' "$_header"; exit 0 ;;
      --config)
        [[ $((_at + 1)) -lt ${#_words[@]} ]] || _stop --config "a value" "nothing" "write --config FILE"
        _set_option "the command line" config "${_words[_at + 1]}"
        _read_config "$config" ;;
    esac
  done
  while [[ $# -gt 0 ]]; do
    case $1 in
      --*=*) _stop "the command line" "--name value" "'$1'" "write ${1%%=*} '${1#*=}'" ;;
      --?*) _name=${1#--} ;;
      *) _stop "the command line" "--name value" "'$1'" "put lists into quotes; try --help" ;;
    esac
    _is_option "${_name//-/_}" || _stop "the command line" "an option that exists" "$1" "$(_nearest "${_name//-/_}")"
    _name=${_name//-/_} _value=VALUE
    if [[ ${!_name} == true || ${!_name} == false ]]; then _value=true; fi
    [[ $# -ge 2 ]] || _stop "$1" "a value" "nothing" "write $1 $_value"
    [[ $2 != --* ]] || _stop "$1" "a value" "the option $2" "write $1 $_value"
    [[ $1 == --config ]] || _set_option "the command line" "$_name" "$2"
    shift 2
  done
}

_parse_options "${BASH_SOURCE[1]}" "$@"
# The settings that only this corpus has, as values for prepare_corpus.
for _name in $corpus_settings; do
  if [[ -n ${!_name} ]]; then corpus_options+=" $_name=${!_name}"; fi
done
# One launcher for everything, where the command line names one.
if [[ -n $cmd ]]; then default_cmd=$cmd train_cmd=$cmd decode_cmd=$cmd; fi

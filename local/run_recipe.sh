# Sourced by run.sh and egs/*/run.sh after their settings, with the recipe and its options as arguments.
# shellcheck shell=bash disable=SC1090,SC1091,SC2034,SC2154

_recipes=$PRIVASR_ROOT/local/recipes
if [[ ! -f $_recipes/${1-}.sh ]]; then
  {
    echo "usage: $0 RECIPE [--option value]...   (RECIPE --help tells the recipe's options)"
    for _file in "$_recipes"/*.sh; do echo "  $(basename "$_file" .sh):$(sed -n '1s/^#//p' "$_file")"; done
  } >&2
  exit 2
fi
recipe=$1
shift

# A corpus's own paths start from its folder, wherever the work is done.
_home=$PWD
if [[ -z $corpus_conf ]]; then corpus_conf=$_home/conf; fi
if [[ -z $work_dir ]]; then work_dir=$_home; fi
for _name in corpus_dir public_text nnlm_text; do
  if [[ -n ${!_name-} && ${!_name} != /* ]]; then printf -v "$_name" %s "$_home/${!_name}"; fi
done
if [[ -z $definition ]]; then definition=$PRIVASR_ROOT/privasr_k2/corpora/$corpus.py; fi
command_line="./run.sh ${corpus_name:-$corpus} $recipe"
if [[ -z $people ]]; then people=${corpus_name:-$corpus}; fi   # two corpora may share a definition

. cmd.sh
. stage.sh
. "$_recipes/$recipe.sh" "$@"

case $size in
  tiny | demo | small | paper) ;;
  *) _stop "--size" "tiny, demo, small or paper" "'$size'" "correct the value" ;;
esac
[[ $units =~ ^(phone|char|bpe_[1-9][0-9]*)$ ]] || _stop "--units" "phone, char or bpe_N" "'$units'" "name one, for example bpe_500"
among backend "k2 kaldi" "${backend:-k2}"
wholes_above_0 nj side_by_side
if ! { mkdir -p "$work_dir" && cd "$work_dir"; } 2>/dev/null; then
  _stop "$work_dir" "a folder to work in" "one that cannot be made or entered" "give another: --work-dir DIR"
fi
if [[ -n $own_path ]]; then   # another corpus may have a folder or a file of the same name
  [[ ! -f .corpus || $(<.corpus) == "$own_path" ]] || _stop "$PWD" "the work of $own_path" "that of $(<.corpus)" \
    "give another folder with --work-dir; if the corpus has moved, remove .corpus there"
  if [[ $dry_run == false ]]; then printf '%s\n' "$own_path" > .corpus; fi
fi
for _file in "$corpus_conf"/{,"$size"/}*.yaml; do
  _name=$(basename "$_file")
  if [[ -f $_file && $_name != "$corpus.yaml" && -z $(find "$PRIVASR_ROOT/conf" -name "$_name" -print -quit) ]]; then
    echo "note: $_file: no stage reads it, as no file of conf/ has its name"
  fi
done >&2
echo "work folder: $PWD"
python3 -m privasr_k2.recipe.run --plan <(printf '%s\0' "${_plan[@]}") --root "$PRIVASR_ROOT" --first "$stage" \
  --last "$stop_stage" --nj "$nj" --side-by-side "$side_by_side" --dry-run "$dry_run" --force "$force" --verify "$verify" --wait "$wait"
# A run that stops earlier has not touched the table: showing it would pass off an old one as its result.
if [[ $dry_run == false && $show_report == true && $stop_stage -ge $_last_stage && -f $report ]]; then
  echo
  cat "$report"
  printf '\n%s\n' "these tables: $PWD/$report"
fi

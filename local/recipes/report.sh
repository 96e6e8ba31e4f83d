# All reports of a corpus on one page: exp/RESULTS.md, and exp/report.html, which needs no other file.
#
#   ./run.sh CORPUS report                        of every recipe that has been run
#   ./run.sh mini report --also egs/mini_pate     and of the recipes in another folder
#
# Options: also (other folders with data/ and exp/ whose reports follow; quoted).
# Those of every recipe: see ./run.sh --help.
# shellcheck disable=SC1091,SC2034,SC2154
also=''
. parse_options.sh
reports=() figures=()
folders=("$work_dir")
for folder in $also; do
  [[ $folder == /* ]] || folder=$caller/$folder
  [[ -d $folder ]] || _stop "--also" "folders in which recipes were run" "'$folder'" "correct the name"
  folders+=("$folder")
done
for folder in "${folders[@]}"; do
  for name in ctc rescore classlm fmp fedlm compose pate dpsgd confidence; do
    while IFS= read -r file; do   # that of a recipe before those of its parts: how sure words are, model inversion
      reports+=("${file#"$work_dir"/}")
      for figure in "${file%/*}"/*.svg "${file%/*}"/*.png; do
        if [[ -f $figure ]]; then figures+=("${figure#"$work_dir"/}"); fi
      done
    done < <(find "$folder/exp" \( -path "$folder/exp/$name/*" -o -path "$folder/exp/${name}_*" \) -name RESULTS.md \
      -not -path '*/.stages/*' -printf '%d %p\n' 2> /dev/null | sort -k 1,1n -k 2 | cut -d ' ' -f 2-)
  done
done
[[ ${#reports[@]} -gt 0 ]] || _stop "$work_dir/exp" "RESULTS.md of a recipe" "none" "run one first: ./run.sh ${corpus_name:-$corpus} ctc"

stage 1 "all reports on one page" report_page --in-reports "${reports[@]}" ${figures:+--in-figures "${figures[@]}"} \
  --out-report exp/RESULTS.md --out-page exp/report.html --set title="${corpus_name:-$corpus}"

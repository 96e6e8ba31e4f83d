# Sourced by recipes: stages 0-2, the same for every recipe of a corpus and written once, to data/.
# A recipe that needs a lang folder of its own sets lang_name and lang_flags (further flags of prepare_lang) before;
# one that has decode=false needs no features: it is about text; one with own_lang=false makes the lang folder itself.
# shellcheck shell=bash disable=SC2034,SC2046,SC2086,SC2154
data=data
lang_name=${lang_name:-$units}
feats=$data/feats_$feature
lang=$data/lang_$lang_name
manifests=$data/manifests
if [[ -n $text_options && ${decode:-true} == false ]]; then   # beside those of the part that is spoken
  manifests+=_text lang+=_text corpus_options+=" $text_options"
fi

corpus_stage "manifests, checked" $manifests

if [[ ${decode:-true} == true ]]; then
  stage 1 "$feature features" compute_features $(layers features) --in-manifests $manifests --out-dir "$feats" \
    --set kind="$feature" speed_perturb="$speed_perturb" --num-jobs "$nj"
fi

if [[ ${own_lang:-true} == true ]]; then
  stage 2 "lang directory of $units units" prepare_lang $(layers lang) --in-manifests $manifests --out-dir "$lang" \
    ${vocabulary_lists:+--in-public-lists "$vocabulary_lists"} "${lang_flags[@]}" --set units="$units" $lang_options
fi

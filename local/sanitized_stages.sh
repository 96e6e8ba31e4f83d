# Sourced by recipes whose language models read sanitized text, after am_choices.sh: data, acoustic model, tagged text in parts, sanitized
# text. A recipe sets exp, decode, taggers, gold, public_text, public_names, sizes, keep before.
# shellcheck shell=bash disable=SC1091,SC2034,SC2046,SC2086,SC2154
[[ $backend != kaldi ]] || _stop "--backend kaldi" "k2, which alone searches for graphs with names" "kaldi" "leave it away"
ignored "language models of sanitized text" arpa
# All text of a corpus that speaks only a part of it.
texts=data/manifests
if [[ -n $text_options ]]; then texts+=_text; fi
if [[ -n $text_options && $decode == true ]]; then   # else data_stages.sh makes them
  corpus_stage "manifests of all text" $texts $text_options
fi
if [[ -n $public_names ]]; then
  public_lists=$public_names
elif [[ -n $public_text ]]; then
  public_lists=data/public/lists
  stage 0 "public text with names" prepare_tagged_text --raw-conll "$public_text" --out-dir data/public/annotated
  stage 0 "its names, in four classes" tag_entities $(layers tag_entities) --in-text data/public/annotated \
    --out-text data/public/tagged.jsonl.gz --set "taggers=[gold]"
  stage 0 "public lists of names" make_name_lists $(layers name_lists) --in-tagged data/public/tagged.jsonl.gz --out-lists $public_lists
fi
[[ -n $public_lists ]] || _stop "recipe $recipe" "public lists of names" "none for $corpus" \
  "give --public-text FOLDER (annotated text) or --public-names FOLDER (per.txt org.txt loc.txt misc.txt)"
. data_stages.sh
if [[ $decode == true ]]; then . am_stage.sh; fi

# Entities of the text as it was written, in place of the corpus's own annotation.
text=data/text_classlm
if [[ -z $sizes ]]; then text=data/text_undivided; fi
scored=$manifests spoken='' further=$further_text   # whose entities are scored; where the speech is; what is beside the cuts
folders=("$texts")
if [[ $texts != "$manifests" ]]; then
  spoken="--in-spoken $manifests"
  if [[ $decode == true ]]; then folders+=("$manifests"); fi
fi
in_parts() {   # TITLE MANIFESTS FURTHER OUT: the same users are in a part whatever their names are
  stage 6 "$1" split_text $(layers split_text) --in-manifests "$2" ${3:+--in-text "$3"} $spoken --out-dir "$4" \
    --set "sizes=[${sizes// /,}]"
}
tag() {   # TITLE TAGGERS FLAG...
  stage 6 "$1" tag_entities $(layers tag_entities) "${@:3}" --in-definition "$definition" --set "taggers=[$2]" --num-jobs "$nj"
}
by_people=''   # the text that is sanitized, with its annotated names
if [[ -n $taggers ]]; then
  lists=''   # what the gazetteer knows, and text that tells names from words
  if [[ $taggers == *gazetteer* ]]; then
    lists="--in-public-lists ${public_lists// /$_space}"
    if [[ $public_lists == data/public/lists ]]; then lists+=" --in-public-cased data/public/tagged.jsonl.gz"; fi
  fi
  for folder in "${folders[@]}"; do
    tag "entities in ${folder##*/}" "$taggers" --in-manifests "$folder" --out-manifests "${folder}_tagged" $lists
  done
  if [[ -n $further ]]; then
    tag "entities in ${further##*/}" "$taggers" --in-text "$further" --out-text data/further_tagged.jsonl.gz $lists
  fi
  scored=${manifests}_tagged
  if [[ $gold == true && $taggers != gold ]]; then
    for folder in "${folders[@]}"; do
      tag "annotated entities in ${folder##*/}" gold --in-manifests "$folder" --out-manifests "${folder}_gold"
    done
    in_parts "the same parts with annotated entities" "${texts}_gold" "$further" ${text}_gold
    by_people=${text}_gold/background.jsonl.gz scored=${manifests}_gold
  fi
  texts=${texts}_tagged further=${further:+data/further_tagged.jsonl.gz}
fi
in_parts "background, adaptation, dev and test text" "$texts" "$further" $text

stage 7 "sanitized text" sanitize_text $(layers sanitize) --in-private-text $text/background.jsonl.gz \
  --in-public-lists "$public_lists" --out-dir "$exp/sanitized_text" --out-privacy "$exp/sanitized_text_privacy.json" $(budget) \
  --set data="$people/train" ${keep:+keep="$keep"}
stage 7 "entities that were found and replaced" report_entities --in-text $text/background.jsonl.gz \
  ${by_people:+--in-gold "$by_people"} --in-sanitized "$exp/sanitized_text" --in-privacy "$exp/sanitized_text_privacy.json" --in-public-lists "$public_lists" \
  --out-report "$exp/entities.json" --out-table "$exp/entities.md"
sanitized=$exp/sanitized_text/sanitized.jsonl.gz

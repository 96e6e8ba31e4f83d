# Sourced by run.sh and egs/*/run.sh: the settings that every corpus and recipe has, each an option of the
# command line (--some-name VALUE or --some_name VALUE). A corpus sets its own after this file.
#
# What to run:
#   --stage N --stop-stage M    only stages N to M; what they need must be there and up to date
#   --dry-run true              check the wiring, list what each stage reads and writes, run nothing
#   --force true                run stages although they are up to date
#   --verify true               do not trust times and sizes: read every file again
#   --show-report false         do not print the tables at the end
#   --wait false                fail when another run is at work in the same folder, instead of waiting
#   --config FILE               options from a file: lines 'name=value', comments after #; before the command line
# Where and how:
#   --corpus-dir DIR            the corpus; never written to
#   --work-dir DIR              where data/ and exp/ go (default: egs/CORPUS, or egs/user/NAME for your own)
#   --nj N                      jobs at once (all cores); decoding depends on their number, and is done again with another
#   --side-by-side N            of a stage number's parts, such as models or epsilons, so many at once where none needs another (1);
#                               they share the nj jobs, and a GPU
#   --cmd 'slurm OPTIONS'       run everything there, instead of what local/cmd.sh says; or 'local', or 'torchrun OPTIONS'
#   --device auto|cpu|cuda|cuda:N
# What is built:
#   --size tiny|demo|small|paper   tiny for tests, demo for ./run.sh alone, small for two cores, paper for the papers' own numbers
#   --units phone|char|bpe_N    what the acoustic model predicts
#   --backend k2|kaldi          what searches in the first pass: k2 (the default), or kaldi_decoder as a cross-check
#   --feature fbank|mfcc|sphinx|given|auto   --speed-perturb true: three speeds of every training utterance
#   --lm-text FILE              text for the language model, in place of the corpus's own and of its transcripts
#   --arpa FILE                 a language model ready made
#   --corpus-options 'K=V ...'  options that only your corpus has
#   --lang-options 'K=V ...'    settings of conf/lang.yaml, such as max_words=20000
#   --lexicon FILE              a pronunciation lexicon in place of the corpus's own
#   --allow-pipes true          data: and own corpora: run the commands in a wav.scp (if you trust who wrote them)
# What may be spent, in recipes that make a privacy claim:
#   --ledger FILE               where it is written down (default: privacy/ledger.json in the work folder): one for all
#                               work on the same private data, in a place that outlives this clone
#   --max-epsilon X             refuse to start what would bring the releases of the ledger above X
# shellcheck shell=bash disable=SC2034

stage=0 stop_stage=9999 dry_run=false force=false verify=false wait=true show_report=true config=''
corpus_dir='' work_dir='' nj=$(nproc) side_by_side=1 cmd='' device=auto
size=small units=phone backend='' feature=fbank speed_perturb=false lm_text='' arpa='' lexicon=''
ledger='' max_epsilon=''

# Recipes' options that a corpus may set: it does so after this file, and the environment does not.
unset -v decode gold heads lang_name nnlm_text per public_conf public_corpus public_dir public_feature public_text self_trained start \
  taggers vote ways words default_candidates default_sure default_teachers

corpus_settings=''  # names of settings that only this corpus has: they go to prepare_corpus as NAME=VALUE
corpus_options=''   # NAME=VALUE words for prepare_corpus
lang_options=''     # the same for prepare_lang
# Names in the text, for recipe classlm, whose options taggers, gold, public_text and decode a corpus may set, as nnlm_text of fedlm:
public_lists=''     # folder of public lists of names that comes with the manifests
vocabulary_lists=''  # the same, where every recipe's vocabulary is to have their words
further_text=''     # tagged text beside the cuts that comes with the manifests
text_options=''     # NAME=VALUE words with which prepare_corpus takes all text, where it speaks only a part of it
definition=''       # the Python file that exports CORPUS; default: that of privasr_k2/corpora
corpus_name=''      # what the user called the corpus, where that is not its own name
corpus_conf=''      # folder with this corpus's YAML layers; default: conf/ beside its run.sh
report=''           # set by a recipe: the file that is shown at the end
own_path=''         # of a user's own corpus: its folder or file
people=''           # what a ledger calls the corpus's people; default: the corpus's name

# Options whose values are paths: relative ones mean the folder that the command was given in.
path_options='public_text public_names background config corpus_dir work_dir lm_text nnlm_text arpa lexicon am_model am_tokens am_bpe ledger'
# Options that choose nothing of a result (threads change its rounding: docs/results.md), and so are no part of $command_line.
run_options='stage stop_stage dry_run force verify wait show_report config work_dir nj side_by_side device cmd default_cmd train_cmd decode_cmd ledger max_epsilon'
# Variables that are not options.
not_options='own_path people public_lists vocabulary_lists further_text text_options root corpus corpus_name corpus_conf corpus_settings definition caller recipe report path_options run_options not_options command_line lang_name lang_flags'

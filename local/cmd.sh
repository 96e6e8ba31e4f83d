# Sourced by run_recipe.sh: where commands run, in Kaldi's manner. 'local', or 'slurm' and options of sbatch.
# --cmd on the command line stands in for all three. On a cluster, for example:
#
#   default_cmd="slurm --mem 8G --time 4:00:00"
#   train_cmd="slurm --mem 32G --gres gpu:1 --time 2-0"
#   decode_cmd="slurm --mem 4G --time 1:00:00"
# shellcheck shell=bash disable=SC2034

default_cmd=local   # stages that say nothing else
train_cmd=local     # neural training: stage 5 "acoustic model" --cmd "$train_cmd" train_am ...
decode_cmd=local    # arrays (JOB=1:N)

# Sourced by run.sh: where commands run, in Kaldi's manner. 'local'; 'torchrun' and its options: several processes of
# this machine for a training (verbs that cannot share their work run as one); or 'slurm' and options of sbatch, after
# which torchrun and its options may follow. --cmd on the command line stands in for all three. On a cluster, for example:
#
#   default_cmd="slurm --mem 8G --time 4:00:00"
#   train_cmd="slurm --nodes 2 --mem 32G --gres gpu:4 --time 2-0 torchrun --nproc_per_node 4"
#   decode_cmd="slurm --mem 4G --time 1:00:00"
# shellcheck shell=bash disable=SC2034

default_cmd=local   # stages that say nothing else
train_cmd=local     # neural training: stage 5 "acoustic model" --cmd "$train_cmd" train_am ...
decode_cmd=local    # arrays (JOB=1:N)

#!/usr/bin/env bash
# A comparison on a Slurm allocation: Ray's head on its first node, a worker on each of the others, all gone at the end.
#
#   sbatch examples/cluster/slurm.sh compare tfbind8 --seeds 20 --out runs/c
#
# The words after the script are those of sgfn; --cluster is added. Submitted again after a time limit, the same command
# goes on: Slurm's signal makes running cells write their checkpoints, which come back to the folder.
#SBATCH --job-name=sgfn
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=32
#SBATCH --gpus-per-task=8
#SBATCH --time=12:00:00
#SBATCH --signal=B:TERM@300
#SBATCH --requeue
set -euo pipefail

export RAY_USAGE_STATS_ENABLED=0
PORT=$((6379 + SLURM_JOB_ID % 1000))   # two jobs may share a node
mapfile -t nodes < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
head=$(srun --nodes=1 --ntasks=1 -w "${nodes[0]}" hostname -I | cut -d' ' -f1)
sizes=(--num-cpus "${SLURM_CPUS_PER_TASK:-1}" --num-gpus "${SLURM_GPUS_PER_TASK:-0}")

srun --nodes=1 --ntasks=1 -w "${nodes[0]}" --overlap \
    ray start --head --node-ip-address "$head" --port "$PORT" --include-dashboard false "${sizes[@]}" --block &
for _ in $(seq 60); do
    ray health-check --address "$head:$PORT" 2> /dev/null && break
    sleep 2
done
if [ "${#nodes[@]}" -gt 1 ]; then
    srun --nodes=$((${#nodes[@]} - 1)) --ntasks=$((${#nodes[@]} - 1)) --exclude "${nodes[0]}" --overlap \
        ray start --address "$head:$PORT" "${sizes[@]}" --block &
fi

sgfn "$@" --cluster "$head:$PORT" &
command=$!
trap 'kill -TERM "$command"' TERM
wait "$command" || true   # a signal ends the first wait before the command has ended
status=0
wait "$command" || status=$?
kill %1 %2 2> /dev/null || true   # the steps with Ray
exit "$status"

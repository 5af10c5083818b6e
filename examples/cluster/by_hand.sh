#!/usr/bin/env bash
# A Ray cluster by hand, on machines that you can reach by ssh and that have the same Python with sgfn[ray].
#
#   bash examples/cluster/by_hand.sh start gpu1 gpu2 gpu3    this machine is the head, the others are workers
#   sgfn compare tfbind8 --cluster auto --out runs/c          here, as often as you like
#   bash examples/cluster/by_hand.sh stop gpu1 gpu2 gpu3      ends every Ray of yours on these machines
#
# Whoever reaches the port can run programs as you: keep it inside your own network (docs/scale.md).
set -euo pipefail

PORT=${PORT:-6379}
PYTHON_BIN=${PYTHON_BIN:-$(dirname "$(command -v sgfn)")}   # where ray and sgfn lie, on all machines
HEAD=${HEAD:-$(hostname -I | cut -d' ' -f1)}
export RAY_USAGE_STATS_ENABLED=0

command=${1:?start or stop, then the names of the worker machines}
shift
case $command in
start)
    "$PYTHON_BIN/ray" start --head --node-ip-address "$HEAD" --port "$PORT" --include-dashboard false
    for host in "$@"; do
        ssh "$host" "RAY_USAGE_STATS_ENABLED=0 '$PYTHON_BIN/ray' start --address '$HEAD:$PORT'"
    done
    ;;
stop)
    for host in "$@"; do
        ssh "$host" "'$PYTHON_BIN/ray' stop" || echo "$host: not reached" >&2
    done
    "$PYTHON_BIN/ray" stop
    ;;
*)
    echo "start or stop, not $command" >&2
    exit 2
    ;;
esac

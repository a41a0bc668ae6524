#!/usr/bin/env bash
# Everything that a GPU can answer, in one go, from the folder that pack.sh made. Prints what docs/gpu.md asks for.
cd "$(dirname "$0")" || exit 2
[ -e graph-oracle ] || gunzip --keep graph-oracle.gz || exit 2
failed=0
say() { printf '\n== %s\n' "$*"; }
expect() { # expect STATUS COMMAND...
    local wanted=$1 status=0
    shift
    say "$*"
    local from=$SECONDS
    timeout 300 "$@" || status=$?
    echo "after $((SECONDS - from)) s"
    if [ "$status" -ne "$wanted" ]; then
        echo "exit status $status, expected $wanted"
        failed=1
    fi
}

nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv || true
expect 0 ./graph-oracle smoke --device cuda --table --repetitions 50
expect 0 ./graph-oracle smoke --device cuda cases/*.graph
for fault in use-after-free missing-wait out-of-bounds leak early-reuse; do
    expect 1 ./graph-oracle smoke --device cuda --inject "$fault"
done
if command -v compute-sanitizer > /dev/null; then
    # Without --padding: it changes how the pool counts, and pass 4 has guard bands of its own.
    for tool in "memcheck --track-stream-ordered-races all --leak-check full" initcheck racecheck; do
        # shellcheck disable=SC2086
        expect 0 compute-sanitizer --tool $tool --error-exitcode 9 ./graph-oracle smoke --device cuda --repetitions 2
    done
else
    say "no compute-sanitizer here"
fi
exit $failed

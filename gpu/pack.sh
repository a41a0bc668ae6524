#!/usr/bin/env bash
# Makes one folder that runs the smoke suite on a machine with a GPU and a driver and nothing else.
#
#   gpu/pack.sh FOLDER            builds the program (release, feature cuda) and packs it
#   BINARY=path gpu/pack.sh FOLDER   packs a program that is already built
#
# The program needs GLIBC 2.34 or newer, and libcuda.so.1 of a driver of series 525 or newer. Not for musl: a static program
# cannot load a driver.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
folder=${1:?usage: gpu/pack.sh FOLDER}
most=$((5 * 1024 * 1024))

if [ -z "${BINARY:-}" ]; then
    target=${CARGO_TARGET_DIR:-$root/target}
    # Small rather than quick: the program waits for a device.
    CARGO_PROFILE_RELEASE_STRIP=symbols CARGO_PROFILE_RELEASE_LTO=fat CARGO_PROFILE_RELEASE_OPT_LEVEL=z \
        CARGO_PROFILE_RELEASE_CODEGEN_UNITS=1 CARGO_PROFILE_RELEASE_PANIC=abort \
        cargo build --release --features cuda --bin graph-oracle --manifest-path "$root/Cargo.toml" --target-dir "$target"
    BINARY=$target/release/graph-oracle
fi

mkdir -p "$folder/cases" "$folder/kernels"
cp "$BINARY" "$folder/graph-oracle"
strip "$folder/graph-oracle" 2> /dev/null || true
cp "$root"/gpu/kernels/kernels.{cu,ptx} "$root/gpu/kernels/build.py" "$folder/kernels/"
cp "$root"/gpu/cases/*.graph "$folder/cases/"
for case in all_gather_pair reduce_scatter_pair cap_sizes dependent_gathers eight_gathers_cap interleaved_groups; do
    cp "$root/corpus/$case.graph" "$folder/cases/"
done
cp "$root/docs/gpu.md" "$folder/README.md"
cp "$root/gpu/run.sh" "$folder/run.sh"
chmod +x "$folder/run.sh" "$folder/graph-oracle"

bytes=$(du -sb "$folder" | cut -f1)
if [ "$bytes" -gt "$most" ]; then
    # run.sh unpacks it.
    gzip --best --force "$folder/graph-oracle"
    bytes=$(du -sb "$folder" | cut -f1)
fi
echo "$folder: $bytes bytes"
[ "$bytes" -le "$most" ] || { echo "more than $most bytes"; exit 1; }

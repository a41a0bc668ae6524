#!/bin/bash
# Builds every libFuzzer target of fuzz/ with its seeds into $OUT, as ClusterFuzzLite expects them: $OUT/TARGET and
# $OUT/TARGET_seed_corpus.zip. $SRC and $WORK are the service's folders. LIST_ONLY=1: only say which targets there are.
# ONLY="TARGET ...": build these and no others, to try one by hand (.ci/clusterfuzzlite).
set -euo pipefail
cd "${SRC:?where the sources are}/graph-oracle"

targets=$(awk '/^\[\[bin\]\]/ {bin = 1} bin && /^name *=/ {gsub(/"/, "", $3); print $3; bin = 0}' fuzz/Cargo.toml)
[ -n "$targets" ] || { echo "fuzz/Cargo.toml has no targets" >&2; exit 1; }
if [ "${LIST_ONLY:-0}" = 1 ]; then
    echo "$targets"
    exit 0
fi

# project.yaml asks for this one; binaries with another would be taken for what they are not.
[ "${SANITIZER:-address}" = address ] || { echo "SANITIZER=$SANITIZER: only address is built" >&2; exit 1; }

built="${WORK:-/tmp}/fuzz"
if [ -n "${ONLY:-}" ]; then
    targets=$(printf '%s\n' $ONLY)
    for target in $targets; do
        cargo fuzz build --release --debug-assertions --target-dir "$built" "$target"
    done
else
    cargo fuzz build --release --debug-assertions --target-dir "$built"
fi
for target in $targets; do
    cp "$(find "$built" -path "*/release/$target" -type f | head -n 1)" "${OUT:?where the binaries go}/$target"
    zip --quiet --junk-paths "$OUT/${target}_seed_corpus.zip" "corpus/$target"/*
done

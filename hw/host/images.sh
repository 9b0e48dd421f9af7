#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Build the images of the virtual bench's guests that are not in the cache yet; after setup.sh.
#
# Exit codes: 0 all are there; 1 a build failed (its log is named).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

. hw/host/progress.sh

for recipe in targets/*/image/recipe.toml; do
    kind=${recipe#targets/} kind=${kind%%/*}
    step_begin images "$kind"
    step_run "image-$kind.log" .build/venv/bin/python -m hw.virtual.image --kind "$kind"
    step_end "ready"
done

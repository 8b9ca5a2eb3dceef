#!/bin/sh
# SPDX-License-Identifier: MIT
# From a fresh checkout to a first plan: installs what is missing, builds into build/, proposes a
# placement for a sample log and shows the file that an engine would load.
set -eu
cd "$(dirname "$0")/.."

sh tools/install-deps.sh build
[ -f build/build.ninja ] || meson setup build
ninja -C build tools/eplb

show() {
    echo
    echo "+ $*"
    "$@"
}

show build/tools/eplb plan --load examples/data/synthetic.jsonl --experts 64 --dense-layers none \
    --gpus 8 --redundant 8 --out build/placement.json
show build/tools/eplb validate build/placement.json --gpus 8
show cat build/placement.json

#!/bin/sh
# SPDX-License-Identifier: MIT
# Installs with apt what a fresh Debian 12 lacks, as root or through sudo; does nothing when all is
# there.
#
# usage: sh tools/install-deps.sh build    to build the libraries, the command and the tests
#        sh tools/install-deps.sh check    to run the tests as tools/check.sh does
set -eu

build='gcc libc6-dev meson ninja-build pkg-config libcjson-dev libyaml-dev
    zlib1g-dev libzstd-dev libminizip-dev
    libcmocka-dev libglpk-dev'
check="$build g++ clang libclang-rt-dev valgrind python3"

case "${1:-}" in
build) wanted=$build ;;
check) wanted=$check ;;
*)
    sed -n 's/^# \(usage.*\|  *sh .*\)$/\1/p' "$0" >&2
    exit 2
    ;;
esac

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    echo "no apt here: make sure that these or their like are installed: $wanted" >&2
    exit 0
fi

missing=
for package in $wanted; do
    state=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) || state=none
    [ "$state" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

as_root=
if [ "$(id -u)" -ne 0 ]; then
    as_root=sudo
    command -v sudo >/dev/null || {
        echo "not root, and no sudo: install as root:$missing" >&2
        exit 1
    }
fi

echo "installing:$missing"
$as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq
# shellcheck disable=SC2086 # a list of words
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing

#!/bin/sh
# SPDX-License-Identifier: MIT
# Installs the build into a directory of its own and builds examples/plan.c against that, shared and
# static, with nothing but what pkg-config says; then runs it and the installed command.
#
# usage: installed_example.sh BUILD-DIRECTORY SOURCE-DIRECTORY PREFIX COMPILER...
set -eu
build=$1
source=$2
prefix=$3
shift 3

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
meson install -C "$build" --destdir "$root" --no-rebuild --quiet

pc=$(find "$root" -name eplb.pc)
PKG_CONFIG_PATH=$(dirname "$pc")
LD_LIBRARY_PATH=$(dirname "$PKG_CONFIG_PATH")
export PKG_CONFIG_PATH LD_LIBRARY_PATH
export PKG_CONFIG_SYSROOT_DIR="$root"

check_output() { # FILE
    grep -q '^GPU 3: experts' "$1" || { cat "$1"; exit 1; }
    grep -q '^busiest GPU: 1.0' "$1" || { cat "$1"; exit 1; }
}

# shellcheck disable=SC2046 # lists of flags
"$@" -Wall -Wextra -Werror "$source/examples/plan.c" $(pkg-config --cflags --libs eplb) \
    -o "$root/plan-shared"
"$root/plan-shared" >"$root/shared.txt"
check_output "$root/shared.txt"

# shellcheck disable=SC2046
"$@" "$source/examples/plan.c" $(pkg-config --cflags eplb) "$LD_LIBRARY_PATH/libeplb.a" -pthread \
    -o "$root/plan-static"
env -u LD_LIBRARY_PATH "$root/plan-static" >"$root/static.txt"
cmp "$root/shared.txt" "$root/static.txt"

# libeplb needs nothing but libc and what belongs to it.
if command -v objdump >/dev/null; then
    needed=$(objdump -p "$LD_LIBRARY_PATH/libeplb.so" | sed -n 's/^ *NEEDED *//p' |
        grep -v -e '^libc\.so' -e '^libpthread\.so' -e '^libgcc_s\.so' || true)
    [ -z "$needed" ] || { echo "libeplb needs $needed"; exit 1; }
fi

# What is installed finds the libraries where they belong, without ldconfig and LD_LIBRARY_PATH.
if command -v objdump >/dev/null; then
    for file in "$root$prefix/bin/eplb" "$LD_LIBRARY_PATH/libeplb-format.so"; do
        objdump -p "$file" | grep -Eq "^ *(RPATH|RUNPATH) +${LD_LIBRARY_PATH#"$root"}\$" || {
            echo "$file does not look in ${LD_LIBRARY_PATH#"$root"}"
            exit 1
        }
    done
fi

# libeplb-ilp is there when it was built, which needs GLPK.
if pkg-config --exists eplb-ilp; then
    cat >"$root/exact.c" <<'END'
#include <eplb/ilp.h>
static eplb_ilp *ilp;
int main(void) { return eplb_ilp_create(&ilp, NULL, NULL, NULL) != EPLB_OK || eplb_ilp_refiner(ilp) == NULL; }
END
    # shellcheck disable=SC2046
    "$@" -Wall -Wextra -Werror "$root/exact.c" $(pkg-config --cflags --libs eplb-ilp) -o "$root/exact"
    "$root/exact"
fi

pkg-config --exists eplb-format
"$root$prefix/bin/eplb" --version

#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds everything without a warning with gcc -O3 and -O0, clang -O2 and sanitizers, and with gcc
# -O1 and without codecs and GLPK, each from scratch below build-check/, and runs the tests of each build.
# Placements must be the same bytes in all of them: each compares its own with the golden ones.
#
# usage: sh tools/check.sh [tsan] [valgrind]    the words add slower runs
#
# What fails shows its log. The last line is `N passed, N failed`, or `N passed, N failed, N
# skipped`, in test cases over all runs; the exit code is 0 when none failed.
set -u
cd "$(dirname "$0")/.." || exit 1

for word in "$@"; do
    case "$word" in
    tsan | valgrind) ;;
    *)
        sed -n 's/^# \(usage.*\)/\1/p' tools/check.sh >&2
        exit 2
        ;;
    esac
done

root=build-check
passed=0
failed=0
skipped=0

add() { # PASSED FAILED SKIPPED
    passed=$((passed + $1))
    failed=$((failed + $2))
    skipped=$((skipped + $3))
}

quietly() { # LOG COMMAND...
    log=$1
    shift
    "$@" >"$log" 2>&1 && return 0
    echo "failed: $*"
    cat "$log"
    return 1
}

build() { # NAME CC CXX SETUP-OPTIONS
    rm -rf "${root:?}/$1"
    # shellcheck disable=SC2086 # a list of words
    quietly "$root/$1-setup.log" env CC="$2" CXX="$3" meson setup "$root/$1" --werror $4 &&
        quietly "$root/$1-build.log" ninja -C "$root/$1" --quiet
}

run_tests() { # NAME TEST-OPTION...
    name=$1
    shift
    quietly "$root/$name-test.log" meson test -C "$root/$name" --no-rebuild --quiet \
        --print-errorlogs "$@"
    status=$?
    counts=$(python3 tools/count_tests.py "$root/$name"/meson-logs/testlog*.json) || counts='0 1 0'
    # shellcheck disable=SC2086 # three numbers
    set -- $counts
    [ "$status" -eq 0 ] || [ "$2" -gt 0 ] || set -- "$1" 1 "$3"
    add "$1" "$2" "$3"
    echo "$name: $1 good, $2 bad, $3 left out"
}

verify() { # NAME CC CXX SETUP-OPTIONS TEST-OPTION...
    name=$1
    if build "$1" "$2" "$3" "$4"; then
        shift 4
        run_tests "$name" "$@"
    else
        add 0 1 0
    fi
}

# A finding ends the program; a request for too much memory is answered with NULL, as without.
export ASAN_OPTIONS=allocator_may_return_null=1
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
export TSAN_OPTIONS=halt_on_error=1:allocator_may_return_null=1
# Programs that bring their own malloc, to make it fail, keep it under valgrind.
export VALGRIND_OPTS='-q --leak-check=full --error-exitcode=99 --trace-children=yes
    --soname-synonyms=somalloc=nouserintercepts'
instrumented='--buildtype=debugoptimized -Db_lundef=false'

mkdir -p "$root"
quietly "$root/install-deps.log" sh tools/install-deps.sh check || exit 1

verify gcc gcc g++ '-Doptimization=3'
# Without optimisation for the same bytes; property tests run in the other builds.
verify gcc-O0 gcc g++ '--buildtype=debug' -t 4 --no-suite headers --no-suite property
verify gcc-bare gcc g++ '-Doptimization=1 -Dyaml=disabled -Dilp=disabled -Dgzip=disabled -Dzstd=disabled -Dzip=disabled' \
    --suite unit --suite golden --suite cli
verify clang clang clang++ '-Doptimization=2'
verify sanitize clang clang++ "$instrumented -Db_sanitize=address,undefined" -t 4
case " $* " in
*' tsan '*) verify tsan clang clang++ "$instrumented -Db_sanitize=thread" -t 8 ;;
esac
case " $* " in
*' valgrind '*)
    verify valgrind gcc g++ "$instrumented" -t 30 --wrapper valgrind --no-suite headers --no-suite install
    ;;
esac

summary="$passed passed, $failed failed"
[ "$skipped" -eq 0 ] || summary="$summary, $skipped skipped"
echo "$summary"
[ "$failed" -eq 0 ]

# What .ci/run and .ci/quick have in common; sourced by them.
# They check the committed state as a newcomer would meet it: with the commands of README.md, in
# fresh copies of the checkout, starting from Python 3.11 and pip alone. Needs the package index.
set -euo pipefail
exec </dev/null

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
work=$(mktemp -d)
# What began in the background is a group of processes, which ends as a whole.
set -m
: >"$work/failed"

end_groups() {
    local group
    for group in $(jobs -p); do
        kill -- "-$group" 2>/dev/null || true
    done
}

finish() {
    local status=$?
    end_groups
    if [[ -s $work/failed ]]; then
        printf '\n=== FAILED after %d s:\n' "$SECONDS" >&2
        sed 's/^/    /' "$work/failed" >&2
        status=1
    elif ((status)); then
        printf '\n=== FAILED after %d s, between the steps\n' "$SECONDS" >&2
    else
        printf '\n=== all passed in %d s\n' "$SECONDS"
    fi
    rm -rf "$work"
    exit "$status"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

unset PYTHONPATH PYTHONHOME PYTHONSAFEPATH VIRTUAL_ENV NUMBA_CACHE_DIR
# Random tests draw the same examples in each run of the checks; runs by hand look further.
export CI=true
# With the value 0, as pip reads it, nothing is compiled to bytecode but what is imported. That has
# to be kept then: without it, each new process takes seconds more to import SymPy and SciPy.
export PIP_NO_COMPILE=0
unset PYTHONDONTWRITEBYTECODE
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 PYTHONUNBUFFERED=1 MPLBACKEND=Agg
# Numba does not notice changes in other files, so start from an empty cache of kernels; all that
# runs here is of the same code, and derives and compiles once.
export GIANTSTEP_CACHE_DIR="$work/cache"
export GIANTSTEP_TEST_CACHE="$work/cache"
# The checkout may belong to another user than the one who checks it.
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'

fail() {
    printf '%s\n' "$*" >&2
    exit 1
}

# Set `used` to the processor seconds of what this shell has started and waited for. A substituted
# command would have its own.
count_used() {
    local file="$work/times.$BASHPID"
    times >"$file"
    used=$(awk 'NR == 2 { split($1, u, /[ms]/); split($2, s, /[ms]/)
                          printf "%d", 60 * (u[1] + s[1]) + u[2] + s[2] }' "$file")
}

# step NAME COMMAND: run it and go on, whatever comes of it: what fails is listed at the end.
step() {
    local name=$1 start=$SECONDS before used status=0
    count_used
    before=$used
    shift
    printf '\n=== %s\n' "$name"
    # In the background for "set -e", which means nothing to a command whose outcome is asked for.
    ("$@") &
    wait $! || status=$?
    count_used
    printf '=== %s: %d s, of processors %d s\n' "$name" "$((SECONDS - start))" "$((used - before))"
    if ((status)); then
        printf '=== FAILED: %s\n' "$name"
        printf '%s\n' "$name" >>"$work/failed"
    fi
}

# needed_step NAME COMMAND: one without which the others mean nothing.
needed_step() {
    step "$@"
    ! grep -qxF -- "$1" "$work/failed" || exit 1
}

# begin_aside NAME COMMAND: a step beside those that follow; end_aside waits for it and shows what it
# wrote.
begin_aside() {
    (trap - EXIT && step "$@") >"$work/aside.log" 2>&1 &
    aside=$!
}

end_aside() {
    printf '\n=== beside the steps above\n'
    wait "$aside" || printf 'a step beside others was killed\n' >>"$work/failed"
    cat "$work/aside.log"
}

# README.md says python3.11; where only a later python3 exists, let the name mean that one.
provide_python() {
    if ! python3.11 -c '' 2>/dev/null; then
        python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
            fail "neither python3.11 nor a later python3 is on the PATH"
        mkdir "$work/bin"
        printf '#!/bin/sh\nexec %q "$@"\n' "$(command -v python3)" >"$work/bin/python3.11"
        chmod +x "$work/bin/python3.11"
        export PATH="$work/bin:$PATH"
    fi
    python3.11 --version
}

# fresh_copy NAME: what is committed, or all files if this is no git checkout.
fresh_copy() {
    mkdir "$work/$1"
    if git -C "$root" rev-parse --verify --quiet HEAD >/dev/null 2>&1; then
        git -C "$root" archive HEAD | tar -x -C "$work/$1"
    else
        printf 'no commit to check: taking all files of %s\n' "$root"
        tar -c -C "$root" --exclude=./.git --exclude=./.venv . | tar -x -C "$work/$1"
    fi
}

# readme_command NAME FILE: the fenced block of FILE that follows the comment "ci: NAME".
readme_command() {
    awk -v mark="<!-- ci: $1 -->" '
        index($0, mark) { found = 1; next }
        found && /^[ \t]*```/ { if (inside) exit; inside = 1; next }
        inside
    ' "$2"
}

# run_readme_command NAME: in the checkout, as a newcomer would who goes through README.md.
run_readme_command() {
    cd "$work/tests"
    local command
    command=$(readme_command "$1" README.md)
    [[ -n $command ]] || fail "README.md has no fenced block after <!-- ci: $1 -->"
    printf '$ %s\n' "$command"
    bash -euo pipefail -c "$command"
}

run_readme_blocks() {
    "$work/tests/.venv/bin/python" -P "$work/tests/tests/run_readme.py" "$work/tests/README.md"
}

in_checkout() {
    cd "$work/tests"
    "$@"
}

run_static_checks() {
    step "ruff" in_checkout .venv/bin/ruff check .
    step "format" in_checkout .venv/bin/ruff format --check .
    step "types" in_checkout .venv/bin/mypy
}

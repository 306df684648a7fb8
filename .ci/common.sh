# What .ci/run and .ci/quick have in common; sourced by them.
# They check the committed state as a newcomer would meet it: with the commands of README.md, in
# fresh copies of the checkout, starting from Python 3.11 and pip alone. Needs the package index.
set -euo pipefail
exec </dev/null

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
work=$(mktemp -d)
current="preparation"
aside=""

finish() {
    local status=$?
    [[ -z $aside ]] || kill "$aside" 2>/dev/null || true
    rm -rf "$work"
    if ((status)); then
        printf '\n=== FAILED after %d s in: %s\n' "$SECONDS" "$current" >&2
    fi
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

step() {
    current=$1
    local start=$SECONDS before used
    count_used
    before=$used
    shift
    printf '\n=== %s\n' "$current"
    "$@"
    count_used
    printf '=== %s: %d s, of processors %d s\n' "$current" "$((SECONDS - start))" "$((used - before))"
}

# What keeps one core busy runs beside steps that do not keep the other one busy all the time; its
# output follows theirs.
begin_aside() {
    ("$@") >"$work/aside.log" 2>&1 &
    aside=$!
}

end_aside() {
    local status=0
    wait "$aside" || status=$?
    aside=""
    current="a step beside those above"
    printf '\n=== beside the steps above\n'
    cat "$work/aside.log"
    return "$status"
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

run_static_checks() {
    cd "$work/tests"
    .venv/bin/ruff check .
    .venv/bin/ruff format --check .
    .venv/bin/mypy
}

# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# The Python environment .build/venv, exactly as locked. Sourced by setup.sh after progress.sh.
#
# Two locks: requirements.lock runs a bench; requirements-dev.lock has the tools of tests and lint besides.
# An environment made from both serves both, so that `make qualify` after `make test` changes nothing.

readonly VENV=$BUILD_DIR/venv UV_VENV=$BUILD_DIR/uv
readonly LOCK_DIR=hw/host

# Print the interpreter that the environments are made from: $BENCHWRIGHT_PYTHON, else Debian's own.
python_find() {
    local python=${BENCHWRIGHT_PYTHON:-/usr/bin/python3}
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || die "$EXIT_MISSING" \
        "python: $python is not Python 3.11 or newer." \
        "Install Debian's python3 (12 or newer), or name an interpreter: BENCHWRIGHT_PYTHON=/path/to/python3"
    printf '%s' "$python"
}

# Let uv use the site's package mirror and certificates where only pip is told of them.
python_mirror_environment() {
    local python=$1 index
    if [[ -z ${UV_DEFAULT_INDEX:-}${UV_INDEX_URL:-} ]]; then
        index=${PIP_INDEX_URL:-$("$python" -m pip config get global.index-url 2>/dev/null || true)}
        [[ -z $index ]] || export UV_DEFAULT_INDEX=$index
    fi
    [[ -z ${PIP_CERT:-} || -n ${SSL_CERT_FILE:-} ]] || export SSL_CERT_FILE=$PIP_CERT
    export UV_HTTP_TIMEOUT=${UV_HTTP_TIMEOUT:-120}
}

python_bootstrap_uv() {
    local python=$1 key
    key=$(sha256sum <"$LOCK_DIR/uv.lock")
    stamp_matches uv "$key" && [[ -x $UV_VENV/bin/uv ]] && return 0
    rm -rf "$UV_VENV"
    step_run uv-venv.log "$python" -m venv "$UV_VENV"
    step_run uv-install.log "$UV_VENV/bin/python" -m pip install --require-hashes --no-deps -r "$LOCK_DIR/uv.lock"
    stamp_write uv "$key"
}

# Bring .build/venv up to a lock. $1: "bench" or "dev".
python_ensure() {
    local use=$1 python key runtime_key
    local -a locks=("$LOCK_DIR/requirements.lock")
    python=$(python_find) || exit
    runtime_key=$("$python" --version; sha256sum <"${locks[0]}")
    [[ $use != dev ]] || locks+=("$LOCK_DIR/requirements-dev.lock")
    key=$("$python" --version; cat "${locks[@]}" | sha256sum)
    [[ -x $VENV/bin/python ]] && stamp_matches "python-$use" "$key" && return 0

    step_begin python "environment from ${locks[*]}"
    stamp_clear python-bench
    stamp_clear python-dev
    python_bootstrap_uv "$python"
    python_mirror_environment "$UV_VENV/bin/python"
    [[ -x $VENV/bin/python && $("$VENV/bin/python" --version) == "$("$python" --version)" ]] ||
        step_run venv.log "$UV_VENV/bin/uv" venv --clear --no-project --python "$python" "$VENV"
    step_run python-sync.log "$UV_VENV/bin/uv" pip sync --require-hashes --only-binary :all: \
        --python "$VENV/bin/python" "${locks[@]}"
    stamp_write python-bench "$runtime_key"
    [[ $use != dev ]] || stamp_write python-dev "$key"
    step_end
}

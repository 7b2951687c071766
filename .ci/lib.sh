# Shared by .ci/run and .ci/long: steps with their seconds, steps beside others, what has to be installed.
# shellcheck shell=bash
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
exec </dev/null
HOME="${HOME:-$(getent passwd "$(id -u)" | cut -d: -f6)}"
export HOME

script="$(basename "$0")"
shared="../shared"
schemas="$shared/reference/oasis-stix-2.1-schemas"
binary="target/debug/threat-memory"
logs="target/ci-logs"
mkdir -p "$logs"

begun=0
took=()
declare -A beside=()
trap 'printf "\n.ci/%s: FAILED at: %s\n" "$script" "${current:-start}" >&2' ERR
# Nothing that was started beside outlives the script.
trap 'kill ${beside[@]+"${beside[@]}"} 2>/dev/null || true' EXIT

# Ends the step before, says how long it took, and begins the next.
step() {
    if [ -n "${current:-}" ]; then
        printf -- '-- %s s: %s\n' "$((SECONDS - begun))" "$current"
        took+=("$(printf '%5s s  %s' "$((SECONDS - begun))" "$current")")
    fi
    current="$*"
    begun="$SECONDS"
    [ -z "$current" ] || printf '\n== %s (after %s s)\n' "$current" "$SECONDS"
}

# Starts a function beside what follows. Its output is printed when it is waited for.
start_beside() {
    (
        trap - ERR EXIT
        since="$SECONDS"
        "$@"
        printf -- '-- %s s beside other steps: %s\n' "$((SECONDS - since))" "$*"
    ) >"$logs/$1" 2>&1 &
    beside["$1"]=$!
}

# Waits for what was started beside, and fails if it failed.
wait_for() {
    local failed=0
    wait "${beside[$1]}" || failed=$?
    unset "beside[$1]"
    cat "$logs/$1"
    return "$failed"
}

# Prints the seconds of each step.
print_steps() {
    step ""
    printf '\nSeconds of each step:\n'
    printf '%s\n' "${took[@]}"
}

# How many times slower the machine is now than in a normal hour, in percent: at least 100, at most 250. Limits of time are
# raised by it, because shared machines differ by a factor of two from hour to hour.
measure_slowness() {
    python3 - <<'EOF'
import time

NORMAL = 1.3


def work():
    begun = time.perf_counter()
    sum(number * number & 7 for number in range(12_000_000))
    return time.perf_counter() - begun


print(int(100 * min(2.5, max(1.0, min(work() for _ in range(3)) / NORMAL))))
EOF
}

check_toolchain() {
    if ! command -v cargo >/dev/null && [ -f "${CARGO_HOME:-$HOME/.cargo}/env" ]; then
        # shellcheck disable=SC1091
        . "${CARGO_HOME:-$HOME/.cargo}/env"
    fi
    cargo --version
    local component
    for component in fmt clippy; do
        if ! cargo "$component" --version; then
            printf '\n*** cargo %s is missing: the change CANNOT be checked on this machine.\n' "$component" >&2
            printf '*** Install it first: rustup component add rustfmt clippy\n\n' >&2
            return 1
        fi
    done
}

# Installs the Debian packages of commands that are missing: `install_packages COMMAND PACKAGES …`.
install_packages() {
    local packages=() as_root=()
    while [ "$#" -gt 0 ]; do
        # shellcheck disable=SC2206
        command -v "$1" >/dev/null || packages+=($2)
        shift 2
    done
    if [ "${#packages[@]}" -eq 0 ]; then
        echo "nothing is missing"
        return
    fi
    [ "$(id -u)" -eq 0 ] || as_root=(sudo -n)
    "${as_root[@]}" apt-get update
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${packages[@]}"
}

# Python with these packages at target/NAME-venv: `make_venv NAME REQUIREMENT …`.
make_venv() {
    local venv="target/$1-venv"
    [ -x "$venv/bin/python" ] || python3 -m venv "$venv"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "${@:2}"
}

# What the judges outside the project need. Takes the network rather than the processor.
install_judges() {
    make_venv openapi "schemathesis==4.32.5" "openapi-spec-validator==0.9.0"
    # The others are what medallion depends on, pinned because it does not pin them itself.
    make_venv taxii "medallion==3.0.0" "Flask==3.1.3" "Flask-HTTPAuth==4.8.1" "Werkzeug==3.1.9" "Jinja2==3.1.6" \
        "MarkupSafe==3.0.4" "blinker==1.9.0" "click==8.5.1" "itsdangerous==2.2.0" "pytz==2026.6" "six==1.17.0"
    make_venv taxii-clients "taxii2-client==2.3.0" "cytaxii2==1.0.1" "requests==2.34.2" "pytz==2026.6" "six==1.17.0"
    make_venv mcp "mcp==2.3.0"
    make_venv conformance "stix2-validator==3.3.2" "stix2==3.0.2"
    make_venv lookup "pymispwarninglists==1.7.0"
    (cd web/vendor/build && npm ci && npm run check)
    (cd tests/browser && npm ci)
}

# What makes STIX of MISP events as other tools do, and reads ATT&CK as its users do.
install_other_tools() {
    make_venv others "misp-stix==2026.10.12" "mitreattack-python==6.3.1"
}

# What other tools send is kept whole: ingested, exported and compared.
check_kept() {
    target/others-venv/bin/python .ci/kept.py "$binary" --shared "$shared" --exports "$THREAT_MEMORY_EXPORT_DIR"
}

# What reads the API descriptions as the authors of clients do. openapi-generator comes with its Java program.
install_clients() {
    install_packages java default-jre-headless
    make_venv clients "openapi-generator-cli==7.26.0" "openapi-python-client==0.29.1" "urllib3>=2.7" "python-dateutil>=2.8.2" \
        "pydantic>=2.11" "typing-extensions>=4.7.1"
    mkdir -p target/clients
    cp .ci/clients/package.json .ci/clients/package-lock.json target/clients
    (cd target/clients && npm ci --ignore-scripts)
}

# The generators and linters of clients, and a generated client that does the tour of README.md.
check_clients() {
    target/clients-venv/bin/python .ci/clients/clients.py "$binary" --tools target/clients
}

# The tests, the demo and the feeds leave every bundle that they export here, for the conformance check.
# Tests that need ../shared or a database server write here that they did not run.
keep_records() {
    export THREAT_MEMORY_EXPORT_DIR="$PWD/target/exports"
    rm -rf "$THREAT_MEMORY_EXPORT_DIR"
    mkdir -p "$THREAT_MEMORY_EXPORT_DIR"
    export THREAT_MEMORY_SKIP_LOG="$PWD/target/skipped-tests"
    rm -f "$THREAT_MEMORY_SKIP_LOG"
}

# Fails if a test did not run, unless that is said to be right: `check_skips [PATTERN OF WHAT MAY BE SKIPPED]`.
check_skips() {
    local all="" skips=""
    [ ! -f "$THREAT_MEMORY_SKIP_LOG" ] || all="$(sort -u "$THREAT_MEMORY_SKIP_LOG")"
    skips="$(grep -vE "${1:-^$}" <<<"$all" || true)"
    if [ -n "${1:-}" ]; then
        printf '%s tests, or halves of them, are left to .ci/long (%s)\n' "$(grep -cE "$1" <<<"$all" || true)" "$1"
    fi
    if [ -z "$skips" ]; then
        echo "no other test was skipped"
        return
    fi
    printf '%s\n' "$skips"
    if [ -z "${THREAT_MEMORY_WITHOUT_SHARED:-}" ]; then
        printf '%s is needed; set THREAT_MEMORY_WITHOUT_SHARED=1 where it is not to be had\n' "$shared" >&2
        return 1
    fi
}

# Takes arguments of `node --test`.
check_pages() {
    (cd tests/browser && THREAT_MEMORY_BINARY="$PWD/../../$binary" CHROMIUM="$(command -v chromium)" npm test -- "$@")
}

# Both services against their own descriptions: `check_openapi HOSTED_CASES LOCAL_CASES_PER_OPERATION`.
check_openapi() {
    target/openapi-venv/bin/python .ci/openapi.py "$binary" --cases "$1"
    target/openapi-venv/bin/python .ci/openapi_local.py "$binary" --cases "$2"
}

# The TAXII server with clients of others; takes files with more objects.
check_taxii_server() {
    target/taxii-clients-venv/bin/python .ci/taxii_clients.py "$binary" --objects "$@"
}

# Both services with the client of the Model Context Protocol: `check_agents [--calls N] [--many N]`.
check_agents() {
    target/mcp-venv/bin/python .ci/agents/clients.py "$binary" "$@"
}

check_feeds() {
    if [ -d "$shared/data/taxii" ]; then
        target/taxii-venv/bin/python .ci/taxii.py "$binary" --shared "$shared"
    else
        echo "skipped: $shared/data/taxii is not there"
    fi
}

# The exported bundles against judges that are not ours: `check_exports [--validate N]`.
check_exports() {
    if [ -d "$schemas" ]; then
        target/conformance-venv/bin/python .ci/conformance.py "$THREAT_MEMORY_EXPORT_DIR" --schemas "$schemas" "$@"
    else
        echo "skipped: $schemas is not there"
    fi
}

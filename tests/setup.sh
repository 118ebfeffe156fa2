#!/usr/bin/env bash
# Installs what is missing, and says what it does. Usage: setup.sh base|python|vm|oci|web|browser|counters|bench
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf '[setup] %s\n' "$*"; }

apt_install() { # command, package
    command -v "$1" >/dev/null 2>&1 || install_package "$1" "$2"
}

install_package() { # what is missing, package
    if ! command -v apt-get >/dev/null 2>&1; then
        say "$1 is missing and there is no apt-get: please install $2 by hand"
        exit 1
    fi
    say "$1 is missing: installing the package $2"
    local sudo=""
    [ "$(id -u)" = 0 ] || sudo=sudo
    $sudo apt-get update -qq
    $sudo apt-get install -y -qq "$2" >/dev/null
}

base() {
    apt_install cc build-essential
    if ! command -v cargo >/dev/null 2>&1 && [ -x "$HOME/.cargo/bin/cargo" ]; then
        export PATH="$HOME/.cargo/bin:$PATH" # the callers do the same
    fi
    if ! command -v cargo >/dev/null 2>&1; then
        apt_install rustup rustup
        say "installing the stable Rust toolchain with rustup"
        rustup default stable
    fi
}

python() {
    apt_install python3 python3
    if [ ! -x .venv/bin/python ]; then
        say "making a virtual environment in .venv"
        if ! python3 -m venv .venv 2>/dev/null; then
            rm -rf .venv
            install_package "the module venv of python3" python3-venv
            python3 -m venv .venv
        fi
    fi
    if ! .venv/bin/python -c 'import importlib.metadata as m, sys; [m.version(l.split("==")[0]) == l.strip().split("==")[1] or sys.exit(1) for l in open("tests/requirements.txt") if "==" in l]' 2>/dev/null; then
        say "installing the public yt client and pytest into .venv (tests/requirements.txt)"
        .venv/bin/pip install --quiet --disable-pip-version-check -r tests/requirements.txt
    fi
}

# For tests/vm: the one step that may be skipped, so nothing here ends the run. What is needed for one of its parts only
# need not be had.
vm() {
    for need in mkfs.xfs:xfsprogs qemu-system-x86_64:qemu-system-x86 busybox:busybox-static cpio:cpio strip:binutils \
        mkfs.ext4:e2fsprogs; do
        command -v "${need%%:*}" >/dev/null 2>&1 && continue
        vm_package "${need%%:*}" "${need##*:}" || [ "$need" = mkfs.xfs:xfsprogs ] || return 1
    done
}

vm_package() {
    command -v apt-get >/dev/null 2>&1 || return 1
    say "$1 is missing: installing the package $2"
    local sudo=""
    [ "$(id -u)" = 0 ] || sudo="sudo -n"
    $sudo apt-get update -qq && $sudo apt-get install -y -qq --no-install-recommends "$2" >/dev/null
}

# What the job environment `oci` needs, and a shell for root file systems of jobs. The tests of what is not there
# are skipped, so nothing here ends the run.
oci() {
    for need in runc:runc busybox:busybox-static; do
        command -v "${need%%:*}" >/dev/null 2>&1 && continue
        command -v apt-get >/dev/null 2>&1 || return 1
        (install_package "${need%%:*}" "${need##*:}") || return 1
    done
}

# What `make bench-check` counts with; without one of them its part is skipped, so nothing here ends the run.
counters() {
    for need in valgrind:valgrind perf:linux-perf; do
        command -v "${need%%:*}" >/dev/null 2>&1 && continue
        command -v apt-get >/dev/null 2>&1 || return 1
        (install_package "${need%%:*}" "${need##*:}") || return 1
    done
}

# The load tool of two parts of bench/run.py.
bench() {
    apt_install wrk wrk
}

# What the web page is built with. Vite wants a Node.js that not every distribution has, and the binary can
# do without its page, so nothing here ends the run.
web() {
    if ! command -v npm >/dev/null 2>&1; then
        local offered
        offered=$(apt-cache policy nodejs 2>/dev/null | sed -n 's/.*Candidate: *//p')
        if dpkg --compare-versions "${offered:-0}" ge 20.19 2>/dev/null; then
            install_package npm npm || return 1
        fi
    fi
    if ! command -v npm >/dev/null 2>&1 || ! node -e '
        const [major, minor] = process.versions.node.split(".").map(Number);
        process.exit(major > 22 || (major === 22 && minor >= 12) || (major === 20 && minor >= 19) ? 0 : 1)'; then
        say "Node.js 20.19, 22.12 or later with npm is not there: the web page is left out"
        return 1
    fi
    if [ ! -d web/node_modules ] || [ web/package-lock.json -nt web/node_modules ]; then
        say "installing the packages of the web page (web/package-lock.json)"
        (cd web && npm ci --no-audit --no-fund --loglevel=error) || return 1
        touch web/node_modules
    fi
}

# The headless shell is the same browser without windows: it takes half the time of the processor.
browser() {
    command -v chromium-headless-shell >/dev/null 2>&1 && return
    (install_package chromium-headless-shell chromium-headless-shell) && return
    command -v chromium >/dev/null 2>&1 || install_package chromium chromium
}

case "${1:-base}" in
    base) base ;;
    python) base; python ;;
    vm) vm ;;
    oci) oci ;;
    web) web ;;
    browser) browser ;;
    counters) counters ;;
    bench) bench ;;
    *) echo "usage: setup.sh base|python|vm|oci|web|browser|counters|bench" >&2; exit 2 ;;
esac

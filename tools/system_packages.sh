#!/usr/bin/env bash
# Installs what PandoMQ needs from the system: `system_packages.sh build PYTHON` or `system_packages.sh tests`.
#   build   Python with venv and headers, and a C compiler: for the broker and the demo
#   tests   node with npm, tools for networks and file systems that the tests break, and a browser for reports
# The script requests nothing that is already there. Without root or apt it only names what is missing.
set -euo pipefail

missing=()

needed_to_build() {
    local python="${1:-python3}"
    if ! command -v "$python" >/dev/null; then
        missing+=(python3 python3-venv python3-dev)
    else
        "$python" -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3-venv)
        "$python" -c 'import pathlib, sys, sysconfig; sys.exit(not pathlib.Path(sysconfig.get_path("include"), "Python.h").exists())' ||
            missing+=(python3-dev)
    fi
    command -v cc >/dev/null || missing+=(gcc libc6-dev)
}

needed_by_tests() {
    command -v npm >/dev/null || missing+=(nodejs npm)
    command -v ip >/dev/null && command -v tc >/dev/null || missing+=(iproute2)
    command -v nft >/dev/null || missing+=(nftables)
    command -v mkfs.ext4 >/dev/null || missing+=(e2fsprogs)
    command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null ||
        missing+=(chromium fonts-dejavu-core)
}

case "${1:-}" in
build) needed_to_build "${2:-}" ;;
tests) needed_by_tests ;;
*) echo "usage: system_packages.sh build [PYTHON] | tests" >&2; exit 2 ;;
esac

[ ${#missing[@]} -gt 0 ] || exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends "${missing[@]}"
else
    echo "missing on this system, and installed by root only: ${missing[*]}" >&2
fi

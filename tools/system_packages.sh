#!/usr/bin/env bash
# Installs what the build and the tests need from the system: Python with venv and headers, a C compiler, node with npm,
# what makes networks for the tests to break, and a browser in which reports are looked at.
# Asks for nothing that is there already; without root or apt it only names what is missing.
set -euo pipefail

python="${1:-}"
[ -n "$python" ] || python=python3
missing=()

if ! command -v "$python" >/dev/null; then
    missing+=(python3 python3-venv python3-dev)
else
    "$python" -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3-venv)
    "$python" -c 'import pathlib, sys, sysconfig; sys.exit(not pathlib.Path(sysconfig.get_path("include"), "Python.h").exists())' ||
        missing+=(python3-dev)
fi
command -v cc >/dev/null || missing+=(gcc libc6-dev)
command -v npm >/dev/null || missing+=(nodejs npm)
command -v ip >/dev/null && command -v tc >/dev/null || missing+=(iproute2)
command -v nft >/dev/null || missing+=(nftables)
command -v mkfs.ext4 >/dev/null || missing+=(e2fsprogs)
command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null ||
    missing+=(chromium fonts-dejavu-core)

[ ${#missing[@]} -gt 0 ] || exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends "${missing[@]}"
else
    echo "missing on this system, and installed by root only: ${missing[*]}" >&2
fi

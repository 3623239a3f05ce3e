#!/bin/sh
# Installs what some tests need and no Python package brings: podman with runc, a static busybox to
# make an image of, faketime, which sets the clock of one program wrong, iproute2, which makes networks,
# strace, which shows what the kernel is asked for, and chromium without windows, which shows the web UI. Where it
# cannot, it says so, and the tests that need them fail with the reason.
set -eu

missing=""
for program in podman runc busybox faketime ip strace chromium-headless-shell; do
    command -v "$program" >/dev/null 2>&1 || missing="$missing $program"
done
# One that needs libraries would not run in an image of its own.
if command -v busybox >/dev/null 2>&1 && ldd "$(command -v busybox)" >/dev/null 2>&1; then
    missing="$missing busybox-static"
fi
[ -n "$missing" ] || exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    apt-get install -qq -y --no-install-recommends podman runc busybox-static faketime iproute2 strace chromium-headless-shell >/dev/null
else
    echo "not installed:$missing; install podman, runc, busybox-static, faketime, iproute2, strace and chromium-headless-shell, or the tests of the kind 'container', of clocks, of networks, of syncs and of the web UI will fail" >&2
fi

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Fetches the libraries of another architecture into build/sysroot-DEBIAN_ARCH, once; of another release of Debian
# into build/sysroot-DEBIAN_ARCH-SUITE.
#   [SUITE=bullseye] scripts/sysroot.sh arm64|amd64 PACKAGE...
# apt-get resolves and fetches with a state of its own, so that this machine's packages and architectures stay
# as they are, and no rights are needed. What cannot be had is the last line of stderr, with exit status 1.
source "$(dirname "$0")/common.sh"
ARCH=$1
shift
SUITE=${SUITE:-}
NAME=$ARCH${SUITE:+-$SUITE}
SYSROOT=$ROOT/build/sysroot-$NAME
STATE=$ROOT/build/apt-$NAME

# This machine's settings (mirrors, keys, proxies, pins) without its hooks, for another architecture and place.
apt_settings() {
    apt-config dump | grep -vE '^[^"]*::((Pre|Post)-(Invoke|Install)|Architectures)'
    cat <<END
APT::Architecture "$ARCH";
APT::Architectures { "$ARCH"; };
APT::Sandbox::User "root";
Dir::Etc::main "/dev/null";
Dir::Etc::parts "/dev/null";
Dir::State "$STATE";
Dir::State::status "$STATE/status";
Dir::Cache "$STATE/cache";
END
    if [ -n "$SUITE" ]; then
        echo "Dir::Etc::sourcelist \"$STATE/sources.list\"; Dir::Etc::sourceparts \"/dev/null\";"
    fi
}

fetch() {
    mkdir -p "$STATE/lists/partial" "$STATE/cache/archives/partial"
    : >"$STATE/status"
    if [ -n "$SUITE" ]; then
        echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $(debian_mirror) $SUITE main" >"$STATE/sources.list"
    fi
    apt_settings >"$STATE/apt.conf"
    export APT_CONFIG=$STATE/apt.conf DEBIAN_FRONTEND=noninteractive
    # A mirror of another vendor may lack this architecture: what counts is that the packages are found.
    apt-get update -qq || true
    apt-get install -y -qq --download-only --no-install-recommends "$@"
}

# The links that the packages' own scripts make when they are installed.
finish_links() {
    local folder target link
    folder=$(echo "$SYSROOT"/usr/lib/*/pkgconfig)
    if [ -e "$folder/hdf5-serial.pc" ] && [ ! -e "$folder/hdf5.pc" ]; then
        ln -sf hdf5-serial.pc "$folder/hdf5.pc"
    fi
    # Links to absolute names would lead out of the sysroot.
    find "$SYSROOT" -type l -lname '/*' | while read -r link; do
        target=$SYSROOT$(readlink "$link")
        ln -sfn "$(realpath -m --relative-to="$(dirname "$link")" "$target")" "$link"
    done
}

unpack() {
    rm -rf "$SYSROOT"
    mkdir -p "$SYSROOT"
    for package in "$STATE"/cache/archives/*.deb; do dpkg-deb -x "$package" "$SYSROOT"; done
    rm -rf "$SYSROOT/usr/share"
    finish_links
}

key="$(. /etc/os-release; echo "${SUITE:-$ID $VERSION_ID}") $*"
if stamp_is "$SYSROOT/.stamp" "$key"; then exit 0; fi
for program in apt-get apt-config dpkg-deb; do
    command -v $program >/dev/null || die "there is no $program here"
done
fetch "$@" >"$ROOT/build/sysroot-$NAME.log" 2>&1 ||
    die "apt-get cannot fetch packages for $ARCH: $(grep '^E:' "$ROOT/build/sysroot-$NAME.log" | head -n 1)"
unpack
rm -rf "$STATE"
stamp_set "$SYSROOT/.stamp" "$key"

# SPDX-License-Identifier: Apache-2.0
# Bare Debian systems by debootstrap, in which wheels are tested; sourced after scripts/common.sh by a script that sets
# ARCH and EMULATOR. A system is a folder below $SYSTEMS; `inside` runs a command in the one named by $SYSTEM.
DEBIAN=$(debian_arch "$ARCH")
SYSTEMS=$ROOT/build/wheel/$ARCH/test/systems
# Debian 11 has no Python that is new enough: this one is built there, once, from Debian 12's source.
PYTHON_PACKAGE=python3.11
PYTHON_BUILT=$ROOT/build/wheel/$ARCH/test/$PYTHON_PACKAGE

# The packages of a system beyond Debian's minimum. bullseye has what the Python built for it is linked with.
packages_of() {
    case $1 in
    bullseye) echo ca-certificates,libffi7,libssl1.1,man-db ;;
    bullseye-build) echo build-essential,libbz2-dev,libffi-dev,liblzma-dev,libssl-dev,zlib1g-dev ;;
    *) echo ca-certificates,man-db,python3,python3-pip ;;
    esac
}

# Runs a command inside of the system; what is mounted for it goes with it, also $TORCH, a folder with torch. Where
# that is mounted must not be called torch: beside the program that runs, an empty folder would be a package of that name.
inside() {
    unshare --mount --propagation private bash -ec '
        root=$1
        shift
        mount --rbind /proc "$root/proc"
        mount --rbind /dev "$root/dev"
        if [ -n "$TORCH" ]; then
            mount --bind "$TORCH" "$root/test/with-torch"
            mount -o remount,bind,ro "$root/test/with-torch"
            set -- PYTHONPATH=/test/with-torch "$@"
        fi
        exec chroot "$root" env -i PATH=/usr/local/bin:/usr/bin:/usr/sbin:/bin:/sbin HOME=/root \
            XDG_CACHE_HOME=/test/cache LC_ALL=C.UTF-8 SSL_CERT_FILE="${TRUSTED:-}" QEMU_CPU="$QEMU_CPU" PIP_BREAK_SYSTEM_PACKAGES=1 \
            PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore "$@"' \
        bash "$SYSTEM" "$@"
}

# The first stage of a system that this machine cannot run yet stops before its programs are run.
bootstrap() {
    local name=${SYSTEM##*/} log=$ROOT/build/debootstrap.log
    rm -rf "$SYSTEM"
    mkdir -p "$SYSTEMS"
    debootstrap "$@" --arch="$DEBIAN" --variant=minbase --include="$(packages_of "$name")" "${name%-build}" "$SYSTEM" \
        "$(debian_mirror)" >"$log" 2>&1 || { tail -n 20 "$log" >&2; die "debootstrap cannot make $name: see $log"; }
}

# debootstrap's second stage runs the system's programs. It tries to make devices, which user namespaces forbid, unless it
# is told of a container.
make_system() {
    if [ -e "$SYSTEM/.complete" ]; then return; fi
    if [ ${#EMULATOR[@]} -gt 0 ]; then
        inside env container=lxc /debootstrap/debootstrap --second-stage
    else
        bootstrap
    fi
    if [ "${SYSTEM##*/}" = bullseye ]; then cp -a "$PYTHON_BUILT/usr/local/." "$SYSTEM/usr/local/"; fi
    touch "$SYSTEM/.complete"
}

# Python for Debian 11: the project's own source, without Debian's changes, which are for Debian's paths.
make_python() {
    local SYSTEM=$SYSTEMS/bullseye-build archive
    if [ -e "$PYTHON_BUILT/.complete" ]; then return; fi
    archive=$("$VENV/bin/python" packaging/sources.py --only "$PYTHON_PACKAGE" "$ROOT/build/wheel/sources" \
        "$(debian_mirror)" bookworm)
    make_system
    rm -rf "$SYSTEM/python" "$SYSTEM/built"
    mkdir "$SYSTEM/python"
    tar -C "$SYSTEM/python" --strip-components=1 -xf "$archive"
    # Compiled in half the time: nothing is measured with it.
    inside sh -ec "cd /python; export OPT='-DNDEBUG -O1'; ./configure --quiet --prefix=/usr/local --disable-test-modules
        make -s -j $(jobs); make -s install DESTDIR=/built"
    inside /built/usr/local/bin/python3 -c 'import bz2, ctypes, lzma, ssl, zlib'
    rm -rf "$PYTHON_BUILT"
    mv "$SYSTEM/built" "$PYTHON_BUILT"
    rm -rf "$SYSTEM" "$PYTHON_BUILT/usr/local/include" # systems of users have no headers
    touch "$PYTHON_BUILT/.complete"
}

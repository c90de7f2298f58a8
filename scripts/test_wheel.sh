#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Tests the wheel in dist/ as users meet it: in bare systems that have Python and pip, no compiler and no development
# packages; without torch and with it. Speaks TAP. Needs root, for chroot; scripts/wheel.sh to have run; and the package
# installed in .venv, whose batches must be the same.
#   scripts/test_wheel.sh [x86_64|aarch64] [SUITE...]     default: this machine's architecture; bullseye bookworm trixie
# Systems of the other architecture run under qemu, about ten times slower. DIST is another folder than dist/.
source "$(dirname "$0")/common.sh"
ARCH=$(uname -m)
if [[ ${1:-} =~ ^(x86_64|aarch64)$ ]]; then ARCH=$1; shift; fi
WORK=$ROOT/build/wheel/$ARCH/test
DIST=${DIST:-dist}
SUITES=("$@")
[ ${#SUITES[@]} -gt 0 ] || SUITES=(bullseye bookworm trixie)
WHEEL=$(ls "$DIST"/stoker-*-manylinux_2_31_"$ARCH".whl 2>/dev/null) ||
    die "there is no wheel in $DIST: scripts/wheel.sh $ARCH builds it"
VERSION=$(cut -d- -f2 <<<"${WHEEL##*/}")
[ "$(id -u)" = 0 ] || { echo "ok 1 - the wheel in bare systems # SKIP only root may chroot"; echo 1..1; exit 0; }
# For programs of the wheel that run outside of the systems.
EMULATOR=()
export QEMU_CPU='' TORCH=''
source packaging/systems.sh
if [ "$ARCH" != "$(uname -m)" ]; then
    EMULATOR=("qemu-$ARCH" -L "$ROOT/build/sysroot-$DEBIAN-bullseye")
    QEMU_CPU=$(emulated_cpu "$ARCH")
fi

bare() {
    inside sh -c 'for name in cc gcc clang pkg-config stoker; do ! command -v $name || exit 1; done'
    inside dpkg-query -W -f '${Package}\n' | no_line -e '-dev$'
}

# The list of all files, without what Python and pip keep for themselves.
files() { (cd "$SYSTEM" && find . -path ./proc -prune -o -path ./dev -prune -o -path ./test -prune -o -path ./tmp -prune -o -type f -print | sort); }

python_version() { inside python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])'; }
pip() { inside python3 -m pip "$@"; }

# NumPy comes from this machine, so that the system needs no network.
install() {
    rm -rf "$SYSTEM/test"
    mkdir -p "$SYSTEM/test/wheels" "$SYSTEM/test/with-torch"
    "$VENV/bin/python" -m pip download --quiet --only-binary :all: --python-version "$(python_version)" --no-deps \
        --platform "manylinux_2_28_$ARCH" --platform "manylinux_2_27_$ARCH" --platform "manylinux_2_17_$ARCH" \
        --dest "$SYSTEM/test/wheels" numpy
    cp "$WHEEL" "$SYSTEM/test/wheels"
    cp packaging/check_installed.py "$SYSTEM/test"
    cp -r "$WORK/samples" "$SYSTEM/test"
    pip install --quiet --no-index --no-compile --no-cache-dir --find-links /test/wheels numpy
    files >"$WORK/before-$SUITE"
    pip install --quiet --no-index --no-cache-dir --find-links /test/wheels stoker 2>"$WORK/stderr"
    silent
    pip check
}

# torch for the system's Python, mostly hard links into uv's cache. It is not installed but mounted: 5.4 GB.
fetch_torch() {
    local version folder
    version=$(python_version)
    folder=$WORK/torch-$version
    if [ -e "$folder/.complete" ]; then return; fi
    rm -rf "$folder"
    uv pip install --quiet --target "$folder" --python "$VENV/bin/python" --python-version "$version" \
        --python-platform "$ARCH-manylinux_2_31" --only-binary :all: torch torchvision pillow
    touch "$folder/.complete"
}

uninstall() {
    pip uninstall --quiet --yes stoker
    files >"$WORK/after-$SUITE"
    # Python may have compiled files of its own library meanwhile.
    diff <(grep -v __pycache__ "$WORK/before-$SUITE") <(grep -v __pycache__ "$WORK/after-$SUITE")
    no_line -i stoker "$WORK/after-$SUITE"
}

# Nothing was written to stderr by a command that succeeded.
silent() {
    [ -s "$WORK/stderr" ] || return 0
    echo "stderr is not silent:"
    cat "$WORK/stderr"
    return 1
}
check() {
    inside python3 /test/check_installed.py "$@" 2>"$WORK/stderr" || { cat "$WORK/stderr"; return 1; }
    silent
}
with_torch() { TORCH=$WORK/torch-$(python_version) check "$@"; }
# Debian's releases and their C libraries.
glibc_of() {
    case $1 in
    bullseye) echo 2.31 ;;
    bookworm) echo 2.36 ;;
    trixie) echo 2.41 ;;
    *) die "which glibc does $1 have? Add it to glibc_of" ;;
    esac
}
with_http2() { check by_url "$URL" && grep -q 'HTTP/2.0' "$WORK/server/access.log"; }
trusting() { TRUSTED=/test/samples/tls.pem with_http2; }
# The system's own list of authorities is found without a word.
trusted_by_the_system() {
    local list=$SYSTEM/etc/ssl/certs/ca-certificates.crt status=0
    cp "$list" "$list.kept"
    cat "$WORK/samples/tls.pem" >>"$list"
    check by_url "$URL" || status=$?
    mv "$list.kept" "$list"
    return $status
}

# A server on this machine that speaks TLS and HTTP/2; the systems share its network.
start_server() {
    local folder=$WORK/server kind
    rm -rf "$folder"
    mkdir -p "$folder"
    PORT=$("$VENV/bin/python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    URL=https://127.0.0.1:$PORT/shard-000000.tar
    openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1 \
        -out "$WORK/samples/tls.pem" -keyout "$folder/key.pem" 2>/dev/null
    {
        echo "daemon off; user root; pid $folder/pid; error_log $folder/log; worker_processes 1;"
        echo "events { worker_connections 256; } http { access_log $folder/access.log;"
        for kind in client_body proxy fastcgi uwsgi scgi; do echo "${kind}_temp_path $folder/$kind;"; done
        echo "server { listen 127.0.0.1:$PORT ssl http2; root $WORK/samples/packed;"
        echo "ssl_certificate $WORK/samples/tls.pem; ssl_certificate_key $folder/key.pem; } }"
    } >"$folder/nginx.conf"
    /usr/sbin/nginx -p "$folder" -c "$folder/nginx.conf" 2>>"$folder/log" &
    SERVER=$!
    trap 'kill "$SERVER" 2>/dev/null' EXIT
    for _ in $(seq 100); do
        if (: <"/dev/tcp/127.0.0.1/$PORT") 2>/dev/null; then return; fi
        sleep 0.1
    done
    cat "$folder/log" >&2
    die "nginx does not start here"
}

# Runs this script again in namespaces in which the kernel starts the other architecture's programs by qemu; the rest
# of the machine does not notice. Users and groups keep their numbers, which only a process outside may arrange.
emulate() {
    local inside child
    static_qemu >/dev/null
    exec 3>&1
    coproc unshare --user --mount --propagation private bash -c 'echo $$; read -r; exec "$@" >&3 3>&- </dev/null' \
        bash env EMULATED=yes "$ROOT/scripts/test_wheel.sh" "$ARCH" "${SUITES[@]}"
    child=$COPROC_PID
    read -r inside <&"${COPROC[0]}" || die "unshare cannot make a user namespace here"
    echo 0 0 4294967295 >"/proc/$inside/uid_map"
    echo 0 0 4294967295 >"/proc/$inside/gid_map"
    echo >&"${COPROC[1]}"
    wait "$child"
}

# The emulator must be static: the systems do not have this machine's libraries.
static_qemu() {
    local path
    for path in $(command -v "qemu-$ARCH-static" "qemu-$ARCH"); do
        if ! ldd "$path" 2>/dev/null | grep -q '=>'; then
            echo "$path"
            return
        fi
    done
    die "to test a wheel for $ARCH on $(uname -m), a static qemu-$ARCH is needed: apt-get install qemu-user-static"
}

# The kernel opens the emulator now (flag F), so that it need not be in the systems. The magic is the beginning of an
# ELF file's header: a program or a shared object for the machine.
register_emulator() {
    local machine any='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
    case $ARCH in x86_64) machine=3e ;; aarch64) machine=b7 ;; esac
    mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc ||
        die "this kernel has no binfmt_misc for user namespaces: Linux 6.7 or newer is needed"
    printf '%s\n' ":stoker-$ARCH:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x$machine\x00:$any:$(static_qemu):F" \
        >/proc/sys/fs/binfmt_misc/register
}

if [ -z "${EMULATED:-}" ]; then scripts/setup.sh wheel >&2; fi
if [ ${#EMULATOR[@]} -gt 0 ]; then
    if [ -z "${EMULATED:-}" ]; then
        for SUITE in "${SUITES[@]}"; do
            SYSTEM=$SYSTEMS/$SUITE
            [ -e "$SYSTEM/.complete" ] || bootstrap --foreign
        done
        SYSTEM=$SYSTEMS/bullseye-build
        [[ " ${SUITES[*]} " != *" bullseye "* ]] || [ -e "$PYTHON_BUILT/.complete" ] || bootstrap --foreign
        emulate
        exit
    fi
    register_emulator
fi
"$VENV/bin/python" packaging/make_samples.py "$WORK/samples"
cp packaging/check_installed.py "$WORK"
EPOCHS=$("$VENV/bin/python" "$WORK/check_installed.py" print_epochs)
# Packed by the wheel itself: nothing else need be built here.
rm -rf "$WORK/unpacked"
"$VENV/bin/python" -m zipfile -e "$WHEEL" "$WORK/unpacked"
chmod +x "$WORK"/unpacked/*.data/scripts/stoker
"${EMULATOR[@]}" "$WORK"/unpacked/*.data/scripts/stoker pack "$WORK/samples/train" "$WORK/samples/packed" --quiet
start_server
for SUITE in "${SUITES[@]}"; do
    SYSTEM=$SYSTEMS/$SUITE
    if [ "$SUITE" = bullseye ]; then tap_check "$SUITE: a Python that is new enough, built there" make_python; fi
    tap_check "$SUITE: a system by debootstrap" make_system
    tap_check "$SUITE: it has neither a compiler nor development packages" bare
    tap_check "$SUITE: pip installs the wheel" install
    tap_check "$SUITE: its C library is glibc $(glibc_of "$SUITE")" check glibc "$(glibc_of "$SUITE")"
    tap_check "$SUITE: import, and the program, have version $VERSION" check version "$VERSION"
    tap_check "$SUITE: man page and completions are beside the program" check pages
    tap_check "$SUITE: the wheel uses no library of the system but the C library" check only_glibc
    tap_check "$SUITE: every library is in the wheel" check everything_is_in
    tap_check "$SUITE: stoker info" check info
    tap_check "$SUITE: every image format decodes to Pillow's bytes" check images
    tap_check "$SUITE: every sound format decodes" check sounds
    if [ ${#EMULATOR[@]} -gt 0 ]; then
        tap_check "$SUITE: a folder, and tar, TFRecord, HDF5 and npy packed from it" check every_format lmdb
        tap_skip "$SUITE: the same with LMDB" "qemu cannot map the 4 TiB of addresses that it reserves"
    else
        tap_check "$SUITE: a folder, and tar, TFRecord, LMDB, HDF5 and npy packed from it" check every_format
    fi
    tap_check "$SUITE: epochs equal those of a build from source" check epochs "$EPOCHS" numpy
    tap_check "$SUITE: a URL over TLS and HTTP/2, trusting SSL_CERT_FILE" trusting
    tap_check "$SUITE: the same, trusting the system's authorities" trusted_by_the_system
    tap_check "$SUITE: a server that nobody vouches for is refused with a remedy" check refused "$URL"
    tap_check "$SUITE: stoker demo" check demo alone
    if [ ${#EMULATOR[@]} -gt 0 ]; then
        tap_skip "$SUITE: with torch" "torch is too much for qemu"
    else
        tap_check "$SUITE: torch for its Python" fetch_torch
        tap_check "$SUITE: with torch, epochs equal those of a build from source" with_torch epochs "$EPOCHS" torch
        tap_check "$SUITE: with torch, stoker demo" with_torch demo compared
    fi
    tap_check "$SUITE: pip uninstall leaves nothing" uninstall
done
tap_done

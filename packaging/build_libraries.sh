#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds the libraries that the wheel contains, as static libraries for position-independent code.
#   packaging/build_libraries.sh ARCH SYSROOT SOURCES OUT [LIBRARY...]
# ARCH is x86_64 or aarch64; SYSROOT holds the C library to link with; SOURCES is what sources.py fetched. Headers,
# libraries and pkg-config files go to OUT/prefix. A library is rebuilt only when its source, its recipe, the compiler
# or a library that it needs changes. Each library has one function here; everything that Stoker does not call is
# switched off.
source "$(dirname "$0")/../scripts/common.sh"
ARCH=$1 SYSROOT=$2 SOURCES=$3 OUT=$4
shift 4
PREFIX=$OUT/prefix
LOGS=$OUT/logs
TRIPLET=$ARCH-linux-gnu

command -v "$TRIPLET-gcc" >/dev/null || die "there is no $TRIPLET-gcc here: scripts/setup.sh wheel installs it"
LAUNCHER=$(command -v ccache || true)
export CC="${LAUNCHER:+$LAUNCHER }$TRIPLET-gcc --sysroot=$SYSROOT" AR=$TRIPLET-ar RANLIB=$TRIPLET-ranlib
export CFLAGS="-O2 -fPIC -ffunction-sections -fdata-sections -fstack-protector-strong -D_FORTIFY_SOURCE=2 \
-ffile-prefix-map=$OUT=. $(sysroot_headers "$ARCH" "$SYSROOT" | paste -sd ' ')"
# Nothing of this machine's own libraries may be found.
export PKG_CONFIG_LIBDIR=$PREFIX/lib/pkgconfig PKG_CONFIG_PATH= CPATH= LIBRARY_PATH=
unset CPPFLAGS CXXFLAGS
# A compiler looks for the C library beside itself before it looks into the sysroot, unless -B names the place.
export LDFLAGS=-B$SYSROOT/usr/lib/$TRIPLET
EMULATOR=()
if [ "$ARCH" != "$(uname -m)" ]; then EMULATOR=("qemu-$ARCH" -L "$SYSROOT"); fi

# ---- helpers -----------------------------------------------------------------------------------------

toolchain_file() {
    cat <<END
set(CMAKE_C_COMPILER $TRIPLET-gcc)
# Some projects ask for a C++ compiler and then compile no C++.
set(CMAKE_CXX_COMPILER $TRIPLET-gcc)
set(CMAKE_CXX_COMPILER_FORCED TRUE)
set(CMAKE_C_COMPILER_LAUNCHER "$LAUNCHER")
set(CMAKE_AR $(command -v "$AR"))
set(CMAKE_RANLIB $(command -v "$RANLIB"))
set(CMAKE_SYSROOT $SYSROOT)
set(CMAKE_FIND_ROOT_PATH $PREFIX)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
END
    if [ ${#EMULATOR[@]} != 0 ]; then
        cat <<END
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR $ARCH)
set(CMAKE_CROSSCOMPILING_EMULATOR "$(IFS=';'; echo "${EMULATOR[*]}")")
END
    fi
}

# Configures the source in $1, relative to the library's, with the options that follow. Then `ninja` builds.
configure_cmake() {
    local source=$1
    shift
    cmake -S "$SOURCE/$source" -B "$BUILD" -G Ninja -DCMAKE_MAKE_PROGRAM="$VENV/bin/ninja" \
        -DCMAKE_TOOLCHAIN_FILE="$OUT/toolchain.cmake" -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_FLAGS_RELEASE=-DNDEBUG \
        -DCMAKE_INSTALL_PREFIX="$PREFIX" -DCMAKE_INSTALL_LIBDIR=lib -DCMAKE_PREFIX_PATH="$PREFIX" \
        -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DBUILD_SHARED_LIBS=OFF -DBUILD_TESTING=OFF \
        -DCMAKE_DISABLE_FIND_PACKAGE_Git=ON "$@"
}
ninja() { "$VENV/bin/ninja" -C "$BUILD" -j "$(jobs)" "$@"; }
make() { command make -j "$(jobs)" "$@"; }

# Compiles C files with the flags before `--` into library $1.
compile_library() {
    local library=$1 file object
    local -a flags=() objects=()
    shift
    while [ "$1" != -- ]; do flags+=("$1"); shift; done
    shift
    mkdir -p "$BUILD"
    for file in "$@"; do
        object=$BUILD/$(basename "${file%.c}").o
        $CC $CFLAGS "${flags[@]}" -c "$file" -o "$object"
        objects+=("$object")
    done
    rm -f "$PREFIX/lib/lib$library.a"
    "$AR" rcsD "$PREFIX/lib/lib$library.a" "${objects[@]}"
}

# A pkg-config file: name, libraries, packages it requires, more flags for the compiler. Those of the projects name
# shared libraries and programs that are not built here.
describe() {
    cat >"$PREFIX/lib/pkgconfig/$1.pc" <<END
prefix=$PREFIX
Name: $1
Description: $LIBRARY, for the wheel
Version: $VERSION
Requires.private: ${3:-}
Libs: -L\${prefix}/lib $2
Cflags: -I\${prefix}/include ${4:-}
END
}

# ---- recipes, in the order of their dependencies -----------------------------------------------------

build_zlib() {
    cp -r "$SOURCE" "$BUILD" && cd "$BUILD"
    ./configure --static --prefix="$PREFIX"
    make install-libs
    cp zlib.h zconf.h "$PREFIX/include"
    describe zlib -lz
}

build_libdeflate() {
    cp -r "$SOURCE" "$BUILD" && cd "$BUILD"
    make libdeflate.a
    cp libdeflate.a "$PREFIX/lib" && cp libdeflate.h "$PREFIX/include"
    describe libdeflate -ldeflate
}

build_zstd() {
    cp -r "$SOURCE" "$BUILD" && cd "$BUILD/lib"
    make ZSTD_LEGACY_SUPPORT=0 libzstd.a
    cp libzstd.a "$PREFIX/lib" && cp zstd.h zstd_errors.h zdict.h "$PREFIX/include"
    describe libzstd -lzstd
}

build_liblzma() {
    configure_cmake . -DCREATE_XZ_SYMLINKS=OFF -DCREATE_LZMA_SYMLINKS=OFF
    ninja liblzma
    cp "$BUILD/liblzma.a" "$PREFIX/lib"
    cp -r "$SOURCE/src/liblzma/api/lzma" "$SOURCE/src/liblzma/api/lzma.h" "$PREFIX/include"
    describe liblzma "-llzma -pthread" "" -DLZMA_API_STATIC
}

build_libjpeg_turbo() {
    configure_cmake . -DENABLE_SHARED=OFF -DWITH_TURBOJPEG=OFF -DREQUIRE_SIMD=ON
    ninja jpeg-static
    cp "$BUILD/libjpeg.a" "$PREFIX/lib"
    cp "$BUILD/jconfig.h" "$SOURCE/jpeglib.h" "$SOURCE/jmorecfg.h" "$SOURCE/jerror.h" "$PREFIX/include"
    describe libjpeg -ljpeg
}

build_libspng() {
    compile_library spng -DSPNG_STATIC "-I$PREFIX/include" -- "$SOURCE/spng/spng.c"
    cp "$SOURCE/spng/spng.h" "$PREFIX/include"
    describe spng "-lspng -lm" zlib -DSPNG_STATIC
}

build_libwebp() {
    local part
    local -a off=()
    for part in ANIM_UTILS CWEBP DWEBP GIF2WEBP IMG2WEBP VWEBP WEBPINFO LIBWEBPMUX WEBPMUX EXTRAS; do
        off+=("-DWEBP_BUILD_$part=OFF")
    done
    configure_cmake . "${off[@]}"
    ninja install
    describe libsharpyuv "-lsharpyuv -lm"
    describe libwebp "-lwebp -lm -pthread" "$([ ! -e "$PREFIX/lib/libsharpyuv.a" ] || echo libsharpyuv)"
    describe libwebpdemux -lwebpdemux libwebp
}

build_libtiff() {
    configure_cmake . -Dtiff-tools=OFF -Dtiff-tests=OFF -Dtiff-contrib=OFF -Dtiff-docs=OFF -Dcxx=OFF -Djbig=OFF -Dlerc=OFF \
        -Dzlib=ON -Dlibdeflate=ON -Djpeg=ON -Dlzma=ON -Dzstd=ON -Dwebp=ON -DCMAKE_EXE_LINKER_FLAGS="$LDFLAGS -pthread"
    local codec
    for codec in ZIP JPEG LZMA ZSTD WEBP; do # one that is not found would be left out silently
        cat "$BUILD/libtiff/tif_config.h" "$BUILD/libtiff/tiffconf.h" | grep "define ${codec}_SUPPORT 1"
    done
    ninja install
    describe libtiff-4 "-ltiff -lm" "zlib libdeflate libjpeg liblzma libzstd libwebp"
}

build_hdf5() {
    mkdir -p "$BUILD" && cd "$BUILD" # its checks write files where they run
    configure_cmake . -DHDF5_ENABLE_Z_LIB_SUPPORT=ON -DHDF5_BUILD_TOOLS=OFF -DHDF5_BUILD_UTILS=OFF \
        -DHDF5_BUILD_EXAMPLES=OFF -DHDF5_BUILD_HL_LIB=OFF -DHDF5_ENABLE_EMBEDDED_LIBINFO=OFF
    ninja install
    describe hdf5 "-lhdf5 -ldl -lm" zlib
}

build_lmdb() {
    local folder=$SOURCE/libraries/liblmdb
    compile_library lmdb -pthread -- "$folder/mdb.c" "$folder/midl.c"
    cp "$folder/lmdb.h" "$PREFIX/include"
    describe lmdb "-llmdb -pthread"
}

build_liburing() {
    cp -r "$SOURCE" "$BUILD" && cd "$BUILD"
    ./configure --cc="$CC" --prefix="$PREFIX"
    make -C src ENABLE_SHARED=0 liburing.a
    cp src/liburing.a "$PREFIX/lib"
    cp -r src/include/liburing src/include/liburing.h "$PREFIX/include"
    describe liburing -luring
}

# TLS 1.2 and 1.3 for clients, with what certificates need. Of the post-quantum algorithms only the key exchange is built:
# no public authority signs with the others. No configuration file is read: that of a system may name modules that this
# library cannot load.
build_openssl() {
    local name
    local -a off=()
    for name in argon2 aria async autoload-config bf blake2 camellia cast cmp cms comp ct dsa dso dtls ec2m engine gost \
        idea legacy md4 mdc2 ml-dsa module nextprotoneg ocb psk quic rc2 rc4 rfc3779 rmd160 scrypt seed shared siphash siv \
        slh-dsa sm2 sm3 sm4 srp srtp ssl-trace tests tls1 tls1_1 ts ui-console whirlpool; do
        off+=("no-$name")
    done
    mkdir -p "$BUILD" && cd "$BUILD"
    # For size: the wheel has it twice, and the code that takes time is assembly.
    CFLAGS=${CFLAGS/-O2/-Os} perl "$SOURCE/Configure" "linux-$ARCH" --prefix="$PREFIX" --libdir=lib \
        --openssldir=/etc/ssl "${off[@]}"
    make build_libs
    make install_dev
    describe libcrypto "-lcrypto -ldl -pthread"
    describe libssl -lssl libcrypto
}

build_nghttp2() {
    mkdir -p "$BUILD" "$PREFIX/include/nghttp2"
    sed "s/@PACKAGE_VERSION@/$VERSION/; s/@PACKAGE_VERSION_NUM@/$(printf '0x%02x%02x%02x' ${VERSION//./ })/" \
        "$SOURCE/lib/includes/nghttp2/nghttp2ver.h.in" >"$PREFIX/include/nghttp2/nghttp2ver.h"
    cp "$SOURCE/lib/includes/nghttp2/nghttp2.h" "$PREFIX/include/nghttp2"
    compile_library nghttp2 -DNGHTTP2_STATICLIB -DHAVE_ARPA_INET_H -DHAVE_NETINET_IN_H -DHAVE_TIME_H \
        "-I$PREFIX/include" -- "$SOURCE"/lib/*.c
    describe libnghttp2 -lnghttp2 "" -DNGHTTP2_STATICLIB
}

# Where the certificates of authorities are is decided at run time: systems differ.
build_curl() {
    configure_cmake . -DHTTP_ONLY=ON -DBUILD_CURL_EXE=OFF -DENABLE_MANUAL=OFF -DCURL_USE_OPENSSL=ON -DUSE_NGHTTP2=ON \
        -DOPENSSL_ROOT_DIR="$PREFIX" -DOPENSSL_USE_STATIC_LIBS=ON -DCURL_DISABLE_OPENSSL_AUTO_LOAD_CONFIG=ON \
        -DCURL_DISABLE_LDAP=ON -DCURL_DISABLE_NTLM=ON -DUSE_LIBIDN2=OFF -DCURL_USE_LIBPSL=OFF -DCURL_USE_LIBSSH2=OFF \
        -DCURL_ZLIB=OFF -DCURL_CA_BUNDLE=none -DCURL_CA_PATH=none -DCMAKE_C_FLAGS="$CFLAGS -DNGHTTP2_STATICLIB"
    ninja install
    describe libcurl "-lcurl -pthread" "libssl libnghttp2" -DCURL_STATICLIB
}

build_ogg() {
    configure_cmake . -DINSTALL_DOCS=OFF
    ninja install
    describe ogg -logg
}

build_vorbis() {
    configure_cmake .
    ninja install
    describe vorbis "-lvorbis -lm" ogg
    describe vorbisenc -lvorbisenc vorbis
}

build_flac() {
    configure_cmake . -DBUILD_CXXLIBS=OFF -DBUILD_PROGRAMS=OFF -DBUILD_EXAMPLES=OFF -DBUILD_DOCS=OFF -DINSTALL_MANPAGES=OFF \
        -DWITH_OGG=ON
    ninja install
    describe flac "-lFLAC -lm" ogg -DFLAC__NO_DLL
}

build_opus() {
    mkdir -p "$BUILD" && cd "$BUILD"
    "$SOURCE/configure" --host="$TRIPLET" --prefix="$PREFIX" --disable-shared --with-pic --disable-doc --disable-extra-programs
    make install
    describe opus "-lopus -lm" "" '-I${prefix}/include/opus'
}

build_mpg123() {
    configure_cmake ports/cmake -DBUILD_LIBOUT123=OFF
    ninja libmpg123 # its tests do not link with the static library
    cp "$BUILD/src/libmpg123/libmpg123.a" "$PREFIX/lib"
    find "$SOURCE/src" "$BUILD/src" \( -name mpg123.h -o -name fmt123.h \) -exec cp {} "$PREFIX/include" \;
    describe libmpg123 "-lmpg123 -lm"
}

build_lame() {
    cp -r "$SOURCE" "$BUILD" && cd "$BUILD"
    ./configure --host="$TRIPLET" --prefix="$PREFIX" --disable-shared --enable-static --with-pic --disable-frontend \
        --disable-decoder --disable-analyzer-hooks --disable-gtktest
    make -C libmp3lame install
    make -C include install
    describe mp3lame "-lmp3lame -lm"
}

build_libsndfile() {
    configure_cmake . -DBUILD_PROGRAMS=OFF -DBUILD_EXAMPLES=OFF -DENABLE_CPACK=OFF -DENABLE_EXTERNAL_LIBS=ON -DENABLE_MPEG=ON
    grep -q 'define HAVE_EXTERNAL_XIPH_LIBS *1' "$BUILD/src/config.h"
    grep -q 'define HAVE_MPEG *1' "$BUILD/src/config.h"
    ninja install
    describe sndfile "-lsndfile -lm" "flac ogg vorbis vorbisenc opus libmpg123 mp3lame"
}

# ---- all of them -------------------------------------------------------------------------------------

about() { "$VENV/bin/python" -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]][sys.argv[3]])' "$SOURCES/versions.json" "$@"; }

# The stamps of the libraries that library $1 needs: it is built again when one of them was.
needed_stamps() {
    local name
    for name in $("$VENV/bin/python" -c 'import json, sys; print(*json.load(open(sys.argv[1]))[sys.argv[2]].get("needs", ()))' \
        "$ROOT/packaging/libraries.json" "$1"); do
        cat "$OUT/stamps/$name"
    done
}

# Builds one library in the background of `set -e`, with its output in a log.
build() {
    LIBRARY=$1
    local recipe=build_${1//-/_} dsc key log=$LOGS/$1.log start=$SECONDS
    SOURCE=$OUT/source/$1 BUILD=$OUT/build/$1 VERSION=$(about "$1" upstream)
    dsc=$(about "$1" dsc)
    key=$({ declare -f "$recipe" configure_cmake compile_library describe toolchain_file; echo "$dsc $CC $CFLAGS $LDFLAGS"; $CC --version; needed_stamps "$1"; } | sha256sum)
    if stamp_is "$OUT/stamps/$1" "$key"; then return; fi
    rm -rf "$SOURCE" "$BUILD"
    mkdir -p "$OUT/source" "$OUT/build"
    dpkg-source --no-check -q -x "$SOURCES/$dsc" "$SOURCE" >"$log" 2>&1 || { tail -n 5 "$log" >&2; die "cannot unpack $dsc"; }
    (set -e; "$recipe") </dev/null >>"$log" 2>&1 &
    if ! wait $!; then
        tail -n 30 "$log" >&2
        die "building $1 $VERSION failed: see $log"
    fi
    rm -rf "$BUILD" "$OUT"/source/*.orig.tar.*
    stamp_set "$OUT/stamps/$1" "$key"
    say "built $1 $VERSION in $((SECONDS - start)) s"
}

mkdir -p "$PREFIX/lib/pkgconfig" "$PREFIX/include" "$LOGS"
toolchain_file >"$OUT/toolchain.cmake"
ALL=(zlib libdeflate zstd liblzma libjpeg-turbo libspng libwebp libtiff hdf5 lmdb liburing openssl nghttp2 curl ogg vorbis
    flac opus mpg123 lame libsndfile)
for library in "${@:-${ALL[@]}}"; do
    build "$library"
done

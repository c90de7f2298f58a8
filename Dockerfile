# SPDX-License-Identifier: Apache-2.0
# An image that does what `make demo` does: one epoch with torch's DataLoader, and one with Stoker.
#
#     docker build -t stoker .                              # torch for CPUs
#     docker build -t stoker --build-arg TORCH=cuda .       # PyPI's torch, which has CUDA, and our GPU kernels
#     docker run --rm --shm-size=2g stoker
#     docker run --rm --shm-size=2g -v "$PWD/train:/data:ro" stoker stoker demo --data /data
#
# torch's workers hand their batches over in /dev/shm, of which a container has 64 MB unless it is told otherwise.

# What a build needs. It depends on two scripts only, so it is not made anew when sources change. .devcontainer/ uses it.
FROM debian:12 AS build
WORKDIR /stoker
COPY scripts/common.sh scripts/setup.sh scripts/
RUN scripts/setup.sh

# The package and torch, in /stoker/.venv.
FROM build AS package
ARG TORCH=cpu
RUN case "$TORCH" in \
    cpu) UV_TORCH_BACKEND=cpu scripts/setup.sh torch ;; \
    cuda) scripts/setup.sh torch cuda ;; \
    *) echo "TORCH is cpu or cuda, not '$TORCH'" >&2; exit 1 ;; \
    esac
COPY . .
RUN scripts/build.sh torch

# What is needed to run it: Python, and the libraries that the package is linked with.
FROM debian:12-slim
RUN apt-get update \
    && apt-get install -y --no-install-recommends python3 \
        libcurl4 libdeflate0 libhdf5-103-1 libjpeg62-turbo liblmdb0 libsndfile1 libspng0 libtiff6 liburing2 libwebp7 \
        libwebpdemux2 libzstd1 zlib1g ca-certificates \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home stoker
COPY --from=package /stoker/.venv /stoker/.venv
ENV PATH=/stoker/.venv/bin:$PATH
USER stoker
WORKDIR /home/stoker
CMD ["stoker", "demo"]

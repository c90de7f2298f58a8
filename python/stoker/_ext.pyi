# SPDX-License-Identifier: Apache-2.0
"""The extension module: the engine for the Python files of the package. Only the exceptions and GpuWatch are public."""
from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, final

_Path = str | bytes | PathLike[str] | PathLike[bytes]

EDIT_CROP: int
EDIT_RESIZE: int
EDIT_MIRROR: int
EDIT_FLIP: int
EDIT_BRIGHTNESS: int
EDIT_CONTRAST: int
EDIT_SATURATION: int
EDIT_HUE: int
EDIT_GREY: int
EDIT_AFFINE: int
EDIT_PERSPECTIVE: int
EDIT_SHARPNESS: int
EDIT_SOLARIZE: int
EDIT_POSTERIZE: int
EDIT_AUTOCONTRAST: int
EDIT_EQUALIZE: int
EDIT_PERMUTE: int
EDIT_BOX_BLUR: int
EDIT_GAUSSIAN_BLUR: int
EDIT_POINT: int

class StokerError(RuntimeError):
    """Base class of all errors of the engine."""

class CorruptSample(StokerError):
    """A sample is damaged, or is not in the format that it claims to be. The message names it."""

class LimitReached(StokerError):
    """A limit was reached: max_memory, pixel_limit or error_limit. The message names it."""

class Unsupported(StokerError, NotImplementedError):
    """This build does not support a format, a feature of it, or an option."""

class TransientError(StokerError, OSError):
    """The machine or the network failed, not the data: trying again may succeed."""

class ReadError(StokerError, OSError):
    """A file cannot be read. The message names it."""

class NotFound(ReadError, FileNotFoundError):
    """There is no such file, folder or object."""

class InvalidArgument(StokerError, ValueError):
    """The engine does not accept a value. The message names it and what is allowed."""

class OutOfMemory(StokerError, MemoryError):
    """The engine cannot get the memory that it needs."""

class InternalError(StokerError):
    """A bug in Stoker itself: please report it."""

@final
class Tensor:
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def stride(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> str: ...
    def bits(self) -> Tensor: ...
    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

@final
class Batch:
    @property
    def images(self) -> Tensor | list[Tensor] | None: ...
    @property
    def labels(self) -> Tensor: ...
    @property
    def samples(self) -> Tensor: ...
    @property
    def columns(self) -> list[tuple[str, Any, Any]]: ...
    @property
    def lengths(self) -> Tensor | None: ...
    @property
    def ragged(self) -> bool: ...
    @property
    def device(self) -> tuple[int, int]: ...
    @property
    def epoch(self) -> int: ...
    @property
    def index(self) -> int: ...
    def sync(self) -> None: ...
    def __len__(self) -> int: ...

@final
class Dataset:
    @classmethod
    def open(
        cls,
        uri: _Path,
        /,
        *,
        index_dir: _Path | None = None,
        extensions: Sequence[str] | None = None,
        threads: int = 0,
        allow_empty: bool = False,
        fields: str | None = None,
        cache_dir: str | None = None,
        cache_bytes: int = 0,
        remote_ms: int = 0,
        connections: int = 0,
        max_memory: int = 0,
        db: str | None = None,
    ) -> Dataset: ...
    @classmethod
    def from_files(cls, paths: Sequence[_Path], labels: Any = None) -> Dataset: ...
    @classmethod
    def from_pairs(
        cls,
        images: _Path,
        targets: _Path | None = None,
        /,
        *,
        layout: str,
        contiguous: bool = False,
        keypoints: bool = False,
        masks: str | None = None,
        points: int = 0,
        point_numbers: int = 0,
        set: str | None = None,
        suffix: str | None = None,
        mode: str | None = None,
        names: str | None = None,
    ) -> Dataset: ...
    @classmethod
    def from_memory(cls, images: Sequence[Any], labels: Any = None) -> Dataset: ...
    @classmethod
    def from_array(cls, images: Any, labels: Any = None) -> Dataset: ...
    @classmethod
    def concat(cls, parts: tuple[Dataset, ...], pair: bool = False, /) -> Dataset: ...
    @classmethod
    def mix(cls, parts: tuple[Dataset, ...], weights: Any, samples: int, seed: int, /) -> Dataset: ...
    def subset(self, indices: Any, /) -> Dataset: ...
    def encoded(self) -> Dataset: ...
    @property
    def kind(self) -> str | None: ...
    @property
    def fields(self) -> list[tuple[str, str]]: ...
    @property
    def classes(self) -> list[str]: ...
    @property
    def class_labels(self) -> list[int]: ...
    def label(self, sample: int, /) -> int: ...
    def labels(self) -> Tensor: ...
    def name(self, sample: int, /) -> str: ...
    def __len__(self) -> int: ...

@final
class Pipeline:
    def __init__(self, text: str) -> None: ...
    @property
    def text(self) -> str: ...

@final
class Single:
    def __new__(
        cls,
        pipeline: Pipeline,
        /,
        *,
        layout: str = "nchw",
        pillow: int = 13,
        pixel_limit: int = 0,
        fused: bool = False,
    ) -> Single: ...
    def run(
        self,
        data: Any,
        edits: tuple[tuple[float, ...], ...] = (),
        pixels: tuple[int, int, int] | None = None,
        /,
    ) -> Tensor: ...
    def run_into(self, memory: Any, data: Any, edits: tuple[tuple[float, ...], ...], /) -> None: ...

@final
class Loader:
    def __init__(
        self,
        dataset: Dataset,
        pipeline: Pipeline,
        /,
        *,
        batch_size: int | None = 1,
        workers: int | None = -1,
        prefetch: int | None = 0,
        read_ahead: int | None = 0,
        drop_last: bool | None = False,
        order: str | None = "sequential",
        seed: int | None = 0,
        rank: int | None = 0,
        world: int | None = 1,
        drop_uneven: bool | None = False,
        epoch_fixed: bool | None = False,
        draws: int | None = 0,
        weights: Any = None,
        dtype: str | None = None,
        layout: str | None = "nchw",
        ragged: str | None = "list",
        on_error: str | None = "raise",
        error_limit: int | None = None,
        fidelity: str | None = "exact",
        jpeg_hardware: str | None = "known",
        pillow: int | None = 13,
        exif_rotate: bool | None = False,
        pixel_limit: int | None = None,
        max_memory: int | None = None,
        device: str | None = None,
        augment_on: str | None = "auto",
        pin_memory: bool | None = False,
        pinned_limit: int | None = None,
        masks: str | None = None,
        boxes: str | None = None,
        stream_of: Callable[[], int | tuple[int, ...]] | None = None,
        rescue: Callable[[int, bytes | None, StokerError], bytes | None] | None = None,
        timeout_ms: int | None = 0,
    ) -> None: ...
    @property
    def batches(self) -> int: ...
    @property
    def workers(self) -> int: ...
    @property
    def closed(self) -> bool: ...
    def start(
        self,
        epoch: int = 0,
        indices: Any = None,
        batch_sizes: Any = None,
        repeated: Any = None,
        first_position: int = 0,
        first_batch: int = 0,
    ) -> None: ...
    def restore(
        self,
        state: bytes,
        indices: Any = None,
        batch_sizes: Any = None,
        repeated: Any = None,
        first_position: int = 0,
        first_batch: int = 0,
    ) -> None: ...
    def save(self) -> bytes: ...
    def next(self) -> Batch | None: ...
    def next_pair(self, take: Callable[[Any], Any], /) -> list[Any] | Batch | None: ...
    def interrupt(self) -> None: ...
    def close(self) -> None: ...
    def stats(self) -> dict[str, Any]: ...
    def ledger(self) -> list[dict[str, Any]]: ...

@final
class GpuWatch:
    """Watch the load of a GPU through the driver's management library (NVML).

    An object must be used by one thread at a time.

    Args:
        which: A PCI address, an identifier ("GPU-..."), or a number as a string, in
            the driver's order, which is not CUDA's. By default the first GPU.

    Raises:
        Unsupported: There is no such GPU, or no driver.
    """

    def __init__(self, which: str | None = None) -> None: ...
    def sample(self) -> dict[str, Any]:
        """Return the current values.

        Returns:
            A dict. name and driver are strings, memory_used and memory_total bytes. busy is the share
            of the time since the last sample in which any kernel ran. sm_active, sm_occupancy,
            tensor_active and dram_active are shares from 0 to 1, jpeg_hardware the mean number of
            active JPEG decoders, and pcie_in and pcie_out bytes per second, over an interval of
            `seconds`. clock is relative to the highest clock, and limited is 1 while power or
            temperature lowers it. watts, link_generation and link_width (with link_generation_most and
            link_width_most) and node, the NUMA node, are current values. A number that this GPU does
            not report is None.

        Raises:
            ValueError: The GpuWatch is closed.
            StokerError: The driver reports an error.
        """

    def close(self) -> None:
        """Stop watching. It may be called more than once."""

def version() -> str: ...
def cpus() -> int: ...
def features() -> list[tuple[str, str, str, bool]]: ...
def ops() -> list[tuple[str, str]]: ...
def cv_level() -> str: ...
def cv_run(op: str, numbers: tuple[float, ...], tables: tuple[Any, ...], array: Any, out: Any, /) -> None: ...
def jpeg_is_regular(data: Any, /) -> tuple[int, int, int] | None: ...
def pillow_read(array: Any, /) -> bytes: ...
def pillow_write(array: Any, data: Any, /) -> None: ...
def copy_packed(out: Any, array: Any, /) -> bool: ...
def through_table(out: Any, data: Any, table: Any, /) -> None: ...
def decode(
    data: Any,
    region: tuple[int, ...] | None = None,
    name: str = "the image",
    exif_rotate: bool = False,
    pixel_limit: int = ...,
) -> Tensor: ...
def order_indices(
    count: int,
    /,
    *,
    kind: str = "torch",
    seed: int = 0,
    epoch: int = 0,
    rank: int = 0,
    world: int = 1,
    drop_uneven: bool = False,
    epoch_fixed: bool = False,
    indices: Any = None,
    weights: Any = None,
    draws: int = 0,
) -> Tensor: ...
def mix_draw(
    seed: int, epoch: int, batch: int, op: int, alpha: float, /
) -> tuple[float, float, float, float]: ...

@final
class Lease:
    def part(self) -> Lease | LeasePart: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

@final
class LeasePart:
    def __buffer__(self, flags: int, /) -> memoryview: ...

@final
class Exchange:
    regular: int
    on_drop: Callable[[int], None] | None
    on_release: Callable[[int], None] | None
    before_unmap: Callable[[], None] | None
    def __init__(self, workers: int = ..., slots: int = ..., fd: int = ...) -> None: ...
    @property
    def stride(self) -> int: ...
    @property
    def workers(self) -> int: ...
    @property
    def slots(self) -> int: ...
    @property
    def owner(self) -> int: ...
    def reset(self) -> None: ...
    def free(self) -> int: ...
    def lent(self) -> int: ...
    def send(self, worker: int, slot: int, kind: int, task: int, message: bytes, /) -> None: ...
    def wait(self, slots: tuple[int, ...], seconds: float, /) -> int: ...
    def release(self, slot: int, /) -> None: ...
    def collect(self, slot: int, /) -> tuple[int, int, int, int, Lease]: ...
    def stop(self, worker: int, /) -> None: ...
    def doing(self, worker: int, /) -> tuple[int, int]: ...
    def empty(self, worker: int, /) -> None: ...
    def harmless_forks(self, yes: bool, /) -> None: ...
    def progress(self, worker: int, place: int, /) -> bool: ...
    def take(self, worker: int, seconds: float, /) -> tuple[int, int, int, bytes] | bool | None: ...
    def room(self, slot: int, /) -> memoryview: ...
    def address(self, slot: int, /) -> int: ...
    def post(self, slot: int, kind: int, offset: int, length: int, /) -> None: ...
    def fileno(self) -> int: ...

# SPDX-License-Identifier: Apache-2.0
"""Runs the test files, each in a process of its own, several at once:  each_file.py RESULTS [--quick]

All are forked from this one, which has imported torch and started nothing: importing it takes longer than most files,
and what a file's tests fork is then copied from a small process and not from one that has grown over a hundred files.
RESULTS gets NAME.xml (JUnit), NAME.log and NAME.status for each file; what a file that failed has printed is shown.
"""

from __future__ import annotations

import atexit
import faulthandler
import gc
import os
import re
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import NoReturn

import ranks

HERE = Path(__file__).parent
LIMIT = 1800  # seconds for one file, which then says where its threads are; the longest takes 100 on a quiet machine
# Files that take more than a few seconds, because they start many programs, servers or processes: the longest first, so
# that no process has one left when the others are done. --quick leaves them out.
SLOW = """test_doctor_inject test_examples_run test_timm test_examples test_compile_albumentations test_own_datasets_equal
    test_doctor_top test_compile_albumentations_pixels test_pack test_faults test_doctor_inject_harmless
    test_fake_cuda test_transform_draws test_pack_kill test_value_transforms test_own_steps test_python_state
    test_lazy_draws test_order_draws test_train_gpu test_python_workers test_lazy_transforms test_site
    test_lifecycle test_albumentations test_boxes_warped test_worker_endings test_lazy_images test_worker_memory
    test_transforms test_augments test_packaging test_every_source test_albumentations_targets test_doctor_report
    test_forks test_chosen_transforms test_jpeg_paths test_compile_torchvision test_joint test_python_handles
    test_accelerate test_contract_batches test_lazy_timm test_pack_trouble test_split test_repeated_samples
    test_warps test_device test_lightning test_lazy_datasets test_doctor_simulate test_pack_formats
    test_transforms_in_python test_rank_states test_sources_loader test_python_bad_samples test_contract_workers
    test_contract test_types test_random_sizes test_lazy_functions test_scale test_release test_doctor_run
    test_fidelity test_info test_rows test_in_torchs_place test_scripts test_webdataset_keys
    test_contract_exceptions test_transient test_lazy_chains test_sources_url test_neighbours""".split()


def main(results: Path, quick: bool) -> int:
    names = [*SLOW] if not quick else []
    names += sorted(path.stem for path in HERE.glob("test_*.py") if path.stem not in SLOW)
    import_what_most_need()
    ranks.open_nursery()
    running: dict[int, tuple[str, float]] = {}  # name and when it began, by process
    failed = 0
    while names or running:
        # Tests often wait, for a server or a process: one more than there are CPUs.
        while names and len(running) <= len(os.sched_getaffinity(0)):
            name = names.pop(0)
            child = os.fork()
            if child == 0:
                become(name, results)
            running[child] = name, time.monotonic()
        child, status, used = os.wait4(-1, 0)
        if child in running:
            name, start = running.pop(child)
            took = f"{time.monotonic() - start:.1f} s, {used.ru_utime + used.ru_stime:.1f} s of CPU"
            failed += ended(name, os.waitstatus_to_exitcode(status), took, results)
    return min(failed, 1)


def import_what_most_need() -> None:
    """All of it is frozen: the children's garbage collector would write to its pages, which would copy them."""
    import PIL.Image  # noqa: F401
    import pytest
    import stoker.dataloader  # noqa: F401
    import torch.distributed  # noqa: F401
    import torchvision.transforms.v2  # noqa: F401

    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # those of other packages, which no test uses
    pytest.main(["--version"])  # imports all of pytest
    gc.collect()
    gc.freeze()


def become(name: str, results: Path) -> NoReturn:
    """Runs a file and ends. Of Python's own end only what is registered for it is done: it would free all of torch, which
    takes a second."""
    status = 1
    try:
        status = run_file(name, results)
        for thread in threading.enumerate():
            if thread is not threading.current_thread() and not thread.daemon:
                thread.join()
        atexit._run_exitfuncs()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def run_file(name: str, results: Path) -> int:
    import pytest

    log = os.open(results / f"{name}.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    faulthandler.dump_traceback_later(LIMIT, exit=True)
    return pytest.main(["-q", "-p", "no:cacheprovider", f"--junitxml={results / name}.xml", str(HERE / f"{name}.py")])


def ended(name: str, status: int, took: str, results: Path) -> bool:
    """Notes how a file ended, and shows what it said if that was badly."""
    if status == 5:  # pytest's "no test ran": the report says that all were skipped, or the tally finds none
        status = 0
    (results / f"{name}.status").write_text(str(status))
    output = (results / f"{name}.log").read_text(errors="replace")
    said = [line for line in output.splitlines() if re.search(r" in [0-9.]+s", line)] or ["nothing said"]
    print(f"   {name}: {took}: {said[-1].split(' in ')[0].strip('= ')}", flush=True)
    if status:
        print(output, flush=True)
    return status != 0


if __name__ == "__main__":
    os._exit(main(Path(sys.argv[1]), "--quick" in sys.argv[2:]))

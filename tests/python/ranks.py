# SPDX-License-Identifier: Apache-2.0
"""Process groups for the tests: ranks are forked from one interpreter, since importing torch takes longest."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import traceback
from collections.abc import Callable
from typing import Any

from conftest import run_python

_RUN = """
import importlib, json, sys
function = getattr(importlib.import_module(sys.argv[1]), sys.argv[2])
print("\\nresult: " + json.dumps(function(*map(json.loads, sys.argv[3:]))))
"""


def in_fresh_python(function: Callable[..., Any], *args: Any, timeout: float = 240) -> Any:
    """What a function of a test module returns in an interpreter of its own; all of it as JSON has it."""
    got = run_python(_RUN, function.__module__, function.__name__, *map(json.dumps, args), timeout=timeout)
    assert got.returncode == 0, got.stdout[-2000:] + got.stderr[-8000:]
    line = [line for line in got.stdout.splitlines() if line.startswith("result: ")][-1]
    return json.loads(line.removeprefix("result: "))


def on_ranks(world: int, work: Callable[..., Any], *args: Any, group: bool = True) -> list[Any]:
    """What work(*args) returns on each rank of a process group (gloo); group=False leaves it to the
    environment that torchrun makes."""
    with tempfile.TemporaryDirectory() as folder:
        children = []
        for rank in range(world):
            child = os.fork()
            if child == 0:
                os._exit(_one_rank(folder, rank, world, work, args, group))
            children.append(child)
        codes = [os.waitpid(child, 0)[1] for child in children]
        assert codes == [0] * world, f"ranks ended with {codes}"
        out = []
        for rank in range(world):
            with open(f"{folder}/result-{rank}") as file:
                out.append(json.load(file))
        return out


def _one_rank(folder: str, rank: int, world: int, work: Callable[..., Any], args: Any, group: bool) -> int:
    try:
        os.environ.update(
            RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(world), LOCAL_WORLD_SIZE=str(world)
        )
        import torch.distributed as dist

        if group:
            dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=world)
        result = work(*args)
        with open(f"{folder}/result-{rank}", "w") as file:
            json.dump(result, file)
        if group and dist.is_initialized():
            dist.barrier()
            dist.destroy_process_group()
        return 0
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()

# SPDX-License-Identifier: Apache-2.0
"""Fresh processes for the tests, and process groups of several ranks. All of them are forked from one interpreter
that has imported torch and started nothing, since importing torch takes longer than most tests."""

from __future__ import annotations

import atexit
import functools
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable
from typing import Any

_PATIENCE = 600  # seconds; each takes a few on a quiet machine


def in_fresh_python(function: Callable[..., Any], *args: Any) -> Any:
    """What a function of a test module returns in a process of its own; all of it as JSON has it."""
    server = _server()
    with tempfile.TemporaryDirectory() as folder:
        request = {"module": function.__module__, "function": function.__name__, "args": args, "folder": folder}
        server.stdin.write(json.dumps(request) + "\n")
        server.stdin.flush()
        code = server.stdout.readline().strip() if select.select([server.stdout], [], [], _PATIENCE)[0] else "hung"
        with open(f"{folder}/output") as file:
            output = file.read()
        if code == "hung":
            os.killpg(server.pid, signal.SIGKILL)
            _server.cache_clear()
        assert code == "0", f"{function.__name__} ended with {code}:\n{output[-8000:]}"
        with open(f"{folder}/result") as file:
            return json.load(file)


@functools.cache
def _server() -> subprocess.Popen[str]:
    server = subprocess.Popen(
        [sys.executable, "-c", "import ranks; ranks.serve()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # so that all it has forked can be ended with it
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "OMP_NUM_THREADS": "1",
            "CUDA_VISIBLE_DEVICES": "",
        },
    )
    atexit.register(server.stdin.close)  # which ends it
    return server


def serve() -> None:
    """The interpreter that forks: it reads requests and writes how each ended."""
    import stoker.dataloader  # noqa: F401
    import torch.distributed  # noqa: F401
    import torchvision  # noqa: F401

    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            os._exit(_answer(**request))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def _answer(module: str, function: str, args: list[Any], folder: str) -> int:
    output = os.open(f"{folder}/output", os.O_WRONLY | os.O_CREAT)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    return _run(lambda: getattr(importlib.import_module(module), function)(*args), f"{folder}/result")


def _run(work: Callable[[], Any], path: str) -> int:
    """The exit status of a forked process; what `work` returns is written to a file."""
    try:
        result = work()
        with open(path, "w") as file:
            json.dump(result, file)
        return 0
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


def on_ranks(world: int, work: Callable[..., Any], *args: Any, group: bool = True) -> list[Any]:
    """What work(*args) returns on each rank of a process group (gloo); with group=False there is only the
    environment that torchrun makes, and the group is left to a framework. One rank is a process like any."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        children = []
        for rank in range(world):
            child = os.fork()
            if child == 0:
                if world > 1:
                    os.environ.update(
                        RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(world), LOCAL_WORLD_SIZE=str(world),
                        GROUP_RANK="0", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), TORCHELASTIC_RUN_ID="test",
                    )
                share = functools.partial(_one_rank, f"{folder}/store", rank, world, group, work, args)
                os._exit(_run(share, f"{folder}/{rank}"))
            children.append(child)
        waiting = set(children)
        while waiting:
            child, status = os.wait()
            waiting.discard(child)
            if status:
                for other in waiting:  # they would wait for the one that failed
                    os.kill(other, signal.SIGKILL)
                raise AssertionError(f"rank {children.index(child)} ended with {os.waitstatus_to_exitcode(status)}")
        out = []
        for rank in range(world):
            with open(f"{folder}/{rank}") as file:
                out.append(json.load(file))
        return out


def _one_rank(store: str, rank: int, world: int, group: bool, work: Callable[..., Any], args: Any) -> Any:
    import torch.distributed as dist

    if not group:
        return work(*args)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=world)
    result = work(*args)
    dist.barrier()
    dist.destroy_process_group()
    return result

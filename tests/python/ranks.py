# SPDX-License-Identifier: Apache-2.0
"""Fresh processes for the tests, and process groups of several ranks. All of them are forked from one interpreter
that has imported torch and started nothing, since importing torch takes longer than most tests: each_file.py lends one
to all files (`open_nursery`), and a file that runs without it starts its own."""

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
from typing import Any, NamedTuple, TextIO

_PATIENCE = 600  # seconds; each takes a few on a quiet machine
_NURSERY = "STOKER_TEST_NURSERY"  # in the environment: the name of its socket, which lies in no folder
_ENVIRONMENT = {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}


class _Server(NamedTuple):
    pid: int
    requests: TextIO
    answers: TextIO


def in_fresh_python(function: Callable[..., Any], *args: Any) -> Any:
    """What a function of a test module returns in a process of its own; all of it as JSON has it."""
    server = _server()
    with tempfile.TemporaryDirectory() as folder:
        request = {"module": function.__module__, "function": function.__name__, "args": args, "folder": folder}
        server.requests.write(json.dumps(request) + "\n")
        server.requests.flush()
        code = server.answers.readline().strip() if select.select([server.answers], [], [], _PATIENCE)[0] else "hung"
        with open(f"{folder}/output") as file:
            output = file.read()
        if code == "hung":
            os.killpg(server.pid, signal.SIGKILL)
            _server.cache_clear()
        assert code == "0", f"{function.__name__} ended with {code}:\n{output[-8000:]}"
        with open(f"{folder}/result") as file:
            return json.load(file)


@functools.cache
def _server() -> _Server:
    if _NURSERY in os.environ:
        return _from_nursery(os.environ[_NURSERY])
    process = subprocess.Popen(
        [sys.executable, "-c", "import ranks; ranks.import_and_serve()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # so that all it has forked can be ended with it
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **_ENVIRONMENT},
    )
    atexit.register(process.stdin.close)  # which ends it
    return _Server(process.pid, process.stdin, process.stdout)


def _from_nursery(name: str) -> _Server:
    connection = socket.socket(socket.AF_UNIX)
    connection.connect("\0" + name)
    requests, answers = connection.makefile("w"), connection.makefile("r")
    connection.close()  # the two files keep it open, as long as this process lives
    requests.write(json.dumps({"environment": {**os.environ, **_ENVIRONMENT}, "path": sys.path, "cwd": os.getcwd()}) + "\n")
    requests.flush()
    return _Server(int(answers.readline()), requests, answers)


def open_nursery() -> None:
    """Forks a process that forks a server for whoever asks for one. To be called by an interpreter that has imported
    what `import_and_serve` does and started nothing; what it forks later finds the process by the environment."""
    name = f"stoker-tests-{os.getpid()}"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind("\0" + name)
    listener.listen()
    os.environ[_NURSERY] = name
    parent = os.getpid()
    if os.fork() == 0:
        try:
            _lend_servers(listener, parent)
        finally:
            os._exit(0)
    listener.close()


def _lend_servers(listener: socket.socket, parent: int) -> None:
    """Until the parent has ended."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for servers
    listener.settimeout(0.5)
    while os.getppid() == parent:
        try:
            connection, _ = listener.accept()
        except TimeoutError:
            continue
        if os.fork() == 0:
            listener.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _serve_as_asked(connection)
            return
        connection.close()


def _serve_as_asked(connection: socket.socket) -> None:
    """What a fresh interpreter would have from the process that starts it: environment, sys.path, current folder."""
    import torch

    os.setsid()  # so that all it has forked can be ended with it
    os.dup2(connection.fileno(), 0)
    os.dup2(connection.fileno(), 1)
    connection.close()
    asked = json.loads(sys.stdin.readline())
    os.environ.clear()
    os.environ.update(asked["environment"])
    sys.path[:] = asked["path"]
    os.chdir(asked["cwd"])
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))  # which torch has read when it was imported
    print(os.getpid(), flush=True)
    serve()


def import_and_serve() -> None:
    import stoker.dataloader  # noqa: F401
    import torch.distributed  # noqa: F401
    import torchvision  # noqa: F401

    serve()


def serve() -> None:
    """The interpreter that forks: it reads requests and writes how each ended."""
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

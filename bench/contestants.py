# SPDX-License-Identifier: Apache-2.0
"""Who takes part, how each is installed, and one run of one of them."""
from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

BENCH = Path(__file__).resolve().parent
BUILD = BENCH.parent / "build" / "bench"

BARE = "bare decode"
STOKER = "stoker"
# name in the tables: file under peers/
PEERS = {
    STOKER: "stoker_loader",
    "torch, PIL": "torch_pil",
    "torch, v2 tensors": "torch_v2",
    "WebDataset": "webdataset_tar",
    "DALI, CPU": "dali_cpu",
    "tf.data": "tf_data",
    "FFCV": "ffcv_beton",
    "SPDL": "spdl_threads",
}


class Refused(Exception):
    """Why a contestant cannot take part, in a sentence."""


def constants(module):
    """The file's PACKAGES, NOTE and so on, read without importing what it needs."""
    found = {}
    source = (BENCH / "peers" / f"{module}.py").read_text()
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            try:
                found[node.targets[0].id] = eval(  # our own file: "a" if platform... else "b"
                    compile(ast.Expression(node.value), module, "eval"), {"platform": __import__("platform")})
            except Exception:
                pass
    return found


def rounds_of(name, rounds):
    """How often a contestant is measured: one whose start takes minutes says so in its ROUNDS."""
    return min(rounds, constants(PEERS[name]).get("ROUNDS", rounds)) if name in PEERS else rounds


def compile_c(name, *flags):
    """bench/NAME.c as a program; built again when the source is newer."""
    program, source = BUILD / name, BENCH / f"{name}.c"
    changed = max(source.stat().st_mtime, (BENCH / "measure.h").stat().st_mtime)
    if not program.exists() or program.stat().st_mtime < changed:
        BUILD.mkdir(parents=True, exist_ok=True)
        command = ["cc", "-O2", "-D_GNU_SOURCE", str(source), "-o", str(program), *flags, "-lpthread"]
        subprocess.run(command, check=True)
    return str(program)


def pkg_config(*arguments, path=None):
    env = dict(os.environ)
    if path:
        env["PKG_CONFIG_PATH"] = path
    said = subprocess.run(["pkg-config", *arguments], check=True, capture_output=True, text=True, env=env)
    return said.stdout.split()


def interpreter(name, module, install):
    """The Python of a contestant, peers/MODULE.py: this one, or one with its packages added to this one's."""
    about = constants(module)
    if not about["PACKAGES"]:
        return sys.executable
    venv = BUILD / "venvs" / module
    python = venv / "bin" / "python"
    done = venv / ".installed"
    failed = venv.with_suffix(".failed")
    lender = sysconfig.get_path("purelib")
    if done.exists() and done.read_text() == lender:
        return str(python)
    if not install:
        raise Refused("not installed")
    if failed.exists():
        raise Refused(failed.read_text().strip())
    absent = [p for p in about.get("DEBIAN", []) if subprocess.run(["dpkg", "-s", p], capture_output=True).returncode]
    if absent and os.getuid() == 0 and shutil.which("apt-get"):
        print(f"   installing for {name}: {' '.join(absent)}", flush=True)
        subprocess.run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", *absent], capture_output=True)
    print(f"   installing {name}: {' '.join(about['PACKAGES'])}", flush=True)
    uv = shutil.which("uv", path=os.path.dirname(sys.executable) + ":" + os.environ["PATH"])
    if not uv:
        raise Refused("needs uv to install")
    shutil.rmtree(venv, ignore_errors=True)
    subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, str(venv)], check=True)
    lent = subprocess.run([str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], check=True,
                          capture_output=True, text=True).stdout.strip()
    Path(lent, "lent.pth").write_text(lender + "\n")
    command = [uv, "pip", "install", "--quiet", "--python", str(python), *about["PACKAGES"]]
    if about.get("NO_DEPENDENCIES"):
        command += ["--no-deps", "--no-build-isolation-package", "ffcv"]
    answer = subprocess.run(command, capture_output=True, text=True)
    if answer.returncode:
        said = (answer.stderr.strip() or "pip failed").splitlines()
        failed.write_text("does not install here: " + said[-1].strip()[:200])
        failed.with_suffix(".log").write_text(answer.stderr)
        raise Refused(failed.read_text())
    done.write_text(lender)
    return str(python)


def run(name, python, folder, files, workers, batch, seconds):
    """One measurement: a dictionary with at least `rate`."""
    if name == BARE:
        cpus = sorted(os.sched_getaffinity(0))[:workers]
        program = compile_c("bare_decode", *pkg_config("--cflags", "--libs", "libjpeg"))
        command = ["taskset", "-c", ",".join(map(str, cpus)), program, str(workers), str(seconds), *files]
        answer = subprocess.run(command, check=True, capture_output=True, text=True)
        return {"rate": float(answer.stdout)}
    command = [python, str(BENCH / "peers" / f"{PEERS[name]}.py"), str(folder), "--workers", str(workers),
               "--batch", str(batch), "--seconds", str(seconds)]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=240 + 10 * seconds,
                                stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        raise Refused("did not finish in time") from None
    lines = [line for line in answer.stdout.splitlines() if line.startswith("{")]
    if answer.returncode or not lines:
        said = [line for line in answer.stderr.strip().splitlines() if line.strip()]
        raise Refused((said or ["no answer"])[-1].strip()[:200])
    return json.loads(lines[-1])

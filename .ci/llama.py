"""Install llama-cpp-python so that it runs on this machine's processor.

There are no ready-made wheels of it on PyPI. pip keeps the wheel it has built, but does not know
for which processor: a cached one may come from another machine and die of an illegal instruction.
So the result is tried out in a process of its own, and built again if that process crashes.

Run with the interpreter of the environment to install into.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

NAME = "llama-cpp-python"
ROOT = Path(__file__).resolve().parent.parent

# Leaves out images and audio, and the helpers of llama.cpp's own command line tools: two thirds of
# the build, and nothing here uses them.
SMALL = ["-DLLAVA_BUILD=OFF", f"'-DCMAKE_PROJECT_llama.cpp_INCLUDE={ROOT / '.ci/llama.cmake'}'"]

MAX_JOBS = 8  # a compiler takes up to 1 GB, and a container may have fewer cores than it sees

# What every x86-64 server and desktop since 2015 has. By default the build uses all that this
# processor has (GGML_NATIVE), and its wheel crashes on most others.
X86_64_V3 = {
    "sse4_2": "GGML_SSE42",
    "avx": "GGML_AVX",
    "avx2": "GGML_AVX2",
    "bmi2": "GGML_BMI2",
    "fma": "GGML_FMA",
    "f16c": "GGML_F16C",
}

# Multiplies matrices of the three types that the models hold (f32, f16, q8_0).
PROBE = """
import ctypes as c, pathlib, llama_cpp
class Params(c.Structure):
    _fields_ = [("size", c.c_size_t), ("buffer", c.c_void_p), ("no_alloc", c.c_bool)]
lib = pathlib.Path(llama_cpp.__file__).parent / "lib"
base, cpu = c.CDLL(str(lib / "libggml-base.so")), c.CDLL(str(lib / "libggml-cpu.so"))
for function in (base.ggml_init, base.ggml_new_tensor_2d, base.ggml_mul_mat, base.ggml_new_graph):
    function.restype = c.c_void_p
base.ggml_nbytes.restype, base.ggml_get_data.restype = c.c_size_t, c.c_void_p
cpu.ggml_cpu_init()
pool = base.ggml_init(Params(64 << 20, None, False))
def zeros(kind):
    tensor = c.c_void_p(base.ggml_new_tensor_2d(c.c_void_p(pool), kind, c.c_int64(256),
                                                c.c_int64(256)))
    c.memset(base.ggml_get_data(tensor), 0, base.ggml_nbytes(tensor))
    return tensor
for kind in (0, 1, 8):
    product = c.c_void_p(base.ggml_mul_mat(c.c_void_p(pool), zeros(kind), zeros(0)))
    graph = c.c_void_p(base.ggml_new_graph(c.c_void_p(pool)))
    base.ggml_build_forward_expand(graph, product)
    if cpu.ggml_graph_compute_with_ctx(c.c_void_p(pool), graph, 1) != 0:
        raise SystemExit("ggml refused to multiply two matrices")
"""


def say(text: str) -> None:
    """Print a line of progress at once."""
    print(f"==> {text}", flush=True)


def requirement() -> str:
    """Return what pyproject.toml asks for, such as "llama-cpp-python>=0.3.36"."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    dependencies: list[str] = project["dependencies"]
    return next(line for line in dependencies if line.startswith(NAME))


def cmake_args() -> str:
    """Return the options of the build; what the caller set in CMAKE_ARGS comes last and wins."""
    args = list(SMALL)
    if platform.machine() == "x86_64":
        cpuinfo = Path("/proc/cpuinfo")
        has = set(cpuinfo.read_text().split()) if cpuinfo.exists() else set()
        if has.issuperset(X86_64_V3):
            args += ["-DGGML_NATIVE=OFF", *(f"-D{option}=ON" for option in X86_64_V3.values())]
    return " ".join([*args, os.environ.get("CMAKE_ARGS", "")]).strip()


def pip(*args: str) -> int:
    """Run pip, showing its output; return its exit status."""
    jobs = str(min(len(os.sched_getaffinity(0)), MAX_JOBS))
    env = {"CMAKE_BUILD_PARALLEL_LEVEL": jobs, **os.environ, "CMAKE_ARGS": cmake_args()}
    command = [sys.executable, "-m", "pip", "--no-input", *args]
    return subprocess.run(command, env=env, check=False).returncode


def install(*args: str) -> None:
    """Install the library; end this program when that fails."""
    if pip("install", *args, requirement()):
        say(f"could not install {NAME}; it needs a C++ compiler (Debian, Ubuntu: build-essential)")
        raise SystemExit(1)


def works() -> bool:
    """Say whether the installed library can compute here."""
    probe = subprocess.run(
        [sys.executable, "-c", PROBE], stderr=subprocess.PIPE, text=True, check=False
    )
    if probe.returncode:
        # Negative: killed by that signal; 4 is SIGILL, an instruction this processor lacks.
        say(f"{NAME} does not run here (exit status {probe.returncode}) {probe.stderr[-300:]}")
    return probe.returncode == 0


def main() -> None:
    """Install, try, and build again when the library that pip had kept does not run here."""
    try:
        metadata.version(NAME)
        install("--quiet")
    except metadata.PackageNotFoundError:
        say("llama.cpp: building from source, about 3 minutes on 2 cores, once (pip keeps it)")
        install()
    if not works():
        say("building llama.cpp again for this processor, about 3 minutes on 2 cores")
        pip("cache", "remove", NAME.replace("-", "_"))
        install("--force-reinstall", "--no-deps")
        if not works():
            raise SystemExit(1)


if __name__ == "__main__":
    main()

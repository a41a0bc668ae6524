"""Compiles kernels.cu to kernels.ptx with NVRTC 12.0: PTX ISA 8.0 for sm_75. No GPU, no headers.

    pip install nvidia-cuda-nvrtc-cu12==12.0.140
    python build.py [--check] [path/to/libnvrtc.so.12]

Other versions of NVRTC write other PTX and are refused. With --check nothing is written: exit status 1 where the file is not
what the source compiles to, 77 where there is no NVRTC 12.0.

The header of the file states the hash (FNV-1a, 64 bits) of its source, which the tests hold against kernels.cu.
"""

import ctypes
import ctypes.util
import os
import pathlib
import sys

OPTIONS = [b"--gpu-architecture=compute_75", b"--fmad=false", b"--no-source-include"]


def fnv(data: bytes) -> int:
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


def find(arguments: list) -> ctypes.CDLL:
    """NVRTC 12.0: the one that is named, the installed wheel's, the system's."""
    names = [*arguments, os.environ.get("NVRTC"), *(f"{at}/nvidia/cuda_nvrtc/lib/libnvrtc.so.12" for at in sys.path)]
    for name in [*names, ctypes.util.find_library("nvrtc")]:
        try:
            nvrtc = ctypes.CDLL(name) if name else None
        except OSError:
            continue
        version = (ctypes.c_int(), ctypes.c_int())
        if nvrtc and nvrtc.nvrtcVersion(*map(ctypes.byref, version)) == 0 and [v.value for v in version] == [12, 0]:
            return nvrtc
    print("no NVRTC 12.0 found", file=sys.stderr)
    sys.exit(77)


def compile_ptx(nvrtc: ctypes.CDLL, source: bytes) -> bytes:
    program = ctypes.c_void_p()
    assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, b"kernels.cu", 0, None, None) == 0
    options = (ctypes.c_char_p * len(OPTIONS))(*OPTIONS)
    result = nvrtc.nvrtcCompileProgram(program, len(OPTIONS), options)
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    if result != 0:
        sys.exit(log.value.decode())
    nvrtc.nvrtcGetPTXSize(program, ctypes.byref(size))
    ptx = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetPTX(program, ptx)
    return ptx.value


def main() -> None:
    here = pathlib.Path(__file__).parent
    source = (here / "kernels.cu").read_bytes()
    ptx = b"// source kernels.cu, fnv1a64 %016x\n" % fnv(source) + compile_ptx(find([a for a in sys.argv[1:] if a != "--check"]), source)
    if "--check" in sys.argv:
        sys.exit(0 if (here / "kernels.ptx").read_bytes() == ptx else "kernels.ptx is not what kernels.cu compiles to")
    (here / "kernels.ptx").write_bytes(ptx)


if __name__ == "__main__":
    main()

"""Compiles kernels.cu to kernels.ptx with NVRTC 12.0: PTX ISA 8.0 for sm_75. No GPU, no headers.

    pip download nvidia-cuda-nvrtc-cu12==12.0.140 --no-deps, unpack it, then:
    python build.py path/to/libnvrtc.so.12 [--check]

The header of the file states the hash (FNV-1a, 64 bits) of its source, which the tests hold against kernels.cu.
"""

import ctypes
import pathlib
import sys

OPTIONS = [b"--gpu-architecture=compute_75", b"--fmad=false", b"--no-source-include"]


def fnv(data: bytes) -> int:
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


def compile_ptx(library: str, source: bytes) -> bytes:
    nvrtc = ctypes.CDLL(library)
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
    ptx = b"// source kernels.cu, fnv1a64 %016x\n" % fnv(source) + compile_ptx(sys.argv[1], source)
    if "--check" in sys.argv:
        sys.exit(0 if (here / "kernels.ptx").read_bytes() == ptx else "kernels.ptx is not what kernels.cu compiles to")
    (here / "kernels.ptx").write_bytes(ptx)


if __name__ == "__main__":
    main()

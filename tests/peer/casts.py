"""Whether two casts one after the other are one cast in PyTorch, bit for bit.

    python tests/peer/casts.py TRIPLES

TRIPLES has a line for each claim, the names of three dtypes. Prints the claims that do not hold, with a value, then how many hold.
Values: all of 8 and 16 bits; else random bits, random magnitudes, and what lies between two numbers of each smaller format
and next to that. Floats that are no integer of the dtype they are cast to are left out. The Rust side is oracle/models/semantics/symbolic/cast.rs.
"""

import sys
import warnings

import torch

warnings.filterwarnings("ignore")
COUNT = 1 << 14
SMALL = (torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)
INTS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def bits(generator, count=COUNT):
    return torch.randint(-(2**63), 2**63 - 1, (count,), dtype=torch.int64, generator=generator)


def all_of(dtype):
    """All values of a dtype of at most 16 bits."""
    raw = torch.arange(1 << (8 * dtype.itemsize), dtype=torch.int32).to(INTS[dtype.itemsize])
    return raw.view(dtype)


def floats(dtype, generator):
    infinity = torch.tensor(float("inf"), dtype=dtype)
    parts = [bits(generator).view(dtype), (bits(generator) >> torch.randint(0, 62, (COUNT,), generator=generator)).to(dtype)]
    for small in SMALL:
        numbers = all_of(small).to(torch.float64)
        numbers = numbers[numbers.isfinite()].unique()
        ties = ((numbers[1:] + numbers[:-1]) / 2).to(dtype)
        # As float32 the last ones are the ties themselves.
        parts += [ties, torch.nextafter(ties, infinity), torch.nextafter(ties, -infinity), ties * (1 + 2.0**-40)]
    return torch.cat(parts)


def integers(dtype, generator):
    parts = [bits(generator), bits(generator) >> torch.randint(0, 63, (COUNT,), generator=generator)]
    for significant in (3, 4, 8, 11, 24, 53):
        room = 8 * dtype.itemsize - 2 - significant
        if room < 1:
            continue
        top = torch.randint(0, 2**significant, (COUNT,), generator=generator) | (1 << (significant - 1))
        shift = torch.randint(1, room + 1, (COUNT,), generator=generator)
        near = (top << shift) + (torch.ones_like(top) << (shift - 1)) + torch.randint(-1, 2, (COUNT,), generator=generator)
        parts += [near, -near]
    return torch.cat(parts).to(INTS[dtype.itemsize]).view(dtype)


def values(dtype):
    generator = torch.Generator().manual_seed(1)
    if dtype is torch.bool:
        return torch.tensor([True, False] * 64)
    if dtype.is_complex:
        part = floats(torch.float32 if dtype is torch.complex64 else torch.float64, generator)
        return torch.complex(part, part.flip(0))
    if dtype.itemsize <= 2:
        return all_of(dtype)
    return (floats if dtype.is_floating_point else integers)(dtype, generator)


def raw(tensor):
    """Bits, with one not-a-number."""
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor).contiguous()
    result = tensor.contiguous().view(INTS[tensor.dtype.itemsize]).clone()
    if tensor.dtype.is_floating_point:
        result[tensor.to(torch.float64).isnan()] = 1
    return result.reshape(len(tensor), -1)


def is_defined(given, last):
    """Where C++ says what the cast gives: not where a float has no integer of the dtype."""
    if last.is_floating_point or last.is_complex or last is torch.bool or not (given.dtype.is_floating_point or given.is_complex()):
        return torch.ones(len(given), dtype=torch.bool)
    real = (given.real if given.is_complex() else given).to(torch.float64).trunc()
    info = torch.iinfo(last)
    # The greatest int64 and uint64 are no float64, and 2^63 and 2^64 are out of range.
    return (real >= info.min) & ((real < float(info.max)) | (real == info.max) & (last.itemsize < 8))


def main():
    known, claims, held = {}, [line.split() for line in open(sys.argv[1])], 0
    for names in claims:
        first, middle, last = (getattr(torch, name) for name in names)
        if first not in known:
            known[first] = values(first)
        given = known[first]
        wrong = (raw(given.to(middle).to(last)) != raw(given.to(last))).any(1) & is_defined(given, last)
        held += not wrong.any()
        if wrong.any():
            at = wrong.nonzero()[0].item()
            one, two = given.to(last)[at].item(), given.to(middle).to(last)[at].item()
            print(*names, f"{int(wrong.sum())} of {len(given)}: {given[at].item()} gives {two}, and at once {one}")
    print(f"{held} of {len(claims)} are one cast")


main()

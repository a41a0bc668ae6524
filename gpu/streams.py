"""What `order/streams` takes for granted of PyTorch's streams and allocator, asked of a GPU.

    python gpu/streams.py

Each fact is a small program whose streams are held back by a kernel that waits, so that what is not ordered shows.
Prints one line for each; exit status 1 if one does not hold, 2 without a GPU.
"""

import sys

import torch

CYCLES = 200_000_000  # about a tenth of a second
ELEMENTS = 1 << 20


def filled(value):
    return torch.full((ELEMENTS,), float(value), device="cuda")


def is_all(tensor, value):
    torch.cuda.synchronize()
    return bool((tensor == value).all())


def side_reads_late(main, before_free):
    """Another stream reads `a` late; main frees it and allocates again. Whether it is the same memory; what was read."""
    side = torch.cuda.Stream()
    a = filled(1)
    read = filled(0)
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        torch.cuda._sleep(CYCLES)
        read.copy_(a)
    before_free(a, side, main)
    where = a.data_ptr()
    del a
    taken = filled(2)
    same = taken.data_ptr() == where
    torch.cuda.synchronize()
    return same, read


def freed_memory_is_taken_under_a_reader():
    same, read = side_reads_late(torch.cuda.current_stream(), lambda a, side, main: None)
    return same and is_all(read, 2)


def record_stream_keeps_it():
    same, read = side_reads_late(torch.cuda.current_stream(), lambda a, side, main: a.record_stream(side))
    return not same and is_all(read, 1)


def a_wait_before_the_next_allocation_is_enough():
    same, read = side_reads_late(torch.cuda.current_stream(), lambda a, side, main: main.wait_stream(side))
    return same and is_all(read, 1)


def a_stream_takes_only_its_own_memory():
    a = filled(1)
    where = a.data_ptr()
    del a
    with torch.cuda.stream(torch.cuda.Stream()):
        other = filled(2)
    torch.cuda.synchronize()
    return other.data_ptr() != where


def streams_run_side_by_side():
    side = torch.cuda.Stream()
    a = filled(1)
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        torch.cuda._sleep(CYCLES)
        a.add_(1)
    read = a.clone()
    return is_all(read, 1) and is_all(a, 2)


def read_behind(before=False, after=False):
    """What is read behind an event that another stream records before and after a late write, or at neither place."""
    side, event = torch.cuda.Stream(), torch.cuda.Event()
    a = filled(1)
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        if before:
            event.record()
        torch.cuda._sleep(CYCLES)
        a.add_(1)
        if after:
            event.record()
    torch.cuda.current_stream().wait_event(event)
    return a.clone()


def an_event_orders_them():
    return is_all(read_behind(after=True), 2)


def an_event_marks_what_stood_before_it():
    return is_all(read_behind(before=True), 1)


def a_wait_takes_the_last_record():
    return is_all(read_behind(before=True, after=True), 2)


def an_event_nobody_recorded_holds_nothing_back():
    return is_all(read_behind(), 1)


def a_copy_to_the_host_is_waited_for():
    a = filled(1)
    torch.cuda.synchronize()
    torch.cuda._sleep(CYCLES)
    a.add_(1)
    return bool((a.to("cpu") == 2).all())


def a_copy_to_the_host_that_does_not_block_is_not():
    a = filled(1)
    # Memory of the host that the copy will get: not the answer.
    torch.full((ELEMENTS,), 7.0, pin_memory=True)
    torch.cuda.synchronize()
    torch.cuda._sleep(CYCLES)
    a.add_(1)
    host = a.to("cpu", non_blocking=True)
    early = bool((host == 2).all())
    torch.cuda.synchronize()
    return not early and bool((host == 2).all())


def a_copy_to_the_device_reads_pinned_memory_later():
    host = torch.full((ELEMENTS,), 1.0, pin_memory=True)
    torch.cuda.synchronize()
    torch.cuda._sleep(CYCLES)
    device = host.to("cuda", non_blocking=True)
    host.fill_(2)
    return is_all(device, 2)


def a_copy_to_the_device_is_waited_for():
    host = torch.full((ELEMENTS,), 1.0, pin_memory=True)
    torch.cuda.synchronize()
    torch.cuda._sleep(CYCLES)
    device = host.to("cuda")
    host.fill_(2)
    return is_all(device, 1)


def item_waits_for_its_stream_alone():
    side = torch.cuda.Stream()
    a, late = filled(1), torch.cuda.Event()
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        torch.cuda._sleep(CYCLES)
        late.record()
    a.sum().item()
    others = not late.query()
    torch.cuda.synchronize()
    own = torch.cuda.Event()
    torch.cuda._sleep(CYCLES)
    own.record()
    a.sum().item()
    return others and own.query()


FACTS = [
    freed_memory_is_taken_under_a_reader,
    record_stream_keeps_it,
    a_wait_before_the_next_allocation_is_enough,
    a_stream_takes_only_its_own_memory,
    streams_run_side_by_side,
    an_event_orders_them,
    an_event_marks_what_stood_before_it,
    a_wait_takes_the_last_record,
    an_event_nobody_recorded_holds_nothing_back,
    a_copy_to_the_host_is_waited_for,
    a_copy_to_the_host_that_does_not_block_is_not,
    a_copy_to_the_device_reads_pinned_memory_later,
    a_copy_to_the_device_is_waited_for,
    item_waits_for_its_stream_alone,
]


def main():
    if not torch.cuda.is_available():
        print("no GPU: nothing was asked")
        return 2
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    # Memory and kernels are there before anything is held back.
    for _ in range(2):
        answers = {fact.__name__.replace("_", " "): fact() for fact in FACTS}
    for fact, holds in answers.items():
        print(f"{'holds' if holds else 'DOES NOT HOLD':14} {fact}")
    return int(not all(answers.values()))


if __name__ == "__main__":
    sys.exit(main())

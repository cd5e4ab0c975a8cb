"""`simgpu-hold --gpu N --mib M`: nobody's process holds memory until it is killed."""

from __future__ import annotations

import argparse
import signal
import sys

from .devices import present, root_directory
from .memory import Allocation, OutOfMemoryError


def main() -> int:
    parser = argparse.ArgumentParser(prog="simgpu-hold", description=__doc__)
    parser.add_argument("--gpu", type=int, required=True, help="the GPU's index")
    parser.add_argument("--mib", type=int, required=True, help="memory to hold, in MiB")
    options = parser.parse_args()
    gpu = {g.index: g for g in present(root_directory())}.get(options.gpu)
    if gpu is None:
        parser.error(f"no GPU {options.gpu}")
    try:
        Allocation(root_directory(), gpu).resize(options.mib)
    except OutOfMemoryError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"holding {options.mib} MiB on GPU {gpu.index} ({gpu.uuid})", flush=True)
    signal.pause()
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""`simgpu-create`: makes the GPUs appear at boot, from /etc/simgpu/gpus.json."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from .devices import define, root_directory, simulated_l4

CONFIGURATION = Path("/etc/simgpu/gpus.json")


def main() -> int:
    wanted = json.loads(CONFIGURATION.read_text())
    gpus = [simulated_l4(index, wanted["memory_mib"]) for index in range(wanted["count"])]
    define(root_directory(), gpus)
    return 0


if __name__ == "__main__":
    sys.exit(main())

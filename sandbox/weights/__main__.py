"""`python3 -m sandbox.weights ROOT [--spec name:layers:hidden:… …]`: what runs on the host."""

from __future__ import annotations

import argparse
from pathlib import Path

from .catalog import STANDARD, custom
from .directory import write_model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", type=Path)
    parser.add_argument("--spec", action="append", default=[], help="name:layers:hidden[:…]")
    options = parser.parse_args()
    models = [custom(spec) for spec in options.spec] or list(STANDARD)
    for model in models:
        total = write_model(options.root, model)
        print(f"{model.name}: {total / 1e9:.2f} GB")


if __name__ == "__main__":
    main()

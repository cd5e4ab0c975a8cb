"""The stand-in for `vllm serve` 0.32: its command line, paths, errors and metrics; no model."""

VERSION = "0.32.0"

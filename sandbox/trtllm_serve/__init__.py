"""The stand-in for TensorRT-LLM's `trtllm-serve` 1.2.1: command line, paths, errors and metrics."""

VERSION = "1.2.1"

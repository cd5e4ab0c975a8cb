"""The stand-in for vLLM behind Triton's `vllm` backend: vLLM's memory, errors and stream, no model.

It runs in Triton's Python stub (3.11) inside a container on the simulated host.
"""

"""Where NVIDIA's preprocessing is, its stand-in."""

from sandbox.trtllm_triton.preprocessing import TritonPythonModel

__all__ = ["TritonPythonModel"]

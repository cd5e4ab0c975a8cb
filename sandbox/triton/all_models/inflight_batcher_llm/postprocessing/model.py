"""Where NVIDIA's postprocessing is, its stand-in."""

from sandbox.trtllm_triton.postprocessing import TritonPythonModel

__all__ = ["TritonPythonModel"]

"""Entry of the `tensorrtllm` backend: the stand-in for NVIDIA's C++ one."""

from sandbox.trtllm_triton.batcher_model import TritonPythonModel

__all__ = ["TritonPythonModel"]

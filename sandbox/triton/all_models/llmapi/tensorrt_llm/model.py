"""Where NVIDIA's LLM-API model is, its stand-in."""

from sandbox.trtllm_triton.llmapi_model import TritonPythonModel

__all__ = ["TritonPythonModel"]

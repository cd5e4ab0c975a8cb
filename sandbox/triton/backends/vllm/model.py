"""Entry of the `vllm` backend: Triton looks for the class TritonPythonModel here."""

from vllm_standin.triton_model import TritonPythonModel  # type: ignore[import-not-found]

__all__ = ["TritonPythonModel"]

"""TensorRT-LLM's engine without its arithmetic: memory taken its way, answers as vLLM's stand-in.

Used by `trtllm-serve` and by the models that run TensorRT-LLM inside Triton.
"""

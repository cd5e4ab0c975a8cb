"""TensorRT-LLM's models inside Triton: what the image's /app/all_models holds runs on these.

Modules here run in Triton's Python stub, where `triton_python_backend_utils` is.
"""

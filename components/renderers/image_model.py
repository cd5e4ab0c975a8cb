"""A `model.py` that is the image's own: TensorRT-LLM's models for Triton's Python backend.

NVIDIA's images hold them under /app/all_models, made for the release in the same image. A copy in
the repository would be another release's after an image's change, and a link would dangle on the
host; so an entry holds a few lines that load the image's file, wherever the entry came from. What
the model reads beside itself (`pb_utils.get_model_dir()`: its model.yaml) it then finds in the
entry; what it imports beside itself (`helpers`), in the image.
"""

from __future__ import annotations

ALL_MODELS = "/app/all_models"
"""In NVIDIA's images `tritonserver:YY.MM-trtllm-python-py3`."""
_PROGRAM = '''\
"""The image's own {model}: its code is of the TensorRT-LLM beside it."""

import importlib.util
import os
import sys

PLACE = "{place}"
if not os.path.isfile(PLACE + "/model.py"):
    raise RuntimeError("the image holds no " + PLACE + "/model.py")
sys.path.insert(0, PLACE)
_spec = importlib.util.spec_from_file_location("image_model", PLACE + "/model.py")
_module = importlib.util.module_from_spec(_spec)
sys.modules["image_model"] = _module
_spec.loader.exec_module(_module)
TritonPythonModel = _module.TritonPythonModel
'''


def image_model(model: str) -> str:
    """The text of `1/model.py`.

    Args:
        model: a folder of /app/all_models: `llmapi/tensorrt_llm`.
    """
    return _PROGRAM.format(model=model, place=f"{ALL_MODELS}/{model}/1")

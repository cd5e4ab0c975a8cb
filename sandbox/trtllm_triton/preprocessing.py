"""The inflight batcher's first part: text to ids."""

from __future__ import annotations

from typing import Any

import numpy as np  # type: ignore[import-not-found,unused-ignore]
import triton_python_backend_utils as pb_utils  # type: ignore[import-not-found]

from .token_ids import END, encode, pack_words


def _words(request: Any, name: str) -> Any:
    tensor = pb_utils.get_input_tensor_by_name(request, name)
    found = [] if tensor is None else [word.decode() for word in tensor.as_numpy().flatten()]
    return np.asarray([pack_words(word for word in found if word)], dtype=np.int32)


class TritonPythonModel:
    """One request of one row each; batches of several rows are not played."""

    def execute(self, requests: list[Any]) -> list[Any]:
        return [_response(request) for request in requests]


def _response(request: Any) -> Any:
    query = pb_utils.get_input_tensor_by_name(request, "QUERY").as_numpy().flatten()[0]
    asked = pb_utils.get_input_tensor_by_name(request, "REQUEST_OUTPUT_LEN").as_numpy()
    ids = encode(query.decode(), bos=True)
    tensors = {
        "INPUT_ID": np.asarray([ids], dtype=np.int32),
        "REQUEST_INPUT_LEN": np.asarray([[len(ids)]], dtype=np.int32),
        "REQUEST_OUTPUT_LEN": asked,
        "STOP_WORDS_IDS": _words(request, "STOP_WORDS_DICT"),
        "BAD_WORDS_IDS": _words(request, "BAD_WORDS_DICT"),
        "OUT_END_ID": np.asarray([[END]], dtype=np.int32),
        "OUT_PAD_ID": np.asarray([[END]], dtype=np.int32),
    }
    made = [pb_utils.Tensor(name, values) for name, values in tensors.items()]
    return pb_utils.InferenceResponse(output_tensors=made)

"""The inflight batcher's last part: ids to text."""

from __future__ import annotations

from typing import Any

import numpy as np  # type: ignore[import-not-found,unused-ignore]
import triton_python_backend_utils as pb_utils  # type: ignore[import-not-found]

from .token_ids import decode


class TritonPythonModel:
    """Of what it is given: in a stream that is what is new."""

    def execute(self, requests: list[Any]) -> list[Any]:
        return [_response(request) for request in requests]


def _response(request: Any) -> Any:
    ids = pb_utils.get_input_tensor_by_name(request, "TOKENS_BATCH").as_numpy()[0]
    lengths = pb_utils.get_input_tensor_by_name(request, "SEQUENCE_LENGTH").as_numpy()[0]
    texts = [decode(row[:length]).encode() for row, length in zip(ids, lengths, strict=True)]
    output = pb_utils.Tensor("OUTPUT", np.asarray([texts], dtype=np.object_))
    return pb_utils.InferenceResponse(output_tensors=[output])

"""A stand-in for Triton's vLLM backend: takes memory, answers, and fails when it is told to.

Its model.json says how: `gpus` and `mib` (memory it takes on each), `load_s`, `unload_s`,
`raise_on_load`, `raise_on_answer`, `die_on_answer`, `answer`, `answer_s`, `leak_pid` (a worker that
holds the memory and outlives the model), and `place`, the directory where it notes the memory it
holds and when it lived.
"""

import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np  # type: ignore[import-not-found, unused-ignore]
import triton_python_backend_utils as pb_utils  # type: ignore[import-not-found]


class TritonPythonModel:
    def initialize(self, args: dict[str, str]) -> None:
        version = Path(args["model_repository"]) / args["model_version"]
        self.name = args["model_name"]
        self.told = json.loads((version / "model.json").read_text())
        self.place = Path(self.told["place"])
        self._note("begin")
        self._hold(self.told.get("leak_pid", os.getpid()))
        time.sleep(self.told.get("load_s", 0))
        if "raise_on_load" in self.told:
            self._drop()
            self._note("end")
            raise RuntimeError(self.told["raise_on_load"])

    def execute(self, requests: list[Any]) -> None:
        for request in requests:
            time.sleep(self.told.get("answer_s", 0))
            sender = request.get_response_sender()
            final = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL
            if "die_on_answer" in self.told:
                os._exit(1)
            if "raise_on_answer" in self.told:
                error = pb_utils.TritonError(self.told["raise_on_answer"])
                sender.send(pb_utils.InferenceResponse(error=error), flags=final)
                continue
            text = np.array([self.told.get("answer", "Hi")], dtype=object)
            outputs = [
                pb_utils.Tensor("text_output", text),
                pb_utils.Tensor("finish_reason", np.array(["stop"], dtype=object)),
            ]
            sender.send(pb_utils.InferenceResponse(output_tensors=outputs), flags=final)
        return

    def finalize(self) -> None:
        time.sleep(self.told.get("unload_s", 0))
        self._drop()
        self._note("end")

    def _note(self, what: str) -> None:
        with (self.place / "lifetimes").open("a") as log:
            log.write(f"{what} {self.name} {os.getpid()} {time.time()}\n")

    def _hold(self, pid: int) -> None:
        for gpu in self.told.get("gpus", []):
            (self.place / "memory").mkdir(exist_ok=True)
            (self.place / "memory" / f"{gpu},{pid},{self.told['mib']},python3").touch()

    def _drop(self) -> None:
        for gpu in self.told.get("gpus", []):
            path = self.place / "memory" / f"{gpu},{os.getpid()},{self.told['mib']},python3"
            path.unlink(missing_ok=True)

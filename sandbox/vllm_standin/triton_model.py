"""The `vllm` backend's model class: NVIDIA's life cycle around the stand-in engine."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import numpy as np  # type: ignore[import-not-found,unused-ignore]
import triton_python_backend_utils as pb_utils  # type: ignore[import-not-found]

from . import checkpoint, engine_args, placement, signature
from .engine import Engine, start
from .generation import FINAL, generate
from .metrics import Metrics
from .request import parameters

UNHEALTHY = "Model is unavailable due to unhealthy vLLM engine"


class TritonPythonModel:
    """One instance: Triton calls initialize, execute and finalize in a process of its own."""

    @classmethod
    def auto_complete_config(cls, auto_complete_model_config: Any) -> Any:
        return signature.complete(auto_complete_model_config)

    def initialize(self, args: dict[str, str]) -> None:
        self._config: dict[str, Any] = json.loads(args["model_config"])
        self._log = pb_utils.Logger.log_info
        decoupled = pb_utils.using_decoupled_model_transaction_policy(self._config)
        assert decoupled, (  # noqa: S101
            "vLLM Triton backend must be configured to use decoupled model transaction policy"
        )
        arguments = engine_args.parse(self._engine_arguments())
        kind, device = args["model_instance_kind"], int(args["model_instance_device_id"])
        placement.apply_kind(kind, device, arguments, self._log)
        found = checkpoint.read(arguments.model)
        gpus = placement.choose(arguments, placement.server_is_explicit())
        self._engine: Engine = start(arguments, found, gpus, pb_utils.Logger.log_error)
        reports = self._flag("REPORT_CUSTOM_METRICS") and not arguments.disable_log_stats
        labels = {"model": args["model_name"], "version": args["model_version"]}
        self._metrics = self._make_metrics(labels if reports else None)
        self._ongoing = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def _engine_arguments(self) -> dict[str, Any]:
        folder = Path(pb_utils.get_model_dir())
        file = folder / "model.json"
        assert file.is_file(), (  # noqa: S101
            f"'model.json' containing vllm engine args must be provided in '{folder}'"
        )
        found: dict[str, Any] = json.loads(file.read_text())
        return found

    def _flag(self, name: str) -> bool:
        entry = self._config.get("parameters", {}).get(name, {})
        return str(entry.get("string_value", "")).lower() == "true"

    def _make_metrics(self, labels: dict[str, str] | None) -> Metrics:
        try:
            return Metrics(labels)
        except pb_utils.TritonModelException as error:
            if "metrics not supported" not in str(error):
                raise
            self._log("[vllm] Metrics not supported")
            return Metrics(None)

    def execute(self, requests: list[Any]) -> None:
        if self._flag("ENABLE_VLLM_HEALTH_CHECK") and not self._engine.alive:
            self._refuse(requests)
            return
        for request in requests:
            sender = request.get_response_sender()
            lora = json.loads(parameters(request)).get("lora_name")
            if lora is not None:
                _fail(sender, "LoRA feature is not enabled.")
                continue
            self._ongoing += 1
            asyncio.run_coroutine_threadsafe(self._answer(request, sender), self._loop)

    async def _answer(self, request: Any, sender: Any) -> None:
        try:
            await generate(self._engine, request, sender, self._metrics, self._log)
        except Exception as error:  # noqa: BLE001 (NVIDIA's backend passes every error on)
            pb_utils.Logger.log_error(f"[vllm] Error generating stream: {error}")
            _fail(sender, f"Error generating stream: {error}")
        finally:
            self._ongoing -= 1

    def _refuse(self, requests: list[Any]) -> None:
        pb_utils.Logger.log_error("[vllm] Engine is not healthy and model will be unloaded")
        pb_utils.unload_model(self._config["name"])
        for request in requests:
            error = pb_utils.TritonError(UNHEALTHY, pb_utils.TritonError.UNAVAILABLE)
            response = pb_utils.InferenceResponse(error=error)
            request.get_response_sender().send(response, flags=FINAL)

    def finalize(self) -> None:
        self._log("[vllm] Issuing finalize to vllm backend")
        waiting = asyncio.run_coroutine_threadsafe(self._wait_for_requests(), self._loop)
        waiting.result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=5)
        self._engine.shutdown()
        self._log("[vllm] Shutdown complete")

    async def _wait_for_requests(self) -> None:
        """A model goes only when its last answer has gone: a second at a time, as NVIDIA's."""
        while self._ongoing > 0:
            self._log(f"[vllm] Awaiting remaining {self._ongoing} requests")
            await asyncio.sleep(1)


def _fail(sender: Any, text: str) -> None:
    tensor = pb_utils.Tensor("text_output", np.asarray([b"N/A"], dtype=np.object_))
    error = pb_utils.TritonError(text)
    sender.send(pb_utils.InferenceResponse(output_tensors=[tensor], error=error), flags=FINAL)

"""The LLM-API model (`all_models/llmapi/tensorrt_llm/1/model.py`) in Triton's Python backend."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import triton_python_backend_utils as pb_utils  # type: ignore[import-not-found]
import yaml

from sandbox.serving.steps import Generation
from sandbox.trtllm_standin.loading import Wanted, load

from .llmapi_request import Request, response
from .running import Running, Unheard

FINAL = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL
_MOST_RUNNING = 2048


def model_yaml() -> dict[str, Any]:
    """The version folder's `model.yaml`, or the file there that LLM_CONFIG_PATH names.

    Raises:
        FileNotFoundError: it is not there.
    """
    folder, name = Path(pb_utils.get_model_dir()), os.environ.get("LLM_CONFIG_PATH", "model.yaml")
    if not (folder / name).is_file():
        raise FileNotFoundError(f"'{name}' containing TRT-LLM engine args must be in '{folder}'")
    found: dict[str, Any] = yaml.safe_load((folder / name).read_text()) or {}
    return found


def wanted(arguments: dict[str, Any]) -> Wanted:
    """What of model.yaml (without `triton_config`) the engine takes its memory by."""
    kv = arguments.get("kv_cache_config") or {}
    return Wanted(
        model=str(arguments["model"]),
        tp=int(arguments.get("tensor_parallel_size", 1)),
        pp=int(arguments.get("pipeline_parallel_size", 1)),
        memory_fraction=float(kv.get("free_gpu_memory_fraction", 0.9)),
        kv_tokens=kv.get("max_tokens"),
        max_seq_len=arguments.get("max_seq_len"),
    )


class TritonPythonModel:
    """One instance: Triton calls initialize, execute and finalize in a process of its own."""

    @classmethod
    def auto_complete_config(cls, auto_complete_model_config: Any) -> Any:
        """`triton_config` decides batching and decoupling, not config.pbtxt."""
        told = model_yaml().get("triton_config") or {}
        auto_complete_model_config.set_max_batch_size(int(told.get("max_batch_size", 0)))
        decoupled = {"decoupled": bool(told.get("decoupled", False))}
        auto_complete_model_config.set_model_transaction_policy(decoupled)
        return auto_complete_model_config

    def initialize(self, args: dict[str, str]) -> None:
        config = json.loads(args["model_config"])
        self._decoupled = pb_utils.using_decoupled_model_transaction_policy(config)
        self._batched = int(config.get("max_batch_size", 0)) > 0
        arguments = model_yaml()
        told = arguments.pop("triton_config", None) or {}
        self._poll = float(told.get("cancellation_check_period_ms", 100)) / 1000
        most = int(arguments.get("max_batch_size", _MOST_RUNNING))
        engine = load(wanted(arguments), pb_utils.Logger.log_error)
        self._running = Running(engine, most, Unheard())
        self._open: dict[str, Generation] = {}

    def execute(self, requests: list[Any]) -> None:
        """Answers come later, by the responses' senders, streaming or not."""
        for request in requests:
            sender = request.get_response_sender()
            self._running.spawn(self._answer(request, sender))

    async def _answer(self, raw: Any, sender: Any) -> None:
        try:
            request = Request.read(raw)
            if request.stop:
                self._stop(request.id)
                sender.send(flags=FINAL)
                return
            if request.streaming and not self._decoupled:
                raise ValueError("Streaming is only supported in decoupled mode.")
            await self._generate(request, sender)
        except Exception as error:  # noqa: BLE001 (every failure goes to the client)
            pb_utils.Logger.log_error(f"[trtllm] Error generating request: {error}")
            told = pb_utils.TritonError(f"Error generating request: {error}")
            sender.send(pb_utils.InferenceResponse(error=told), flags=FINAL)

    async def _generate(self, request: Request, sender: Any) -> None:
        generation = self._running.generation(request.prompt, request.sampling)
        self._running.stepper.submit(generation)
        if request.id:
            self._open[request.id] = generation
        watching = asyncio.ensure_future(self._watch(generation, sender))
        try:
            async for _ in generation.changes():
                if generation.aborted:
                    raise RuntimeError("Request cancelled by client")
                if request.streaming:
                    flags = FINAL if generation.finished else 0
                    sender.send(response(request, generation, self._batched), flags=flags)
            if not request.streaming:
                sender.send(response(request, generation, self._batched), flags=FINAL)
        finally:
            watching.cancel()
            self._open.pop(request.id, None)
            self._running.stepper.release(generation)

    async def _watch(self, generation: Generation, sender: Any) -> None:
        while not sender.is_cancelled():  # noqa: ASYNC110 (Triton has to be asked)
            await asyncio.sleep(self._poll)
        self._running.stepper.release(generation)

    def _stop(self, request_id: str) -> None:
        """A second request with the first one's id and `stop` cancels the first."""
        if not request_id:
            raise ValueError("A request id must be provided for request cancellation")
        if request_id in self._open:
            self._running.stepper.release(self._open[request_id])

    def finalize(self) -> None:
        self._running.shutdown()

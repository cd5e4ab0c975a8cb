"""The `tensorrt_llm` model of the inflight batcher: ids in, ids out, a step at a time."""

from __future__ import annotations

import asyncio
import json
import os
from typing import Any

import numpy as np  # type: ignore[import-not-found,unused-ignore]
import triton_python_backend_utils as pb_utils  # type: ignore[import-not-found]

from sandbox.serving.steps import Generation, Visible
from sandbox.trtllm_standin import engine_dir
from sandbox.trtllm_standin.loading import Wanted, load
from sandbox.vllm_standin import sampling
from sandbox.vllm_standin.sampling import Sampling

from .batcher_metrics import BatcherMetrics
from .running import Running
from .token_ids import decode, encode, unpack_words

FINAL = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL
_MOST_RUNNING = 256
NO_WORKERS = (
    "[TensorRT-LLM][ERROR] Assertion failed: With communicationMode kLEADER, MPI worldSize is "
    "expected to be equal to tp*pp*cp when participantIds are not specified"
)
"""Without orchestrator mode the server itself has to be started by mpirun, once for each GPU."""
_TO_ENGINE = {
    "temperature": "temperature",
    "runtime_top_k": "top_k",
    "runtime_top_p": "top_p",
    "repetition_penalty": "repetition_penalty",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
    "seed": "seed",
    "request_output_len": "max_tokens",
}


def _array(request: Any, name: str) -> Any:
    tensor = pb_utils.get_input_tensor_by_name(request, name)
    return None if tensor is None else tensor.as_numpy()


def _value(request: Any, name: str) -> Any:
    array = _array(request, name)
    return None if array is None else array.flatten()[0].item()


def _sampling(request: Any) -> Sampling:
    given = {to: _value(request, name) for name, to in _TO_ENGINE.items()}
    told = {name: value for name, value in given.items() if value is not None}
    rows = _array(request, "stop_words_list")
    told["stop"] = [] if rows is None else unpack_words(rows[0].tolist())
    said: list[str] = []
    wanted = sampling.parse(json.dumps(told), said.append)
    if wanted is None:
        raise ValueError(said[0].partition("exception: ")[2])
    return wanted


class TritonPythonModel:
    """One instance: Triton calls initialize, execute and finalize in a process of its own."""

    def initialize(self, args: dict[str, str]) -> None:
        config = json.loads(args["model_config"])
        self._decoupled = pb_utils.using_decoupled_model_transaction_policy(config)
        self._parameters = config.get("parameters", {})
        directory = self._told("gpt_model_path")
        if directory is None:
            raise RuntimeError("gpt_model_path parameter is not specified")
        found, tp, pp, longest = engine_dir.read(directory)
        if tp * pp > 1 and os.environ.get("TRTLLM_ORCHESTRATOR", "0") == "0":
            raise RuntimeError(NO_WORKERS)
        tokens = self._told("max_tokens_in_paged_kv_cache")
        wanted = Wanted(
            model=directory,
            tp=tp,
            pp=pp,
            memory_fraction=float(self._told("kv_cache_free_gpu_mem_fraction") or 0.9),
            kv_tokens=int(tokens) if tokens else None,
            max_seq_len=longest,
        )
        devices = [int(index) for index in (self._told("gpu_device_ids") or "").split(",") if index]
        engine = load(wanted, pb_utils.Logger.log_error, found, devices)
        labels = {"model": args["model_name"], "version": args["model_version"]}
        metrics = BatcherMetrics(labels, engine.kv_tokens, _MOST_RUNNING)
        self._running = Running(engine, _MOST_RUNNING, metrics)
        self._poll = float(self._told("cancellation_check_period_ms") or 100) / 1000
        self._open: dict[str, Generation] = {}

    def _told(self, name: str) -> str | None:
        """A parameter; one that was left as `${…}`, or empty, counts as unset."""
        value = str(self._parameters.get(name, {}).get("string_value", ""))
        return None if not value or value.startswith("${") else value

    def execute(self, requests: list[Any]) -> None:
        """Answers come later, by the responses' senders."""
        for request in requests:
            self._running.spawn(self._answer(request, request.get_response_sender()))

    async def _answer(self, request: Any, sender: Any) -> None:
        try:
            if _value(request, "stop"):
                # The first request of this id ends, this one has nothing to say.
                if request.request_id() in self._open:
                    self._running.stepper.release(self._open[request.request_id()])
                sender.send(flags=FINAL)
                return
            streaming = bool(_value(request, "streaming"))
            if streaming and not self._decoupled:
                raise ValueError(
                    "Streaming is only supported if model is deployed using decoupled mode."
                )
            await self._generate(request, sender, streaming)
        except Exception as error:  # noqa: BLE001 (every failure goes to the client)
            pb_utils.Logger.log_error(f"[TensorRT-LLM] {error}")
            told = pb_utils.TritonError(f"Executor failed process requestId: {error}")
            sender.send(pb_utils.InferenceResponse(error=told), flags=FINAL)

    async def _generate(self, request: Any, sender: Any, streaming: bool) -> None:
        prompt, wanted = decode(_array(request, "input_ids")[0].tolist()), _sampling(request)
        exclude = _value(request, "exclude_input_in_output")
        if exclude is None:
            exclude = (self._told("exclude_input_in_output") or "").lower() == "true"
        generation = self._running.generation(prompt, wanted)
        self._running.stepper.submit(generation)
        self._open[request.request_id()] = generation
        watching = asyncio.ensure_future(self._watch(generation, sender))
        view = Visible(generation.outputs[0], wanted)
        try:
            async for _ in generation.changes():
                fresh = view.take()
                if generation.aborted or (streaming and fresh is not None):
                    text, tokens = fresh[:2] if fresh else ("", 0)
                    ended = generation.aborted or generation.finished
                    sender.send(_response(generation, text, tokens), flags=FINAL if ended else 0)
            if not streaming and not generation.aborted:
                text = ("" if exclude else prompt) + generation.outputs[0].text
                whole = _response(generation, text, generation.output_tokens)
                sender.send(whole, flags=FINAL)
        finally:
            watching.cancel()
            self._open.pop(request.request_id(), None)
            self._running.stepper.release(generation)

    async def _watch(self, generation: Generation, sender: Any) -> None:
        while not sender.is_cancelled():  # noqa: ASYNC110 (Triton has to be asked)
            await asyncio.sleep(self._poll)
        self._running.stepper.release(generation)

    def finalize(self) -> None:
        self._running.shutdown()


def _response(generation: Generation, text: str, tokens: int) -> Any:
    ids = encode(text)
    tensors = {
        "output_ids": np.asarray([[ids]], dtype=np.int32),
        "sequence_length": np.asarray([[len(ids)]], dtype=np.int32),
        "cum_log_probs": np.asarray([[-0.5 * generation.output_tokens]], dtype=np.float32),
        "num_input_tokens": np.asarray([[generation.prompt_tokens]], dtype=np.int32),
        "num_output_tokens": np.asarray([[tokens]], dtype=np.int32),
    }
    made = [pb_utils.Tensor(name, values) for name, values in tensors.items()]
    return pb_utils.InferenceResponse(output_tensors=made)

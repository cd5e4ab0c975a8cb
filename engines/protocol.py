"""What Berth wants of an engine, in one set of words whatever serves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Any, Protocol

from engines.metrics import Metrics
from engines.stream import Stream


@dataclass(frozen=True)
class Upstream:
    """Where an engine listens, and what it calls its model.

    Attributes:
        base_url: `http://127.0.0.1:8210`, without a path.
        model: the engine's own name of the model, which need not be the role's.
        metrics_url: the whole address of its metrics where `base_url` does not serve them (Triton's
            port 8002); empty otherwise.
        key: sent where the engine asks for one, as a bearer token or in a header of its own. Never
            printed.
    """

    base_url: str
    model: str
    metrics_url: str = ""
    key: str = field(default="", repr=False)


@dataclass(frozen=True)
class Patience:
    """Bounds on an engine's silence, in seconds."""

    connect_s: float = 5.0
    first_s: float = 120.0
    """Until the first event of a stream; a long prompt waits for its prefill and for others."""
    between_s: float = 60.0
    """Between two events of a stream."""
    doubt_s: float = 5.0
    """Silence after which the engine is asked for a token of another request."""
    whole_s: float = 1800.0
    """A stream from beginning to end; of a whole answer each wait for its next bytes."""
    look_s: float = 5.0
    """Health, version and metrics: trtllm-serve may wait 2 s for an entry of its JSON metrics."""


@dataclass(frozen=True)
class Sampling:
    """How to choose tokens. What is None is the engine's own to choose."""

    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    seed: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    repetition_penalty: float | None = None
    stop: tuple[str, ...] = ()
    """Texts that end the answer and are not part of it."""

    def given(self) -> dict[str, Any]:
        """Name → value of everything that was asked for, `stop` as a list."""
        found = {each.name: getattr(self, each.name) for each in fields(self)}
        found["stop"] = list(self.stop) or None
        return {name: value for name, value in found.items() if value is not None}


@dataclass(frozen=True)
class Request:
    """Either `messages` (OpenAI's, for engines that know the chat template) or a `prompt`.

    `id` names the request in the engine's log where the engine takes one.
    """

    prompt: str | None = None
    messages: tuple[Mapping[str, Any], ...] = ()
    sampling: Sampling = Sampling()
    id: str = ""

    def __post_init__(self) -> None:
        if (self.prompt is None) == (not self.messages):
            raise ValueError("a request has either messages or a prompt")


@dataclass(frozen=True)
class Usage:
    """Counts of tokens; None where the engine does not say."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None


@dataclass(frozen=True)
class Delta:
    """Text that came since the last one; `reasoning` where the engine tells thinking apart."""

    text: str
    reasoning: str = ""


@dataclass(frozen=True)
class End:
    """The last event of every stream that did not fail. `finish_reason` is `stop` or `length`."""

    finish_reason: str
    usage: Usage = Usage()


Event = Delta | End


@dataclass(frozen=True)
class Completion:
    """A whole answer."""

    text: str
    finish_reason: str
    usage: Usage = Usage()
    reasoning: str = ""


@dataclass(frozen=True)
class Health:
    """Whether it does, and where not: why, in one line for a person."""

    ok: bool
    reason: str = ""
    late: bool = False
    """Whether all that speaks against it is that no answer came in time: it may just be busy."""


@dataclass(frozen=True)
class Version:
    """The server's own word on what it is; None where it has none."""

    server: str
    version: str | None


class Stops(Enum):
    """When an engine stops generating after its client has gone."""

    AT_ONCE = "at the next token"
    WITHIN_A_SECOND = "within a second"
    RUNS_ON = "not before the answer's end"


class Engine(Protocol):
    """One model in one server. Every call is bounded and raises nothing but EngineError, save
    ValueError for messages where `renders_chat` is false."""

    @property
    def name(self) -> str:
        """What `engine:` calls it."""

    @property
    def renders_chat(self) -> bool:
        """Whether it takes `messages`; others a prompt made with the model's chat template."""

    @property
    def stops(self) -> Stops:
        """When it stops after its client has gone."""

    async def health(self) -> Health:
        """Whether the server says that it lives. Cheap, and no proof: see `ready`."""

    async def ready(self) -> Health:
        """Whether the model answers, seen by one token of it: no engine's own word is trusted."""

    async def complete(self, request: Request) -> Completion:
        """The whole answer."""

    def stream(self, request: Request) -> Stream:
        """The answer as it grows. Nothing is sent before the first event is asked for."""

    async def cancel(self, stream: Stream) -> Stops:
        """Close the stream's connection; returns once it is closed, with what the engine does."""

    async def version(self) -> Version:
        """What the server says it is."""

    async def metrics(self) -> Metrics:
        """Its counts, under Berth's names."""

"""KV cache for one request of full length, per GPU, as vLLM checks it at start.

Layers alike form pools: all blocks have one size, a block holds `group size` layers, and a request
takes blocks from each group (vLLM, `v1/core/kv_cache_utils.py` and `v1/kv_cache_interface.py`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from models.memory.asked import Asked
from models.memory.layers import Architecture, Attention, Latent, Layer, State
from models.memory.stages import stages

BLOCK = 16
"""Tokens in a block: vLLM's default on CUDA."""
_STATE_BYTES = {"float32": 4.0, "bfloat16": 2.0, "float16": 2.0}


@dataclass(frozen=True)
class Group:
    """Layers that take blocks together."""

    layer: Layer
    block: int
    """Tokens that a block holds; 0 for a state."""
    members: tuple[int, ...]
    """Indexes of its layers."""


@dataclass(frozen=True)
class Pool:
    """The groups of a model on one GPU, and their page: bytes of one layer in one block."""

    groups: tuple[Group, ...]
    page: float
    uniform: tuple[tuple[int, float], ...] = ()
    """Layer → its own page, where all layers are of full attention and nothing is padded."""
    state_blocks: int = 1
    """Blocks that a request needs of a group of states."""
    spare: int = 0
    """Blocks that are never usable."""
    least: int = 0
    """Blocks that there must be whatever the length."""

    def block_bytes(self, stage: range) -> float:
        """Bytes of one block on a stage: its layers of the group that has the most there."""
        if self.uniform:
            return sum(page for layer, page in self.uniform if layer in stage)
        members = [sum(one in stage for one in group.members) for group in self.groups]
        return max(members, default=0) * self.page

    def blocks(self, length: int, batched: int) -> int:
        """Blocks for one request of `length` tokens while `batched` are scheduled at once."""
        found = sum(self._blocks(group, length, batched) for group in self.groups)
        return max(found + self.spare, self.least)

    def _blocks(self, group: Group, length: int, batched: int) -> int:
        layer = group.layer
        if isinstance(layer, State):
            return self.state_blocks
        if isinstance(layer, Attention) and layer.window is not None:
            return math.ceil(min(layer.window - 1 + batched, length) / group.block) + 1
        return math.ceil(length / group.block)


def scheduled_tokens(asked: Asked, batched: int) -> int:
    """Tokens under way at once: from 0.26 one batch is scheduled while another runs."""
    if asked.before(0, 26) is True:
        return batched
    pipeline = asked.pipeline_parallel_size
    return batched * (2 if pipeline == 1 else pipeline + 1)


@lru_cache(maxsize=4096)
def pool(architecture: Architecture, asked: Asked, element: float, sequences: int) -> Pool:
    """The pool of one GPU.

    Args:
        element: bytes of one element of keys and values.
        sequences: max_num_seqs: a model with states needs as many blocks for its CUDA graphs.
    """
    on_gpu = [_on_gpu(layer, asked.tensor_parallel_size) for layer in architecture.layers]
    block = asked.number("block_size") or BLOCK
    states = [layer for layer in on_gpu if isinstance(layer, State)]
    ungrouped = asked.flag("disable_hybrid_kv_cache_manager") or not architecture.grouped
    if ungrouped and not states:
        on_gpu = [_throughout(layer) for layer in on_gpu]
    alike: dict[Layer, list[int]] = {}
    for place, layer in enumerate(on_gpu):
        if layer is not None:
            alike.setdefault(layer, []).append(place)
    token: dict[Layer, float] = {
        layer: _token_bytes(layer, element) for layer in alike if not isinstance(layer, State)
    }
    spare = 0 if asked.before(0, 29) is True else 1
    if not states and all(_full(layer) for layer in alike):
        members = tuple(place for places in alike.values() for place in places)
        uniform = tuple((p, token[layer] * block) for layer, ps in alike.items() for p in ps)
        group = Group(next(iter(alike), None), block, members)
        return Pool((group,) if members else (), 0, uniform, spare=spare)
    largest = max(token.values(), default=0.0)
    state_page = max((_state_bytes(state, asked) for state in states), default=0.0)
    if states and largest:
        kernel = max(BLOCK, block if asked.number("block_size") else BLOCK)
        block = max(block, kernel * math.ceil(state_page / (kernel * largest)))
    page = max(largest * block, state_page)
    counts = [len(places) for places in alike.values()]
    size = _group_size(counts, asked)
    groups = []
    for layer, places in alike.items():
        number = math.ceil(len(places) / size)
        # A smaller page gets a larger block where the ratio is whole; else it is padded.
        times = page / (token[layer] * block) if layer in token else 1.0
        tokens = block * int(times) if times == int(times) else block
        for start in range(number):
            members = tuple(places[start::number])
            groups.append(Group(layer, 0 if isinstance(layer, State) else tokens, members))
    return Pool(
        tuple(groups),
        page,
        state_blocks=_state_blocks(asked),
        spare=spare,
        least=sequences if states and _graphs_need_states(asked) else 0,
    )


def _group_size(counts: Iterable[int], asked: Asked) -> int:
    """Layers in a group: the fewest of any kind, or the most where they are nearly as many."""
    fewest, most = min(counts, default=1), max(counts, default=1)
    near = 1.25 if asked.before(0, 18) is True else 1.5
    return most if most < near * fewest else fewest


def _on_gpu(layer: Layer, tensor: int) -> Layer:
    """The layer's part on one GPU."""
    if isinstance(layer, Attention):
        heads = max(1, layer.kv_heads // tensor)
        return Attention(heads, layer.key_dim, layer.value_dim, layer.window, layer.chunk)
    if isinstance(layer, State):
        groups = layer.groups if layer.groups % tensor == 0 else max(layer.groups, tensor)
        return State(
            math.ceil((layer.channels + groups * layer.group_channels) / tensor),
            0,
            0,
            layer.kernel,
            math.ceil(layer.recurrent / tensor),
            layer.recurrent_dtype,
        )
    return layer


def _throughout(layer: Layer) -> Layer:
    """Without grouping, a window or chunk costs as full attention."""
    if isinstance(layer, Attention):
        return Attention(layer.kv_heads, layer.key_dim, layer.value_dim)
    return layer


def _full(layer: Layer) -> bool:
    return isinstance(layer, Latent) or (isinstance(layer, Attention) and layer.window is None)


def _token_bytes(layer: Layer, element: float) -> float:
    if isinstance(layer, Attention):
        return layer.kv_heads * (layer.key_dim + layer.value_dim) * element
    return layer.width * element if isinstance(layer, Latent) else 0.0


def _state_bytes(state: State, asked: Asked) -> float:
    said = asked.text("mamba_ssm_cache_dtype") or state.recurrent_dtype
    rows = state.kernel - 1 + asked.drafts
    # The convolution's rows are of the model's type, 16 bit.
    return state.channels * rows * 2.0 + state.recurrent * _STATE_BYTES.get(said, 2.0)


def _state_blocks(asked: Asked) -> int:
    """States of one request: with prefix caching (the default from 0.26) one more is kept."""
    cached = asked.flag("enable_prefix_caching")
    if cached is None:
        cached = asked.before(0, 26) is not True
    return (2 if cached else 1) + asked.drafts


def _graphs_need_states(asked: Asked) -> bool:
    """From 0.20 vLLM refuses fewer state blocks than max_num_seqs."""
    return asked.before(0, 20) is not True and not asked.flag("enforce_eager")


def need_bytes(
    made: Pool, architecture: Architecture, asked: Asked, length: int, batched: int
) -> tuple[int, ...]:
    """KV cache for one request on one GPU of each stage, in bytes."""
    blocks = made.blocks(length, scheduled_tokens(asked, batched))
    parts = stages(len(architecture.layers), asked.pipeline_parallel_size)
    return tuple(math.ceil(blocks * made.block_bytes(part)) for part in parts)

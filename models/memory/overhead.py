"""What is neither weights nor KV cache: context and libraries, activation peak, CUDA graphs. Bytes.

An estimate, where the rest is arithmetic. Fitted to public logs (docs/memory.md): three hidden and
three intermediate rows of the model's type for each token of the profile run, two hidden rows more
where GPUs exchange them, or the sampler's rows over the vocabulary, whichever is larger.
"""

from __future__ import annotations

from models.memory.asked import Asked
from models.memory.layers import Architecture, Latent

GIB = 2**30
LEAST = 5 * GIB // 4
"""1.25 GiB: what fits every layout measured on 4 × L4 (anything from 0 to 1.9 GiB does)."""
OUTSIDE_TORCH = int(0.45 * GIB)
"""CUDA context and libraries: 0.25 to 0.45 GiB in public logs, with and without tp."""
SAMPLER_BYTES = 16
"""Per row and vocabulary entry: logits, their float32 copy, softmax, noise (14 to 18)."""
GRAPHS = GIB // 2
"""CUDA graphs of the default sizes: 0.1 to 1.6 GiB in public logs; not worked out."""


def overhead_bytes(
    architecture: Architecture, asked: Asked, length: int, tokens: int, sequences: int
) -> int:
    """Context, libraries and activation peak of one GPU.

    Args:
        length: max_model_len, tokens.
        tokens: max_num_batched_tokens, the rows of the profile run.
        sequences: max_num_seqs, the rows of the sampler's run.
    """
    tensor = asked.tensor_parallel_size
    rows = 3 if tensor == 1 else 5
    forward = rows * architecture.hidden + 3 * architecture.intermediate // tensor
    if architecture.experts_per_token:
        routed = 2 * architecture.expert_intermediate // tensor + 2 * architecture.hidden
        dense = rows * architecture.hidden
        forward = max(forward, dense + architecture.experts_per_token * routed)
    sampler = min(sequences, tokens) * architecture.vocabulary * SAMPLER_BYTES
    activation = max(2 * tokens * forward, sampler)
    if any(isinstance(layer, Latent) for layer in architecture.layers):
        # The context of a prefill is projected up in pieces (vLLM, `v1/attention/backends/mla`).
        piece = min(max(8 * length, 64 * sequences), 65_536)
        activation += piece * architecture.heads * 192 * 2 // tensor
    return max(LEAST, OUTSIDE_TORCH + activation)


def graph_bytes(asked: Asked) -> int:
    """CUDA graphs of one GPU; none under `enforce_eager`."""
    return 0 if asked.flag("enforce_eager") else GRAPHS

"""Pipeline stages: which layers stand on which."""

from __future__ import annotations


def stages(layers: int, pipeline: int) -> tuple[range, ...]:
    """Layers of each stage: as many each; what is left over goes to the last but one backwards.

    The last stage has the most besides (vLLM, `distributed/utils.py`, `get_pp_indices`). With
    `VLLM_PP_LAYER_PARTITION` set on the engine this is not what happens.

    >>> [len(stage) for stage in stages(62, 4)]
    [15, 16, 16, 15]
    """
    sizes = [layers // pipeline] * pipeline
    for place in range(2, layers % pipeline + 2):
        sizes[-place] += 1
    first = 0
    found = []
    for size in sizes:
        found.append(range(first, first + size))
        first += size
    return tuple(found)

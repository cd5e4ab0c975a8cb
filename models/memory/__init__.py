"""GPU memory of a model, by arithmetic, before anything is loaded: see docs/memory.md.

Rules are those of vLLM's sources, 0.17.1 to 0.33.0; where a release changes one, the code names it.
"""

from models.memory.asked import Asked
from models.memory.budget import cuda_mib
from models.memory.fit import GpuTerms, MemoryPlan, memory_plan
from models.memory.layouts import Layout, layouts

__all__ = ["Asked", "GpuTerms", "Layout", "MemoryPlan", "cuda_mib", "layouts", "memory_plan"]

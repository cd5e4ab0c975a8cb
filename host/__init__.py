"""Programs that run on the GPU host: standard library only, Python ≥ 3.9."""

"""The overlap rule and the memory plan over ten thousand claims."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path

from config.releases import load_releases
from host.weights import read_all
from models.judged import Judged, JudgedGpu, JudgedHost, JudgedInstance, JudgedModel
from models.overlap import Claim
from models.rules import gpu_overlap, memory_fit
from models.weights import Weights
from sandbox.weights.catalog import STANDARD
from sandbox.weights.directory import write_model
from tests.bench.clock import RUNS, Row, say, seconds

ROOT = Path(__file__).parents[2]
IMAGE = "tritonserver:26.04-vllm-python-py3"
CLAIMS = 10_000
HOSTS = 100
GPUS = 8
L4_MIB = 22_565
LENGTHS = (2048, 4096, 8192, 16384)
FITTING = ("gemma-4-e2b-it", "gemma-4-e4b-it", "llama-3.2-1b-instruct")


def rows() -> list[Row]:
    """One figure for both together: each claim judged by both."""
    say(f"the rules over {CLAIMS} claims")
    with tempfile.TemporaryDirectory() as folder:
        for model in STANDARD:
            write_model(Path(folder), model)
        found = read_all(Path(folder))
    # Those that one L4 holds.
    weights = [Weights.model_validate(found[name]) for name in FITTING]
    judged = _judged(weights)

    def judge() -> None:
        for rule in (gpu_overlap, memory_fit):
            assert not [each for each in rule.findings(judged) if each.certain]

    first = seconds(judge)
    again = statistics.median(seconds(judge) for _ in range(RUNS))
    return [
        (
            f"overlap and fit of {CLAIMS} claims on {HOSTS * GPUS} GPUs",
            f"{again * 1000:.0f} ms (the first time {first * 1000:.0f} ms)",
            "≤ 50 ms",
        )
    ]


def _judged(weights: Sequence[Weights]) -> Judged:
    """A stack with that many loads, a dozen shared ones on each GPU."""
    places = [(f"host-{host}", gpu) for host in range(HOSTS) for gpu in range(GPUS)]
    hosts = {
        host: JudgedHost(
            host, tuple(JudgedGpu(f"{host}/{n}", n, 23034, L4_MIB) for n in range(GPUS))
        )
        for host in dict.fromkeys(host for host, _ in places)
    }
    instances = [
        JudgedInstance(f"{host}/{gpu}", host, (f"{host}/{gpu}",), IMAGE) for host, gpu in places
    ]
    models = []
    for n in range(CLAIMS):
        host, gpu = places[n % len(places)]
        claim = Claim(host, f"{host}/{gpu}", f"claim-{n}", f"owner-{n}", 1500, shared=True)
        args = {
            "model": "/weights/x",
            "max_model_len": LENGTHS[n % len(LENGTHS)],
            "gpu_memory_utilization": 0.9,
            "seed": 0,
        }
        model = JudgedModel(
            f"claim-{n}", "owner", "demo", "x", "demo.x", host, f"{host}/{gpu}", (f"role-{n}",),
            (claim,), "", args, IMAGE, weights[n % len(weights)],
        )  # fmt: skip
        models.append(model)
    releases = load_releases(ROOT)
    return Judged("bench", hosts, tuple(instances), tuple(models), releases=releases)

"""Whether a host's driver is new enough for an image's CUDA."""

from __future__ import annotations

from models.finding import UNTOUCHED, Finding
from models.refusal import Refusal
from models.releases.finding import nothing_known
from models.releases.held import NO_CUDA, Held, held_by
from models.releases.tables import CudaSupport, Releases
from models.releases.version import version

ASK_DRIVER = "`nvidia-smi --query-gpu=driver_version --format=csv,noheader`"


def driver_findings(
    image: str,
    driver: str | None,
    releases: Releases,
    *,
    at: str,
    host: str,
    data_centre: bool = True,
) -> list[Finding]:
    """What stands against an image on a host's driver; empty where it is known to do.

    A driver from the CUDA major's floor on runs every minor release of it (CUDA Compatibility,
    "Minor Version Compatibility"), though older than the one that the release came with. Below the
    floor only the image's compat libraries help, on listed branches and data-centre cards.

    Args:
        image: the instance's image, as declared.
        driver: the host's driver, `580.95.05`; None where it is not known.
        releases: the tables.
        at: where the instance's image stands in the config.
        host: the host's name.
        data_centre: whether its GPUs are data-centre cards (L4, A100, …).
    """
    held = held_by(image, releases)
    if held is None:
        return [nothing_known(image, at)]
    if held.cuda == NO_CUDA:
        return []
    support = releases.drivers(held.cuda) if held.cuda else None
    installed = version(driver) if driver else None
    if support is None:
        return [_unknown_cuda(image, held, at)]
    if installed is None:
        return [_unknown_driver(held, support, driver, at, host)]
    if installed.major >= support.floor:
        return []
    cause = f"{_asks(held, support)}; host {host} has {driver}"
    if data_centre and installed.major in support.forward:
        return [_only_by_compat(image, cause, support, at)]
    return [
        Finding(
            Refusal(
                cause,
                consequence=f"CUDA would not start in the container. {UNTOUCHED}",
                fix=f"install driver {support.floor} or newer on {host}"
                f"{_older_release(held, installed.major, releases)}.",
                at=at,
            ),
            certain=True,
        )
    ]


def _asks(held: Held, support: CudaSupport) -> str:
    return f"{held.name} holds CUDA {held.cuda}, which needs driver {support.floor} or newer"


def _older_release(held: Held, branch: int, releases: Releases) -> str:
    """The newest release with the same engine that runs on a driver of this branch."""
    if held.standalone:
        older = held.engine == "vllm" and (held.cuda or "").startswith("13")
        return ", or take its `-cu129` image, which runs from 525 on" if older else ""
    for row in reversed(releases.triton):
        engine, cuda = (row.trtllm, row.trtllm_cuda) if held.trtllm else (row.vllm, row.vllm_cuda)
        support = releases.drivers(cuda) if engine and cuda else None
        if support and branch >= support.floor:
            return f", or take Triton {row.tag} (CUDA {cuda}), which runs from {support.floor} on"
    return ""


def _only_by_compat(image: str, cause: str, support: CudaSupport, at: str) -> Finding:
    torch = "import torch; print(torch.zeros(1).cuda())"
    return Finding(
        Refusal(
            cause,
            consequence="It may run by the image's compat libraries, which carry this branch on "
            "data-centre cards; whether they do here is not known.",
            fix=f"`docker run --rm --gpus all --entrypoint python3 {image} -c '{torch}'` on the "
            f"host says it; driver {support.floor} or newer needs no such help.",
            at=at,
        ),
        certain=False,
    )


def _unknown_cuda(image: str, held: Held, at: str) -> Finding:
    if held.cuda:
        cause = f"{held.name} holds CUDA {held.cuda}, of which no table says what driver it needs"
        fix = "add its row to releases/cuda.csv (docs/releases.md)."
    else:
        cause = f"nothing says which CUDA {held.name} holds"
        fix = f"`docker run --rm --entrypoint printenv {image} CUDA_VERSION` says it; write it "
        fix += "into the image's row of releases/."
    return Finding(
        Refusal(
            cause,
            consequence="Whether the host's driver is new enough is not known.",
            fix=fix,
            at=at,
        ),
        certain=False,
    )


def _unknown_driver(
    held: Held, support: CudaSupport, driver: str | None, at: str, host: str
) -> Finding:
    told = f"`{driver}` is no driver version" if driver else "its driver is not known"
    return Finding(
        Refusal(
            f"{_asks(held, support)}; host {host}: {told}",
            consequence="Whether it is new enough is not known.",
            fix=f"{ASK_DRIVER} on the host says it.",
            at=at,
        ),
        certain=False,
    )

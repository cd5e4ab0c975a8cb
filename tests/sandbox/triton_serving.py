"""A real tritonserver as a process of the test, with the stand-ins' backends and GPUs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from sandbox.all_models import all_models

from .served import Gpus, Server, free_port, running, wait_until_heard
from .unpacked_triton import importable, path_with_triton


@dataclass
class Triton:
    """Its repository, and the server that reads it in EXPLICIT mode."""

    repository: Path
    server: Server
    metrics_port: int

    def entry(self, template: str, name: str, **replaced: str) -> Path:
        """A copy of a template of the image's /app/all_models; its `${…}` are filled in."""
        target = self.repository / name
        for path, content in all_models():
            if path.startswith(f"{template}/"):
                file = target / path.removeprefix(f"{template}/")
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content)
        config = target / "config.pbtxt"
        text = config.read_text().replace(f'name: "{Path(template).name}"', f'name: "{name}"')
        for key, value in replaced.items():
            text = text.replace(f"${{{key}}}", value)
        config.write_text(text)
        if (target / "1" / "model.py").exists():
            importable(target / "1")
        return target

    def load(self, name: str) -> httpx.Response:
        return self.server.post(f"/v2/repository/models/{name}/load", {})

    def metrics(self) -> str:
        return httpx.get(f"http://127.0.0.1:{self.metrics_port}/metrics").text

    def generate(self, name: str, body: Mapping[str, Any]) -> httpx.Response:
        return self.server.post(f"/v2/models/{name}/generate", body)

    def stream(self, name: str, body: Mapping[str, Any]) -> list[Any]:
        return self.server.events(f"/v2/models/{name}/generate_stream", body)


@contextmanager
def triton_serving(place: Path, gpus: Gpus) -> Iterator[Triton]:
    repository, port, metrics = place / "repository", free_port(), free_port()
    repository.mkdir(parents=True)
    command = ["tritonserver", f"--model-repository={repository}", f"--http-port={port}"]
    command += ["--model-control-mode=explicit", "--http-address=127.0.0.1"]
    command += ["--allow-grpc=false", f"--metrics-port={metrics}"]
    command += [f"--backend-config=python,shm-region-prefix-name=test{port}"]
    path = path_with_triton(place)
    command[0] = f"{path.split(':')[0]}/tritonserver"
    with running(command, gpus, place, port, PATH=path) as server:
        yield Triton(repository, wait_until_heard(server), metrics)

"""A model held by a Triton server, as a resource: loaded, answering, and gone when deleted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, ReadResult, Resource, UpdateResult

from components.providers import ledger
from components.providers.model_loading import ModelLoading
from components.providers.model_reading import Seen, remove, see
from components.providers.model_server import Wanted, server
from components.providers.plain_refusals import BerthProvider, same
from components.providers.server_turn import server_turn
from components.providers.ssh import Session
from components.providers.ssh_shared import on_host

_REPLACES = ("host", "instance", "http_port", "model", "container_id", "gpus")
_RELOADS = ("config_digest", "entry_revision")
_OTHERS = (
    "ssh",
    "unit",
    "control_key_file",
    "claim_mib",
    "owner",
    "holder",
    "claim_name",
    "load_timeout_s",
    "unload_timeout_s",
    "canary_timeout_s",
    "engine",
)
_INPUTS = (*_REPLACES, *_RELOADS, *_OTHERS)
READY = "READY"


class TritonModelProvider(BerthProvider):
    """Loads, reloads and unloads one model; reads what the server really holds."""

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> DiffResult:
        """A definite answer. Another place replaces the model, deleting first: never two copies."""
        replaces = [key for key in _REPLACES if not same(_olds.get(key), _news.get(key))]
        updates = [key for key in (*_RELOADS, *_OTHERS) if not same(_olds.get(key), _news.get(key))]
        settled = _olds.get("state") == READY
        return DiffResult(
            changes=bool(replaces or updates) or not settled,
            replaces=replaces,
            delete_before_replace=True,
        )

    def create(self, props: dict[str, Any]) -> CreateResult:
        """Have the model loaded and answering; what is so already is left as it is.

        Raises:
            Refusal: host or server not up, load failed, or no inference succeeds.
        """
        return CreateResult(f"{props['host']}:{props['instance']}/{props['model']}", _ensure(props))

    def update(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> UpdateResult:
        """Reload for another configuration or entry, unloading first; otherwise only note it.

        Raises:
            Refusal: as `create`, or the old one's memory does not come back.
        """
        anew = not all(same(_olds.get(key), _news.get(key)) for key in _RELOADS)
        # Unloaded before by its claim, perhaps, to make room for another (ClaimsProvider).
        smaller = _news["claim_mib"] < _olds["claim_mib"]
        if anew or smaller or _olds.get("state") != READY:
            return UpdateResult(_ensure(_news, anew=anew))
        return UpdateResult(_inputs(_news) | _loaded(str(_olds["loaded_digest"])))

    def read(self, id_: str, props: dict[str, Any]) -> ReadResult:
        """What the server holds. Not loaded, no server, or no answer but an error: it is gone.

        Another configuration than the declared one comes back as inputs too, so that it shows as
        drift, and `up` loads the declared one.

        Raises:
            Refusal: the host cannot be reached, or the control key is not accepted.
        """
        wanted = Wanted.of(props)

        async def work(session: Session) -> Seen | None:
            return await see(session, wanted)

        seen = on_host(props["ssh"], work)
        if seen is None:
            return ReadResult("", {})
        inputs = _inputs(props)
        if seen.digest is not None:
            inputs["config_digest"] = seen.digest
        digest = inputs["config_digest"]
        return ReadResult(id_, inputs | {"state": seen.state, "loaded_digest": digest}, inputs)

    def delete(self, _id: str, _props: dict[str, Any]) -> None:
        """Unload, and wait until the GPUs' memory is back; no server holds no model.

        The claim of a model that was moved away is then released, so that others may have the GPUs.

        Raises:
            Refusal: host not reachable, still unloading, or memory still held.
        """
        wanted = Wanted.of(_props)

        async def work(session: Session) -> None:
            await remove(session, wanted)
            if "claim_name" in _props:  # A state of before there were claims has none.
                await ledger.release_leaving(session, _props["holder"], _props["claim_name"])

        with server_turn(_server(_props), f"{wanted.instance}: unloading {wanted.model}"):
            on_host(_props["ssh"], work)


class TritonModel(Resource, module="berth", name="TritonModel"):
    """A model that a Triton server holds in EXPLICIT mode."""

    state: pulumi.Output[str]
    """`READY`: loaded as declared, and a canary inference succeeded."""
    loaded_digest: pulumi.Output[str]
    """`berth_digest` of the configuration that the server holds."""

    def __init__(
        self,
        name: str,
        *,
        ssh: pulumi.Input[Mapping[str, Any]],
        host: str,
        instance: str,
        unit: str,
        http_port: int,
        control_key_file: str,
        model: str,
        config_digest: pulumi.Input[str],
        entry_revision: pulumi.Input[str],
        container_id: pulumi.Input[str],
        gpus: Sequence[str],
        claim_mib: int,
        owner: str,
        holder: str,
        claim_name: str,
        load_timeout_s: int,
        unload_timeout_s: int,
        canary_timeout_s: int = 60,
        engine: str = "triton-vllm",
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare a loaded model.

        Args:
            ssh: how the host is reached: `address`, `port`, `user`, `private_key_file` (or None)
                and `host_key`.
            instance: the server's name, for people: `triton@2`.
            http_port: Triton's HTTP port on the host's loopback.
            control_key_file: the control API's key on the host, read there when it is needed, so
                that it is in no state and no log.
            model: Triton's name of the model, which is the entry's directory.
            config_digest: what config.pbtxt's parameter `berth_digest` says.
            entry_revision: `RepositoryEntry.revision`: another one means a reload.
            container_id: the server's container: another one holds nothing.
            gpus: UUIDs of the GPUs that it takes memory on.
            claim_mib: memory that it takes on each of them, in MiB.
            owner: whose it is, as people call it.
            holder: who holds its claim: `project/stack/demo`.
            claim_name: its claim's name in the host's ledger.
            load_timeout_s: bound on the load, and on waiting for the server, in seconds.
            unload_timeout_s: bound on an unload, until memory is back, in seconds.
            canary_timeout_s: bound on the first answer, in seconds.
            engine: what runs behind it: a name of `engines.NATIVE`.
        """
        properties = {
            "ssh": ssh,
            "host": host,
            "instance": instance,
            "unit": unit,
            "http_port": http_port,
            "control_key_file": control_key_file,
            "model": model,
            "config_digest": config_digest,
            "entry_revision": entry_revision,
            "container_id": container_id,
            "gpus": list(gpus),
            "claim_mib": claim_mib,
            "owner": owner,
            "holder": holder,
            "claim_name": claim_name,
            "load_timeout_s": load_timeout_s,
            "unload_timeout_s": unload_timeout_s,
            "canary_timeout_s": canary_timeout_s,
            "engine": engine,
            "state": None,
            "loaded_digest": None,
        }
        super().__init__(TritonModelProvider(), name, properties, opts)


def _ensure(props: Mapping[str, Any], *, anew: bool = False) -> dict[str, Any]:
    wanted = Wanted.of(props)

    async def work(session: Session) -> str:
        async with server(session, wanted) as triton:
            return await ModelLoading(session, triton, wanted).ensure(anew=anew)

    with server_turn(_server(props), f"{wanted.instance}: loading {wanted.model}"):
        return _inputs(props) | _loaded(on_host(props["ssh"], work))


def _server(props: Mapping[str, Any]) -> tuple[str, int, int]:
    ssh = props["ssh"]
    return str(ssh["address"]), int(ssh.get("port") or 22), int(props["http_port"])


def _inputs(props: Mapping[str, Any]) -> dict[str, Any]:
    return {key: props[key] for key in _INPUTS if key in props}


def _loaded(digest: str) -> dict[str, Any]:
    return {"state": READY, "loaded_digest": digest}

"""A model held by a Triton server, as a resource: loaded, answering, and gone when deleted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, ReadResult, Resource, UpdateResult

from components.providers import fallback as falling_back
from components.providers import gateway_routes, ledger, vacating
from components.providers.fallback import ALWAYS, FAILED, READY, STANDBY, STANDS_BY
from components.providers.load_failure import NotServing
from components.providers.model_loading import Closing, ModelLoading
from components.providers.model_reading import Seen, remove, see
from components.providers.model_server import Wanted, server
from components.providers.plain_refusals import BerthProvider, same
from components.providers.progress import say
from components.providers.role_route import open_route
from components.providers.server_turn import server_turn
from components.providers.ssh import Session
from components.providers.ssh_shared import on_host
from models.refusal import Refusal

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
    "metrics_port",
    "gives_back",
    *falling_back.INPUTS,
)
_INPUTS = (*_REPLACES, *_RELOADS, *_OTHERS, "vacates")
_TRIED = (*_RELOADS, "claim_mib", "engine", "load_timeout_s", "canary_timeout_s")
"""What makes a model that failed worth another try."""
_NOT_LOADED = {"loaded_digest": ""}


class TritonModelProvider(BerthProvider):
    """Loads, reloads and unloads one model; reads what the server really holds."""

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> DiffResult:
        """A definite answer. Another place replaces the model, deleting first: never two copies."""
        replaces = [key for key in _REPLACES if not same(_olds.get(key), _news.get(key))]
        updates = [key for key in (*_RELOADS, *_OTHERS) if not same(_olds.get(key), _news.get(key))]
        return DiffResult(
            changes=bool(replaces or updates)
            or vacating.others(_olds, _news)
            or not falling_back.settled(_olds, _news),
            replaces=replaces,
            delete_before_replace=True,
        )

    def create(self, props: dict[str, Any]) -> CreateResult:
        """Have the model loaded and seen through the canary; what is so already is left as it is.

        A fallback that is not needed is not loaded. A model that has one and does not serve is not
        refused: it is FAILED, with the reason.

        Raises:
            Refusal: host not reachable, or the model does not serve and has no fallback, or
                something of it is left.
        """
        id_ = f"{props['host']}:{props['instance']}/{props['model']}"
        return CreateResult(id_, _ensure(props, known=False))

    def update(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> UpdateResult:
        """Reload for another configuration or entry, unloading first; otherwise only note it.

        Raises:
            Refusal: as `create`, or the old one's memory does not come back.
        """
        if falling_back.stands_by(_news):
            if _olds.get("state") != STANDBY:
                _step_back(_news)
            return UpdateResult(_inputs(_news) | STANDS_BY | _NOT_LOADED)
        if falling_back.stays_failed(_olds, _news, _TRIED):
            return UpdateResult(_inputs(_news) | falling_back.as_before(_olds) | _NOT_LOADED)
        anew = not all(same(_olds.get(key), _news.get(key)) for key in _RELOADS)
        # Unloaded before by its claim, perhaps, to make room for another (ClaimsProvider).
        smaller = _news["claim_mib"] < _olds["claim_mib"]
        called = not same(_olds.get("wanted", ALWAYS), _news.get("wanted", ALWAYS))
        if anew or smaller or called or _olds.get("state") != READY:
            known = _olds.get("state") == READY
            return UpdateResult(_ensure(_news, anew=anew, known=known))
        if vacating.others(_olds, _news):
            on_host(_news["ssh"], lambda session: vacating.clear(session, _news))
        digest = {"loaded_digest": str(_olds["loaded_digest"])}
        return UpdateResult(_inputs(_news) | falling_back.serves_on(_olds) | digest)

    def read(self, id_: str, props: dict[str, Any]) -> ReadResult:
        """What the server holds. Not loaded, no server, or no answer but an error: it is gone.

        Another configuration than the declared one comes back as inputs too, so that it shows as
        drift, and `up` loads the declared one.

        Raises:
            Refusal: the host cannot be reached, or the control key is not accepted.
        """
        wanted = Wanted.of(props)
        inputs = _inputs(props)
        if props.get("state") == FAILED:
            return ReadResult(id_, {**props}, inputs)

        async def work(session: Session) -> Seen | None:
            return await see(session, wanted)

        seen = on_host(props["ssh"], work)
        if seen is None and props.get("state") == STANDBY:
            return ReadResult(id_, {**props}, inputs)
        if seen is None:
            return ReadResult("", {})
        if seen.digest is not None:
            inputs["config_digest"] = seen.digest
        digest = inputs["config_digest"]
        held = falling_back.serves_on(props) | {"state": seen.state, "loaded_digest": digest}
        return ReadResult(id_, inputs | held, inputs)

    def delete(self, _id: str, _props: dict[str, Any]) -> None:
        """Unload, and wait until the GPUs' memory is back; no server holds no model.

        The claim of a model that was moved away is then released, so that others may have the GPUs.

        Raises:
            Refusal: host not reachable, still unloading, memory still held, or nothing serves in
                its place.
        """

        async def work(session: Session) -> None:
            if "claim_name" in _props:  # A state of before there were claims has none.
                await falling_back.keep_the_last(session, _props)
            if _props.get("state") != FAILED:  # That left nothing behind.
                await remove(
                    session, Wanted.of(_props), _closing(session, _props, gateway_routes.REPLACED)
                )
            if "claim_name" in _props:
                await ledger.release_leaving(session, _props["holder"], _props["claim_name"])

        with server_turn(_server(_props), _doing(_props, "unloading")):
            on_host(_props["ssh"], work)


class TritonModel(Resource, module="berth", name="TritonModel"):
    """A model that a Triton server holds in EXPLICIT mode."""

    state: pulumi.Output[str]
    """`READY`: loaded as declared, and seen through the canary. `FAILED`: it was not, and its
    fallback is to serve. `STANDBY`: a fallback that is not needed."""
    reason: pulumi.Output[str]
    """Why it is FAILED."""
    attempt: pulumi.Output[str]
    """When it failed: UTC, another one for each try."""
    since: pulumi.Output[str]
    """When it came to serve: UTC, another one for each load."""
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
        metrics_port: int = 0,
        roles: Sequence[str] = (),
        fallback: Mapping[str, Any] | None = None,
        wanted: pulumi.Input[str] = ALWAYS,
        gives_back: Sequence[Mapping[str, Any]] | None = None,
        vacates: pulumi.Input[Sequence[Mapping[str, Any]]] = (),
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
            canary_timeout_s: bound on each answer of the canary, in seconds.
            engine: what computes in the server: a name of `engines.KNOWN`.
            metrics_port: of the server's metrics on the host's loopback; 0: not known.
            roles: the names that clients call it by.
            fallback: the claim of its fallback, as the ledger has it: then a failure is no error.
            wanted: for a fallback: the failed attempt of the model that it replaces, empty while
                that one serves; `always` for every other model.
            gives_back: for a fallback: the routes of its roles to that model, which are opened
                before it is unloaded: `demo`, `role`, `route`, `adapter` and `key_files`.
            vacates: claims of its demo that it cannot stand beside: what they stand for is ended
                just before it is loaded.
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
            "metrics_port": metrics_port,
            "roles": sorted(roles),
            "fallback": fallback,
            "wanted": wanted,
            "gives_back": None if gives_back is None else [dict(each) for each in gives_back],
            "vacates": vacates,
            "state": None,
            "reason": None,
            "attempt": None,
            "since": None,
            "loaded_digest": None,
        }
        super().__init__(TritonModelProvider(), name, properties, opts)


def _ensure(props: Mapping[str, Any], *, anew: bool = False, known: bool = True) -> dict[str, Any]:
    wanted = Wanted.of(props)
    if falling_back.stands_by(props):
        return _inputs(props) | STANDS_BY | _NOT_LOADED

    async def work(session: Session) -> str:
        async with server(session, wanted) as triton:
            loading = ModelLoading(session, triton, wanted)
            if props.get("fallback") or props.get("vacates"):
                await loading.wait_for_server()
                await falling_back.make_room(session, props)
                await vacating.clear(session, props)
            close = _closing(session, props, gateway_routes.LOADING)
            return await loading.ensure(anew=anew, known=known, close=close)

    try:
        with server_turn(_server(props), _doing(props, "loading")):
            return _inputs(props) | _loaded(on_host(props["ssh"], work))
    except NotServing as refusal:
        return _inputs(props) | falling_back.failed(props, refusal) | _NOT_LOADED


def _step_back(props: Mapping[str, Any]) -> None:
    """Unload a fallback that is not needed any more, once its clients are led to what is: the
    routes' own resources depend on it, so they are changed only after it."""

    async def work(session: Session) -> None:
        for route in props.get("gives_back") or []:
            try:
                await open_route(session, route)
            except Refusal as refusal:  # The route's own resource is to meet that, and to tell it.
                say(str(refusal))
        await remove(session, Wanted.of(props), _closing(session, props, gateway_routes.REPLACED))

    with server_turn(_server(props), _doing(props, "unloading")):
        on_host(props["ssh"], work)


def _closing(session: Session, props: Mapping[str, Any], reason: str) -> Closing:
    """Its clients are sent elsewhere, or told to wait, before they could meet a model that goes."""

    async def close() -> None:
        if "claim_name" in props:  # A state of before there were claims has none.
            await gateway_routes.close(session, props["holder"], props["claim_name"], reason)

    return close


def _doing(props: Mapping[str, Any], what: str) -> str:
    return f"{props['instance']}: {what} {props['model']}"


def _server(props: Mapping[str, Any]) -> tuple[str, int, int]:
    ssh = props["ssh"]
    return str(ssh["address"]), int(ssh.get("port") or 22), int(props["http_port"])


def _inputs(props: Mapping[str, Any]) -> dict[str, Any]:
    return {key: props[key] for key in _INPUTS if key in props}


def _loaded(digest: str) -> dict[str, Any]:
    return falling_back.serves_now() | {"loaded_digest": digest}

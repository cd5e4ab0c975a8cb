"""Instances as their containers and units will really be."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pulumi_policy import PolicyResource

from models.judged import JudgedInstance, Mounted, Published
from policy.plain import Properties, Unread

CONTAINER = "docker:index/container:Container"
IMAGE = "docker:index/remoteImage:RemoteImage"
COMMAND = "command:remote:Command"
INSTANCES = ("berth:host:TritonInstance", "berth:demo:ModelServer")
LABEL, ROLE, SERVICE = "berth.instance", "berth.role", "berth.service"
EVERYWHERE = "0.0.0.0"  # noqa: S104 - what Docker takes when no address is given

_UNIT = re.compile(
    r"/etc/systemd/system/([^\s/]+\.service)(?: [0-7]+)? <<'(\w+)'\n(.*?)^\2$",
    re.MULTILINE | re.DOTALL,
)


def is_instance(resource: PolicyResource) -> bool:
    """Whether a resource is the container of an instance, or may be one."""
    if resource.resource_type != CONTAINER:
        return False
    try:
        return bool(_name(resource, Properties(resource.props)))
    except Unread:
        return True


def service_of(resource: PolicyResource) -> tuple[str, str]:
    """(host, name) of what a container runs beside the instances; two empty texts for others.

    Raises:
        Unread: a property that has to be plain is not.
    """
    name = _label(Properties(resource.props), SERVICE)
    return (_host(resource), name) if name else ("", "")


def image(resource: PolicyResource, images: Mapping[str, str]) -> str:
    """The reference of a container's image.

    Args:
        resource: the container.
        images: id of an image → the reference that it was declared by.

    Raises:
        Unread: a property that has to be plain is not.
    """
    return _image(resource, Properties(resource.props), images)


def units(resource: PolicyResource) -> Mapping[tuple[str, str], str]:
    """(host, file's name) → text of each unit that a command installs there."""
    try:
        found = _UNIT.findall(Properties(resource.props).text("stdin", ""))
        return {(_host(resource), name): text for name, _, text in found} if found else {}
    except Unread:
        return {}


def instance(
    resource: PolicyResource, images: Mapping[str, str], unit: Mapping[tuple[str, str], str]
) -> JudgedInstance:
    """A container of an instance.

    Args:
        resource: the container.
        images: id of an image → the reference that it was declared by.
        unit: (host, file's name) → text of a unit.

    Raises:
        Unread: a property that has to be plain is not.
    """
    props = Properties(resource.props)
    host = _host(resource)
    command = _given(resource, props, "command")
    name = _name(resource, props)
    template = f"{name.partition('@')[0]}@.service"
    return JudgedInstance(
        name=name,
        host=host,
        gpus=tuple(_gpus(props)),
        image=_image(resource, props, images),
        published=tuple(
            Published(
                each.text("ip", EVERYWHERE) or EVERYWHERE,
                each.whole("external"),
                each.whole("internal"),
            )
            for each in props.maps("ports")
        ),
        keyed=_keyed(command),
        mounts=(*_mounts(props), *_volumes(props)),
        environment=dict(_variable(each) for each in _given(resource, props, "envs")),
        unit=unit.get((host, f"{name}.service")) or unit.get((host, template), ""),
        network=props.text("networkMode", "bridge"),
        role=_label(props, ROLE),
    )


def _name(resource: PolicyResource, props: Properties) -> str:
    labelled = _label(props, LABEL)
    if labelled:
        return labelled
    made_by = resource.parent
    return made_by.name if made_by is not None and made_by.resource_type in INSTANCES else ""


def _label(props: Properties, name: str) -> str:
    for label in props.maps("labels"):
        if label.text("label", "") == name:
            return label.text("value")
    return ""


def _host(resource: PolicyResource) -> str:
    """By the provider that reaches it, else by the component that it is part of."""
    provider = resource.provider
    if provider is not None and provider.name.startswith("docker-"):
        return str(provider.name).removeprefix("docker-")
    if resource.parent is not None:
        return Properties(resource.parent.props).text("host")
    raise Unread("nothing says on which host it is")


def _given(resource: PolicyResource, props: Properties, key: str) -> list[str]:
    """A list that Docker fills from the image where the program gives none: unknown until then."""
    if props.unknown(key) and not resource.property_dependencies.get(key):
        return []
    return props.texts(key)


def _gpus(props: Properties) -> list[str]:
    if props.value("gpus") is not None:
        raise Unread("`gpus` pins no GPU by UUID; `deviceRequests` does")
    ids = [each for request in props.maps("deviceRequests") for each in request.texts("deviceIds")]
    return [each.removeprefix("nvidia.com/gpu=") for each in ids]


def _image(resource: PolicyResource, props: Properties, images: Mapping[str, str]) -> str:
    """The reference, whether the id is known already or not."""
    for source in resource.property_dependencies.get("image") or []:
        if source.resource_type == IMAGE:
            return Properties(source.props).text("name")
    given = props.text("image")
    return images.get(given, given)


def _keyed(command: list[str]) -> str:
    for word in command:
        if word.startswith("--control-apis="):
            groups = word.partition("=")[2].split(",")
            if "model-repository" in groups:
                return "all" if {"inference", "metadata", "health"} <= set(groups) else "control"
    return ""


def _mounts(props: Properties) -> list[Mounted]:
    return [
        Mounted(each.text("source", ""), each.text("target"), each.flag("readOnly"))
        for each in props.maps("mounts")
    ]


def _volumes(props: Properties) -> list[Mounted]:
    return [
        Mounted(each.text("hostPath", ""), each.text("containerPath", ""), each.flag("readOnly"))
        for each in props.maps("volumes")
    ]


def _variable(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return name, value

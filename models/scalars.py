"""Constrained scalars, named once and used in every declaration."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

# What a field means is its own docstring's to say, with its unit: a description here would hide it.
GpuUuid = Annotated[
    str, Field(pattern=r"^GPU-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$")
]
MiB = Annotated[int, Field(gt=0)]
Port = Annotated[int, Field(ge=1, le=65535)]
Seconds = Annotated[int, Field(gt=0)]
Tokens = Annotated[int, Field(gt=0)]
AbsolutePath = Annotated[str, Field(pattern=r"^/[A-Za-z0-9._/-]*$")]
# Names become parts of unit, container and directory names, and of URLs: no character in them needs
# escaping in any of those.
Name = Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$")]
ModelName = Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9._-]{0,62}[a-z0-9])?$")]
# The instance's systemd unit without `.service`.
InstanceName = Annotated[str, Field(pattern=r"^triton@[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$")]


class Declared(BaseModel):
    """A section that a user writes: nothing unknown is let through, nothing is changed later."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

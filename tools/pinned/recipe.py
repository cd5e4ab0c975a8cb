"""What is built: each program's module, version and the files that lie beside it."""

from __future__ import annotations

from dataclasses import dataclass

from .versions import pins

# The dialects that the host's libc and tracing would bring in are left out, as upstream does.
TAGS = "osusergo,grpcnotrace"
SDK = "github.com/pulumi/pulumi/sdk/v3"
LANGUAGE_HOST_MODULE = "github.com/pulumi/pulumi/sdk/python/cmd/pulumi-language-python/v3"


@dataclass(frozen=True)
class Script:
    """A file that is taken as it is from a module's zip."""

    module: str
    path: str


@dataclass(frozen=True)
class Recipe:
    name: str  # the folder below tools/, and the name in the cache
    program: str
    package: str
    version_symbol: str
    version: str
    typical: str  # measured from cold on two cores
    scripts: tuple[Script, ...] = ()
    # Modules that the checksum database does not know; go.sum pins them all the same.
    unlisted: tuple[str, ...] = ()

    @property
    def arguments(self) -> tuple[str, ...]:
        stamp = f"-s -w -X {self.version_symbol}={self.version}"
        return ("-trimpath", "-buildvcs=false", "-tags", TAGS, "-ldflags", stamp)


def recipes() -> tuple[Recipe, ...]:
    pin = pins()
    stamp = f"{SDK}/go/common/version.Version"
    return (
        Recipe(
            name="pulumi",
            program="pulumi",
            package="github.com/pulumi/pulumi/pkg/v3/cmd/pulumi",
            version_symbol=stamp,
            version=f"v{pin['PULUMI']}",
            typical="4 min",
            scripts=(Script(SDK, "python/dist/pulumi-resource-pulumi-python"),),
        ),
        Recipe(
            name="language-python",
            program="pulumi-language-python",
            package=LANGUAGE_HOST_MODULE,
            version_symbol=stamp,
            version=f"v{pin['LANGUAGE_HOST']}",
            typical="30 s",
            scripts=(Script(SDK, "python/cmd/pulumi-language-python-exec"),),
            unlisted=(LANGUAGE_HOST_MODULE,),
        ),
        Recipe(
            name="plugin-docker",
            program="pulumi-resource-docker",
            package=".",
            version_symbol="main.version",
            version=pin["DOCKER_PLUGIN"],
            typical="2 min",
        ),
        Recipe(
            name="plugin-command",
            program="pulumi-resource-command",
            package=".",
            version_symbol="main.version",
            version=pin["COMMAND_PLUGIN"],
            typical="40 s",
        ),
    )

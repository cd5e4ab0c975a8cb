"""The tables of release trains, from `releases/*.csv`."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from models.refusal import Refusal, Refusals
from models.releases.tables import (
    Architecture,
    CudaSupport,
    OwnImage,
    Releases,
    ServerImage,
    TritonRelease,
    VllmRequirement,
)
from models.scalars import Declared
from models.validation import parse

DIRECTORY = "releases"
Row = TypeVar("Row", bound=Declared)


def load_releases(project: Path) -> Releases:
    """All tables of the project.

    Args:
        project: the directory with `Pulumi.yaml` and `releases/`.

    Raises:
        Refusal: with every broken row of every table, each by file, line and column.
    """
    refusals: list[Refusal] = []
    directory = project / DIRECTORY
    triton = _read(directory / "triton.csv", TritonRelease, "tag", refusals)
    vllm = _read(directory / "vllm.csv", VllmRequirement, "first", refusals)
    images = _read(directory / "images.csv", OwnImage, "reference", refusals)
    architectures = _read(directory / "architectures.csv", Architecture, "model_type", refusals)
    cuda = _read(directory / "cuda.csv", CudaSupport, "cuda", refusals)
    servers = _read(directory / "servers.csv", ServerImage, "first", refusals, "image")
    if refusals:
        raise Refusals(refusals)
    by_tag = tuple(sorted(triton, key=lambda row: row.tag))
    return Releases(by_tag, vllm, images, architectures, cuda, servers)


def _read(
    path: Path, kind: type[Row], key: str, refusals: list[Refusal], *further: str
) -> tuple[Row, ...]:
    """The rows of one file, no two alike in `key` and `further`; what is wrong with it is added to
    `refusals`."""
    rows: list[Row] = []
    lines: dict[str, int] = {}
    try:
        for line, cells in _cells(path, kind):
            at = f"{DIRECTORY}/{path.name}:{line}"
            try:
                rows.append(parse(kind, cells, at))
            except Refusals as several:
                refusals.extend(several.refusals)
            name = " ".join(cells[column] for column in (*further, key))
            if name in lines:
                refusals.append(
                    Refusal(
                        f"`{name}` has a row already, in line {lines[name]}",
                        consequence="It would not be clear which of them counts.",
                        fix="keep one.",
                        at=f"{at}: {key}",
                    )
                )
            lines.setdefault(name, line)
    except Refusal as refusal:
        refusals.append(refusal)
    return tuple(rows)


def _cells(path: Path, kind: type[Row]) -> Iterator[tuple[int, dict[str, str]]]:
    """Line number and cells by column, of each row. Lines that begin with `#` are comments."""
    at = f"{DIRECTORY}/{path.name}"
    columns = list(kind.model_fields)
    reader = csv.reader(_text(path).splitlines(), strict=True)
    header: list[str] | None = None
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise Refusal(f"not readable as CSV: {error}", at=f"{at}:{reader.line_num}") from None
        if not row or row[0].startswith("#"):
            continue
        here = f"{at}:{reader.line_num}"
        if header is None:
            header = row
            if sorted(header) != sorted(columns):
                raise Refusal(
                    f"the columns are {', '.join(header)}",
                    consequence="No row can be read.",
                    fix=f"make them {', '.join(columns)}.",
                    at=here,
                )
        elif len(row) != len(header):
            raise Refusal(
                f"{len(row)} cells in a table of {len(header)} columns",
                consequence="Its cells would be taken for those of other columns.",
                fix=f"give it one cell for each of: {', '.join(header)}; an unknown one is empty.",
                at=here,
            )
        else:
            yield reader.line_num, dict(zip(header, row, strict=True))


def _text(path: Path) -> str:
    at = f"{DIRECTORY}/{path.name}"
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise Refusal(
            "no such file",
            consequence="Nothing says what the images hold.",
            fix="take it from the repository.",
            at=at,
        ) from None
    except UnicodeDecodeError as error:
        raise Refusal(f"not readable as UTF-8: {error}", at=at) from None

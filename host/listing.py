"""Claims as a table of text."""

from __future__ import annotations

from typing import Any

COLUMNS = ("NAME", "OWNER", "ROLES", "GPU", "MIB", "SHARED", "SINCE", "LEAVING")


def table(listed: dict[str, Any]) -> str:
    """The answer of `host.claims.listed`, one line for each claim and GPU."""
    indexes = {gpu["uuid"]: str(gpu["index"]) for gpu in listed["gpus"]}
    rows = [COLUMNS]
    rows += [
        (
            claim["name"],
            claim["owner"],
            "+".join(claim["roles"]) or "-",
            indexes.get(gpu["uuid"], gpu["uuid"]),
            str(gpu["mib"]),
            "yes" if claim["shared"] else "no",
            claim["since"],
            "yes" if claim["leaving"] else "no",
        )
        for claim in listed["claims"]
        for gpu in claim["gpus"]
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(COLUMNS))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows
    )

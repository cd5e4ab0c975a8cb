"""The tables as one short text, for what judges far from the files they were read from."""

from __future__ import annotations

import base64
import bz2
from functools import lru_cache

from pydantic import TypeAdapter

from models.releases.tables import Releases

_JSON = TypeAdapter(Releases)


@lru_cache(maxsize=4)
def packed(releases: Releases) -> str:
    """As text; the same for the same tables, wherever it is made."""
    return base64.b64encode(bz2.compress(_JSON.dump_json(releases))).decode()


@lru_cache(maxsize=4)
def unpacked(text: str) -> Releases:
    """From text.

    Raises:
        ValueError: it is none of `packed`.
    """
    try:
        return _JSON.validate_json(bz2.decompress(base64.b64decode(text)))
    except OSError as error:  # bz2's word for what it cannot read
        raise ValueError(str(error)) from error

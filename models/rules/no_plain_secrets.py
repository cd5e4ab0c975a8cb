"""No secret in clear: in a stack's config, an engine's arguments, a container's environment.

Config is committed, `docker inspect` shows the environment, and Pulumi's state holds both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from models.finding import Finding, wrong
from models.flat import flat
from models.judged import Judged

NAME = "no-plain-secrets"
DESCRIPTION = "No secret stands in clear in config, engine arguments or a container's environment."
REMEDY = "Put secrets into files on the host, or encrypt them; revoke what was committed."

_LOOKS_LIKE = {
    "a Hugging Face token": r"\bhf_[A-Za-z0-9]{16,}",
    "an API key (sk-…)": r"(?<![\w-])sk-[A-Za-z0-9_-]{16,}",
    "an NVIDIA API key": r"\bnvapi-[A-Za-z0-9_-]{16,}",
    "a GitHub token": r"\b(gh[pousr]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{16,})",
    "a GitLab token": r"\bglpat-[A-Za-z0-9_-]{16,}",
    "a Slack token": r"\bxox[abprs]-[A-Za-z0-9-]{16,}",
    "an AWS access key": r"\b(AKIA|ASIA)[0-9A-Z]{16}\b",
    "a private key": r"-----BEGIN [A-Z ]*PRIVATE KEY-----",
    "a URL with a password": r"\b[a-z][a-z0-9+.-]*://[^\s/:@]*:[^\s/@]+@",
}
_VALUES = {kind: re.compile(pattern) for kind, pattern in _LOOKS_LIKE.items()}
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_ALWAYS = {"password", "passwd", "passphrase", "secret", "secrets", "credential", "credentials",
           "apikey"}  # fmt: skip
_PUBLIC_KEYS = {"host", "public", "ssh", "sort", "cache", "routing", "partition", "primary"}
# Marks in a model's vocabulary.
_VOCABULARY = {"eos", "bos", "pad", "unk", "sep", "cls", "mask", "stop", "special", "image",
               "audio", "video", "start", "end", "begin", "first", "last", "think", "system",
               "assistant", "user", "tool", "max", "min", "per", "num"}  # fmt: skip


def findings(judged: Judged) -> list[Finding]:
    """One for each place that holds a secret. It is never shown."""
    found: dict[str, Finding] = {}
    for at, name, value, fix in _places(judged):
        kind = _secret(name, value)
        if kind and at not in found:
            found[at] = wrong(
                f"{kind} in clear",
                consequence="Whoever reads the repository, Pulumi's state or the host would have "
                "it.",
                fix=fix,
                at=at,
            )
    return [found[at] for at in sorted(found)]


def _places(judged: Judged) -> Iterator[tuple[str, str, object, str]]:
    """(path, name, value, fix) of all scalars that a user may have written."""
    for instance in judged.own_instances:
        for name, value in instance.environment.items():
            fix = (
                "put it into a file on the host that only root reads, mount that, and name the "
                f"file, as in `{name}_FILE`; and have this one revoked if it was committed."
            )
            yield f"{instance.at}.environment.{name}", name, value, fix
    here = "leave it out: weights lie on the host; and have it revoked if it was committed."
    for model in judged.models:
        for at, arg in flat(_engine_args(model.engine_args), model.file):
            yield at, _last(at), arg, here
        yield f"{model.file}: config_pbtxt", "", model.config_pbtxt, here
    for at, written in judged.plain_config.items():
        fix = f"`pulumi config set --secret --path '{at}'` encrypts it; and have it revoked if it "
        yield at, _last(at), written, f"{fix}was committed."


def _engine_args(args: Mapping[str, object]) -> dict[str, object]:
    return {"engine_args": dict(args)}


def _last(path: str) -> str:
    """The name that a value stands under; numbers in lists are passed over."""
    return re.sub(r"\[[0-9]+\]", "", path).replace(":", ".").rpartition(".")[2]


def _secret(name: str, value: object) -> str:
    """What kind of secret this is, or nothing."""
    if isinstance(value, bool) or value is None:
        return ""
    text = str(value).strip()
    for kind, pattern in _VALUES.items():
        if pattern.search(text):
            return f"`{name}` holds {kind}" if name else kind
    if not text or _refers(text):
        return ""
    words = [word.lower() for word in _WORDS.findall(name)]
    last, before = (words or [""])[-1], (words[-2:-1] or [""])[0]
    secret = (
        last in _ALWAYS
        or (last == "key" and before not in _PUBLIC_KEYS and len(words) > 1)
        or (last == "token" and before not in _VOCABULARY and not text.isdigit())
    )
    return f"`{name}` holds a value" if secret else ""


def _refers(text: str) -> bool:
    """Whether it says where a secret is, rather than what: a path, or another variable."""
    return text.startswith(("/", "~", "./", "../", "$", "file:"))

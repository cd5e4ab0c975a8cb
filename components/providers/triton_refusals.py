"""What can be wrong with a server or a model in it, apart from a load that fails."""

from __future__ import annotations

from collections.abc import Sequence

from components.providers.load_failure import NotServing
from models.refusal import Refusal

CANARY = "a canary inference"


def not_live(instance: str, unit: str, seconds: float, why: str) -> Refusal:
    """The server does not come up (seconds: how long it was waited for)."""
    waited = f" within {seconds:.0f} s" if seconds >= 1 else ""
    return Refusal(
        f"Triton does not answer{waited}: {why}",
        consequence="No model was loaded or unloaded.",
        fix=f"`systemctl status {unit}` and `journalctl -u {unit}` on the host say why; "
        f"`systemctl restart {unit}`, then run the same again",
        at=instance,
    )


def control_key_unreadable(instance: str, path: str, reason: str) -> Refusal:
    """The file with the control API's key is not there."""
    return Refusal(
        f"the control key {path} cannot be read on the host: {reason}",
        consequence="Without it Triton lets nobody load or unload a model.",
        fix="bring the host's own stack up, which writes it",
        at=instance,
    )


def control_key_wrong(instance: str, unit: str, path: str) -> Refusal:
    """Triton answered 403."""
    return Refusal(
        f"Triton does not accept the control key in {path}",
        consequence="No model was loaded or unloaded.",
        fix=f"the server was started with another key: `systemctl restart {unit}` on the host",
        at=instance,
    )


def wedged(instance: str, unit: str, what: str) -> Refusal:
    """The server takes connections and does not answer."""
    return Refusal(
        f"Triton takes connections but does not answer: {what}",
        consequence="What it holds is not known.",
        fix=f"`journalctl -u {unit}` on the host; `systemctl restart {unit}`, then run the same "
        "again",
        at=instance,
    )


def unexpected(instance: str, unit: str, reason: str) -> Refusal:
    """An error where Triton should have none."""
    return Refusal(
        f"Triton answered with an error: {reason}",
        consequence="What it holds is not known.",
        fix=f"`journalctl -u {unit}` on the host may say more; run the same again",
        at=instance,
    )


def still_busy(instance: str, unit: str, model: str, state: str, seconds: float) -> Refusal:
    """A model stays LOADING or UNLOADING."""
    return Refusal(
        f"{model} is still {state} after {seconds:.0f} s",
        consequence="It was left to that; its GPU memory is not free.",
        fix="wait for requests that are being answered and run the same again, or "
        f"`systemctl restart {unit}` on the host",
        at=instance,
    )


def ensemble_kept(
    instance: str, unit: str, model: str, seconds: float, beside: Sequence[str]
) -> Refusal:
    """An ensemble stays UNLOADING in a server that holds others besides."""
    return Refusal(
        f"{model} is still UNLOADING after {seconds:.0f} s: Triton may never let go of an "
        "ensemble's request whose client went",
        consequence="Its GPU memory is not free; the server holds more and was not restarted: "
        f"{', '.join(beside)}",
        fix=f"`systemctl restart {unit}` on the host once those can be spared, then run the same "
        "again",
        at=instance,
    )


def memory_not_back(instance: str, unit: str, model: str, seconds: float, held: str) -> Refusal:
    """Triton unloaded the model, and its GPU memory is still in use."""
    return Refusal(
        f"{model} was unloaded, but its GPU memory is not back after {seconds:.0f} s",
        consequence=f"Nothing else would fit there: {held}",
        fix=f"`systemctl restart {unit}` on the host ends what the model left behind, then run the "
        "same again",
        at=instance,
    )


def load_too_slow(
    instance: str, unit: str, model: str, seconds: float, beside: Sequence[str] = ()
) -> Refusal:
    """A load that takes longer than `load_timeout_s`; beside: why the server was not restarted for
    the model's fallback."""
    goes_on = "The load goes on in the server; it has been asked to unload the model after."
    kept = f" It holds {', '.join(beside)} too, so it was not restarted." if beside else ""
    return Refusal(
        f"{model} was not loaded within {seconds:.0f} s",
        consequence=f"{goes_on}{kept}",
        fix="if it only needs longer, raise the catalog entry's `load_timeout_s`; if it hangs, "
        f"`journalctl -u {unit}` says why: `systemctl restart {unit}`, then run the same again",
        at=instance,
    )


def load_ended(
    instance: str, unit: str, model: str, seconds: float, still_held: str = ""
) -> Refusal:
    """As `load_too_slow`, ended with its server; still_held: who holds memory after it."""
    kind = Refusal if still_held else NotServing
    held = f" Memory is still held: {still_held}" if still_held else ""
    return kind(
        f"{model} was not loaded within {seconds:.0f} s",
        consequence=f"Its server held nothing else and was restarted, which ended the load.{held}",
        fix="if it only needs longer, raise the catalog entry's `load_timeout_s`; if it hangs, "
        f"`journalctl -u {unit}` says why",
        at=instance,
    )


def died(instance: str, unit: str, model: str, why: str, still_held: str = "") -> Refusal:
    """The server ended in the middle of a load; still_held: who holds memory after it."""
    kind = Refusal if still_held else NotServing
    held = f" Memory is still held: {still_held}" if still_held else ""
    return kind(
        f"Triton ended as it loaded {model}: {why}",
        consequence=f"All that it held has gone with it; systemd starts it again, empty.{held}",
        fix=f"`journalctl -u {unit}` on the host says why; mend that, and run the same again",
        at=instance,
    )


def does_not_answer(
    instance: str, unit: str, model: str, why: str, still_held: str = ""
) -> Refusal:
    """The model is loaded, and no inference succeeds; still_held: who holds memory after it."""
    kind = Refusal if still_held else NotServing
    held = f" Memory is still held: {still_held}" if still_held else ""
    return kind(
        f"{model} is loaded, but {CANARY} fails: {why}",
        consequence=f"It was unloaded again: nobody would have got an answer from it.{held}",
        fix=f"`journalctl -u {unit}` on the host says why; `systemctl restart {unit}`, then run "
        "the same again",
        at=instance,
    )


def takes_too_much(
    instance: str, model: str, taken: str, allowed_mib: int, still_held: str = ""
) -> Refusal:
    """The model serves, on memory that it has not claimed (allowed_mib: beyond its claim)."""
    kind = Refusal if still_held else NotServing
    held = f" Memory is still held: {still_held}" if still_held else ""
    return kind(
        f"{model} takes more memory than it has claimed: {taken}",
        consequence=f"More than {allowed_mib} MiB too much would be missing to whoever else was "
        f"promised it, so it was ended again.{held}",
        fix="lower the catalog entry's `gpu_memory_utilization`, or raise its `shared_mib` to what "
        "it takes",
        at=instance,
    )


def other_configuration(instance: str, model: str, wanted: str, loaded: str | None) -> Refusal:
    """What was just loaded is not what was written."""
    return Refusal(
        f"{model} was loaded with another configuration than the declared one: "
        f"berth_digest {loaded or 'missing'} instead of {wanted}",
        consequence="It was unloaded again: it would not have served what was declared.",
        fix="the entry in the repository was changed meanwhile: `pulumi up --refresh` writes and "
        "loads the declared one",
        at=instance,
    )

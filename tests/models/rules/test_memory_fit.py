"""A model fits, or is refused with the numbers; or nobody knows, and that is said."""

from __future__ import annotations

import re

from models.rules import memory_fit
from models.weights import Weights
from tests.models.rules.plans import GOOD, WEIGHTS, refused, warned, with_model


def test_models_that_fit_pass() -> None:
    assert not memory_fit.findings(GOOD)


def test_too_much_is_refused_with_each_term_and_the_layouts_that_fit() -> None:
    groups = (WEIGHTS.groups[0].model_copy(update={"bytes": 7500 * 2**20}),)
    large = WEIGHTS.model_copy(update={"groups": groups})
    text = refused(memory_fit, with_model(weights=large))
    assert "small does not fit on triton@2 (berth/dev/shop: small)" in text
    assert "weights 30000 + KV" in text
    assert "of 20308 MiB" in text
    assert "it would fit on 2 GPUs (tp 2 × pp 1)" in text


def test_too_long_a_context_is_refused_with_the_longest_that_fits() -> None:
    long = with_model(args={"max_model_len": 100_000_000})
    text = refused(memory_fit, long)
    longest = re.search(r"set max_model_len to (\d+)\.", text)
    assert longest
    assert not memory_fit.findings(with_model(args={"max_model_len": int(longest[1])}))


def test_a_shorter_context_is_offered_to_claims_that_can_change() -> None:
    (finding,) = memory_fit.findings(with_model(args={"max_model_len": 100_000_000}))
    assert finding.troubled == ("berth/dev/shop.small/triton@2",)


def test_weights_that_nobody_read_are_a_warning_that_says_how_to_settle_it() -> None:
    text = warned(memory_fit, with_model(weights=None))
    assert "nobody has read them" in text
    assert "berth discover alpha" in text
    broken = Weights(trouble=("model.safetensors: header is cut off",))
    assert "header is cut off" in warned(memory_fit, with_model(weights=broken))


def test_an_unknown_architecture_is_a_warning() -> None:
    strange = WEIGHTS.model_copy(update={"config": {"model_type": "strange"}})
    assert "`strange`" in warned(memory_fit, with_model(weights=strange))


def test_a_context_that_is_no_number_is_refused() -> None:
    assert "no number of tokens" in refused(memory_fit, with_model(args={"max_model_len": "long"}))

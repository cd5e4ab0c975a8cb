"""The KV arithmetic against worked examples from vLLM's rules."""

from sandbox.vllm_standin.kv_cache import layer_types, needed_bytes


def test_llama_8b_takes_131072_bytes_a_token() -> None:
    text = {"num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8}
    types = layer_types({**text, "head_dim": 128}, 1)
    assert needed_bytes(types, 2, 8192, 2048) == 8192 * 131_072


def test_gemma_3_27b_takes_14_2_gib_at_131072() -> None:
    """10 full layers, 52 with a window of 1024: groups of 10, one full and six windowed."""
    kinds = [("full_attention" if i % 6 == 5 else "sliding_attention") for i in range(62)]
    text = {
        "num_hidden_layers": 62,
        "num_attention_heads": 32,
        "num_key_value_heads": 16,
        "head_dim": 128,
        "sliding_window": 1024,
        "layer_types": kinds,
    }
    blocks = needed_bytes(layer_types(text, 1), 2, 131_072, 8192) / (1.25 * 2**20)
    assert blocks == 11_654


def test_layers_that_share_kv_have_none() -> None:
    text = {"num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 2}
    whole = layer_types({**text, "head_dim": 64}, 1)
    shared = layer_types({**text, "head_dim": 64, "num_kv_shared_layers": 2}, 1)
    assert sum(whole.values()) == 2 * sum(shared.values())

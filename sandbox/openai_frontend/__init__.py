"""The stand-in for Triton's OpenAI frontend (`python/openai`), before a real Triton.

NVIDIA's embeds Triton in its own process; this one runs it as a child on loopback.
"""

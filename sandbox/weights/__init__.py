"""Weights directories with true safetensors headers and sparse bodies: 62 GB that cost no disk."""

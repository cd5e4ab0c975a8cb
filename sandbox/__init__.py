"""A throwaway GPU host: real systemd, sshd, Docker and Triton; simulated GPUs and LLM."""

"""The adapter service: OpenAI's API, and the orchestrator's events, in front of any engine."""

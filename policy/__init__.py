"""The policy pack: one rule per file in `rules/`; `__main__.py` only registers them."""

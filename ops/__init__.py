"""The operator's command, `berth`."""

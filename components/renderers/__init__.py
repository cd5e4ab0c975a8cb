"""Pure: from the plan to the exact text and arguments that a host gets."""

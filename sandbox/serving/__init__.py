"""What the stand-ins of the HTTP servers share: steps, prompts, listening."""

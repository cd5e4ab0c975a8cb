"""What makes a plan impossible: one rule a file, each over plain values (`models.judged`)."""

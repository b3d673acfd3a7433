"""What a run says, for people and programs."""

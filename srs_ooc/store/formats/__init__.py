"""Source formats, one a file."""

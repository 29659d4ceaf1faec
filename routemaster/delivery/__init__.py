"""One batch over HTTP: what is sent, how, and what the answer means. Knows nothing of Redis."""

"""A client of the WRAITH protocol, written from docs/PROTOCOL.md and nothing else."""

"""Audits: what rules find in a running server; pure, no host is touched."""

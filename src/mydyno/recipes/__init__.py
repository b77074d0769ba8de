"""Campaigns that ship with mydyno: the articles' procedures, and ours, one TOML file each."""

"""The formats of `mydyno export`, one file each: `FORM` is what it carries, and its files."""

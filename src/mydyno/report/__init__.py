"""Strings from values: the terminal's text and the one-file HTML page.

Nothing is re-exported, so that asking for the text does not load the template engine.
"""

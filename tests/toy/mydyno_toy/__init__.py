"""Toys that show what a plug-in of mydyno is made of."""

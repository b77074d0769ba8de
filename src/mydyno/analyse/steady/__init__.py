"""Steady levels of trials that were still warming up, and how sure they are."""

from mydyno.analyse.steady.learn import Learned, glance, learn
from mydyno.analyse.steady.model import Fit, NoiseModel, Prior, fit, left
from mydyno.analyse.summary import BIN_S

__all__ = [
    "BIN_S",
    "Fit",
    "Learned",
    "NoiseModel",
    "Prior",
    "fit",
    "glance",
    "learn",
    "left",
]

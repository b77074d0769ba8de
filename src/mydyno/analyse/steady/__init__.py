"""Steady levels of trials that were still warming up, with their variances."""

from mydyno.analyse.steady.learn import Learned, learn, learn_noise
from mydyno.analyse.steady.model import Fit, NoiseModel, Prior, fit, left
from mydyno.analyse.summary import BIN_S

__all__ = [
    "BIN_S",
    "Fit",
    "Learned",
    "NoiseModel",
    "Prior",
    "fit",
    "learn",
    "learn_noise",
    "left",
]

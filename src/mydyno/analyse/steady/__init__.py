"""Steady levels of trials that were still warming up, and how sure they are."""

from mydyno.analyse.steady.learn import Learned, learn
from mydyno.analyse.steady.model import Fit, Prior, Texture, binned, fit
from mydyno.analyse.steady.shapes import BIN_S

__all__ = ["BIN_S", "Fit", "Learned", "Prior", "Texture", "binned", "fit", "learn"]

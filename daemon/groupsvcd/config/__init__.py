"""The configuration: one frozen class, and every problem of a bad file at once."""

from .options import OPTIONS, Config, Limits, environment_name
from .problems import BadConfig, Problem
from .reading import load

__all__ = ["OPTIONS", "BadConfig", "Config", "Limits", "Problem", "environment_name", "load"]

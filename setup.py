"""The package is described in setup.cfg; this file serves tools that still look for it."""

from setuptools import setup

setup()

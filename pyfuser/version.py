"""The version, which setup.cfg has as well."""

VERSION = "0.1.0"

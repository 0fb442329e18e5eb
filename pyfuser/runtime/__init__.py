"""What runs when: importing it makes `flush` what the tracer calls."""

from pyfuser.runtime import flush

__all__ = ["flush"]

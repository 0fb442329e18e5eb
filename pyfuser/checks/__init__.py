"""Tools that find mistakes: in workunits (PYFUSER_CHECK) and in PyFuser (PYFUSER_VERIFY)."""

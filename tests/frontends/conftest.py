from __future__ import annotations

import sys
import types

import pytest

if True:
    try:
        import pyfuser.engine.native
    except ImportError:
        m = types.ModuleType("pyfuser.engine.native")
        m.Launchable = object
        sys.modules["pyfuser.engine.native"] = m
        import pyfuser.engine
        pyfuser.engine.native = m
        import pyfuser
        from pyfuser.frontends.embedded.register import register
        register()

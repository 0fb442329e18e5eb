"""What `import pykokkos` finds in a process that a program under `pyfuser run` has spawned.

`multiprocessing` gives such a process the path of modules and nothing else of ours. This module
gives way to the one that PyFuser brings; launches run at once there.
"""

import importlib
import sys

del sys.modules[__name__]
importlib.import_module("pyfuser")

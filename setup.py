"""The package is described in setup.cfg; here is what that cannot say: the compiled extension.

It is optional: without a C compiler everything is installed but it, and Python does its work (see
docs/hot.md).
"""

from glob import glob

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            "pyfuser._hot",
            sorted(glob("pyfuser/hot/*.c")),
            depends=glob("pyfuser/hot/*.h"),
            extra_compile_args=["-O2", "-std=c11", "-fvisibility=hidden", "-Wall", "-Wno-unused"],
            optional=True,
        )
    ]
)

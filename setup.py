"""The package is described in setup.cfg; here is what that cannot say: the compiled extensions.

They are optional: without a C compiler everything is installed but them, and Python does their work
(see docs/hot.md).
"""

from glob import glob

from setuptools import Extension, setup

FLAGS = ["-O2", "-std=c11", "-fvisibility=hidden", "-Wall", "-Wno-unused"]
FLAGS += ["-fno-math-errno", "-ffp-contract=off"]  # of roots; nor are products and sums one


def extension(name: str, folder: str) -> Extension:
    """All C files of a folder."""
    sources = sorted(glob(f"{folder}/*.c"))
    headers = glob(f"{folder}/*.h")
    return Extension(name, sources, depends=headers, extra_compile_args=FLAGS, optional=True)


setup(
    ext_modules=[
        extension("pyfuser._hot", "pyfuser/hot"),
        extension("pyfuser._numpy", "pyfuser/hot_numpy"),
    ]
)

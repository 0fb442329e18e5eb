from pykokkos.linalg import l3_blas as l3_blas

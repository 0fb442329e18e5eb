/* Included several times: the operators, and NumPy's functions for them (C's `PyNumber_...`), with what
   is lazy from how many elements: 0: most, 1: costly, -1: never. */
#ifndef SETTABLE
#define SETTABLE(name) ATTRIBUTE(name)
#define OWN_SETTABLE
#endif
BINARY(add, Add, 0)
BINARY(sub, Subtract, 0)
BINARY(mul, Multiply, 0)
BINARY(truediv, TrueDivide, 0)
BINARY(floordiv, FloorDivide, 0)
BINARY(mod, Remainder, 0)
BINARY(and, And, 0)
BINARY(or, Or, 0)
BINARY(xor, Xor, 0)
BINARY(lshift, Lshift, 0)
BINARY(rshift, Rshift, 0)
BINARY(matmul, MatrixMultiply, -1)
UNARY(neg, Negative)
UNARY(pos, Positive)
UNARY(abs, Absolute)
UNARY(invert, Invert)
SETTABLE(shape)
SETTABLE(dtype)
ATTRIBUTE(strides)
ATTRIBUTE(ndim)
ATTRIBUTE(size)
ATTRIBUTE(itemsize)
ATTRIBUTE(nbytes)
#ifdef OWN_SETTABLE
#undef SETTABLE
#undef OWN_SETTABLE
#endif

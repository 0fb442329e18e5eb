/* What `pyfuser._numpy` calls of `pyfuser._hot`: the capsule `pyfuser._hot.API`. */
#ifndef PYFUSER_HOT_API_H
#define PYFUSER_HOT_API_H
#include <Python.h>

typedef struct {
    int (*records)(void);           /* whether a call made here is recorded, and may be now, without Python */
    int (*record)(PyObject *call);  /* `Tracer.record` */
    int (*device_is_here)(void);    /* whether calls of the GPU's current stream may be, beside what is pending */
} HotApi;

#define HOT_API "pyfuser._hot.API"
#endif

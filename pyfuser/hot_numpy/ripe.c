/* Functions of the program, by their code, and the bytes that operations on few elements moved in them. */
#include "record.h"

enum { FUNCTIONS = 256 };

long long ripe_from;

static struct {
    PyObject *code;
    long long moved;
} functions[FUNCTIONS];
static int function_count;

void forget_functions(void)
{
    for (int n = 0; n < FUNCTIONS; n++) {
        functions[n].moved = 0;
        Py_CLEAR(functions[n].code);
    }
    function_count = 0;
}

/* Count bytes; whether the function is ripe. */
int is_ripe(PyObject *code, long long bytes)
{
    size_t slot = ((uintptr_t)code >> 4) % FUNCTIONS;
    while (functions[slot].code != NULL && functions[slot].code != code) slot = (slot + 1) % FUNCTIONS;
    if (functions[slot].code == NULL) {
        if (function_count >= FUNCTIONS / 2) {
            forget_functions();
            slot = ((uintptr_t)code >> 4) % FUNCTIONS;
        }
        functions[slot].code = Py_NewRef(code);
        function_count++;
    }
    functions[slot].moved += bytes;
    return functions[slot].moved >= ripe_from;
}

/* Count what a call on so many elements moves; whether the function that makes it is ripe. */
int is_caller_ripe(Py_ssize_t elements)
{
    PyFrameObject *frame = program_frame();
    if (frame == NULL) return 1;
    PyObject *code = (PyObject *)PyFrame_GetCode(frame);
    int found = is_ripe(code, 16 * elements);
    Py_DECREF(code);
    Py_DECREF(frame);
    return found;
}

PyObject *ripe(PyObject *module, PyObject *args)
{
    PyObject *code;
    long long bytes;
    if (!PyArg_ParseTuple(args, "OL", &code, &bytes)) return NULL;
    return PyBool_FromLong(is_ripe(code, bytes));
}

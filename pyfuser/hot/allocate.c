/* Memory that launches need and nobody has made yet: all of it is made before the first one runs. */
#include "hot.h"

PyObject *argument_of(const Data *data, int call, int place)
{
    if (data->calls == NULL) return data->arguments[place];
    return PyTuple_GET_ITEM(SLOT(PyList_GET_ITEM(data->calls, call), L.call.arguments), place);
}

/* Takes back what steps from `first` on would have overwritten, if nobody has used it since. */
void undo(Fresh *fresh, Py_ssize_t first, PyObject *gate)
{
    int open = gate == NULL || PyList_GET_SIZE(gate) > 0;
    for (Py_ssize_t n = 0; n < fresh->count; n++) {
        PyObject *buffer = fresh->buffers[n], *old = NULL, *image = NULL;
        if (open && fresh->steps[n] >= first) {
            old = SLOT(buffer, L.buffer.root);
            image = SLOT(buffer, L.buffer.image);
            SLOT(buffer, L.buffer.root) = Py_NewRef(Py_None);
            SLOT(buffer, L.buffer.image) = Py_NewRef(Py_None);
        }
        Py_XDECREF(old);
        Py_XDECREF(image);
        Py_DECREF(buffer);
    }
    PyMem_Free(fresh->buffers);
    PyMem_Free(fresh->steps);
    Py_XDECREF(fresh->made);
}

static int note_fresh(Fresh *fresh, PyObject *buffer, Py_ssize_t step)
{
    if (fresh->count == fresh->room) {
        Py_ssize_t room = 2 * fresh->room + 8;
        PyObject **buffers = PyMem_Realloc(fresh->buffers, room * sizeof *buffers);
        if (buffers != NULL) fresh->buffers = buffers;
        Py_ssize_t *steps = PyMem_Realloc(fresh->steps, room * sizeof *steps);
        if (steps != NULL) fresh->steps = steps;
        if (buffers == NULL || steps == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        fresh->room = room;
    }
    fresh->buffers[fresh->count] = Py_NewRef(buffer);
    fresh->steps[fresh->count++] = step;
    return 0;
}

/* `allocate` for steps of a device, where nothing is inherited. */
static int allocate_on_device(const Prepared *self, Data *data, Fresh *fresh)
{
    for (Py_ssize_t n = 0; n < self->count; n++) {
        if (self->steps[n].grid->room == Py_None) continue;
        if (fresh->made == NULL) fresh->made = data->made = PyTuple_New(self->count);
        PyObject *made = data->made == NULL ? NULL : PyObject_CallNoArgs(self->steps[n].grid->room);
        if (made == NULL) return -1;
        PyTuple_SET_ITEM(data->made, n, made);
    }
    for (Py_ssize_t n = 0; n < self->count; n++)
        for (int zeroed = 0; zeroed < 2; zeroed++)
            for (Py_ssize_t k = 0; k < self->steps[n].patches; k++) {
                const Patch *patch = &self->steps[n].patch[k];
                if ((patch->kind != POINTER_SLOT && patch->kind != WRITTEN_SLOT) || (patch->box == Py_None) != zeroed) continue;
                PyObject *region = argument_of(data, patch->call, patch->place), *buffer = PyTuple_GET_ITEM(region, BUFFER);
                if (SLOT(buffer, L.buffer.root) != Py_None || SLOT(buffer, L.buffer.image) != Py_None) continue;
                if (!zeroed && note_fresh(fresh, buffer, n) < 0) return -1;
                Py_INCREF(region);
                int failed = device_allocate(patch, region);
                Py_DECREF(region);
                if (failed) return -1;
            }
    return 0;
}

/* Makes memory that steps need, first what they overwrite, but for what is inherited.

   -1: it failed, with an exception. */
int allocate(const Prepared *self, Data *data, Fresh *fresh)
{
    if (is_on_device(self)) return allocate_on_device(self, data, fresh);
    for (Py_ssize_t n = 0; n < self->count; n++)
        for (int zeroed = 0; zeroed < 2; zeroed++)
            for (Py_ssize_t k = 0; k < self->steps[n].patches; k++) {
                const Patch *patch = &self->steps[n].patch[k];
                if (patch->kind != POINTER_SLOT || (patch->box == Py_None) != zeroed) continue;
                PyObject *region = argument_of(data, patch->call, patch->place);
                PyObject *buffer = PyTuple_GET_ITEM(region, BUFFER);
                if (SLOT(buffer, L.buffer.root) != Py_None) continue;
                int inherited = inherits(patch, data);
                if ((!zeroed || inherited) && note_fresh(fresh, buffer, n) < 0) return -1;
                if (inherited) continue;
                Py_INCREF(region);
                int moves = patch->box != Py_None && data->space != NULL;
                PyObject *box = moves ? box_of(patch->box, data->space, region) : Py_NewRef(patch->box);
                int taken = box != NULL && take_block(region, box);
                PyObject *done = box == NULL ? NULL : taken ? Py_NewRef(Py_None) : PyObject_CallMethodOneArg(region, L.allocate, box);
                Py_XDECREF(box);
                Py_DECREF(region);
                if (done == NULL) return -1;
                Py_DECREF(done);
            }
    return 0;
}

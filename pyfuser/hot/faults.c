/* What a process that dies says of the kernels it launched last; see `engine.faults`.

A handler may only call what is async-signal-safe: texts are made when kernels are loaded, and kept.
*/
#include "hot.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

void *volatile launched[LAUNCHED];
unsigned launches_noted;

static struct Named { void *entry; char *text; } *volatile named;
static volatile Py_ssize_t named_count;
static int descriptor = 2;

enum { SIGNALS = 3, SAID = 3 };
static const struct { int number; const char *text; } signals[SIGNALS] = {
    {SIGSEGV, "Segmentation fault"}, {SIGBUS, "Bus error"}, {SIGABRT, "Aborted"}};
static struct sigaction before[SIGNALS];
static int watched[SIGNALS];

static void say(const char *text)
{
    ssize_t written = write(descriptor, text, strlen(text));
    (void)written;
}

static const char *text_of(void *entry)
{
    for (Py_ssize_t n = 0; n < named_count; n++)
        if (named[n].entry == entry) return named[n].text;
    return NULL;
}

/* The kernels launched last, the newest first; each once. */
static void say_launches(const char *what)
{
    const char *said[SAID];
    int count = 0;
    for (unsigned back = 1; back <= LAUNCHED && count < SAID; back++) {
        void *entry = launched[(launches_noted - back) % LAUNCHED];
        const char *text = entry == NULL ? NULL : text_of(entry);
        for (int n = 0; text != NULL && n < count; n++)
            if (said[n] == text) text = NULL;
        if (text == NULL) continue;
        say(count ? ", " : "PyFuser: ");
        if (!count) {
            say(what);
            say(". Launched last: ");
        }
        say(text);
        said[count++] = text;
    }
    if (count) say(". If one of them used an index outside of a view, PYFUSER_CHECK=bounds finds it.\n");
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    for (int n = 0; n < SIGNALS; n++) {
        if (signals[n].number != number) continue;
        sigaction(number, &before[n], NULL);
        say_launches(signals[n].text);
        if (before[n].sa_flags & SA_SIGINFO)
            before[n].sa_sigaction(number, info, context);
        else if (before[n].sa_handler != SIG_DFL && before[n].sa_handler != SIG_IGN)
            before[n].sa_handler(number);
        else
            raise(number);  /* it comes when this handler returns */
    }
}

/* watch_faults(descriptor, also): where nobody else handles a fault, say what was launched; `also`: as well
   where somebody does, and then have that do what it does. */
PyObject *watch_faults(PyObject *module, PyObject *args)
{
    int also;
    if (!PyArg_ParseTuple(args, "ip", &descriptor, &also)) return NULL;
    for (int n = 0; n < SIGNALS; n++) {
        struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
        sigemptyset(&action.sa_mask);
        if (watched[n] || sigaction(signals[n].number, NULL, &before[n]) < 0) continue;
        int free = !(before[n].sa_flags & SA_SIGINFO) && before[n].sa_handler == SIG_DFL;
        if (free || also) watched[n] = sigaction(signals[n].number, &action, NULL) == 0;
    }
    Py_RETURN_NONE;
}

/* name_kernel(entry, text) */
PyObject *name_kernel(PyObject *module, PyObject *args)
{
    unsigned long long entry;
    const char *given;
    if (!PyArg_ParseTuple(args, "Ks", &entry, &given)) return NULL;
    char *text = strdup(given);  /* what it replaces is not freed: a handler may be reading it */
    Py_ssize_t place = 0;
    while (place < named_count && named[place].entry != (void *)(uintptr_t)entry) place++;
    if (place == named_count && text != NULL && (place & (place - 1)) == 0) {  /* a power of 2: it is full */
        struct Named *more = malloc((place ? 2 * place : 1) * sizeof *more);
        if (more == NULL) {
            free(text);
            return PyErr_NoMemory();
        }
        if (place) memcpy(more, named, place * sizeof *more);
        named = more;  /* the old one is kept as well; all of them together are as long as this */
    }
    if (text == NULL) return PyErr_NoMemory();
    named[place].entry = (void *)(uintptr_t)entry;
    named[place].text = text;
    if (place == named_count) named_count = place + 1;
    Py_RETURN_NONE;
}

/* launching(entry): Python is going to launch a kernel. */
PyObject *launching(PyObject *module, PyObject *entry)
{
    void *address = PyLong_AsVoidPtr(entry);
    if (address == NULL && PyErr_Occurred()) return NULL;
    note_launch(address);
    Py_RETURN_NONE;
}

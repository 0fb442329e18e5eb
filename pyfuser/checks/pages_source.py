"""C++ that notices who touches a page: a signal handler, and an allocator of whole pages."""

SOURCE = r"""
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

// Of Python, whose symbols the process has.
extern "C" {
void* PyGILState_GetThisThreadState(void);
int PyGILState_Ensure(void);
void PyGILState_Release(int);
void PyErr_Fetch(void**, void**, void**);
void PyErr_Restore(void*, void*, void*);
}

namespace {

const uintptr_t PAGE = sysconf(_SC_PAGESIZE);
constexpr int MAX = 4096;

// [low, high): the bytes of a pending argument; [first, last): the pages that are protected for it.
struct Guard { uintptr_t low, high, first, last; int64_t id; bool writes; };
Guard guards[MAX];
int count = 0;
volatile char busy = 0;
void (*report)(int64_t, int) = nullptr;
struct sigaction before;
__thread bool reporting = false;
__thread uintptr_t retried = 0;

// What threads that Python does not know have touched: whoever waits for such a thread may have
// Python's lock, so they report nothing themselves.
struct Late { int64_t id; int store; };
Late late[MAX];
int late_count = 0;

// No page that is protected is touched under this lock, so the handler cannot wait for itself.
void lock() { while (__atomic_test_and_set(&busy, __ATOMIC_ACQUIRE)) { } }
void unlock() { __atomic_clear(&busy, __ATOMIC_RELEASE); }

void open_pages(uintptr_t first, uintptr_t last) {
  mprotect((void*)first, last - first, PROT_READ | PROT_WRITE);
}

void tell(int64_t id, bool store) {
  if (reporting) return;  // a fault in what reports
  reporting = true;
  int state = PyGILState_Ensure();
  void *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  report(id, store);
  PyErr_Restore(type, value, trace);
  PyGILState_Release(state);
  reporting = false;
}

// Whether the access that failed was a store: surely, where loads are allowed.
bool is_store(void* context, bool readable) {
#if defined(__x86_64__)
  return ((ucontext_t*)context)->uc_mcontext.gregs[REG_ERR] & 2;
#else
  return readable;
#endif
}

bool is_protected(uintptr_t at) {
  lock();
  bool found = false;
  for (int n = 0; n < count; n++) found |= at >= guards[n].low && at < guards[n].high;
  unlock();
  return found;
}

// Give a thread of Python, which is computing another part, time to touch the array first: it
// knows the program's line.
void wait_for_python(uintptr_t at) {
  struct timespec pause = {0, 1000000};
  for (int n = 0; n < 100 && is_protected(at); n++) nanosleep(&pause, nullptr);
}

void on_fault(int number, siginfo_t* info, void* context) {
  uintptr_t at = (uintptr_t)info->si_addr, page = at & ~(PAGE - 1);
  int64_t id = -1;
  bool known = PyGILState_GetThisThreadState();
  if (!known) wait_for_python(at);
  bool ours = false, readable = true;
  lock();
  for (int n = 0; n < count; n++)
    if (at >= guards[n].first && at < guards[n].last) {
      ours = true;
      readable = readable && !guards[n].writes;
    }
  bool store = is_store(context, readable);
  for (int n = 0; n < count; n++) {
    Guard& g = guards[n];
    if (at < g.low || at >= g.high || at < g.first || at >= g.last) continue;
    if (!g.writes && !store) continue;
    id = g.id;  // of several the last
    if (g.writes) break;
  }
  for (int n = 0; n < count && ours; n++) {
    Guard& g = guards[n];
    if (at < g.first || at >= g.last) continue;
    if (id < 0) {  // other data on such a page: only this page is opened
      open_pages(page, page + PAGE);
      break;
    }
    open_pages(g.first, g.last);
    if (at >= g.low && at < g.high) g.low = g.high = 0;  // one report for each
  }
  if (id >= 0 && !known && late_count < MAX) late[late_count++] = Late{id, store};
  unlock();
  if (ours) {
    retried = 0;
    if (id >= 0 && known) tell(id, store);
    return;
  }
  if (info->si_code == SEGV_ACCERR && retried != at) {  // another thread has opened the page
    retried = at;
    return;
  }
  sigaction(SIGSEGV, &before, nullptr);  // it happens again, without us
}

// ----------------------------------------------------------------- memory in pages of its own

// Before the data: how long the mapping is, 0 if malloc made it, and where it begins.
struct Head { size_t mapped; void* base; };

void* allocate(void*, size_t size) {
  size_t bytes = ((size ? size : 1) + PAGE - 1) / PAGE * PAGE;
  if (bytes < size) return nullptr;
  char* base = (char*)mmap(nullptr, bytes + PAGE, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base != MAP_FAILED) {
    ((Head*)(base + PAGE))[-1] = Head{bytes + PAGE, base};
    return base + PAGE;
  }
  base = (char*)calloc(size + 64, 1);  // no more mappings
  if (!base) return nullptr;
  ((Head*)(base + 64))[-1] = Head{0, base};
  return base + 64;
}

void forget(uintptr_t first, uintptr_t last) {
  lock();
  int kept = 0;
  for (int n = 0; n < count; n++)
    if (guards[n].last <= first || guards[n].first >= last) guards[kept++] = guards[n];
  count = kept;
  unlock();
}

void release(void*, void* data, size_t) {
  if (!data) return;
  Head head = ((Head*)data)[-1];
  if (!head.mapped) { free(head.base); return; }
  forget((uintptr_t)data, (uintptr_t)head.base + head.mapped);
  munmap(head.base, head.mapped);
}

void* allocate_zeroed(void* context, size_t number, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(number, size, &bytes)) return nullptr;
  return allocate(context, bytes);
}

void* reallocate(void* context, void* data, size_t size) {
  void* made = allocate(context, size);
  if (!made || !data) return made;
  Head head = ((Head*)data)[-1];
  size_t had = head.mapped ? head.mapped - PAGE : size;
  if (!head.mapped) {
    void* base = realloc(head.base, size + 64);  // of unknown length
    release(context, made, size);
    if (!base) return nullptr;
    ((Head*)((char*)base + 64))[-1] = Head{0, base};
    return (char*)base + 64;
  }
  memcpy(made, data, had < size ? had : size);
  release(context, data, had);
  return made;
}

// NumPy's PyDataMem_Handler, version 1.
struct Handler {
  char name[127];
  uint8_t version;
  struct {
    void* context;
    void* (*malloc)(void*, size_t);
    void* (*calloc)(void*, size_t, size_t);
    void* (*realloc)(void*, void*, size_t);
    void (*free)(void*, void*, size_t);
  } allocator;
};
Handler handler = {"pyfuser_pages", 1, {nullptr, allocate, allocate_zeroed, reallocate, release}};

}  // namespace

extern "C" {

void* pf_handler() { return &handler; }

// Catch faults, unless we do already; `tell` gets a guard's id, and whether it was a store.
int pf_catch(void (*tell)(int64_t, int)) {
  struct sigaction now;
  if (sigaction(SIGSEGV, nullptr, &now)) return -1;
  report = tell;
  if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_fault) return 0;
  before = now;
  struct sigaction ours;
  memset(&ours, 0, sizeof ours);
  ours.sa_sigaction = on_fault;
  ours.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigemptyset(&ours.sa_mask);
  return sigaction(SIGSEGV, &ours, nullptr);
}

// Protect the bytes [low, high): from reads, too, if `writes`. `whole`: no page of them has
// anything else that matters; else only pages that lie inside are protected.
int pf_protect(uintptr_t low, uintptr_t high, int writes, int whole, int64_t id) {
  uintptr_t first = (whole ? low : low + PAGE - 1) & ~(PAGE - 1);
  uintptr_t last = (whole ? high + PAGE - 1 : high) & ~(PAGE - 1);
  if (first >= last) return 0;
  lock();
  if (count == MAX) { unlock(); return 0; }
  guards[count++] = Guard{low, high, first, last, id, writes != 0};
  int all = PROT_NONE;
  if (!writes) {  // readable, unless some call writes a part of it
    all = PROT_READ;
    for (int n = 0; n < count; n++)
      if (guards[n].writes && guards[n].first < last && guards[n].last > first) all = PROT_NONE;
  }
  int failed = mprotect((void*)first, last - first, all);
  unlock();
  return !failed;
}

void pf_open() {
  lock();
  for (int n = 0; n < count; n++) open_pages(guards[n].first, guards[n].last);
  count = 0;
  unlock();
}

// One that such a thread has touched and nobody reported: its guard, or -1.
int64_t pf_late(int* store) {
  lock();
  int64_t id = late_count ? late[--late_count].id : -1;
  if (id >= 0) *store = late[late_count].store;
  unlock();
  return id;
}

}
"""

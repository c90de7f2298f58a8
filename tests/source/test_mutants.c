/* Damaged copies of sound files, each opened and read in a process of its own with little time and
 * memory: whatever the bytes say, there is a result or an error, never a signal, a loop or a lack of
 * memory.
 *
 * Arguments: SCHEME:FILE, or SCHEME:FILE:FIELDS, any number of them. STOKER_CASES asks for more mutants
 * than the usual number of each, STOKER_FIRST for others; those that fail are left in the folder
 * STOKER_KEEP. */
#include "source/little.h"

#include "pieces.h"
#include "tap.h"
#include "tree.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { USUAL_CASES = 150, FILE_MAX = 1 << 20, PLACES_MAX = 4096, CPU_SECONDS = 4, WALL_SECONDS = 60 };
#define MEMORY_MAX (1536ull << 20)

struct mutator {
    uint64_t state;
    const uint8_t *sound;
    uint64_t size;
    uint64_t places[PLACES_MAX]; /* where structures begin */
    uint64_t count;
};

static uint64_t next_random(struct mutator *m)
{
    uint64_t z = m->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static uint64_t below(struct mutator *m, uint64_t limit) { return limit ? next_random(m) % limit : 0; }

/* ---- checksums of HDF5, without which a mutant would be refused for them alone ----------------------
 */

static uint32_t turn(uint32_t value, unsigned by) { return value << by | value >> (32 - by); }

/* Jenkins' lookup3 with the start 0. */
static uint32_t lookup3(const uint8_t *bytes, uint64_t size)
{
    static const unsigned early[] = {4, 6, 8, 16, 19, 4}, late[] = {14, 11, 25, 16, 4, 14, 24};
    uint32_t s[3] = {0xdeadbeef + (uint32_t)size, 0xdeadbeef + (uint32_t)size,
                     0xdeadbeef + (uint32_t)size};
    while (size) {
        uint8_t block[12] = {0};
        const uint64_t part = size < 12 ? size : 12;
        memcpy(block, bytes, part);
        for (int k = 0; k < 3; k++)
            s[k] += st_u32(block + 4 * k);
        bytes += part;
        size -= part;
        for (int k = 0; size && k < 6; k++) { /* a -= c, a ^= c <<< r, c += b; then the next */
            const int a = k % 3, b = (k + 1) % 3, c = (k + 2) % 3;
            s[a] = (s[a] - s[c]) ^ turn(s[c], early[k]);
            s[c] += s[b];
        }
    }
    for (int k = 0; k < 7; k++) { /* c ^= b, c -= b <<< r; then the one before */
        const int c = (2 + k) % 3, b = (1 + k) % 3;
        s[c] = (s[c] ^ s[b]) - turn(s[b], late[k]);
    }
    return s[2];
}

/* Of an object header of version 2, if it still has the size it says. */
static void repair(uint8_t *bytes, uint64_t size, uint64_t at)
{
    if (at + 32 > size || memcmp(bytes + at, "OHDR", 4))
        return;
    const uint8_t flags = bytes[at + 5];
    const uint64_t place = at + 6 + (flags & 32 ? 16 : 0) + (flags & 16 ? 4 : 0),
                   width = 1u << (flags & 3);
    uint64_t length = 0;
    memcpy(&length, bytes + place, width);
    const uint64_t end = place + width + length;
    if (length < size && end + 4 <= size) {
        const uint32_t sum = lookup3(bytes + at, end - at);
        memcpy(bytes + end, &sum, 4);
    }
}

/* ---- mutants ------------------------------------------------------------------------------------ */

/* Structures of HDF5 have marks; 8 bytes that name the place of one refer to it. */
static void find_places(struct mutator *m)
{
    static const char *const marks[] = {"GCOL", "TREE", "SNOD", "HEAP", "OHDR", "OCHK", "FRHP",
                                        "FHDB", "BTHD", "BTLF", "EAHD", "EAIB", "FAHD", "\x89HDF"};
    uint64_t heaps[64], heap_count = 0;
    m->count = 0;
    for (uint64_t i = 0; i + 8 <= m->size && m->count < PLACES_MAX; i++)
        for (size_t k = 0; k < sizeof marks / sizeof *marks; k++)
            if (!memcmp(m->sound + i, marks[k], 4)) {
                m->places[m->count++] = i;
                if (k == 0 && heap_count < 64)
                    heaps[heap_count++] = i;
            }
    for (uint64_t i = 0; i + 8 <= m->size && m->count < PLACES_MAX; i++) {
        uint64_t value;
        memcpy(&value, m->sound + i, 8);
        for (uint64_t k = 0; k < heap_count; k++)
            if (value == heaps[k])
                m->places[m->count++] = i < 4 ? 0 : i - 4;
    }
}

static uint64_t some_place(struct mutator *m)
{
    if (!m->count || below(m, 4) == 0)
        return below(m, m->size);
    const uint64_t at = m->places[below(m, m->count)] + below(m, below(m, 2) ? 24 : 160);
    return at < m->size ? at : m->size - 1;
}

static uint64_t some_value(struct mutator *m)
{
    static const uint64_t odd[] = {
        0,          1,          2,          7,          8,          15,        16,         127,
        128,        255,        256,        4095,       4096,       65535,     65536,      0x7fffffff,
        0x80000000, 0xffffffff, 1ull << 32, 1ull << 40, 1ull << 62, INT64_MAX, 1ull << 63, UINT64_MAX};
    switch (below(m, 4)) {
    case 0:
        return odd[below(m, sizeof odd / sizeof *odd)];
    case 1:
        return m->count ? m->places[below(m, m->count)] : 0; /* a reference to another structure */
    case 2:
        return below(m, 2 * m->size);
    default:
        return next_random(m);
    }
}

static void change(struct mutator *m, uint8_t *bytes)
{
    static const uint64_t widths[] = {1, 2, 4, 8};
    const uint64_t at = some_place(m), width = widths[below(m, 4)];
    uint64_t value = 0;
    if (at + width > m->size)
        return;
    memcpy(&value, bytes + at, width);
    switch (below(m, 5)) {
    case 0:
        value ^= 1ull << below(m, 8 * width);
        break;
    case 1:
        value += below(m, 2) ? 1 : UINT64_MAX;
        break;
    case 2:
        value *= 100;
        break;
    default:
        value = some_value(m);
    }
    memcpy(bytes + at, &value, width);
}

static uint64_t mutate(struct mutator *m, uint64_t number, uint8_t *bytes)
{
    m->state = number * 0xd1b54a32d192ed03u;
    memcpy(bytes, m->sound, m->size);
    for (uint64_t left = 1 + below(m, 4); left; left--)
        change(m, bytes);
    for (uint64_t k = 0; k < m->count; k++)
        repair(bytes, m->size, m->places[k]);
    return below(m, 20) ? m->size : below(m, m->size);
}

/* ---- one mutant --------------------------------------------------------------------------------- */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

static void limit_this(void)
{
    const rlim_t seconds = emulated() || SANITIZED ? 10 * CPU_SECONDS : CPU_SECONDS;
    setrlimit(RLIMIT_CPU, &(struct rlimit){seconds, seconds});
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
#ifndef __clang__
    if (!SANITIZED) /* which ask for terabytes */
        setrlimit(RLIMIT_AS, &(struct rlimit){MEMORY_MAX, MEMORY_MAX});
#endif
    alarm(WALL_SECONDS);
}

/* How a child ends, other than by a sanitizer. TOO_MUCH: out of memory, which a few kilobytes should not
 * lead to. */
enum { NONE_READABLE = 40, SOME_READABLE, TOO_MUCH };

#ifdef __SANITIZE_ADDRESS__
/* An allocation that fails is an error like any other. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "allocator_may_return_null=1"; }
#endif

static int read_all(const char *uri, const char *fields)
{
    struct stoker_dataset *data = NULL;
    struct stoker_error err = {0};
    struct stoker_dataset_options opt = {.size = sizeof opt, .fields = fields};
    FILE *nowhere = fopen("/dev/null", "w");
    int rc = st_dataset_open(&data, uri, &opt, &err), result = NONE_READABLE;
    if (rc == STOKER_ENOMEM)
        return TOO_MUCH;
    const uint64_t count = rc ? 0 : st_dataset_count(data);
    for (uint64_t i = 0; i < count && i < 100; i++) {
        st_dataset_label(data, i);
        if (sample_print(nowhere, data, i))
            result = SOME_READABLE;
    }
    st_dataset_drop(data);
    fclose(nowhere);
    return result;
}

static int status_of(const char *uri, const char *fields)
{
    int status = -1;
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        limit_this();
        _exit(read_all(uri, fields));
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

static void write_file(const char *path, const uint8_t *bytes, uint64_t size)
{
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(bytes, 1, size, file) != size || fclose(file))
        abort();
}

static const char *fate(int status)
{
    static char text[60];
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU)
        return "never ended";
    if (WIFSIGNALED(status))
        snprintf(text, sizeof text, "ended by signal %d", WTERMSIG(status));
    else
        snprintf(text, sizeof text,
                 WEXITSTATUS(status) == TOO_MUCH ? "asked for too much memory" : "exited %d",
                 WEXITSTATUS(status));
    return text;
}

static void check_mutants(struct mutator *m, const char *scheme, const char *name, const char *fields)
{
    const char *wish = getenv("STOKER_CASES"), *from = getenv("STOKER_FIRST");
    const char *keep = getenv("STOKER_KEEP");
    const uint64_t cases = wish ? strtoull(wish, NULL, 10) : share_of(USUAL_CASES);
    const uint64_t first = from ? strtoull(from, NULL, 10) : 1;
    uint64_t failed = 0, readable = 0;
    uint8_t *bytes = calloc(FILE_MAX, 1);
    char uri[4200], kept[4200];
    snprintf(uri, sizeof uri, "%s:%s", scheme, at("mutant"));
    for (uint64_t i = first; i < first + cases && failed < 20; i++) {
        write_file(at("mutant"), bytes, mutate(m, i, bytes));
        const int status = status_of(uri, fields);
        const bool good = WIFEXITED(status) &&
                          (WEXITSTATUS(status) == NONE_READABLE || WEXITSTATUS(status) == SOME_READABLE);
        readable += good && WEXITSTATUS(status) == SOME_READABLE;
        failed += !good;
        if (!good)
            note("mutant %llu of %s: %s", (unsigned long long)i, name, fate(status));
        if (!good && keep) {
            snprintf(kept, sizeof kept, "%s/%llu-%s", keep, (unsigned long long)i, name);
            write_file(kept, bytes, mutate(m, i, bytes));
        }
    }
    ok(!failed,
       "%s: %llu mutants, %llu of them with readable samples: %llu crashed, hung or took too much "
       "memory",
       name, (unsigned long long)cases, (unsigned long long)readable, (unsigned long long)failed);
    free(bytes);
}

int main(int argc, char **argv)
{
    static uint8_t bytes[FILE_MAX];
    static struct mutator mutator;
    tree_make();
    for (int i = 1; i < argc; i++) {
        char *path = strchr(argv[i], ':'), *fields = path ? strchr(path + 1, ':') : NULL;
        if (!path)
            return 1;
        *path++ = '\0';
        if (fields)
            *fields++ = '\0';
        FILE *file = fopen(path, "rb");
        const uint64_t size = file ? fread(bytes, 1, sizeof bytes, file) : 0;
        if (file)
            fclose(file);
        const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
        mutator = (struct mutator){.sound = bytes, .size = size};
        find_places(&mutator);
        write_file(at("mutant"), bytes, size);
        char uri[4200];
        snprintf(uri, sizeof uri, "%s:%s", argv[i], at("mutant"));
        const int status = status_of(uri, fields);
        if (ok(size && WIFEXITED(status) && WEXITSTATUS(status) == SOME_READABLE,
               "%s: is read while it is sound", name))
            check_mutants(&mutator, argv[i], name, fields);
    }
    tree_remove();
    return done_testing();
}

/* Damaged trees of HDF5 files: the indexes of chunks, and the links of groups. Each file is read in a
 * process of its own with little memory and time; whatever it says, there is a sentence about it, with
 * the place in the file, and the library is not asked to follow it.
 *
 * Argument: the folder tests/data. */
#include "source/little.h"

#include "pieces.h"
#include "tap.h"
#include "tree.h"

#include <errno.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FILE_MAX = 1 << 20, CPU_SECONDS = 4, LINKS = 0, CHUNKS = 1, KEY = 32 };

static const char *fixtures;
static uint8_t bytes[FILE_MAX];
static uint64_t size;

static void load(const char *name)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/hdf5/%s", fixtures, name);
    FILE *file = fopen(path, "rb");
    size = file ? fread(bytes, 1, sizeof bytes, file) : 0;
    if (!file || fclose(file))
        abort();
}

static void put(uint64_t place, uint64_t value, uint32_t width)
{
    for (uint32_t i = 0; i < width; i++)
        bytes[place + i] = (uint8_t)(value >> (8 * i));
}

/* The first node of chunks of this level with at least two entries, the first of which is of `chunk`
 * bytes (0: of any). */
static uint64_t find_node(uint8_t level, uint32_t chunk)
{
    for (uint64_t i = 0; i + 28 <= size; i++)
        if (!memcmp(bytes + i, "TREE", 4) && bytes[i + 4] == CHUNKS && bytes[i + 5] == level &&
            st_u16(bytes + i + 6) > 1 && (!chunk || st_u32(bytes + i + 24) == chunk))
            return i;
    return 0;
}

static uint64_t find_mark(const char *mark)
{
    for (uint64_t i = 0; i + 4 <= size; i++)
        if (!memcmp(bytes + i, mark, 4))
            return i;
    return 0;
}

/* ---- one file ----------------------------------------------------------------------------------- */

/* What became of opening the file and reading its samples, in a child; the words of the first error. */
static int read_all(const char *uri, FILE *words)
{
    struct stoker_dataset *data = NULL;
    struct stoker_error err = {0};
    struct stoker_dataset_options opt = {.size = sizeof opt};
    struct st_buffer buffer = {0};
    struct st_bytes raw;
    int rc = st_dataset_open(&data, uri, &opt, &err);
    const uint64_t count = rc ? 0 : st_dataset_count(data);
    for (uint64_t i = 0; i < count && i < 100 && !rc; i++)
        rc = st_read_sample(data, i, &buffer, &raw, &err);
    st_buffer_free(&buffer);
    st_dataset_drop(data);
    fputs(err.message, words);
    return rc;
}

static void refused(const char *what, const char *sentence)
{
    char uri[4200], words[600] = "";
    FILE *file = fopen(at("damaged.h5"), "wb"), *said = tmpfile();
    if (!file || !said || fwrite(bytes, 1, size, file) != size || fclose(file))
        abort();
    snprintf(uri, sizeof uri, "hdf5:%s", at("damaged.h5"));
    fflush(stdout);
    int status = -1;
    const pid_t child = fork();
    if (child == 0) {
        setrlimit(RLIMIT_CPU, &(struct rlimit){CPU_SECONDS, CPU_SECONDS});
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
        setrlimit(RLIMIT_AS, &(struct rlimit){1ull << 30, 1ull << 30});
#endif
        const int rc = read_all(uri, said);
        fflush(said);
        _exit(rc == STOKER_ECORRUPT ? 0 : 1);
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    rewind(said);
    const size_t got = fread(words, 1, sizeof words - 1, said);
    words[got] = '\0';
    fclose(said);
    ok(!status && strstr(words, sentence) && strstr(words, "damaged.h5"), "%s: %s%s", what,
       WIFSIGNALED(status) ? "ended by a signal " : "", words);
}

/* ---- trees of chunks ---------------------------------------------------------------------------- */

/* A file with a tree of two levels, of chunks of two dimensions: its root, and the first node below. */
static uint64_t load_chunks(uint64_t *leaf)
{
    load("many.h5");
    const uint64_t root = find_node(1, 0);
    *leaf = find_node(0, 0);
    if (!ok(root && *leaf, "a file with a tree of chunks of two levels"))
        exit(done_testing());
    return root;
}

static void chunk_nodes(void)
{
    uint64_t leaf, root = load_chunks(&leaf);
    put(root + 24 + KEY, root, 8);
    refused("a node that names itself", "invalid level");
    load_chunks(&leaf);
    put(root + 5, 200, 1);
    refused("a tree of 200 levels", "invalid level");
    load_chunks(&leaf);
    put(root + 24 + KEY + KEY + 8, st_u64(bytes + root + 24 + KEY), 8);
    refused("two entries for one node", "out of order");
    load_chunks(&leaf);
    put(root + 24 + KEY, size - 10, 8);
    refused("a node at the end of the file", "outside the file");
    load_chunks(&leaf);
    put(root + 24 + KEY, UINT64_MAX - 1, 8);
    refused("a node beyond every file", "points outside the file");
    load_chunks(&leaf);
    put(leaf + 4, LINKS, 1);
    refused("a node of links among those of chunks", "not a node of such a tree");
    load_chunks(&leaf);
    put(leaf + 6, 65535, 2);
    refused("65,535 entries", "at byte");
}

static void chunk_entries(void)
{
    uint64_t leaf;
    load_chunks(&leaf);
    put(leaf + 24, 0xc7360000u, 4);
    refused("a chunk of 3.3 GB", "outside the file");
    load("layouts_earliest.h5");
    const uint64_t plain = find_node(0, 5 * 6 * 3);
    put(plain + 24, 5 * 6 * 3 - 1, 4);
    refused("a chunk without filters that is a byte too short", "impossible size");
    load_chunks(&leaf);
    put(leaf + 24 + KEY, size - 1, 8);
    refused("a chunk at the end of the file", "outside the file");
    load_chunks(&leaf);
    put(leaf + 24 + 2 * (KEY + 8) + 8, 0, 8);
    refused("a chunk for the second time", "out of order");
}

/* ---- groups ------------------------------------------------------------------------------------- */

static void groups(void)
{
    load("many.h5");
    uint64_t heap = find_mark("HEAP"), links = find_mark("SNOD"), tree = find_mark("TREE");
    ok(heap && links && bytes[tree + 4] == LINKS, "a file with a group of the older kind");
    const uint64_t names = st_u64(bytes + heap + 24), free_part = st_u64(bytes + heap + 16);
    put(names + free_part, free_part, 8);
    refused("free parts of a heap in a circle", "has a cycle");
    load("many.h5");
    put(links + 8, 1 << 20, 8);
    refused("a link whose name lies outside of the heap", "has no name");
    load("many.h5");
    put(tree + 6, 32, 2); /* which all lead to the same nine links: more than the file has bytes for */
    for (uint64_t k = 0; k < 32; k++)
        put(tree + 24 + 16 * k + 8, links, 8);
    put(links + 6, 9, 2);
    for (uint64_t k = 1; k < 9; k++)
        memcpy(bytes + links + 8 + 40 * k, bytes + links + 8, 40);
    refused("links that come again and again", "visited before");
    load("many.h5");
    put(tree + 24 + 8, tree, 8);
    refused("a tree that leads to itself instead of links", "expected a block of links");
    load("many.h5");
    put(tree + 5, 1, 1);
    put(tree + 24 + 8, tree, 8);
    refused("a node of links that names itself", "invalid level");
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 1;
    fixtures = argv[1];
    tree_make();
    chunk_nodes();
    chunk_entries();
    groups();
    tree_remove();
    return done_testing();
}

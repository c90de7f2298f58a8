/* The folder source lists what torchvision's ImageFolder lists, in its order; the flat one all by path.
 */
#include "source/source.h"
#include "tap.h"
#include "tree.h"

#include <errno.h>

static struct stoker_dataset *open_as(const char *scheme, const char *path,
                                      const struct stoker_dataset_options *opt, struct stoker_error *err)
{
    char uri[4200];
    struct stoker_dataset *data = NULL;
    snprintf(uri, sizeof uri, "%s%s", scheme, path);
    memset(err, 0, sizeof *err);
    return st_dataset_open(&data, uri, opt, err) ? NULL : data;
}

static bool lists(const struct stoker_dataset *data, const char *root, const char *const *names,
                  const int64_t *labels)
{
    uint64_t i = 0;
    bool same = data != NULL;
    for (; same && names[i]; i++) {
        char got[4096], want[4096];
        snprintf(want, sizeof want, "%s%s", root, names[i]);
        const size_t size = i < st_dataset_count(data) ? st_dataset_name(data, i, got, sizeof got) : 0;
        same = size == strlen(want) && !strcmp(got, want) &&
               st_dataset_label(data, i) == (labels ? labels[i] : 0);
        if (!same)
            note("sample %d: got \"%s\", want \"%s\"", (int)i, size ? got : "(nothing)", want);
    }
    return same && st_dataset_count(data) == i;
}

static void classes_and_order(void)
{
    static const char *const files[] = {
        "t/b/x.png",     "t/b/X.JPG",   "t/b/sub/1.jpg",    "t/b/sub-x/1.jpg", "t/b/sub/deep/1.tiff",
        "t/b/notes.txt", "t/B/a.webp",  "t/.hidden/.jpg",   "t/a/2.bmp",       "t/a/10.bmp",
        "t/a/.x/h.pgm",  "t/stray.jpg", "t/\xc3\xa9/1.ppm", "t/\x80/1.ppm",    "t/\xee\x80\x80/1.ppm",
    };
    static const char *const want[] = {"/.hidden/.jpg",
                                       "/B/a.webp",
                                       "/a/10.bmp",
                                       "/a/2.bmp",
                                       "/a/.x/h.pgm",
                                       "/b/X.JPG",
                                       "/b/x.png",
                                       "/b/sub/1.jpg",
                                       "/b/sub-x/1.jpg",
                                       "/b/sub/deep/1.tiff",
                                       "/\xc3\xa9/1.ppm",
                                       "/\x80/1.ppm",
                                       "/\xee\x80\x80/1.ppm",
                                       NULL};
    static const int64_t labels[] = {0, 1, 2, 2, 2, 3, 3, 3, 3, 3, 4, 5, 6};
    static const char *const classes[] = {".hidden", "B", "a", "b", "\xc3\xa9", "\x80", "\xee\x80\x80"};
    struct stoker_error err;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        tree_file(at("%s", files[i]), 3, 1);
    for (uint32_t threads = 0; threads < 9; threads += 4) {
        struct stoker_dataset_options opt = {.size = sizeof opt, .threads = threads};
        struct stoker_dataset *data = open_as("", at("t"), &opt, &err);
        ok(lists(data, at("t"), want, labels), "classes and samples in order, %u threads: %s", threads,
           err.message);
        bool same = data && data->source->class_count(data->self) == 7;
        for (uint32_t i = 0; same && i < 7; i++)
            same = !strcmp(data->source->class_name(data->self, i), classes[i]);
        ok(same, "class names in order");
        st_dataset_drop(data);
    }
    struct stoker_dataset *data = open_as("folder:", at("t/"), NULL, &err);
    ok(lists(data, at("t"), want, labels), "a slash at the end of the root is not doubled");
    st_dataset_drop(data);
    static const char *const text[] = {".txt", NULL};
    static const char *const notes[] = {"/b/notes.txt", NULL};
    static const int64_t three[] = {3};
    struct stoker_dataset_options opt = {.size = sizeof opt, .extensions = text, .allow_empty = true};
    data = open_as("", at("t"), &opt, &err);
    ok(lists(data, at("t"), notes, three), "extensions of one's own");
    st_dataset_drop(data);
}

static void links(void)
{
    static const char *const want[] = {"/a/broken.jpg", "/a/link.jpg", "/a/out/1.jpg", "/b/1.jpg", NULL};
    static const int64_t labels[] = {0, 0, 0, 1};
    struct stoker_error err;
    struct stoker_dataset_options allow = {.size = sizeof allow, .allow_empty = true};
    tree_file(at("outside/1.jpg"), 3, 1);
    tree_file(at("links/a/x.txt"), 3, 1);
    bool made = !symlink(at("outside/1.jpg"), at("links/a/link.jpg")) &&
                !symlink("nowhere", at("links/a/broken.jpg")) && !symlink("nowhere", at("links/gone")) &&
                !symlink(at("outside"), at("links/a/out")) && !symlink(at("outside"), at("links/b"));
    struct stoker_dataset *data = open_as("", at("links"), NULL, &err);
    ok(made && lists(data, at("links"), want, labels), "links to files and folders are followed: %s",
       err.message);
    st_dataset_drop(data);

    made = !symlink("self", at("links/self"));
    ok(made && !open_as("", at("links"), NULL, &err) && strstr(err.message, strerror(ELOOP)),
       "a class that is a link to itself is an error, as there: %s", err.message);
    unlink(at("links/self"));

    /* One link back up: os.walk comes back until the path holds 40 links, and so do we. */
    tree_file(at("loop/a/1.jpg"), 3, 1);
    made = !symlink(at("loop/a"), at("loop/a/again"));
    data = open_as("", at("loop"), NULL, &err);
    ok(made && data && st_dataset_count(data) == 41, "a loop gives 41 times the sample, as os.walk: %s",
       err.message);
    st_dataset_drop(data);
    made = !symlink("..", at("loop/a/up"));
    ok(made && !open_as("", at("loop"), &allow, &err) && strstr(err.message, "never ends"),
       "loops that lead into each other are refused: %s", err.message);
}

static void flat(void)
{
    static const char *const files[] = {"f/m/x.jpg",   "f/a.jpg",     "f/z.jpg",   "f/a/b.jpg",
                                        "f/a-b/c.jpg", "f/m/q/r.png", "f/m/r.png", "f/m/p.png",
                                        "f/n.txt",     "f/m/q.jpg"};
    static const char *const want[] = {"/a-b/c.jpg", "/a.jpg",   "/a/b.jpg", "/m/p.png", "/m/q.jpg",
                                       "/m/q/r.png", "/m/r.png", "/m/x.jpg", "/z.jpg",   NULL};
    struct stoker_error err;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        tree_file(at("%s", files[i]), 3, 1);
    struct stoker_dataset *data = open_as("flat:", at("f"), NULL, &err);
    ok(lists(data, at("f"), want, NULL), "flat: all below, sorted by path, label 0: %s", err.message);
    ok(data && !data->source->class_count, "without classes");
    st_dataset_drop(data);
    mkdir(at("f/empty"), 0777);
    ok(!open_as("flat:", at("f/empty"), NULL, &err) && strstr(err.message, ".webp"),
       "nothing there is an error that names the extensions: %s", err.message);
    struct stoker_dataset_options allow = {.size = sizeof allow, .allow_empty = true};
    data = open_as("flat:", at("f/empty"), &allow, &err);
    ok(data && st_dataset_count(data) == 0, "unless allowed: 0 samples");
    st_dataset_drop(data);
}

static void errors(void)
{
    struct stoker_error err;
    struct stoker_dataset_options allow = {.size = sizeof allow, .allow_empty = true};
    ok(!open_as("", at("missing"), NULL, &err) && err.code == STOKER_ENOTFOUND &&
           strstr(err.message, "missing"),
       "a root that is not there: %s", err.message);
    tree_file(at("e/file.jpg"), 3, 1);
    ok(!open_as("", at("e/file.jpg"), NULL, &err) && err.code == STOKER_EUNSUPPORTED &&
           strstr(err.message, "cannot tell the kind of dataset"),
       "a root that is a file: %s", err.message);
    ok(!open_as("", at("e"), NULL, &err) && strstr(err.message, "no class folder"),
       "no class folder: %s", err.message);
    ok(!open_as("", "", NULL, &err), "an empty path: %s", err.message);
    ok(!open_as("parquet:", "/x", NULL, &err) && err.code == STOKER_EUNSUPPORTED, "an unknown kind: %s",
       err.message);
    tree_file(at("e/full/1.jpg"), 3, 1);
    mkdir(at("e/hollow"), 0777);
    tree_file(at("e/wrong/1.gif"), 3, 1);
    ok(!open_as("", at("e"), NULL, &err) && strstr(err.message, "hollow, wrong") &&
           !strstr(err.message, "full") && strstr(err.message, ".jpg, .jpeg, .png"),
       "classes without a valid file are named, and the extensions: %s", err.message);
    struct stoker_dataset *data = open_as("", at("e"), &allow, &err);
    ok(data && st_dataset_count(data) == 1 && data->source->class_count(data->self) == 3 &&
           st_dataset_label(data, 0) == 0,
       "or are kept as classes where that is allowed");
    st_dataset_drop(data);
    for (int i = 0; i < 300; i++)
        mkdir(at("e/another-empty-class-%03d", i), 0777);
    ok(!open_as("", at("e"), NULL, &err) && strstr(err.message, "more.") && strstr(err.message, ".webp"),
       "many of them are counted: %s", err.message);
}

static void not_readable(void)
{
    static const char *const want[] = {"/a/1.jpg", NULL};
    struct stoker_error err;
    tree_file(at("p/a/1.jpg"), 3, 1);
    tree_file(at("p/a/locked/1.jpg"), 3, 1);
    chmod(at("p/a/locked"), 0);
    const bool root = geteuid() == 0;
    if (root && seteuid(65534)) {
        skip("folders that may not be read", "cannot become another user");
        return;
    }
    struct stoker_dataset *data = open_as("", at("p"), NULL, &err);
    ok(lists(data, at("p"), want, NULL), "a folder that may not be read is passed over, as there: %s",
       err.message);
    st_dataset_drop(data);
    if (root && seteuid(0))
        abort();
    chmod(at("p/a/locked"), 0755);
}

static void odd_entries(void)
{
    struct stoker_error err;
    struct st_extent extent;
    tree_file(at("odd/a/1.jpg"), 3, 1);
    const bool made = !mkfifo(at("odd/a/2.jpg"), 0666);
    struct stoker_dataset *data = open_as("", at("odd"), NULL, &err);
    ok(made && data && st_dataset_count(data) == 2,
       "a pipe with the name of an image is listed, as there");
    ok(data && data->source->locate(data->self, 1, &extent, &err) == STOKER_EIO &&
           strstr(err.message, "2.jpg: not a regular file"),
       "but never opened: %s", err.message);
    char cut[10];
    ok(data && st_dataset_name(data, 0, cut, sizeof cut) > 10 && strlen(cut) == 9, "a long name is cut");
    ok(data && st_dataset_name(data, 77, cut, sizeof cut) == 9, "a number past the last has a name too");
    ok(data && st_dataset_label(data, 77) == 0, "and a label");
    st_dataset_drop(data);
}

int main(void)
{
    tree_make();
    classes_and_order();
    links();
    flat();
    errors();
    not_readable();
    odd_entries();
    tree_remove();
    return done_testing();
}

/* Files that each format's own library wrote (tests/data/make_formats.py), and what it reads from them.
 *
 * The file "expect" beside them has a part for each case, which begins with "== NAME" and says how to
 * open a file: the URI, whose path is relative; the fields, or "-"; and lines "patch OFFSET HEX" and
 * "cut SIZE" that damage a copy of the file first. Then follow the words for each sample, where "error
 * CODE WORDS" stands for any message with these words, or a line "refused CODE WORDS". */
#include "pieces.h"
#include "tap.h"
#include "tree.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TEXT_MAX = 1 << 20, THREADS = 4 };

static char *words_of(struct stoker_dataset *data)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    dataset_print(out, data);
    fclose(out);
    return text;
}

static char *read_text(const char *path)
{
    char *text = calloc(TEXT_MAX, 1);
    FILE *file = fopen(path, "rb");
    if (file) {
        const size_t size = fread(text, 1, TEXT_MAX - 1, file);
        text[size] = '\0';
        fclose(file);
    }
    return text;
}

/* Whether a line is as expected, or an error with the words expected. */
static bool line_fits(const char *is, const char *want)
{
    char is_line[2000], want_line[2000];
    snprintf(is_line, sizeof is_line, "%.*s", (int)strcspn(is, "\n"), is);
    snprintf(want_line, sizeof want_line, "%.*s", (int)strcspn(want, "\n"), want);
    int code, got, words = 0, message = 0;
    if (sscanf(want_line, "error %d %n", &code, &words) == 1)
        return sscanf(is_line, "error %d %n", &got, &message) == 1 && got == code &&
               strstr(is_line + message, want_line + words);
    return !strcmp(is_line, want_line);
}

static bool fits(const char *is, const char *want, bool show)
{
    while (*is || *want) {
        if (!line_fits(is, want)) {
            if (show) {
                note("is:   %.*s", (int)strcspn(is, "\n"), is);
                note("want: %.*s", (int)strcspn(want, "\n"), want);
            }
            return false;
        }
        is += strcspn(is, "\n");
        is += *is == '\n';
        want += strcspn(want, "\n");
        want += *want == '\n';
    }
    return true;
}

struct together {
    struct stoker_dataset *data;
    const char *want;
    bool same;
};

static void *read_again(void *argument)
{
    struct together *together = argument;
    char *is = words_of(together->data);
    together->same = fits(is, together->want, false);
    free(is);
    return NULL;
}

/* Sanitizers lock up in a child that was forked while threads ran, or report what those did as its own. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__) || defined(__clang__)
enum { FORKS_BESIDE_THREADS = false };
#else
enum { FORKS_BESIDE_THREADS = true };
#endif

static pid_t fork_reader(struct stoker_dataset *data, const char *want)
{
    const pid_t child = fork();
    if (child == 0) {
        struct together own = {data, want, false};
        read_again(&own);
        st_dataset_drop(data);
        _exit(!own.same);
    }
    return child;
}

/* Threads share the dataset, and a forked child goes on with it. */
static void check_sharing(struct stoker_dataset *data, const char *want, const char *name)
{
    struct together together[THREADS];
    pthread_t threads[THREADS];
    bool same = true;
    int status = -1;
    for (int i = 0; i < THREADS; i++) {
        together[i] = (struct together){data, want, false};
        pthread_create(&threads[i], NULL, read_again, &together[i]);
    }
    pid_t child = FORKS_BESIDE_THREADS ? fork_reader(data, want) : 0;
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        same = same && together[i].same;
    }
    child = FORKS_BESIDE_THREADS ? child : fork_reader(data, want);
    waitpid(child, &status, 0);
    ok(same, "%s: the same in %d threads", name, THREADS);
    ok(status == 0, "%s: the same in a forked child", name);
}

static void check_opened(struct stoker_dataset *data, const char *want, const char *name)
{
    char *is = words_of(data);
    ok(fits(is, want, true), "%s: as its library reads it", name);
    free(is);
    check_sharing(data, want, name);
}

/* A copy of the file, damaged as the lines at *lines say; steps over them. */
static const char *damaged_copy(const char *path, const char **lines)
{
    static uint8_t bytes[TEXT_MAX];
    unsigned long size, place;
    unsigned byte;
    int taken;
    if (strncmp(*lines, "patch ", 6) && strncmp(*lines, "cut ", 4))
        return path;
    FILE *file = fopen(path, "rb");
    size = file ? fread(bytes, 1, sizeof bytes, file) : 0;
    if (file)
        fclose(file);
    while (sscanf(*lines, "patch %lu %n", &place, &taken) == 1) {
        *lines += taken;
        for (; sscanf(*lines, "%2x%n", &byte, &taken) == 1 && **lines != '\n'; *lines += taken)
            bytes[place++] = (uint8_t)byte;
        *lines += **lines == '\n';
    }
    if (sscanf(*lines, "cut %lu\n%n", &place, &taken) == 1) {
        *lines += taken;
        size = place;
    }
    const char *copy = at("copy");
    file = fopen(copy, "wb");
    fwrite(bytes, 1, size, file);
    fclose(file);
    return copy;
}

/* One case: the text between its name and the next. */
static void check(const char *folder, const char *name, char *text)
{
    char path[4096], uri[4200], scheme[20], file[200], fields[400];
    struct stoker_dataset *data = NULL;
    struct stoker_error err = {0};
    struct stoker_dataset_options opt = {.size = sizeof opt};
    int taken = 0, code;
    if (sscanf(text, "%19[a-z0-9]:%199[^\n]\n%399[^\n]\n%n", scheme, file, fields, &taken) != 3) {
        ok(false, "%s: what is expected can be read", name);
        return;
    }
    const char *want = text + taken;
    snprintf(path, sizeof path, "%s/%s", folder, file);
    const char *place = damaged_copy(path, &want);
    snprintf(uri, sizeof uri, "%s:%s", scheme, place);
    if (!strcmp(scheme, "auto")) /* by its look */
        snprintf(uri, sizeof uri, "%s", place);
    opt.fields = strcmp(fields, "-") ? fields : NULL;
    const int rc = st_dataset_open(&data, uri, &opt, &err);
    if (sscanf(want, "refused %d ", &code) == 1) {
        char *words = strchr(want + 8, ' ') + 1;
        words[strcspn(words, "\n")] = '\0';
        ok(rc == code && strstr(err.message, words), "%s: is refused: %d %s", name, rc, err.message);
    } else if (ok(!rc, "%s: opens%s%s", name, rc ? ": " : "", err.message)) {
        check_opened(data, want, name);
    }
    st_dataset_drop(data);
}

int main(int argc, char **argv)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/expect", argc == 2 ? argv[1] : "");
    char *text = read_text(path), *at = strncmp(text, "== ", 3) ? NULL : text;
    ok(at != NULL, "there are cases");
    tree_make();
    while (at) {
        char *name = at + 3, *body = strchr(name, '\n');
        *body++ = '\0';
        at = strstr(body, "\n== ");
        if (at)
            *++at = '\0';
        check(argv[1], name, body);
        if (at)
            *at = '=';
    }
    tree_remove();
    free(text);
    return done_testing();
}

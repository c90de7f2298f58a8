/* mutant.c - reads datasets that somebody damaged, each in a process of its own with little memory and
 * time
 *
 *     mutant                 a line "WAY PATH" of standard input is one dataset; a line of standard
 * output says how it ended mutant WAY PATH        that one, in this process and without limits: for a
 * debugger
 *
 * WAY is "file" for an encoded image or sound, "kept" for a dataset whose index lies in the folder
 * PATH.index, "coco", "voc" and the like for annotations, "plain" where the path tells the kind, or the dataset's kind ("tar"). Answers are "ok" (all was read), "bad" and a sentence
 * (some samples were not), "refused" and a sentence, and what must never be: "memory", "time", "hang",
 * "signal N", "died N".
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "annotations.h"
#include "codec/codec.h"
#include "op/sound/audio.h"
#include "source/kinds.h"
#include "source/reader/reader.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    SAMPLES = 12,         /* read of each dataset, half of them the last */
    CPU_SECONDS = 10,     /* may be used, */
    WALL_SECONDS = 120,   /* may pass: much longer, since the machine may be busy, */
    PIXELS_MAX = 1 << 22, /* are decoded of an image */
    VALUES_MAX = 1 << 20, /* and of a sound */
    MEMORY_MIB = 1536,    /* may be asked for */
};
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LIMITS_MEMORY 0 /* sanitizers ask for terabytes */
#else
#define LIMITS_MEMORY 1
#endif

/* libsndfile itself (1.2.0 does) keeps some memory when the header of an Ogg file is damaged. */
const char *__lsan_default_suppressions(void) __attribute__((visibility("default")));
const char *__lsan_default_suppressions(void) { return "leak:libsndfile\nleak:libvorbis"; }

/* ---- one dataset ------------------------------------------------------------------------------ */

struct outcome {
    uint32_t bad;
    bool memory;
    char reason[400];
};

static void note_error(struct outcome *out, int rc, const struct stoker_error *err)
{
    if (!rc)
        return;
    if (!out->bad++)
        snprintf(out->reason, sizeof out->reason, "%.399s", err->message);
    out->memory |= rc == STOKER_ENOMEM;
    if (err->code != rc || strlen(err->message) < 5)
        abort(); /* an error without a sentence */
}

/* The whole, and its lower right quarter at every scale there is. */
static void look(struct st_decoder *decoder, struct st_arena *arena, struct st_bytes in,
                 struct outcome *out)
{
    struct stoker_error err = {0};
    struct st_header header;
    struct st_view view;
    uint32_t codec;
    int rc = st_decoder_header(decoder, in, &codec, &header, &err);
    for (uint32_t scale = 1; !rc && scale <= 8; scale *= 2) {
        const uint32_t width = (header.width + scale - 1) / scale,
                       height = (header.height + scale - 1) / scale;
        struct st_decode how = {scale, {0, 0, width, height}};
        if (!(header.scales & scale))
            continue;
        rc = st_decoder_decode(decoder, codec, in, &how, arena, &view, &err);
        st_arena_reset(arena);
        how.region = (struct st_region){width / 2, height / 2, width - width / 2, height - height / 2};
        if (!rc)
            rc = st_decoder_decode(decoder, codec, in, &how, arena, &view, &err);
        st_arena_reset(arena);
    }
    note_error(out, rc, &err);
}

static void hear(struct st_arena *arena, struct st_bytes in, struct outcome *out)
{
    struct st_audio_work work = {.arena = arena, .limit = VALUES_MAX};
    struct stoker_error err = {0};
    struct st_audio audio;
    int rc = st_audio_open(&audio, &work, in, &err);
    if (!rc && in.size % 2)
        rc = st_audio_resample(&audio, 16000, &err);
    if (!rc && in.size % 3)
        rc = st_audio_mono(&audio, &err);
    if (!rc && audio.frames > 1000)
        rc = st_audio_part(&audio, audio.frames / 2, 500, &err);
    if (!rc)
        rc = st_audio_load(&audio, &err);
    note_error(out, rc, &err);
    st_audio_close(&audio);
    st_audio_work_free(&work);
    st_arena_reset(arena);
}

static bool looks_like_sound(struct st_bytes in)
{
    return in.size > 3 && (!memcmp(in.data, "RIFF", 4) || !memcmp(in.data, "fLaC", 4) ||
                           !memcmp(in.data, "OggS", 4) || !memcmp(in.data, "ID3", 3) ||
                           (in.data[0] == 0xFF && in.data[1] >= 0xE0 && in.data[1] != 0xD8));
}

static void read_sample(struct stoker_dataset *data, uint64_t sample, struct outcome *out)
{
    struct st_buffer buffer = {0}, scratch = {0};
    struct st_piece pieces[ST_FIELDS_MAX] = {0};
    struct stoker_error err = {0};
    struct st_decoder decoder = {.pixel_limit = PIXELS_MAX};
    struct st_arena arena = {0};
    struct st_bytes raw = {0};
    char name[500];
    uint32_t count = 1;
    const struct st_field whole = {.kind = ST_FIELD_IMAGE};
    const struct st_field *fields =
        data->source->fields ? data->source->fields(data->self, &count) : &whole;
    volatile uint64_t sum = 0;
    st_dataset_name(data, sample, name, sizeof name);
    st_dataset_label(data, sample);
    int rc = st_read_sample(data, sample, &buffer, &raw, &err);
    if (!rc && data->source->split)
        rc = data->source->split(data->self, sample, raw, &scratch, pieces, &err);
    else
        pieces[0].bytes = raw;
    note_error(out, rc, &err);
    for (uint32_t k = 0; !rc && k < count; k++) {
        const struct st_bytes bytes = pieces[k].bytes;
        if (fields[k].kind == ST_FIELD_INT || fields[k].kind == ST_FIELD_FLOAT)
            continue;
        for (size_t i = 0; i < bytes.size; i++)
            sum += bytes.data[i];
        if (fields[k].kind == ST_FIELD_AUDIO || (!data->source->fields && looks_like_sound(bytes)))
            hear(&arena, bytes, out);
        else if (fields[k].kind == ST_FIELD_IMAGE && !pieces[k].ndim)
            look(&decoder, &arena, bytes, out);
    }
    st_decoder_close(&decoder);
    st_arena_free(&arena);
    st_buffer_free(&buffer);
    st_buffer_free(&scratch);
}

static int open_mutant(struct stoker_dataset **data, const char *way, const char *path,
                       struct stoker_error *err)
{
    char text[2 * 4096 + 100];
    struct stoker_dataset_options opt = {.size = sizeof opt, .threads = 2};
    if (!strcmp(way, "file"))
        return st_dataset_from_files(data, &path, NULL, 1, err);
    if (!strcmp(way, "plain"))
        return st_dataset_open(data, path, &opt, err);
    if (!strcmp(way, "kept")) {
        snprintf(text, sizeof text, "%s.index", path);
        opt.index_dir = text;
        return st_dataset_open(data, path, &opt, err);
    }
    snprintf(text, sizeof text, "%s:%s", way, path);
    return st_dataset_open(data, text, &opt, err);
}

static int try_dataset(const char *way, const char *path, struct outcome *out)
{
    struct stoker_dataset *data = NULL;
    struct stoker_error err = {0};
    const int rc = open_mutant(&data, way, path, &err);
    note_error(out, rc, &err);
    const uint64_t count = rc ? 0 : st_dataset_count(data);
    for (uint64_t k = 0; k < count && k < SAMPLES; k++)
        read_sample(data, count > SAMPLES && k >= SAMPLES / 2 ? count - 1 - (k - SAMPLES / 2) : k, out);
    if (data)
        st_dataset_drop(data);
    return rc;
}

static int try_annotations(const char *way, const char *path, struct outcome *out)
{
    struct st_annotated table = {0};
    struct stoker_error err = {0};
    const int rc = annotations_read(&table, way, path, &err);
    note_error(out, rc, &err);
    if (!rc)
        note_error(out, annotations_draw_all(&table, &err), &err);
    st_annotated_free(&table);
    return rc;
}

static void try_one(const char *way, const char *path, FILE *answer)
{
    struct outcome out = {0};
    const int rc = annotations_are(way) ? try_annotations(way, path, &out) : try_dataset(way, path, &out);
    for (char *c = out.reason; *c; c++)
        *c = *c < ' ' || *c > '~' ? '?' : *c; /* one line, whatever names are in it */
    fprintf(answer, "%s %s\n",
            out.memory ? "memory"
            : rc       ? "refused"
            : out.bad  ? "bad"
                       : "ok",
            out.reason);
    fflush(answer);
}

/* ---- a process for each -------------------------------------------------------------------------- */

static void limit(int what, rlim_t value) { setrlimit(what, &(struct rlimit){value, value}); }

static _Noreturn void child(const char *way, const char *path, int fd)
{
    FILE *answer = fdopen(fd, "w");
    limit(RLIMIT_CPU, CPU_SECONDS);
    limit(RLIMIT_CORE, 0);
    if (LIMITS_MEMORY)
        limit(RLIMIT_AS, (rlim_t)MEMORY_MIB << 20);
    if (answer)
        try_one(way, path, answer);
    _exit(answer ? 0 : 1);
}

/* What the child wrote until it ended, or nothing when that takes too long. */
static bool collect(int fd, char *text, size_t size)
{
    size_t got = 0;
    for (;;) {
        struct pollfd waiting = {.fd = fd, .events = POLLIN};
        const int ready = poll(&waiting, 1, WALL_SECONDS * 1000);
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0)
            return false;
        const ssize_t more = read(fd, text + got, size - 1 - got);
        if (more <= 0)
            break;
        got += (size_t)more;
    }
    text[got] = '\0';
    text[strcspn(text, "\n")] = '\0';
    return true;
}

static void serve(const char *way, const char *path)
{
    char text[600] = "";
    int ends[2], status = 0;
    struct rusage used;
    fflush(stdout);
    if (pipe(ends))
        exit(2);
    const pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        child(way, path, ends[1]);
    }
    close(ends[1]);
    const bool ended = pid > 0 && collect(ends[0], text, sizeof text);
    close(ends[0]);
    if (pid > 0 && !ended)
        kill(pid, SIGKILL);
    if (pid < 0 || wait4(pid, &status, 0, &used) != pid)
        exit(2);
    if (!ended)
        puts("hang");
    else if (WIFSIGNALED(status) && (WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGKILL))
        puts("time");
    else if (WIFSIGNALED(status))
        printf("signal %d\n", WTERMSIG(status));
    else if (WEXITSTATUS(status) || !text[0])
        printf("died %d\n", WEXITSTATUS(status));
    else if (used.ru_maxrss > (long)MEMORY_MIB * 1024)
        printf("memory %ld KiB\n", used.ru_maxrss);
    else
        puts(text);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    char line[5000], way[32];
    int begin;
    if (argc == 3) {
        try_one(argv[1], argv[2], stdout);
        return 0;
    }
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = '\0';
        if (sscanf(line, "%31s %n", way, &begin) != 1)
            return 2;
        serve(way, line + begin);
    }
    return 0;
}

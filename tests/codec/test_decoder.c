/* The decoder: content decides, limits hold, and what is refused is refused in words. */
#include "codec/codec.h"
#include "codec/exif.h"
#include "jpeg_encode.h"
#include "tap.h"

#include <pthread.h>
#include <string.h>

static int header_of(const void *data, size_t size, uint64_t limit, struct st_header *out,
                     struct stoker_error *err)
{
    struct st_decoder decoder = {.pixel_limit = limit};
    uint32_t codec;
    memset(err, 0, sizeof *err);
    const int rc = st_decoder_header(&decoder, (struct st_bytes){data, size}, &codec, out, err);
    st_decoder_close(&decoder);
    return rc;
}

static void refusals(void)
{
    struct stoker_error err;
    struct st_header header;
    size_t size;
    uint8_t *file = jpeg_make(&(struct jpeg_kind){.width = 100, .height = 50, .components = 3}, &size);
    ok(header_of(file, size, 5000, &header, &err) == STOKER_OK && header.width == 100,
       "an image of just the limit");
    ok(header_of(file, size, 0, &header, &err) == STOKER_OK, "no limit");
    ok(header_of(file, size, 4999, &header, &err) == STOKER_ELIMIT && strstr(err.message, "100 x 50") &&
           strstr(err.message, "4999") && strstr(err.message, "pixel_limit"),
       "one pixel too many: %s", err.message);
    ok(header_of("", 0, 0, &header, &err) == STOKER_ECORRUPT && strstr(err.message, "empty"), "%s",
       err.message);
    ok(header_of("GIF99a..", 8, 0, &header, &err) == STOKER_ECORRUPT &&
           strstr(err.message, "47 49 46 39"),
       "%s", err.message);
    ok(header_of("\xff", 1, 0, &header, &err) == STOKER_ECORRUPT &&
           strstr(err.message, "1 byte, starting with ff"),
       "%s", err.message);
    free(file);
}

/* What is no image for us is named, and is not called damaged. */
static void other_kinds(void)
{
#define KIND(magic, name)                                                                               \
    {                                                                                                   \
        magic, sizeof magic - 1, name                                                                   \
    }
    static const struct {
        const char *data;
        size_t size;
        const char *name;
    } kinds[] = {
        KIND("GIF87a", "a GIF image"),
        KIND("GIF89a......", "a GIF image"),
        KIND("\0\0\0\x1c"
             "ftypavif\0\0\0\0mif1",
             "an AVIF image"),
        KIND("\0\0\0\x1c"
             "ftypmif1\0\0\0\0miafavif....",
             "an AVIF image"),
        KIND("\0\0\0\x18"
             "ftypheic\0\0\0\0mif1heic",
             "a HEIC image"),
        KIND("\0\0\0\x18"
             "ftypmif1\0\0\0\0mif1heic",
             "a HEIC image"),
        KIND("\0\0\0\x18"
             "ftypisom\0\0\2\0isomiso2",
             "video"),
        KIND("\0\0\0\x0c"
             "ftypqt  ",
             "video"),
        KIND("\xff\x0a\xfa", "JPEG XL"),
        KIND("\0\0\0\x0cJXL \r\n\x87\n", "JPEG XL"),
        KIND("\0\0\0\x0cjP  \r\n\x87\n", "JPEG 2000"),
        KIND("\xff\x4f\xff\x51\0", "JPEG 2000"),
        KIND("\0\0\1\0\1\0\x10\x10\0\0\1\0\x18\0....\x16\0\0\0", "icon"),
        KIND("8BPS\0\1", "Photoshop"),
        KIND("\x76\x2f\x31\x01", "OpenEXR"),
        KIND("DDS |", "DDS"),
        KIND("%PDF-1.4", "PDF"),
        KIND("\x1a\x45\xdf\xa3", "WebM"),
        KIND("RIFF....AVI LIST", "AVI"),
        KIND("RIFF....WAVEfmt ", "a sound"),
        KIND("fLaC", "a sound"),
        KIND("\x1f\x8b\x08", "gzip"),
        KIND("PK\3\4", "zip"),
        KIND("PAR1", "Parquet"),
        KIND("version https://git-lfs.github.com/spec/v1\noid sha256:", "Git LFS pointer"),
        KIND("/annex/objects/SHA256E-s1--a.jpg", "git-annex pointer"),
        KIND("\n <!DOCTYPE HTML><title>404", "HTML"),
        KIND("<html>", "HTML"),
        KIND("\xef\xbb\xbf<?xml version='1.0'?><svg/>", "SVG"),
        KIND("<svg xmlns=", "SVG"),
        KIND("<?xml version='1.0'?><Error><Code>AccessDenied", "XML"),
        KIND("{\"error\": 404}", "JSON"),
        KIND("..........................TRUEVISION-XFILE.", "not an image in a known format"),
        KIND("............................................TRUEVISION-XFILE.\0", "a TGA image"),
        KIND("\0\0\1\0", "not an image in a known format"),
        KIND("ftyp", "not an image in a known format"),
        KIND("<", "not an image in a known format"),
        KIND("words", "not an image in a known format"),
    };
    struct stoker_error err;
    struct st_header header;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        uint8_t *copy = malloc(kinds[k].size); /* so that a sanitizer sees a read behind the end */
        memcpy(copy, kinds[k].data, kinds[k].size);
        const int rc = header_of(copy, kinds[k].size, 0, &header, &err);
        const bool unknown = strncmp(kinds[k].name, "not", 3) == 0;
        ok(rc == (unknown ? STOKER_ECORRUPT : STOKER_EUNSUPPORTED) &&
               strstr(err.message, kinds[k].name) && (unknown || strstr(err.message, "; ")),
           "%s", err.message);
        bool named = true;
        for (size_t size = 0; size < kinds[k].size;
             size++) { /* no beginning of it is read beyond its end */
            uint8_t *part = malloc(size ? size : 1);
            memcpy(part, copy, size);
            named &= header_of(part, size, 0, &header, &err) < 0;
            free(part);
        }
        ok(named, "and no beginning of it is an image");
        free(copy);
    }
}

static void registry(void)
{
    uint32_t count = 0;
    bool complete = true;
    for (; st_codecs[count]; count++) {
        const struct st_codec *codec = st_codecs[count];
        complete &= codec->name && codec->probe && codec->header && codec->decode;
        complete &= !codec->based_on || strlen(codec->based_on()) > 3;
    }
    ok(count > 0 && count < ST_CODECS_MAX && complete, "%u codecs, all complete", count);
    for (uint32_t a = 0; a < count; a++)
        ok(!st_codecs[a]->probe((const uint8_t *)"", 0), "%s does not take an empty file",
           st_codecs[a]->name);
}

/* ---- EXIF ------------------------------------------------------------------------------------- */

static void exif(void)
{
    const uint8_t little[] = {'I', 'I', '*', 0, 8, 0,    0, 0, 2, 0, 0, 1, 4, 0, 1, 0, 0,
                              0,   9,   9,   9, 9, 0x12, 1, 3, 0, 1, 0, 0, 0, 8, 0, 0, 0};
    uint8_t big[] = {'E', 'x', 'i', 'f',  0, 0, 'M', 'M', 0, '*', 0, 0, 0, 8,
                     0,   1,   1,   0x12, 0, 4, 0,   0,   0, 1,   0, 0, 0, 3};
    ok(st_exif_orientation(little, sizeof little) == 8, "little endian, second tag");
    ok(st_exif_orientation(big, sizeof big) == 3, "big endian, a long, with its prefix");
    bool upright = true;
    for (size_t size = 0; size < sizeof little; size++) {
        uint8_t *exact = malloc(size ? size : 1); /* so that a sanitizer sees a read behind the end */
        memcpy(exact, little, size);
        upright &= st_exif_orientation(exact, size) == 1;
        free(exact);
    }
    ok(upright, "cut short anywhere: upright");
    const struct {
        size_t at;
        uint8_t value;
        const char *what;
    } wrong[] = {
        {27, 9, "orientation 9"}, {27, 0, "orientation 0"},           {19, 2, "type text"},
        {23, 2, "two values"},    {13, 200, "a list behind the end"}, {10, 0xFF, "a list at 4 GB"},
        {8, 1, "another magic"}};
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        const uint8_t kept = big[wrong[k].at];
        big[wrong[k].at] = wrong[k].value;
        ok(st_exif_orientation(big, sizeof big) == 1, "%s: upright", wrong[k].what);
        big[wrong[k].at] = kept;
    }
}

static void exif_in_jpeg(void)
{
    const uint8_t segment[] = {0xFF, 0xE1, 0, 34, 'E', 'x', 'i', 'f', 0, 0,    'M', 'M',
                               0,    '*',  0, 0,  0,   8,   0,   1,   1, 0x12, 0,   3,
                               0,    0,    0, 1,  0,   6,   0,   0,   0, 0,    0,   0};
    struct stoker_error err;
    struct st_header header;
    size_t size;
    uint8_t *file = jpeg_make(&(struct jpeg_kind){.width = 8, .height = 8, .components = 1}, &size);
    uint8_t *with = malloc(size + sizeof segment);
    memcpy(with, file, 2);
    memcpy(with + 2, segment, sizeof segment);
    memcpy(with + 2 + sizeof segment, file + 2, size - 2);
    ok(header_of(file, size, 0, &header, &err) == STOKER_OK && header.orientation == 1,
       "a JPEG without EXIF");
    ok(header_of(with, size + sizeof segment, 0, &header, &err) == STOKER_OK && header.orientation == 6,
       "a JPEG with EXIF");
    free(file);
    free(with);
}

/* ---- threads ---------------------------------------------------------------------------------- */

struct shared {
    struct st_bytes file;
    uint64_t sum;
};

static void *decode_often(void *opaque)
{
    struct shared *job = opaque;
    struct st_decoder decoder = {0};
    struct st_arena arena = {0};
    for (uint32_t k = 0; k < 20; k++) {
        const struct st_decode how = {1, {k, 2 * k, 60, 50}};
        struct st_header header;
        struct st_view view;
        uint32_t codec;
        if (st_decoder_header(&decoder, job->file, &codec, &header, NULL) < 0 ||
            st_decoder_decode(&decoder, codec, job->file, &how, &arena, &view, NULL) < 0)
            break;
        for (int32_t y = 0; y < view.height; y++)
            for (int32_t x = 0; x < 3 * view.width; x++)
                job->sum = job->sum * 31 + st_row(&view, y)[x];
        st_arena_reset(&arena);
    }
    st_decoder_close(&decoder);
    st_arena_free(&arena);
    return NULL;
}

static void threads(void)
{
    pthread_t thread[4];
    struct shared job[5] = {0};
    struct st_bytes file;
    file.data =
        jpeg_make(&(struct jpeg_kind){.width = 120, .height = 100, .components = 3, .h = {2}, .v = {2}},
                  &file.size);
    for (int k = 0; k < 5; k++)
        job[k].file = file;
    for (int k = 0; k < 4; k++)
        pthread_create(&thread[k], NULL, decode_often, &job[k]);
    decode_often(&job[4]);
    bool same = job[4].sum != 0;
    for (int k = 0; k < 4; k++) {
        pthread_join(thread[k], NULL);
        same &= job[k].sum == job[4].sum;
    }
    ok(same, "four threads with a decoder each get the same pixels");
    free((void *)file.data);
}

int main(void)
{
    refusals();
    other_kinds();
    registry();
    exif();
    exif_in_jpeg();
    threads();
    return done_testing();
}

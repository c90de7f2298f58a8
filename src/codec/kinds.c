/* kinds.c - recognises files that are not images, or of a kind that is not decoded
 *
 * These occur in folders filled by hand, and as what servers send instead of a file. An error that says
 * "damaged" makes people look for a fault in the file; one that names its kind tells them what to do.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/kinds.h"

#include "codec/audio.h"

#include <string.h>
#include <strings.h>

#define CONVERT "convert it to JPEG, PNG or WebP"
#define UNPACK  "unpack it, or open it as a dataset"
#define FRAMES  "extract its frames as images"

/* Magic bytes and their offsets. The first match counts. */
static const struct {
    uint16_t at;
    uint8_t size;
    const char *magic;
    struct st_kind kind;
} known[] = {
    {0, 6, "GIF87a", {"a GIF image", CONVERT}},
    {0, 6, "GIF89a", {"a GIF image", CONVERT}},
    {0, 12, "\0\0\0\x0cJXL \r\n\x87\n", {"a JPEG XL image", CONVERT}},
    {0, 2, "\xff\x0a", {"a JPEG XL image", CONVERT}},
    {0, 8, "\0\0\0\x0cjP  ", {"a JPEG 2000 image", CONVERT}},
    {0, 4, "\xff\x4f\xff\x51", {"a JPEG 2000 image", CONVERT}},
    {0, 4, "8BPS", {"a Photoshop (PSD) image", CONVERT}},
    {0, 4, "\x76\x2f\x31\x01", {"an OpenEXR image", CONVERT}},
    {0, 10, "#?RADIANCE", {"a Radiance HDR image", CONVERT}},
    {0, 4, "DDS ", {"a DDS texture", CONVERT}},
    {0, 4, "qoif", {"a QOI image", CONVERT}},
    {0, 4, "icns", {"an ICNS icon", CONVERT}},
    {0, 3, "\x0a\x05\x01", {"a PCX image", CONVERT}},
    {0, 2, "\x01\xda", {"an SGI image", CONVERT}},
    {0, 4, "\x59\xa6\x6a\x95", {"a Sun raster image", CONVERT}},
    {0, 9, "SIMPLE  =", {"a FITS image", CONVERT}},
    {128, 4, "DICM", {"a DICOM image", CONVERT}},
    {0, 8, "gimp xcf", {"a GIMP (XCF) image", CONVERT}},
    {0, 3, "PF\n", {"a PFM image in colour", CONVERT}},
    {0, 5, "%PDF-", {"a PDF document", CONVERT}},
    {0, 4, "%!PS", {"a PostScript document", CONVERT}},
    {0, 4, "\x1a\x45\xdf\xa3", {"a WebM or Matroska video", FRAMES}},
    {8, 4, "AVI ", {"an AVI video", FRAMES}},
    {0, 4, "\0\0\x01\xba", {"an MPEG video", FRAMES}},
    {0, 2, "\x1f\x8b", {"gzip data", UNPACK}},
    {0, 4, "\x28\xb5\x2f\xfd", {"zstd data", UNPACK}},
    {0, 6, "\xfd\x37zXZ\0", {"xz data", UNPACK}},
    {0, 3, "BZh", {"bzip2 data", UNPACK}},
    {0, 4, "PK\3\4", {"a zip archive", UNPACK}},
    {0, 6, "7z\xbc\xaf\x27\x1c", {"a 7z archive", UNPACK}},
    {257, 5, "ustar", {"a tar archive", UNPACK}},
    {0, 8, "\x89HDF\r\n\x1a\n", {"an HDF5 file", "open it as a dataset"}},
    {0, 6, "\x93NUMPY", {"a NumPy array", "open it as a dataset"}},
    {0, 4, "PAR1", {"a Parquet file", "extract the images from it"}},
    {0, 6, "ARROW1", {"an Arrow file", "extract the images from it"}},
};

static const struct st_kind avif = {"an AVIF image", CONVERT}, heic = {"a HEIC image", CONVERT},
                            raw = {"a Canon raw image", CONVERT},
                            video = {"an MP4 or QuickTime video", FRAMES},
                            icon = {"an ICO or CUR icon", CONVERT}, tga = {"a TGA image", CONVERT},
                            sound = {"a sound", "use an audio pipeline for it"},
                            lfs = {"a Git LFS pointer, not the file itself", "run `git lfs pull`"},
                            annex = {"a git-annex pointer, not the file itself", "run `git annex get`"},
                            svg = {"an SVG drawing", CONVERT},
                            html = {"an HTML page", "check how it was downloaded"},
                            xml = {"XML text", "check how it was downloaded"},
                            json = {"JSON text", "check how it was downloaded"};

/* ISO media files start with their brands: the major one, a version, and the compatible ones. */
static const struct st_kind *of_brands(struct st_bytes in)
{
    static const char heic_brands[][5] = {"heic", "heix", "heim", "heis", "hevc",
                                          "hevx", "hevm", "hevs", "mif1", "msf1"};
    if (!st_has(in, 4, "ftyp", 4) || in.size < 12)
        return NULL;
    const size_t stated = (size_t)in.data[2] << 8 | in.data[3];
    const size_t end = stated < in.size ? stated : in.size;
    const struct st_kind *kind = st_has(in, 8, "crx ", 4) ? &raw : &video;
    for (size_t at = 8; at == 8 || at + 4 <= end; at += at == 8 ? 8 : 4) {
        if (st_has(in, at, "avif", 4) || st_has(in, at, "avis", 4))
            return &avif;
        for (size_t k = 0; k < sizeof heic_brands / sizeof *heic_brands; k++)
            kind = st_has(in, at, heic_brands[k], 4) ? &heic : kind;
    }
    return kind;
}

static const struct st_kind *of_icon(struct st_bytes in)
{
    const bool begins = st_has(in, 0, "\0\0\1\0", 4) || st_has(in, 0, "\0\0\2\0", 4);
    /* The number of pictures, and a byte of the first entry that is always 0. */
    return begins && in.size >= 22 && (in.data[4] || in.data[5]) && in.data[9] == 0 ? &icon : NULL;
}

static bool begins_with(struct st_bytes text, const char *word)
{
    const size_t size = strlen(word);
    return text.size >= size && strncasecmp((const char *)text.data, word, size) == 0;
}

static bool contains(struct st_bytes text, const char *word)
{
    const size_t most = text.size < 1024 ? text.size : 1024;
    return memmem(text.data, most, word, strlen(word)) != NULL;
}

static const struct st_kind *of_text(struct st_bytes in)
{
    size_t at = st_has(in, 0, "\xef\xbb\xbf", 3) ? 3 : 0;
    while (at < in.size && strchr(" \t\r\n", in.data[at]) && in.data[at])
        at++;
    const struct st_bytes text = {in.data + at, in.size - at};
    if (begins_with(text, "version https://git-lfs"))
        return &lfs;
    if (begins_with(text, "/annex/objects/"))
        return &annex;
    if (begins_with(text, "<!doctype html") || begins_with(text, "<html"))
        return &html;
    if (begins_with(text, "<svg"))
        return &svg;
    if (begins_with(text, "<?xml") || begins_with(text, "<!doctype"))
        return contains(text, "<svg") ? &svg : contains(text, "<html") ? &html : &xml;
    if (text.size > 1 && (text.data[0] == '{' || text.data[0] == '[') &&
        !memchr(text.data, 0, text.size))
        return &json;
    return NULL;
}

const struct st_kind *st_kind_of(struct st_bytes in)
{
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        if (st_has(in, known[k].at, known[k].magic, known[k].size))
            return &known[k].kind;
    const struct st_kind *kind = of_brands(in);
    if (!kind)
        kind = of_icon(in);
    if (!kind)
        kind = of_text(in);
    if (!kind && st_audio_probe(in) >= 0)
        kind = &sound;
    /* TGA headers have no magic; newer files have one at the end. */
    if (!kind && in.size >= 44 && st_has(in, in.size - 18, "TRUEVISION-XFILE.", 18))
        kind = &tga;
    return kind;
}

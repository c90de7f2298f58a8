/* tree.c - shared by the folder and flat sources: samples that are the files of a tree
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/tree/tree.h"
#include "source/index/keep.h"
#include "source/text/names.h"

#include "base/cpu.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *const *extensions_of(const struct stoker_dataset_options *opt)
{
    return opt->extensions ? opt->extensions : st_image_extensions;
}

void st_tree_extensions(const struct stoker_dataset_options *opt, char *buffer, size_t size)
{
    size_t used = 0;
    buffer[0] = '\0';
    for (const char *const *extension = extensions_of(opt); *extension && used < size; extension++) {
        const int put = snprintf(buffer + used, size - used, "%s%s", used ? ", " : "", *extension);
        used += put > 0 ? (size_t)put : 0;
    }
}

/* Identifies what was indexed: the kind, the real path and the extensions. */
static int make_key(struct st_buffer *key, const char *root, bool classes,
                    const struct stoker_dataset_options *opt, struct stoker_error *err)
{
    char place[PATH_MAX];
    if (!realpath(root, place))
        return st_fail_errno(err, errno, "%s", root);
    uint64_t room = strlen(place) + 2;
    for (const char *const *extension = extensions_of(opt); *extension; extension++)
        room += strlen(*extension) + 1;
    if (!st_buffer_reserve(key, room))
        return st_fail(err, STOKER_ENOMEM, "%s: out of memory", root);
    char *at = (char *)key->data;
    *at++ = classes ? 'c' : 'f';
    at = stpcpy(at, place) + 1;
    for (const char *const *extension = extensions_of(opt); *extension; extension++)
        at = stpcpy(at, *extension) + 1;
    key->size = (uint64_t)(at - (char *)key->data);
    return 0;
}

static int scan_tree(struct st_tree *tree, const struct st_scan_options *scan_opt,
                     const struct st_buffer *key, const char *file, struct stoker_error *err)
{
    struct timespec began;
    struct st_scan scan;
    clock_gettime(CLOCK_REALTIME, &began);
    int rc = st_scan_tree(&scan, scan_opt, err);
    if (!rc && scan_opt->classes && !scan.class_count)
        rc = st_fail(err, STOKER_EINVAL,
                     "%.300s: contains no class folders (one per class)",
                     tree->prefix);
    if (!rc)
        rc = st_index_build(&tree->index, &scan, key->data, key->size, err);
    if (!rc && file && scan.complete)
        st_keep_store(&tree->index, file, (int64_t)began.tv_sec * 1000000000 + began.tv_nsec);
    st_scan_free(&scan);
    return rc;
}

static int fill_tree(struct st_tree *tree, const char *root, bool classes, struct st_buffer *key,
                     const struct stoker_dataset_options *opt, struct stoker_error *err)
{
    const struct st_scan_options scan_opt = {.prefix = tree->prefix,
                                             .extensions = extensions_of(opt),
                                             .classes = classes,
                                             .threads = opt->threads ? opt->threads : st_cpu_count()};
    if (!opt->index_dir)
        return scan_tree(tree, &scan_opt, key, NULL, err);
    char file[PATH_MAX];
    int rc = make_key(key, root, classes, opt, err);
    if (!rc)
        rc = st_keep_path(file, opt->index_dir, key->data, key->size, err);
    if (rc || st_keep_load(&tree->index, file, key->data, key->size, tree->prefix, scan_opt.threads))
        return rc;
    return scan_tree(tree, &scan_opt, key, file, err);
}

int st_tree_open(struct st_tree *tree, const char *root, bool classes,
                 const struct stoker_dataset_options *opt, struct stoker_error *err)
{
    const size_t size = strlen(root);
    if (size == 0)
        return st_fail(err, STOKER_EINVAL, "the path of the dataset is empty");
    tree->prefix = st_calloc(size + 2, 1);
    if (!tree->prefix)
        return st_fail(err, STOKER_ENOMEM, "%s: out of memory", root);
    memcpy(tree->prefix, root, size);
    if (root[size - 1] != '/')
        tree->prefix[size] = '/';
    struct st_buffer key = {0};
    const int rc = fill_tree(tree, root, classes, &key, opt, err);
    st_buffer_free(&key);
    return rc;
}

uint64_t st_tree_count(const void *self)
{
    const struct st_tree *tree = self;
    return tree->index.sample_count;
}

size_t st_tree_name(const void *self, uint64_t sample, char *buffer, size_t size)
{
    const struct st_tree *tree = self;
    const struct st_index *index = &tree->index;
    const uint32_t dir = index->sample_dirs[sample] & ~ST_INDEX_SPECIAL;
    const int length = snprintf(buffer, size, "%s%s%s", tree->prefix,
                                index->text + index->dirs[dir].path, index->text + index->names[sample]);
    return length > 0 ? (size_t)length : 0;
}

int st_tree_locate(const void *self, uint64_t sample, struct st_extent *out, struct stoker_error *err)
{
    const struct st_tree *tree = self;
    const struct st_index *index = &tree->index;
    const uint32_t dir = index->sample_dirs[sample];
    const char *folder = index->text + index->dirs[dir & ~ST_INDEX_SPECIAL].path;
    const char *name = index->text + index->names[sample];
    if (!st_path_join(out->path, tree->prefix, folder, name))
        return st_fail_errno(err, ENAMETOOLONG, "%s%s%s", tree->prefix, folder, name);
    if (dir & ST_INDEX_SPECIAL)
        return st_fail(err, STOKER_EIO, "%s: not a regular file", out->path);
    out->memory = NULL;
    out->offset = 0;
    out->length = ST_WHOLE_FILE;
    return 0;
}

void st_tree_close(void *self)
{
    struct st_tree *tree = self;
    free(tree->prefix);
    st_index_free(&tree->index);
}

/* test_tune.c - changed calls in Python text, the law of scaling, and how long runs are waited for
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/tune/patch.h"
#include "doctor/tune/tune.h"
#include "tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct dr_setting workers_and_more[] = {
    {"num_workers", "6"}, {"prefetch_factor", "4"}, {"persistent_workers", "True"}};

static void becomes(const char *text, int line, const char *want, const char *what)
{
    struct dr_patch patch;
    struct stoker_error err = {0};
    const int rc = dr_patch_call(&patch, text, strlen(text), line, workers_and_more, 3, &err);
    if (!ok(!rc && !strcmp(patch.call, want), "%s", what))
        fprintf(stderr, "%s\n", rc ? err.message : patch.call);
    if (!rc)
        free(patch.call);
}

static void refused(const char *text, int line, const char *word)
{
    struct dr_patch patch;
    struct stoker_error err = {0};
    const int rc = dr_patch_call(&patch, text, strlen(text), line, workers_and_more, 3, &err);
    ok(rc && strstr(err.message, word), "refused: %s", err.message);
    if (!rc)
        free(patch.call);
}

static void imports(const char *text, const char *want, const char *what)
{
    struct dr_patch patch;
    struct stoker_error err = {0};
    char *got = NULL;
    const int rc = dr_patch_import(&patch, text, strlen(text), &err);
    if (!rc && asprintf(&got, "%.*s%s%s", (int)patch.begin, text, patch.call, text + patch.end) < 0)
        abort();
    if (!ok(want ? !rc && !strcmp(got, want) : rc && patch.call == NULL, "%s", what))
        fprintf(stderr, "%s\n", rc ? err.message : got);
    free(patch.call);
    free(got);
}

static void all_imports(void)
{
    imports("import torch\nfrom torch.utils.data import DataLoader\nx = 1\n",
            "import torch\nfrom stoker import DataLoader\nx = 1\n", "the import is replaced");
    imports("if x:\n    from torch.utils.data import  Dataset,DataLoader , Subset\r\n",
            "if x:\n    from torch.utils.data import Dataset, Subset\n    from stoker import DataLoader\r\n",
            "other names stay torch's");
    imports("from torch.utils.data import DataLoader as Loader", "from stoker import DataLoader as Loader",
            "under another name, at the end of the file");
    imports("\"\"\"Use\nfrom torch.utils.data import DataLoader\n\"\"\"\nfrom torch.utils.data import DataLoader\n",
            "\"\"\"Use\nfrom torch.utils.data import DataLoader\n\"\"\"\nfrom stoker import DataLoader\n",
            "texts are no code");
    imports("from torch.utils.data import DataLoaderX, Dataset\n", NULL, "another name");
    imports("from torch.utils.data import (DataLoader,\n    Dataset)\n", NULL, "over several lines");
    imports("from torch.utils.data import DataLoader  # torch's\n", NULL, "with a comment");
    imports("from torch.utils.data import ", NULL, "without names");
    imports("", NULL, "an empty file");
}

static void calls(void)
{
    becomes("loader = DataLoader(ds)\n", 1, "DataLoader(ds, num_workers=6, prefetch_factor=4, persistent_workers=True)",
            "arguments are added");
    becomes("\n\nx = data.DataLoader(ds, num_workers=2)", 3,
            "data.DataLoader(ds, num_workers=6, prefetch_factor=4, persistent_workers=True)", "one is replaced");
    becomes("DataLoader(ds, num_workers = args.workers or min(8, n), shuffle=f(x, [1, 2]))", 1,
            "DataLoader(ds, num_workers = 6, shuffle=f(x, [1, 2]), prefetch_factor=4, persistent_workers=True)",
            "an expression is replaced whole, brackets are respected");
    becomes("DataLoader(\n    ds,  # the data, (all)\n    num_workers=2,\n    shuffle=True,\n)", 1,
            "DataLoader(\n    ds,  # the data, (all)\n    num_workers=6,\n    shuffle=True,\n    prefetch_factor=4,\n"
            "    persistent_workers=True,\n)",
            "a line each, comments and the last comma stay");
    becomes("DataLoader('a)b\\'(', prefix=\"\"\"x\"), num_workers=1\"\"\", num_workers=1)", 1,
            "DataLoader('a)b\\'(', prefix=\"\"\"x\"), num_workers=1\"\"\", num_workers=6, prefetch_factor=4, "
            "persistent_workers=True)",
            "strings are no code");
    becomes("f(DataLoader(), 3)", 1, "DataLoader(num_workers=6, prefetch_factor=4, persistent_workers=True)", "no argument at all");
    becomes("a = StatefulDataLoader(ds, batch_size=a == b)", 1,
            "StatefulDataLoader(ds, batch_size=a == b, num_workers=6, prefetch_factor=4, persistent_workers=True)",
            "other loaders, comparisons");
    refused("DataLoader(ds, **options)", 1, "**options");
    refused("DataLoader(ds, 8, True, None, None, 4)", 1, "by position");
    refused("x = 1\n", 1, "no DataLoader call");
    refused("DataLoader(ds, (", 1, "closing bracket");
    refused("DataLoader(ds)", 0, "no DataLoader call");
    refused("DataLoader(ds)", 9, "no DataLoader call");
}

/* Every cut of a text is either changed or refused, and nothing is read beyond its end (ASan sees that). */
static void cuts(void)
{
    static const char text[] = "loader = DataLoader(ds, '''a''', num_workers=[1, (2)], # x\n  a=\"b\\\"c\")\n";
    int good = 0;
    for (size_t size = 0; size < sizeof text; size++) {
        char *copy = malloc(size ? size : 1);
        if (!copy)
            return;
        memcpy(copy, text, size);
        struct dr_patch patch;
        struct stoker_error err;
        if (!dr_patch_call(&patch, copy, size, 1, workers_and_more, 3, &err)) {
            good++;
            free(patch.call);
        }
        free(copy);
    }
    ok(good == 2, "only whole calls are changed (%d)", good);
}

static void scaling(void)
{
    const struct dr_scale truth = {10, 0.08, 0.004};
    struct dr_scale_point points[3] = {{1, 0}, {2, 0}, {8, 0}};
    struct dr_scale fit;
    for (int k = 0; k < 3; k++)
        points[k].rate = dr_scale_at(&truth, points[k].workers);
    ok(dr_scale_fit(&fit, points, 3), "three points give a law");
    ok(fabs(dr_scale_at(&fit, 5) / dr_scale_at(&truth, 5) - 1) < 0.02, "right between the points");
    ok(fabs(dr_scale_at(&fit, 12) / dr_scale_at(&truth, 12) - 1) < 0.1, "nearly right beyond them");
    points[0].rate = 10, points[1].rate = 20, points[2].rate = 80;
    ok(dr_scale_fit(&fit, points, 3) && fabs(dr_scale_at(&fit, 16) - 160) < 2, "perfect scaling stays perfect");
    ok(dr_scale_fit(&fit, points, 1) && fabs(dr_scale_at(&fit, 4) - 40) < 1, "one point: as if nobody were in the way");
    points[0].rate = NAN;
    ok(!dr_scale_fit(&fit, points, 3) && !dr_scale_fit(&fit, points, 0), "no law from nothing");
}

/* Whether a run is still waited for after the last of these reports, in seconds since it began. */
static bool lasts(const double (*report)[2], int count)
{
    struct dr_patience patience = {.wait = 600, .measured = 10};
    bool still = true;
    for (int k = 0; k < count && still; k++)
        still = dr_patience_lasts(&patience, report[k][0], (uint64_t)report[k][1]);
    return still;
}

static void patience(void)
{
    static const double slow_import[][2] = {{64, 0}, {101, 0}, {600, 0}}, none[][2] = {{600, 0}, {600.1, 0}},
                        late[][2] = {{500, 0}, {590, 1}, {1190, 1}}, slow_steps[][2] = {{590, 1}, {1190, 2}, {1790, 3}},
                        measuring[][2] = {{20, 9}, {630, 9}}, stuck[][2] = {{20, 9}, {630.1, 9}};
    ok(lasts(slow_import, 3), "a run is waited for until its first batch, up to the limit");
    ok(!lasts(none, 2), "and no longer");
    ok(lasts(late, 3), "the first batch begins another wait");
    ok(lasts(slow_steps, 3), "and so does each one after it");
    ok(lasts(measuring, 2), "what is measured comes on top");
    ok(!lasts(stuck, 2), "a loader that stopped delivering is given up");
}

int main(void)
{
    patience();
    calls();
    all_imports();
    cuts();
    scaling();
    return done_testing();
}

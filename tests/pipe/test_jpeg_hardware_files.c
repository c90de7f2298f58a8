/* The JPEG hardware with files on disk: a JPEG thread reads them to where the device can copy them from.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "pipe/fake_hardware.h"

enum { MANY = 600, BIG = 1500000, SEGMENT = 65000 };

static char folder[] = "/tmp/stoker-hardware-XXXXXX", path[COUNT][64];

/* Writes a file; a JPEG with comments of `more` bytes in all, so that it has another size and the same pixels. */
static bool write_file(const char *name, struct stoker_item item, size_t more)
{
    enum { START = 2 };
    uint8_t comment[SEGMENT + 2] = {0xFF, 0xFE, SEGMENT >> 8, SEGMENT & 255};
    FILE *file = fopen(name, "wb");
    const uint8_t *data = item.data;
    bool good = file && fwrite(data, 1, START, file) == START;
    for (size_t k = 0; good && data[0] == 0xFF && k < more; k += SEGMENT)
        good = fwrite(comment, 1, sizeof comment, file) == sizeof comment;
    good = good && fwrite(data + START, 1, item.size - START, file) == item.size - START;
    return file && !fclose(file) && good;
}

/* Every `big`th file is large; 0: none. */
static bool write_files(uint32_t big)
{
    bool good = true;
    for (uint32_t k = 0; good && k < COUNT; k++) {
        snprintf(path[k], sizeof path[k], "%s/%u", folder, k);
        good = write_file(path[k], items[k], big && k % big == 0 ? BIG : 0);
    }
    return good;
}

/* One epoch of `count` files. `eager`: the reader reads them ahead; otherwise it never does, however slow reads are. */
static uint32_t files_on(const struct st_devices *devices, uint32_t count, const struct stoker_loader_options *opt,
                         bool eager, uint64_t *digests, uint32_t most)
{
    struct stoker_error err = {0};
    struct stoker_dataset *data = NULL;
    struct stoker_pipeline *pipe = NULL;
    struct stoker_loader *loader = NULL;
    const char *paths[MANY];
    uint32_t taken = 0;
    for (uint32_t k = 0; k < count; k++)
        paths[k] = path[k % COUNT];
    setenv("STOKER_READER", eager ? "auto" : "inline", 1);
    if (st_dataset_from_files(&data, paths, NULL, count, &err) || st_pipeline_open(&pipe, texts[0], &err) ||
        st_loader_open(&loader, data, pipe, opt, devices, &err))
        note("%s", err.message);
    st_pipeline_drop(pipe);
    st_dataset_drop(data);
    stats = (struct stoker_stats){.size = sizeof stats};
    jpeg_hardware_note[0] = 0;
    if (!loader)
        return 0;
    if (eager)
        st_reader_eager(loader->reader);
    if (devices)
        wait_for_hardware(loader);
    if (!st_loader_start(loader, NULL, 0, NULL))
        taken = harness_take(loader, digests, most, NULL);
    st_loader_stats(loader, &stats);
    st_loader_close(loader);
    return taken;
}

static bool same_files(bool eager)
{
    const struct stoker_loader_options opt = fast_options();
    uint64_t cpu[BATCHES + 1], device[BATCHES + 1];
    bool equal = files_on(NULL, COUNT, &opt, false, cpu, BATCHES + 1) == BATCHES;
    const uint32_t before = host.wrong + hardware.wrong;
    for (int try = 0; equal && try < TRIES; try++) {
        hardware.in_place = 0;
        equal = files_on(&hardware_devices, COUNT, &opt, eager, device, BATCHES + 1) == BATCHES &&
                !memcmp(cpu, device, BATCHES * sizeof *cpu);
        if (had_part())
            break;
    }
    return equal && stats.jpeg_hardware_rows && host.wrong + hardware.wrong == before;
}

static void in_place(void)
{
    hardware.pins = 4 << 20;
    const bool same = same_files(false);
    ok(same && hardware.in_place, "%u of %llu files of the hardware were read to pinned memory", hardware.in_place,
       (unsigned long long)stats.jpeg_hardware_rows);
    hardware.lost = 3;
    ok(same_files(false) && stats.jpeg_hardware_failures, "those that it fails at are decoded from there");
    hardware.lost = 0;
    hardware.pins = 300 << 10;
    ok(same_files(false) && hardware.in_place, "with little of it, in parts");
    hardware.pins = 80 << 10;
    ok(same_files(false), "with room for few images");
    hardware.pins = 0;
    hardware.pins_nothing = true;
    ok(same_files(false) && !hardware.in_place, "without, from the reader's memory");
    hardware.pins_nothing = false;
    hardware.pins = 4 << 20;
    ok(same_files(true), "what was read ahead is taken from where it is");
}

/* A file that does not fit is read elsewhere, and the next ones are not tried there. */
static void large(void)
{
    ok(write_files(7) && same_files(false), "files of %d bytes among small ones", BIG);
    ok(write_files(1) && same_files(false) && hardware.in_place == 0, "only such files");
}

/* More tickets than the reader has berths, held by JPEG threads. */
static void many(void)
{
    struct stoker_loader_options opt = small_options(MANY / 2, 2);
    uint64_t digests[3];
    opt.fidelity = STOKER_FIDELITY_FAST;
    ok(files_on(&hardware_devices, MANY, &opt, true, digests, 3) == 2,
       "large chunks of files: readers and hardware do not wait for each other");
    ok(files_on(&hardware_devices, MANY, &opt, false, digests, 3) == 2, "nor if the hardware's threads read");
}

int main(void)
{
    items = test_items(COUNT);
    if (!ok(mkdtemp(folder) && write_files(0), "files are written"))
        return done_testing();
    in_place();
    many();
    large();
    for (uint32_t k = 0; k < COUNT; k++)
        unlink(path[k]);
    rmdir(folder);
    test_items_free(items, COUNT);
    return done_testing();
}

/* Whatever a pipeline does, a device that is given raw rows ends with the bytes of the workers. */
#include "pipe/harness.h"
#include "pipe/host_device.h"

enum { COUNT = 23, BATCH = 5, BATCHES = (COUNT + BATCH - 1) / BATCH };

static struct stoker_item *items;
static struct stoker_stats stats; /* of the loader that ran last */

static uint32_t epoch_on(const struct st_devices *devices, const char *text, const struct stoker_loader_options *opt,
                         uint64_t digests[BATCHES + 1])
{
    struct stoker_error err = {0};
    const struct stoker_epoch which = {.size = sizeof which, .epoch = 2};
    struct stoker_loader *loader = harness_open_on(devices, items, COUNT, text, opt, &err);
    uint32_t taken = 0;
    stats = (struct stoker_stats){.size = sizeof stats};
    if (!loader)
        note("%s", err.message);
    if (loader && st_loader_start(loader, &which, 0, NULL) == 0)
        taken = harness_take(loader, digests, BATCHES + 1, NULL);
    if (loader)
        st_loader_stats(loader, &stats);
    st_loader_close(loader);
    return taken;
}

static bool same(const char *text, const struct stoker_loader_options *opt)
{
    uint64_t cpu[BATCHES + 1], device[BATCHES + 1];
    struct stoker_loader_options exact = *opt; /* where the device resizes, "fast" is exact */
    if (opt->augment_on != STOKER_PLACE_CPU)
        exact.fidelity = STOKER_FIDELITY_EXACT;
    const uint32_t wanted = epoch_on(NULL, text, &exact, cpu);
    const uint32_t before = host.wrong;
    const uint32_t got = epoch_on(&host_devices, text, opt, device);
    return wanted == BATCHES && got == BATCHES && !memcmp(cpu, device, BATCHES * sizeof *cpu) &&
           host.wrong == before;
}

static const char *const texts[] = {
    "resize(size=[24,31], interpolation=nearest)",
    "resize(size=[24,31], interpolation=box)",
    "resize(size=[24,31], interpolation=bilinear)",
    "resize(size=[24,31], interpolation=hamming)",
    "resize(size=[24,31], interpolation=bicubic)",
    "resize(size=[24,31], interpolation=lanczos)",
    "resize(size=[12,80])",
    "resize(size=[90,12])",
    "resize(size=[120,131], interpolation=bicubic)",
    "resize(size=[90,90], interpolation=nearest); random_horizontal_flip; random_vertical_flip",
    "resize(size=40); center_crop(size=32); to_tensor",
    "resize(size=37, max_size=60); center_crop(size=[33,50]); to_tensor",
    "center_crop(size=100); color_jitter(hue=0.2)",
    "resize(size=[20,22]); pad(padding=[3,4,5,6], fill=[9,80,200]); random_horizontal_flip; random_crop(size=24); color_jitter(contrast=0.5)",
    "resize(size=[20,22]); pad(padding=4, padding_mode=edge); random_vertical_flip",
    "random_horizontal_flip; random_crop(size=40, padding=9, padding_mode=edge, pad_if_needed=true); random_vertical_flip; random_grayscale(p=0.5)",
    "random_crop(size=[300,20], padding=4, padding_mode=reflect, pad_if_needed=true); to_tensor",
    "resize(size=[20,22], interpolation=nearest); random_zoom_out(p=0.9, fill=[9,80,200]); center_crop(size=40, fill=7)",
    "resize(size=[20,22]); random_rotation(degrees=40, interpolation=bilinear); center_crop(size=15); random_horizontal_flip; grayscale",
    "color_jitter(brightness=0.4,contrast=0.4,saturation=0.4,hue=0.1); random_resized_crop(size=20); albu_gamma; albu_brightness_contrast; albu_posterize; random_crop(size=18)",
    "random_resized_crop(size=20); random_solarize(threshold=9); grayscale; random_horizontal_flip; center_crop(size=12)",
    "center_crop(size=20)",
    "random_crop(size=32, padding=4); random_horizontal_flip; to_tensor; normalize(mean=[0.5,0.4,0.3],std=[0.2,0.3,0.4])",
    "pad(padding=3, padding_mode=reflect); random_resized_crop(size=24); random_vertical_flip",
    "random_resized_crop(size=32, interpolation=bicubic); random_horizontal_flip; "
    "color_jitter(brightness=0.4,contrast=0.4,saturation=0.4,hue=0.1); random_grayscale(p=0.3); "
    "random_apply(p=0.7){gaussian_blur(kernel_size=9)}; to_tensor; random_erasing(p=0.8, value=random)",
    "random_resized_crop(size=[20,44]); random_vertical_flip; gaussian_blur(kernel_size=[3,7], sigma=1.5); to_tensor; "
    "random_erasing(p=1, value=[0.1,0.2,0.3]); random_erasing(p=0.5, value=random); random_erasing(p=0.5)",
    "random_apply(p=0.5){color_jitter(contrast=0.9)}; random_resized_crop(size=30); to_tensor",
    "resize(size=50); color_jitter(contrast=[1.5,1.5]); resize(size=[31,29]); color_jitter(saturation=0.5)",
    "resize(size=50); color_jitter(contrast=[1.5,1.5]); random_crop(size=24); random_grayscale(p=0.5)",
    "random_horizontal_flip; color_jitter(brightness=0.5); resize(size=[20,20])",
    "random_rotation(degrees=30, expand=true, interpolation=bilinear); resize(size=[20,24]); to_tensor",
    "resize(size=40); random_affine(degrees=20, translate=[0.1,0.2], shear=10); color_jitter(hue=0.2); random_crop(size=30)",
    "random_horizontal_flip; random_perspective(p=0.7); random_zoom_out; random_resized_crop(size=22); to_tensor",
    "elastic_transform(sigma=1); random_shortest_size(min_size=[30,40], max_size=60); center_crop(size=25); to_tensor",
    "grayscale; resize(size=[21,22]); color_jitter(brightness=0.4,contrast=0.4,saturation=0.4,hue=0.1); to_tensor",
    "random_resized_crop(size=25); grayscale; gaussian_blur(kernel_size=5); to_tensor; normalize(mean=0.5,std=0.25)",
    "grayscale; grayscale(num_output_channels=3); center_crop(size=30); random_grayscale(p=0.5)",
    "resize(size=[24,24]); grayscale(num_output_channels=3); color_jitter(brightness=0.9)",
    "random_resized_crop(size=30); random_invert; random_posterize(bits=3); random_solarize(threshold=99.5); "
    "random_autocontrast; random_equalize; random_adjust_sharpness(sharpness_factor=2)",
    "random_choice{resize(size=[30,40]); center_crop(size=[30,40])}; random_order{random_channel_permutation; "
    "random_photometric_distort(p=0.7); random_horizontal_flip}",
    "auto_augment; random_resized_crop(size=30); rand_augment; trivial_augment_wide",
    "resize_keep_ratio(size=[30,40], longest=1, scale_p=0.5, aspect_p=0.5); center_crop(size=[36,44], fill=[9,80,200]); "
    "random_some(n=3, p=[1,2,3,4,5,6]){timm_augment(change=Rotate, fill=[1,2,3]); timm_augment(change=SolarizeAdd, p=1); "
    "timm_augment(change=ColorIncreasing, magnitude_std=0.5); timm_augment(change=GaussianBlur); "
    "timm_augment(change=TranslateXRel, translate=0.4, interpolation=bicubic); timm_augment(change=Contrast)}; "
    "random_horizontal_flip; timm_augment(change=SolarizeAdd, p=1); to_tensor; random_erasing(p=0.7, value=random_color)",
    "random_resized_crop(size=30); random_horizontal_flip; random_rotation(degrees=90); random_vertical_flip; "
    "color_jitter(contrast=0.5); random_affine(degrees=20, translate=[0.1,0.2], shear=10, interpolation=bilinear, fill=[7,80,200]); "
    "random_horizontal_flip; random_perspective(p=0.8, interpolation=bicubic); random_vertical_flip; to_tensor; "
    "random_erasing(p=0.7, value=random)",
    "random_resized_crop(size=[21,34]); rand_augment(num_ops=5, magnitude=14); random_horizontal_flip; "
    "rand_augment(num_ops=3, magnitude=20, interpolation=bilinear, fill=9); random_crop(size=20)",
    "random_resized_crop(size=26); random_horizontal_flip; augment_and_mix(width=2, alpha=0.5){"
    "tensor_augment(change=Rotate, magnitudes=[5,30], either_way=true, fill=[7,80,200]); tensor_augment(change=Posterize, magnitudes=[4,8]); "
    "tensor_augment(change=Contrast, magnitudes=[0.3], either_way=true); tensor_augment(change=Equalize)}; to_tensor",
    "random_crop(size=24, padding=3); augment_and_mix(depth=2, style=timm_blended){timm_augment(change=ShearX); "
    "timm_augment(change=AutoContrast); timm_augment(change=Solarize)}; random_vertical_flip; to_tensor; random_erasing(p=0.7)",
    "resize(size=[30,31]); grayscale; trivial_augment_wide(fill=200); random_vertical_flip; auto_augment; to_tensor",
    "random_resized_crop(size=20); rand_augment(num_ops=40, magnitude=4)",
    "grayscale; random_adjust_sharpness(sharpness_factor=0.3); random_resized_crop(size=31); random_equalize; to_tensor",
    "random_turn(of=[1,2,3,4,5,6,7,8]); resize(size=[30,24], interpolation=cv_linear); random_turn(of=[5,3]); "
    "random_sized_crop(size=22, heights=[5,20], interpolation=cv_linear_area); normalize_bytes(mean=[1,90,3], factor=0.01)",
    "drop_grid(ratio=0.7, fill=random); drop_holes(count=[2,5], height=[0.1,0.9], width=[0,0.5], relative=true, fill=random); cv_perspective(scale=[0.1,0.9]); "
    "random_horizontal_flip; cv_affine(scale_x=[0.5,2], balanced=true, rotate=[-180,180], move_x=[-9,9], border=reflect); "
    "resize_to_fit(sizes=[20,30], by=longest); random_scale(factor=[0.6,1.5], interpolation=cv_area); "
    "pad_if_needed(min_height=40, min_width=41, position=random, fill=[1,2,3]); crop(width=31, height=30)",
    "cv_grid_distortion(steps=3, limit=[-0.6,0.9]); random_vertical_flip; cv_elastic(sigma=9); "
    "cv_optical_distortion(limit=[-0.9,0.9], border=reflect); cv_grid_distortion(normalized=false, border=wrap); crop(width=9, height=8)",
    "random_order{random_turn(of=[6,3]); random_grayscale(p=0.5)}; pad_if_needed(min_height=64, width_divisor=9); "
    "random_some(n=2, sorted=true){random_invert; color_jitter(brightness=0.5); random_turn(of=5)}; crop(width=9, height=8)",
    "center_crop(size=30); color_jitter(brightness=0.2,contrast=0.2,saturation=0.2,hue=0.2); "
    "color_jitter(brightness=0.2,contrast=0.2,saturation=0.2,hue=0.2); color_jitter(brightness=0.2,contrast=0.2); "
    "color_jitter(saturation=0.2,hue=0.2); color_jitter(brightness=0.2,contrast=0.2,saturation=0.2,hue=0.2); "
    "gaussian_blur(kernel_size=3)",
};

static void pipelines(void)
{
    struct stoker_loader_options opt = harness_options(BATCH, 2);
    for (uint32_t k = 0; k < sizeof texts / sizeof *texts; k++)
        for (opt.pillow = 12; opt.pillow <= 13; opt.pillow++) {
            if (share_of(100) < 100 && opt.pillow != 12 + k % 2)
                continue; /* where it takes long, each version with every other pipeline */
            const bool equal = same(texts[k], &opt);
            ok(equal && stats.raw_rows == COUNT && stats.resized_rows == 0, "pillow %u: %s", opt.pillow, texts[k]);
        }
    opt.pillow = 13;
    ok(same("views(n=3); random_resized_crop(size=30); by_view{random_invert; random_grayscale(p=0.5); "
            "random_apply(p=1){color_jitter(hue=0.2); random_vertical_flip}}; to_tensor; random_erasing",
            &opt) &&
           stats.raw_rows == 3 * COUNT,
       "three views of each sample");
    ok(same("resize(size=[20,22]); pad(padding=4, padding_mode=symmetric); random_vertical_flip", &opt) &&
           stats.resized_rows == COUNT,
       "taps that go back and forth: workers resize");
}

/* Maps are the device's, of the finished image and of one that it is made of; those that enlarge it, and what comes
 * before two others, are a worker's. */
static void warps(void)
{
    static const struct {
        const char *text;
        uint32_t warps;
    } cases[] = {
        {"resize(size=[24,24]); random_affine(degrees=[5,6]); random_horizontal_flip; random_perspective(p=1)", 2 * COUNT},
        {"random_affine(degrees=[5,6]); resize(size=[24,24]); random_affine(degrees=[5,6]); center_crop(size=24)", 2 * COUNT},
        {"resize(size=[24,24]); random_horizontal_flip; random_turn(of=6); random_vertical_flip; random_turn(of=[5,7])", 2 * COUNT},
        {"resize(size=[24,24]); random_vertical_flip; random_rotation(degrees=[90,90]); random_perspective(p=1)", 2 * COUNT},
        {"center_crop(size=24); random_turn(of=6)", 0},
        {"random_affine(degrees=[5,6]); resize(size=[24,24])", COUNT},
        {"random_affine(degrees=[5,6]); resize(size=[30,30]); random_affine(degrees=[5,6]); center_crop(size=24)", 0},
        {"random_rotation(degrees=[5,6], expand=true); resize(size=[24,24])", 0},
        {"resize(size=[24,24]); random_affine(degrees=[5,6]); random_perspective(p=1); random_crop(size=23)", 2 * COUNT},
        {"resize(size=[24,24]); random_affine(degrees=0, scale=[1e-6,1.1e-6], shear=[3,3])", 0},
    };
    struct stoker_loader_options opt = harness_options(BATCH, 2);
    for (uint32_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const uint32_t before = host.warps;
        const bool equal = same(cases[k].text, &opt);
        ok(equal && host.warps - before == cases[k].warps, "%u warps on the device: %s", host.warps - before,
           cases[k].text);
    }
}

static void types(void)
{
    static const char *const name[] = {"u8", "f32", "f16", "bf16"};
    struct stoker_loader_options opt = harness_options(BATCH, 2);
    opt.dtype_given = true;
    for (int dtype = STOKER_DTYPE_U8; dtype <= STOKER_DTYPE_BF16; dtype++)
        for (int layout = STOKER_LAYOUT_NCHW; layout <= STOKER_LAYOUT_NHWC; layout++) {
            opt.dtype = (enum stoker_dtype)dtype;
            opt.layout = (enum stoker_layout)layout;
            ok(same(dtype == STOKER_DTYPE_U8 ? "random_resized_crop(size=32); random_horizontal_flip; pil_to_tensor; "
                                         "random_erasing(p=0.9, value=random); random_erasing(p=0.9, value=7)"
                                       : "random_resized_crop(size=32); random_horizontal_flip; to_tensor; "
                                         "random_erasing(p=0.9, value=random); "
                                         "normalize(mean=[0.485,0.456,0.406],std=[0.229,0.224,0.225])",
                    &opt),
               "%s, %s", name[dtype], layout == STOKER_LAYOUT_NCHW ? "NCHW" : "NHWC");
        }
}

static void reduced(void)
{
    struct stoker_loader_options opt = harness_options(BATCH, 2);
    opt.fidelity = STOKER_FIDELITY_FAST;
    ok(same("random_resized_crop(size=12, scale=[0.5,1]); random_horizontal_flip", &opt),
       "fast, with the device resizing: not reduced");
    ok(same("resize(size=[9,13], interpolation=nearest)", &opt), "and nearest");
    opt.augment_on = STOKER_PLACE_CPU;
    ok(same("random_resized_crop(size=12, scale=[0.5,1]); random_horizontal_flip", &opt),
       "fast, with the CPU finishing rows: reduced decoding, with crops that end between two pixels");
}

/* What does not fit is made by its worker, with the same bytes. */
static void overflow(void)
{
    static const char text[] = "random_resized_crop(size=16, scale=[0.8,1]); color_jitter(contrast=0.5); to_tensor";
    static const char blurs[] = "resize(size=[30,30]); gaussian_blur(kernel_size=59); gaussian_blur(kernel_size=59); "
                                "gaussian_blur(kernel_size=59); gaussian_blur(kernel_size=59); gaussian_blur(kernel_size=59); "
                                "gaussian_blur(kernel_size=59)";
    struct stoker_loader_options opt = harness_options(BATCH, 3);
    opt.pinned_limit = 1;
    bool equal = same(text, &opt);
    ok(equal && stats.resized_rows == COUNT && stats.raw_rows == 0, "no room beyond the reserves: workers resize %llu",
       (unsigned long long)stats.resized_rows);
    ok(same(blurs, &opt) && stats.resized_rows == COUNT, "and colour, where not even the weights find room");
    opt.pinned_limit = 5 * BATCH * 9000;
    equal = same(text, &opt);
    ok(equal && stats.resized_rows > 0 && stats.raw_rows > 0, "some room: %llu rows raw, %llu resized",
       (unsigned long long)stats.raw_rows, (unsigned long long)stats.resized_rows);
    struct stoker_item kept = items[7];
    items[7] = test_ppm(7, 1300, 1200);
    opt.pinned_limit = 0;
    opt.pixel_limit = 1 << 24;
    equal = same("resize(size=[24,24])", &opt);
    ok(equal && stats.resized_rows == 1, "a region of more than 4 MiB is resized by its worker");
    free((void *)(uintptr_t)items[7].data);
    items[7] = kept;
}

static void finished(void)
{
    struct stoker_loader_options opt = harness_options(BATCH, 2);
    opt.augment_on = STOKER_PLACE_CPU;
    ok(same(train_text, &opt) && stats.augment_on == STOKER_PLACE_CPU && stats.raw_rows == 0 && stats.copied_bytes > 0,
       "augment_on=cpu: finished rows are copied");
    opt.augment_on = STOKER_PLACE_AUTO;
    ok(same(train_text, &opt) && stats.augment_on == STOKER_PLACE_DEVICE, "auto: the device does it");
    host.no_raw = true;
    ok(same(train_text, &opt) && stats.augment_on == STOKER_PLACE_CPU, "unless it cannot");
    opt.augment_on = STOKER_PLACE_DEVICE;
    struct stoker_error err = {0};
    ok(!harness_open_on(&host_devices, items, COUNT, train_text, &opt, &err) && strstr(err.message, "raw rows"),
       "which is an error where it must (%s)", err.message);
    host.no_raw = false;
}

static void bad_samples(void)
{
    struct stoker_loader_options opt = harness_options(BATCH, 3);
    static const uint32_t bad[] = {2, 11, 20};
    char kept[3][8];
    for (int k = 0; k < 3; k++) {
        memcpy(kept[k], items[bad[k]].data, sizeof kept[k]);
        memset((char *)(uintptr_t)items[bad[k]].data, 0, sizeof kept[k]);
    }
    opt.on_error = STOKER_ON_ERROR_SKIP;
    ok(same(train_text, &opt) && stats.bad == 3, "bad samples skipped as on the CPU");
    opt.on_error = STOKER_ON_ERROR_REPLACE;
    ok(same(train_text, &opt) && stats.bad == 3, "or replaced by zeros");
    opt.on_error = STOKER_ON_ERROR_RAISE;
    struct stoker_error err = {0};
    struct stoker_loader *loader = harness_open_on(&host_devices, items, COUNT, train_text, &opt, &err);
    const struct stoker_batch *batch;
    uint32_t good = 0, failed = 0;
    int rc;
    st_loader_start(loader, NULL, 0, NULL);
    while ((rc = st_loader_next(loader, &batch, &err)) != STOKER_END) {
        good += rc == 0;
        failed += rc == STOKER_ECORRUPT && strstr(err.message, "sample ");
        st_batch_release(batch, NULL);
    }
    ok(good + failed == BATCHES && failed > 0 && failed <= 3, "or raised: %u of %u batches", failed, BATCHES);
    st_loader_close(loader);
    for (int k = 0; k < 3; k++)
        memcpy((char *)(uintptr_t)items[bad[k]].data, kept[k], sizeof kept[k]);
}

/* Opening a loader with workers="auto" makes the first sample of a small dataset twice, to see how long that takes.
 * A slot of one row whose heap is as small as can be has room for it once. */
static void first_sample(void)
{
    enum { MANY = 250 }; /* so many that none is quick enough for an epoch without threads */
    struct stoker_loader_options opt = harness_options(1, -1);
    struct stoker_error err = {0};
    struct stoker_item many[MANY];
    for (uint32_t k = 0; k < MANY; k++)
        many[k] = items[0];
    opt.pinned_limit = 1;
    struct stoker_loader *loader = harness_open_on(&host_devices, many, MANY, "center_crop(size=100)", &opt, &err);
    if (!ok(loader != NULL, "a loader with a pinned_limit of one byte: %s", err.message))
        return;
    const uint64_t room = loader->shape.reserve + loader->shape.share;
    for (struct st_slot *slot = loader->slots; slot; slot = slot->next)
        ok(atomic_load(&slot->heap_used) <= room, "%llu of the %llu bytes of a slot's heap are used",
           (unsigned long long)atomic_load(&slot->heap_used), (unsigned long long)room);
    st_loader_close(loader);
}

int main(void)
{
    items = test_items(COUNT);
    pipelines();
    warps();
    types();
    reduced();
    overflow();
    finished();
    bad_samples();
    first_sample();
    ok(host.wrong == 0 && host.slots == 0 && host.open == 0, "the device saw nothing wrong, and got all back");
    test_items_free(items, COUNT);
    return done_testing();
}

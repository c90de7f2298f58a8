/* registry.c - the ops of this build
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/op.h"

#include <string.h>

#define OPS(X) \
    X(resize) X(center_crop) X(crop) X(crop_to_mask) X(crop_around_boxes) X(random_crop) \
    X(random_resized_crop) X(random_sized_crop) X(random_iou_crop) \
    X(random_horizontal_flip) X(random_vertical_flip) \
    X(random_rotation) X(random_affine) X(random_perspective) \
    X(random_resize) X(random_shortest_size) X(scale_jitter) X(resize_keep_ratio) \
    X(resize_to_fit) X(random_scale) \
    X(random_zoom_out) X(elastic_transform) X(cv_affine) X(cv_perspective) \
    X(cv_elastic) X(cv_grid_distortion) X(cv_optical_distortion) X(drop_holes) X(drop_grid) \
    X(sanitize_bounding_boxes) X(clamp_bounding_boxes) X(convert_bounding_box_format) \
    X(begin_boxes) X(filter_boxes) X(begin_points) X(filter_points) \
    X(random_turn) X(pad) X(pad_if_needed) X(color_jitter) X(grayscale) \
    X(random_grayscale) X(gaussian_blur) X(pillow_blur) X(jpeg) X(random_erasing) \
    X(random_invert) X(random_posterize) X(random_solarize) \
    X(random_autocontrast) X(random_equalize) X(random_adjust_sharpness) \
    X(auto_augment) X(rand_augment) X(trivial_augment_wide) X(timm_augment) \
    X(augment_and_mix) X(tensor_augment) \
    X(albu_brightness_contrast) X(albu_gamma) X(albu_posterize) X(albu_solarize) X(albu_shift_rgb) \
    X(albu_equalize) X(albu_shift_hsv) X(albu_jitter) X(albu_grey) X(albu_drop_channels) X(albu_noise) \
    X(albu_box_blur) X(albu_median_blur) X(albu_sharpen) X(albu_emboss) X(albu_gaussian_blur) \
    X(albu_motion_blur) X(albu_clahe) X(albu_downscale) X(albu_iso_noise) \
    X(crop_borders) X(drop_stripes) X(shuffle_tiles) \
    X(albu_multiply) X(albu_tone_curve) X(albu_salt_and_pepper) X(albu_drop_pixels) \
    X(random_channel_permutation) X(random_photometric_distort) \
    X(views) X(by_view) \
    X(random_apply) X(random_choice) X(random_some) X(random_order) X(to_tensor) X(pil_to_tensor) \
    X(to_array) X(convert_image_dtype) X(normalize) X(normalize_bytes) X(arithmetic) \
    X(audio_decode) X(audio_resample) X(audio_mono) X(audio_channels) X(audio_crop) \
    X(audio_gain) X(audio_normalize) X(audio_spectrogram) X(audio_mel_spectrogram)

#define X(name) extern const struct st_op st_op_##name;
OPS(X)
#undef X

const struct st_op *const st_ops[] = {
#define X(name) &st_op_##name,
    OPS(X)
#undef X
    NULL,
};

const struct st_op *st_op_find(const char *name)
{
    for (const struct st_op *const *op = st_ops; *op; op++)
        if (strcmp((*op)->name, name) == 0)
            return *op;
    return NULL;
}

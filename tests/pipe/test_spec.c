/* The text of a pipeline: what is read, what is refused, and in which words. */
#include "pipe/spec.h"
#include "tap.h"

#include <string.h>

static bool opens(const char *text)
{
    struct stoker_pipeline *pipe;
    struct stoker_error err = {0};
    const int rc = st_pipeline_open(&pipe, text, &err);
    if (rc)
        note("%s", err.message);
    st_pipeline_drop(pipe);
    return rc == 0;
}

static void refused(const char *text, const char *because)
{
    struct stoker_pipeline *pipe;
    struct stoker_error err = {0};
    const int rc = st_pipeline_open(&pipe, text, &err);
    ok(rc == STOKER_EINVAL && pipe == NULL && strstr(err.message, because), "refused: '%s' (%s)", text, err.message);
    st_pipeline_drop(pipe);
}

int main(void)
{
    ok(opens(""), "an empty pipeline");
    ok(opens("  to_tensor ; "), "blanks and a last semicolon");
    ok(opens("random_resized_crop(size=[224, 224], scale=[0.08,1], ratio=[0.75, 1.3333333333333333], "
             "interpolation=bilinear); random_horizontal_flip(p=0.5); to_tensor; "
             "normalize(mean=[0.485,0.456,0.406],std=[0.229,0.224,0.225])"),
       "the training pipeline");
    ok(opens("resize(size=256); center_crop(size=224); pil_to_tensor"), "numbers without brackets");
    ok(opens("random_apply(p=0.3){ color_jitter(brightness=[0.5,1.5]); random_grayscale(p=0.1) }; to_tensor"),
       "ops that hold ops");

    refused("no_such_op", "unknown op no_such_op");
    refused("resize(size=256) to_tensor", "expected ';'");
    refused("resize", "resize requires size=");
    refused("resize(size=256, size=3)", "given twice");
    refused("resize(sizes=256)", "resize: there is no parameter sizes");
    refused("resize(size=)", "character 13: resize: expected a number for size");
    refused("resize(size=x)", "character 13: resize: expected a number for size, not 'x'");
    refused("resize(size=[2, 1e])", "character 17: resize: expected a number for size, not '1e'");
    refused("resize(size=[])", "empty list");
    refused("resize(size=[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17])", "too many numbers");
    refused("resize(size=[1,2)", "expected ']'");
    refused("resize(size=256", "expected ',' or ')'");
    refused("resize(size=256, interpolation=linear)", "is not one of");
    refused("resize(size=1e999)", "expected a number");
    refused("random_horizontal_flip(p=1.5)", "random_horizontal_flip: p=1.5 is out of range (0 to 1)");
    refused("resize(size=-1)", "resize: size=-1 is out of range (1 to 1048576)");
    refused("random_apply(p=0.5)", "expected '{'");
    refused("random_choice{}", "there is no op to choose");
    refused("augment_and_mix{}", "there is no op to choose");
    refused("augment_and_mix{random_invert; augment_and_mix{random_invert}}", "cannot be inside another one");
    refused("augment_and_mix(width=17){random_invert}", "width=17 is out of range");
    refused("augment_and_mix(depth=16){random_invert}", "depth=16 is out of range");
    refused("augment_and_mix{to_tensor}", "put it outside");
    refused("random_choice(p=[1,2]){random_invert}", "p must be 1 numbers");
    refused("random_choice(p=[0,0]){random_invert; random_equalize}", "cannot be chosen");
    refused("random_some(n=2){random_invert}", "of 1 ops with a weight above 0, 2 cannot be chosen");
    refused("random_some(n=2, p=[0,1]){random_invert; random_equalize}", "of 1 ops with a weight above 0, 2");
    refused("random_some(n=1){}", "there is no op to choose");
    refused("random_some(n=257){random_invert}", "n=257 is out of range");
    refused("random_some(n=1){random_invert; to_tensor}", "put it outside");
    refused("timm_augment", "change");
    refused("timm_augment(change=Shear)", "is not one of");
    refused("timm_augment(change=Rotate, interpolation=lanczos)", "use nearest, bilinear or bicubic");
    refused("timm_augment(change=Rotate, fill=[1,2])", "fill has 2 values");
    refused("resize_keep_ratio(size=[10,20], scale=[2,1])", "ascending order");
    refused("random_choice{grayscale; random_invert}", "number of channels");
    refused("random_order{random_invert; to_tensor}", "put it outside");
    refused("to_tensor; random_order{random_erasing}", "random_order cannot contain random_erasing");
    refused("random_apply(p=0.5){to_tensor}", "put it outside");
    refused("random_apply(p=0.5){to_tensor", "expected '}'");
    refused("to_tensor{}", "cannot contain other ops");
    refused("to_tensor}", "unexpected '}'");
    refused("random_apply{random_apply{random_apply{random_apply{random_apply{random_apply{random_apply{}}}}}}}", "too deeply");

    struct stoker_pipeline *pipe;
    ok(st_pipeline_open(&pipe, "resize(size=256); center_crop(size=[200, 224]); to_tensor", NULL) == 0 &&
           pipe->shape.height == 200 && pipe->shape.width == 224 && pipe->finish.scaled,
       "the plan knows the shape and the type");
    st_pipeline_drop(pipe);
    ok(st_pipeline_open(&pipe, "resize(size=256); to_tensor", NULL) == 0 && pipe->shape.width == -1,
       "and where images keep their own shapes");
    st_pipeline_drop(pipe);
    return done_testing();
}

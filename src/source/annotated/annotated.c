/* annotated.c - images and the objects in them, as annotation files describe them
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/annotated/annotated.h"

#include <stdlib.h>

/* Room for one more item in *list, which may move; false if out of memory. */
static bool has_room(void *list, uint64_t count, uint64_t *room, uint64_t size)
{
    enum { FIRST = 64 };
    void *old;
    if (count < *room)
        return true;
    const uint64_t wanted = *room ? *room + *room / 2 : FIRST;
    memcpy(&old, list, sizeof old);
    void *grown = st_grow(old, wanted, size);
    if (!grown)
        return false;
    memcpy(list, &grown, sizeof grown);
    *room = wanted;
    return true;
}

struct st_annotated_image *st_annotated_add_image(struct st_annotated *table)
{
    if (!has_room(&table->images, table->image_count, &table->image_room, sizeof *table->images))
        return NULL;
    struct st_annotated_image *image = &table->images[table->image_count++];
    *image = (struct st_annotated_image){.first = table->object_count};
    return image;
}

struct st_object *st_annotated_add_object(struct st_annotated *table)
{
    if (!has_room(&table->objects, table->object_count, &table->object_room, sizeof *table->objects))
        return NULL;
    struct st_object *object = &table->objects[table->object_count++];
    *object = (struct st_object){.label = -1};
    return object;
}

bool st_annotated_add_number(struct st_annotated *table, double number)
{
    if (!has_room(&table->numbers, table->number_count, &table->number_room, sizeof *table->numbers))
        return false;
    table->numbers[table->number_count++] = number;
    return true;
}

void st_annotated_free(struct st_annotated *table)
{
    free(table->images);
    free(table->objects);
    free(table->numbers);
    free(table->order);
    free(table->class_ids);
    st_buffer_free(&table->names);
    st_cells_free(&table->classes);
    st_held_close(&table->file);
    *table = (struct st_annotated){0};
}

/* registry.c - all rules, in the order of their codes
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/rule/rule.h"

#include <string.h>
#include <strings.h>

#define RULES(X)                                                                                        \
    X(healthy)                                                                                          \
    X(serial)                                                                                           \
    X(too_few)                                                                                          \
    X(saturated)                                                                                        \
    X(quota)                                                                                            \
    X(thread_storm)                                                                                     \
    X(disk)                                                                                             \
    X(small_files)                                                                                      \
    X(network)                                                                                          \
    X(page_cache)                                                                                       \
    X(warm_up)                                                                                          \
    X(head_of_line)                                                                                     \
    X(periodic)                                                                                         \
    X(respawn)                                                                                          \
    X(hand_over)                                                                                        \
    X(pageable)                                                                                         \
    X(pcie)                                                                                             \
    X(shm)                                                                                              \
    X(copy_on_write)                                                                                    \
    X(tiny)                                                                                             \
    X(fork_handles)                                                                                     \
    X(numa)                                                                                             \
    X(neighbour)                                                                                        \
    X(gil)                                                                                              \
    X(straggler)                                                                                        \
    X(augment)                                                                                          \
    X(decode)                                                                                           \
    X(decompress)                                                                                       \
    X(collate)                                                                                          \
    X(sampler)                                                                                          \
    X(lock)                                                                                             \
    X(uneven)                                                                                           \
    X(duplicates)                                                                                       \
    X(seeds)                                                                                            \
    X(opening)                                                                                          \
    X(swapping)                                                                                         \
    X(launch)                                                                                           \
    X(sync)                                                                                             \
    X(memory_room)                                                                                      \
    X(precision)                                                                                        \
    X(clocks)                                                                                           \
    X(outliers)                                                                                         \
    X(collector)                                                                                        \
    X(saving)                                                                                           \
    X(validation)                                                                                       \
    X(logging)                                                                                          \
    X(cannot_tell)

#define DECLARE(name) extern const struct dr_rule dr_rule_##name;
RULES(DECLARE)
#define LIST(name) &dr_rule_##name,
const struct dr_rule *const dr_rules[] = {RULES(LIST) NULL};

const struct dr_rule *dr_rule_find(const char *code_or_name)
{
    for (size_t i = 0; dr_rules[i]; i++)
        if (!strcasecmp(dr_rules[i]->code, code_or_name) || !strcasecmp(dr_rules[i]->name, code_or_name))
            return dr_rules[i];
    return NULL;
}

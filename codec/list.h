/* Lists through the items themselves, which have `next` and, where one may leave from the middle, `previous`. The
 * macros evaluate their arguments more than once. */
#ifndef CODEC_LIST_H
#define CODEC_LIST_H

#include <stddef.h>

/* Put the item in front of the list that begins at first. */
#define LIST_JOIN(first, item)                                                                     \
    do {                                                                                           \
        (item)->previous = NULL;                                                                   \
        (item)->next = (first);                                                                    \
        if ((first) != NULL) {                                                                     \
            (first)->previous = (item);                                                            \
        }                                                                                          \
        (first) = (item);                                                                          \
    } while (0)

/* Take the item, which is in it, out of the list. */
#define LIST_PART(first, item)                                                                     \
    do {                                                                                           \
        *((item)->previous != NULL ? &(item)->previous->next : &(first)) = (item)->next;           \
        if ((item)->next != NULL) {                                                                \
            (item)->next->previous = (item)->previous;                                             \
        }                                                                                          \
        (item)->next = (item)->previous = NULL;                                                    \
    } while (0)

/* Put the item behind the last one of a queue; first and last are NULL while it is empty. */
#define LIST_APPEND(first, last, item)                                                             \
    do {                                                                                           \
        (item)->next = NULL;                                                                       \
        *((last) != NULL ? &(last)->next : &(first)) = (item);                                     \
        (last) = (item);                                                                           \
    } while (0)

/* The head of a loop that takes each item off the front of the list, until it is empty. */
#define LIST_EMPTY(first, item) while (((item) = (first)) != NULL && ((first) = (item)->next, 1))

#endif

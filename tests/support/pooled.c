/* Linked into the tests of units above codec: they take their memory as the server does, from the
 * pool in huge pages. Sanitized builds have no pool, so malloc is tested as well. */
#include "codec/memory.h"

__attribute__((constructor)) static void use_the_pool(void) {
    memory_init();
}

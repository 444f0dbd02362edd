/* The main of a test program that has none: apart from test.c, so that one with a main links. */
#include "tests/support/test.h"

TEST_MAIN(NULL, NULL)

/* Claims that hold unless the program is wrong. They stay on in release builds; they are never
 * made about bytes a client sent. One claim each, so that the line printed says what broke. */
#ifndef CODEC_CHECK_H
#define CODEC_CHECK_H

#define CHECK(claim)                                                                               \
    (__builtin_expect(!!(claim), 1) ? (void)0 : check_failed(#claim, __FILE__, __LINE__))

/* For results that must not be dropped. */
#define MUST_CHECK __attribute__((warn_unused_result))

/* Print the claim and where it stands to stderr, then abort. */
__attribute__((noreturn, cold)) void check_failed(const char *claim, const char *file, int line);

#endif

/* Texts of errors that several programs of tests expect, so that a change of one touches this file. What only one of them
 * expects stands there. */
#ifndef TESTS_SUPPORT_ERRORS_H
#define TESTS_SUPPORT_ERRORS_H

#define ERROR_FROZEN "-FROZEN board takes no writes: LB.ALTER with THAW ends that"
#define ERROR_BANNED "-BANNED member is banned from this board: LB.UNBAN ends that"
/* The value of a field is no number: ERROR_NUMBER("score"). */
#define ERROR_NUMBER(field) "-ERR value is not a valid float: field '" field "'"

#endif

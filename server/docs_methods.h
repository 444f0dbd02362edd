/* Commands as methods of a client's class, whatever its language: one method for each LB. command, flat, from the
 * syntax and the reply of the command's entry. What a language makes of them is in a file of its own.
 *
 *     LB.AROUND key where=<MEMBER member | SCORE score> count [COMP] [STRINGS] [WHERE name value]...
 *
 *     around, [@Record]
 *         key      DOCS_BOARD    the client's board; not in the signature
 *         member   DOCS_VALUES   MEMBER, one value; group 1; place DOCS_POSITIONAL
 *         score    DOCS_VALUES   SCORE, one value; group 1
 *         count    DOCS_VALUES   one integer; required; place DOCS_POSITIONAL
 *         comp     DOCS_FLAG
 *         strings  DOCS_ALWAYS   not in the signature
 *         where    DOCS_VALUES   pairs, the token before each
 *
 * A request is the method's words, then its parameters in their order, each as its kind says; one that is not
 * given is left out. The signature has the order in which a caller gives them.
 *
 * A command whose reply is another with an option has two methods: LB.COUNT is count, and with BY count_by. */
#ifndef SERVER_DOCS_METHODS_H
#define SERVER_DOCS_METHODS_H

#include "server/dispatch/command.h"
#include "server/dispatch/shape.h"

enum {
    DOCS_METHOD_NAME_MAX = 64,
    DOCS_REPLY_MAX = 64,
    DOCS_PARAMETERS_MAX = 48, /* of a method */
    DOCS_PARTS_MAX = 4,       /* of a parameter */
};

enum docs_part_kind {
    DOCS_ONE,     /* one value */
    DOCS_SEVERAL, /* one or more values */
    DOCS_PAIRS, /* one or more pairs: a map of `first` to `type`; a token may be given for each pair, and then
                   * one first may have several values: WHERE country DE WHERE country FR */
    DOCS_RESULTS, /* one or more results: a map of members to `type`, or to several of them if has_many; the
                   * values are sent before their member */
};
struct docs_part {
    enum docs_part_kind kind;
    const char *name;               /* of the value: "score"; with pairs that of the second */
    const char *first;              /* with pairs and results, else NULL: "name", "member" */
    enum argument_type type;        /* of the value; ARGUMENT_ONEOF: one of the choices */
    const struct argument *choices; /* pure tokens; NULL: none */
    bool is_counted;                /* preceded by the number of values, or pairs */
    bool has_many;
};

enum docs_kind {
    DOCS_BOARD,  /* the key of the client's board */
    DOCS_BOARDS, /* a count and keys; none given: the client's board alone */
    DOCS_ALWAYS, /* a token, always sent */
    DOCS_FLAG,   /* a token, sent if set */
    DOCS_VALUES, /* the token, if there is one, then the values of the parts. With several parts the
                  * parameter is a tuple of them. With is_token_repeated the token precedes each
                  * value, or pair, of the only part */
    DOCS_WORDS,  /* the token, if there is one, then words in the syntax of the command: one text
                  * with blanks between them, or a list */
};
enum docs_place {
    DOCS_HIDDEN,     /* not in the signature */
    DOCS_POSITIONAL, /* first in the signature */
    DOCS_NAMED,      /* an option */
};
struct docs_parameter {
    char name[DOCS_METHOD_NAME_MAX]; /* lower case, '_' between words: "where", "unix_time" */
    const char *token;               /* "WHERE"; NULL: none */
    enum docs_kind kind;
    enum docs_place place;
    bool is_required; /* always has a value; not: it may be left out */
    bool is_token_repeated;
    /* Of the parameters with the same number other than 0 one may be given; one must, if is_group_required. */
    unsigned group;
    bool is_group_required;
    struct docs_part parts[DOCS_PARTS_MAX]; /* DOCS_VALUES */
    unsigned part_count;
};

struct docs_method {
    char name[DOCS_METHOD_NAME_MAX]; /* lower case, '_' between words: "league_add" */
    const struct command *container; /* of a subcommand: LB.LEAGUE; else NULL */
    const struct command *command;
    char reply[DOCS_REPLY_MAX]; /* the shape: one of the alternatives */
    const char *option;         /* the option that makes the reply this one; NULL: none */
    struct docs_parameter parameters[DOCS_PARAMETERS_MAX]; /* in the order of the request */
    unsigned parameter_count;
    const struct docs_parameter
        *signature[DOCS_PARAMETERS_MAX]; /* in the order of a call: positional
                   ones, then required options, then the others */
    unsigned signature_count;
    unsigned group_count;
};

typedef void docs_write_method(const struct docs_method *method);
/* Every method, in the order of docs/commands.md. The method is valid during the call. */
void docs_methods_for_each(docs_write_method *write);
/* The parameter with this token; NULL: the method has none. */
const struct docs_parameter *docs_methods_find(const struct docs_method *method, const char *token);
/* Does it make a key, so that one that is there may be no error (exist_ok)? */
bool docs_methods_creates(const struct docs_method *method);

#endif

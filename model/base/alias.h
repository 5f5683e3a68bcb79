/* Words that people type. Other queue systems call our acts, keys of the filter and states
 * differently: one table of those words, for verbs, the filter and the palette. And the word that
 * somebody meant who misspelt it. */
#ifndef MODEL_BASE_ALIAS_H
#define MODEL_BASE_ALIAS_H

enum alias_kind {
    ALIAS_ACT,  /* a verb, a command: retry = requeue */
    ALIAS_KEY,  /* a key of the filter: attempts = tries */
    ALIAS_STATE /* of a job: dead = failed */
};

struct alias {
    enum alias_kind kind;
    const char *word, *ours;
};
extern const struct alias aliases[]; /* the last one has no word */

/* Our word for the first len bytes of this one; NULL = it is no other word for anything. */
const char *alias_find(enum alias_kind kind, const char *word, int len);
/* Of a list that ends with NULL the word that differs least from this one, by one letter, by two
 * where it has more than five; NULL = none is near. */
const char *alias_closest(const char *word, const char *const *list);

#endif

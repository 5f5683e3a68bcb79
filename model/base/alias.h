/* Words that people type. Other queue systems have other words for our acts, states and keys of the
 * filter. Verbs, filter and palette all translate them by the one table in alias.c. alias_near
 * finds the word that somebody meant and misspelt. */
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

/* Our word for the first len bytes of this one; NULL = the table does not have it. */
const char *alias_find(enum alias_kind kind, const char *word, int len);
/* The word of the list (it ends with NULL) that differs least from this one: by one letter, or by
 * two if it has more than five letters. NULL = none is near. */
const char *alias_closest(const char *word, const char *const *list);

#endif

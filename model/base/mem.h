/* Heap that never returns NULL: out of memory aborts, after the hook (set by the console) has put
 * the terminal back. A frame arena serves scratch text that lives until its next reset. */
#ifndef MODEL_BASE_MEM_H
#define MODEL_BASE_MEM_H

#include <stddef.h>

void *xmalloc(size_t size) __attribute__((malloc, returns_nonnull, warn_unused_result));
void *xcalloc(size_t n, size_t size) __attribute__((malloc, returns_nonnull, warn_unused_result));
void *xreallocarray(void *p, size_t n, size_t size)
    __attribute__((returns_nonnull, warn_unused_result));
char *xstrdup(const char *s) __attribute__((malloc, returns_nonnull, nonnull, warn_unused_result));
char *xstrndup(const char *s, size_t n)
    __attribute__((malloc, returns_nonnull, nonnull, warn_unused_result));
char *xasprintf(const char *fmt, ...)
    __attribute__((malloc, returns_nonnull, format(printf, 1, 2), warn_unused_result));

/* Called once, just before the program aborts for lack of memory. */
void mem_on_abort(void (*hook)(void));

struct arena; /* grows by blocks, freed as one */
struct arena *arena_new(void);
void arena_free(struct arena *a);
void arena_reset(struct arena *a);
size_t arena_size(const struct arena *a); /* bytes that it holds; NULL = 0 */
/* Zeroed memory that lives until the arena's reset. */
void *arena_alloc(struct arena *a, size_t size) __attribute__((returns_nonnull));
char *arena_printf(struct arena *a, const char *fmt, ...)
    __attribute__((format(printf, 2, 3), returns_nonnull));
char *arena_strndup(struct arena *a, const char *s, size_t n) __attribute__((returns_nonnull));

/* A growing byte string. `data` is always NUL-terminated once something was appended; start with
 * struct buf b = {0}; and end with buf_free. */
struct buf {
    char *data;
    size_t len;
    size_t cap;
};
void buf_add(struct buf *b, const void *bytes, size_t len);
void buf_str(struct buf *b, const char *s);
void buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_clear(struct buf *b);
void buf_free(struct buf *b);

#endif

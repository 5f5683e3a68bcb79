/* What reading (tape.c) and writing (tape_out.c) a recording share. */
#ifndef MODEL_TAPE_TAPE_PARTS_H
#define MODEL_TAPE_TAPE_PARTS_H

#include <stdint.h>

#include "model/tape/tape.h"

enum {
    TAPE_HEADER = 32,
    TAPE_TAG = 0x31707471, /* "qtp1" */
    TAPE_BEGINS = 1,       /* flag of a piece */
    TAPE_WINDOW_LOG = 21,
    TAPE_RAW_MAX = 64 << 20,
    TAPE_PACKED_MAX = TAPE_RAW_MAX + (1 << 20)
};

struct tape_piece {
    int64_t offset; /* of its header */
    int64_t at_ms;
    uint32_t packed, raw, sum;
    bool begins;
};

struct tape_index {
    struct tape_piece *pieces;
    int n, cap;
    int64_t end;  /* behind the last whole piece */
    int64_t size; /* of the file */
};

void tape_put32(unsigned char *p, uint32_t v);
void tape_put64(unsigned char *p, uint64_t v);
uint32_t tape_crc(uint32_t crc, const void *bytes, size_t len); /* the first crc is 0 */
void tape_header(unsigned char *h);                             /* of the file */
/* Reads all headers. False = the file is no recording, or a system call failed. Then checks the sum
 * of whole pieces, from the last one backwards, until one is good. */
bool tape_scan(int fd, const char *file, struct tape_index *out, struct err *e)
    __attribute__((warn_unused_result));
/* The packed bytes of a piece, checked. */
bool tape_load(int fd, const char *file, const struct tape_piece *p, unsigned char **packed,
               struct err *e) __attribute__((warn_unused_result));

#endif
